#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "detect_model.h"

/* A listing of one directory, taken before the picture is touched. */
typedef struct entry {
  char *name;
  struct stat st;
} entry;

typedef struct listing {
  entry *at;
  size_t count, room;
} listing;

static void listing_free(listing *l) {
  for (size_t i = 0; i < l->count; i++) free(l->at[i].name);
  free(l->at);
}

static int collect(void *ctx, const fs_entry *found, err *e) {
  listing *l = ctx;
  char *name = VEC_ROOM(l->at, l->count, l->room) ? strdup(found->name) : NULL;
  if (!name) return err_set(e, ERR_NOMEM, "list: out of memory");
  l->at[l->count++] = (entry){.name = name, .st = *found->st};
  return 0;
}

/* --- what moved while nobody looked: the inode tells --- */

static int by_inode(const void *a, const void *b) {
  uint64_t x = ((const inode_at *)a)->ino, y = ((const inode_at *)b)->ino;
  return (x > y) - (x < y);
}

static void count_node(void *ctx, node *n) {
  (void)n;
  ++*(size_t *)ctx;
}

static void index_node(void *ctx, node *n) {
  detect *d = ctx;
  if (n->known && n->parent) d->index[d->index_count++] = (inode_at){n->ino, n};
}

static int build_index(detect *d, err *e) {
  size_t count = 0;
  node_walk(d->top, count_node, &count);
  d->index = calloc(count + 1, sizeof *d->index);
  if (!d->index) return err_set(e, ERR_NOMEM, "list: out of memory");
  d->index_count = 0;
  node_walk(d->top, index_node, d);
  qsort(d->index, d->index_count, sizeof *d->index, by_inode);
  return 0;
}

/* The number of an inode is used again at once after a removal. An entry that was renamed has kept
 * its times, or its rename came after its last write; a new file has neither. */
static bool same_thing(const node *n, const struct stat *st) {
  if (n->type != node_type_of(st->st_mode)) return false;
  if (io_time_ns(st->st_ctim) > io_time_ns(st->st_mtim)) return true;
  bool is_dir = n->type == NODE_DIR;
  return is_dir ? n->mtime_ns == io_time_ns(st->st_mtim) : node_same(n, st);
}

static bool in_limbo(const detect *d, const node *n, size_t *at) {
  for (*at = 0; *at < d->limbo_count; ++*at)
    if (d->limbo[*at].n == n) return true;
  return false;
}

/* True if the place where it was known no longer has it. */
static bool has_left(const detect *d, const node *n) {
  char path[FS_PATH_MAX], absolute[FS_PATH_MAX];
  struct stat st;
  if (!node_within(d->top, n) || node_path(n, path, NULL) < 0) return false;
  if (model_absolute(d, path, absolute, NULL) < 0) return false;
  int rc = d->io->lstat(d->io, AT_FDCWD, absolute, &st);
  return rc < 0 ? err_code_of_errno(rc) == ERR_NOENT : !node_is(n, &st);
}

/* Finds the node that was moved here, but never one above `dir`: a tree that changes while it is
 * listed may show that too. */
static node *moved_from(const detect *d, const node *dir, const struct stat *st) {
  size_t at, i = vec_place(&(inode_at){.ino = st->st_ino}, d->index, d->index_count,
                           sizeof *d->index, by_inode, NULL);
  for (; i < d->index_count && d->index[i].ino == st->st_ino; i++) {
    node *n = d->index[i].n;
    if (node_is(n, st) && same_thing(n, st) && !node_within(n, dir) &&
        (in_limbo(d, n, &at) || has_left(d, n)))
      return n;
  }
  return NULL;
}

static bool is_thing(const detect *d, const node *n, const node *dir, const struct stat *st) {
  return n && n->known && node_is(n, st) && same_thing(n, st) && !node_within(n, dir) &&
         (!n->parent || has_left(d, n));
}

/* Finds the unit that was moved into a directory whose watch was not there yet: its departure alone
 * is told, perhaps only after this listing. A framework makes its bin and moves its first checkpoint
 * there at once. */
static node *unit_from(const detect *d, const node *dir, const entry *found) {
  char above[FS_PATH_MAX], path[FS_PATH_MAX];
  match_unit m;
  if (d->first || node_path(dir, above, NULL) < 0) return NULL;
  if (fs_join(path, above, found->name, NULL) < 0) return NULL;
  if (!rules_match(d->rules, path, S_ISDIR(found->st.st_mode), &m)) return NULL;
  for (size_t i = 0; i < d->limbo_count; i++) {
    node *n = d->limbo[i].n;
    if (n && n->home && is_thing(d, n, dir, &found->st)) return n;
  }
  for (size_t i = 0; i < d->all.count; i++) {
    const unit *u = d->all.at[i];
    if (u->kind != MATCH_GROUP && is_thing(d, u->root, dir, &found->st)) return u->root;
  }
  return NULL;
}

