/* prune: does what retention.h plans on one log.
 *
 * Drops come first; then, for commits that were dropped and whose grace period is over, it lists
 * the pins, tests the rules again on the log as it is by then, appends `delete`, and removes the
 * data. It is used by the run that owns the log, on a worker, and by guests. Everything here
 * blocks. */
#ifndef JOB_KEEP_PRUNE_H
#define JOB_KEEP_PRUNE_H

#include <stdatomic.h>

#include "commit/pins.h"
#include "plan/retention.h"

/* A live commit that is not wanted any more. */
typedef struct prune_wish {
  uint64_t commit;
  const char *policy, *reason; /* the policy whose decision it is, and why */
} prune_wish;

/* Told after each step; `what` is RETENTION_DROP or RETENTION_DELETE. `c` is valid in the call. */
typedef void prune_told(void *ctx, const runlog_commit *c, retention_verdict what);

typedef struct prune {
  store *store;
  runlog *log; /* with a term of ours, or a guest's; this one's alone meanwhile */
  const log_sink *sink;
  retention_limits limits; /* now_ns is filled in here */
  uint64_t resumed;        /* as in retention_guard */
  const atomic_int *stop;  /* may be NULL; once set, it stops after the present step */
  bool (*only)(void *ctx, const runlog_commit *c); /* says what may be deleted; NULL: anything */
  bool dry; /* nothing is written; `told` hears what would be deleted, by this machine's clock */
  prune_told *told; /* may be NULL */
  void *ctx;        /* of both callbacks */
} prune;

/* Drops those of `wishes` (in the order of their numbers) that the rules let go. */
int prune_drop(const prune *p, const prune_wish *wishes, size_t count, err *e);

typedef struct prune_rest {
  bool more;       /* more can be deleted right now: call again */
  bool litter;     /* data of a deleted commit could not be removed: settle_litter() later */
  int64_t wait_ns; /* until the next grace period is over; INT64_MAX: nothing waits */
} prune_rest;

/* Deletes at most `most` of the commits that were dropped long enough ago, oldest first, and
 * removes expired pins. Asks the store nothing if nothing was dropped. */
int prune_delete(const prune *p, size_t most, prune_rest *rest, err *e);

#endif
