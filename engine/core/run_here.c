#include <string.h>

#include "core/run_state.h"
#include "prims/fs.h"

const runlog_commit *run_no_longer_kept(const runlog_state *state, const char *name) {
  const runlog_commit *c = runlog_newest_ever(state, name);
  for (size_t i = state->commit_count; c && i-- > 0 && state->commits[i].n > c->n;)
    if (state->commits[i].life == RUNLOG_LIVE && detect_same_series(state->commits[i].unit, name))
      return c;
  return NULL;
}

/* Dropped or deleted, it still needs no save if something newer took its place. */
static bool still_counts(const runlog_state *state, const runlog_commit *c) {
  if (c->n < state->since) return false; /* the run that had it was removed */
  return c->life == RUNLOG_LIVE || runlog_newest(state, c->unit) ||
         run_no_longer_kept(state, c->unit);
}

static int is_here(void *ctx, const journal_unit *u, err *e) {
  const run *r = ctx;
  char prefix[FS_PATH_MAX];
  fs_parent(u->path, prefix);
  const run_group *g = run_group_find(r, strcmp(prefix, ".") == 0 ? "" : prefix);
  const runlog_commit *c = NULL;
  if (!g || !g->group.log) return 0;
  int rc = runlog_ref_find(g->group.log, &u->commit, &c, e);
  if (rc < 0) return rc;
  if (c && r->ranks.world < 2 && run_is_lost(g, c->n)) return 0;
  return c && strcmp(c->unit, fs_base(u->path)) == 0 && still_counts(runlog_view(g->group.log), c);
}

int run_judge_journal(run *r, err *e) {
  return journal_keep_here(r->journal, is_here, r, e);
}