static int move_here(detect *d, node *n, node *dir, const entry *found, err *e) {
  size_t at;
  if (!in_limbo(d, n, &at)) {
    int rc = model_leave(d, n, 0, e);
    if (rc < 0) return rc;
    at = d->limbo_count - 1;
  }
  int rc = model_move(d, limbo_take(d, at), false, dir, found->name, &found->st, e);
  return rc == 0 ? list_arrived(d, dir, found->name, e) : rc;
}

/* --- one directory --- */

static int changed_entry(detect *d, node *n, const entry *found, err *e) {
  bool was_known = n->known, same = node_same(n, &found->st);
  node_set(n, &found->st);
  if (!was_known || same || n->type == NODE_DIR) return 0;
  int rc = unit_look_again(d, n, e);
  if (rc < 0) return rc;
  if (n->evidence != NODE_OPEN && n->type == NODE_FILE) model_prove(d, n, NODE_SEEN);
  model_note(d, n);
  return 0;
}

static int take_entry(detect *d, node *dir, const entry *found, err *e) {
  node *n = node_child(dir, found->name, strlen(found->name)), *from;
  bool other = n && n->known && !node_is(n, &found->st);
  bool kind = n && n->type != node_type_of(found->st.st_mode);
  if (d->index && (!n || other) && (from = moved_from(d, dir, &found->st)) && from != n)
    return move_here(d, from, dir, found, e);
  if (!d->index && !n && (from = unit_from(d, dir, found)))
    return move_here(d, from, dir, found, e);
  if (kind || (other && n->type == NODE_DIR)) {
    int rc = model_remove(d, n, e);
    if (rc < 0) return rc;
    n = NULL;
  }
  if (!n) {
    int rc = model_add(d, dir, found->name, &found->st, d->first ? NODE_UNPROVEN : NODE_SEEN, e);
    n = rc == 0 ? node_child(dir, found->name, strlen(found->name)) : NULL;
    if (n) n->listed = true;
    return rc;
  }
  n->pass = d->pass;
  return changed_entry(d, n, found, e);
}

static int take_listing(detect *d, node *dir, const listing *l, err *e) {
  uint32_t pass = ++d->pass;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < l->count; i++) {
    d->pass = pass;
    rc = take_entry(d, dir, &l->at[i], e);
    node *n = node_child(dir, l->at[i].name, strlen(l->at[i].name));
    if (n) n->pass = pass;
  }
  for (size_t i = dir->count; rc == 0 && i-- > 0;)
    if (dir->children[i]->pass != pass) rc = model_remove(d, dir->children[i], e);
  return rc;
}

void list_start_polling(detect *d) {
  watch_close(d->watch);
  d->watch = NULL;
  d->polling = true;
  d->next_poll = model_mono(d) + d->poll_ns;
}

/* Sets a watch before the listing: so changes in between are seen twice, not never. */
static int set_watch(detect *d, const char *path, err *e) {
  err why = {0};
  if (!d->watch || d->polling) return 0;
  int rc = watch_add(d->watch, path, &why);
  if (rc == ERR_LIMIT) {
    log_say(d->log, LOG_WARN, "%s; listing the directory every %g s instead", why.text,
            (double)d->poll_ns / 1e9);
    /* It is not closed here: this may be inside its own callback. */
    d->polling = true;
    return 0;
  }
  if (rc == 0 || rc == ERR_NOENT) return 0;
  if (rc == ERR_NOMEM && e) *e = why;
  if (rc == ERR_NOMEM) return rc;
  log_say(d->log, LOG_WARN, "not watched: %s", why.text);
  return 0;
}

/* Passes over a directory below the root that cannot be read, and says so. */
static int forgive(const detect *d, const node *dir, int rc, const err *why, err *e) {
  if (rc == ERR_NOENT && dir != d->top) return 0;
  if (dir != d->top && (rc == ERR_ACCESS || rc == ERR_INVAL || rc == ERR_LIMIT)) {
    log_say(d->log, LOG_WARN, "not looked at: %s", why->text);
    return 0;
  }
  if (e) *e = *why;
  return rc;
}

/* True for the state directory of another run: that keeps it beside its own directory, which may be
 * below this one. */
static bool is_state(const node *dir, const listing *l) {
  bool lock = false, journal = false;
  for (size_t i = 0; model_state_named(dir) && i < l->count; i++) {
    if (!S_ISREG(l->at[i].st.st_mode)) continue;
    lock = lock || strcmp(l->at[i].name, "lock") == 0;
    journal = journal || strcmp(l->at[i].name, "journal.jsonl") == 0;
  }
  return lock && journal;
}

