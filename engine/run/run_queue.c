/* run_queue: the queue of saves of a run: their order, their end, their next try. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "run/run_state.h"

bool run_unit_queued(const run_unit *u) {
  return u->phase == UNIT_WAITING || u->phase == UNIT_RETRYING;
}

bool run_unit_sure(const run_unit *u) {
  if (u->phase == UNIT_RUNNING) return u->save && u->save->sure;
  return u->phase == UNIT_DURABLE || (run_unit_queued(u) && u->want.action == POLICY_SAVE);
}

bool run_supersedes(const run *r, const run_unit *newer, const run_unit *u) {
  if (newer->group != u->group) return false;
  const queue_unit a = run_line_unit(r, newer), b = run_line_unit(r, u);
  return queue_supersedes(&a, &b);
}

static void drop(run *r, run_unit *u, const char *reason) {
  run_unit_to(r, u, UNIT_DROPPED, TRAIL_LET_GO, 0, reason);
}

/* Names it in the end: somebody may look for it. */
static void name(run_unit *u, const char *reason) {
  u->named = true;
  snprintf(u->want.reason, sizeof u->want.reason, RUN_NOT_SAVED "%.200s", reason);
}

/* What `keep` wanted and the queue lost: a rule that does not hold is not broken in silence. */
static void tell_lost(const run *r, const run_unit *u, const char *why) {
  if (u->kept)
    log_say(r->env->log, LOG_WARN, "%s is not saved, though `keep` wants it (%s): %s", u->path,
            u->kept_why, why);
}

/* Lets a unit go for a newer one. While the job goes on that is what `queue` says; at its end, and
 * where `keep` is against it, it is told. */
static void let_go(run *r, run_unit *u, const char *reason) {
  tell_lost(r, u, reason);
  if (u->kept || r->preempted || r->writer_gone) name(u, reason);
  drop(r, u, reason);
}

/* Drops a unit by the policy's word: it is not taken back, since it does not wait for a newer one
 * that could fail. */
void run_drop_unwanted(run *r, run_unit *u, const char *reason) {
  drop(r, u, reason);
  u->named = false;
  u->unwanted = true;
  snprintf(u->want.reason, sizeof u->want.reason, "%s", reason);
  run_note_refused(r, u);
}

/* Drops a unit on a rank but the first, since rank 0 saves a newer one. The newer one needs our part,
 * too: until it is in the store, this one is missed. */
void run_drop_passed_over(run *r, run_unit *u, const char *reason) {
  drop(r, u, reason);
  u->unwanted = u->passed_over = true;
  snprintf(u->want.reason, sizeof u->want.reason, "%s", reason);
}

/* A newer one is committed: this one stays here, and is named in the end. */
void run_drop_late(run *r, run_unit *u) {
  const char *newer = u->group->newest_unit ? u->group->newest_unit : "?";
  snprintf(u->want.reason, sizeof u->want.reason, RUN_LATE "%.200s", newer);
  tell_lost(r, u, u->want.reason + strlen(RUN_NOT_SAVED));
  drop(r, u, u->want.reason);
  u->late = true;
}

/* Drops units that are older than this one, which must be known to be whole; `all`: also those that
 * could stay. */
static void drop_older(run *r, const run_unit *newer, bool all) {
  const queue_unit first = run_line_unit(r, newer);
  queue q = run_line(r, newer->group);
  for (size_t i = 0; i < q.count; i++) {
    if (!queue_goes(&q, &first, &q.units[i], all)) continue;
    let_go(r, q.units[i].of, queue_why_it_goes(&q));
    if (r->preempted) q.takes_s = run_line_takes(r); /* there is more of it for the others */
  }
}

static bool too_late(const run *r, const run_unit *u) {
  const queue q = run_line(r, u->group);
  const queue_unit one = run_line_unit(r, u);
  return queue_too_late(&q, &one);
}

/* Makes the drop of older units final, now that this one is in the store. */
void run_made_it(run *r, const run_unit *newer) {
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->phase == UNIT_DROPPED && !r->units[i]->late &&
        run_supersedes(r, newer, r->units[i])) {
      r->units[i]->late = r->units[i]->named; /* it stays, and is named */
      if (!r->units[i]->named) run_unit_is(r, r->units[i], UNIT_RETIRED);
    }
}

