/* catalog: the checkpoints of a target, for those who only read: listing, finding, restoring,
 * verifying. */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "commit/manifest/manifest.h"
#include "job/move/progress_sink.h"
#include "commit/log/runlog.h"
#include "prims/pool.h"
#include "store/store.h"

/* One commit, in the order of the log; valid during the call. A callback returns 0 to go on; any
 * other value ends the walk and is returned (with *e filled, if it is negative). */
typedef struct catalog_item {
  const char *group;
  const runlog_commit *commit;
  const char *uri;           /* of its directory: catalog_find() finds exactly this one by it */
  const char *key;           /* of its directory in the store */
  const runlog_state *state; /* of its log; NULL: not known */
  uint64_t chosen_files, chosen_bytes; /* of a restore by patterns: what they mean of it; else 0 */
  bool thin;                           /* files of it were taken since newer ones are there */
} catalog_item;
typedef int catalog_fn(void *ctx, store *s, const catalog_item *item, err *e);

/* Each log at or below a place is told: the root's, then its groups'. */
typedef struct catalog_place {
  uri where;
  store *store;
} catalog_place;
typedef int catalog_log_fn(void *ctx, const catalog_place *at, runlog *log, err *e);
int catalog_logs(const io *io, const log_sink *log, const char *where, catalog_log_fn *fn,
                 void *ctx, err *e);

/* Does the same, and goes past logs that cannot be read: `unread` is told each
 * (runlog_groups_all). */
int catalog_logs_all(const io *io, const log_sink *log, const char *where, catalog_log_fn *fn,
                     runlog_unread_fn *unread, void *ctx, err *e);

/* Tells the log at `prefix` below it alone. */
int catalog_log_at(const io *io, const log_sink *log, const char *where, const char *prefix,
                   catalog_log_fn *fn, void *ctx, err *e);

/* A description of one commit. */
typedef struct catalog_told {
  char uri[URI_MAX + STORE_KEY_MAX], key[STORE_KEY_MAX];
  catalog_item item;
} catalog_told;
int catalog_describe(const catalog_place *at, const runlog *log, const runlog_commit *c,
                     catalog_told *out, err *e);

/* True if `name` means this commit: a unit's name or a directory, with or without the group's path
 * before it. */
bool catalog_is_asked(const char *name, const char *group, const runlog_commit *c);
/* Returns the newest live commit of a log that `name` means (NULL: the newest checkpoint, so no file
 * above the checkpoints); NULL: there is none. A
 * commit that is marked bad is returned only if it was named and no other has that name. */
const runlog_commit *catalog_newest(const runlog *log, const char *name);

/* Tells all live commits below a target, group by group. ERR_NOSTORE if there is no such place,
 * ERR_NOENT if it has no log. `where` is a URI or a path everywhere here, and {NAME} in it stands
 * for the environment's. */
int catalog_each(const io *io, const log_sink *log, const char *where, catalog_fn *fn, void *ctx,
                 err *e);

/* One checkpoint that was found, with its manifest, which is checked against its commit. */
typedef struct catalog_pick {
  store *store;
  char key[STORE_KEY_MAX]; /* of its directory */
  char uri[URI_MAX];
  manifest manifest;
  bool committed;  /* false: only its manifest vouches for it (a copy made by another tool) */
  uint64_t number; /* of its commit in the log at the root of the store */
  bool thin; /* files of it are gone (runlog_thinned), as the log says, or a note beside a copy */
  uint64_t attempt;
  runlog_companions companions; /* its companions */
  char dir[RUNLOG_NAME_MAX];
  store *under; /* `store` reads through this one, while it is held */
} catalog_pick;

/* Finds the checkpoint that `where` names: a target (its newest commit that is not bad), the
 * directory of a commit in one (<target>/<dir>; else the newest of the unit of that name), or a
 * copy of such a directory that has its manifest with it. Free it with catalog_drop, on failure
 * too. ERR_NOENT, or ERR_NOSTORE if there is no such place. */
int catalog_find(const io *io, const log_sink *log, const char *where, catalog_pick *out, err *e);
void catalog_drop(catalog_pick *pick);
/* Puts a pin on it, until it is dropped: its data stays while it is read. ERR_CONFLICT: the log
 * says by now that it is not kept. A mere copy needs no pin. */
int catalog_hold(catalog_pick *pick, err *e);

/* Says which checkpoints are to be restored, and where to. */
typedef struct catalog_wish {
  const char *where;
  /* A unit, a directory of one, or either with the group's path before it: the newest commit of
   * each group that is meant. NULL: the newest of any unit that is not bad. */
  const char *name;
  const char *dir; /* made if absent; NULL: nothing is written, `told` hears of the checkpoints */
  bool alone;      /* without companions */
  /* Of each checkpoint the files that one of these means (match_exclude()), and those in directories
   * that one means; without companions and files above; one without such a file is passed
   * over, ERR_NOENT if that is each of them. NULL: all. */
  const char *const *only;
  bool record;   /* what was restored is remembered in the target as verified */
  char *foreign; /* of URI_MAX bytes, "": gets the place, beside ERR_NOENT, if another tool wrote
                    * what is there; may be NULL */
} catalog_wish;

/* Restores each group into its own path below the directory: the checkpoints of the wish, or the
 * one that catalog_find finds; then their companions (companions_restore.h). ERR_EXISTS, and
 * nothing is written of a checkpoint, if a name of it is taken, except companions with the same
 * content. `told` (may be NULL) is called for each that is there now. `progress` may be NULL. */
int catalog_restore(const io *io, const log_sink *log, pool *pool, const progress_sink *progress,
                    const catalog_wish *wish, catalog_fn *told, void *ctx, err *e);

/* ERR_CORRUPT if a place without a log is none because that was lost: one of its first `most` directories
 * has a manifest of ours. One request for each, one after the other. */
int catalog_check_remains(store *s, const char *where, unsigned most, err *e);

/* Reads the logs as a run does that begins. ERR_CORRUPT if one is damaged (runlog_check_damage). */
int catalog_check_logs(const io *io, const log_sink *log, const char *where, err *e);

/* Reads every byte of `name` (as above; NULL: of all commits), or of the checkpoint that
 * catalog_find finds, and compares. `status` is 0 or ERR_CORRUPT with the first of so many
 * findings; `links` are those that lead out of it or nowhere (show_links: the first thousand of
 * `link_count`; NULL: its manifest could not be read). Returns how many checkpoints were bad, or a
 * negative ERR_*; a callback that returns more than 0 ends it. */
typedef int catalog_verified(void *ctx, const catalog_item *item, int status, const char *reason,
                             unsigned findings, const char *links, uint64_t link_count);
int catalog_verify(const io *io, const log_sink *log, pool *pool, const progress_sink *progress,
                   const char *where, const char *name, catalog_verified *fn, void *ctx, err *e);

#endif
