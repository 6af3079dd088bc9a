/* restore: brings one committed checkpoint into a local directory, verified, in one step. */
#ifndef CORE_RESTORE_H
#define CORE_RESTORE_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/io.h"
#include "core/manifest.h"
#include "core/progress_sink.h"
#include "core/runlog.h"
#include "prims/lock.h"
#include "prims/pool.h"
#include "store/store.h"

/* Where a restore stages inside the target directory when it cannot stage beside it. */
#define RESTORE_STAGING ".ckpt-restore"

typedef struct restore {
  const io *io;
  store *store;
  pool *pool;          /* may be NULL */
  const char *staging; /* an existing directory on the file system of the target directory */
  atomic_int *cancel;  /* may be NULL */
  const progress_sink *progress; /* may be NULL */
} restore;

/* Reads the manifest that a commit names and holds it against the commit's root digest
 * (ERR_CORRUPT). `prefix` is the group's. */
int restore_manifest(store *s, const char *prefix, const runlog_commit *c, manifest *out, err *e);

/* Fetches checkpoint directory `key` of the store into the staging, checks every block, and renames
 * it to "<dir>/<unit>". `dir` must exist. ERR_EXISTS, and nothing is touched, if a name is taken.
 * A directory or a file is there whole or not at all, whenever the process dies; the files of a
 * group appear one by one, each whole, and after a failure none of them stays. (A failure to flush
 * `dir` itself leaves a directory in its place, whole.) The staging is clean again when it returns,
 * unless the error text says otherwise. */
int restore_unit(const restore *r, const manifest *m, const char *key, const char *dir, err *e);

/* Frameworks take the directory that was changed last for the newest. The checkpoints of `state`
 * that stand in `dir` as directories get times that rise in the order of the log: older ones are
 * set back where that is not so. */
int restore_order(const io *io, const char *dir, const runlog_state *state, err *e);

/* Makes "<dir>/.ckpt-restore" (its path into `staging`, room FS_PATH_MAX) and takes the lock in it:
 * one restore into a directory at a time, so what an earlier one left when it died can be removed.
 * ERR_HELD if one is running. The caller removes the directory, then drops the lock. */
int restore_open_staging(const io *io, const char *dir, char *staging, lock *held, err *e);

#endif
