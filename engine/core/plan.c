#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/manifest.h"
#include "store/store.h"

static const char *const op_names[] = {"prove",  "snapshot", "attempt", "upload", "with",
                                       "gather", "manifest", "publish", "commit"};
enum { OP_COUNT = sizeof op_names / sizeof op_names[0] };

const char *plan_op_name(plan_op op) {
  return (unsigned)op < OP_COUNT ? op_names[op] : "unknown";
}

static void add(plan *p, plan_op op) {
  p->ops[p->count++] = op;
}

int plan_save(const detect_unit *facts, const decision *want, unsigned flags, plan *out, err *e) {
  *out = (plan){.kind = facts->kind, .step = facts->step};
  size_t len = strlen(facts->path);
  if (len >= sizeof out->unit)
    return err_set(e, ERR_LIMIT, "%.100s...: the path is too long", facts->path);
  memcpy(out->unit, facts->path, len + 1);
  if (want->action == POLICY_WAIT) return 0;
  if (want->action == POLICY_SAVE_IF_SOUND) add(out, PLAN_PROVE);
  if (facts->in_place) add(out, PLAN_SNAPSHOT);
  add(out, PLAN_ATTEMPT);
  add(out, PLAN_UPLOAD);
  if (flags & PLAN_HAS_WITH) add(out, PLAN_WITH);
  if (flags & PLAN_HAS_RANKS) add(out, PLAN_GATHER);
  add(out, PLAN_MANIFEST);
  if (flags & PLAN_CAN_PUBLISH) add(out, PLAN_PUBLISH);
  add(out, PLAN_COMMIT);
  return 0;
}

/* The operations are numbered in the one order that is safe, so a plan is well ordered if its
 * numbers rise; what a commit needs must not be left out. The unit is read below the watched
 * directory and written below the target: its path obeys the rule for keys. */
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

int plan_print(const plan *p, buf *out, err *e) {
  json_t *ops = json_array();
  for (int i = 0; i < p->count; i++)
    json_array_append_new(ops, json_string(plan_op_name(p->ops[i])));
  json_t *top = json_pack("{s:o, s:s, s:I, s:o}", "unit", js_name_new(p->unit), "kind",
                          manifest_kind_name(p->kind), "step", (json_int_t)p->step, "ops", ops);
  int rc = top ? js_print(top, out, e) : err_set(e, ERR_NOMEM, "print a plan: out of memory");
  json_decref(top);
  return rc;
}

static int parse_ops(const json_t *list, plan *out, err *e) {
  size_t i;
  json_t *item;
  json_array_foreach(list, i, item) {
    const char *text = json_is_string(item) ? json_string_value(item) : "";
    int op = 0;
    while (op < OP_COUNT && strcmp(op_names[op], text) != 0) op++;
    if (op == OP_COUNT || out->count == PLAN_OPS_MAX)
      return err_set(e, ERR_INVAL, "plan: operation %zu (\"%.40s\") is unknown or one too many",
                     i + 1, text);
    add(out, (plan_op)op);
  }
  return 0;
}

static int parse_kind(const char *text, match_kind *out, err *e) {
  for (int kind = MATCH_DIR; kind <= MATCH_GROUP; kind++)
    if (strcmp(text, manifest_kind_name((match_kind)kind)) == 0) {
      *out = (match_kind)kind;
      return 0;
    }
  return err_set(e, ERR_FORMAT, "plan: \"%.40s\" is no kind of unit", text);
}

static int parse(const json_t *top, plan *out, err *e) {
  json_t *ops;
  const char *kind;
  char *unit = NULL;
  int rc = js_get_name(top, "unit", "plan", &unit, e);
  if (rc < 0) return rc;
  size_t len = strlen(unit);
  if (len < sizeof out->unit)
    memcpy(out->unit, unit, len + 1);
  else
    rc = err_set(e, ERR_LIMIT, "plan: the unit's path is longer than %zu bytes",
                 sizeof out->unit - 1);
  free(unit);
  if (rc == 0) rc = js_get_str(top, "kind", "plan", &kind, e);
  if (rc == 0) rc = parse_kind(kind, &out->kind, e);
  if (rc == 0) rc = js_get_int(top, "step", "plan", &out->step, e);
  if (rc == 0) rc = js_get_array(top, "ops", "plan", &ops, e);
  if (rc == 0) rc = parse_ops(ops, out, e);
  return rc < 0 ? rc : plan_check(out, e);
}

int plan_parse(const char *text, size_t len, plan *out, err *e) {
  json_t *top = NULL;
  *out = (plan){0};
  int rc = js_parse(text, len, "plan", &top, e);
  if (rc < 0) return rc;
  rc = parse(top, out, e);
  json_decref(top);
  if (rc < 0) *out = (plan){0}; /* the half of a plan is an empty one, which does nothing */
  return rc;
}
