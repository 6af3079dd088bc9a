/* retention: which commits of a log may be dropped, and which dropped ones deleted. Pure: the log's
 * state and a list of what the policy keeps in, a list of entries to make out.
 *
 * Whatever a policy says, these stay, tested at the drop and again before the delete, on the log as
 * it is then: the newest commit of each kind of name that is not bad; the last one that verified; a
 * pinned one; the one that the run resumed from; anything that is not a live commit of this very
 * log; and all, if a pass would drop more than `max_drop` allows (then the oldest of them go, up to
 * that). Of a name that is saved again and again ("last.ckpt") the last two stay. Of a kind of
 * which nothing is live any more, the newest that was dropped is not deleted. */
#ifndef CORE_RETENTION_H
#define CORE_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/policy.h"
#include "core/runlog.h"

/* Who says what goes. */
typedef enum retention_word {
  RETENTION_POLICY,  /* all rules hold */
  RETENTION_BY_HAND, /* the user names one: it need not be among the last generations of its name,
                        and the share of a pass is no limit */
  RETENTION_ALL,     /* by hand, with the flag for it: the newest may go, too */
} retention_word;

typedef struct retention_limits {
  double max_drop;  /* share of the live commits that one pass may drop; at least one may go */
  int64_t grace_ns; /* from drop to delete */
  bool no_delete;   /* drop only */
  retention_word word;
  int64_t now_ns; /* by the clock of the entries' times (the store's, where it has one) */
} retention_limits;

/* What is known beside the log. */
typedef struct retention_guard {
  const uint64_t *pinned; /* numbers of commits with a pin that has not expired */
  size_t pinned_count;
  uint64_t resumed, verified; /* numbers of commits; RUNLOG_NONE: none */
} retention_guard;

typedef enum retention_verdict {
  RETENTION_KEEP,    /* the policy wants it */
  RETENTION_GUARDED, /* the policy does not; a rule of the core does (reason) */
  RETENTION_LIMITED, /* it would go, but for the limit of one pass */
  RETENTION_DROP,    /* append `drop` */
  RETENTION_WAIT,    /* dropped; the grace is not over (or no_delete) */
  RETENTION_DELETE,  /* append `delete`, then remove manifest and data */
  RETENTION_GONE,    /* deleted */
} retention_verdict;

typedef struct retention_item {
  const runlog_commit *commit;
  retention_verdict verdict;
  char reason[256];
  int64_t wait_ns; /* with RETENTION_WAIT: until the grace is over */
} retention_item;

/* Why a rule of the core keeps this commit (static text), whatever a policy says; NULL: none does.
 * Asked of a live one: may it be dropped? Of a dropped one: may its data go? */
const char *retention_guarded(const runlog_state *state, const runlog_commit *c,
                              const retention_guard *guard, retention_word word);

/* The live commits that are not bad, as a policy is shown them; `out` has room for
 * state->commit_count. How many. */
size_t retention_items(const runlog_state *state, policy_item *out);

/* What a policy said of those (NULL: it keeps all), as a word on each commit of the state: `all`
 * has room for state->commit_count. Of bad ones, which it is not asked about: they go when none of
 * the good ones before them is kept any more, and one after them is there. */
void retention_spread(const runlog_state *state, const policy_kept *kept, policy_kept *all);

/* One item for each commit of the state, in its order; `keep[i]` is the policy's word on commits[i]
 * (looked at for live ones only; NULL: it keeps all). Pins and guards that name nothing known are
 * passed over. `out` has room for state->commit_count. */
void retention_plan(const runlog_state *state, const bool *keep, const retention_guard *guard,
                    const retention_limits *limits, retention_item *out);

#endif
