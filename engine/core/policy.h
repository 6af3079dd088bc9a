/* policy: what is wanted for a unit, as data. Pure: facts in, decision out; it never sees a store.
 *
 * Here stands the built-in safe decision, which is also what is taken when a policy cannot be
 * asked: save what is complete, keep everything. */
#ifndef CORE_POLICY_H
#define CORE_POLICY_H

#include <stdbool.h>

#include "core/detect.h"

typedef enum policy_action {
  POLICY_WAIT, /* not now; asked again when the unit changes its state */
  POLICY_SAVE,
  POLICY_SAVE_IF_SOUND, /* save it if a structural check passes */
} policy_action;

typedef enum policy_queue {
  POLICY_NEWEST, /* a waiting older save of the same kind is let go */
  POLICY_ALL,
} policy_queue;

typedef struct decision {
  policy_action action;
  policy_queue queue;
  const char *policy; /* its name; static */
  const char *reason; /* static, or the facts' own */
} decision;

decision policy_decide(const detect_unit *facts);

#endif
