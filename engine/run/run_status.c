/* run_status: tells how a run stands: counters, what is not durable, and why. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_state.h"

uint64_t run_unit_left(const run_unit *u) {
  if (!u->save) return u->bytes;
  uint64_t moved = atomic_load(&u->save->job.moved), total = atomic_load(&u->save->job.total);
  return moved < total ? total - moved : 0;
}

/* ---- the standing ---- */

standing_is run_unit_standing(const run *r, const run_unit *u) {
  switch (u->phase) {
  case UNIT_SETTLING: return STANDING_IS_OPEN;
  case UNIT_WAITING:
  case UNIT_RUNNING:
  case UNIT_RETRYING: return STANDING_IS_COMING;
  /* What is above the checkpoints is none: by itself it makes nothing durable. */
  case UNIT_DURABLE: return u->above ? STANDING_IS_ASIDE : STANDING_IS_STORED;
  case UNIT_FAILED: return STANDING_IS_FAILED;
  case UNIT_UNPROVEN: return STANDING_IS_UNPROVEN;
  case UNIT_SKIPPED: return STANDING_IS_UNWANTED;
  case UNIT_DROPPED:
    /* What was there before this run, and older than what the store had, decides nothing. */
    if (u->late) return run_order_at_start(r, u) ? STANDING_IS_ASIDE : STANDING_IS_FAILED;
    return u->passed_over ? STANDING_IS_FAILED
           : u->unwanted  ? STANDING_IS_UNWANTED
                          : STANDING_IS_ASIDE;
  case UNIT_RETIRED: break;
  }
  return STANDING_IS_ASIDE;
}

/* Makes room for one more than there are units. */
static bool make_room(run *r) {
  if (r->facts_room > r->unit_count) return true;
  size_t room = 2 * r->unit_count + 8;
  standing_unit *facts = realloc(r->facts, room * sizeof *facts);
  if (!facts) return false;
  r->facts = facts;
  r->facts_room = room;
  return true;
}

static bool has_commit(const run *r) {
  for (size_t i = 0; i < r->group_count; i++)
    if (r->groups[i]->newest_time_ns != 0) return true;
  return false;
}

standing_facts run_standing_facts(const run *r) {
  return (standing_facts){.stored = has_commit(r),
                          .seen = r->committed + r->dropped + r->retired > 0,
                          .lost = run_lost_status(r) != 0 || run_anyway_unmet(r),
                          .fenced = r->fenced};
}

int run_standing_unseen(const run *r) {
  /* What is durable in a store that never answered nobody has seen. */
  return run_anyway_unmet(r) ? ERR_TIMEOUT : run_lost_status(r);
}

/* Gathers what is known. The unit that was refused last stands behind the others: it may be gone by
 * now, or be another one. */
static standing_facts gather(run *r) {
  standing_facts f = run_standing_facts(r);
  f.units = r->facts;
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *u = r->units[i];
    r->facts[f.count++] = (standing_unit){.is = run_unit_standing(r, u),
                                          .group = u->group,
                                          .series = u->series,
                                          .made_ns = u->made_ns,
                                          .step = u->step};
  }
  if (r->refused.unit)
    r->facts[f.count++] = (standing_unit){.is = STANDING_IS_UNWANTED,
                                          .group = r->refused.group,
                                          .series = r->refused.series,
                                          .made_ns = r->refused.made_ns,
                                          .step = r->refused.step};
  return f;
}

/* Returns why the newest complete unit of some kind is not durable; 0 if none is late. */
static int status_of_late(const run *r, ptrdiff_t late) {
  if (late == STANDING_NONE) return run_standing_unseen(r);
  const run_unit *u = r->units[late];
  if (u->phase == UNIT_FAILED) return u->status;
  return r->fenced ? ERR_FENCED : ERR_TIMEOUT;
}

static void tell_unwanted(const run *r, ptrdiff_t which, run_status *out) {
  if (which == STANDING_NONE) return;
  bool here = (size_t)which < r->unit_count;
  const run_unit *u = here ? r->units[which] : NULL;
  out->unwanted_unit = here ? u->path : r->refused.unit;
  out->unwanted_policy = here ? u->want.policy : r->refused.policy;
  out->unwanted_reason = here ? u->want.reason : r->refused.reason;
}

static void tell_standing(run *r, run_status *out) {
  if (!r->started) return;
  if (!make_room(r)) {
    out->standing = STANDING_NOT_DURABLE; /* as far as is known */
    out->newest_status = ERR_NOMEM;
    return;
  }
  standing_facts facts = gather(r);
  standing_answer s = standing_decide(&facts);
  out->standing = s.word;
  out->newest_status = status_of_late(r, s.late);
  if (s.unproven != STANDING_NONE) {
    out->unproven_unit = r->units[s.unproven]->path;
    out->unproven_reason = r->units[s.unproven]->reason;
  }
  tell_unwanted(r, s.unwanted, out);
}

void run_note_refused(run *r, const run_unit *u) {
  run_refused *to = &r->refused;
  if (to->unit && to->made_ns > u->made_ns) return;
  char *unit = strdup(u->path), *series = strdup(u->series);
  if (!unit || !series) { /* while the unit is here, it is known all the same */
    free(unit);
    free(series);
    return;
  }
  free(to->unit);
  free(to->series);
  *to = (run_refused){
      .unit = unit, .series = series, .group = u->group, .made_ns = u->made_ns, .step = u->step};
  memcpy(to->policy, u->want.policy, sizeof to->policy);
  memcpy(to->reason, u->want.reason, sizeof to->reason);
}

