#include <string.h>

#include "run/run_state.h"
#include "prims/fs.h"
#include "prims/match_series.h"

const runlog_commit *run_no_longer_kept(const runlog_state *state, const char *name) {
  const runlog_commit *c = runlog_newest_ever(state, name);
  for (size_t i = state->commit_count; c && i-- > 0 && state->commits[i].n > c->n;)
    if (state->commits[i].life == RUNLOG_LIVE && match_same_series(state->commits[i].unit, name))
      return c;
  return NULL;
}

/* True if a commit, even if dropped or deleted, needs no new save, since something newer took its
 * place. */
static bool still_counts(const runlog_state *state, const runlog_commit *c) {
  if (c->n < state->since) return false; /* the run that had it was removed */
  return c->life == RUNLOG_LIVE || runlog_newest(state, c->unit) ||
         run_no_longer_kept(state, c->unit);
}

static int is_here(void *ctx, const journal_unit *u, err *e) {
  const run *r = ctx;
  char prefix[FS_PATH_MAX];
  fs_parent(u->path, prefix);
  if (strcmp(prefix, ".") == 0) *prefix = 0;
  const run_group *g = run_group_find(r, prefix);
  const runlog_commit *c = NULL;
  if (r->anyway) { /* no group below the top is known yet */
    const runlog_ref *log = run_anyway_log(r, prefix);
    return log && strcmp(log->log, u->commit.log) == 0;
  }
  if (!g || !g->group.log) return 0;
  int rc = runlog_ref_find(g->group.log, &u->commit, &c, e);
  if (rc < 0) return rc;
  if (c && r->ranks.world < 2 && run_is_lost(g, c->n)) return 0;
  return c && strcmp(c->unit, fs_base(u->path)) == 0 && still_counts(runlog_view(g->group.log), c);
}

int run_judge_journal(run *r, err *e) {
  return journal_keep_here(r->journal, is_here, r, e);
}
