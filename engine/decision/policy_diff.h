/* policy_diff: looks for the shortest list of checkpoints of which two policies keep different ones. */
#ifndef DECISION_POLICY_DIFF_H
#define DECISION_POLICY_DIFF_H

#include "decision/policy.h"

typedef enum policy_verdict {
  POLICY_DIFFERENT = 1,
  POLICY_EQUAL, /* on all lists that were searched, which are all that their rules can tell apart */
  POLICY_NONE_FOUND /* a function decides, or the search was not whole */
} policy_verdict;

/* What was found out of one key; the texts are valid during the call. */
typedef struct policy_difference {
  const char *key;  /* "keep", "keep_local", "restore" */
  const char *name; /* a checkpoint of the list, the oldest first; NULL: the word on the key */
  const char *facts;
  bool a, b; /* does the first policy keep it, does the second one? */
  const char *why_a, *why_b;
  policy_verdict verdict; /* of the key, as all below */
  const char *why;        /* of POLICY_NONE_FOUND */
  uint64_t checkpoints, lists;
  const char *const *searched, *const *held; /* texts, ended by NULL */
} policy_difference;
/* Returns 0 to go on; any other value ends the search and is returned. */
typedef int policy_difference_fn(void *ctx, const policy_difference *d);

typedef struct policy_diff_options {
  const io *io;
  policy_link *link;
  const char *a, *b;           /* names, or paths */
  const char *const *settings; /* as in policy_options, for both */
  const char *dir;             /* where names are looked up, as in policy_options */
} policy_diff_options;

/* Tells of each key that decides what stays, and that either policy has, a shortest list on which they
 * differ, and the word on it. Takes some seconds; a minute at most, beside one question that runs into its limits.
 * ERR_POLICY: one does not load, or a function of it fails on a list. */
int policy_diff(const policy_diff_options *o, policy_difference_fn *fn, void *ctx, err *e);

#endif
