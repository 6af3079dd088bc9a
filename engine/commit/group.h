/* group: the checkpoints of one directory of the watched tree, which are a run of their own at
 * <target>/<prefix>: its log, its term, its lease.
 *
 * The handle is used by one thread at a time: by the owner while the run is opened and prepared,
 * then by the group's one running job. */
#ifndef COMMIT_GROUP_H
#define COMMIT_GROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "commit/lease.h"
#include "commit/ranks.h"
#include "commit/log/runlog.h"

typedef struct group group;

/* The groups of one run share this, and it outlives them. */
typedef struct group_env {
  store *store;
  const log_sink *log;
  const char *run_id; /* of the root group; the others append their paths */
  const char *former; /* the run's id as 1.0 made it; NULL or "": none */
  runlog_writer writer;
  bool continue_run, take_over;
  const lease_wait *wait; /* NULL: nobody is told that a lease is waited for */
  /* Asked instead of group_may_begin() before the first term on a log is opened; NULL: nobody is. */
  int (*admit)(void *ctx, group *g, err *e);
  void *admit_ctx;
  const ranks *ranks; /* NULL: alone. Ranks but the first follow the term of rank 0 */
} group_env;

struct group {
  const group_env *env;
  char *prefix;      /* "" or "exp/T7": below the target and below the watched directory alike */
  runlog *log;       /* NULL: not read yet */
  uint64_t term;     /* ours; 0: none yet (entry 0 of a log is never a term) */
  uint64_t unspoken; /* of its jobs, as in job.h */
  bool leased;       /* the lease was written */
  bool turned_away;  /* `admit` does not let this run write here */
  bool settled;      /* everything that an earlier term left is dealt with */
  runlog *second; /* the handle that group_renew() uses, as the other one is the job's; NULL: none
                   * yet */
  atomic_int renewing;
  runlog *third; /* that of group_check(); NULL: none yet */
};

/* Sets up the handle; touches no store. */
int group_open(const group_env *env, const char *prefix, group *out, err *e);
/* Releases the lease of a term of ours. Blocks. */
void group_release(group *g);
void group_close(group *g); /* releases first; a zeroed one is fine */

/* Reads the log, if that was not done before. Blocks. */
int group_read(group *g, err *e);

/* Does the same, and checks that the log is this run's: ERR_OTHER_RUN. It does not ask whether the
 * log is held. */
int group_look(group *g, err *e);

/* Asks without writing whether this run may write here: ERR_OTHER_RUN, ERR_HELD. */
int group_may_begin(group *g, err *e);

/* Opens the term (asking the same), writes the lease, and settles what an earlier term left. If the
 * lease cannot be written, that is an error only for the first of several ranks: the others take
 * the lease for the sign that somebody announces saves. A later call goes on where an earlier one
 * failed, and does nothing if all is done. Blocks. On a rank but the first it follows the term of
 * rank 0, if that is there: `term` is 0 until then. */
int group_begin(group *g, err *e);

/* Renews the lease of term `term`, unless a newer one was opened: ERR_FENCED. So a writer that was
 * paused learns of it even if it has nothing to save. It may run beside a job, since it has a
 * handle of its own; it does nothing while another call of it is at work. */
int group_renew(group *g, uint64_t term, err *e);

/* Reads whether `term` is still the newest: 0, ERR_FENCED, or why it cannot be read. It has a handle
 * of its own, too, and is called by one thread at a time. */
int group_check(group *g, uint64_t term, err *e);

#endif
