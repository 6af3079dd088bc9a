#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "catalog/catalog.h"
#include "commit/lease.h"
#include "plan/retention.h"
#include "run/run_state.h"
#include "prims/fs.h"

void run_group_note_newest(run_group *g) {
  const runlog_state *state = g->group.log ? runlog_view(g->group.log) : NULL;
  const runlog_commit *c = state ? runlog_newest(state, NULL) : NULL;
  g->commits = 0;
  for (size_t i = 0; c && i < state->commit_count; i++)
    g->commits += state->commits[i].life == RUNLOG_LIVE && !state->commits[i].above;
  if (state) g->needs_unknown = !retention_listed(state, &g->needed);
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

typedef struct part { /* of a path */
  const char *at;
  size_t len;
} part;

static int compare(const void *key, const void *item) {
  const part *p = key;
  const char *dir = *(char *const *)item;
  int order = strncmp(p->at, dir, p->len);
  return order == 0 && dir[p->len] ? -1 : order;
}

static size_t dir_place(const run *r, const char *path, size_t len, bool *there) {
  return vec_place(&(part){path, len}, (const void *)r->dirs.at, r->dirs.count, sizeof(char *),
                   compare, there);
}

int run_dir_note(run *r, const char *path, err *e) {
  bool there;
  size_t at = dir_place(r, path, strlen(path), &there);
  if (there || names_insert(&r->dirs, at, path)) return 0;
  return err_set(e, ERR_NOMEM, "%s: out of memory", path);
}

bool run_dir_inside(const run *r, const char *path) {
  bool there = false;
  for (const char *at = path; !there && r->dirs.count && (at = strchr(at, '/')); at++)
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

static int take_path(run *r, names *known, const char *path, err *e) {
  if (run_dir_inside(r, path) || names_add(known, path)) return 0;
  return err_set(e, ERR_NOMEM, "list what is known: out of memory");
}

int run_known_paths(run *r, names *out, err *e) {
  char path[FS_PATH_MAX];
  int rc = 0;
  *out = (names){0};
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
    if (journal_at(r->journal, i).state != JOURNAL_ASIDE)
      rc = take_path(r, out, journal_at(r->journal, i).path, e);
  if (rc < 0) names_free(out);
  return rc;
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
  run_group *g = vec_grow((void *)&r->groups, r->group_count, &r->group_room, sizeof(void *))
                     ? calloc(1, sizeof *g)
                     : NULL;
  if (!g) return err_set(e, ERR_NOMEM, "open group %s: out of memory", prefix);
  int rc = group_open(&r->group_env, prefix, &g->group, e);
  if (rc < 0) {
    free(g);
    return rc;
  }
  g->term = g->resumed = RUNLOG_NONE;
  g->keep_at = g->thin.at = INT64_MAX;
  g->thin.left = true; /* by an earlier run */
  r->groups[r->group_count++] = g;
  run_record_group(r, g);
  *out = g;
  return 0;
}

void run_group_note_log(run *r, run_group *g, const runlog_ref *newest) {
  const runlog_commit *c = newest ? NULL : runlog_newest_ever(runlog_view(g->group.log), NULL);
  runlog_ref found;
  err why = {0};
  if (c && runlog_ref_of(g->group.log, c->n, &found, &why) == 0) newest = &found;
  if (newest &&
      journal_note_log(r->journal, r->places.target_text, g->group.prefix, newest, &why) < 0)
    log_say(r->env->log, LOG_WARN, "%s", why.text);
}

int run_group_begin(run_group *g, err *e) {
  int rc = group_begin(&g->group, e);
  if (rc < 0) return rc;
  g->term = runlog_view(g->group.log)->term.n;
  g->keep_asked = true;
  run_group_note_newest(g);
  return 0;
}

/* ---- whose they are ---- */

void run_group_note_writer(run_group *g) {
  if (runlog_view(g->group.log)->term.n == RUNLOG_NONE || g->before) return;
  g->before = malloc(sizeof *g->before); /* without memory it is not known to be ours */
  if (g->before) *g->before = runlog_view(g->group.log)->term.writer;
}

bool run_group_is_held(const run_group *g) {
  if (!g->foreign || !g->group.log) return false;
  const runlog_state *state = runlog_view(g->group.log);
  for (size_t i = 0; i < state->commit_count; i++)
    if (state->commits[i].life == RUNLOG_LIVE && !state->commits[i].bad) return true;
  return false;
}

bool run_groups_held(const run *r) {
  bool some = false;
  for (size_t i = 0; i < r->group_count; i++) some = some || run_group_is_held(r->groups[i]);
  return some && !r->beside && !run_follows(r);
}

static int on_log(void *ctx, runlog *log, err *e) {
  run_group *ignored;
  return run_group_get(ctx, runlog_prefix(log), &ignored, e);
}

/* Trials of one experiment may run on several hosts with one target: a group that another writer
 * holds is his, unless it is the place where our own units would go. */
static int follow(run_group *g, err *e) {
  int rc = group_begin(&g->group, e);
  if (rc == 0 && g->group.term) g->term = g->group.term;
  /* A group that rank 0 has not begun by now is another writer's, or new. */
  g->foreign = rc == 0 && !g->group.term && *runlog_view(g->group.log)->run_id;
  return rc;
}

/* A new log is not to be begun where only the old one is lost: `repair` would find this one, and the
 * checkpoints in no log at all. */
static int check_remains(const run *r, err *e) {
  enum { LOOKED_AT = 16 }; /* a new job in a bucket of many others is not to wait for long */
  err why = {0};
  int rc = catalog_check_remains(r->store, r->places.target_text, LOOKED_AT, &why);
  if (rc == 0 || rc == ERR_NOENT || rc == ERR_NOSTORE) return 0;
  return err_set(e, rc, "%s%s", why.text,
                 rc == ERR_CORRUPT ? "; a job that is to begin anew needs another target" : "");
}

static int claim(run *r, run_group *g, err *e) {
  int rc = group_read(&g->group, e);
  if (rc == 0) rc = note_dirs(r, g, e);
  if (rc == 0) rc = run_memory_load(r, g, e);
  if (rc < 0) return rc;
  run_group_note_newest(g);
  run_keep_list(r, g);
  g->saved_ns = g->newest_time_ns; /* a restart changes no decision */
  if (run_follows(r)) return follow(g, e);
  const runlog_state *state = runlog_view(g->group.log);
  bool root = *g->group.prefix == 0;
  if (!*state->run_id && !(root && r->group_count == 1)) return 0; /* begun when it is needed */
  if (!*state->run_id) rc = check_remains(r, e);
  if (rc < 0) return rc;
  err why = {0};
  bool foreign = !root || (state->commit_count == 0 && r->group_count > 1);
  run_group_note_writer(g);
  run_leases_may_wait(r, !foreign);
  rc = group_may_begin(&g->group, &why);
  if (rc == ERR_HELD && foreign) {
    log_say(r->env->log, LOG_INFO, "group \"%s\" is another writer's: %s", g->group.prefix,
            why.text);
    g->foreign = true;
    return 0;
  }
  if (rc < 0 && e) *e = why;
  g->ours = rc == 0;
  return rc;
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

/* Says once that the flags are others, and what follows from it. */
static void say_flags(const run *r) {
  for (size_t i = 0; i < r->group_count; i++) {
    const run_group *g = r->groups[i];
    const runlog_state *st = g->group.log ? runlog_view(g->group.log) : NULL;
    if (!st || g->foreign || !g->group.term || st->flags_since != g->group.term ||
        !runlog_newest(st, NULL))
      continue;
    log_say(r->env->log, LOG_WARN,
            "the job's flags are not those of its last start: it goes on, and what was saved "
            "before is kept, whatever the policy says, until `continue_run` or `run_id` %s is "
            "given once",
            st->run_id);
    return;
  }
}

static int begin_claimed(run *r, run_group *g, err *e) {
  if (!g->ours || g->term != RUNLOG_NONE) return 0;
  const bool pushes = r->group_env.take_over;
  r->group_env.take_over = pushes || g->over;
  int rc = run_group_begin(g, e);
  r->group_env.take_over = pushes;
  if (rc == 0) run_group_note_log(r, g, NULL);
  return rc;
}

int run_groups_begin(run *r, err *e) {
  int64_t renewed_at = r->env->io->now(r->env->io, IO_MONO);
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < r->group_count; i++) {
    rc = begin_claimed(r, r->groups[i], e);
    renew_claimed(r, &renewed_at);
  }
  if (rc == 0) say_flags(r);
  return rc;
}

int run_groups_open(run *r, err *e) {
  run_group *root;
  int rc = run_group_get(r, "", &root, e);
  if (rc == 0 && r->store->ops->exists(r->store, NULL) == 0)
    rc = runlog_groups(r->store, "", on_log, r, e);
  for (size_t i = 0; rc == 0 && i < r->group_count; i++) rc = claim(r, r->groups[i], e);
  /* Where some are held, run_held_settle() says whether this run may begin at all. */
  return rc < 0 || run_groups_held(r) ? rc : run_groups_begin(r, e);
}

void run_groups_close(run *r) {
  for (size_t i = 0; i < r->group_count; i++) {
    group_close(&r->groups[i]->group);
    free(r->groups[i]->newest_unit);
    names_free(&r->groups[i]->needed);
    free(r->groups[i]->memory);
    free(r->groups[i]->before);
    run_keep_close(r->groups[i]);
    run_above_free(r->groups[i]);
    run_results_close(r->groups[i]);
    run_lost_free(r->groups[i]);
    free(r->groups[i]);
  }
  names_free(&r->dirs);
  free(r->groups);
  r->groups = NULL;
  r->group_count = r->group_room = 0;
}
