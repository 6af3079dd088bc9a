#include "catalog_impl.h"

#include <stdio.h>
#include <string.h>

#include "job/restore/companions_restore.h"
#include "commit/companions_stored.h"
#include "job/restore/pinned.h"
#include "job/restore/restore.h"
#include "commit/manifest_read.h"
#include "commit/verified.h"
#include "job/move/transfer.h"
#include "prims/fs.h"
#include "prims/match_series.h"

/* ---- places ---- */

static int parse_place(const char *where, uri *out, err *e) {
  buf text;
  buf_init(&text, URI_MAX);
  int rc = uri_expand(where, &text, e);
  if (rc == 0) rc = uri_parse(text.data ? text.data : "", out, e);
  buf_free(&text);
  return rc;
}

/* Makes the URI of a directory of the place, or with "" of the place itself. */
static int print_place(const uri *u, const char *key, char *out, size_t room, err *e) {
  buf text;
  buf_init(&text, URI_MAX + URI_QUERY_MAX + STORE_KEY_MAX);
  uri_print_below(u, key, &text);
  size_t len = buf_failed(&text) ? room : text.len;
  if (len < room) memcpy(out, text.data, len + 1);
  buf_free(&text);
  if (len < room) return 0;
  return err_set(e, ERR_LIMIT, "the URI of %.200s/%.200s is too long", u->path, key);
}

/* ---- walking ---- */

struct walk {
  catalog_place at;
  catalog_log_fn *fn;
  runlog_unread_fn *unread;
  void *ctx;
  size_t logs;
};

static int on_unread(void *ctx, const char *prefix, int status, const char *why) {
  struct walk *w = ctx;
  w->logs++;
  return w->unread(w->ctx, prefix, status, why);
}

static int on_group(void *ctx, runlog *log, err *e) {
  struct walk *w = ctx;
  w->logs++;
  return w->fn(w->ctx, &w->at, log, e);
}

static int walk_logs(struct walk *w, const io *io, const log_sink *log, const char *where, err *e) {
  err why = {0};
  int rc = parse_place(where, &w->at.where, e);
  if (rc == 0) rc = store_open(&w->at.where, io, log, &w->at.store, e);
  if (rc == 0) rc = w->at.store->ops->exists(w->at.store, e);
  if (rc == 0) {
    rc = runlog_groups_all(w->at.store, "", on_group, w->unread ? on_unread : NULL, w, &why);
    if (rc == 0 && w->logs == 0)
      rc = err_set(e, ERR_NOENT, "%s holds no run: nothing was ever committed there", where);
    else if (rc == ERR_NOENT && w->logs == 0)
      rc = err_set(e, rc, "%s: %s", where, why.text);
    else if (rc != 0 && e)
      *e = why;
  }
  store_close(w->at.store);
  return rc;
}

int catalog_logs(const io *io, const log_sink *log, const char *where, catalog_log_fn *fn,
                 void *ctx, err *e) {
  struct walk w = {.fn = fn, .ctx = ctx};
  return walk_logs(&w, io, log, where, e);
}

int catalog_logs_all(const io *io, const log_sink *log, const char *where, catalog_log_fn *fn,
                     runlog_unread_fn *unread, void *ctx, err *e) {
  struct walk w = {.fn = fn, .unread = unread, .ctx = ctx};
  return walk_logs(&w, io, log, where, e);
}

int catalog_log_at(const io *io, const log_sink *log, const char *where, const char *prefix,
                   catalog_log_fn *fn, void *ctx, err *e) {
  struct walk w = {.fn = fn, .ctx = ctx};
  runlog *opened = NULL;
  int rc = parse_place(where, &w.at.where, e);
  if (rc == 0) rc = store_open(&w.at.where, io, log, &w.at.store, e);
  if (rc == 0) rc = runlog_open(w.at.store, prefix, &opened, e);
  if (rc == 0) rc = on_group(&w, opened, e);
  runlog_close(opened);
  store_close(w.at.store);
  return rc;
}

int catalog_describe(const catalog_place *at, const runlog *log, const runlog_commit *c,
                     catalog_told *out, err *e) {
  int rc = runlog_key_dir(log, c->dir, out->key, e);
  if (rc == 0) rc = print_place(&at->where, out->key, out->uri, sizeof out->uri, e);
  out->item = (catalog_item){runlog_prefix(log), c, out->uri, out->key, runlog_view(log)};
  return rc;
}

