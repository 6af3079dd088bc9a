/* run_done: takes in the end of a save: the unit's new standing, and the next try. */
#include <stdio.h>
#include <string.h>

#include "plan/retry.h"
#include "run/run_state.h"

/* True if the unit is another one than when this save began. */
static bool changed_since(run *r, const run_save *s, detect_unit *now) {
  return s->unit->gone || !detect_find(r->detect, s->unit->path, now) ||
         (now->state != DETECT_COMPLETE && now->state != DETECT_UNPROVEN) ||
         !digest_equal(&now->fingerprint, &s->fingerprint);
}

static void fail(run *r, run_unit *u, int status, const char *reason) {
  run_unit_to(r, u, UNIT_FAILED, TRAIL_FAILED, status, reason);
  if (!u->above) run_policy_tell(r, u, POLICY_ON_FAILED, status, reason);
}

static void give_up(run *r, run_unit *u, detect_state state) {
  static const char why[] = "it changed each time it was read";
  if (state == DETECT_COMPLETE)
    fail(r, u, ERR_RETIRED, why);
  else
    run_unit_to(r, u, UNIT_UNPROVEN, TRAIL_UNPROVEN, 0, why);
}

/* Gives a unit its standing when a save of it is over and its content was not saved: news of the
 * detector were put off meanwhile. A unit that is retired again and again, though it looks
 * unchanged, is not tried for ever. */
static void stand(run *r, run_unit *u, bool changed) {
  enum { RETIRED_MAX = 3 };
  detect_unit now;
  run_unit_is(r, u, UNIT_RETIRED);
  if (changed) u->retired = 0;
  if (r->closing || u->gone || !detect_find(r->detect, u->path, &now)) return;
  run_unit_take(r, &now, &u, NULL); /* it is known already: nothing is made */
  switch (now.state) {
  case DETECT_OPEN: run_unit_to(r, u, UNIT_SETTLING, TRAIL_OPEN, 0, NULL); break;
  case DETECT_BROKEN: run_unit_to(r, u, UNIT_UNPROVEN, TRAIL_UNPROVEN, 0, NULL); break;
  case DETECT_COMPLETE:
  case DETECT_UNPROVEN:
    if (u->retired > RETIRED_MAX) {
      give_up(r, u, now.state);
      break;
    }
    run_consider(r, u, NULL);
    /* Where the tree is polled, a change that the save saw may not be known here yet. */
    if (!changed && u->phase == UNIT_WAITING) u->next_try += (int64_t)u->retired * 1000000000;
    break;
  case DETECT_GONE: break;
  }
}

/* Ranks that each save the whole have no part of it. */
static uint32_t parts_of(const run *r, const run_save *s) {
  const runlog_commit *c = runlog_find_commit(runlog_view(s->group->group.log), s->job.commit.n);
  const bool all = c && s->job.own_files == c->files && s->job.own_bytes == c->bytes;
  return all ? 1 : r->ranks.world;
}

static void on_committed(run *r, run_save *s) {
  err e = {0};
  detect_unit now;
  run_unit *u = s->unit;
  r->committed++;
  r->bytes_committed += s->job.bytes;
  u->retired = 0;
  if (s->begun_at)
    deadline_note(&r->pace, s->job.bytes, r->env->io->now(r->env->io, IO_MONO) - s->begun_at);
  run_group_note_newest(s->group);
  if (!u->above) s->group->whole_ns = run_order_whole(s->place);
  run_keep_list(r, s->group);
  run_group_note_log(r, s->group, &s->job.commit);
  run_group_name_log(r, s->group);
  run_lost_forget(s->group, u);
  run_keep_ask(r, s->group);
  run_in_place_committed(r, u, s->job.bytes);
  const char *why = *s->job.copy_of ? s->job.copy_of : s->reason;
  run_note_saved(r, s, why);
  run_tell(r, u, RUN_COMMITTED, &s->job, 0, why);
  if (!u->above) run_policy_tell(r, u, POLICY_ON_COMMITTED, 0, s->reason);
  run_made_it(r, u);
  run_drain_stored(r, u, &s->fingerprint, s->place.made_ns);
  if (*s->job.without) run_say_once(r, s->job.without);
  if (!run_follows(r) && !u->above) run_order_committed(r, s->group, s->place);
  if (s->job.plan.kind == MATCH_DIR && run_dir_note(r, u->path, &e) < 0)
    log_say(r->env->log, LOG_WARN, "%s", e.text);
  if (!changed_since(r, s, &now)) {
    run_unit_durable(r, u);
    if (journal_note(r->journal, u->path, JOURNAL_COMMITTED, &s->fingerprint, &s->job.commit,
                     parts_of(r, s), &e) < 0)
      log_say(r->env->log, LOG_WARN, "%s", e.text);
    run_result_committed(r, u);
  } else {
    stand(r, u, true);
  }
  run_local_sweep(r, s->group);
}

