#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/structure.h"
#include "core/transfer.h"
#include "core/tree.h"
#include "prims/fs.h"

/* What the operations of one job hand to one another. */
struct work {
  job *job;
  const job_env *env;
  tree source; /* the unit as it stood when the job began */
  tree copy;   /* of its snapshot, if there is one */
  tree *from;  /* what is sent: one of the two */
  manifest manifest;
  char snapshot[FS_PATH_MAX]; /* "" : none */
  uint64_t attempt;           /* RUNLOG_NONE: not announced yet */
  char prefix[STORE_KEY_MAX]; /* where the files go */
  char dir[STORE_KEY_MAX];    /* where they will stand */
  bool published;
  bool twice;
};

static const char *unit_name(const job *j) {
  return fs_base(j->plan.unit);
}

/* Lists the unit, and waits until a later write would show in its times. */
static int look(struct work *w, err *e) {
  const job_env *env = w->env;
  const plan *p = &w->job->plan;
  int rc = tree_scan(env->io, env->root, p->unit, p->kind, env->rules, &w->source, e);
  if (rc < 0) return rc;
  w->from = &w->source;
  int64_t wait = tree_racy_ns(&w->source, env->io->now(env->io, IO_WALL));
  if (wait > 0) env->io->sleep(env->io, wait);
  w->twice = tree_from_future(&w->source, env->io->now(env->io, IO_WALL));
  atomic_store(&w->job->total, w->source.bytes);
  return 0;
}

/* The unit must be what it was when the job began, to the last name in it. */
static int unchanged(struct work *w, err *e) {
  const plan *p = &w->job->plan;
  tree now;
  int rc = tree_scan(w->env->io, w->env->root, p->unit, p->kind, w->env->rules, &now, e);
  if (rc < 0) return rc;
  rc = tree_same(&w->source, &now, e);
  tree_free(&now);
  return rc;
}

static int do_prove(struct work *w, err *e) {
  const plan *p = &w->job->plan;
  structure found;
  char why[256] = "";
  int rc = structure_of_unit(w->env->io, w->env->root, p->unit, p->kind, w->env->rules, &found, why,
                             sizeof why, e);
  if (rc < 0) return rc == ERR_NOENT ? err_set(e, ERR_RETIRED, "%s vanished", p->unit) : rc;
  if (found == STRUCTURE_SOUND) return 0;
  w->job->unproven = true;
  return err_set(e, ERR_RETIRED, "%s: %s", p->unit,
                 found == STRUCTURE_TORN ? why : "nothing proves that it is whole");
}

static int copy_files(struct work *w, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < w->source.count; i++) {
    const tree_file *f = &w->source.files[i];
    char from[FS_PATH_MAX], to[FS_PATH_MAX];
    rc = tree_path(&w->source, f, from, e);
    if (rc == 0) rc = fs_join(to, w->snapshot, f->name, e);
    if (rc == 0)
      rc = fs_copy_file(w->env->io, from, to, false, (const volatile int *)&w->job->cancel, e);
  }
  return rc;
}

/* <staging>/<job>/<path of the unit>: the path is kept, for excludes are matched against it. */
static int do_snapshot(struct work *w, err *e) {
  const io *io = w->env->io;
  const plan *p = &w->job->plan;
  char name[32], root[FS_PATH_MAX], to[FS_PATH_MAX], parent[FS_PATH_MAX], from[FS_PATH_MAX];
  snprintf(name, sizeof name, "%llu", (unsigned long long)w->job->id);
  int rc = fs_join(root, w->env->staging, name, e);
  if (rc == 0) rc = fs_join(to, root, p->unit, e);
  if (rc == 0) rc = fs_join(from, w->env->root, p->unit, e);
  if (rc < 0) return rc;
  fs_parent(to, parent);
  rc = fs_mkdirs(io, parent, 0700, e);
  strcpy(w->snapshot, p->kind == MATCH_DIR ? to : parent);
  if (rc == 0 && p->kind == MATCH_DIR)
    rc = fs_copy_tree(io, from, to, false, (const volatile int *)&w->job->cancel, e);
  else if (rc == 0)
    rc = copy_files(w, e);
  strcpy(w->snapshot, root); /* what is removed at the end */
  if (rc == ERR_NOENT) return err_set(e, ERR_RETIRED, "%s vanished while it was copied", p->unit);
  if (rc == 0) rc = unchanged(w, e);
  if (rc == 0) rc = tree_scan(io, root, p->unit, p->kind, w->env->rules, &w->copy, e);
  if (rc == 0) w->from = &w->copy;
  return rc;
}

static bool staged(const struct work *w) {
  return store_can(w->env->store, STORE_CAP_PUBLISH);
}

static int do_attempt(struct work *w, err *e) {
  runlog *log = w->job->log;
  int rc = runlog_attempt_begin(log, unit_name(w->job), &w->attempt, e);
  if (rc < 0) return rc;
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), w->attempt);
  rc = runlog_key_dir(log, a->dir, w->dir, e);
  if (rc == 0 && staged(w))
    rc = runlog_key_staging(log, w->attempt, w->prefix, e);
  else if (rc == 0)
    strcpy(w->prefix, w->dir);
  return rc;
}

