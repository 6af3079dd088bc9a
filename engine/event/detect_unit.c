#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "detect_model.h"

static int units_push(units *u, unit *item, err *e) {
  if (!vec_grow((void *)&u->at, u->count, &u->room, sizeof(void *)))
    return err_set(e, ERR_NOMEM, "watch: out of memory");
  u->at[u->count++] = item;
  return 0;
}

/* --- tables, by path; a directory before a group of the same name --- */

typedef struct unit_key {
  const char *path;
  bool group;
} unit_key;

static int compare(const void *key, const void *item) {
  const unit_key *k = key;
  const unit *u = *(unit *const *)item;
  int c = strcmp(k->path, u->path);
  return c ? c : (int)k->group - (u->kind == MATCH_GROUP);
}

/* Finds the first unit that is not before this path. */
static size_t table_place(const units *t, const char *path, bool group) {
  return vec_place(&(unit_key){path, group}, (const void *)t->at, t->count, sizeof(unit *), compare,
                   NULL);
}

static int table_insert(units *t, unit *u, err *e) {
  int rc = units_push(t, u, e);
  if (rc < 0) return rc;
  t->count--;
  size_t at = table_place(t, u->path, u->kind == MATCH_GROUP);
  memmove(t->at + at + 1, t->at + at, (t->count - at) * sizeof(void *));
  t->at[at] = u;
  t->count++;
  return 0;
}

/* Removes this very unit: in limbo several may have its path. */
static void table_remove(units *t, const unit *u) {
  size_t at = table_place(t, u->path, u->kind == MATCH_GROUP);
  while (at < t->count && t->at[at] != u) at++;
  if (at == t->count) return;
  t->count--;
  memmove(t->at + at, t->at + at + 1, (t->count - at) * sizeof(void *));
}

static unit *table_find(const units *t, const char *path, bool group) {
  unit *const *found =
      vec_find(&(unit_key){path, group}, (const void *)t->at, t->count, sizeof(unit *), compare);
  return found ? *found : NULL;
}

unit *unit_at(const detect *d, const char *path) {
  unit *u = table_find(&d->all, path, false);
  return u ? u : table_find(&d->all, path, true);
}

bool unit_still(const detect *d, const unit *u, uint64_t id, const char *path) {
  const unit *dir = table_find(&d->all, path, false), *group = table_find(&d->all, path, true);
  return u && (u == dir || u == group) && u->id == id;
}

/* --- telling the caller --- */

static void tell(detect *d, unit *u) {
  bool news = !u->handed || u->state != u->handed_state || u->generation != u->handed_generation;
  if (u->queued || !news) return;
  /* Out of memory the news is late, not lost: the next change of state tells it. */
  if (units_push(&d->queue, u, NULL) == 0) u->queued = true;
}

static void untell(detect *d, unit *u) {
  size_t kept = 0;
  if (!u->queued) return;
  for (size_t i = d->queue_head; i < d->queue.count; i++)
    if (d->queue.at[i] != u) d->queue.at[kept++] = d->queue.at[i];
  d->queue.count = kept;
  d->queue_head = 0;
  u->queued = false;
}

void unit_set(detect *d, unit *u, detect_state state, const char *reason) {
  if (state == DETECT_OPEN && u->state == DETECT_COMPLETE) u->generation++;
  u->state = state;
  if (reason != u->reason) snprintf(u->reason, sizeof u->reason, "%s", reason);
  tell(d, u);
}

void unit_rest(detect *d, unit *u) {
  if (!u->active) return;
  unit *last = d->active.at[--d->active.count];
  d->active.at[u->active - 1] = last;
  last->active = u->active;
  u->active = 0;
}

void unit_wake(detect *d, unit *u, int64_t due) {
  u->due = due;
  if (due == INT64_MAX) {
    unit_rest(d, u);
  } else if (!u->active && units_push(&d->active, u, &d->failed) == 0) {
    u->active = d->active.count;
  }
}

void unit_free(unit *u) {
  if (!u) return;
  free(u->path);
  free(u->aside);
  free(u);
}

/* Leaves a message that nothing is at this path any more. */
static void tell_gone(detect *d, const unit *u) {
  if (!u->handed) return;
  unit *gone = calloc(1, sizeof *gone);
  if (gone) {
    *gone = *u;
    gone->path = strdup(u->path);
    gone->aside = u->aside ? strdup(u->aside) : NULL;
    gone->root = NULL;
    gone->next = NULL;
    gone->active = 0;
    gone->queued = true;
    gone->state = DETECT_GONE;
    snprintf(gone->reason, sizeof gone->reason, "removed");
  }
  if (!gone || !gone->path || units_push(&d->queue, gone, NULL) < 0) {
    unit_free(gone);
    log_say(d->log, LOG_ERROR, "%s is gone, but there is no memory to say so", u->path);
  }
}

