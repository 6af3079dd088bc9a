/* collect: removes everything of one log that nobody needs any more, from any machine.
 *
 * Beside a live writer it is a guest: it appends without a term and fences nobody. Where the newest
 * term's writer is gone (its lease was not renewed for its life, and nothing was appended for as
 * long) it opens a term of its own for actions that only an owner may take; a writer that comes
 * back at that moment is not fenced, and the files that it may need stay.
 *
 * It never touches objects that the log does not name, live checkpoints, those that a pin holds,
 * those that the newest term may be at work on, and anything of a log that cannot be read. All ages
 * are by the store's own clock; a dry run, which writes nothing and so cannot have that, takes this
 * machine's. Blocks. */
#ifndef JOB_KEEP_COLLECT_H
#define JOB_KEEP_COLLECT_H

#include "base/err.h"
#include "base/log.h"
#include "commit/log/runlog.h"

/* Something that was removed, or could not be. Valid in the call. */
typedef struct collected {
  const char *what;   /* "attempt", "checkpoint", "litter", "upload", "pin", "temporary", "run";
                       * "commit": a save that was whole became a checkpoint; "left": it stays, for
                       * nobody knows whose it is; "key": it was removed by hand; "files": of a
                       * checkpoint that stays */
  const char *name;   /* its directory, or its key below the log's place */
  const char *reason; /* why it goes; with a status, why it stays */
  uint64_t bytes;     /* 0: not known */
  int status;         /* 0, or ERR_*: it is still there */
} collected;

/* Returns 0 to go on; another value ends the call, which returns it. */
typedef int collect_told(void *ctx, const runlog *log, const collected *what);

typedef struct collect {
  store *store;
  runlog *log; /* read, without a term; this call's alone meanwhile */
  const log_sink *sink;
  int64_t grace_ns; /* the grace period from a drop to the delete, in which a save that was left
                     * also waits for somebody to go on with it */
  bool dry;         /* nothing is written; `told` hears what would be done */
  collect_told *told;
  void *ctx;
} collect;

/* Collects saves that nobody goes on with (a whole one is committed), expired pins, commits that
 * were dropped longer than the grace period ago, the leftovers of all that were given up or
 * deleted, uploads of no open save, temporary files older than a day. A failure is told, and the
 * rest is done all the same; the first such failure is returned. */
int collect_log(const collect *c, err *e);

/* Removes the objects at or below a key of the store, if it lies in the directory of a save of this
 * log that was given up, or of a checkpoint that is deleted: collect_log() names them as left. 1:
 * it is done; 0: the key is not this log's. ERR_HELD: they are still somebody's. */
int collect_key(const collect *c, const char *key, err *e);

/* Checks that the run may be removed whole. ERR_HELD, with the reason: a lease is alive, or a pin
 * holds one of its checkpoints. */
int collect_check_run(const collect *c, err *e);

/* Removes the run: appends `end`, then removes everything but the log. A later run at this place
 * goes on in the same log. Asks collect_check_run() first. */
int collect_run(const collect *c, err *e);

#endif
