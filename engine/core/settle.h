/* settle: what an earlier term left behind in a log is finished, kept for who goes on with it, or
 * given up, before a new term saves anything.
 *
 * A sealed save (its manifest stands in its directory, so all of it does) is committed as it
 * stands, unless a later save was committed meanwhile: a commit is the newest of its log, and
 * nobody must be taken back by one. What is not sealed stays open where the store can resume: the
 * next save of that unit goes on with it, from whatever machine. What is left of these after the
 * new term's first commit nobody here wants, and it is given up (settle_older). Where the store
 * cannot resume, or does not arbitrate between writers, it is given up at once. */
#ifndef CORE_SETTLE_H
#define CORE_SETTLE_H

#include "base/err.h"
#include "base/log.h"
#include "core/runlog.h"

/* May an attempt of an older term be gone on with? Its store can resume, and its puts are safe
 * against the writer that began it, which may only have been paused. */
bool settle_can_go_on(const store *s);

/* The log must have a term of ours and no job of ours running. Also removes what is still there of
 * attempts that were swept before: whoever swept them may have died, or a writer that was pushed
 * aside may have gone on for a while. Files that cannot be removed are logged, no error: the next
 * term tries again. Blocks. */
int settle_attempts(store *s, runlog *log, const log_sink *sink, err *e);

/* Gives an open attempt up: in the log first (until that says so, its owner is entitled to go on),
 * then removes what it wrote, as above. ERR_CONFLICT, and nothing is removed, if it is committed.
 */
int settle_give_up(store *s, runlog *log, uint64_t attempt, const log_sink *sink, err *e);

/* Removes the data of a commit that the log says is deleted, and what was saved beside it: what is
 * provably its own, by removal.h. Fine if it is gone already; what a failure, or a crash, leaves is
 * litter. What stays since it is somebody else's is told to `sink`. */
int settle_remove(store *s, runlog *log, const runlog_commit *c, const log_sink *sink, err *e);

/* Takes an open attempt of an older term over, and commits it if it is sealed, as above, or gives
 * it up. ERR_CONFLICT if somebody else did either meanwhile. */
int settle_finish(store *s, runlog *log, uint64_t attempt, const log_sink *sink, err *e);

/* The same of an attempt that was swept, or whose commit is deleted. ERR_INVAL for any other. */
int settle_clear(store *s, runlog *log, uint64_t attempt, const log_sink *sink, err *e);

/* Removes what is still there of swept attempts and deleted commits: four listings, whatever the
 * log's length; none if there are no such, nor with store.no_delete. What cannot be removed is
 * logged, no error. */
void settle_litter(store *s, runlog *log, const log_sink *sink);

/* Removes what was staged (staging.h) and nobody goes on with: of attempts that are over, and what
 * an older term left and nothing was written to for the grace (INT64_MAX: that stays). What cannot
 * be removed is logged, no error. */
void settle_staged(store *s, const runlog *log, int64_t grace_ns, const log_sink *sink);

/* Gives up every open attempt of our own term but `keep` (RUNLOG_NONE: all): jobs that failed, and
 * could not even sweep. */
int settle_own(store *s, runlog *log, uint64_t keep, const log_sink *sink, err *e);

/* Gives up every open attempt of an older term: for after a commit of ours. One that cannot be
 * given up is logged, no error; the next commit tries again. */
void settle_older(store *s, runlog *log, const log_sink *sink);

/* 1 if a manifest stands in this directory, so that all of its save does; else 0. */
int settle_is_sealed(store *s, const char *dir_key, err *e);

/* 1 if all of this attempt stands in its directory, or in its staging: its owner may commit it. */
int settle_is_whole(store *s, const runlog *log, const runlog_attempt *a, err *e);

/* Before a sealed attempt is committed that somebody else, or an earlier try, has shown: who
 * renamed its directory may have died, or failed, before that was durable. */
int settle_flush_shown(store *s, const runlog *log, uint64_t attempt, err *e);

/* 1 if the log of a group lies below this key, which then is no directory of a save's any more. */
int settle_has_log(store *s, const char *dir_key, err *e);

/* Reads and checks the manifest of a checkpoint directory ("<prefix>/<dir>"; "": the store's own
 * root). ERR_NOENT if there is none. */
int settle_read_manifest(store *s, const char *dir_key, manifest *out, err *e);

#endif
