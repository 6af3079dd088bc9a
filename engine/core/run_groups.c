#include <stdlib.h>
#include <string.h>

#include "core/run_state.h"
#include "prims/fs.h"

void run_group_note_newest(run_group *g) {
  const runlog_commit *c = g->group.log ? runlog_newest(runlog_view(g->group.log), NULL) : NULL;
  if (!c) return;
  char path[FS_PATH_MAX], *copy;
  if (fs_join(path, g->group.prefix, c->unit, NULL) < 0 || !(copy = strdup(path)))
    return; /* it is only for display */
  free(g->newest_unit);
  g->newest_unit = copy;
  g->newest_step = c->step;
  g->newest_time_ns = c->time_ns;
}

int run_group_get(run *r, const char *prefix, run_group **out, err *e) {
  for (size_t i = 0; i < r->group_count; i++)
    if (strcmp(r->groups[i]->group.prefix, prefix) == 0) {
      *out = r->groups[i];
      return 0;
    }
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
  g->term = RUNLOG_NONE;
  groups[r->group_count++] = g;
  *out = g;
  return 0;
}

int run_group_begin(run_group *g, err *e) {
  int rc = group_begin(&g->group, e);
  if (rc < 0) return rc;
  g->term = runlog_view(g->group.log)->term.n;
  run_group_note_newest(g);
  return 0;
}

static int on_prefix(void *ctx, const char *prefix, err *e) {
  run_group *ignored;
  return run_group_get(ctx, prefix, &ignored, e);
}

/* Trials of one experiment may run on several hosts with one target: a group that another writer
 * holds is his, unless it is the place where our own units would go. */
static int claim(run *r, run_group *g, err *e) {
  int rc = group_read(&g->group, e);
  if (rc < 0) return rc;
  run_group_note_newest(g);
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

int run_groups_open(run *r, err *e) {
  run_group *root;
  int rc = run_group_get(r, "", &root, e);
  if (rc == 0 && r->store->ops->exists(r->store, NULL) == 0)
    rc = runlog_groups(r->store, "", on_prefix, r, e);
  for (size_t i = 0; rc == 0 && i < r->group_count; i++) rc = claim(r, r->groups[i], e);
  return rc;
}

void run_groups_close(run *r) {
  for (size_t i = 0; i < r->group_count; i++) {
    group_close(&r->groups[i]->group);
    free(r->groups[i]->newest_unit);
    free(r->groups[i]);
  }
  free(r->groups);
  r->groups = NULL;
  r->group_count = 0;
}
