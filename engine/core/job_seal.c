/* The files are in the store: the manifest, the rename, the commit. */
#include <stdio.h>
#include <string.h>

#include "core/settle.h"
#include "job_impl.h"

static int describe(job_work *w, err *e) {
  const job *j = w->job;
  int rc = tree_manifest(w->from, job_unit(j), j->plan.step, HASH_XXH3_128, &w->manifest, e);
  if (rc < 0) return rc;
  w->manifest.created_ns = w->env->io->now(w->env->io, IO_WALL);
  w->manifest.policy = strdup(j->policy);
  w->manifest.metrics = j->metrics ? strdup(j->metrics) : NULL;
  if (!w->manifest.policy || (j->metrics && !w->manifest.metrics))
    return err_set(e, ERR_NOMEM, "manifest of %s: out of memory", j->plan.unit);
  return 0;
}

/* An earlier try has put a manifest. If it is of the same table, it is ours. */
static int take_manifest(job_work *w, err *e) {
  manifest there = {0};
  err why = {0};
  int rc = settle_read_manifest(w->env->store, w->prefix, &there, &why);
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
  int rc = describe(w, e);
  if (rc == 0) rc = manifest_print(&w->manifest, &text, e);
  if (rc == 0 && snprintf(key, sizeof key, "%s/%s", w->prefix, MANIFEST_NAME) >= (int)sizeof key)
    rc = err_set(e, ERR_LIMIT, "%s: the store's name for it is too long", w->prefix);
  if (rc == 0)
    rc = w->env->store->ops->put(w->env->store, key, text.data, text.len, STORE_IF_ABSENT, e);
  if (rc == ERR_EXISTS && w->resumed) rc = take_manifest(w, e);
  buf_free(&text);
  return rc;
}

int job_publish(job_work *w, err *e) {
  return w->env->store->ops->publish(w->env->store, w->prefix, w->dir, e);
}

int job_commit(job_work *w, err *e) {
  int rc = runlog_commit_attempt(w->job->log, w->attempt, &w->manifest, w->job->reason, NULL, e);
  if (rc == 0 && !job_committed(w))
    rc = err_set(e, ERR_INTERNAL, "our own commit is not in the log");
  return rc;
}
