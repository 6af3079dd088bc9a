/* The queue of saves of a run: whose turn it is, what became of it, what is tried again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lease.h"
#include "core/run_state.h"

bool run_unit_queued(const run_unit *u) {
  return u->phase == UNIT_WAITING || u->phase == UNIT_RETRYING;
}

bool run_unit_sure(const run_unit *u) {
  if (u->phase == UNIT_RUNNING) return u->save->sure;
  return u->phase == UNIT_DURABLE || (run_unit_queued(u) && u->want.action == POLICY_SAVE);
}

static bool is_newer(const run_unit *a, const run_unit *b) {
  if (a->changed_ns != b->changed_ns) return a->changed_ns > b->changed_ns;
  return a->step > b->step;
}

/* Would `newer` serve a restart better in every way? Time alone does not tell: an older step that
 * was restored by name just now has the newest times. */
static bool supersedes(const run_unit *newer, const run_unit *u) {
  bool steps = newer->step != MATCH_NO_STEP && u->step != MATCH_NO_STEP;
  return newer != u && newer->group == u->group && strcmp(newer->series, u->series) == 0 &&
         is_newer(newer, u) && !(steps && newer->step < u->step);
}

static void drop(run *r, run_unit *u, const char *reason) {
  u->phase = UNIT_DROPPED;
  r->dropped++;
  run_note(r, u, TRAIL_LET_GO, reason);
  run_tell(r, u, RUN_DROPPED, NULL, 0, reason);
}

/* The same by the policy's word: there is no newer one that could fail. */
static void drop_unwanted(run *r, run_unit *u, const char *reason) {
  drop(r, u, reason);
  u->unwanted = true;
}

/* Only a unit that is known to be whole may push another one aside. */
static void drop_older(run *r, const run_unit *newer) {
  for (size_t i = 0; i < r->unit_count; i++)
    if (run_unit_queued(r->units[i]) && supersedes(newer, r->units[i]))
      drop(r, r->units[i], "a newer one was complete before this one's turn");
}

/* The log's order is what "newest" means to a restore: an older one never follows a newer one. */
static bool too_late(const run *r, const run_unit *u) {
  for (size_t i = 0; i < r->unit_count; i++)
    if (run_unit_sure(r->units[i]) && supersedes(r->units[i], u) &&
        !(r->keep_all && run_unit_queued(r->units[i])))
      return true;
  return false;
}

/* What was let go for this one stays so, now that it is in the store. */
static void made_it(run *r, const run_unit *newer) {
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->phase == UNIT_DROPPED && supersedes(newer, r->units[i]))
      r->units[i]->phase = UNIT_RETIRED;
}

void run_unit_durable(run *r, run_unit *u) {
  u->phase = UNIT_DURABLE;
  drop_older(r, u);
  made_it(r, u);
}

/* What only a structural check speaks for may have a writer who is between two files just now. */
static int64_t rest_of_quiet(const run *r, const run_unit *u) {
  const io *io = r->env->io;
  if (u->want.action == POLICY_SAVE || r->writer_gone) return 0;
  int64_t age = io->now(io, IO_WALL) - u->changed_ns, quiet = r->rules->quiet_ns;
  return age < 0 ? quiet : age < quiet ? quiet - age : 0;
}

static bool others_first(const run *r, const run_unit *u) {
  if (u->group->save) return true;
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i] != u && r->units[i]->group == u->group && run_unit_queued(r->units[i]))
      return true;
  return false;
}

void run_enqueue(run *r, run_unit *u) {
  u->phase = UNIT_WAITING;
  u->unwanted = false;
  u->tries = 0;
  u->job = 0;
  u->complete_at = r->env->io->now(r->env->io, IO_MONO);
  u->next_try = u->complete_at + rest_of_quiet(r, u);
  run_note(r, u, TRAIL_WAITING, NULL);
  if (u->want.queue == POLICY_NO_QUEUE && !r->keep_all && others_first(r, u))
    drop_unwanted(r, u, "another save runs or waits, and the policy wants no queue");
  if (u->want.queue != POLICY_NEWEST && !r->keep_all) return;
  if (too_late(r, u))
    drop(r, u, "a newer one is saved or waits already");
  else if (u->want.action == POLICY_SAVE && !r->keep_all)
    drop_older(r, u);
}

