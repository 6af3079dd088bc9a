/* catalog: what a target holds, for those who only read: listing, finding, restoring, verifying. */
#ifndef CORE_CATALOG_H
#define CORE_CATALOG_H

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "core/manifest.h"
#include "core/runlog.h"
#include "prims/pool.h"
#include "store/store.h"

/* One commit, in the order of the log; valid during the call. Return 0 to go on. */
typedef struct catalog_item {
  const char *group;
  const runlog_commit *commit;
  const char *uri;
  const char *key; /* of its directory in the store */
} catalog_item;
typedef int catalog_fn(void *ctx, store *s, const catalog_item *item, err *e);

/* All commits below a target, group by group. ERR_NOSTORE if there is no such place, ERR_NOENT if
 * it has no log. */
int catalog_each(const io *io, const log_sink *log, const char *where, catalog_fn *fn, void *ctx,
                 err *e);

/* One checkpoint, found and its manifest checked against its commit. */
typedef struct catalog_pick {
  store *store;
  char key[STORE_KEY_MAX]; /* of its directory */
  char uri[URI_MAX];
  manifest manifest;
  bool committed; /* false: only its manifest vouches for it (a copy made by another tool) */
} catalog_pick;

/* Finds what `where` names: a target (its newest commit), a checkpoint in one (<target>/<name>), or
 * a copy of a checkpoint that has its manifest with it. Free it with catalog_drop, on failure too.
 */
int catalog_find(const io *io, const log_sink *log, const char *where, catalog_pick *out, err *e);
void catalog_drop(catalog_pick *pick);

/* Restores `name` (a unit or a directory of one; NULL: the newest of each group) of a target, or
 * what catalog_find finds, into `dir`. `told` (may be NULL) is called for each that is there now.
 */
int catalog_restore(const io *io, const log_sink *log, pool *pool, const char *where,
                    const char *name, const char *dir, catalog_fn *told, void *ctx, err *e);

/* Reads every byte of `name` (NULL: of all commits) and compares. `status` 0 or ERR_CORRUPT with
 * the first finding. Returns how many checkpoints were bad, or a negative ERR_*; a
 * callback that returns more than 0 ends it. */
typedef int catalog_verified(void *ctx, const catalog_item *item, int status, const char *reason,
                             unsigned findings);
int catalog_verify(const io *io, const log_sink *log, pool *pool, const char *where,
                   const char *name, catalog_verified *fn, void *ctx, err *e);

#endif
