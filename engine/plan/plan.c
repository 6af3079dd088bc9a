#include "plan.h"

#include <string.h>

#include "store/store_key.h"

static const char *const op_names[] = {"prove",  "snapshot", "attempt", "upload", "companions",
                                       "gather", "manifest", "publish", "commit"};
enum { OP_COUNT = sizeof op_names / sizeof op_names[0] };

const char *plan_op_name(plan_op op) {
  return (unsigned)op < OP_COUNT ? op_names[op] : "unknown";
}

static void add(plan *p, plan_op op) {
  p->ops[p->count++] = op;
}

int plan_save(const detect_unit *facts, const decision *want, unsigned flags, plan *out, err *e) {
  *out = (plan){.kind = facts->kind, .step = facts->step, .above = facts->above};
  size_t len = strlen(facts->path);
  if (len >= sizeof out->unit)
    return err_set(e, ERR_LIMIT, "%.100s...: the path is too long", facts->path);
  memcpy(out->unit, facts->path, len + 1);
  if (want->action == POLICY_WAIT) return 0;
  if (want->action == POLICY_SAVE_IF_SOUND) add(out, PLAN_PROVE);
  if (facts->in_place) add(out, PLAN_SNAPSHOT);
  add(out, PLAN_ATTEMPT);
  add(out, PLAN_UPLOAD);
  if (flags & PLAN_HAS_COMPANIONS && !facts->above) add(out, PLAN_COMPANIONS);
  if (flags & PLAN_HAS_RANKS) add(out, PLAN_GATHER);
  add(out, PLAN_MANIFEST);
  if (flags & PLAN_CAN_PUBLISH) add(out, PLAN_PUBLISH);
  add(out, PLAN_COMMIT);
  return 0;
}

/* The operations are numbered in the one order that is safe, so a plan is well ordered if its
 * numbers rise; operations that a commit needs must not be left out. The unit is read below the
 * watched directory and written below the target: its path obeys the rule for keys. */
int plan_check(const plan *p, err *e) {
  bool there[OP_COUNT] = {false};
  int rc = store_key_check(p->unit, e);
  if (rc < 0) return e ? err_wrap(e, "plan") : rc;
  if (p->step < MATCH_NO_STEP || p->count < 0 || p->count > PLAN_OPS_MAX)
    return err_set(e, ERR_INVAL, "plan for %s: step %lld, %d operations", p->unit,
                   (long long)p->step, p->count);
  for (int i = 0; i < p->count; i++) {
    if ((unsigned)p->ops[i] >= OP_COUNT)
      return err_set(e, ERR_INVAL, "plan for %s: operation %d is unknown", p->unit, i + 1);
    if (i && p->ops[i] <= p->ops[i - 1])
      return err_set(e, ERR_INVAL, "plan for %s: %s cannot come after %s", p->unit,
                     plan_op_name(p->ops[i]), plan_op_name(p->ops[i - 1]));
    there[p->ops[i]] = true;
  }
  static const plan_op whole[] = {PLAN_ATTEMPT, PLAN_UPLOAD, PLAN_MANIFEST, PLAN_COMMIT};
  for (size_t i = 0; p->count && i < sizeof whole / sizeof whole[0]; i++)
    if (!there[whole[i]])
      return err_set(e, ERR_INVAL, "plan for %s: there is no %s", p->unit, plan_op_name(whole[i]));
  return 0;
}