/* Whether it may be saved now, by what the detector says of it at this moment. */
static bool still_stands(const run *r, const run_unit *u) {
  detect_unit now;
  return u->phase == UNIT_DROPPED && !u->unwanted && detect_find(r->detect, u->path, &now) &&
         now.state == DETECT_COMPLETE && digest_equal(&now.fingerprint, &u->fingerprint);
}

static bool dropped_after(const run *r, const run_unit *u) {
  for (size_t i = 0; i < r->unit_count; i++)
    if (supersedes(r->units[i], u) && still_stands(r, r->units[i])) return true;
  return false;
}

/* The one for which these were let go was removed, failed, or is being written again: the newest of
 * them is the best checkpoint that there is. */
void run_take_back(run *r) {
  if (r->closing || r->fenced || r->aborted || !r->detect) return;
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (!still_stands(r, u) || too_late(r, u) || dropped_after(r, u)) continue;
    r->dropped--;
    run_enqueue(r, u);
  }
}

/* What the policies remember goes with the commit: a run that goes on elsewhere finds it there. */
static void keep_memory(run_save *s) {
  const run *r = s->task.run;
  err e = {0};
  if (s->job.status != 0 || !s->memory) return;
  s->memory_kept = run_memory_write(r->store, s->group->group.prefix, s->memory, &e) == 0;
  if (!s->memory_kept)
    log_say(r->env->log, LOG_WARN, "what the policies remember could not be kept: %s", e.text);
}

static void save_on_worker(void *arg) {
  run_save *s = arg;
  run *r = s->task.run;
  err *e = &s->job.error;
  int rc = atomic_load(&s->job.cancel) ? err_set(e, ERR_CANCELED, "cancelled before it was begun")
                                       : group_begin(&s->group->group, e);
  if (rc == 0) {
    s->job.log = s->group->group.log;
    atomic_store(&s->term, runlog_view(s->job.log)->term.n);
    job_run(&s->job);
    keep_memory(s);
  } else {
    s->job.status = rc;
  }
  r->env->finished(r->env->ctx, &s->task);
}

static void free_save(run_save *s) {
  free(s->job.metrics);
  free(s->memory);
  free(s);
}

static void save_done(run_task *task);

/* Hands the unit's save to the pool; a full pool leaves it waiting for a second. */
static int start_save(run *r, run_unit *u, err *e) {
  detect_unit facts = {.path = u->path, .kind = u->kind, .step = u->step, .in_place = u->in_place};
  run_save *s = calloc(1, sizeof *s);
  if (!s) return err_set(e, ERR_NOMEM, "save %s: out of memory", u->path);
  *s = (run_save){.task = {.run = r, .done = save_done},
                  .unit = u,
                  .group = u->group,
                  .term = RUNLOG_NONE,
                  .fingerprint = u->fingerprint,
                  .sure = u->want.action == POLICY_SAVE,
                  .copied = u->in_place};
  snprintf(s->reason, sizeof s->reason, "%s", u->reason);
  if (u->job == 0) u->job = r->env->next_job(r->env->ctx);
  s->job.id = u->job;
  s->job.env = &r->job_env;
  s->job.stamp = u->stamp;
  s->job.keep = u->tries + 1 < r->tries;
  s->job.attempt = u->attempt;
  s->job.attempt_shape = u->attempt_shape;
  snprintf(s->job.policy, sizeof s->job.policy, "%s", u->want.policy);
  snprintf(s->job.reason, sizeof s->job.reason, "%s", u->want.reason);
  s->job.metrics = run_policy_metrics(r, u);
  /* An empty table is written, too: an older one must not come back. */
  if (u->group->memory_changed) s->memory = strdup(u->group->memory ? u->group->memory : "{}");
  atomic_store(&s->job.total, u->bytes);
  int rc = plan_save(&facts, &u->want, store_can(r->store, STORE_CAP_PUBLISH), &s->job.plan, e);
  err full = {0};
  if (rc == 0 && pool_submit(r->env->pool, save_on_worker, s, &full) < 0) {
    u->next_try = r->env->io->now(r->env->io, IO_MONO) + 1000000000;
    free_save(s);
    return 0;
  }
  if (rc < 0) {
    free_save(s);
    return rc;
  }
  r->tasks++;
  if (s->memory) u->group->memory_changed = false;
  run_policy_begun(r, u->group);
  run_note(r, u, TRAIL_BEGUN, NULL);
  u->phase = UNIT_RUNNING;
  u->save = u->group->save = s;
  return 0;
}

