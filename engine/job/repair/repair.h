/* repair: makes a new log of what is left of one that has lost entries (commit/log/runlog_epoch.h).
 *
 *   (a) It refuses while a lease is renewed, or a program that does not ask for later epochs wrote
 *       the newest term, unless the user says that nobody is at work (`take_over`).
 *   (b) It takes the next epoch.
 *   (c) Only then it reads all that is left: the entries, the manifests, the part records, what was
 *       saved beside checkpoints, pins and removals that were begun. Where a name that another
 *       machine made may not show for a while, it waits for that long first.
 *   (d) It closes the old log. If something stands where it would put the end, (c) begins again.
 *   (e) It puts the first entry of the new log, adopts the whole saves that are newer than the last
 *       commit, and commits them.
 *
 * Nothing is removed, and what cannot be proven is told and left. Whoever dies on the way leaves an
 * epoch that does not count: readers go on in the one before, writers are refused, and the next
 * repair takes the next number. */
#ifndef JOB_REPAIR_REPAIR_H
#define JOB_REPAIR_REPAIR_H

#include "base/err.h"
#include "base/log.h"
#include "store/store.h"

/* Something that was found or done. Valid in the call. */
typedef struct repaired {
  const char *what; /* "log": its summary; "commit": a whole save that is a checkpoint again, or
                       * still; "bad": a checkpoint that is not whole, marked so; "left": it stays,
                       * and nothing proves what it is */
  const char *name; /* a directory; of a log "" */
  const char *reason;
  uint64_t lost, torn, epoch; /* of a log: entries; the epoch in which it goes on, 0: it is whole */
  bool done;                  /* false: a dry run, or there was nothing to do */
} repaired;

/* Returns 0 to go on; another value ends the call, which returns it. */
typedef int repair_told(void *ctx, const char *prefix, const repaired *what);

typedef struct repair {
  store *store;
  const char *prefix; /* of the log: "" or a group */
  const log_sink *sink;
  bool dry; /* nothing is written; `told` hears what would be done */
  bool take_over;
  repair_told *told;
  void *ctx;
} repair;

/* Repairs one log, if anything of it is missing. ERR_HELD: somebody is at work, or may be;
 * ERR_NOENT: there is no log, and nothing of one; ERR_FENCED: another repair began later, and goes
 * on. Blocks. */
int repair_log(const repair *how, err *e);

/* Does so for each log at or below a place. The first failure is returned, the others are done all
 * the same. */
typedef struct repair_wish {
  const io *io;
  const log_sink *sink;
  const char *where;
  bool dry, take_over;
  repair_told *told;
  void *ctx;
} repair_wish;
int repair_target(const repair_wish *wish, err *e);

#endif
