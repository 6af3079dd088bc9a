#include "job.h"

#include "commit/settle.h"
#include "job/move/transfer.h"
#include "job/move/unit_kept.h"
#include "job/move/unit_links.h"
#include "job_impl.h"

const char *job_unit(const job *j) {
  return fs_base(j->plan.unit);
}

void job_at(job *j, const char *what) {
  atomic_store(&j->doing.what, what);
  atomic_store(&j->doing.since, j->env->io->now(j->env->io, IO_MONO));
}

/* No store takes parts that are smaller, so what is left of an upload in parts is of larger files. */
static bool may_go_in_parts(const unit_files *files) {
  enum { LEAST = 5 << 20 };
  for (size_t i = 0; i < files->count; i++)
    if (files->files[i].size > LEAST) return true;
  return false;
}

static int job_upload(job_work *w, err *e) {
  const job_env *env = w->env;
  job *j = w->job;
  transfer t = {.io = env->io,
                .store = env->store,
                .pool = env->pool,
                .hash = HASH_XXH3_128,
                .mark = w->mark,
                .cancel = &j->cancel,
                .done = &j->moved,
                .sent = &j->doing.alive};
  /* A pointer is often written just behind its checkpoint, and the next one during the transfer. */
  int rc = job_look_companions(w, e);
  if (rc < 0) return rc;
  /* If several ranks have the same file, one sends it, and the others compare. */
  bool shared = env->ranks && store_can(env->store, STORE_CAP_RESUME);
  unsigned how = (w->staged && !w->shown ? STORE_STAGED : 0) |
                 (w->resumed || shared ? STORE_RESUME : 0) | (w->ahead ? TRANSFER_ANEW : 0);
  if (how & STORE_RESUME && !w->ahead && may_go_in_parts(w->from) && env->store->ops->write_since)
    rc = runlog_entry_time(j->log, w->attempt, &t.since_ns, e);
  if (rc < 0) return rc;
  rc = transfer_up(&t, w->from, w->prefix, how, w->twice, e);
  /* A snapshot was compared when it was made; a later change of the original does not matter. */
  if (rc < 0 || w->from == &w->copy) return rc;
  return unit_files_unchanged(env->io, env->root, j->plan.unit, w->rules, &w->source, e);
}

static int (*const steps[])(job_work *, err *) = {
    [PLAN_PROVE] = job_prove,           [PLAN_SNAPSHOT] = job_snapshot,
    [PLAN_ATTEMPT] = job_attempt_begin, [PLAN_UPLOAD] = job_upload,
    [PLAN_COMPANIONS] = job_companions, [PLAN_GATHER] = job_gather,
    [PLAN_MANIFEST] = job_manifest,     [PLAN_PUBLISH] = job_publish,
    [PLAN_COMMIT] = job_commit,
};

/* The job is said to wait for these, step by step, while nothing closer is known. */
static const char *const waits[] = {
    [PLAN_PROVE] = "checking its structure",  [PLAN_SNAPSHOT] = "copying it",
    [PLAN_ATTEMPT] = "announcing the save",   [PLAN_UPLOAD] = "sending files",
    [PLAN_GATHER] = "waiting for ranks",      [PLAN_COMPANIONS] = "sending what goes with it",
    [PLAN_MANIFEST] = "sending the manifest", [PLAN_PUBLISH] = "publishing it",
    [PLAN_COMMIT] = "committing it",
};

/* Checks the plan: it is data, and may have been made for another store. */
static int check(job_work *w, err *e) {
  const plan *p = &w->job->plan;
  int rc = plan_check(p, e);
  for (int i = 0; rc == 0 && i < p->count; i++) w->staged |= p->ops[i] == PLAN_PUBLISH;
  if (rc == 0 && p->count == 0) rc = err_set(e, ERR_INVAL, "the plan for %s is empty", p->unit);
  if (rc == 0 && w->staged != store_can(w->env->store, STORE_CAP_PUBLISH))
    rc = err_set(e, ERR_INVAL, "the plan for %s %s publish, and the store %s", p->unit,
                 w->staged ? "wants to" : "does not", w->staged ? "cannot" : "needs it");
  return rc;
}

