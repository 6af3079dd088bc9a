/* The attempt of a job: a new one, or one that an earlier try left; and what becomes of it when the
 * job fails. */
#include <string.h>

#include "core/settle.h"
#include "job_impl.h"

/* Fills the result in from the log, if our attempt is committed there. */
bool job_committed(job_work *w) {
  job *j = w->job;
  const runlog_commit *c = runlog_commit_of(runlog_view(j->log), w->attempt);
  if (!c) return false;
  j->commit = c->n;
  j->time_ns = c->time_ns;
  j->files = c->files;
  j->bytes = c->bytes;
  return true;
}

/* Goes on with the attempt of an earlier try, if that was made for these very files and is still
 * ours, by what the log says now. */
static int take_up(job_work *w, err *e) {
  const job *j = w->job;
  if (j->attempt == 0 || j->attempt_shape != w->shape) return 0;
  int rc = runlog_refresh(j->log, e);
  if (rc < 0) return rc;
  const runlog_state *state = runlog_view(j->log);
  const runlog_attempt *a = runlog_find_attempt(state, j->attempt);
  if (!a || a->fate == RUNLOG_SWEPT || a->owner != state->term.n ||
      strcmp(a->unit, job_unit(j)) != 0)
    return 0;
  w->attempt = j->attempt;
  w->over = job_committed(w);
  w->resumed = !w->over;
  return 0;
}

/* An earlier job of ours may have failed with the store, and so could not even sweep. */
int job_attempt_begin(job_work *w, err *e) {
  runlog *log = w->job->log;
  int rc = take_up(w, e);
  if (rc == 0) rc = settle_own(w->env->store, log, w->attempt, w->env->log, e);
  if (rc == 0 && w->attempt == RUNLOG_NONE)
    rc = runlog_attempt_begin(log, job_unit(w->job), &w->attempt, e);
  if (rc < 0) return rc;
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), w->attempt);
  rc = runlog_key_dir(log, a->dir, w->dir, e);
  if (rc == 0 && w->staged)
    rc = runlog_key_staging(log, w->attempt, w->prefix, e);
  else if (rc == 0)
    memcpy(w->prefix, w->dir, sizeof w->prefix);
  return rc;
}

/* Is what was sent to stay, for another try or for a next term? */
static bool is_left(const job *j, int rc) {
  if (!store_can(j->env->store, STORE_CAP_RESUME)) return false;
  if (rc == ERR_CANCELED) return atomic_load(&j->cancel) == JOB_LEAVE;
  return j->keep && err_class_of(rc) == ERR_CLASS_RETRYABLE;
}

/* After a failure. The commit's answer may be all that was lost: the log knows. If it cannot be
 * asked, all stays where it is, and a later job or a later term settles it. A writer that was
 * pushed aside touches nothing more. */
int job_give_up(job_work *w, int rc) {
  job *j = w->job;
  err e = {0};
  if (w->attempt == RUNLOG_NONE) return rc;
  if (is_left(j, rc)) {
    j->attempt = w->attempt;
    j->attempt_shape = w->shape;
    return rc;
  }
  j->attempt = 0;
  int swept = settle_give_up(w->env->store, j->log, w->attempt, w->env->log, &e);
  if (swept == 0) return rc;
  if (job_committed(w)) {
    j->error = (err){0};
    return 0;
  }
  if (swept == ERR_FENCED) {
    j->error = e;
    return swept;
  }
  log_say(w->env->log, LOG_WARN, "%s: the unfinished save is left for a later clean-up: %s",
          j->plan.unit, e.text);
  return rc;
}
