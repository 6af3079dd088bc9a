/* The queue of saves of a run: whose turn it is, what became of it, what is tried again. */
#include <stdlib.h>
#include <string.h>

#include "core/lease.h"
#include "core/run_state.h"

bool run_unit_queued(const run_unit *u) {
  return u->phase == UNIT_WAITING || u->phase == UNIT_RETRYING;
}

/* A waiting older save of the same kind is let go: what is newer serves a restart better. Only a
 * unit that is known to be whole may push another one aside. */
static void drop_older(run *r, const run_unit *newer) {
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (u == newer || !run_unit_queued(u) || u->group != newer->group ||
        strcmp(u->series, newer->series) != 0 || u->changed_ns > newer->changed_ns)
      continue;
    u->phase = UNIT_RETIRED;
    r->dropped++;
    run_tell(r, u, RUN_DROPPED, NULL, 0, "a newer one was complete before this one's turn");
  }
}

static bool newer_waits(const run *r, const run_unit *than) {
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *u = r->units[i];
    if (u != than && run_unit_queued(u) && u->want.action == POLICY_SAVE &&
        u->group == than->group && strcmp(u->series, than->series) == 0 &&
        u->changed_ns > than->changed_ns)
      return true;
  }
  return false;
}

void run_enqueue(run *r, run_unit *u) {
  u->phase = UNIT_WAITING;
  u->tries = 0;
  u->complete_at = r->env->io->now(r->env->io, IO_MONO);
  if (u->want.queue != POLICY_NEWEST || u->want.action != POLICY_SAVE) return;
  if (newer_waits(r, u)) {
    u->phase = UNIT_RETIRED;
    r->dropped++;
    run_tell(r, u, RUN_DROPPED, NULL, 0, "a newer one waits already");
    return;
  }
  drop_older(r, u);
}

static void save_on_worker(void *arg) {
  run_save *s = arg;
  run *r = s->task.run;
  err *e = &s->job.error;
  int rc = group_begin(&s->group->group, e);
  if (rc == 0) {
    s->job.log = s->group->group.log;
    s->term = runlog_view(s->job.log)->term.n;
    job_run(&s->job);
  } else {
    s->job.status = rc;
  }
  r->env->finished(r->env->ctx, &s->task);
}

static void free_save(run_save *s) {
  free(s->job.metrics);
  free(s);
}

static void save_done(run_task *task);

/* Hands the unit's save to the pool; a full pool leaves it waiting. */
static int start_save(run *r, run_unit *u, err *e) {
  detect_unit facts = {.path = u->path, .kind = u->kind, .step = u->step, .in_place = u->in_place};
  run_save *s = calloc(1, sizeof *s);
  if (!s) return err_set(e, ERR_NOMEM, "save %s: out of memory", u->path);
  *s = (run_save){.task = {.run = r, .done = save_done},
                  .unit = u,
                  .group = u->group,
                  .term = RUNLOG_NONE,
                  .fingerprint = u->fingerprint};
  s->job.id = r->env->next_job(r->env->ctx);
  s->job.env = &r->job_env;
  strncpy(s->job.policy, u->want.policy, sizeof s->job.policy - 1);
  s->job.metrics = r->metrics ? strdup(r->metrics) : NULL;
  atomic_store(&s->job.total, u->bytes);
  int rc = plan_save(&facts, &u->want, store_can(r->store, STORE_CAP_PUBLISH), &s->job.plan, e);
  err full = {0};
  if (rc == 0 && pool_submit(r->env->pool, save_on_worker, s, &full) < 0) {
    free_save(s);
    return 0;
  }
  if (rc < 0) {
    free_save(s);
    return rc;
  }
  r->tasks++;
  u->phase = UNIT_RUNNING;
  u->save = u->group->save = s;
  return 0;
}

/* The unit of this group whose turn it is: the oldest that waits. */
static run_unit *next_of(run *r, const run_group *g, int64_t now) {
  run_unit *next = NULL;
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (u->group != g || !run_unit_queued(u) || (u->phase == UNIT_RETRYING && u->next_try > now))
      continue;
    if (!next || u->changed_ns < next->changed_ns) next = u;
  }
  return next;
}

int run_start_saves(run *r, err *e) {
  int64_t now = r->env->io->now(r->env->io, IO_MONO);
  int rc = 0;
  for (size_t i = 0; rc == 0 && !r->fenced && i < r->group_count; i++) {
    run_group *g = r->groups[i];
    run_unit *u = g->save ? NULL : next_of(r, g, now);
    if (u) rc = start_save(r, u, e);
  }
  return rc;
}

void run_hurry(run *r) {
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (run_unit_queued(u) && u->want.action == POLICY_SAVE) drop_older(r, u);
    if (u->phase == UNIT_RETRYING) u->next_try = 0;
  }
}

