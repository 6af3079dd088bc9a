#include "recover.h"

#include <stdlib.h>
#include <string.h>

#include "prims/match.h"

/* Finds the newest commit of a series; NULL: there is none. */
static const recover_commit *newest_of(const recover_commit *commits, size_t count,
                                       const char *series) {
  for (size_t i = count; i-- > 0;)
    if (strcmp(commits[i].series, series) == 0) return &commits[i];
  return NULL;
}

bool recover_is_newer(const recover_unit *u, const recover_commit *c) {
  const bool steps = u->step != MATCH_NO_STEP && c->step != MATCH_NO_STEP;
  if (u->made_ns == 0 || c->made_ns == 0) return steps && u->step > c->step;
  if (u->made_ns == c->made_ns) return steps && u->step > c->step;
  return u->made_ns > c->made_ns && (u->seen || !steps || u->step >= c->step);
}

/* Of one that is torn the times say nothing. */
static bool is_beyond(const recover_unit *u, const recover_commit *c) {
  return !c || (u->step != MATCH_NO_STEP && c->step != MATCH_NO_STEP && u->step > c->step);
}

bool recover_displaces(const recover_unit *u, const recover_commit *c) {
  return is_beyond(u, c) || (u->made_ns && c->made_ns && u->made_ns > c->made_ns);
}

bool recover_is_whole(recover_standing standing) {
  return standing == RECOVER_COMMITTED || standing == RECOVER_WHOLE;
}

/* True if the trainer will find the commit's own copy, or a proven newer unit. */
static bool served_locally(const recover_unit *units, size_t count, const recover_commit *c) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(units[i].series, c->series) != 0 || !recover_is_whole(units[i].standing)) continue;
    if (strcmp(units[i].name, c->unit) == 0) return true;
    /* A committed unit has its place in the log, and that is before `c`, whatever its step: when a
     * run has gone back, higher steps are older. */
    if (units[i].standing == RECOVER_WHOLE && recover_is_newer(&units[i], c)) return true;
  }
  return false;
}

/* Returns why `u`, one of the units, has to go, or NULL. `c`: the newest commit of its series, or
 * NULL. */
static const char *why_quarantine(const recover_unit *u, const recover_unit *units, size_t count,
                                  const recover_commit *c) {
  if (recover_is_whole(u->standing)) return NULL;
  if (u->standing == RECOVER_BAD) return "it is a checkpoint that was marked bad";
  bool alone = u->standing == RECOVER_ALONE, torn = u->standing == RECOVER_TORN;
  if (c && strcmp(c->unit, u->name) == 0 && !served_locally(units, count, c))
    return u->standing == RECOVER_PART ? "what this rank is to have of the commit is restored"
           : torn                      ? "it is torn, and a committed copy is restored"
           : alone                     ? "it is of no commit here, and a committed copy is restored"
           : u->standing == RECOVER_SUPERSEDED
               ? "a newer one was committed under its name, and is restored"
               : "nothing proves it whole, and a committed copy is restored";
  if (torn && u->above) return "it is torn, and is loaded whatever else is there";
  if (alone && recover_displaces(u, c))
    return c ? "it is of no commit here, and newer than the last one" : "it is of no commit here";
  if (!torn || !is_beyond(u, c)) return NULL;
  return c ? "it is torn, and newer than the last commit" : "it is torn, and none was committed";
}

int recover_plan_group(const recover_unit *units, size_t unit_count, const recover_commit *commits,
                       size_t commit_count, recover_plan *out, err *e) {
  size_t room = unit_count + commit_count;
  *out = (recover_plan){.actions = calloc(room ? room : 1, sizeof *out->actions)};
  if (!out->actions) return err_set(e, ERR_NOMEM, "plan a recovery: out of memory");
  for (size_t i = 0; i < unit_count; i++) {
    const char *why = why_quarantine(&units[i], units, unit_count,
                                     newest_of(commits, commit_count, units[i].series));
    if (why) out->actions[out->count++] = (recover_action){RECOVER_QUARANTINE, i, why};
  }
  for (size_t i = 0; i < commit_count; i++) {
    const recover_commit *c = &commits[i];
    if (newest_of(commits, commit_count, c->series) != c) continue;
    if (!served_locally(units, unit_count, c))
      out->actions[out->count++] =
          (recover_action){RECOVER_RESTORE, c->index, "the newest commit is not there"};
  }
  return 0;
}
