#include "detect_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

int model_absolute(const detect *d, const char *path, char *out, err *e) {
  return fs_join(out, d->root, path, e);
}

/* Deeper than this the recursion of a listing would eat the stack. A save follows 64 levels below
 * its unit; the unit itself may lie some levels down. */
enum { LEVELS_MAX = 128 };

/* True if no call can name what is here, or it lies too deep. */
static bool out_of_reach(const detect *d, const node *n) {
  size_t levels = 0, len = strlen(d->root);
  for (; n->parent; n = n->parent, levels++) len += 1 + strlen(n->name);
  return levels > LEVELS_MAX || len >= FS_PATH_MAX;
}

void model_say_far(detect *d, const char *path) {
  if (d->far_said) return;
  d->far_said = true;
  log_say(
      d->log, LOG_WARN,
      "not looked at in %s: what has a path of more than %d bytes or %d levels, as below %.200s",
      d->root, FS_PATH_MAX - 1, LEVELS_MAX, path);
}

static void say_far(detect *d, const node *n) {
  char path[FS_PATH_MAX];
  if (node_path(n->parent, path, NULL) < 0)
    return; /* it was said already, of this one or of one
                                                     * above it */
  model_say_far(d, path);
}

/* True for what was a unit and lies further below the directory in which it was one: frameworks
 * delete by such a rename (Orbax's todelete_subdir), and deleted things are no new checkpoints. What
 * was moved into another unit is a part of that. */
static bool is_set_aside(const node *n, const char *path) {
  size_t len = n->home ? strlen(n->home) : 0;
  if (!n->home || strncmp(path, n->home, len) != 0 || (len && path[len] != '/')) return false;
  for (const node *p = n->parent; p; p = p->parent)
    if (p->unit) return false;
  return strchr(path + len + (len > 0), '/') != NULL;
}

static bool is_excluded(const detect *d, const node *n) {
  char path[FS_PATH_MAX];
  if (!n->parent) return false;
  if (out_of_reach(d, n) || node_path(n, path, NULL) < 0) return true;
  if (is_set_aside(n, path)) return true;
  return rules_excluded(d->rules, path, n->type == NODE_DIR);
}

/* True if it was in its unit before a marker was. */
static bool is_behind_marker(const detect *d, const node *n) {
  const unit *u = unit_of(d, n);
  if (!u || u->kind != MATCH_DIR) return false;
  for (size_t i = 0; i < u->root->count; i++) {
    const node *c = u->root->children[i];
    if (c != n && c->seq > n->seq && rules_is_marker(d->rules, c->name)) return true;
  }
  return false;
}

void model_prove(detect *d, node *n, node_evidence evidence) {
  /* A close after the writer's death was the kernel's. */
  bool void_ = d->dead && (evidence == NODE_CLOSED || evidence == NODE_SEEN);
  bool was_still = n->evidence != NODE_OPEN && n->known && n->parent && n->seq > 0;
  bool writes = evidence == NODE_OPEN || evidence == NODE_SEEN;
  if (!n->again && !n->old && was_still && writes) n->again = is_behind_marker(d, n);
  n->evidence = (uint8_t)(void_ ? NODE_UNPROVEN : evidence);
  if (writes) n->moved = false;
}

/* Counts a file that nobody would save. */
static void count_unmatched(detect *d, node *n) {
  char path[FS_PATH_MAX];
  if (n->type != NODE_FILE || n->counted) return;
  n->counted = true;
  d->unmatched++;
  if (!d->example && node_path(n, path, NULL) == 0) d->example = strdup(path);
}

void model_note(detect *d, node *n) {
  if (n->excluded) {
    /* A file under a temporary name is no part of its unit, but shows that somebody is at work. */
    node *p = n->parent;
    while (p && !p->unit) p = p->parent;
    if (p) unit_stir(d, p->unit);
    return;
  }
  unit *u = unit_of(d, n);
  if (u && (n->type != NODE_DIR || u->root != n))
    unit_written(d, u, n);
  else if (!u)
    count_unmatched(d, n);
}

/* A marker makes its directory a unit. */
static int promote_parent(detect *d, node *n, err *e) {
  node *dir = n->parent;
  if (n->type != NODE_FILE || n->excluded || !rules_is_marker(d->rules, n->name)) return 0;
  return dir->unit ? 0 : unit_promote(d, dir, e);
}

