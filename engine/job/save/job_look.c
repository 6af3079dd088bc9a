/* job_look: looks, before anything is announced, whether the unit is there, whole, and still the
 * one that was decided about. */
#include <stdio.h>
#include <string.h>

#include "prims/match_series.h"
#include "commit/manifest_read.h"
#include "job/move/snapshot.h"
#include "job/move/unit_kept.h"
#include "event/stamp.h"
#include "event/structure.h"
#include "job_impl.h"

static uint64_t mix(uint64_t h, const char *text) {
  for (; *text; text++) h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211); /* FNV-1a */
  return (h ^ 256) * UINT64_C(1099511628211);
}

/* Sums up the files. Unlike a stamp, it changes with a name: files that were sent under an old name
 * must not be taken up. */
static uint64_t shape_of(const unit_files *t) {
  uint64_t h = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < t->count; i++) {
    const unit_file *f = &t->files[i];
    h = mix(h, f->name) ^ (uint64_t)f->type;
    if (f->type == MANIFEST_FILE) h ^= stamp_of_file(f->size, f->mtime_ns, f->inode);
    if (f->target) h = mix(h, f->target);
  }
  return h;
}

/* Lists the unit, and waits until a later write would show in its times. */
int job_look(job_work *w, err *e) {
  const job_env *env = w->env;
  const plan *p = &w->job->plan;
  int rc = unit_files_scan_as(env->io, env->root, p->unit, p->kind, env->rules,
                              env->ranks ? UNIT_FILES_EACH : 0, &w->source, e);
  if (rc < 0) return rc;
  w->from = &w->source;
  w->shape = shape_of(&w->source);
  if (w->job->stamp && w->job->stamp != unit_files_stamp(&w->source))
    return err_set(e, ERR_RETIRED, "%s was written again before it was read", p->unit);
  int64_t wait = unit_files_racy_ns(&w->source, env->io->now(env->io, IO_WALL));
  if (wait > 0) env->io->sleep(env->io, wait);
  w->twice = unit_files_from_future(&w->source, env->io->now(env->io, IO_WALL));
  atomic_store(&w->job->total, w->source.bytes);
  w->lacks = unit_kept_look(env->io, &w->source);
  return 0;
}

/* Finds the newest commit of the unit's kind. */
static const runlog_commit *newest_of_kind(const runlog_state *state, const char *unit) {
  for (size_t i = state->commit_count; i-- > 0;)
    if (state->commits[i].life == RUNLOG_LIVE && match_same_series(state->commits[i].unit, unit))
      return &state->commits[i];
  return NULL;
}

/* True if a file is older than the commit. It is for a commit whose manifest is deleted, of which
 * only the time is known: a checkpoint that is saved anew has no file from before it. */
static bool has_older_file(const unit_files *t, const runlog_commit *c) {
  for (size_t i = 0; i < t->count; i++)
    if (t->files[i].type == MANIFEST_FILE && t->files[i].mtime_ns < c->time_ns) return true;
  return false;
}

static bool shares_a_file(const unit_files *t, const manifest *m) {
  for (size_t i = 0; i < t->count; i++) {
    const unit_file *f = &t->files[i];
    const manifest_entry *then = manifest_find(m, f->name);
    if (f->type == MANIFEST_FILE && f->size > 0 && then && then->size == f->size &&
        then->mtime_ns == f->mtime_ns)
      return true;
  }
  return false;
}

/* Refuses an older checkpoint into which something was written later (the results of an evaluation,
 * say). It is no newer checkpoint: committed again, it would be the one that a restart resumes
 * from. A file that did not change gives it away; a checkpoint that is saved anew has none. */