int list_tree(detect *d, node *dir, err *e) {
  char path[FS_PATH_MAX], absolute[FS_PATH_MAX];
  listing l = {0};
  err why = {0};
  int rc = node_path(dir, path, e);
  if (rc == 0) rc = model_absolute(d, path, absolute, e);
  if (rc == 0) rc = set_watch(d, path, e);
  if (rc < 0) return rc;
  rc = fs_list(d->io, absolute, collect, &l, &why);
  if (rc < 0) {
    rc = forgive(d, dir, rc, &why, e);
    goto out;
  }
  if (is_state(dir, &l)) {
    model_exclude_state(d, dir);
    goto out;
  }
  rc = take_listing(d, dir, &l, e);
  for (size_t i = 0; rc == 0 && i < l.count; i++) {
    node *n = node_child(dir, l.at[i].name, strlen(l.at[i].name));
    if (n && n->type == NODE_DIR && !n->excluded) rc = list_tree(d, n, e);
  }
out:
  listing_free(&l);
  return rc;
}

int list_arrived(detect *d, node *parent, const char *name, err *e) {
  node *n = node_child(parent, name, strlen(name));
  if (!n || n->type != NODE_DIR || n->excluded) return 0;
  unit *u = n->unit;
  bool renamed = u && u->renamed;
  int rc = list_tree(d, n, e);
  bool same = n == node_child(parent, name, strlen(name)) && u && n->unit == u;
  if (same) u->renamed = renamed;
  return rc;
}

int list_all(detect *d, err *e) {
  int rc = d->first ? 0 : build_index(d, e);
  if (rc == 0) rc = list_tree(d, d->top, e);
  free(d->index);
  d->index = NULL;
  for (size_t i = d->limbo_count; i-- > 0;)
    if (d->limbo[i].cookie == 0) limbo_drop(d, i);
  return rc;
}

static int list_file(detect *d, node *n, err *e) {
  char path[FS_PATH_MAX], absolute[FS_PATH_MAX];
  entry found;
  int rc = node_path(n, path, e);
  if (rc == 0) rc = model_absolute(d, path, absolute, e);
  if (rc < 0) return rc;
  /* The node's own name may not be used: it goes if another kind of entry took its place. */
  found.name = (char *)fs_base(path);
  rc = d->io->lstat(d->io, AT_FDCWD, absolute, &found.st);
  if (err_code_of_errno(rc) == ERR_NOENT) return model_remove(d, n, e);
  if (rc < 0) return err_sys(e, rc, "look at %s", absolute);
  return take_entry(d, n->parent, &found, e);
}

/* Lists the files of a group alone: their directory may be the root, with everything below. */
static int list_group(detect *d, unit *u, err *e) {
  char path[FS_PATH_MAX], absolute[FS_PATH_MAX];
  listing l = {0};
  node *dir = u->root;
  size_t len = strlen(unit_name(u));
  char *stem = strdup(unit_name(u));
  int rc = stem ? node_path(dir, path, e) : err_set(e, ERR_NOMEM, "list: out of memory");
  if (rc == 0) rc = model_absolute(d, path, absolute, e);
  if (rc == 0) rc = fs_list(d->io, absolute, collect, &l, e);
  uint32_t pass = ++d->pass;
  for (size_t i = 0; rc == 0 && i < l.count; i++) {
    const entry *found = &l.at[i];
    if (strncmp(found->name, stem, len) != 0 || found->name[len] != '.') continue;
    if (!S_ISDIR(found->st.st_mode)) rc = take_entry(d, dir, found, e);
  }
  for (size_t i = dir->count; rc == 0 && i-- > 0;) {
    node *n = dir->children[i];
    bool member = strncmp(n->name, stem, len) == 0 && n->name[len] == '.' && n->type != NODE_DIR;
    if (member && n->pass < pass) rc = model_remove(d, n, e);
  }
  listing_free(&l);
  free(stem);
  return rc;
}

int list_unit(detect *d, unit *u, bool *changed, err *e) {
  uint64_t touches = u->touches, id = u->id;
  match_kind kind = u->kind;
  char *path = strdup(u->path);
  *changed = false;
  if (!path) return err_set(e, ERR_NOMEM, "list %s: out of memory", u->path);
  int rc = kind == MATCH_FILE    ? list_file(d, u->root, e)
           : kind == MATCH_GROUP ? list_group(d, u, e)
                                 : list_tree(d, u->root, e);
  *changed = !unit_still(d, u, id, path) || u->touches != touches;
  free(path);
  return rc;
}
