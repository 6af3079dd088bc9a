#include "catalog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/restore.h"
#include "core/settle.h"
#include "core/transfer.h"
#include "prims/fs.h"
#include "prims/lock.h"

#define STAGING_INSIDE ".ckpt-restore"

/* ---- opening and walking ---- */

static int open_store(const io *io, const log_sink *log, const char *where, store **out, err *e) {
  uri u;
  buf text;
  *out = NULL;
  buf_init(&text, URI_MAX);
  int rc = uri_expand(where, &text, e);
  if (rc == 0) rc = uri_parse(text.data, &u, e);
  if (rc == 0) rc = store_open(&u, io, log, out, e);
  buf_free(&text);
  return rc;
}

struct walk {
  store *store;
  const char *where;
  catalog_fn *fn;
  void *ctx;
  bool log_seen;
};

static int each_commit(struct walk *w, runlog *log, const char *prefix, err *e) {
  const runlog_state *state = runlog_view(log);
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < state->commit_count; i++) {
    char key[STORE_KEY_MAX], at[URI_MAX + STORE_KEY_MAX];
    rc = runlog_key_dir(log, state->commits[i].dir, key, e);
    if (rc < 0) break;
    snprintf(at, sizeof at, "%s/%s", w->where, key);
    catalog_item item = {.group = prefix, .commit = &state->commits[i], .uri = at, .key = key};
    rc = w->fn(w->ctx, w->store, &item, e);
  }
  return rc;
}

static int on_group(void *ctx, const char *prefix, err *e) {
  struct walk *w = ctx;
  runlog *log;
  int rc = runlog_open(w->store, prefix, &log, e);
  if (rc < 0) return rc;
  w->log_seen = true;
  rc = each_commit(w, log, prefix, e);
  runlog_close(log);
  return rc;
}

/* The walk of groups has no room for a caller's own value; it is kept here meanwhile. */
struct stop {
  catalog_fn *fn;
  void *ctx;
  int value;
};

static int stop_item(void *ctx, store *s, const catalog_item *item, err *e) {
  struct stop *stop = ctx;
  int rc = stop->fn(stop->ctx, s, item, e);
  if (rc <= 0) return rc;
  stop->value = rc;
  return err_set(e, ERR_CANCELED, "stopped by the caller");
}

static int walk_store(store *s, const char *where, catalog_fn *fn, void *ctx, err *e) {
  struct stop stop = {.fn = fn, .ctx = ctx};
  struct walk w = {.store = s, .where = where, .fn = stop_item, .ctx = &stop};
  int rc = s->ops->exists(s, e);
  if (rc == 0) rc = runlog_groups(s, "", on_group, &w, e);
  if (rc == ERR_CANCELED && stop.value) return stop.value;
  if (rc == 0 && !w.log_seen)
    rc = err_set(e, ERR_NOENT, "%s holds no run: nothing was ever committed there", where);
  return rc;
}

int catalog_each(const io *io, const log_sink *log, const char *where, catalog_fn *fn, void *ctx,
                 err *e) {
  store *s = NULL;
  int rc = open_store(io, log, where, &s, e);
  if (rc == 0) rc = walk_store(s, where, fn, ctx, e);
  store_close(s);
  return rc;
}

/* ---- finding one ---- */

static int pick_commit(catalog_pick *p, const char *where, const runlog_commit *c, err *e) {
  int rc = restore_manifest(p->store, "", c, &p->manifest, e);
  if (rc < 0) return rc;
  p->committed = true;
  snprintf(p->key, sizeof p->key, "%s", c->dir);
  snprintf(p->uri, sizeof p->uri, "%s/%s", where, c->dir);
  return 0;
}

/* `name` NULL: the newest. ERR_NOENT if there is no log, or no such commit in it. */
static int pick_from_log(catalog_pick *p, const char *where, const char *name, err *e) {
  runlog *log;
  int rc = runlog_open(p->store, "", &log, e);
  if (rc < 0) return rc;
  const runlog_state *state = runlog_view(log);
  const runlog_commit *c = name ? runlog_find_dir(state, name) : NULL;
  if (!c) c = runlog_newest(state, name);
  rc = c ? pick_commit(p, where, c, e) : err_set(e, ERR_NOENT, "no such checkpoint");
  runlog_close(log);
  return rc;
}

