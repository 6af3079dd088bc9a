/* removal: takes away the data of an attempt that was given up, or whose commit is deleted. Only
 * what is provably its own goes, and once: who else's something is, no name tells.
 *
 * In a bucket, of a deleted commit: its manifest's text is put at .ckpt/clearing/<attempt> before
 * the manifest goes; then go the keys that it names, with that size, and no younger than the
 * commit. Of any other attempt: the objects that carry its mark.
 *
 * Where directories are renamed: the directory whose manifest says that it is the attempt's, by one
 * rename to .ckpt/staging/gone.<attempt>; the manifest is read again there (another's is renamed
 * back). What the manifest does not name is put back where it was. Who finds a gone.<attempt> goes
 * on with it, and renames nothing.
 *
 * Then .ckpt/cleared/<attempt> is put, and from there on nobody removes anything in that directory.
 * Whoever dies on the way leaves what the next one goes on with. */
#ifndef CORE_REMOVAL_H
#define CORE_REMOVAL_H

#include "base/err.h"
#include "base/log.h"
#include "core/runlog.h"

/* What was found in the attempt's directory. */
typedef struct removal_found {
  uint64_t objects, bytes;   /* its own: they went, or with `dry` would go */
  uint64_t others;           /* not its own: they stay */
  uint64_t other_bytes;      /* of them */
  char other[STORE_KEY_MAX]; /* the first of them */
  bool cleared;              /* it was cleared before: nothing was looked for but what stays */
} removal_found;

/* The attempt must be swept, or its commit deleted: else ERR_INVAL. What stays is told to `sink`.
 * `dry`: nothing is written. `found` may be NULL; if it is not, what stands there after a clearing
 * is counted too, and uploads that show no object yet are left to the caller. ERR_CONFLICT: a group
 * with a log of its own lies there, or somebody else removes at the same time. Blocks. */
int removal_clear(store *s, runlog *log, uint64_t attempt, bool dry, const log_sink *sink,
                  removal_found *found, err *e);

/* Is an upload in parts below the attempt's directory, of which nothing shows yet, the attempt's?
 * It has no mark, so its time has to tell: 1 if it was begun between the attempt's entry and the
 * commit's, or the clearing of what was given up; else, or where that is not known, 0. */
int removal_owns_upload(store *s, runlog *log, const runlog_attempt *a, int64_t begun_ns, err *e);

/* .ckpt/cleared/<id>, .ckpt/clearing/<id>, .ckpt/staging/gone.<id>; `id` as of
 * runlog_attempt_id(). */
int removal_key(const runlog *log, const char *what, const char *id, char out[STORE_KEY_MAX],
                err *e);
#define REMOVAL_CLEARED ".ckpt/cleared/"
#define REMOVAL_CLEARING ".ckpt/clearing/"
#define REMOVAL_GONE ".ckpt/staging/gone."

#endif