/* The unit of this group whose turn it is: the oldest, or when time is short the newest. */
static run_unit *next_of(run *r, const run_group *g, int64_t now) {
  run_unit *next = NULL;
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (u->group != g || !run_unit_queued(u) || u->next_try > now) continue;
    if (!next || is_newer(u, next) == r->preempted) next = u;
  }
  return next;
}

/* When each is wanted, the order of saves is that of their ages, so all have to be known first. */
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
    run_unit *u = g->save || run_keep_busy(g) ? NULL : next_of(r, g, now);
    if (u) rc = start_save(r, u, e);
  }
  return rc;
}

void run_hurry(run *r) {
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (run_unit_queued(u) && r->rest == POLICY_REST_NONE)
      drop_unwanted(r, u, "the policy wants nothing saved when time is short");
    if (run_unit_queued(u) && u->want.action == POLICY_SAVE && r->rest == POLICY_REST_NEWEST)
      drop_older(r, u);
    if (u->phase == UNIT_RETRYING) u->next_try = 0;
  }
}

void run_no_writer(run *r) {
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->phase == UNIT_WAITING) r->units[i]->next_try = 0;
}

/* ---- what a job says ---- */

/* Is the unit another one than when this save began? */
static bool changed_since(run *r, const run_save *s, detect_unit *now) {
  return s->unit->gone || !detect_find(r->detect, s->unit->path, now) ||
         (now->state != DETECT_COMPLETE && now->state != DETECT_UNPROVEN) ||
         !digest_equal(&now->fingerprint, &s->fingerprint);
}

static void fail(run *r, run_unit *u, int status, const char *reason) {
  u->phase = UNIT_FAILED;
  u->status = status;
  r->failed++;
  run_note(r, u, TRAIL_FAILED, reason);
  run_policy_tell(r, u, POLICY_ON_FAILED, status, reason);
  run_tell(r, u, RUN_FAILED, NULL, status, reason);
}

static void give_up(run *r, run_unit *u, detect_state state) {
  static const char why[] = "it changed each time it was read";
  if (state == DETECT_COMPLETE) {
    fail(r, u, ERR_RETIRED, why);
  } else {
    u->phase = UNIT_UNPROVEN;
    run_note(r, u, TRAIL_UNPROVEN, why);
    run_tell(r, u, RUN_UNPROVEN, NULL, 0, why);
  }
}

/* Where a unit stands when a save of it is over and its content was not saved: what the detector
 * said meanwhile was put off. One that is retired again and again, though it looks unchanged, is
 * not tried for ever. */
static void stand(run *r, run_unit *u, bool changed) {
  enum { RETIRED_MAX = 3 };
  detect_unit now;
  u->phase = UNIT_RETIRED;
  if (changed) u->retired = 0;
  if (r->closing || u->gone || !detect_find(r->detect, u->path, &now)) return;
  run_unit_take(r, &now, &u, NULL); /* it is known already: nothing is made */
  switch (now.state) {
  case DETECT_OPEN:
    u->phase = UNIT_SETTLING;
    run_note(r, u, TRAIL_OPEN, NULL);
    break;
  case DETECT_BROKEN:
    u->phase = UNIT_UNPROVEN;
    run_note(r, u, TRAIL_UNPROVEN, NULL);
    run_tell(r, u, RUN_UNPROVEN, NULL, 0, u->reason);
    break;
  case DETECT_COMPLETE:
  case DETECT_UNPROVEN:
    if (u->retired > RETIRED_MAX) {
      give_up(r, u, now.state);
      break;
    }
    run_consider(r, u, NULL);
    /* Where the tree is polled, what the save saw may not be known here yet. */
    if (!changed && u->phase == UNIT_WAITING) u->next_try += (int64_t)u->retired * 1000000000;
    break;
  case DETECT_GONE: break;
  }
}

