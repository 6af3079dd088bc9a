/* job_seal: makes the manifest, the rename and the commit, when the files are in the store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/settle.h"
#include "base/fault.h"
#include "job_impl.h"
#include "commit/manifest_read.h"

void job_set_keys(const job_work *w, manifest *m) {
  m->plain_keys = w->plain_keys;
  m->in_bucket = w->env->store->ops->spell != NULL;
}

int job_describe(job_work *w, err *e) {
  const job *j = w->job;
  int rc = unit_files_manifest(w->from, job_unit(j), j->plan.step, HASH_XXH3_128, &w->manifest, e);
  if (rc < 0) return rc;
  job_set_keys(w, &w->manifest);
  w->manifest.above = j->plan.above;
  w->manifest.created_ns = w->env->io->now(w->env->io, IO_WALL);
  w->manifest.policy = strdup(j->policy);
  w->manifest.metrics = j->metrics ? strdup(j->metrics) : NULL;
  const bool noted = names_add_all(&w->manifest.left_globs, w->rules->left);
  if (!w->manifest.policy || (j->metrics && !w->manifest.metrics) || !noted)
    return err_set(e, ERR_NOMEM, "manifest of %s: out of memory", j->plan.unit);
  return 0;
}

/* Takes the manifest that is there, if it is of the same table: an earlier try has put it, or
 * another rank, which may have shown the directory since. */
static int take_manifest(job_work *w, err *e) {
  manifest there = {0};
  err why = {0};
  int rc = manifest_read(w->env->store, w->prefix, &there, &why);
  if (rc == ERR_NOENT && w->staged) rc = manifest_read(w->env->store, w->dir, &there, &why);
  if (rc < 0 && err_class_of(rc) == ERR_CLASS_RETRYABLE) return err_set(e, rc, "%s", why.text);
  bool same = rc == 0 && digest_equal(&there.root, &w->manifest.root);
  manifest_free(same ? &w->manifest : &there);
  if (!same) return err_set(e, ERR_EXISTS, "%s: another manifest is there already", w->prefix);
  w->manifest = there;
  return 0;
}

int job_manifest(job_work *w, err *e) {
  buf text;
  char key[STORE_KEY_MAX];
  buf_init(&text, MANIFEST_BYTES_MAX);
  int rc = w->env->ranks ? 0 : job_describe(w, e); /* ranks make it of their parts */
  if (rc == 0) rc = job_check_stands(w, w->prefix, &w->manifest, e);
  if (rc == 0) {
    job_set_keys(w, &w->manifest);
    free(w->manifest.attempt); /* it may be of an earlier try */
    w->manifest.attempt = strdup(w->mark);
    if (!w->manifest.attempt)
      rc = err_set(e, ERR_NOMEM, "manifest of %s: out of memory", w->prefix);
  }
  if (rc == 0) rc = manifest_print(&w->manifest, &text, e);
  if (rc == 0 && snprintf(key, sizeof key, "%s/%s", w->prefix, MANIFEST_NAME) >= (int)sizeof key)
    rc = err_set(e, ERR_LIMIT, "%s: the store's name for it is too long", w->prefix);
  if (rc == 0 && !w->staged && FAULT("commit-before-manifest")) rc = job_commit(w, e);
  if (rc == 0)
    rc = manifest_text_digest(w->manifest.hash, text.data, text.len, &w->manifest.text, e);
  if (rc == 0)
    rc = store_put_marked(w->env->store, key, text.data, text.len, STORE_IF_ABSENT, w->mark, e);
  if (rc == ERR_EXISTS && !w->ahead && (w->resumed || w->env->ranks)) rc = take_manifest(w, e);
  buf_free(&text);
  return rc;
}

/* Another rank was quicker: the directory `dir` is this very save, all of it. Our own put of the
 * manifest has made a staging again, which nobody needs. */
static int shown_by_another(job_work *w, err *e) {
  store *s = w->env->store;
  manifest there = {0};
  int rc = manifest_read(s, w->dir, &there, e);
  if (rc == 0 && !digest_equal(&there.root, &w->manifest.root))
    rc = err_set(e, ERR_EXISTS, "%s: something else is there already", w->dir);
  if (rc == 0) w->manifest.text = there.text; /* that one stands */
  manifest_free(&there);
  return rc < 0 ? rc : s->ops->remove_prefix(s, w->prefix, e);
}

int job_publish(job_work *w, err *e) {
  err why = {0};
  if (w->shown) return settle_flush_shown(w->env->store, w->job->log, w->attempt, e);
  int rc = w->ahead ? job_announce(w, e) : 0;
  if (rc == 0 && FAULT("commit-before-manifest")) rc = job_commit(w, e);
  if (rc < 0) return rc;
  rc = w->env->store->ops->publish(w->env->store, w->prefix, w->dir, &why);
  if (w->env->ranks && (rc == ERR_EXISTS || rc == ERR_NOENT)) return shown_by_another(w, e);
  return rc < 0 ? err_set(e, rc, "%s", why.text) : rc;
}

/* A snapshot only saves readers requests: nothing waits for it, and nothing is lost without it. */
static void make_snapshot(job_work *w) {
  err why = {0};
  if (runlog_snapshot(w->job->log, &why) < 0)
    log_say(w->env->log, LOG_DEBUG, "no snapshot of the log was made: %s", why.text);
}

int job_commit(job_work *w, err *e) {
  job_name_copy(w);
  char needs[RUNLOG_NEEDS_MAX];
  job_tell_needs(w, needs);
  runlog_note note = {.reason = w->for_rank_0 ? w->words.reason : w->job->reason,
                      .companions = w->companions,
                      .needs = w->for_rank_0 ? w->words.needs : needs};
  int rc = runlog_commit_attempt(w->job->log, w->attempt, &w->manifest, &note, NULL, e);
  if (rc == 0 && !job_committed(w))
    rc = err_set(e, ERR_INTERNAL, "our own commit is not in the log");
  if (rc == 0) make_snapshot(w);
  return rc;
}