void run_unit_durable(run *r, run_unit *u) {
  run_unit_is(r, u, UNIT_DURABLE);
  policy_once_clear(&u->once);
  run_unit_beside_drop(u);
  drop_older(r, u, true);
  run_made_it(r, u);
  run_drain_stored(r, u, &u->fingerprint, u->made_ns);
  run_tell_watchers(r, u);
}

/* Returns the rest of the quiet time, for a unit that has only passed a structural check: its
 * writer may be between two files just now. */
static int64_t rest_of_quiet(const run *r, const run_unit *u) {
  const io *io = r->env->io;
  if (u->want.action == POLICY_SAVE || r->writer_gone) return 0;
  int64_t age = io->now(io, IO_WALL) - u->changed_ns, quiet = r->rules->quiet_ns;
  return age < 0 ? quiet : age < quiet ? quiet - age : 0;
}

static void enter(run *r, run_unit *u) {
  const queue q = run_line(r, u->group);
  const queue_unit one = run_line_unit(r, u);
  const queue_word word = queue_enter(&q, &one, u->want.queue);
  switch (word) {
  case QUEUE_ENTERS: break;
  case QUEUE_PUSHES: drop_older(r, u, false); break;
  case QUEUE_REFUSED: run_drop_unwanted(r, u, queue_why_not(word)); break;
  case QUEUE_PASSED: let_go(r, u, queue_why_not(word)); break;
  }
}

void run_enqueue(run *r, run_unit *u) {
  run_unit_is(r, u, UNIT_WAITING);
  u->unwanted = u->passed_over = u->late = u->named = u->kept = false;
  u->tries = 0;
  u->job = 0;
  u->complete_at = r->env->io->now(r->env->io, IO_MONO);
  u->next_try = seconds_later(u->complete_at, rest_of_quiet(r, u));
  run_order_note(r, u);
  if (u->above) run_above_waits(r, u);
  run_note(r, u, TRAIL_WAITING, NULL);
  if (run_follows(r)) return; /* rank 0 says which unit is let go */
  if (run_is_late(r, u)) {
    run_drop_late(r, u);
    return;
  }
  if (u->want.queue == POLICY_NEWEST) run_keep_judge(r, u->group);
  enter(r, u);
}

/* True if a dropped unit may be saved after all, by the detector's present word. */
static bool still_stands(const run *r, const run_unit *u) {
  detect_unit now;
  return u->phase == UNIT_DROPPED && !u->unwanted && !u->late &&
         detect_find(r->detect, u->path, &now) && now.state == DETECT_COMPLETE &&
         digest_equal(&now.fingerprint, &u->fingerprint);
}

static bool dropped_after(const run *r, const run_unit *u) {
  for (size_t i = 0; i < r->unit_count; i++)
    if (run_supersedes(r, r->units[i], u) && still_stands(r, r->units[i])) return true;
  return false;
}

/* Takes dropped units back, if the one that they were dropped for was removed, failed, or is being
 * written again: the newest of them is the best checkpoint that there is. */
void run_take_back(run *r) {
  if (r->closing || r->fenced || r->aborted || r->forsaken || !r->detect) return;
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (!still_stands(r, u) || too_late(r, u) || dropped_after(r, u)) continue;
    run_unit_again(r, u);
  }
}

/* What they remember now was made without what the store has. */
static bool would_lose_memory(const run_save *s) {
  char *found = NULL;
  const run *r = s->run;
  memory_state state;
  err e = {0};
  if (s->remembers == MEMORY_KNOWN) return false;
  int rc = memory_read(r->store, r->env->log, s->group->group.prefix, &found, &state, &e);
  bool nothing = rc == 0 && !found && state == MEMORY_KNOWN;
  free(found);
  return !nothing;
}

/* Writes the policies' memory with the commit: a run that goes on elsewhere finds it there. */
static void keep_memory(run_save *s) {
  const run *r = s->run;
  err e = {0};
  if (s->job.status != 0 || !s->memory || run_follows(r) || would_lose_memory(s)) return;
  s->memory_kept = memory_write(r->store, s->group->group.prefix, s->memory, &e) == 0;
  if (!s->memory_kept)
    log_say(r->env->log, LOG_WARN, "what the policies remember could not be kept: %s", e.text);
}

/* Marks a lost commit bad, which cannot be loaded any more: no restore shall choose it, should the
 * new one go. */
static void mark_lost(const run_save *s) {
  err e = {0};
  if (s->job.status != 0 || s->job.lost == 0) return;
  if (runlog_mark(s->job.log, s->job.lost, true, "its data is gone from the store", &e) < 0)
    log_say(s->run->env->log, LOG_WARN, "what is lost could not be marked bad: %s", e.text);
}

