/* `policy`: looks at policies before they govern a run. Its own verbs are in runner/policy. */
#include "runner/policy/policy_verbs.h"
#include "verbs.h"

const verb verb_policy = {
    .name = "policy",
    .synopsis = "policy VERB ...",
    .summary = "check a policy before it governs a run; list, show and copy the shipped ones",
    .subs = policy_verbs,
};