static void on_retired(run *r, run_save *s) {
  detect_unit now;
  run_unit *u = s->unit;
  bool changed = changed_since(r, s, &now);
  const char *why = s->job.status == ERR_RETIRED ? s->job.error.text
                    : u->gone                    ? "it was removed while it was saved"
                                                 : "it was written again while it was saved";
  r->retired++;
  u->retired++;
  run_note(r, u, TRAIL_RETIRED, why);
  run_tell(r, u, RUN_RETIRED, NULL, ERR_RETIRED, why);
  stand(r, u, changed);
}

static void on_unproven(run *r, run_save *s) {
  detect_unit now;
  run_unit *u = s->unit;
  if (changed_since(r, s, &now)) {
    stand(r, u, true);
    return;
  }
  run_unit_to(r, u, UNIT_UNPROVEN, TRAIL_UNPROVEN, 0, s->job.error.text);
}

/* Rank 0 does not save it: nobody will. */
static void on_let_go(run *r, run_save *s) {
  detect_unit now;
  run_unit *u = s->unit;
  if (changed_since(r, s, &now)) {
    stand(r, u, true);
  } else if (s->job.outcome == JOB_PASSED_OVER) {
    run_drop_passed_over(r, u, s->job.error.text);
  } else {
    snprintf(u->want.policy, sizeof u->want.policy, "rank 0");
    run_drop_unwanted(r, u, s->job.error.text);
  }
}

/* Rank 0 saves another unit of the group first: that one has its turn, if it is here already. */
static void on_yielded(run *r, run_save *s) {
  enum { LAST_S = 16 };
  detect_unit now;
  run_unit *u = s->unit;
  if (changed_since(r, s, &now)) {
    stand(r, u, true);
    return;
  }
  int64_t pause = u->yields < 4 ? (int64_t)1 << u->yields : LAST_S;
  u->yields++;
  run_unit_is(r, u, UNIT_WAITING);
  u->next_try = r->env->io->now(r->env->io, IO_MONO) + pause * 1000000000;
}

static void on_touched(run *r, run_save *s) {
  err e = {0};
  detect_unit now;
  run_unit *u = s->unit;
  bool copy = *s->job.copy_of;
  if (!copy) r->retired++;
  run_tell(r, u, RUN_RETIRED, copy ? &s->job : NULL, ERR_RETIRED, s->job.error.text);
  if (changed_since(r, s, &now)) {
    stand(r, u, true);
    return;
  }
  run_unit_durable(r, u);
  run_note_saved(r, s, s->job.error.text);
  if (journal_note(r->journal, u->path, JOURNAL_COMMITTED, &s->fingerprint, &s->job.commit,
                   r->ranks.world, &e) < 0)
    log_say(r->env->log, LOG_WARN, "%s", e.text);
  run_result_committed(r, u);
}

void run_end_saving(run *r, const char *where, int status, const char *reason) {
  if (r->fenced) return;
  r->fenced = true;
  for (size_t i = 0; i < r->unit_count; i++)
    if (run_unit_queued(r->units[i])) run_note(r, r->units[i], TRAIL_FENCED, reason);
  run_news news = {
      .kind = RUN_FENCED, .status = status, .step = MATCH_NO_STEP, .unit = where, .reason = reason};
  r->env->tell(r->env->ctx, r, &news);
}

void run_fenced(run *r, const char *where, const char *reason) {
  run_end_saving(r, where, ERR_FENCED, reason);
}

static void on_fenced(run *r, run_save *s) {
  run_unit *u = s->unit;
  run_unit_to(r, u, UNIT_FAILED, TRAIL_FENCED, s->job.status, s->job.error.text);
  run_end_saving(r, u->path, s->job.status, s->job.error.text);
}

/* Lets all waiting units go, since a policy wants nothing saved any more: otherwise they would wait
 * for ever. */
static void stop_saving(run *r) {
  r->aborted = true;
  for (size_t i = 0; i < r->unit_count; i++)
    if (run_unit_queued(r->units[i]))
      run_drop_unwanted(r, r->units[i], "after an error the policy wanted nothing saved any more");
}

static bool tries_again(run *r, run_unit *u, const job *j, int64_t *pause) {
  /* A drain asks for more tries, and must not use up those that there are. */
  const bool asked_for = r->draining && !r->writer_gone && !r->preempted;
  if (!asked_for) u->tries++;
  retry_facts f = {.status = j->status,
                   .tries = u->tries,
                   .most = r->tries,
                   .short_of_time = r->preempted || asked_for};
  f.remedy = run_policy_error(r, u, j->status, j->error.text, &f.seconds);
  bool again = retry_again(&f, pause);
  /* The job has ended here, and a rank did not come for the whole of its wait: it will not come. To
   * wait again and again, and for each older checkpoint too, would hold the others' nodes for
   * hours. */
  const bool forsaken = j->outcome == JOB_FORSAKEN;
  if ((j->outcome == JOB_WAITED || forsaken) && r->writer_gone) {
    again = false;
    r->forsaken = true;
  }
  if (forsaken) again = false;
  if (f.remedy == POLICY_ABORT) stop_saving(r);
  return again;
}