/* A directory that has its manifest in it, wherever it was copied to. */
static int pick_copy(catalog_pick *p, const char *where, err *e) {
  int rc = settle_read_manifest(p->store, "", &p->manifest, e);
  if (rc < 0) return rc;
  snprintf(p->uri, sizeof p->uri, "%s", where);
  return 0;
}

static int split(const char *where, char *parent, size_t room, const char **name, err *e) {
  size_t len = strlen(where);
  while (len > 1 && where[len - 1] == '/') len--;
  snprintf(parent, room, "%.*s", (int)len, where);
  char *slash = strrchr(parent, '/');
  if (!slash || slash == parent || !slash[1] || slash[-1] == '/')
    return err_set(e, ERR_NOENT, "%s holds no checkpoint", where);
  *slash = 0;
  *name = slash + 1;
  return 0;
}

/* As <target>/<name>: the log says more than a manifest can. */
static int pick_in_parent(catalog_pick *p, const io *io, const log_sink *log, const char *where,
                          err *e) {
  char parent[URI_MAX];
  const char *name;
  int rc = split(where, parent, sizeof parent, &name, e);
  if (rc < 0) return rc;
  store *own = p->store;
  p->store = NULL;
  rc = open_store(io, log, parent, &p->store, e);
  if (rc == 0) rc = p->store->ops->exists(p->store, e);
  if (rc == 0) rc = pick_from_log(p, parent, name, e);
  if (rc == 0) {
    store_close(own);
    return 0;
  }
  store_close(p->store);
  p->store = own;
  return rc;
}

int catalog_find(const io *io, const log_sink *log, const char *where, catalog_pick *out, err *e) {
  *out = (catalog_pick){0};
  int rc = open_store(io, log, where, &out->store, e);
  if (rc < 0) return rc;
  int there = out->store->ops->exists(out->store, e);
  rc = there == 0 ? pick_from_log(out, where, NULL, e) : there;
  if (rc == ERR_NOENT || rc == ERR_NOSTORE) rc = pick_in_parent(out, io, log, where, e);
  if ((rc == ERR_NOENT || rc == ERR_NOSTORE) && there == 0) rc = pick_copy(out, where, e);
  if (rc == ERR_NOENT)
    return err_set(e, ERR_NOENT,
                   "%s is neither a target with a commit, nor a checkpoint in one, nor a copy with "
                   "its manifest",
                   where);
  return rc;
}

void catalog_drop(catalog_pick *pick) {
  manifest_free(&pick->manifest);
  store_close(pick->store);
  *pick = (catalog_pick){0};
}

/* ---- restoring ---- */

struct restoring {
  const io *io;
  const char *name, *dir; /* name NULL: the newest of each group */
  restore how;
  catalog_fn *told;
  void *ctx;
};

static bool is_asked(const struct restoring *r, const catalog_item *item) {
  if (!r->name) return true;
  char path[STORE_KEY_MAX];
  snprintf(path, sizeof path, "%s%s%s", item->group, *item->group ? "/" : "", item->commit->unit);
  return strcmp(r->name, item->commit->unit) == 0 || strcmp(r->name, item->commit->dir) == 0 ||
         strcmp(r->name, path) == 0 || strcmp(r->name, item->key) == 0;
}

static int restore_item(struct restoring *r, store *s, const catalog_item *item, err *e) {
  manifest m = {0};
  char dir[FS_PATH_MAX];
  r->how.store = s;
  int rc = restore_manifest(s, item->group, item->commit, &m, e);
  if (rc < 0) return rc;
  rc = fs_join(dir, r->dir, item->group, e);
  if (rc == 0) rc = fs_mkdirs(r->io, dir, 0777, e);
  if (rc == 0) rc = restore_unit(&r->how, &m, item->key, dir, e);
  manifest_free(&m);
  if (rc < 0) return rc;
  return r->told ? r->told(r->ctx, s, item, e) : 0;
}

/* A first walk finds the numbers of what is wanted (the newest of each group comes last), a second
 * one restores them: no commit has to be copied out of its log. */
