/* restore: brings one committed checkpoint into a local directory, verified, in one step. */
#ifndef JOB_RESTORE_RESTORE_H
#define JOB_RESTORE_RESTORE_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/io.h"
#include "commit/manifest/manifest.h"
#include "job/move/progress_sink.h"
#include "commit/log/runlog.h"
#include "prims/fs.h"
#include "prims/fs_held.h"
#include "prims/lock.h"
#include "prims/pool.h"
#include "store/store.h"

/* A restore's own directory has this name, with a random one behind it. 1.0 had it without. */
#define RESTORE_STAGING ".ckpt-restore"

struct transfer_nearby; /* transfer.h */

typedef struct restore {
  const io *io; /* holds the target directory and the staging (fs_held) */
  store *store;
  pool *pool;          /* may be NULL */
  const char *staging; /* restore_open_staging; on the file system of the target directory */
  atomic_int *cancel;  /* may be NULL */
  const progress_sink *progress;      /* may be NULL */
  struct transfer_nearby *nearby;     /* what is here already of its files; may be NULL */
  int (*may_show)(void *ctx, err *e); /* asked right before a unit appears; NULL: it may */
  void *ctx;
} restore;

/* Reads the manifest that a commit names and holds it against the commit's root digest
 * (ERR_CORRUPT). What is gone of the commit since (runlog_thinned) is not in it any more. `prefix` is
 * the group's. */
int restore_manifest(store *s, const char *prefix, const runlog_commit *c, manifest *out, err *e);

/* Fetches checkpoint directory `key` of the store into the staging, checks every block, and renames
 * it to "<dir>/<unit>". `dir` must exist. ERR_EXISTS, and nothing is touched, if a name is taken.
 * A directory or a file is there whole or not at all, whenever the process dies; the files of a
 * group appear one by one, each whole, and after a failure none of them stays. (A failure to flush
 * `dir` itself leaves a directory in its place, whole.) The staging is clean again when it returns,
 * unless the error text says otherwise. */
int restore_unit(const restore *r, const manifest *m, const char *key, const char *dir, err *e);

/* Puts the checkpoints of `state` that stand in `dir` as directories into the order of the log,
 * since frameworks take the directory that was changed last for the newest: older ones get earlier
 * times where that is not so. */
int restore_order(const io *io, const char *dir, const runlog_state *state, err *e);

/* A restore makes its files here before they are shown: in a directory that nobody else can
 * enter. */
typedef struct restore_staging {
  char path[FS_PATH_MAX]; /* "": none */
  lock lock;              /* held in it while somebody is at work */
} restore_staging;

/* Removes the stagings of restores that died in `dir`. */
int restore_remove_dead(const io *io, const char *dir, err *e);
/* Removes those, then makes "<dir>/.ckpt-restore.<nonce>", holds and locks it. */
int restore_open_staging(fs_held *h, const char *dir, restore_staging *out, err *e);
/* Removes the staging. `rc` and *e are how the restore went; returns that, or why the removal
 * failed. */
int restore_close_staging(fs_held *h, restore_staging *s, int rc, err *e);

#endif