int model_add(detect *d, node *dir, const char *name, const struct stat *st, node_evidence evidence,
              err *e) {
  node *n = node_new(name, strlen(name), st ? node_type_of(st->st_mode) : NODE_FILE);
  if (!n) return err_set(e, ERR_NOMEM, "watch: out of memory");
  int rc = node_attach(dir, n, e);
  if (rc < 0) {
    node_free(n);
    return rc;
  }
  if (st) node_set(n, st);
  n->pass = d->pass;
  n->old = d->first;
  d->saw_file |= n->type == NODE_FILE;
  n->excluded = is_excluded(d, n);
  if (n->excluded && out_of_reach(d, n)) say_far(d, n);
  /* Links and directories are made in one step: no close is told for them. */
  model_prove(d, n, n->type == NODE_FILE ? evidence : NODE_CLOSED);
  rc = unit_classify(d, n, e);
  if (rc == 0) rc = promote_parent(d, n, e);
  if (rc == 0 && !d->first) model_note(d, n);
  return rc;
}

/* --- leaving and moving --- */

static int limbo_push(detect *d, node *n, uint32_t cookie, err *e) {
  if (!VEC_ROOM(d->limbo, d->limbo_count, d->limbo_room))
    return err_set(e, ERR_NOMEM, "watch: out of memory");
  d->limbo[d->limbo_count++] = (limbo){.n = n, .cookie = cookie, .since = model_mono(d)};
  return 0;
}

int limbo_doubt(detect *d, uint32_t cookie, err *e) {
  return limbo_push(d, NULL, cookie, e);
}

/* True if it was a checkpoint already: one that is still written may be published by a rename. */
static bool was_whole(const unit *u, const node *n) {
  return u->settle_seq > 0 || u->state != DETECT_OPEN || u->renamed || n->old;
}

/* Notes where it was a unit, so that it is known when it turns up again. */
static int note_home(const unit *u, node *n, err *e) {
  char group[FS_PATH_MAX];
  bool own = u && (u->root == n || u->kind == MATCH_GROUP);
  if (!own || n->excluded || !was_whole(u, n)) return 0;
  unit_group(u, group);
  free(n->home);
  n->home = strdup(group);
  return n->home ? 0 : err_set(e, ERR_NOMEM, "watch: out of memory");
}

int model_leave(detect *d, node *n, uint32_t cookie, err *e) {
  unit *u = unit_of(d, n);
  int rc = note_home(u, n, e);
  if (rc == 0) rc = limbo_push(d, n, cookie, e);
  if (rc < 0) return rc;
  node_detach(n);
  if (u && n->excluded)
    unit_stir(d, u);
  else if (u && u->root != n)
    unit_lost_file(d, u, n);
  rc = unit_leave_within(d, n, e);
  if (rc < 0) limbo_drop(d, d->limbo_count - 1);
  return rc;
}

node *limbo_take(detect *d, size_t at) {
  node *n = d->limbo[at].n;
  d->limbo_count--;
  memmove(d->limbo + at, d->limbo + at + 1, (d->limbo_count - at) * sizeof *d->limbo);
  return n;
}

/* Frees a detached node, and the units in it. */
static void let_go(detect *d, node *n) {
  if (!n) return;
  unit_drop_within(d, n);
  node_free(n);
}

void limbo_drop(detect *d, size_t at) {
  let_go(d, limbo_take(d, at));
}

int model_remove(detect *d, node *n, err *e) {
  int rc = model_leave(d, n, 0, e);
  /* While everything is listed it may turn up again under another name. */
  if (rc == 0 && !d->index) limbo_drop(d, d->limbo_count - 1);
  return rc;
}

typedef struct proof {
  bool unproven;
} proof;

static void look_for_unproven(void *ctx, node *n) {
  proof *p = ctx;
  if (n->type == NODE_FILE && n->evidence == NODE_UNPROVEN) p->unproven = true;
}

/* A unit that was in doubt is not proven by getting another name. */
static bool in_doubt(const unit *u) {
  proof p = {false};
  if (u->state == DETECT_UNPROVEN || u->state == DETECT_BROKEN || u->dead) return true;
  unit_walk(u, look_for_unproven, &p);
  return p.unproven;
}

static void drop_children(detect *d, node *n) {
  /* While everything is listed the index points at them; they do no harm. */
  while (!d->index && n->count > 0) {
    node *c = n->children[n->count - 1];
    node_detach(c);
    let_go(d, c);
  }
}

/* Checks anew whether it is excluded, which depends on the whole path. True if something is out of
 * reach by now. */
static bool recheck(detect *d, node *n) {
  bool far = out_of_reach(d, n);
  n->excluded = far || is_excluded(d, n);
  if (far) say_far(d, n);
  for (size_t i = 0; i < n->count; i++) far = recheck(d, n->children[i]) || far;
  return far;
}