bool catalog_is_asked(const char *name, const char *group, const runlog_commit *c) {
  if (!name) return true;
  size_t len = strlen(group);
  if (len && strncmp(name, group, len) == 0 && name[len] == '/') name += len + 1;
  return strcmp(name, c->unit) == 0 || strcmp(name, c->dir) == 0;
}

const runlog_commit *catalog_newest(const runlog *log, const char *name) {
  const runlog_state *state = runlog_view(log);
  const runlog_commit *bad = NULL;
  for (size_t i = state->commit_count; i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c->life != RUNLOG_LIVE || !catalog_is_asked(name, runlog_prefix(log), c)) continue;
    if (c->above && !name) continue; /* it is no checkpoint */
    if (!c->bad) return c;
    if (name && !bad) bad = c;
  }
  return bad;
}

struct each {
  catalog_fn *fn;
  void *ctx;
};

static int each_commit(void *ctx, const catalog_place *at, runlog *log, err *e) {
  const struct each *each = ctx;
  const runlog_state *state = runlog_view(log);
  catalog_told t;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < state->commit_count; i++) {
    if (state->commits[i].life != RUNLOG_LIVE) continue;
    rc = catalog_describe(at, log, &state->commits[i], &t, e);
    if (rc == 0) rc = each->fn(each->ctx, at->store, &t.item, e);
  }
  return rc;
}

int catalog_each(const io *io, const log_sink *log, const char *where, catalog_fn *fn, void *ctx,
                 err *e) {
  struct each each = {fn, ctx};
  return catalog_logs(io, log, where, each_commit, &each, e);
}

/* ---- finding one ---- */

/* Fails if there are checkpoints, and each was marked bad. */
static int check_only_bad(const runlog_state *state, err *e) {
  const runlog_commit *last = NULL;
  size_t count = 0;
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (c->life != RUNLOG_LIVE || !c->bad) continue;
    last = c;
    count++;
  }
  if (!last) return 0;
  return err_set(e, ERR_NOENT,
                 "no checkpoint is good: %zu, the newest of them %s, %s marked bad%s%s (`mark` "
                 "good takes that back; by its name one is taken all the same)",
                 count, last->dir, count == 1 ? "is" : "are", last->bad_reason ? ": " : "",
                 last->bad_reason ? last->bad_reason : "");
}

/* Looks into the root log of a store for its commit of that directory or unit (NULL: its newest).
 * Returns 1 if there is one, else 0 and whether there is a log at all. */
static int pick_from_log(catalog_pick *p, const uri *where, const char *name, bool *is_target,
                         err *e) {
  runlog *log;
  int rc = runlog_open(p->store, "", &log, e);
  if (rc < 0) return rc;
  const runlog_state *state = runlog_view(log);
  *is_target = state->next > 0;
  const runlog_commit *c = name ? runlog_find_dir(state, name) : NULL;
  const runlog_commit *gone = c;
  if (!c || c->life != RUNLOG_LIVE) c = catalog_newest(log, name);
  if (!c && gone)
    rc = err_set(e, ERR_NOENT, "%s is no longer kept: %s (`list` shows what is)", gone->dir,
                 gone->drop_reason ? gone->drop_reason : "it was dropped");
  else if (!c && !name)
    rc = check_only_bad(state, e);
  if (c) {
    p->number = c->n;
    p->attempt = c->attempt;
    p->companions = c->companions;
    snprintf(p->dir, sizeof p->dir, "%s", c->dir);
    rc = restore_manifest(p->store, "", c, &p->manifest, e);
    if (rc == 0) rc = runlog_key_dir(log, c->dir, p->key, e);
    if (rc == 0) rc = print_place(where, p->key, p->uri, sizeof p->uri, e);
    p->committed = true;
    if (rc == 0) rc = 1;
  }
  runlog_close(log);
  return rc;
}

