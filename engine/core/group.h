/* group: the checkpoints of one directory of the watched tree, which are a run of their own at
 * <target>/<prefix>: its log, its term, its lease.
 *
 * The handle is used by one thread at a time: by the owner while the run is opened and prepared,
 * then by the group's one running job. */
#ifndef CORE_GROUP_H
#define CORE_GROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "core/lease.h"
#include "core/ranks.h"
#include "core/runlog.h"

/* What all groups of one run share; outlives them. */
typedef struct group_env {
  store *store;
  const log_sink *log;
  const char *run_id; /* of the root group; a group's own has its path appended */
  runlog_writer writer;
  bool continue_run, take_over;
  const lease_wait *wait; /* NULL: nobody is told that a lease is waited for */
  const ranks *ranks;     /* NULL: alone. Ranks but the first follow the term of rank 0 */
} group_env;

typedef struct group {
  const group_env *env;
  char *prefix;   /* "" or "exp/T7": below the target and below the watched directory alike */
  runlog *log;    /* NULL: not read yet */
  uint64_t term;  /* ours; 0: none yet (entry 0 of a log is never a term) */
  bool leased;    /* it was written */
  bool settled;   /* what an earlier term left is dealt with */
  runlog *second; /* a handle of whoever renews: the other one is the job's; NULL: none yet */
  atomic_int renewing;
} group;

/* Touches no store. */
int group_open(const group_env *env, const char *prefix, group *out, err *e);
/* Releases the lease of a term of ours. Blocks. */
void group_release(group *g);
void group_close(group *g); /* the same first; a zeroed one is fine */

/* Reads the log, if that was not done before. Blocks. */
int group_read(group *g, err *e);

/* The same, and whether the log is this run's: ERR_OTHER_RUN. Whether it is held is not asked. */
int group_look(group *g, err *e);

/* Whether this run may write here, asked without writing: ERR_OTHER_RUN, ERR_HELD. */
int group_may_begin(group *g, err *e);

/* Opens the term (asking the same), writes the lease (a failure is one only for the first of
 * several ranks: the others take it for the sign that somebody announces saves), and settles what
 * an earlier term left. Goes on where an earlier call failed; fine if all is done already. Blocks.
 * On a rank but the first it follows the term of rank 0, if that is there: `term` is 0 until then.
 */
int group_begin(group *g, err *e);

/* Renews the lease of term `term`, unless a newer one was opened: ERR_FENCED. So a writer that was
 * paused learns it though it has nothing to save. May run beside a job: it has a handle of its own.
 * Fine, and nothing is done, while another call of it is at work. */
int group_renew(group *g, uint64_t term, err *e);

#endif