static void let_go_of_root(unit *u) {
  if (!u->root) return;
  if (u->root->unit == u) u->root->unit = NULL;
  for (unit **at = &u->root->groups; *at; at = &(*at)->next)
    if (*at == u) {
      *at = u->next;
      break;
    }
  u->root = NULL;
  u->next = NULL;
}

void unit_take_root(unit *u, node *n) {
  let_go_of_root(u);
  u->root = n;
  if (u->kind != MATCH_GROUP) {
    n->unit = u;
    return;
  }
  u->next = n->groups;
  n->groups = u;
}

void unit_set_aside(unit *u, const node *n) {
  char path[FS_PATH_MAX];
  if (!n->home || node_path(n, path, NULL) < 0) return;
  free(u->aside);
  u->aside = strdup(path); /* without memory for it, it is only removed */
}

void unit_drop(detect *d, unit *u) {
  untell(d, u);
  tell_gone(d, u);
  unit_rest(d, u);
  table_remove(u->away ? &d->away : &d->all, u);
  let_go_of_root(u);
  unit_free(u);
}

/* Puts it among those that are there. A unit that had its path before and is on its way elsewhere
 * is gone from here: the caller hears that before it hears of this one. */
static int enter(detect *d, unit *u, err *e) {
  const unit_key key = {u->path, u->kind == MATCH_GROUP};
  int rc = table_insert(&d->all, u, e);
  if (rc < 0) return rc;
  size_t at = table_place(&d->away, key.path, key.group);
  for (; at < d->away.count && compare(&key, (const void *)&d->away.at[at]) == 0; at++) {
    tell_gone(d, d->away.at[at]);
    d->away.at[at]->handed = false;
  }
  return 0;
}

/* --- finding units --- */

/* Finds the directory above `n` that is a unit. */
static node *covering(const node *n) {
  node *p = n->parent;
  while (p && !p->unit) p = p->parent;
  return p;
}

static unit *group_of(const detect *d, const node *n) {
  char path[FS_PATH_MAX];
  match_unit m;
  if (n->type != NODE_FILE || node_path(n, path, NULL) < 0) return NULL;
  if (!rules_match(d->rules, path, false, &m) || m.kind != MATCH_GROUP) return NULL;
  path[m.name_len] = '\0';
  return table_find(&d->all, path, true);
}

unit *unit_of(const detect *d, const node *n) {
  const node *top = covering(n);
  if (top) return top->unit;
  if (n->unit) return n->unit;
  return n->parent && !n->excluded ? group_of(d, n) : NULL;
}

/* What lies in a unit is a part of it, whatever it was before. */
static void take_back(void *ctx, node *n) {
  const detect *d = ctx;
  char path[FS_PATH_MAX];
  if (n->unit || !n->home) return;
  free(n->home);
  n->home = NULL;
  n->excluded = node_path(n, path, NULL) < 0 || rules_excluded(d->rules, path, n->type == NODE_DIR);
}

static int make(detect *d, node *root, const char *path, const match_unit *m, const char *pattern,
                err *e) {
  unit *u = calloc(1, sizeof *u);
  if (u) u->path = strdup(path);
  if (!u || !u->path) {
    unit_free(u);
    return err_set(e, ERR_NOMEM, "watch %s: out of memory", path);
  }
  u->path[m->name_len] = '\0';
  u->id = ++d->ids;
  u->kind = m->kind;
  u->step = m->step;
  u->numbered = m->numbered;
  u->above = rules_is_above(d->rules, pattern);
  u->last = model_mono(d);
  u->touched = !d->first;
  u->dead = d->dead;
  int rc = enter(d, u, e);
  if (rc < 0) {
    unit_free(u);
    return rc;
  }
  unit_take_root(u, root);
  if (m->kind == MATCH_DIR) node_walk(root, take_back, d);
  u->cause = "open";
  unit_set(d, u, DETECT_OPEN, "it has just appeared");
  unit_wake(d, u, u->last + d->rules->settled_ns);
  return 0;
}

static bool has_marker(const detect *d, const node *n) {
  for (size_t i = 0; i < n->count; i++)
    if (n->children[i]->type == NODE_FILE && rules_is_marker(d->rules, n->children[i]->name))
      return true;
  return false;
}

static bool is_known(const detect *d, const char *path) {
  for (size_t i = 0; i < d->known_count; i++)
    if (strcmp(d->known[i], path) == 0) return true;
  return false;
}