static void save_on_worker(void *arg) {
  run_save *s = arg;
  err *e = &s->job.error;
  int rc = atomic_load(&s->job.cancel) ? err_set(e, ERR_CANCELED, "cancelled before it was begun")
                                       : group_begin(&s->group->group, e);
  if (rc == 0) {
    s->job.log = s->group->group.log;
    s->job.unspoken = s->group->group.unspoken;
    atomic_store(&s->term, runlog_view(s->job.log)->term.n);
    job_run(&s->job);
    s->group->group.unspoken = s->job.unspoken;
    mark_lost(s);
    keep_memory(s);
  } else {
    job_end(&s->job, rc);
  }
}

void run_save_free(run_save *s) {
  free(s->job.metrics);
  names_free(&s->job.left);
  job_beside_free(s->job.beside);
  free(s->memory);
  free(s);
}

/* Hands the unit's save to the pool; a full pool leaves it waiting for a second. */
static int start_save(run *r, run_unit *u, err *e) {
  detect_unit facts = {.path = u->path,
                       .kind = u->kind,
                       .step = u->step,
                       .in_place = u->in_place,
                       .above = u->above};
  run_policy_exclude(r, u);
  run_save *s = calloc(1, sizeof *s);
  if (!s) return err_set(e, ERR_NOMEM, "save %s: out of memory", u->path);
  *s = (run_save){.run = r,
                  .unit = u,
                  .group = u->group,
                  .term = RUNLOG_NONE,
                  .fingerprint = u->fingerprint,
                  .sure = u->want.action == POLICY_SAVE,
                  .begun_at = u->attempt ? 0 : r->env->io->now(r->env->io, IO_MONO),
                  .tried_at = r->env->io->now(r->env->io, IO_MONO),
                  .place = u->place,
                  .copied = u->in_place};
  snprintf(s->reason, sizeof s->reason, "%s", u->reason);
  if (u->job == 0) u->job = r->env->next_job(r->env->ctx);
  s->job.id = u->job;
  s->job.env = &r->job_env;
  s->job.stamp = u->stamp;
  const run_lost *lost = run_follows(r) ? NULL : run_lost_find(u->group, u->path);
  s->job.lost = lost ? lost->n : 0;
  s->job.keep = u->tries + 1 < r->tries;
  s->job.attempt = u->attempt;
  s->job.attempt_shape = u->attempt_shape;
  memcpy(s->job.staging, u->staging, sizeof s->job.staging);
  s->job.beside = u->beside;
  s->job.found = r->vacant && run_order_at_start(r, u);
  snprintf(s->job.policy, sizeof s->job.policy, "%s", u->want.policy);
  snprintf(s->job.reason, sizeof s->job.reason, "%s", u->want.reason);
  const char *numbers = u->above ? NULL : run_numbers_now(r, u);
  s->job.metrics = numbers ? strdup(numbers) : NULL;
  s->remembers = u->group->remembers;
  /* An empty table is written, too: an older one must not come back. */
  if (u->group->memory_changed && u->group->remembers != MEMORY_BROKEN)
    s->memory = strdup(u->group->memory ? u->group->memory : "{}");
  atomic_store(&s->job.total, u->bytes);
  int rc = names_add_all(&s->job.left, names_list(&u->left))
               ? plan_save(&facts, &u->want, r->plan_flags, &s->job.plan, e)
               : err_set(e, ERR_NOMEM, "save %s: out of memory", u->path);
  if (rc == 0 && !run_submit(r, save_on_worker, run_save_done, s)) {
    u->next_try = r->env->io->now(r->env->io, IO_MONO) + 1000000000;
    s->job.beside = NULL;
    run_save_free(s);
    return 0;
  }
  if (rc < 0) {
    s->job.beside = NULL;
    run_save_free(s);
    return rc;
  }
  u->beside = NULL; /* the job's, until it is over */
  if (s->memory) u->group->memory_changed = false;
  if (u->above)
    run_above_begun(r, u);
  else
    run_policy_begun(r, u->group);
  run_in_place_begun(r, u);
  run_unit_to(r, u, UNIT_RUNNING, TRAIL_BEGUN, 0, NULL);
  u->save = u->group->save = s;
  /* The other ranks let older units go when this one is announced (passed_over() in job_ranks.c):
   * an older one that waits for its next try would wait for parts that do not come. */
  if (r->ranks.world > 1 && !run_follows(r) && !r->keep_all && u->want.action == POLICY_SAVE)
    drop_older(r, u, true);
  return 0;
}

