/* removal: takes away the data of an attempt that was given up, or whose commit is deleted. Only
 * objects that are provably the attempt's own are removed, and only once: no name tells whose the
 * others are.
 *
 * Before anything goes, .ckpt/clearing/<attempt> is put, and then it is asked whether a repair of
 * the log was begun (ERR_FENCED). A repair takes whatever has a `clearing` for let go, so what is
 * being removed is in no repaired log. That goes for all that an attempt has anywhere: what says
 * that it was given up may be lost, and then somebody goes on with it.
 *
 * In a bucket, for a deleted commit: its manifest's text is what is put there; then the keys go that the manifest names, if they have that size, and are no
 * younger than the commit. For any other attempt: the objects that carry its mark.
 *
 * Where directories are renamed: the directory whose manifest says that it is the attempt's goes,
 * by one rename to .ckpt/staging/gone.<attempt>; the manifest is read again there (another
 * attempt's is renamed back). Files that the manifest does not name are put back where they were.
 * Whoever finds a gone.<attempt> goes on with it, and renames nothing.
 *
 * Then .ckpt/cleared/<attempt> is put, and from there on nobody removes anything in that directory.
 * If a removal dies on the way, the next one goes on from there. */
#ifndef COMMIT_REMOVAL_H
#define COMMIT_REMOVAL_H

#include "base/err.h"
#include "base/log.h"
#include "commit/log/runlog.h"

/* Counts what a removal found in the attempt's directory. */
typedef struct removal_found {
  uint64_t objects, bytes;   /* the attempt's own: they went, or with `dry` would go */
  uint64_t others;           /* objects of others: they stay */
  uint64_t other_bytes;      /* of them */
  char other[STORE_KEY_MAX]; /* the first of them */
  bool cleared;              /* it was cleared before: the attempt's own objects were not looked
                              * for */
} removal_found;

/* Removes the data. The attempt must be swept, or its commit deleted: else ERR_INVAL. Objects that
 * stay are told to `sink`. `dry`: nothing is written. `found` may be NULL; if it is not, objects
 * that stand there after a clearing are counted too, and uploads that show no object yet are left
 * to the caller. ERR_CONFLICT: a group with a log of its own lies there, or somebody else removes
 * at the same time. Blocks. */
int removal_clear(store *s, runlog *log, uint64_t attempt, bool dry, const log_sink *sink,
                  removal_found *found, err *e);

/* Says that the removal of an attempt's files begins, where directories are renamed, and asks then
 * whether a repair of the log was begun (ERR_FENCED), as removal_clear() does. Who takes away
 * anything of an attempt that is not in its directory calls it before. ERR_INVAL as above. */
int removal_announce(store *s, runlog *log, uint64_t attempt, err *e);

/* Takes back what removal_announce() said, where the user lets nothing be deleted, after what was
 * staged has gone. As long as the attempt's own directory stands, its removal is not over, and what
 * was said stays: the next one that may remove it goes on from there. */
int removal_withdraw(store *s, runlog *log, uint64_t attempt, err *e);

/* Tells whether an upload in parts below the attempt's directory, of which nothing shows yet, is
 * the attempt's. It has no mark, so its time has to tell: 1 if it was begun between the attempt's
 * entry and the commit's, or the clearing of an attempt that was given up; else, or where that is
 * not known, 0. */
int removal_owns_upload(store *s, runlog *log, const runlog_attempt *a, int64_t begun_ns, err *e);

/* Makes .ckpt/cleared/<id>, .ckpt/clearing/<id> or .ckpt/staging/gone.<id>; `id` as of
 * runlog_attempt_id(). */
int removal_key(const runlog *log, const char *what, const char *id, char out[STORE_KEY_MAX],
                err *e);
#define REMOVAL_CLEARED ".ckpt/cleared/"
#define REMOVAL_CLEARING ".ckpt/clearing/"
#define REMOVAL_GONE ".ckpt/staging/gone."

#endif