int job_check_touched(job_work *w, err *e) {
  job *j = w->job;
  char key[STORE_KEY_MAX];
  manifest then = {0};
  const runlog_state *state = runlog_view(j->log);
  const runlog_commit *mine = runlog_newest_ever(state, job_unit(j));
  const runlog_commit *last = newest_of_kind(state, job_unit(j));
  if (!mine || !last || mine == last || mine->n == j->lost || mine->step == MATCH_NO_STEP ||
      last->step <= mine->step)
    return 0;
  int rc = runlog_key_dir(j->log, mine->dir, key, e);
  if (rc < 0) return rc;
  bool touched;
  /* A manifest that cannot be read is no reason not to save. */
  if (mine->life == RUNLOG_DELETED) {
    touched = has_older_file(&w->source, mine);
  } else {
    if (manifest_read(w->env->store, key, &then, NULL) < 0) return 0;
    touched = shares_a_file(&w->source, &then);
    manifest_free(&then);
  }
  if (!touched) return 0;
  j->outcome = JOB_TOUCHED;
  /* If the commit's entry does not answer, the next run compares the files instead. */
  runlog_ref_of(j->log, mine->n, &j->commit, NULL);
  return err_set(e, ERR_RETIRED,
                 "%s was added to after %s was committed: what was committed of it stands",
                 j->plan.unit, last->unit);
}

/* True if it would be saved as it would be without those words, or as nothing at all. */
static bool in_vain(const job_work *w, const unit_files *less) {
  if (less->left_here == 0) return true;
  if (less->regular > 0 || w->source.regular == 0) return false;
  log_say(w->env->log, LOG_WARN,
          "%s is saved whole: what it was to be saved without, by the policy's `exclude`, is all "
          "that it has",
          w->job->plan.unit);
  return true;
}

/* It was judged, and is proven, by all of its files: they are listed again, and none may be another one
 * by now, or be gone. */
int job_leave_out(job_work *w, err *e) {
  const job_env *env = w->env;
  job *j = w->job;
  unit_files less;
  if (j->left.count == 0) return 0;
  w->less = *env->rules;
  w->less.left = names_list(&j->left);
  int rc = unit_files_scan_as(env->io, env->root, j->plan.unit, j->plan.kind, &w->less,
                              w->source.how, &less, e);
  if (rc < 0) return rc;
  rc = unit_files_within(&less, &w->source, j->plan.unit, &w->less, e);
  const bool whole = rc == 0 && in_vain(w, &less);
  if (rc < 0 || whole) unit_files_free(&less);
  if (whole) names_free(&j->left);
  if (rc < 0 || whole) return rc;
  unit_files_free(&w->source);
  w->source = less;
  w->rules = &w->less;
  w->shape = shape_of(&w->source);
  atomic_store(&j->total, w->source.bytes);
  return 0;
}

int job_prove(job_work *w, err *e) {
  const plan *p = &w->job->plan;
  structure found;
  char why[256] = "";
  int rc = structure_of_unit(w->env->io, w->env->root, p->unit, p->kind, w->env->rules, &found, why,
                             sizeof why, e);
  if (rc < 0) return rc == ERR_NOENT ? err_set(e, ERR_RETIRED, "%s vanished", p->unit) : rc;
  if (found == STRUCTURE_SOUND) return 0;
  w->job->outcome = JOB_UNPROVEN;
  return err_set(e, ERR_RETIRED, "%s: %s", p->unit,
                 found == STRUCTURE_TORN ? why : "nothing proves that it is whole");
}

int job_snapshot(job_work *w, err *e) {
  const job_env *env = w->env;
  char name[32];
  snprintf(name, sizeof name, "%llu", (unsigned long long)w->job->id);
  int rc = fs_join(w->snapshot, env->staging, name, e);
  if (rc == 0)
    rc = snapshot_take(env->io, env->root, w->job->plan.unit, w->rules, &w->source, w->snapshot,
                       w->twice, &w->job->cancel, &w->job->doing.alive, &w->copy, e);
  if (rc < 0) return rc;
  w->from = &w->copy;
  w->twice = false; /* nobody writes to the copy */
  return 0;
}
