/* policy_shape: what a checkpoint is, and when it is complete, does not change while a run watches. What other
 * policies say of it is held against what those before said; what they say nothing of stays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "decision/policy_impl.h"
#include "event/rules_differ.h"

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

/* The first key in which they differ; NULL: none. Names of markers are excluded, too, so they come first. */
static const char *differ(const policy *a, const policy *b) {
  if (!same_text(policy_null_marker(a), policy_null_marker(b)) ||
      !same_text(policy_temp_marker(a), policy_temp_marker(b)))
    return "markers";
  if (!names_same(policy_companions(a), policy_companions(b))) return "with";
  return rules_differ(a->rules, b->rules);
}

static bool says(const policy *p, const char *key) {
  const json_t *value = json_object_get(p->data, key);
  return value && !json_is_null(value);
}

/* Nobody has taken the rules of a chain that is just being opened. */
static int make_anew(policy *p, const policy_options *o, err *e) {
  rules *old = p->rules;
  int rc = policy_make_rules(o, p->data, &p->rules, e);
  if (rc < 0)
    p->rules = old;
  else
    rules_free(old);
  if (rc < 0) return rc;
  free(p->companions);
  return policy_make_companions(p->data, &p->companions, e);
}

static int take(policy *p, const policy *before, const char *key, const policy_options *o, err *e) {
  const size_t len = strlen(p->stays);
  if (json_object_set(p->data, key, json_object_get(before->data, key)) < 0)
    return err_set(e, ERR_NOMEM, "policy %s: out of memory for %s", p->names, key);
  snprintf(p->stays + len, sizeof p->stays - len, "%s%s", len ? ", " : "", key);
  return make_anew(p, o, e);
}

int policy_take_shape(policy *p, const policy *before, const policy_options *o, err *e) {
  for (const char *key; (key = differ(before, p));) {
    if (says(p, key) || !says(before, key))
      return err_set(
          e, ERR_POLICY,
          "policy %s: \"%s\" is not that of %s: what a checkpoint is, and when it is "
          "complete, cannot change while the run watches. Start the run again with it, or leave "
          "\"%s\" out: it stays as it is",
          p->names, key, before->names, key);
    int rc = take(p, before, key, o, e);
    if (rc < 0) return rc;
  }
  return 0;
}

const char *policy_stays(const policy *p) {
  return p->stays;
}
