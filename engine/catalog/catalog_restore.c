/* catalog_restore: brings what was asked for of a target into a directory. */
#include "catalog_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/companions_stored.h"
#include "commit/verified.h"
#include "job/restore/companions_restore.h"
#include "job/restore/pinned.h"
#include "job/restore/restore.h"
#include "prims/fs.h"
#include "prims/match_series.h"

struct restoring {
  const char *name, *dir;              /* name NULL: the newest */
  bool alone;                          /* without companions */
  const char *const *only;             /* as in the wish */
  uint64_t chosen_files, chosen_bytes; /* what that means of the last one */
  size_t unfit;                        /* of which nothing is meant by that */
  err none;                            /* what was said of the last of these */
  bool record;                         /* as in the wish */
  const log_sink *log;
  const runlog_state *state; /* of the log that it is in; NULL: it is in none */
  restore how;
  char *foreign;
  catalog_fn *told;
  void *ctx;
  size_t found;
};

/* One checkpoint, and where it goes. */
struct wanted {
  const manifest *manifest;
  const char *key, *prefix, *dir;
  uint64_t attempt;
  const runlog_companions *companions;
};

static bool fits_one(const char *const *only, const char *path, bool is_dir) {
  for (; *only; only++)
    if (match_exclude(*only, path, is_dir)) return true;
  return false;
}

/* True if one of the patterns means it, or a directory that it is in. */
static bool fits(const char *const *only, const manifest_entry *entry) {
  char above[FS_PATH_MAX];
  if (fits_one(only, entry->name, entry->type == MANIFEST_DIR)) return true;
  if (snprintf(above, sizeof above, "%s", entry->name) >= (int)sizeof above)
    return false; /* no restore could make it either */
  for (char *end = above; (end = strchr(end, '/')); *end++ = '/') {
    *end = 0;
    if (fits_one(only, above, true)) return true;
  }
  return false;
}

static void mark_above(const manifest *m, const manifest_entry *entry, bool *wanted) {
  char above[FS_PATH_MAX], *slash;
  if (snprintf(above, sizeof above, "%s", entry->name) >= (int)sizeof above) return;
  while ((slash = strrchr(above, '/'))) {
    *slash = 0;
    const manifest_entry *dir = manifest_find(m, above);
    if (dir) wanted[dir - m->entries] = true;
  }
}

/* Marks what fits, and the directories that it is in: nobody may read it who could not read it there.
 * Returns how many files that are. */
static size_t mark(const manifest *m, const char *const *only, bool *wanted) {
  size_t files = 0;
  for (size_t i = 0; i < m->count; i++) {
    if (!fits(only, &m->entries[i])) continue;
    wanted[i] = true;
    files += m->entries[i].type != MANIFEST_DIR;
    mark_above(m, &m->entries[i], wanted);
  }
  return files;
}

/* Makes a manifest of what is wanted of one. It borrows all but its table, which is to be freed, and
 * which it has only where patterns say what is wanted. */
static int part_of(struct restoring *r, const manifest *m, manifest *out, err *e) {
  *out = *m;
  if (!r->only) return 0;
  out->entries = NULL; /* not those of `m`, which are not ours to free */
  bool *wanted = calloc(m->count + 1, sizeof *wanted);
  if (!wanted) return err_set(e, ERR_NOMEM, "no memory for a part of %s", m->unit);
  const size_t files = mark(m, r->only, wanted);
  int rc = manifest_choose(m, wanted, out, e);
  free(wanted);
  if (rc < 0) return rc;
  r->chosen_files = manifest_files(out);
  r->chosen_bytes = manifest_bytes(out);
  if (files > 0) return 0;
  free(out->entries);
  out->entries = NULL;
  r->unfit++;
  return err_set(e, ERR_NOENT, "%s has no file that fits \"%s\"%s (`show` lists its files)",
                 m->unit, *r->only, r->only[1] ? " or the other patterns" : "");
}