void model_clear(detect *d) {
  while (d->all.count > 0) unit_drop(d, d->all.at[d->all.count - 1]);
  while (d->limbo_count > 0) limbo_drop(d, d->limbo_count - 1);
  drop_children(d, d->top);
}

bool model_state_named(const node *dir) {
  static const char ending[] = ".ckpt";
  size_t len = strlen(dir->name), tail = sizeof ending - 1;
  return dir->parent && len > tail && strcmp(dir->name + len - tail, ending) == 0;
}

void model_uncount(void *ctx, node *n) {
  detect *d = ctx;
  if (!n->counted) return;
  n->counted = false;
  d->unmatched--;
  free(d->example);
  d->example = NULL;
}

void model_exclude_state(detect *d, node *dir) {
  if (dir->excluded) return;
  unit_drop_within(d, dir);
  node_walk(dir, model_uncount, d);
  dir->excluded = true;
  drop_children(d, dir);
}

/* Removes the entry that stood under the new name; a unit that was there lives on in the new
 * node. */
static int replace(detect *d, node *there, node *n, err *e) {
  unit *u = there->unit;
  if (u && there->type == n->type) {
    if (n->unit) unit_drop(d, n->unit);
    unit_take_root(u, n);
  }
  return model_remove(d, there, e);
}

static int settle_names(detect *d, node *n, err *e) {
  /* A node whose path got too long has no name to live on under; the others are found anew. */
  if (recheck(d, n) || n->excluded) {
    if (n->unit) unit_set_aside(n->unit, n);
    unit_drop_within(d, n);
  }
  if (n->excluded) {
    drop_children(d, n);
    return 0;
  }
  /* A directory that becomes a unit by its new name covers what was one below its old name. */
  int rc = n->unit ? 0 : unit_classify(d, n, e);
  if (rc == 0) rc = unit_arrive_within(d, n, e);
  if (rc == 0) rc = unit_classify(d, n, e);
  if (rc == 0 && unit_of(d, n)) node_walk(n, model_uncount, d);
  return rc;
}

/* Takes the rename as a proof: it got its name in one step. */
static int proven_by_move(detect *d, node *n, bool doubt, bool was_temporary, err *e) {
  int rc = 0;
  if (n->excluded) return 0;
  /* safetensors renames before it closes: a single file is whole by then, but in a directory the
   * writer has not yet come to the next one. */
  unit *u = unit_of(d, n);
  bool still_open = (n->evidence == NODE_OPEN || n->evidence == NODE_SEEN) && u && u->root != n;
  if (n->type == NODE_FILE && (n->evidence != NODE_UNPROVEN || was_temporary) && !doubt &&
      !still_open) {
    n->evidence = NODE_CLOSED;
    n->moved = true;
  }
  if (n->type == NODE_DIR && !n->unit) rc = unit_promote(d, n, e);
  if (rc == 0) rc = promote_parent(d, n, e);
  if (rc < 0) return rc;
  if (n->unit) {
    unit_written(d, n->unit, n);
    n->unit->renamed = !doubt;
    if (!doubt) n->unit->dead = false;
  } else {
    model_note(d, n);
  }
  return 0;
}

int model_move(detect *d, node *n, bool fresh, node *dir, const char *name, const struct stat *st,
               err *e) {
  int rc = 0;
  bool doubt = n->unit && in_doubt(n->unit), was_temporary = n->excluded || fresh;
  node *there = node_child(dir, name, strlen(name));
  /* A listing may have found it here before its arrival was told. */
  if (there && st && there->home && !n->home && node_is(there, st)) {
    n->home = there->home;
    there->home = NULL;
  }
  if (there && !there->old) n->again = is_behind_marker(d, there);
  if (there) rc = replace(d, there, n, e);
  if (rc == 0) rc = node_rename(n, name, e);
  if (rc == 0) rc = node_attach(dir, n, e);
  if (rc < 0) {
    let_go(d, n);
    return rc;
  }
  /* A file that was in doubt has other bytes by now; or it is another file that got the same
   * inode. */
  bool altered = st && n->known && n->type == NODE_FILE && !node_same(n, st);
  if (altered && n->evidence == NODE_UNPROVEN) model_prove(d, n, NODE_SEEN);
  if (st) node_set(n, st);
  n->pass = d->pass;
  rc = settle_names(d, n, e);
  return rc == 0 ? proven_by_move(d, n, doubt, was_temporary, e) : rc;
}