/* Tries it as <target>/<name>: the log says more than a manifest can. */
static int pick_in_parent(catalog_pick *p, const io *io, const log_sink *log, const uri *where,
                          bool *is_target, err *e) {
  uri parent = *where;
  char *slash = strrchr(parent.path, '/');
  const char *name = slash ? slash + 1 : parent.path;
  if (!*name) return 0;
  catalog_pick found = {0};
  char base[URI_MAX];
  memcpy(base, name, strlen(name) + 1);
  parent.path[slash == parent.path ? 1 : slash ? slash - parent.path : 0] = 0;
  int rc = store_open(&parent, io, log, &found.store, e);
  if (rc == 0) rc = found.store->ops->exists(found.store, e);
  if (rc == ERR_NOSTORE)
    rc = 0;
  else if (rc == 0)
    rc = pick_from_log(&found, &parent, base, is_target, e);
  if (rc != 1) {
    catalog_drop(&found);
    return rc;
  }
  store_close(p->store);
  *p = found;
  return 1;
}

/* Tries a directory that has its manifest in it, wherever it was copied to. */
static int pick_copy(catalog_pick *p, const uri *where, err *e) {
  err why = {0};
  int rc = manifest_read(p->store, "", &p->manifest, &why);
  if (rc == ERR_NOENT) return 0;
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  rc = print_place(where, "", p->uri, sizeof p->uri, e);
  return rc < 0 ? rc : 1;
}

/* `foreign` (of URI_MAX bytes, may be NULL) gets the place if all of it is another tool's. */
static int find(const io *io, const log_sink *log, const char *where, catalog_pick *out,
                char *foreign, err *e) {
  uri u;
  err absent = {0};
  bool is_target = false, in_target = false;
  *out = (catalog_pick){0};
  int rc = parse_place(where, &u, e);
  if (rc == 0) rc = store_open(&u, io, log, &out->store, e);
  if (rc != 0) return rc;
  int there = out->store->ops->exists(out->store, &absent);
  if (there < 0 && there != ERR_NOSTORE) return err_set(e, there, "%s", absent.text);
  if (there == 0) rc = pick_from_log(out, &u, NULL, &is_target, e);
  if (rc == 0) rc = pick_in_parent(out, io, log, &u, &in_target, e);
  if (rc == 0 && there == 0) rc = pick_copy(out, &u, e);
  if (rc != 0) return rc < 0 ? rc : 0;
  if (is_target) return err_set(e, ERR_NOENT, "%s has no checkpoint yet", where);
  if (there < 0 && !in_target) return err_set(e, there, "%s", absent.text);
  if (foreign && there == 0 && !in_target && (rc = print_place(&u, "", foreign, URI_MAX, e)) < 0)
    return rc;
  return err_set(e, ERR_NOENT,
                 "%s is neither a target with a commit, nor a checkpoint in one, nor a copy with "
                 "its manifest",
                 where);
}

int catalog_find(const io *io, const log_sink *log, const char *where, catalog_pick *out, err *e) {
  return find(io, log, where, out, NULL, e);
}

int catalog_hold(catalog_pick *pick, err *e) {
  store *held;
  if (!pick->committed || pick->under) return 0;
  int rc = pinned_open(pick->store, "", pick->dir, pick->number, "restore", &held, e);
  if (rc < 0) return rc;
  pick->under = pick->store;
  pick->store = held;
  return 0;
}

void catalog_drop(catalog_pick *pick) {
  manifest_free(&pick->manifest);
  store_close(pick->store);
  store_close(pick->under);
  *pick = (catalog_pick){0};
}

/* Makes the item of a checkpoint that was found by itself. `c` is the caller's, for the item to
 * point into. */
catalog_item catalog_item_of(const catalog_pick *pick, runlog_commit *c) {
  *c = (runlog_commit){.unit = pick->manifest.unit,
                       .dir = pick->manifest.unit,
                       .kind = pick->manifest.kind,
                       .step = pick->manifest.step,
                       .files = manifest_files(&pick->manifest),
                       .bytes = manifest_bytes(&pick->manifest),
                       .root = pick->manifest.root,
                       .metrics = pick->manifest.metrics,
                       .policy = pick->manifest.policy,
                       .time_ns = pick->manifest.created_ns};
  return (catalog_item){.group = "", .commit = c, .uri = pick->uri, .key = pick->key};
}

/* ---- restoring ---- */