static void on_committed(run *r, run_save *s) {
  err e = {0};
  detect_unit now;
  run_unit *u = s->unit;
  r->committed++;
  r->bytes_committed += s->job.bytes;
  u->retired = 0;
  run_group_note_newest(s->group);
  run_keep_ask(r, s->group);
  run_note(r, u, TRAIL_COMMITTED, s->reason);
  run_tell(r, u, RUN_COMMITTED, &s->job, 0, s->reason);
  run_policy_tell(r, u, POLICY_ON_COMMITTED, 0, s->reason);
  made_it(r, u);
  if (s->job.plan.kind == MATCH_DIR && run_dir_note(r, u->path, &e) < 0)
    log_say(r->env->log, LOG_WARN, "%s", e.text);
  if (!changed_since(r, s, &now)) {
    run_unit_durable(r, u);
    if (journal_note(r->journal, u->path, JOURNAL_COMMITTED, &s->fingerprint, s->job.commit, &e) <
        0)
      log_say(r->env->log, LOG_WARN, "%s", e.text);
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
  u->phase = UNIT_UNPROVEN;
  run_note(r, u, TRAIL_UNPROVEN, s->job.error.text);
  run_tell(r, u, RUN_UNPROVEN, NULL, 0, s->job.error.text);
}

static void on_touched(run *r, run_save *s) {
  err e = {0};
  detect_unit now;
  run_unit *u = s->unit;
  r->retired++;
  run_tell(r, u, RUN_RETIRED, NULL, ERR_RETIRED, s->job.error.text);
  if (changed_since(r, s, &now)) {
    stand(r, u, true);
    return;
  }
  run_unit_durable(r, u);
  run_note(r, u, TRAIL_COMMITTED, s->job.error.text);
  if (journal_note(r->journal, u->path, JOURNAL_COMMITTED, &s->fingerprint, s->job.commit, &e) < 0)
    log_say(r->env->log, LOG_WARN, "%s", e.text);
}

void run_fenced(run *r, const char *where, const char *reason) {
  if (r->fenced) return;
  r->fenced = true;
  for (size_t i = 0; i < r->unit_count; i++)
    if (run_unit_queued(r->units[i])) run_note(r, r->units[i], TRAIL_FENCED, reason);
  run_news news = {.kind = RUN_FENCED,
                   .status = ERR_FENCED,
                   .step = MATCH_NO_STEP,
                   .unit = where,
                   .reason = reason};
  r->env->tell(r->env->ctx, r, &news);
}

static void on_fenced(run *r, run_save *s) {
  run_unit *u = s->unit;
  u->phase = UNIT_FAILED;
  u->status = ERR_FENCED;
  r->failed++;
  run_note(r, u, TRAIL_FENCED, s->job.error.text);
  run_fenced(r, u->path, s->job.error.text);
}

/* 1, 2, 4, ... 60 s; when time is short, each second counts. */
static int64_t pause_before(const run *r, unsigned tries) {
  enum { LAST_S = 60 };
  int64_t s = r->preempted ? 1 : tries > 6 ? LAST_S : (int64_t)1 << (tries - 1);
  return s * 1000000000;
}

/* A policy wants nothing saved any more: what waits is let go, or it would wait for ever. */
static void stop_saving(run *r) {
  r->aborted = true;
  for (size_t i = 0; i < r->unit_count; i++)
    if (run_unit_queued(r->units[i]))
      drop_unwanted(r, r->units[i], "after an error the policy wanted nothing saved any more");
}

/* A policy may change what the error's class says, within the bounds: nothing is tried for ever. */
static bool tries_again(run *r, run_unit *u, const job *j, int64_t *pause) {
  enum { LONGEST_S = 3600 };
  double seconds = 0;
  bool again = err_class_of(j->status) == ERR_CLASS_RETRYABLE;
  u->tries++;
  policy_remedy remedy = run_policy_error(r, u, j->status, j->error.text, &seconds);
  *pause = pause_before(r, u->tries);
  if (remedy == POLICY_RETRY) {
    again = err_class_of(j->status) != ERR_CLASS_FATAL;
    *pause = (int64_t)((seconds < LONGEST_S ? seconds : LONGEST_S) * 1e9);
  }
  if (remedy == POLICY_ABORT) stop_saving(r);
  return again && remedy != POLICY_GIVE_UP && remedy != POLICY_ABORT && u->tries < r->tries;
}

static void on_error(run *r, run_save *s) {
  int64_t pause;
  detect_unit now;
  run_unit *u = s->unit;
  const job *j = &s->job;
  if (u->gone) {
    on_retired(r, s);
  } else if (changed_since(r, s, &now)) {
    /* Another try would save what was never said to be complete: its turn comes when it is. */
    run_tell(r, u, RUN_RETRYING, NULL, j->status, j->error.text);
    stand(r, u, true);
  } else if (tries_again(r, u, j, &pause)) {
    u->phase = UNIT_RETRYING;
    u->status = j->status;
    u->next_try = r->env->io->now(r->env->io, IO_MONO) + pause;
    run_note(r, u, TRAIL_RETRYING, j->error.text);
    run_tell(r, u, RUN_RETRYING, NULL, j->status, j->error.text);
  } else {
    fail(r, u, j->status, j->error.text);
  }
}

static void on_given_up(run *r, run_save *s) {
  detect_unit now;
  fail(r, s->unit, ERR_CANCELED, "it was cancelled");
  if (changed_since(r, s, &now)) stand(r, s->unit, true);
}

static void save_done(run_task *task) {
  run_save *s = (run_save *)task; /* the task is its first member */
  run *r = task->run;
  run_unit *u = s->unit;
  int status = s->job.status;
  u->save = s->group->save = NULL;
  u->attempt = s->job.attempt;
  u->attempt_shape = s->job.attempt_shape;
  if (s->term != RUNLOG_NONE) s->group->term = s->term;
  if (s->memory && !s->memory_kept) s->group->memory_changed = true; /* the next save takes it */
  if (status == 0)
    on_committed(r, s);
  else if (status == ERR_FENCED)
    on_fenced(r, s);
  else if (status == ERR_CANCELED && s->given_up)
    on_given_up(r, s);
  else if (status == ERR_RETIRED && s->job.unproven)
    on_unproven(r, s);
  else if (status == ERR_RETIRED && s->job.touched)
    on_touched(r, s);
  else if (status == ERR_RETIRED || status == ERR_CANCELED)
    on_retired(r, s);
  else
    on_error(r, s);
  if (!run_unit_queued(u)) u->job = 0;
  if (u->gone) run_unit_remove(r, u);
  free_save(s);
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

void run_finished(run_task *task) {
  task->run->tasks--;
  task->done(task);
}

/* ---- the lease ---- */

struct renewal {
  run_task task;
  const group *group;
  uint64_t term;
};

static void renew_on_worker(void *arg) {
  struct renewal *w = arg;
  run *r = w->task.run;
  err e = {0};
  if (group_renew(w->group, w->term, &e) < 0)
    log_say(r->env->log, LOG_WARN, "the lease could not be renewed: %s", e.text);
  r->env->finished(r->env->ctx, &w->task);
}

static void renew_done(run_task *task) {
  free(task);
}

/* The first save of a group may last longer than a lease. */
static uint64_t term_of(const run_group *g) {
  return g->term == RUNLOG_NONE && g->save ? atomic_load(&g->save->term) : g->term;
}

static void renew(run *r, run_group *g) {
  err full = {0};
  struct renewal *w = malloc(sizeof *w);
  if (!w) return; /* the next time is soon enough */
  *w = (struct renewal){{.run = r, .done = renew_done}, &g->group, term_of(g)};
  if (pool_submit(r->env->pool, renew_on_worker, w, &full) < 0)
    free(w);
  else
    r->tasks++;
}

int64_t run_renew_leases(run *r, int64_t now) {
  if (now < r->lease_at) return r->lease_at;
  if (r->fenced) return r->lease_at = INT64_MAX; /* it is the newer writer's now */
  r->lease_at = now + (int64_t)LEASE_RENEW_S * 1000000000;
  for (size_t i = 0; i < r->group_count; i++)
    if (term_of(r->groups[i]) != RUNLOG_NONE) renew(r, r->groups[i]);
  return r->lease_at;
}
