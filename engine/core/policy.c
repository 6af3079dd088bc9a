#include "policy.h"

static const char name[] = "builtin";

decision policy_decide(const detect_unit *facts) {
  switch (facts->state) {
  case DETECT_COMPLETE: return (decision){POLICY_SAVE, POLICY_NEWEST, name, facts->reason};
  case DETECT_UNPROVEN:
    /* Each file may be whole and one still be missing: a structural check cannot tell. */
    if (facts->lacking || facts->alone) break;
    return (decision){POLICY_SAVE_IF_SOUND, POLICY_NEWEST, name, facts->reason};
  case DETECT_OPEN:
  case DETECT_BROKEN:
  case DETECT_GONE: break;
  }
  return (decision){POLICY_WAIT, POLICY_NEWEST, name, facts->reason};
}