void run_status_free(run *r) {
  free(r->refused.unit);
  free(r->refused.series);
  free(r->facts);
  free(r->line);
}

/* ---- counters ---- */

static void add_left(void *ctx, const char *unit, const char *reason, uint64_t bytes, uint64_t left,
                     bool begun) {
  uint64_t *sum = ctx;
  (void)unit, (void)reason, (void)bytes, (void)begun;
  *sum += left;
}

void run_get_status(run *r, run_status *out) {
  *out = (run_status){.committed = r->committed,
                      .dropped = r->dropped,
                      .retired = r->retired,
                      .failed = r->failed,
                      .skipped = r->skipped,
                      .policies = policy_names(r->policy),
                      .fallbacks = policy_fallbacks(r->policy) + ruling_fallbacks(&r->replaced),
                      .keeping =
                          r->started && (run_keep_pending(r) || r->meeting || run_later_pending(r)),
                      .bytes_committed = r->bytes_committed,
                      .newest_step = MATCH_NO_STEP,
                      .fenced = r->fenced};
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *u = r->units[i];
    bool pending = u->phase == UNIT_RUNNING || run_unit_queued(u);
    out->pending += pending;
    out->settling += u->phase == UNIT_SETTLING;
    out->unproven += u->phase == UNIT_UNPROVEN;
  }
  for (size_t i = 0; i < r->group_count; i++) {
    const run_group *g = r->groups[i];
    if (g->newest_time_ns <= out->newest_time_ns) continue;
    out->newest_time_ns = g->newest_time_ns;
    out->newest_step = g->newest_step;
    out->newest_unit = g->newest_unit;
  }
  uint32_t unknown;
  if (r->hub && r->own_end) out->tasks = hub_left(r->hub, &unknown);
  run_pending(r, add_left, &out->bytes_left);
  tell_standing(r, out);
  if (!r->detect) return;
  out->unmatched = detect_unmatched(r->detect, &out->unmatched_example);
  out->saw_file = detect_saw_file(r->detect);
}

/* ---- what is waited for ---- */

/* Says what its save is doing: "uploading", or which ranks it waits for, and for how long still. */
static const char *why_running(const run *r, const run_unit *u, char *text, size_t room) {
  const job_doing *doing = &u->save->job.doing;
  char missing[200];
  ranks_missing_text(doing->ranks, r->ranks.world, missing, sizeof missing);
  const char *what = atomic_load(&doing->what);
  if (!*missing) return what && strncmp(what, "waiting for ", 12) == 0 ? what : "uploading";
  int64_t waited = r->env->io->now(r->env->io, IO_MONO) - atomic_load(&doing->since);
  snprintf(text, room, "waiting for %s, %" PRId64 " of %" PRId64 " s", missing, waited / 1000000000,
           r->ranks.wait_ns / 1000000000);
  return text;
}

static bool open_now(const run *r, const run_unit *u, detect_unit *now) {
  return u->phase == UNIT_SETTLING && r->detect && detect_find(r->detect, u->path, now) &&
         now->state == DETECT_OPEN;
}

/* Why it is still open, with the figures of now. */
static const char *why_settling(const run *r, const run_unit *u, char *text, size_t room) {
  detect_unit now;
  if (!open_now(r, u, &now)) return u->reason;
  snprintf(text, room, "%s", now.reason);
  return text;
}

const char *run_unit_waits_for(const run *r, const run_unit *u, char *text, size_t room) {
  switch (u->phase) {
  case UNIT_RUNNING: return why_running(r, u, text, room);
  case UNIT_WAITING: return "waiting for its turn";
  case UNIT_RETRYING: return "waiting for the next try";
  case UNIT_SETTLING: return why_settling(r, u, text, room);
  case UNIT_FAILED: return err_text(u->status);
  case UNIT_DROPPED: return u->passed_over || u->late || u->named ? u->want.reason : NULL;
  case UNIT_DURABLE:
  case UNIT_UNPROVEN:
  case UNIT_RETIRED:
  case UNIT_SKIPPED: break;
  }
  return NULL;
}

/* Tells the newest of each kind that is gone from the store, and of which no whole copy was found
 * here. */
static int pending_lost(run *r, run_pending_fn *fn, void *ctx) {
  int count = 0;
  for (size_t i = 0; i < r->group_count; i++)
    for (size_t k = 0; k < r->groups[i]->lost_count; k++) {
      const run_lost *l = &r->groups[i]->lost[k];
      const run_unit *u = run_unit_find(r, l->unit);
      char text[300];
      if (!l->counts || (u && run_unit_waits_for(r, u, text, sizeof text))) continue;
      count++;
      if (fn) fn(ctx, l->unit, l->why, l->bytes, l->bytes, false);
    }
  return count;
}

int run_pending(run *r, run_pending_fn *fn, void *ctx) {
  int count = pending_lost(r, fn, ctx);
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *u = r->units[i];
    char text[300];
    const char *why = run_unit_waits_for(r, u, text, sizeof text);
    if (!why) continue;
    count++;
    if (!fn) continue;
    /* What is being written was not measured when it was first seen. */
    detect_unit now;
    bool grows = open_now(r, u, &now);
    fn(ctx, u->path, why, grows ? now.bytes : u->bytes, grows ? now.bytes : run_unit_left(u),
       u->phase == UNIT_RUNNING);
  }
  return count;
}