static void clean_up(job_work *w) {
  err why = {0};
  if (*w->snapshot && fs_remove_tree(w->env->io, w->snapshot, &why) < 0)
    log_say(w->env->log, LOG_WARN, "%s", why.text);
  manifest_free(&w->manifest);
  manifest_free(&w->came_with);
  fs_held_free(w->held);
  names_free(&w->needs);
  unit_files_free(&w->source);
  unit_files_free(&w->copy);
}

static int run_plan(job_work *w, int from, err *e) {
  job *j = w->job;
  int rc = 0;
  for (int i = from; rc == 0 && !w->over && i < j->plan.count; i++) {
    job_at(j, waits[j->plan.ops[i]]);
    if (atomic_load(&j->cancel))
      rc = err_set(e, ERR_CANCELED, "%s: cancelled", j->plan.unit);
    else
      rc = steps[j->plan.ops[i]](w, e);
  }
  return rc;
}

/* Begins a new attempt, from nothing: an earlier try sent other files. */
static int begin_anew(job_work *w, err *e) {
  job *j = w->job;
  int at = 0;
  job_at(j, "removing what an earlier try sent");
  int rc = settle_give_up(w->env->store, j->log, w->attempt, w->env->log, e);
  if (rc < 0) return rc;
  *e = (err){0};
  w->attempt = RUNLOG_NONE;
  w->resumed = w->spoiled = w->ahead = false;
  j->attempt = 0;
  *j->staging = 0;
  atomic_store(&j->moved, 0);
  manifest_free(&w->manifest);
  while (j->plan.ops[at] != PLAN_ATTEMPT) at++;
  return run_plan(w, at, e);
}

/* Removes the leftovers of an earlier run. A save that nobody took up before this commit will not
 * be taken up: saves of a group go one after the other. Another rank's term is not this one's to
 * clean up after. */
static void sweep_older(job_work *w) {
  if (w->env->ranks && w->env->ranks->rank > 0) return;
  job_at(w->job, "removing what an earlier run left");
  settle_older(w->env->store, w->job->log, w->env->log);
  settle_staged(w->env->store, w->job->log, w->env->grace_ns, w->env->log);
}

/* What a step has found is the outcome if its error is the one that the job ended with: giving up may bring another. */
void job_end(job *j, int status) {
  const job_outcome found = j->outcome;
  const bool timed_out = found == JOB_WAITED || found == JOB_FORSAKEN;
  j->status = status;
  switch (status) {
  case 0: j->outcome = JOB_COMMITTED; break;
  case ERR_CANCELED: j->outcome = JOB_CANCELED; break;
  case ERR_FENCED: j->outcome = JOB_FENCED; break;
  case ERR_RETIRED: j->outcome = found == JOB_FAILED || timed_out ? JOB_RETIRED : found; break;
  case ERR_TIMEOUT: j->outcome = timed_out ? found : JOB_FAILED; break;
  default: j->outcome = JOB_FAILED;
  }
}

void job_run(job *j) {
  job_work w = {.job = j, .env = j->env, .rules = j->env->rules, .attempt = RUNLOG_NONE};
  const bool own = !j->beside;
  w.plain_keys = !j->env->store->ops->spell; /* or as its attempt says */
  err *e = &j->error;
  job_at(j, "reading its files");
  int rc = check(&w, e);
  if (rc == 0) rc = job_look(&w, e);
  if (rc == 0) rc = job_look_copy(&w, e);
  if (rc == 0) rc = job_check_touched(&w, e);
  if (rc == 0) rc = job_leave_out(&w, e);
  if (rc == 0) rc = job_look_companions(&w, e);
  if (rc == 0) rc = run_plan(&w, 0, e);
  if (rc == ERR_EXISTS && w.resumed && w.attempt != RUNLOG_NONE) rc = begin_anew(&w, e);
  if (rc == 0) j->attempt = 0, *j->staging = 0;
  if (rc < 0) job_at(j, "giving the save up");
  job_end(j, rc < 0 ? job_give_up(&w, rc) : 0);
  if (j->outcome == JOB_COMMITTED) {
    unit_links_tell(&w.source, w.env->log, j->plan.unit);
    unit_kept_tell(w.lacks, w.env->log, j->plan.unit);
    sweep_older(&w);
    job_forget_parts(&w);
  }
  clean_up(&w);
  if (!own) return;
  job_beside_free(j->beside);
  j->beside = NULL;
}