static transfer transfer_of(struct work *w) {
  return (transfer){.io = w->env->io,
                    .store = w->env->store,
                    .pool = w->env->pool,
                    .hash = HASH_XXH3_128,
                    .cancel = &w->job->cancel,
                    .done = &w->job->moved};
}

static int do_upload(struct work *w, err *e) {
  transfer t = transfer_of(w);
  int rc = transfer_up(&t, w->from, w->prefix, staged(w), w->twice, e);
  /* A snapshot was compared when it was made; what happens to the original since is its own affair.
   */
  return rc < 0 || w->from == &w->copy ? rc : unchanged(w, e);
}

static int describe(struct work *w, err *e) {
  const job *j = w->job;
  int rc = tree_manifest(w->from, unit_name(j), j->plan.step, HASH_XXH3_128, &w->manifest, e);
  if (rc < 0) return rc;
  w->manifest.created_ns = w->env->io->now(w->env->io, IO_WALL);
  w->manifest.mtime_ns = w->source.mtime_ns;
  w->manifest.mode = w->source.mode;
  w->manifest.policy = strdup(j->policy);
  w->manifest.metrics = j->metrics ? strdup(j->metrics) : NULL;
  if (!w->manifest.policy || (j->metrics && !w->manifest.metrics))
    return err_set(e, ERR_NOMEM, "manifest of %s: out of memory", j->plan.unit);
  return 0;
}

static int do_manifest(struct work *w, err *e) {
  buf text;
  char key[STORE_KEY_MAX];
  buf_init(&text, MANIFEST_BYTES_MAX);
  int rc = describe(w, e);
  if (rc == 0) rc = manifest_print(&w->manifest, &text, e);
  if (rc == 0 && snprintf(key, sizeof key, "%s/%s", w->prefix, MANIFEST_NAME) >= (int)sizeof key)
    rc = err_set(e, ERR_LIMIT, "%s: the store's name for it is too long", w->prefix);
  if (rc == 0)
    rc = w->env->store->ops->put(w->env->store, key, text.data, text.len, STORE_IF_ABSENT, e);
  buf_free(&text);
  return rc;
}

static int do_publish(struct work *w, err *e) {
  int rc = w->env->store->ops->publish(w->env->store, w->prefix, w->dir, e);
  if (rc == 0) w->published = true;
  return rc;
}

static int do_commit(struct work *w, err *e) {
  job *j = w->job;
  int rc = runlog_commit_attempt(j->log, w->attempt, &w->manifest, &j->commit, e);
  if (rc < 0) return rc;
  const runlog_state *state = runlog_view(j->log);
  j->time_ns = state->commits[state->commit_count - 1].time_ns;
  j->files = manifest_files(&w->manifest);
  j->bytes = manifest_bytes(&w->manifest);
  return 0;
}

static int (*const steps[])(struct work *, err *) = {
    [PLAN_PROVE] = do_prove,   [PLAN_SNAPSHOT] = do_snapshot, [PLAN_ATTEMPT] = do_attempt,
    [PLAN_UPLOAD] = do_upload, [PLAN_MANIFEST] = do_manifest, [PLAN_PUBLISH] = do_publish,
    [PLAN_COMMIT] = do_commit,
};

/* The attempt is given up in the log first: only then is nobody entitled to what it wrote. If the
 * log cannot be written, all stays where it is until a later term settles it. */
static void give_up(struct work *w) {
  err e = {0};
  store *s = w->env->store;
  int rc = runlog_sweep(w->job->log, w->attempt, &e);
  if (rc == 0) rc = s->ops->remove_prefix(s, w->prefix, &e);
  if (rc == 0 && w->published) rc = s->ops->remove_prefix(s, w->dir, &e);
  if (rc < 0)
    log_say(w->env->log, LOG_WARN, "%s: the unfinished save is left for a later clean-up: %s",
            w->job->plan.unit, e.text);
}

void job_run(job *j) {
  struct work w = {.job = j, .env = j->env, .attempt = RUNLOG_NONE};
  err *e = &j->error;
  int rc = plan_check(&j->plan, e);
  if (rc == 0) rc = look(&w, e);
  for (int i = 0; rc == 0 && i < j->plan.count; i++) {
    if (atomic_load(&j->cancel))
      rc = err_set(e, ERR_CANCELED, "%s: cancelled", j->plan.unit);
    else
      rc = steps[j->plan.ops[i]](&w, e);
  }
  if (rc < 0 && rc != ERR_FENCED && w.attempt != RUNLOG_NONE) give_up(&w);
  if (*w.snapshot) {
    err ignored = {0};
    if (fs_remove_tree(j->env->io, w.snapshot, &ignored) < 0)
      log_say(j->env->log, LOG_WARN, "%s", ignored.text);
  }
  manifest_free(&w.manifest);
  tree_free(&w.source);
  tree_free(&w.copy);
  j->status = rc;
}
