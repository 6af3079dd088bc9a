#include "policy_verbs.h"

/* One a line: two who add one do not meet. */
/* clang-format off */
const verb *const policy_verbs[] = {
  &verb_policy_check,
  &verb_policy_list,
  &verb_policy_show,
  &verb_policy_copy,
  &verb_policy_simulate,
  &verb_policy_replay,
  &verb_policy_test,
  &verb_policy_diff,
  &verb_policy_reload,
  NULL,
};
/* clang-format on */