static void on_error(run *r, run_save *s) {
  int64_t pause;
  detect_unit now;
  run_unit *u = s->unit;
  const job *j = &s->job;
  if (u->gone) {
    on_retired(r, s);
  } else if (changed_since(r, s, &now)) {
    /* Another try would save content that was never called complete: its turn comes when it is. */
    run_tell(r, u, RUN_RETRYING, NULL, j->status, j->error.text);
    stand(r, u, true);
  } else if (tries_again(r, u, j, &pause)) {
    r->pace = (deadline_pace){0}; /* what it was says nothing until the next one is saved */
    u->next_try = r->env->io->now(r->env->io, IO_MONO) + pause;
    run_unit_to(r, u, UNIT_RETRYING, TRAIL_RETRYING, j->status, j->error.text);
  } else {
    fail(r, u, j->status, j->error.text);
  }
}

static void on_given_up(run *r, run_save *s) {
  detect_unit now;
  fail(r, s->unit, ERR_CANCELED, "it was cancelled");
  if (changed_since(r, s, &now)) stand(r, s->unit, true);
}

static void on_stalled(run *r, run_save *s) {
  const char *what = atomic_load(&s->job.doing.what);
  s->job.status = err_set(&s->job.error, ERR_TIMEOUT, "stopped, since nothing moved any more: %s",
                          what ? what : "at its beginning");
  on_error(r, s);
}

/* Counts what a try took; one that was changed, cancelled or left to others says nothing of the store. */
static void note_time(run *r, const run_save *s) {
  const int status = s->job.status;
  if (s->unit->above || status == ERR_RETIRED || status == ERR_CANCELED || status == ERR_FENCED)
    return;
  const int64_t took = r->env->io->now(r->env->io, IO_MONO) - s->tried_at;
  s->group->spent_ns += took;
  run_record_transfer(r, s, took);
}

static void take_outcome(run *r, run_save *s) {
  job_outcome outcome = s->job.outcome;
  if (outcome != JOB_COMMITTED && s->group->group.turned_away) outcome = JOB_FENCED;
  switch (outcome) {
  case JOB_COMMITTED: on_committed(r, s); break;
  case JOB_FENCED: on_fenced(r, s); break;
  case JOB_CANCELED:
    if (s->given_up)
      on_given_up(r, s);
    else if (s->stalled)
      on_stalled(r, s);
    else
      on_retired(r, s);
    break;
  case JOB_UNPROVEN: on_unproven(r, s); break;
  case JOB_TOUCHED: on_touched(r, s); break;
  case JOB_LET_GO:
  case JOB_PASSED_OVER: on_let_go(r, s); break;
  case JOB_YIELDED: on_yielded(r, s); break;
  case JOB_RETIRED: on_retired(r, s); break;
  case JOB_WAITED:
  case JOB_FORSAKEN:
  case JOB_FAILED: on_error(r, s); break;
  }
}

/* What saves take is known better now: a rule that time would change may say otherwise at once. */
static void ask_again(run *r, const run_group *g) {
  const int64_t now = r->env->io->now(r->env->io, IO_MONO);
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->group == g && r->units[i]->ask_at) r->units[i]->ask_at = now;
}

void run_save_done(void *ctx) {
  run_save *s = ctx;
  run *r = s->run;
  run_unit *u = s->unit;
  r->tasks--;
  u->save = s->group->save = NULL;
  if (s->job.outcome != JOB_YIELDED) u->yields = 0;
  u->attempt = s->job.attempt;
  u->attempt_shape = s->job.attempt_shape;
  memcpy(u->staging, s->job.staging, sizeof u->staging);
  if (!u->beside && digest_equal(&u->beside_of, &s->fingerprint)) { /* the next try's */
    u->beside = s->job.beside;
    s->job.beside = NULL;
  }
  if (s->term != RUNLOG_NONE) s->group->term = s->term;
  if (s->memory_kept) s->group->remembers = MEMORY_KNOWN;
  if (s->memory && !s->memory_kept) s->group->memory_changed = true; /* the next save takes it */
  note_time(r, s);
  take_outcome(r, s);
  if (!run_unit_queued(u)) u->job = 0;
  if (u->gone) run_unit_remove(r, u);
  ask_again(r, s->group);
  run_save_free(s);
  run_take_back(r);
}

int run_cancel(run *r, uint64_t job) {
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (u->job != job || job == 0) continue;
    if (u->phase == UNIT_RUNNING) {
      u->save->given_up = true;
      atomic_store(&u->save->job.cancel, JOB_CANCEL);
      return 1;
    }
    if (u->phase == UNIT_RETRYING) {
      fail(r, u, ERR_CANCELED, "it was cancelled");
      u->job = 0;
      run_take_back(r);
      return 1;
    }
  }
  return 0;
}
