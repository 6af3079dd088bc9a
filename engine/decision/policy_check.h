/* policy_check: looks for what is wrong with a policy before it governs a run: what does not load, functions
 * that fail for some facts, fields that there are none, rules that change nothing, names that fit
 * nothing in a directory, numbers that nothing gives. */
#ifndef DECISION_POLICY_CHECK_H
#define DECISION_POLICY_CHECK_H

#include "decision/policy.h"

typedef enum policy_level {
  POLICY_FAULT, /* it does not load, or would fail in a run */
  POLICY_DOUBT, /* it is probably not what is meant */
  POLICY_HINT   /* something that a run has to bring along */
} policy_level;

/* What was found; the texts are valid during the call. */
typedef struct policy_finding {
  policy_level level;
  const char *topic;     /* one word: "load" "function" "field" "time" "end" "rule" "key" "metric"
                          * "result" "unit" "marker" "limit" "must" */
  unsigned line, column; /* from 1; 0: not known */
  const char *text;
} policy_finding;
/* Returns 0 to go on; any other value ends the check and is returned. */
typedef int policy_finding_fn(void *ctx, const policy_finding *finding);

typedef struct policy_check_options {
  const io *io;
  const log_sink *log;
  policy_link *link;
  const char *policy;          /* a name, or a path */
  const char *const *settings; /* as in policy_options */
  const char *dir;             /* where names are looked up, as in policy_options */
  const char *tree;            /* a directory with checkpoints; NULL: none is looked at */
} policy_check_options;

/* Tells each finding. Returns 0 if none is a fault, ERR_POLICY if one is. A policy that cannot be read,
 * or a tree that is not there, is another error. Takes 10 s at most for the policy, beside one question
 * that runs into its limits, and the same for the tree; a policy that answers, some hundredths of one. */
int policy_check(const policy_check_options *o, policy_finding_fn *fn, void *ctx, err *e);

/* Looks in the same way for faults of a chain that is open: functions that fail, and entries of `must` that
 * `keep` breaks. ERR_POLICY has the first one. Takes 3 s at most, beside one question; what was not tried by
 * then counts as good. */
int policy_check_chain(policy *p, err *e);

#endif
