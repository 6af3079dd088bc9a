#include "catalog_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "commit/manifest_read.h"
#include "commit/settle.h"
#include "job/restore/pinned.h"
#include "job/restore/restore.h"

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
  out->item = (catalog_item){.group = runlog_prefix(log),
                             .thin = c->thin.globs.count > 0,
                             .commit = c,
                             .uri = out->uri,
                             .key = out->key,
                             .state = runlog_view(log)};
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
    p->thin = c->thin.globs.count > 0;
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
  rc = manifest_take_note(p->store, "", &p->manifest, e);
  p->thin = rc == 1;
  if (rc >= 0) rc = print_place(where, "", p->uri, sizeof p->uri, e);
  return rc < 0 ? rc : 1;
}

struct directories {
  names found;
  size_t most;
};

static int note_directory(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  struct directories *d = ctx;
  (void)object;
  if (!is_prefix) return 0;
  return names_add(&d->found, key) ? d->found.count == d->most : ERR_NOMEM;
}

int catalog_check_remains(store *s, const char *where, unsigned most, err *e) {
  struct directories d = {.most = most};
  err why = {0};
  int rc = s->ops->list(s, "", true, note_directory, &d, &why);
  if (rc < 0) err_set(e, rc, "%s", *why.text ? why.text : err_text(rc));
  for (size_t i = 0; rc >= 0 && i < d.found.count; i++) {
    rc = settle_is_sealed(s, d.found.at[i], e);
    if (rc == 1)
      rc = err_set(e, ERR_CORRUPT,
                   "%.300s has checkpoints (%.200s is one), and no log that names them: `repair` "
                   "makes one of what is left, and %.300s/%.200s can be restored by itself",
                   where, d.found.at[i], where, d.found.at[i]);
  }
  names_free(&d.found);
  return rc < 0 ? rc : 0;
}

enum { REMAINS_OF = 64 };

int catalog_find_here(const io *io, const log_sink *log, const char *where, catalog_pick *out,
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
  if (foreign && there == 0 && !in_target) {
    rc = catalog_check_remains(out->store, where, REMAINS_OF, e); /* else all would come for one */
    if (rc == 0) rc = print_place(&u, "", foreign, URI_MAX, e);
    if (rc < 0) return rc;
  }
  return err_set(e, ERR_NOENT,
                 "%s is neither a target with a commit, nor a checkpoint in one, nor a copy with "
                 "its manifest",
                 where);
}

int catalog_find(const io *io, const log_sink *log, const char *where, catalog_pick *out, err *e) {
  return catalog_find_here(io, log, where, out, NULL, e);
}

int catalog_hold(catalog_pick *pick, err *e) {
  store *held;
  if (!pick->committed || pick->under) return 0;
  int rc = pinned_open(pick->store, "", pick->dir, pick->number, pick->thin, "restore", &held, e);
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
                       .left_out = pick->manifest.left_out,
                       .root = pick->manifest.root,
                       .metrics = pick->manifest.metrics,
                       .policy = pick->manifest.policy,
                       .time_ns = pick->manifest.created_ns};
  return (catalog_item){
      .group = "", .commit = c, .uri = pick->uri, .key = pick->key, .thin = pick->thin};
}

int catalog_nothing_found(const char *where, const char *name, err *e) {
  if (!name) return err_set(e, ERR_NOENT, "%s has no checkpoint yet", where);
  return err_set(e, ERR_NOENT, "%s has no checkpoint %s (`list` shows what there is)", where, name);
}

bool catalog_is_absent(int rc) {
  return rc == ERR_NOENT || rc == ERR_NOSTORE;
}