/* ---- whose turn it is ---- */

/* True while its kind's own pace says that its turn has not come. */
static bool rests(run *r, run_unit *u, int64_t now) {
  return u->above ? run_above_due(r, u, now) > now : run_in_place_due(r, u) > now;
}

/* Finds the unit of this group whose turn it is, now or at its next try; NULL: all wait for long. */
static run_unit *next_of(run *r, const run_group *g, int64_t now) {
  const queue q = run_line(r, g);
  for (size_t i = 0; i < q.count; i++)
    r->line[i].rests = q.units[i].stage == QUEUE_WAITS && rests(r, q.units[i].of, now);
  ptrdiff_t at = queue_next(&q, now);
  return at < 0 ? NULL : q.units[at].of;
}

static bool holds(const run *r, const run_group *g) {
  return g->save || run_anyway_holds(r, g);
}

static int64_t wait_of(run *r, run_unit *u, int64_t now) {
  int64_t in_place = run_in_place_due(r, u);
  if (u->above) return run_above_due(r, u, now);
  return in_place > u->next_try ? in_place : u->next_try;
}

/* IO_MONO time of the first try of a group, which nobody but time holds back. */
static int64_t due_of(run *r, const run_group *g, int64_t now) {
  enum { LOOK_NS = 50000000 };
  const run_unit *next = next_of(r, g, now);
  int64_t due = next ? next->next_try : INT64_MAX;
  if (next && run_order_awaits(r, next, now)) return now + LOOK_NS;
  for (size_t i = 0; due > now && i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (u->group != g || !run_unit_queued(u)) continue;
    int64_t at = wait_of(r, u, now);
    if (at < due && (!next || run_in_place_due(r, u) > now)) due = at;
  }
  return due;
}

int64_t run_next_save(run *r) {
  int64_t now = r->env->io->now(r->env->io, IO_MONO), due = INT64_MAX;
  for (size_t i = 0; i < r->group_count; i++) {
    int64_t one = holds(r, r->groups[i]) ? INT64_MAX : due_of(r, r->groups[i], now);
    if (one < due) due = one;
  }
  return due;
}

/* True if a unit still settles. If each is wanted, saves go by age, so all have to be known
 * first. */
static bool any_settling(const run *r) {
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->phase == UNIT_SETTLING) return true;
  return false;
}

int run_start_saves(run *r, err *e) {
  int64_t now = r->env->io->now(r->env->io, IO_MONO);
  int rc = 0;
  if (r->keep_all && any_settling(r)) return 0;
  for (size_t i = 0; rc == 0 && !r->fenced && i < r->group_count; i++) {
    run_group *g = r->groups[i];
    run_unit *u = holds(r, g) || run_keep_busy(g) ? NULL : next_of(r, g, now);
    if (u && u->next_try <= now && !run_order_awaits(r, u, now)) rc = start_save(r, u, e);
  }
  return rc;
}

void run_hurry(run *r) {
  const queue q = run_line(r, NULL);
  const bool some =
      r->rest == POLICY_REST_NEWEST || (r->rest == POLICY_REST_FIT && !queue_fits(&q));
  for (size_t i = 0; i < r->group_count; i++)
    if (some) run_keep_judge(r, r->groups[i]);
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (run_unit_queued(u) && r->rest == POLICY_REST_NONE && !run_follows(r))
      run_drop_unwanted(r, u, "the policy wants nothing saved when time is short");
    if (run_unit_queued(u) && u->want.action == POLICY_SAVE && some && !run_follows(r))
      drop_older(r, u, true);
    if (u->phase == UNIT_RETRYING) u->next_try = 0;
  }
}

/* Tries the last checkpoint of a job once more: somebody may have made room since. */
static void try_once_more(run *r, run_unit *u) {
  if (u->phase != UNIT_FAILED || u->status != ERR_NOSPACE || u->last_tried || too_late(r, u) ||
      run_is_late(r, u))
    return;
  u->last_tried = true;
  run_unit_again(r, u);
}

void run_no_writer(run *r) {
  for (size_t i = 0; i < r->unit_count; i++) {
    if (r->units[i]->phase == UNIT_WAITING) r->units[i]->next_try = 0;
    if (!r->fenced && !r->aborted) try_once_more(r, r->units[i]);
  }
}
