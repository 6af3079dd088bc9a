/* run_why: answers with the present words of a live run about a unit. */
#include "run/run_state.h"
#include "why/inquiry.h"

static bool before(const run_unit *a, const run_unit *b) {
  return a->complete_at != b->complete_at ? a->complete_at < b->complete_at
                                          : a->made_ns < b->made_ns;
}

/* Names the unit that it waits for: the one whose save runs in its group, else the first in the
 * queue. */
static const char *behind(const run *r, const run_unit *u) {
  if (u->group->save) return u->group->save->unit->path;
  const run_unit *first = NULL;
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *other = r->units[i];
    if (other != u && other->group == u->group && run_unit_queued(other) && before(other, u) &&
        (!first || before(other, first)))
      first = other;
  }
  return first ? first->path : NULL;
}

static bool phase_of(unit_phase phase, trail_what *out) {
  switch (phase) {
  case UNIT_SETTLING: *out = TRAIL_OPEN; return true;
  case UNIT_WAITING: *out = TRAIL_WAITING; return true;
  case UNIT_RUNNING: *out = TRAIL_BEGUN; return true;
  case UNIT_RETRYING: *out = TRAIL_RETRYING; return true;
  case UNIT_DURABLE: *out = TRAIL_COMMITTED; return true;
  case UNIT_FAILED: *out = TRAIL_FAILED; return true;
  case UNIT_UNPROVEN: *out = TRAIL_UNPROVEN; return true;
  case UNIT_DROPPED: *out = TRAIL_LET_GO; return true;
  case UNIT_SKIPPED: *out = TRAIL_SKIPPED; return true;
  case UNIT_RETIRED: break; /* over: its records say how */
  }
  return false;
}

static double seconds_until(const run *r, int64_t at) {
  return (double)(at - r->env->io->now(r->env->io, IO_MONO)) / 1e9;
}

/* Takes the reason of the detector, for a unit that is open, or that is left alone. */
static void take_detected(run *r, const run_unit *u, explain_live *out) {
  detect_unit now;
  if (!r->detect || !detect_find(r->detect, u->path, &now)) return;
  bool by_policy = now.state == DETECT_COMPLETE && u->phase == UNIT_SETTLING;
  out->cause = by_policy ? NULL : now.cause;
  out->reason = by_policy ? u->want.reason : now.reason;
  if (!by_policy && u->phase == UNIT_SETTLING) out->policy = NULL;
}

static bool live_unit(void *ctx, const char *path, explain_live *out) {
  run *r = ctx;
  const run_unit *u = run_unit_find(r, path);
  *out = (explain_live){0};
  if (!u || !phase_of(u->phase, &out->phase)) return false;
  /* It was never called ready, and by now it never will be. */
  if (u->phase == UNIT_SKIPPED && u->want.action == POLICY_WAIT) out->phase = TRAIL_OPEN;
  out->policy = u->want.policy;
  out->reason = *u->want.reason ? u->want.reason : u->reason;
  out->status = u->status;
  out->tries = u->tries;
  out->most_tries = r->tries;
  if (run_unit_queued(u)) {
    out->behind = behind(r, u);
    out->next_s = seconds_until(r, u->next_try);
  }
  if (u->phase == UNIT_SETTLING || u->phase == UNIT_UNPROVEN) take_detected(r, u, out);
  if (u->phase == UNIT_UNPROVEN && u->retired > 0) out->cause = "changed";
  if (u->save) {
    out->moved = atomic_load(&u->save->job.moved);
    out->total = atomic_load(&u->save->job.total);
  }
  return true;
}

int run_why(run *r, const char *name, explain *out, err *e) {
  last_rules last = run_last_rules(r);
  *out = (explain){0};
  why_scene scene = {.io = r->env->io,
                     .log = r->env->log,
                     .dir = r->places.dir,
                     .state = r->places.state,
                     .last = &last,
                     .live = live_unit,
                     .ctx = r};
  return why_tell(&scene, name, out, e);
}