/* Reads how a file begins; 0: it cannot be told. */
static size_t head_of(const detect *d, const char *path, char *head) {
  char absolute[FS_PATH_MAX];
  if (model_absolute(d, path, absolute, NULL) < 0) return 0;
  int fd =
      d->io->open(d->io, AT_FDCWD, absolute, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  if (fd < 0) return 0;
  ssize_t n = d->io->pread(d->io, fd, head, FRAMEWORK_HEAD, 0);
  d->io->close(d->io, fd);
  return n > 0 ? (size_t)n : 0;
}

/* True if its name asks for a proof that is not there (yet). */
static bool lacks_proof(const detect *d, const node *n, const char *path, const char *pattern) {
  char head[FRAMEWORK_HEAD];
  if (!rules_needs_proof(d->rules, pattern)) return false;
  if (n->type == NODE_FILE) return !framework_begins(path, head, head_of(d, path, head));
  return !has_marker(d, n) && !is_known(d, path);
}

int unit_classify(detect *d, node *n, err *e) {
  char path[FS_PATH_MAX];
  match_unit m;
  int rc = 0;
  if (n->excluded || n->type == NODE_LINK || n->type == NODE_OTHER || covering(n)) return 0;
  if (n->parent && !n->unit) {
    rc = node_path(n, path, e);
    if (rc < 0) return rc;
    const char *pattern = rules_match(d->rules, path, n->type == NODE_DIR, &m);
    bool waits = pattern && lacks_proof(d, n, path, pattern);
    if (pattern && m.kind == MATCH_GROUP) {
      path[m.name_len] = '\0';
      if (!table_find(&d->all, path, true)) rc = make(d, n->parent, path, &m, pattern, e);
    } else if (pattern && !waits) {
      rc = make(d, n, path, &m, pattern, e);
    }
  }
  for (size_t i = 0; rc == 0 && !n->unit && i < n->count; i++)
    rc = unit_classify(d, n->children[i], e);
  return rc;
}

int unit_look_again(detect *d, node *n, err *e) {
  if (n->type != NODE_FILE || n->excluded || !n->parent || unit_of(d, n)) return 0;
  int rc = unit_classify(d, n, e);
  if (rc == 0 && n->unit) model_uncount(d, n);
  return rc;
}

int unit_promote(detect *d, node *n, err *e) {
  char path[FS_PATH_MAX];
  match_unit m;
  if (!n->parent || n->excluded || n->unit || n->type != NODE_DIR || covering(n)) return 0;
  int rc = node_path(n, path, e);
  if (rc < 0) return rc;
  const char *pattern = rules_match(d->rules, path, true, &m);
  if (!pattern || m.kind != MATCH_DIR) return 0;
  unit_drop_within(d, n);
  node_walk(n, model_uncount, d);
  return make(d, n, path, &m, pattern, e);
}

/* --- units at a node and below it --- */

/* Units are found by the nodes, never by their paths: a unit in limbo may share its path with the
 * one in its place by now. */
typedef int unit_fn(detect *d, unit *u, err *e);

/* Calls `fn`, which may drop the unit, for each until one fails. */
static int each_within(detect *d, node *n, unit_fn *fn, err *e) {
  int rc = n->unit ? fn(d, n->unit, e) : 0;
  for (unit *u = n->groups, *next; rc == 0 && u; u = next) {
    next = u->next;
    rc = fn(d, u, e);
  }
  for (size_t i = 0; rc == 0 && i < n->count; i++) rc = each_within(d, n->children[i], fn, e);
  return rc;
}

static int drop_one(detect *d, unit *u, err *e) {
  (void)e;
  unit_drop(d, u);
  return 0;
}

void unit_drop_within(detect *d, node *n) {
  each_within(d, n, drop_one, NULL);
}

static int leave_one(detect *d, unit *u, err *e) {
  int rc = table_insert(&d->away, u, e);
  if (rc < 0) return rc;
  table_remove(&d->all, u);
  u->away = true;
  /* Whether there is news of it will show when it has its place. */
  untell(d, u);
  if (!u->active) u->due = INT64_MAX;
  unit_rest(d, u);
  return 0;
}

int unit_leave_within(detect *d, node *n, err *e) {
  return each_within(d, n, leave_one, e);
}

/* Gives the name that its root has now; `still` unless that is no unit's name. */
static int new_name(const detect *d, const unit *u, char *path, match_unit *m, bool *still,
                    err *e) {
  int rc = node_path(u->root, path, e);
  if (rc < 0) return rc;
  /* Groups are found again from their files. */
  *still = u->kind != MATCH_GROUP && !u->root->excluded && !covering(u->root) &&
           rules_match(d->rules, path, u->kind == MATCH_DIR, m) && m->kind == u->kind;
  return 0;
}

static int rename_unit(detect *d, unit *u, const char *path, err *e) {
  if (strcmp(path, u->path) == 0) return 0;
  char *copy = strdup(path);
  if (!copy) return err_set(e, ERR_NOMEM, "watch %s: out of memory", path);
  tell_gone(d, u);
  free(u->path);
  u->path = copy;
  u->handed = false;
  return 0;
}

static int arrive_one(detect *d, unit *u, err *e) {
  char path[FS_PATH_MAX];
  match_unit m;
  bool still;
  if (!u->away) return 0;
  int rc = new_name(d, u, path, &m, &still, e);
  if (rc < 0) return rc;
  if (!still) {
    unit_drop(d, u);
    return 0;
  }
  table_remove(&d->away, u);
  u->away = false;
  rc = rename_unit(d, u, path, e);
  if (rc == 0) rc = enter(d, u, e);
  if (rc < 0) {
    unit_drop(d, u);
    return rc;
  }
  u->step = m.step;
  u->numbered = m.numbered;
  u->above = rules_is_above(d->rules, rules_match(d->rules, path, u->kind == MATCH_DIR, &m));
  unit_wake(d, u, u->due);
  tell(d, u);
  return 0;
}

int unit_arrive_within(detect *d, node *n, err *e) {
  int rc = each_within(d, n, arrive_one, e);
  if (rc < 0) unit_drop_within(d, n);
  return rc;
}

/* --- what happens to a unit --- */

void unit_stir(detect *d, unit *u) {
  u->last = model_mono(d);
  if (u->state == DETECT_OPEN) unit_wake(d, u, u->last + d->rules->settled_ns);
}

static void touch(detect *d, unit *u) {
  u->touched = true;
  u->touches++;
  u->renamed = u->lived = false;
  /* A file that is written while no writer of ours lives is not proven by a close. */
  u->dead = d->dead;
  u->cause = "open";
  unit_set(d, u, DETECT_OPEN, "it is being written");
  unit_stir(d, u);
}

void unit_written(detect *d, unit *u, node *n) {
  bool first = n->begun_seq <= u->settle_seq;
  u->write_seq = n->seq = ++d->seq;
  if (first) n->begun_seq = n->seq;
  touch(d, u);
}

/* True if this child of its directory is a file of this group. `len`: of the group's name. */
static bool is_member(const unit *u, const node *c, size_t len) {
  return c->type == NODE_FILE && !c->unit && !c->excluded &&
         strncmp(c->name, unit_name(u), len) == 0 && c->name[len] == '.';
}

void unit_lost_file(detect *d, unit *u, const node *n) {
  bool dead = u->dead;
  u->shrink_seq = ++d->seq;
  if (n->old) u->remove_seq = d->seq;
  touch(d, u);
  /* A removal is no write: it proves nothing about the rest. */
  u->dead = dead || d->dead;
  if (u->kind != MATCH_GROUP) return;
  size_t len = strlen(unit_name(u));
  for (size_t i = 0; i < u->root->count; i++) {
    const node *c = u->root->children[i];
    if (c != n && is_member(u, c, len)) return;
  }
  unit_drop(d, u);
}

const char *unit_name(const unit *u) {
  const char *slash = strrchr(u->path, '/');
  return slash ? slash + 1 : u->path;
}

void unit_group(const unit *u, char *out) {
  const char *slash = strrchr(u->path, '/');
  snprintf(out, FS_PATH_MAX, "%.*s", slash ? (int)(slash - u->path) : 0, u->path);
}

static void walk_below(node *dir, node_fn *fn, void *ctx) {
  for (size_t i = 0; i < dir->count; i++) {
    node *c = dir->children[i];
    if (c->excluded) continue;
    fn(ctx, c);
    walk_below(c, fn, ctx);
  }
}

void unit_walk(const unit *u, node_fn *fn, void *ctx) {
  if (u->kind == MATCH_FILE) {
    fn(ctx, u->root);
    return;
  }
  size_t len = strlen(unit_name(u));
  for (size_t i = 0; i < u->root->count; i++) {
    node *c = u->root->children[i];
    bool part = u->kind == MATCH_DIR ? !rules_is_contents(c->name) : is_member(u, c, len);
    if (!part || c->excluded) continue;
    fn(ctx, c);
    if (u->kind == MATCH_DIR) walk_below(c, fn, ctx);
  }
}

int unit_file_name(const unit *u, const node *n, char *out, err *e) {
  char path[FS_PATH_MAX];
  if (u->kind != MATCH_DIR) { /* the part of a group's names behind the stem */
    size_t skip = u->kind == MATCH_GROUP ? strlen(unit_name(u)) : 0;
    snprintf(out, FS_PATH_MAX, "%s", n->name + skip);
    return 0;
  }
  int rc = node_path(n, path, e);
  if (rc == 0) snprintf(out, FS_PATH_MAX, "%s", path + strlen(u->path) + 1);
  return rc;
}
