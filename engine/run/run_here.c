#include <fcntl.h>
#include <stdio.h>
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

static bool stands(const run *r, const char *path) {
  char full[FS_PATH_MAX];
  struct stat st;
  if (fs_join(full, r->places.dir, path, NULL) < 0) return false;
  return r->env->io->lstat(r->env->io, AT_FDCWD, full, &st) >= 0;
}

/* True if this content was a checkpoint further up, and is not there any more. Hard links of one that
 * still stands are a copy. */
static bool was_further_up(const run *r, const detect_unit *facts) {
  char up[FS_PATH_MAX], path[FS_PATH_MAX];
  snprintf(up, sizeof up, "%s", facts->group);
  for (bool top = !*up; !top;) {
    fs_parent(up, path);
    snprintf(up, sizeof up, "%s", strcmp(path, ".") ? path : "");
    top = !*up;
    if (fs_join(path, up, facts->name, NULL) < 0) return false;
    journal_unit known = journal_find(r->journal, path);
    if (known.state != JOURNAL_UNKNOWN && digest_equal(&known.fingerprint, &facts->fingerprint))
      return !stands(r, path);
  }
  return false;
}

bool run_is_aside(const run *r, const detect_unit *facts) {
  journal_unit known = journal_find(r->journal, facts->path);
  if (facts->fingerprint.len == 0 || facts->state == DETECT_GONE) return false;
  if (known.state == JOURNAL_ASIDE && digest_equal(&known.fingerprint, &facts->fingerprint))
    return true;
  return known.state == JOURNAL_UNKNOWN && was_further_up(r, facts);
}

int run_note_aside(run *r, const char *path, const digest *fingerprint, err *e) {
  if (fingerprint->len == 0 || journal_find(r->journal, path).state == JOURNAL_ASIDE) return 0;
  log_say(r->env->log, LOG_INFO, "%s is no checkpoint: one was deleted by moving it there", path);
  return journal_note(r->journal, path, JOURNAL_ASIDE, fingerprint, NULL, e);
}

/* Frameworks empty their bins: what is gone from there needs no record. */
static int forget_aside(run *r, err *e) {
  int rc = 0;
  for (size_t i = journal_count(r->journal); rc == 0 && i-- > 0;) {
    journal_unit u = journal_at(r->journal, i);
    if (u.state == JOURNAL_ASIDE && !stands(r, u.path)) {
      char path[FS_PATH_MAX];
      snprintf(path, sizeof path, "%s", u.path);
      rc = journal_forget(r->journal, path, e);
    }
  }
  return rc;
}

int run_judge_journal(run *r, err *e) {
  int rc = forget_aside(r, e);
  return rc < 0 ? rc : journal_keep_here(r->journal, is_here, r, e);
}
