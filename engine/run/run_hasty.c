/* run_hasty: a checkpoint that is written again, or removed, before its rest is over is never saved,
 * however long the job runs. That is said once: silence would be found out at a restore. */
#include <stdio.h>
#include <string.h>

#include "run/run_state.h"

/* A file may be opened again to be finished, once or twice. Files of a directory are written one after the
 * other, and a listing does not tell who rests: of those no save should take so many times the rest. */
enum { OFTEN = 3, LONG = 10 };

static bool rests(const detect_unit *u) {
  return u->state == DETECT_OPEN && u->cause && strcmp(u->cause, "not-quiet") == 0;
}

static void say(run *r, const run_unit *u, const char *what, const char *rule) {
  if (r->hasty_said || r->writer_gone || r->preempted) return;
  r->hasty_said = true;
  log_say(
      r->env->log, LOG_WARN,
      "%s was %s before it was proven to be complete (%s): it is not saved while that goes on, "
      "and what is replaced so soon is never saved. A shorter rest (`settle`), a marker that is "
      "written last, or a policy that says when it is complete helps",
      u->path, what, rule);
}

static void look(run *r, run_unit *u) {
  detect_unit now;
  if (u->phase != UNIT_SETTLING) {
    u->hasty = 0;
    u->rested_at = u->first_rest_at = 0;
    return;
  }
  if (!detect_find(r->detect, u->path, &now) || !rests(&now)) return;
  if (!u->first_rest_at) u->first_rest_at = now.stirred_at;
  u->hasty += u->rested_at && u->rested_at != now.stirred_at;
  u->rested_at = now.stirred_at;
  if (u->hasty < OFTEN) return;
  if (u->kind == MATCH_FILE && !detect_polling(r->detect))
    say(r, u, "written again, each time", now.reason);
  else if (now.stirred_at - u->first_rest_at > LONG * r->rules->quiet_ns)
    say(r, u, "changed again and again", now.reason);
}

void run_hasty_look(run *r) {
  for (size_t i = 0; r->detect && !r->hasty_said && i < r->unit_count; i++) look(r, r->units[i]);
}

void run_hasty_gone(run *r, const run_unit *u, const detect_unit *facts) {
  bool rested = facts->cause && strcmp(facts->cause, "not-quiet") == 0;
  if (u->phase == UNIT_SETTLING && rested && !facts->aside) say(r, u, "removed", u->reason);
}