/* ---- what a job says ---- */

/* Where a unit stands when no save of it runs any more: the detector may have said something new
 * while one did. A unit that is retired again and again, though it looks unchanged, is not tried
 * for ever. */
static void stand(run *r, run_unit *u, const run_save *s, bool committed) {
  enum { RETIRED_MAX = 3 };
  detect_unit now;
  u->phase = UNIT_RETIRED;
  if (r->closing || u->gone || !detect_find(r->detect, u->path, &now)) return;
  if (committed && digest_equal(&now.fingerprint, &s->fingerprint)) {
    u->phase = UNIT_DURABLE;
  } else if (now.state == DETECT_OPEN) {
    u->phase = UNIT_SETTLING;
  } else if (now.state == DETECT_BROKEN) {
    u->phase = UNIT_UNPROVEN;
  } else if ((now.state == DETECT_COMPLETE || now.state == DETECT_UNPROVEN) &&
             u->retired <= RETIRED_MAX) {
    run_enqueue(r, u);
  }
}

static void on_committed(run *r, run_unit *u, const run_save *s) {
  err e = {0};
  const job *j = &s->job;
  r->committed++;
  r->bytes_committed += j->bytes;
  run_group_note_newest(s->group);
  run_tell(r, u, RUN_COMMITTED, j, 0, u->reason);
  stand(r, u, s, true);
  if (u->phase == UNIT_DURABLE &&
      journal_note(r->journal, u->path, JOURNAL_COMMITTED, &s->fingerprint, j->commit, &e) < 0)
    log_say(r->env->log, LOG_WARN, "%s", e.text);
}

static void on_retired(run *r, run_unit *u, const run_save *s) {
  if (s->job.unproven) {
    u->phase = UNIT_UNPROVEN;
    run_tell(r, u, RUN_UNPROVEN, &s->job, 0, s->job.error.text);
    return;
  }
  r->retired++;
  u->retired++;
  run_tell(r, u, RUN_RETIRED, &s->job, ERR_RETIRED, s->job.error.text);
  stand(r, u, s, false);
}

static void on_fenced(run *r, run_unit *u, const job *j) {
  u->phase = UNIT_FAILED;
  u->status = ERR_FENCED;
  r->failed++;
  if (r->fenced) return;
  r->fenced = true;
  run_tell(r, u, RUN_FENCED, j, ERR_FENCED, j->error.text);
}

static void on_error(run *r, run_unit *u, const job *j) {
  enum { LAST_S = 60 };
  u->status = j->status;
  if (err_class_of(j->status) == ERR_CLASS_RETRYABLE && ++u->tries < r->tries) {
    int64_t wait = u->tries > 6 ? LAST_S : (int64_t)1 << (u->tries - 1); /* 1, 2, 4, ... 60 s */
    u->phase = UNIT_RETRYING;
    u->next_try = r->env->io->now(r->env->io, IO_MONO) + wait * 1000000000;
    run_tell(r, u, RUN_RETRYING, j, j->status, j->error.text);
    return;
  }
  u->phase = UNIT_FAILED;
  r->failed++;
  run_tell(r, u, RUN_FAILED, j, j->status, j->error.text);
}

static void save_done(run_task *task) {
  run_save *s = (run_save *)task; /* the task is its first member */
  run *r = task->run;
  run_unit *u = s->unit;
  u->save = s->group->save = NULL;
  if (s->term != RUNLOG_NONE) s->group->term = s->term;
  switch (s->job.status) {
  case 0: on_committed(r, u, s); break;
  case ERR_RETIRED:
  case ERR_CANCELED: on_retired(r, u, s); break;
  case ERR_FENCED: on_fenced(r, u, &s->job); break;
  default: on_error(r, u, &s->job); break;
  }
  if (u->gone) run_unit_remove(r, u);
  free_save(s);
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

static void renew(run *r, run_group *g) {
  err full = {0};
  struct renewal *w = malloc(sizeof *w);
  if (!w) return; /* the next time is soon enough */
  *w = (struct renewal){{.run = r, .done = renew_done}, &g->group, g->term};
  if (pool_submit(r->env->pool, renew_on_worker, w, &full) < 0)
    free(w);
  else
    r->tasks++;
}

int64_t run_renew_leases(run *r, int64_t now) {
  if (now < r->lease_at) return r->lease_at;
  r->lease_at = now + (int64_t)LEASE_RENEW_S * 1000000000;
  for (size_t i = 0; i < r->group_count; i++)
    if (r->groups[i]->term != RUNLOG_NONE) renew(r, r->groups[i]);
  return r->lease_at;
}
