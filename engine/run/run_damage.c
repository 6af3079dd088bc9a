/* run_damage: handles a commit that cannot be restored, although the store answers: its data is not
 * as it was saved. */
#include <stdio.h>

#include "base/vec.h"
#include "run/run_prepare.h"
#include "prims/match_series.h"

/* True if the data is damaged. A store that does not answer, or does not let us in, says nothing
 * about the data. */
bool prepare_is_damage(int rc) {
  return rc == ERR_CORRUPT || rc == ERR_FORMAT;
}

bool prepare_is_damaged(const struct prepare *p, const run_group *g, const runlog_commit *c) {
  for (size_t i = 0; i < p->damaged_count; i++)
    if (p->damaged[i].group == g && p->damaged[i].commit == c->n) return true;
  return false;
}

const runlog_commit *prepare_other(const struct prepare *p, const run_group *g,
                                   const runlog_commit *than) {
  const runlog_state *state = runlog_view(g->group.log);
  for (size_t i = state->commit_count; i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c != than && c->life == RUNLOG_LIVE && !c->bad && !prepare_is_damaged(p, g, c) &&
        match_same_series(c->unit, than->unit))
      return c;
  }
  return NULL;
}

const char *prepare_age(const runlog_commit *c, const runlog_commit *than) {
  return c->n < than->n ? "an OLDER one" : "a newer one";
}

/* Marks the commit. A user who may not write still restores: then it is passed over each time. */
static void mark(run_group *g, uint64_t commit, const char *reason, const log_sink *log) {
  err why = {0};
  char text[RUNLOG_REASON_MAX];
  snprintf(text, sizeof text, "%.*s", RUNLOG_REASON_MAX - 1, reason);
  if (runlog_mark(g->group.log, commit, true, text, &why) < 0)
    log_say(log, LOG_WARN, "it could not be marked bad: %s", why.text);
  run_group_note_newest(g);
}

bool prepare_leave_out(struct prepare *p, const run_group *g, const runlog_commit *c) {
  if (!VEC_ROOM(p->damaged, p->damaged_count, p->damaged_room)) return false;
  p->damaged[p->damaged_count++] = (struct damaged){g, c->n};
  return true;
}

bool prepare_pass_over(struct prepare *p, run_group *g, const runlog_commit *c, const err *why) {
  const log_sink *log = p->run->env->log;
  const runlog_commit *next = prepare_other(p, g, c);
  if (!next || !VEC_ROOM(p->damaged, p->damaged_count, p->damaged_room)) return false;
  p->damaged[p->damaged_count++] = (struct damaged){g, c->n};
  log_say(log, LOG_ERROR,
          "%s CANNOT BE RESTORED: %s. It is marked bad (`mark` good takes that back), and %s, "
          "%s, is taken",
          c->unit, why->text, next->unit, prepare_age(next, c));
  mark(g, c->n, why->text, log);
  run_lost_pass_over(g, c->n);
  return true;
}
