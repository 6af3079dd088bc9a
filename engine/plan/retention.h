/* retention: decides which commits of a log may be dropped, and which dropped ones deleted. Pure:
 * the log's state and the policy's word on each commit go in, a list of entries to append comes
 * out.
 *
 * Whatever a policy says, some commits stay; this is tested at the drop and again before the
 * delete, on the log as it is then:
 *
 *   - the newest commit of each kind of name that is not bad;
 *   - the last one that verified, a pinned one, and the one that the run resumed from;
 *   - one that was saved under other flags of the job, until the user says that this is the same;
 *   - one that a list names which was saved with the newest of its kind (its `needs`);
 *   - of a name that is saved again and again ("last.ckpt") the last two;
 *   - anything that is not a live commit of this very log.
 *
 * A pass drops no more than `max_drop` allows: the oldest go then. If nothing of a kind is live any
 * more, the newest that was dropped is not deleted. */
#ifndef PLAN_RETENTION_H
#define PLAN_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"
#include "decision/policy.h"
#include "commit/log/runlog.h"

/* Says whose word it is, and which rules hold therefore. */
typedef enum retention_word {
  RETENTION_POLICY,  /* all rules hold */
  RETENTION_BY_HAND, /* the user names one: it need not be among the last generations of its name,
                        and the share of a pass is no limit */
  RETENTION_ALL,     /* by hand, with the flag for it: the newest may go, too */
} retention_word;

/* The reason by which the core drops an older generation of a name that is written again and again
 * (generations.h). It is how its grace is told from that of others, so it stays as it is. */
#define RETENTION_PASSED "three newer generations of its name are kept, and one of its day"

typedef struct retention_limits {
  double max_drop;  /* share of the live commits that one pass may drop; at least one may go */
  int64_t grace_ns; /* the grace period, from drop to delete */
  bool no_delete;   /* drop only */
  retention_word word;
  int64_t now_ns; /* by the clock of the entries' times (the store's, where it has one) */
} retention_limits;

/* Facts beside the log that keep a commit. */
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
  RETENTION_WAIT,    /* dropped; the grace period is not over (or no_delete) */
  RETENTION_DELETE,  /* append `delete`, then remove manifest and data */
  RETENTION_GONE,    /* deleted */
} retention_verdict;

typedef struct retention_item {
  const runlog_commit *commit;
  retention_verdict verdict;
  char reason[256];
  int64_t wait_ns; /* with RETENTION_WAIT: until the grace period is over */
} retention_item;

/* Returns why a rule of the core keeps this commit (static text), whatever a policy says; NULL:
 * none does. For a live commit it tells whether it may be dropped, for a dropped one whether its
 * data may go. */
const char *retention_guarded(const runlog_state *state, const runlog_commit *c,
                              const retention_guard *guard, retention_word word);

/* Puts the names of the units, sorted, that are named by lists which were saved with the newest good
 * commit of a kind. False: out of memory. */
bool retention_listed(const runlog_state *state, names *out);

/* Returns how long it is from a drop with this reason to the delete, where the grace period is so
 * long. An older generation that the core has dropped has a 24th of it, an hour by default: one of
 * each minute would be a day's worth of them else. Both texts may be NULL. */
int64_t retention_grace(const char *policy, const char *reason, int64_t grace_ns);

/* Returns how many of the live commits one pass may let go. */
size_t retention_allowed(size_t live, const retention_limits *limits);

/* Lists the live commits that are not bad, as a policy is shown them; `out` has room for
 * state->commit_count. Returns how many. */
size_t retention_items(const runlog_state *state, policy_item *out);

/* Spreads a policy's answer about those (NULL: it keeps all) over all commits of the state: `all`
 * has room for state->commit_count. The policy is not asked about bad commits: they go when no good
 * one before them is kept any more, and a good one after them is there. */
void retention_spread(const runlog_state *state, const policy_kept *kept, policy_kept *all);

/* Makes one item for each commit of the state, in its order; `keep[i]` is the policy's word on
 * commits[i] (looked at for live ones only; NULL: it keeps all). Pins and guards that name nothing
 * known are passed over. `out` has room for state->commit_count. */
void retention_plan(const runlog_state *state, const bool *keep, const retention_guard *guard,
                    const retention_limits *limits, retention_item *out);

#endif