struct restoring {
  const char *name, *dir; /* name NULL: the newest */
  bool alone;             /* without companions */
  bool record;            /* as in the wish */
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

/* Restores one. Nothing is written before it is known that everything can be. */
static int restore_wanted(const struct restoring *r, const struct wanted *w, err *e) {
  manifest beside = {0};
  char key[STORE_KEY_MAX];
  companions_target to = {.dir = w->dir, .log = r->log};
  bool has = w->companions->files > 0 && !r->alone;
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

static int restore_item(struct restoring *r, const catalog_item *item, err *e) {
  manifest m = {0};
  char dir[FS_PATH_MAX];
  const runlog_commit *c = item->commit;
  int rc = restore_manifest(r->how.store, item->group, c, &m, e);
  if (rc < 0) return rc;
  rc = fs_join(dir, r->dir, item->group, e);
  if (rc == 0) rc = fs_mkdirs(r->how.io, dir, 0777, e);
  if (rc == 0)
    rc = restore_wanted(
        r, &(struct wanted){&m, item->key, item->group, dir, c->attempt, &c->companions}, e);
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

/* A user who may only read cannot note it; that is no fault of the checkpoint. */
static void note_verified(const struct restoring *r, store *s, const char *prefix, uint64_t n) {
  err why = {0};
  if (verified_note(s, prefix, n, &why) < 0)
    log_say(r->log, LOG_WARN, "that entry %llu was restored whole is not remembered: %s",
            (unsigned long long)n, why.text);
}

/* Restores the newest of a group that was asked for; one that is dropped just now is passed
 * over. */
static int restore_group(void *ctx, const catalog_place *at, runlog *log, err *e) {
  enum { TRIES = 3 };
  struct restoring *r = ctx;
  catalog_told t;
  int rc = ERR_CONFLICT;
  for (int i = 0; rc == ERR_CONFLICT && i < TRIES; i++) {
    rc = i == 0 ? 0 : runlog_refresh(log, e);
    const runlog_commit *c = catalog_newest(log, r->name);
    if (rc < 0 || !c) return rc;
    rc = catalog_describe(at, log, c, &t, e);
    r->state = runlog_view(log);
    if (rc == 0 && r->dir) rc = restore_pinned(r, at, log, &t.item, e);
  }
  if (rc == 0 && r->dir && r->record) note_verified(r, at->store, t.item.group, t.item.commit->n);
  r->found++;
  return rc == 0 && r->told ? r->told(r->ctx, at->store, &t.item, e) : rc;
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
    if (rc == 0 && r->dir) rc = restore_pinned(r, at, log, &t.item, e);
    if (rc == 0) r->found++;
    if (rc == 0 && r->told) rc = r->told(r->ctx, at->store, &t.item, e);
    if (rc == ERR_CONFLICT) rc = 0;
  }
  return rc;
}

/* Restores a checkpoint that was named itself, or a copy of one. */
static int restore_pick(struct restoring *r, const log_sink *log, const char *where, err *e) {
  catalog_pick pick;
  runlog_commit c;
  int rc = find(r->how.io, log, where, &pick, r->foreign, e);
  if (rc == 0 && r->dir) rc = catalog_hold(&pick, e);
  r->how.store = pick.store;
  r->state = NULL;
  if (rc == 0 && r->dir)
    rc = restore_wanted(
        r, &(struct wanted){&pick.manifest, pick.key, "", r->dir, pick.attempt, &pick.companions},
        e);
  if (rc == 0 && r->dir && r->record && pick.committed)
    note_verified(r, pick.under ? pick.under : pick.store, "", pick.number);
  if (rc == 0 && r->told) {
    catalog_item item = catalog_item_of(&pick, &c);
    rc = r->told(r->ctx, pick.store, &item, e);
  }
  catalog_drop(&pick);
  return rc;
}

int catalog_nothing_found(const char *where, const char *name, err *e) {
  if (!name) return err_set(e, ERR_NOENT, "%s has no checkpoint yet", where);
  return err_set(e, ERR_NOENT, "%s has no checkpoint %s (`list` shows what there is)", where, name);
}

bool catalog_is_absent(int rc) {
  return rc == ERR_NOENT || rc == ERR_NOSTORE;
}

static int restore_all(struct restoring *r, const log_sink *log, const char *where, err *e) {
  int rc = catalog_logs(r->how.io, log, where, restore_group, r, e);
  if (rc == 0 && !r->name) rc = catalog_logs(r->how.io, log, where, restore_above, r, e);
  if (rc != 0 && !catalog_is_absent(rc)) return rc;
  if (r->found) return rc;
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
                        .record = wish->record,
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
