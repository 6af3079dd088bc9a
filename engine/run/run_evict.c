/* run_evict: gathers what it costs to end the job now; plan/evict.h says what follows from it. */
#include "plan/evict.h"
#include "run/run_state.h"

/* The one that was made last counts, in whichever directory it stands. */
static const run_group *newest_group(const run *r) {
  const run_group *newest = NULL;
  for (size_t i = 0; i < r->group_count; i++) {
    const run_group *g = r->groups[i];
    if (g->newest_time_ns > (newest ? newest->newest_time_ns : 0)) newest = g;
  }
  return newest;
}

/* Nothing more can be lost of a job that is over only if all that is wanted is in the target. */
static bool is_safe(run *r) {
  run_status s;
  if (!r->writer_gone) return false;
  run_get_status(r, &s);
  return s.standing == STANDING_DURABLE || s.standing == STANDING_NOT_WANTED ||
         s.standing == STANDING_NOTHING_TO_SAVE;
}

static bool is_missing(const run *r, const run_unit *u) {
  const standing_is is = run_unit_standing(r, u);
  return is == STANDING_IS_COMING || is == STANDING_IS_FAILED || is == STANDING_IS_UNPROVEN;
}

/* What was given up is sent again by the next start alone. */
static bool is_given_up(const run *r, const run_unit *u, const run_group *newest) {
  return run_unit_standing(r, u) == STANDING_IS_FAILED &&
         (!newest || run_order_whole(u->place) > newest->whole_ns);
}

/* Seconds until its kind's own pace lets it begin. */
static double rest_of(run *r, run_unit *u, int64_t now) {
  if (!run_unit_queued(u)) return 0;
  const int64_t due = u->above ? run_above_due(r, u, now) : run_in_place_due(r, u);
  return due > now ? (double)(due - now) / 1e9 : 0;
}

void run_get_evict(run *r, run_evict *out) {
  const int64_t now = r->env->io->now(r->env->io, IO_MONO);
  const run_group *g = newest_group(r);
  evict_facts f = {.now_ns = r->env->io->now(r->env->io, IO_WALL),
                   .started_ns = r->started_ns,
                   .beside = r->beside,
                   .complete_ns = g ? g->whole_ns : 0,
                   .over = r->writer_gone,
                   .safe = is_safe(r),
                   .fenced = r->fenced,
                   .takes_s = run_line_takes(r)};
  *out = (run_evict){.now_ns = f.now_ns, .step = MATCH_NO_STEP, .complete_ns = f.complete_ns};
  if (g) {
    out->durable_ns = g->newest_time_ns;
    out->step = g->newest_step;
    out->unit = g->newest_unit;
  }
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    const bool unasked = run_unit_unasked(r, u); /* it may be wanted, once the store answers */
    if (is_missing(r, u) && run_order_whole(u->place) > f.last_ns)
      f.last_ns = run_order_whole(u->place);
    const bool failed = is_given_up(r, u, g);
    if (u->phase != UNIT_RUNNING && !run_unit_queued(u) && !unasked && !failed) continue;
    if (unasked || failed) f.takes_s = -1;
    f.pending++;
    out->bytes += run_line_unit(r, u).bytes;
    if (rest_of(r, u, now) > f.rests_s) f.rests_s = rest_of(r, u, now);
  }
  const evict_cost cost = evict_judge(&f);
  out->lost_since_ns = cost.lost_since_ns;
  out->lost_s = cost.lost_s;
  out->durable_in_s = cost.durable_in_s;
}
