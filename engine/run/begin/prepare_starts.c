/* Marks a checkpoint bad from which the job fails again and again, and takes the one before it. */
#include <limits.h>
#include <stdio.h>

#include "run/begin/prepare.h"
#include "run/start/starts.h"
#include "prims/match_series.h"

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
  starts *s = &r->past;
  err why = {0};
  char reason[RUNLOG_REASON_MAX], line[160];
  if (r->bad_after == UINT_MAX || run_follows(r)) return;
  starts_free(s);
  if (starts_read(r->env->io, r->places.state, s, &why) < 0) {
    log_say(r->env->log, LOG_WARN, "failed starts are not counted: %s", why.text);
    return;
  }
  run_group *g = s->failed >= r->bad_after ? run_group_find(r, s->group) : NULL;
  const runlog_commit *c = g ? run_starts_accused(g, s, &why) : NULL;
  if (why.code < 0) log_say(r->env->log, LOG_WARN, "failed starts are not counted: %s", why.text);
  if (!c) return;
  const runlog_commit *next = prepare_other(p, g, c);
  if (!next || !has_older(runlog_view(g->group.log), c)) {
    log_say(r->env->log, LOG_WARN,
            "%u starts in a row from %s have failed; there is no older one to take instead",
            s->failed, c->unit);
    return;
  }
  starts_last_line(s->lines, line, sizeof line);
  snprintf(reason, sizeof reason, "%u starts in a row from it failed%s%s", s->failed,
           *line ? "; the job said last: " : "", line);
  log_say(r->env->log, LOG_ERROR,
          "%u starts in a row from %s have FAILED without saving anything: it is marked bad "
          "(`mark` good takes that back), and %s, %s, is taken",
          s->failed, c->unit, next->unit, prepare_age(next, c));
  if (runlog_mark_failed(g->group.log, c->n, reason, s->lines, &why) < 0)
    log_say(r->env->log, LOG_WARN, "it could not be marked bad, and is taken once more: %s",
            why.text);
  run_group_note_newest(g);
}
