/* policy_verbs: the table of what a user can type behind `ckpt-lua policy`. Each is a file,
 * verb_policy_NAME.c. */
#ifndef RUNNER_POLICY_POLICY_VERBS_H
#define RUNNER_POLICY_POLICY_VERBS_H

#include "runner/cli/verb.h"

extern const verb verb_policy_check;
extern const verb verb_policy_list;
extern const verb verb_policy_show;
extern const verb verb_policy_copy;
extern const verb verb_policy_simulate;
extern const verb verb_policy_replay;
extern const verb verb_policy_test;
extern const verb verb_policy_diff;
extern const verb verb_policy_reload;

/* They are in the order of the help; NULL ends. */
extern const verb *const policy_verbs[];

#endif