struct wanted {
  struct restoring *r;
  char **keys; /* of the directories */
  char *group;
  size_t count, room;
};

static int want_item(void *ctx, store *s, const catalog_item *item, err *e) {
  struct wanted *w = ctx;
  (void)s;
  if (!is_asked(w->r, item)) return 0;
  bool same = w->count && strcmp(w->group, item->group) == 0;
  char *key = strdup(item->key), *group = strdup(item->group);
  if (!key || !group) {
    free(key);
    free(group);
    return err_set(e, ERR_NOMEM, "restore: out of memory");
  }
  if (!same && w->count == w->room) {
    size_t room = w->room ? 2 * w->room : 8;
    char **keys = realloc(w->keys, room * sizeof *keys);
    if (!keys) {
      free(key);
      free(group);
      return err_set(e, ERR_NOMEM, "restore: out of memory");
    }
    w->keys = keys;
    w->room = room;
  }
  if (same) free(w->keys[--w->count]);
  w->keys[w->count++] = key;
  free(w->group);
  w->group = group;
  return 0;
}

static int restore_wanted(void *ctx, store *s, const catalog_item *item, err *e) {
  struct wanted *w = ctx;
  for (size_t i = 0; i < w->count; i++)
    if (strcmp(w->keys[i], item->key) == 0) return restore_item(w->r, s, item, e);
  return 0;
}

static int restore_walk(struct restoring *r, const log_sink *log, const char *where, err *e) {
  struct wanted w = {.r = r};
  int rc = catalog_each(r->io, log, where, want_item, &w, e);
  if (rc == 0 && w.count) rc = catalog_each(r->io, log, where, restore_wanted, &w, e);
  for (size_t i = 0; i < w.count; i++) free(w.keys[i]);
  free(w.keys);
  free(w.group);
  if (rc == 0 && w.count == 0)
    rc = err_set(e, ERR_NOENT,
                 r->name ? "%s has no checkpoint %s (ckpt-lua ls shows what there is)"
                         : "%s has no checkpoint yet%s",
                 where, r->name ? r->name : "");
  return rc;
}

/* What is told of a checkpoint that was found by itself. `c` is the caller's, for the item to point
 * into. */
static catalog_item item_of(const catalog_pick *pick, runlog_commit *c) {
  *c = (runlog_commit){.unit = pick->manifest.unit,
                       .dir = pick->manifest.unit,
                       .kind = pick->manifest.kind,
                       .step = pick->manifest.step,
                       .files = manifest_files(&pick->manifest),
                       .bytes = manifest_bytes(&pick->manifest),
                       .root = pick->manifest.root,
                       .time_ns = pick->manifest.created_ns};
  return (catalog_item){.group = "", .commit = c, .uri = pick->uri, .key = pick->key};
}

/* A checkpoint itself was named, or a copy of one. */
static int restore_pick(struct restoring *r, const log_sink *log, const char *where, err *e) {
  catalog_pick pick;
  int rc = catalog_find(r->io, log, where, &pick, e);
  r->how.store = pick.store;
  if (rc == 0) rc = restore_unit(&r->how, &pick.manifest, pick.key, r->dir, e);
  if (rc == 0 && r->told) {
    runlog_commit c;
    catalog_item item = item_of(&pick, &c);
    rc = r->told(r->ctx, pick.store, &item, e);
  }
  catalog_drop(&pick);
  return rc;
}

/* One restore into a directory at a time: what an earlier one left when it died can then be
 * removed. */
static int open_staging(const io *io, const char *dir, char *staging, lock *held, err *e) {
  char path[FS_PATH_MAX];
  int rc = fs_join(staging, dir, STAGING_INSIDE, e);
  if (rc == 0) rc = fs_mkdirs(io, staging, 0700, e);
  if (rc == 0) rc = fs_join(path, staging, "lock", e);
  if (rc == 0) rc = lock_take(path, true, held, e);
  if (rc == ERR_HELD)
    return err_set(e, ERR_HELD, "another restore into %s is running: wait for its end", dir);
  return rc;
}

