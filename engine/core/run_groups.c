#include <stdlib.h>
#include <string.h>

#include "core/lease.h"
#include "core/run_state.h"
#include "prims/fs.h"

void run_group_note_newest(run_group *g) {
  const runlog_state *state = g->group.log ? runlog_view(g->group.log) : NULL;
  const runlog_commit *c = state ? runlog_newest(state, NULL) : NULL;
  g->commits = 0;
  for (size_t i = 0; c && i < state->commit_count; i++)
    g->commits += state->commits[i].life == RUNLOG_LIVE;
  if (!c) return;
  char path[FS_PATH_MAX], *copy;
  if (fs_join(path, g->group.prefix, c->unit, NULL) < 0 || !(copy = strdup(path)))
    return; /* it is only for display */
  free(g->newest_unit);
  g->newest_unit = copy;
  g->newest_step = c->step;
  g->newest_time_ns = c->time_ns;
}

/* ---- what is committed as a directory ---- */

static size_t dir_place(const run *r, const char *path, size_t len, bool *there) {
  size_t low = 0, high = r->dir_count;
  *there = false;
  while (low < high) {
    size_t mid = (low + high) / 2;
    int order = strncmp(r->dirs[mid], path, len);
    if (order == 0 && r->dirs[mid][len]) order = 1;
    if (order == 0) {
      *there = true;
      return mid;
    }
    if (order < 0)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

static int add_copy(char ***names, size_t *count, size_t *room, size_t at, const char *path) {
  if (*count == *room) {
    size_t more = *room ? 2 * *room : 16;
    char **grown = realloc(*names, more * sizeof(char *));
    if (!grown) return ERR_NOMEM;
    *names = grown;
    *room = more;
  }
  char *copy = strdup(path);
  if (!copy) return ERR_NOMEM;
  memmove(*names + at + 1, *names + at, (*count - at) * sizeof(char *));
  (*names)[at] = copy;
  ++*count;
  return 0;
}

int run_dir_note(run *r, const char *path, err *e) {
  bool there;
  size_t at = dir_place(r, path, strlen(path), &there);
  if (there || add_copy(&r->dirs, &r->dir_count, &r->dir_room, at, path) == 0) return 0;
  return err_set(e, ERR_NOMEM, "%s: out of memory", path);
}

bool run_dir_inside(const run *r, const char *path) {
  bool there = false;
  for (const char *at = path; !there && r->dir_count && (at = strchr(at, '/')); at++)
    dir_place(r, path, (size_t)(at - path), &there);
  return there;
}

static int note_dirs(run *r, const run_group *g, err *e) {
  const runlog_state *state = runlog_view(g->group.log);
  char path[FS_PATH_MAX];
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < state->commit_count; i++) {
    if (state->commits[i].kind != MATCH_DIR) continue;
    rc = fs_join(path, g->group.prefix, state->commits[i].unit, e);
    if (rc == 0) rc = run_dir_note(r, path, e);
  }
  return rc;
}

static int take_path(run *r, run_paths *p, const char *path, err *e) {
  if (run_dir_inside(r, path)) return 0;
  int rc = add_copy(&p->names, &p->count, &p->room, p->count, path);
  return rc < 0 ? err_set(e, rc, "list what is known: out of memory") : 0;
}

int run_paths_take(run *r, run_paths *out, err *e) {
  char path[FS_PATH_MAX];
  int rc = 0;
  *out = (run_paths){0};
  for (size_t i = 0; rc == 0 && i < r->group_count; i++) {
    const run_group *g = r->groups[i];
    if (!g->group.log || g->foreign) continue;
    const runlog_state *state = runlog_view(g->group.log);
    for (size_t k = 0; rc == 0 && k < state->commit_count; k++) {
      rc = fs_join(path, g->group.prefix, state->commits[k].unit, e);
      if (rc == 0) rc = take_path(r, out, path, e);
    }
  }
  for (size_t i = 0; rc == 0 && i < journal_count(r->journal); i++)
    rc = take_path(r, out, journal_at(r->journal, i).path, e);
  if (rc < 0) run_paths_free(out);
  return rc;
}

void run_paths_free(run_paths *p) {
  for (size_t i = 0; i < p->count; i++) free(p->names[i]);
  free(p->names);
  *p = (run_paths){0};
}

/* ---- the groups ---- */

run_group *run_group_find(const run *r, const char *prefix) {
  for (size_t i = 0; i < r->group_count; i++)
    if (strcmp(r->groups[i]->group.prefix, prefix) == 0) return r->groups[i];
  return NULL;
}

int run_group_get(run *r, const char *prefix, run_group **out, err *e) {
  *out = run_group_find(r, prefix);
  if (*out) return 0;
  /* Its log would lie in the checkpoint's own directory at the target. */
  bool committed;
  dir_place(r, prefix, strlen(prefix), &committed);
  if (committed || run_dir_inside(r, prefix))
    return err_set(e, ERR_INVAL, "%s is (in) a committed checkpoint: nothing in it is one", prefix);
  run_group **groups = realloc(r->groups, (r->group_count + 1) * sizeof(run_group *));
  if (!groups) return err_set(e, ERR_NOMEM, "open group %s: out of memory", prefix);
  r->groups = groups;
  run_group *g = calloc(1, sizeof *g);
  if (!g) return err_set(e, ERR_NOMEM, "open group %s: out of memory", prefix);
  int rc = group_open(&r->group_env, prefix, &g->group, e);
  if (rc < 0) {
    free(g);
    return rc;
  }
  g->term = g->resumed = RUNLOG_NONE;
  g->keep_at = INT64_MAX;
  groups[r->group_count++] = g;
  *out = g;
  return 0;
}

int run_group_begin(run_group *g, err *e) {
  int rc = group_begin(&g->group, e);
  if (rc < 0) return rc;
  g->term = runlog_view(g->group.log)->term.n;
  g->keep_asked = true;
  run_group_note_newest(g);
  return 0;
}

static int on_prefix(void *ctx, const char *prefix, err *e) {
  run_group *ignored;
  return run_group_get(ctx, prefix, &ignored, e);
}

/* Trials of one experiment may run on several hosts with one target: a group that another writer
 * holds is his, unless it is the place where our own units would go. */
static int follow(run_group *g, err *e) {
  int rc = group_begin(&g->group, e);
  if (rc == 0 && g->group.term) g->term = g->group.term;
  /* What rank 0 has not begun by now is another writer's, or new. */
  g->foreign = rc == 0 && !g->group.term && *runlog_view(g->group.log)->run_id;
  return rc;
}

static int claim(run *r, run_group *g, err *e) {
  int rc = group_read(&g->group, e);
  if (rc == 0) rc = note_dirs(r, g, e);
  if (rc == 0) rc = run_memory_load(r, g, e);
  if (rc < 0) return rc;
  run_group_note_newest(g);
  g->saved_ns = g->newest_time_ns; /* a restart changes no decision */
  if (run_follows(r)) return follow(g, e);
  const runlog_state *state = runlog_view(g->group.log);
  bool root = *g->group.prefix == 0;
  if (!*state->run_id && !(root && r->group_count == 1)) return 0; /* begun when it is needed */
  err why = {0};
  rc = group_may_begin(&g->group, &why);
  if (rc == ERR_HELD && (!root || (state->commit_count == 0 && r->group_count > 1))) {
    log_say(r->env->log, LOG_INFO, "group \"%s\" is another writer's: %s", g->group.prefix,
            why.text);
    g->foreign = true;
    return 0;
  }
  if (rc < 0) {
    if (e) *e = why;
    return rc;
  }
  return run_group_begin(g, e);
}

int run_group_look(run *r, run_group *g, err *e) {
  int rc = group_look(&g->group, e);
  return rc < 0 ? rc : note_dirs(r, g, e);
}

/* To claim a thousand groups may last longer than a lease: those of the first ones go on. */
static void renew_claimed(run *r, int64_t *at) {
  const io *io = r->env->io;
  int64_t now = io->now(io, IO_MONO);
  if (now - *at < (int64_t)LEASE_RENEW_S * 1000000000) return;
  *at = now;
  for (size_t i = 0; i < r->group_count; i++) {
    run_group *g = r->groups[i];
    err why = {0};
    if (!run_follows(r) && g->term != RUNLOG_NONE && group_renew(&g->group, g->term, &why) < 0)
      log_say(r->env->log, LOG_WARN, "the lease could not be renewed: %s", why.text);
  }
}

int run_groups_open(run *r, err *e) {
  run_group *root;
  int rc = run_group_get(r, "", &root, e);
  if (rc == 0 && r->store->ops->exists(r->store, NULL) == 0)
    rc = runlog_groups(r->store, "", on_prefix, r, e);
  int64_t renewed_at = r->env->io->now(r->env->io, IO_MONO);
  for (size_t i = 0; rc == 0 && i < r->group_count; i++) {
    rc = claim(r, r->groups[i], e);
    renew_claimed(r, &renewed_at);
  }
  return rc;
}

void run_groups_close(run *r) {
  for (size_t i = 0; i < r->group_count; i++) {
    group_close(&r->groups[i]->group);
    free(r->groups[i]->newest_unit);
    free(r->groups[i]->memory);
    run_keep_close(r->groups[i]);
    run_lost_free(r->groups[i]);
    free(r->groups[i]);
  }
  for (size_t i = 0; i < r->dir_count; i++) free(r->dirs[i]);
  free(r->dirs);
  r->dirs = NULL;
  r->dir_count = r->dir_room = 0;
  free(r->groups);
  r->groups = NULL;
  r->group_count = 0;
}
