/* settle: finishes the open attempts of an earlier term, keeps them for a save that goes on with
 * them, or gives them up, before a new term saves anything.
 *
 * A sealed save (its manifest stands in its directory, so all of it does) is committed as it
 * stands, unless a newer one was committed since it was begun: the last commit of a log is its
 * newest, and an older save committed after it would take restores back. Newer is a save that was
 * begun later, and one that was complete later, by the times of its files. An attempt that is not sealed stays
 * open where the store can resume: the next save of that unit goes on with it, from whatever
 * machine. After the new term's first commit nobody here needs those that are left, and they are
 * given up (settle_older). Where the store cannot resume, or does not arbitrate between writers,
 * they are given up at once. */
#ifndef COMMIT_SETTLE_H
#define COMMIT_SETTLE_H

#include "base/err.h"
#include "base/log.h"
#include "commit/log/runlog.h"

/* True if a save may go on with an attempt of an older term: its store can resume, and its puts are
 * safe against the writer that began it, which may only have been paused. */
bool settle_can_go_on(const store *s);
/* True if a save was committed that was begun after that attempt: nobody commits it any more, since
 * the last commit is the newest. */
bool settle_is_overtaken(const runlog_state *state, uint64_t attempt);

/* Settles all open attempts. The log must have a term of ours and no job of ours running. It also
 * removes the files of attempts that were swept before, which may be there still: whoever swept
 * them may have died, or a writer that was pushed aside may have gone on for a while. Files that
 * cannot be removed are logged, no error: the next term tries again. Blocks. */
int settle_attempts(store *s, runlog *log, const log_sink *sink, err *e);

/* Gives an open attempt up: in the log first (until the log says so, its owner is entitled to go
 * on), then removes its files, as above. ERR_CONFLICT, and nothing is removed, if it is
 * committed. */
int settle_give_up(store *s, runlog *log, uint64_t attempt, const log_sink *sink, err *e);

/* Removes the data of a commit that the log says is deleted, and its companions: objects that are
 * provably its own, by removal.h. It is fine if they are gone already; a failure, or a crash,
 * leaves litter. Objects that stay since they are somebody else's are told to `sink`. */
int settle_remove(store *s, runlog *log, const runlog_commit *c, const log_sink *sink, err *e);

/* Takes an open attempt of an older term over, and commits it if it is sealed, as above, or gives
 * it up. ERR_CONFLICT if somebody else did either meanwhile. */
int settle_finish(store *s, runlog *log, uint64_t attempt, const log_sink *sink, err *e);

/* Those of several open attempts that settle_finish() would commit, one after the other. Zero it
 * before the first one, and free it. */
typedef struct settle_ahead {
  manifest *at;
  size_t count, room;
} settle_ahead;

/* Tells, and changes nothing, what settle_finish() would do with an attempt that is whole, behind
 * those of `ahead`: 1: commit it, and it is added there; 0: give it up. *newer is then the unit that
 * is committed and newer, until the log or `ahead` changes; NULL: it is not whole any more. */
int settle_foresee(store *s, const runlog *log, uint64_t attempt, settle_ahead *ahead,
                   const char **newer, err *e);
void settle_ahead_free(settle_ahead *ahead);

/* Does as settle_remove for an attempt that was swept, or whose commit is deleted. ERR_INVAL for
 * any other. */
int settle_clear(store *s, runlog *log, uint64_t attempt, const log_sink *sink, err *e);

/* Removes the litter of swept attempts and deleted commits: up to five listings, whatever the log's
 * length; none if there are no such attempts, nor with store.no_delete. Files that cannot be
 * removed are logged, no error. */
void settle_litter(store *s, runlog *log, const log_sink *sink);

/* Removes stagings (staging.h) that nobody goes on with: of attempts that are over, and of an older
 * term if nothing was written to them for the grace period (INT64_MAX: those stay). Files that
 * cannot be removed are logged, no error. */
void settle_staged(store *s, runlog *log, int64_t grace_ns, const log_sink *sink);

/* Gives up every open attempt of our own term but `keep` (RUNLOG_NONE: all), for jobs that failed,
 * and could not even sweep. */
int settle_own(store *s, runlog *log, uint64_t keep, const log_sink *sink, err *e);

/* Gives up every open attempt of an older term, after a commit of ours. An attempt that cannot be
 * given up is logged, no error; the next commit tries again. */
void settle_older(store *s, runlog *log, const log_sink *sink);

/* Returns 1 if a manifest stands in this directory, so that all of its save does; else 0. */
int settle_is_sealed(store *s, const char *dir_key, err *e);

/* Returns 1 if all of this attempt stands in its directory, or in its staging: its owner may commit
 * it. */
int settle_is_whole(store *s, const runlog *log, const runlog_attempt *a, err *e);

/* Makes a directory durable, before its sealed attempt is committed, that somebody else, or an
 * earlier try, has shown: the one that renamed it may have died, or failed, before it was
 * durable. */
int settle_flush_shown(store *s, const runlog *log, uint64_t attempt, err *e);

/* Returns 1 if the log of a group lies below this key, which then is no directory of a save's any
 * more. */
int settle_has_log(store *s, const char *dir_key, err *e);

#endif
