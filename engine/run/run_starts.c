/* run_starts: marks a checkpoint bad from which the job fails again and again, and takes the one
 * before it: a trainer that dies on a checkpoint that it loads would die on it for ever. */
#include <limits.h>
#include <stdio.h>

#include "run/run_prepare.h"
#include "run/start/starts.h"
#include "prims/match_series.h"

/* Returns the newest commit of a log, in whatever state it is. */
static uint64_t newest_of(const runlog_state *state) {
  return state->commit_count ? state->commits[state->commit_count - 1].n : RUNLOG_NONE;
}

/* Finds the remembered commit, if it is one of this log, nothing was committed since, and it may
 * still be chosen. */
static const runlog_commit *accused(const run_group *g, const starts *s, err *e) {
  const runlog_commit *c = NULL;
  if (!g || !g->group.log || g->foreign) return NULL;
  if (runlog_ref_find(g->group.log, &s->commit, &c, e) < 0) return NULL;
  const runlog_state *state = runlog_view(g->group.log);
  return c && c->life == RUNLOG_LIVE && !c->bad && newest_of(state) == s->newest ? c : NULL;
}

static bool has_older(const runlog_state *state, const runlog_commit *c) {
  for (size_t i = 0; i < state->commit_count && state->commits[i].n < c->n; i++)
    if (state->commits[i].life == RUNLOG_LIVE && !state->commits[i].bad &&
        match_same_series(state->commits[i].unit, c->unit))
      return true;
  return false;
}

/* Judges the starts. A memory that cannot be read is no reason not to start. */
void prepare_judge_starts(struct prepare *p) {
  run *r = p->run;
  starts s;
  err why = {0};
  char reason[80];
  if (r->bad_after == UINT_MAX || run_follows(r)) return;
  if (starts_read(r->env->io, r->places.state, &s, &why) < 0) {
    log_say(r->env->log, LOG_WARN, "failed starts are not counted: %s", why.text);
    return;
  }
  run_group *g = s.failed >= r->bad_after ? run_group_find(r, s.group) : NULL;
  const runlog_commit *c = accused(g, &s, &why);
  if (why.code < 0) log_say(r->env->log, LOG_WARN, "failed starts are not counted: %s", why.text);
  if (!c) return;
  const runlog_commit *next = prepare_other(p, g, c);
  if (!next || !has_older(runlog_view(g->group.log), c)) {
    log_say(r->env->log, LOG_WARN,
            "%u starts in a row from %s have failed; there is no older one to take instead",
            s.failed, c->unit);
    return;
  }
  snprintf(reason, sizeof reason, "%u starts in a row from it failed", s.failed);
  log_say(r->env->log, LOG_ERROR,
          "%u starts in a row from %s have FAILED without saving anything: it is marked bad "
          "(`mark` good takes that back), and %s, %s, is taken",
          s.failed, c->unit, next->unit, prepare_age(next, c));
  if (runlog_mark(g->group.log, c->n, true, reason, &why) < 0)
    log_say(r->env->log, LOG_WARN, "it could not be marked bad, and is taken once more: %s",
            why.text);
  run_group_note_newest(g);
}

int run_start_over(run *r, bool clean, bool outside, err *e) {
  starts known = {0}, now = {0};
  if (!r->resumed_group || r->bad_after == UINT_MAX) return 0;
  /* An end that came from outside tells nothing, neither good nor bad. */
  if (!clean && (outside || r->preempted || r->fenced)) return 0;
  const run_group *g = r->resumed_group;
  if (!clean) {
    snprintf(now.group, sizeof now.group, "%s", g->group.prefix);
    now.commit = r->resumed_commit;
    now.newest = r->resumed_newest;
    starts_read(r->env->io, r->places.state, &known, NULL); /* on failure the count begins anew */
    starts_count(&known, &now);
  }
  r->resumed_group = NULL;
  return starts_write(r->env->io, r->places.state, &known, e);
}

void prepare_note_start(struct prepare *p, run_group *g, uint64_t commit) {
  run *r = p->run;
  err why = {0};
  r->resumed_group = g;
  if (runlog_ref_of(g->group.log, commit, &r->resumed_commit, &why) < 0)
    log_say(r->env->log, LOG_WARN, "if this start fails, it is not counted: %s", why.text);
  r->resumed_newest = newest_of(runlog_view(g->group.log));
}