/* Restores one. Nothing is written before it is known that everything can be. */
static int restore_wanted(const struct restoring *r, const struct wanted *w, err *e) {
  manifest beside = {0};
  char key[STORE_KEY_MAX];
  companions_target to = {.dir = w->dir, .log = r->log};
  bool has = w->companions->files > 0 && !r->alone && !r->only;
  int rc = 0;
  const companions_units units = {w->manifest, r->state};
  if (has)
    rc = companions_manifest(r->how.store, w->prefix, w->attempt, w->companions, &units, &beside,
                             key, e);
  if (rc == 0 && has) rc = companions_check_free(r->how.io, &beside, w->dir, e);
  if (rc == 0) rc = restore_unit(&r->how, w->manifest, w->key, w->dir, e);
  if (rc == 0 && r->state) rc = restore_order(r->how.io, w->dir, r->state, e);
  if (rc == 0 && has) rc = companions_restore(&r->how, &beside, key, &to, e);
  manifest_free(&beside);
  return rc < 0 ? rc : 0;
}

static void part_free(const struct restoring *r, manifest *part) {
  if (r->only) free(part->entries);
}

static int restore_item(struct restoring *r, const catalog_item *item, err *e) {
  manifest m = {0}, part;
  char dir[FS_PATH_MAX];
  const runlog_commit *c = item->commit;
  int rc = restore_manifest(r->how.store, item->group, c, &m, e);
  if (rc < 0) return rc;
  rc = part_of(r, &m, &part, e); /* nothing is made for one of which nothing is wanted */
  if (rc == 0) rc = fs_join(dir, r->dir, item->group, e);
  if (rc == 0) rc = fs_mkdirs(r->how.io, dir, 0777, e);
  if (rc == 0)
    rc = restore_wanted(
        r, &(struct wanted){&part, item->key, item->group, dir, c->attempt, &c->companions}, e);
  part_free(r, &part);
  manifest_free(&m);
  return rc;
}

/* Restores with a pin, so that nobody deletes the data meanwhile. */
static int restore_pinned(struct restoring *r, const catalog_place *at, const runlog *log,
                          const catalog_item *item, err *e) {
  int rc = pinned_open_read(at->store, log, item->commit, "restore", &r->how.store, e);
  if (rc == 0) rc = restore_item(r, item, e);
  store_close(r->how.store);
  r->how.store = NULL;
  return rc;
}

/* Restores one that a log names, or says what would stop that. */
static int bring(struct restoring *r, const catalog_place *at, const runlog *log,
                 const catalog_item *item, err *e) {
  manifest m = {0}, part = {0};
  if (r->dir) return restore_pinned(r, at, log, item, e);
  if (!r->only) return 0;
  int rc = restore_manifest(at->store, item->group, item->commit, &m, e);
  if (rc == 0) rc = part_of(r, &m, &part, e);
  part_free(r, &part);
  manifest_free(&m);
  return rc;
}

/* A user who may only read cannot note it; that is no fault of the checkpoint. */
static void note_verified(const struct restoring *r, store *s, const char *prefix, uint64_t n) {
  err why = {0};
  if (verified_note(s, prefix, n, &why) < 0)
    log_say(r->log, LOG_WARN, "that entry %llu was restored whole is not remembered: %s",
            (unsigned long long)n, why.text);
}

/* A group of which nothing is meant is passed over, if another one has something. */
static int pass_over(struct restoring *r, const char *group, err *e) {
  if (e) r->none = *e;
  log_say(r->log, LOG_INFO, "%s%s%s", group, *group ? ": " : "", r->none.text);
  return 0;
}

static int tell(const struct restoring *r, store *s, catalog_item *item, err *e) {
  if (!r->told) return 0;
  item->chosen_files = r->chosen_files;
  item->chosen_bytes = r->chosen_bytes;
  return r->told(r->ctx, s, item, e);
}

/* Restores the newest of a group that was asked for; one that is dropped just now is passed
 * over. */
static int restore_group(void *ctx, const catalog_place *at, runlog *log, err *e) {
  enum { TRIES = 3 };
  struct restoring *r = ctx;
  catalog_told t;
  const size_t unfit = r->unfit;
  int rc = ERR_CONFLICT;
  for (int i = 0; rc == ERR_CONFLICT && i < TRIES; i++) {
    rc = i == 0 ? 0 : runlog_refresh(log, e);
    const runlog_commit *c = catalog_newest(log, r->name);
    if (rc < 0 || !c) return rc;
    rc = catalog_describe(at, log, c, &t, e);
    r->state = runlog_view(log);
    if (rc == 0) rc = bring(r, at, log, &t.item, e);
  }
  if (rc == ERR_NOENT && r->unfit > unfit) return pass_over(r, t.item.group, e);
  if (rc == 0 && r->dir && r->record) note_verified(r, at->store, t.item.group, t.item.commit->n);
  r->found++;
  return rc == 0 ? tell(r, at->store, &t.item, e) : rc;
}