int catalog_restore(const io *io, const log_sink *log, pool *pool, const char *where,
                    const char *name, const char *dir, catalog_fn *told, void *ctx, err *e) {
  char staging[FS_PATH_MAX];
  struct restoring r = {.io = io, .name = name, .dir = dir, .told = told, .ctx = ctx};
  lock held = {.fd = -1};
  int rc = fs_mkdirs(io, dir, 0777, e);
  if (rc == 0) rc = open_staging(io, dir, staging, &held, e);
  if (rc < 0) return rc;
  r.how = (restore){.io = io, .pool = pool, .staging = staging};
  err why = {0};
  rc = restore_walk(&r, log, where, &why);
  if (!name && (rc == ERR_NOENT || rc == ERR_NOSTORE)) {
    err other = {0};
    int found = restore_pick(&r, log, where, &other);
    /* Neither: the first answer says more about what was asked. */
    if (found != ERR_NOENT && found != ERR_NOSTORE) {
      rc = found;
      why = other;
    }
  }
  err removing = {0};
  if (fs_remove_tree(io, staging, &removing) < 0 && rc == 0) {
    rc = removing.code;
    why = removing;
  }
  lock_drop(&held);
  if (rc < 0 && e) *e = why;
  return rc;
}

/* ---- verifying ---- */

struct verifying {
  const io *io;
  pool *pool;
  const char *name;
  catalog_verified *fn;
  void *ctx;
  int seen, bad;
  char first[ERR_TEXT_MAX];
};

static void on_finding(void *ctx, const char *name, const char *text) {
  struct verifying *v = ctx;
  if (!*v->first) snprintf(v->first, sizeof v->first, "%.400s: %.600s", name, text);
}

static int verify_manifest(struct verifying *v, store *s, const manifest *m,
                           const catalog_item *item, err *e) {
  transfer t = {.io = v->io, .store = s, .pool = v->pool};
  *v->first = 0;
  int found = transfer_verify(&t, m, item->key, on_finding, v, e);
  if (found < 0) return found;
  v->seen++;
  v->bad += found > 0;
  return v->fn(v->ctx, item, found ? ERR_CORRUPT : 0, v->first, (unsigned)found);
}

static int verify_item(void *ctx, store *s, const catalog_item *item, err *e) {
  struct verifying *v = ctx;
  struct restoring asked = {.name = v->name};
  manifest m = {0};
  err why = {0};
  if (!is_asked(&asked, item)) return 0;
  int rc = restore_manifest(s, item->group, item->commit, &m, &why);
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT) {
    v->seen++;
    v->bad++;
    return v->fn(v->ctx, item, ERR_CORRUPT, why.text, 1);
  }
  if (rc < 0) {
    if (e) *e = why;
    return rc;
  }
  rc = verify_manifest(v, s, &m, item, e);
  manifest_free(&m);
  return rc;
}

static int verify_pick(struct verifying *v, const log_sink *log, const char *where, err *e) {
  catalog_pick pick;
  int rc = catalog_find(v->io, log, where, &pick, e);
  if (rc == 0) {
    runlog_commit c;
    catalog_item item = item_of(&pick, &c);
    rc = verify_manifest(v, pick.store, &pick.manifest, &item, e);
  }
  catalog_drop(&pick);
  return rc;
}

int catalog_verify(const io *io, const log_sink *log, pool *pool, const char *where,
                   const char *name, catalog_verified *fn, void *ctx, err *e) {
  struct verifying v = {.io = io, .pool = pool, .name = name, .fn = fn, .ctx = ctx};
  err why = {0};
  int rc = catalog_each(io, log, where, verify_item, &v, &why);
  if (!name && v.seen == 0 && (rc == ERR_NOENT || rc == ERR_NOSTORE)) {
    err other = {0};
    int found = verify_pick(&v, log, where, &other);
    if (found != ERR_NOENT && found != ERR_NOSTORE) {
      rc = found;
      why = other;
    }
  }
  if (rc == 0 && v.seen == 0)
    rc = err_set(&why, ERR_NOENT, "%s has no checkpoint%s%s", where, name ? " " : "",
                 name ? name : "");
  if (rc < 0 && e) *e = why;
  return rc < 0 ? rc : v.bad;
}