static bool is_newest_above(const runlog_state *state, const runlog_commit *c) {
  if (!c->above || c->bad || c->life != RUNLOG_LIVE) return false;
  for (const runlog_commit *k = c + 1; k < state->commits + state->commit_count; k++)
    if (k->above && !k->bad && k->life == RUNLOG_LIVE && match_same_series(k->unit, c->unit))
      return false;
  return true;
}

/* Restores the newest of each kind of file above the checkpoints of other groups, which are there by
 * now. One that is dropped just now has a newer one. */
static int restore_above(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct restoring *r = ctx;
  const runlog_state *state = runlog_view(log);
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < state->commit_count; i++) {
    catalog_told t;
    if (!is_newest_above(state, &state->commits[i])) continue;
    rc = catalog_describe(at, log, &state->commits[i], &t, e);
    r->state = state;
    if (rc == 0) rc = bring(r, at, log, &t.item, e);
    if (rc == 0) r->found++;
    if (rc == 0) rc = tell(r, at->store, &t.item, e);
    if (rc == ERR_CONFLICT) rc = 0;
  }
  return rc;
}

/* Restores a checkpoint that was named itself, or a copy of one. */
static int restore_pick(struct restoring *r, const log_sink *log, const char *where, err *e) {
  catalog_pick pick;
  manifest part = {0};
  runlog_commit c;
  int rc = catalog_find_here(r->how.io, log, where, &pick, r->foreign, e);
  if (rc == 0 && r->dir) rc = catalog_hold(&pick, e);
  r->how.store = pick.store;
  r->state = NULL;
  if (rc == 0) rc = part_of(r, &pick.manifest, &part, e);
  if (rc == 0 && r->dir)
    rc = restore_wanted(
        r, &(struct wanted){&part, pick.key, "", r->dir, pick.attempt, &pick.companions}, e);
  if (rc == 0 && r->dir && r->record && pick.committed)
    note_verified(r, pick.under ? pick.under : pick.store, "", pick.number);
  if (rc == 0) {
    catalog_item item = catalog_item_of(&pick, &c);
    rc = tell(r, pick.store, &item, e);
  }
  part_free(r, &part);
  catalog_drop(&pick);
  return rc;
}

static int restore_all(struct restoring *r, const log_sink *log, const char *where, err *e) {
  int rc = catalog_logs(r->how.io, log, where, restore_group, r, e);
  if (rc == 0 && !r->name && !r->only)
    rc = catalog_logs(r->how.io, log, where, restore_above, r, e);
  if (rc != 0 && !catalog_is_absent(rc)) return rc;
  if (r->found) return rc;
  if (r->unfit) return err_set(e, ERR_NOENT, "%s", r->none.text);
  if (!r->name) return restore_pick(r, log, where, e);
  return rc < 0 ? rc : catalog_nothing_found(where, r->name, e);
}

int catalog_restore(const io *io, const log_sink *log, pool *pool, const progress_sink *progress,
                    const catalog_wish *wish, catalog_fn *told, void *ctx, err *e) {
  const char *dir = wish->dir, *where = wish->where;
  restore_staging staging;
  fs_held *held;
  struct restoring r = {.name = wish->name,
                        .dir = dir,
                        .alone = wish->alone,
                        .record = wish->record && !wish->only,
                        .only = wish->only,
                        .log = log,
                        .foreign = wish->foreign,
                        .how = {.io = io, .pool = pool, .progress = progress},
                        .told = told,
                        .ctx = ctx};
  if (!dir) return restore_all(&r, log, where, e);
  int rc = fs_held_new(io, &held, e);
  if (rc != 0) return rc;
  rc = fs_check_way(io, dir, e);
  if (rc == 0) rc = fs_mkdirs(fs_held_io(held), dir, 0777, e);
  if (rc == 0) rc = fs_hold(held, dir, e);
  if (rc == 0) rc = restore_open_staging(held, dir, &staging, e);
  if (rc == 0) {
    r.how.io = fs_held_io(held);
    r.how.staging = staging.path;
    rc = restore_close_staging(held, &staging, restore_all(&r, log, where, e), e);
  }
  fs_held_free(held);
  return rc;
}
