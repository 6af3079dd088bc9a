#include "job.h"

#include <stdio.h>
#include <string.h>

#include "core/detect.h"
#include "core/settle.h"
#include "core/snapshot.h"
#include "core/stamp.h"
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
  char snapshot[FS_PATH_MAX]; /* what is removed at the end; "": nothing */
  uint64_t attempt;           /* RUNLOG_NONE: not announced yet */
  uint64_t shape;             /* of the source: its names and their stamps */
  bool resumed;               /* the attempt is the one of an earlier try */
  bool over;                  /* that one was committed, only the answer was lost */
  bool staged;                /* the files go to the staging, and publish() shows them */
  char prefix[STORE_KEY_MAX]; /* where the files go */
  char dir[STORE_KEY_MAX];    /* where they will stand */
  bool twice;                 /* times prove nothing: contents are read twice */
};

static const char *unit_name(const job *j) {
  return fs_base(j->plan.unit);
}

static uint64_t mix(uint64_t h, const char *text) {
  for (; *text; text++) h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211); /* FNV-1a */
  return (h ^ 256) * UINT64_C(1099511628211);
}

/* Other than a stamp, it changes with a name: what was sent under the old one must not be taken up.
 */
static uint64_t shape_of(const tree *t) {
  uint64_t h = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < t->count; i++) {
    const tree_file *f = &t->files[i];
    h = mix(h, f->name) ^ (uint64_t)f->type;
    if (f->type == MANIFEST_FILE) h ^= stamp_of_file(f->size, f->mtime_ns, f->inode);
    if (f->target) h = mix(h, f->target);
  }
  return h;
}

/* Lists the unit, and waits until a later write would show in its times. */
static int look(struct work *w, err *e) {
  const job_env *env = w->env;
  const plan *p = &w->job->plan;
  int rc = tree_scan(env->io, env->root, p->unit, p->kind, env->rules, &w->source, e);
  if (rc < 0) return rc;
  w->from = &w->source;
  w->shape = shape_of(&w->source);
  if (w->job->stamp && w->job->stamp != tree_stamp(&w->source))
    return err_set(e, ERR_RETIRED, "%s was written again before it was read", p->unit);
  int64_t wait = tree_racy_ns(&w->source, env->io->now(env->io, IO_WALL));
  if (wait > 0) env->io->sleep(env->io, wait);
  w->twice = tree_from_future(&w->source, env->io->now(env->io, IO_WALL));
  atomic_store(&w->job->total, w->source.bytes);
  return 0;
}

/* The newest commit of the unit's kind. */
static const runlog_commit *newest_of_kind(const runlog_state *state, const char *unit) {
  for (size_t i = state->commit_count; i-- > 0;)
    if (state->commits[i].life == RUNLOG_LIVE && detect_same_series(state->commits[i].unit, unit))
      return &state->commits[i];
  return NULL;
}

/* Of a commit whose manifest is deleted only the time is known: what is saved anew has no file from
 * before it. */
static bool has_older_file(const tree *t, const runlog_commit *c) {
  for (size_t i = 0; i < t->count; i++)
    if (t->files[i].type == MANIFEST_FILE && t->files[i].mtime_ns < c->time_ns) return true;
  return false;
}

static bool shares_a_file(const tree *t, const manifest *m) {
  for (size_t i = 0; i < t->count; i++) {
    const tree_file *f = &t->files[i];
    const manifest_entry *then = manifest_find(m, f->name);
    if (f->type == MANIFEST_FILE && f->size > 0 && then && then->size == f->size &&
        then->mtime_ns == f->mtime_ns)
      return true;
  }
  return false;
}

/* An older checkpoint into which something was written later (the results of an evaluation, say) is
 * no newer checkpoint: committed again, it would be the one that a restart resumes from. It is told
 * by a file that did not change; a checkpoint that is saved anew has none. */
static int check_touched(struct work *w, err *e) {
  job *j = w->job;
  char key[STORE_KEY_MAX];
  manifest then = {0};
  const runlog_state *state = runlog_view(j->log);
  const runlog_commit *mine = runlog_newest_ever(state, unit_name(j));
  const runlog_commit *last = newest_of_kind(state, unit_name(j));
  if (!mine || !last || mine == last || mine->step == MATCH_NO_STEP || last->step <= mine->step)
    return 0;
  int rc = runlog_key_dir(j->log, mine->dir, key, e);
  if (rc < 0) return rc;
  /* One that cannot be read is no reason not to save. */
  if (mine->life == RUNLOG_DELETED) {
    j->touched = has_older_file(&w->source, mine);
  } else {
    if (settle_read_manifest(w->env->store, key, &then, NULL) < 0) return 0;
    j->touched = shares_a_file(&w->source, &then);
    manifest_free(&then);
  }
  if (!j->touched) return 0;
  j->commit = mine->n;
  return err_set(e, ERR_RETIRED,
                 "%s was added to after %s was committed: what was committed of it stands",
                 j->plan.unit, last->unit);
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

static int do_snapshot(struct work *w, err *e) {
  const job_env *env = w->env;
  char name[32];
  snprintf(name, sizeof name, "%llu", (unsigned long long)w->job->id);
  int rc = fs_join(w->snapshot, env->staging, name, e);
  if (rc == 0)
    rc = snapshot_take(env->io, env->root, w->job->plan.unit, env->rules, &w->source, w->snapshot,
                       w->twice, &w->job->cancel, &w->copy, e);
  if (rc < 0) return rc;
  w->from = &w->copy;
  w->twice = false; /* nobody writes to the copy */
  return 0;
}

/* Fills the result in from the log, if our attempt is committed there. */
static bool committed(struct work *w) {
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
static int take_up(struct work *w, err *e) {
  const job *j = w->job;
  if (j->attempt == 0 || j->attempt_shape != w->shape) return 0;
  int rc = runlog_refresh(j->log, e);
  if (rc < 0) return rc;
  const runlog_state *state = runlog_view(j->log);
  const runlog_attempt *a = runlog_find_attempt(state, j->attempt);
  if (!a || a->fate == RUNLOG_SWEPT || a->owner != state->term.n ||
      strcmp(a->unit, unit_name(j)) != 0)
    return 0;
  w->attempt = j->attempt;
  w->over = committed(w);
  w->resumed = !w->over;
  return 0;
}

/* An earlier job of ours may have failed with the store, and so could not even sweep. */
static int do_attempt(struct work *w, err *e) {
  runlog *log = w->job->log;
  int rc = take_up(w, e);
  if (rc == 0) rc = settle_own(w->env->store, log, w->attempt, w->env->log, e);
  if (rc == 0 && w->attempt == RUNLOG_NONE)
    rc = runlog_attempt_begin(log, unit_name(w->job), &w->attempt, e);
  if (rc < 0) return rc;
  const runlog_attempt *a = runlog_find_attempt(runlog_view(log), w->attempt);
  rc = runlog_key_dir(log, a->dir, w->dir, e);
  if (rc == 0 && w->staged)
    rc = runlog_key_staging(log, w->attempt, w->prefix, e);
  else if (rc == 0)
    memcpy(w->prefix, w->dir, sizeof w->prefix);
  return rc;
}

static int do_upload(struct work *w, err *e) {
  const job_env *env = w->env;
  job *j = w->job;
  transfer t = {.io = env->io,
                .store = env->store,
                .pool = env->pool,
                .hash = HASH_XXH3_128,
                .cancel = &j->cancel,
                .done = &j->moved};
  unsigned how = (w->staged ? STORE_STAGED : 0) | (w->resumed ? STORE_RESUME : 0);
  int rc = transfer_up(&t, w->from, w->prefix, how, w->twice, e);
  /* A snapshot was compared when it was made; what happens to the original since is its own affair.
   */
  if (rc < 0 || w->from == &w->copy) return rc;
  return tree_unchanged(env->io, env->root, j->plan.unit, env->rules, &w->source, e);
}

static int describe(struct work *w, err *e) {
  const job *j = w->job;
  int rc = tree_manifest(w->from, unit_name(j), j->plan.step, HASH_XXH3_128, &w->manifest, e);
  if (rc < 0) return rc;
  w->manifest.created_ns = w->env->io->now(w->env->io, IO_WALL);
  w->manifest.policy = strdup(j->policy);
  w->manifest.metrics = j->metrics ? strdup(j->metrics) : NULL;
  if (!w->manifest.policy || (j->metrics && !w->manifest.metrics))
    return err_set(e, ERR_NOMEM, "manifest of %s: out of memory", j->plan.unit);
  return 0;
}

/* An earlier try has put a manifest. If it is of the same table, it is ours. */
static int take_manifest(struct work *w, err *e) {
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
  if (rc == ERR_EXISTS && w->resumed) rc = take_manifest(w, e);
  buf_free(&text);
  return rc;
}

static int do_publish(struct work *w, err *e) {
  return w->env->store->ops->publish(w->env->store, w->prefix, w->dir, e);
}

static int do_commit(struct work *w, err *e) {
  int rc = runlog_commit_attempt(w->job->log, w->attempt, &w->manifest, w->job->reason, NULL, e);
  if (rc == 0 && !committed(w)) rc = err_set(e, ERR_INTERNAL, "our own commit is not in the log");
  return rc;
}

static int (*const steps[])(struct work *, err *) = {
    [PLAN_PROVE] = do_prove,   [PLAN_SNAPSHOT] = do_snapshot, [PLAN_ATTEMPT] = do_attempt,
    [PLAN_UPLOAD] = do_upload, [PLAN_MANIFEST] = do_manifest, [PLAN_PUBLISH] = do_publish,
    [PLAN_COMMIT] = do_commit,
};

/* A plan is data, and may have been made for another store. */
static int check(struct work *w, err *e) {
  const plan *p = &w->job->plan;
  int rc = plan_check(p, e);
  for (int i = 0; rc == 0 && i < p->count; i++) w->staged |= p->ops[i] == PLAN_PUBLISH;
  if (rc == 0 && p->count == 0) rc = err_set(e, ERR_INVAL, "the plan for %s is empty", p->unit);
  if (rc == 0 && w->staged != store_can(w->env->store, STORE_CAP_PUBLISH))
    rc = err_set(e, ERR_INVAL, "the plan for %s %s publish, and the store %s", p->unit,
                 w->staged ? "wants to" : "does not", w->staged ? "cannot" : "needs it");
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
static int give_up(struct work *w, int rc) {
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
  if (committed(w)) {
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

static void clean_up(struct work *w) {
  err why = {0};
  if (*w->snapshot && fs_remove_tree(w->env->io, w->snapshot, &why) < 0)
    log_say(w->env->log, LOG_WARN, "%s", why.text);
  manifest_free(&w->manifest);
  tree_free(&w->source);
  tree_free(&w->copy);
}

static int run_plan(struct work *w, int from, err *e) {
  job *j = w->job;
  int rc = 0;
  for (int i = from; rc == 0 && !w->over && i < j->plan.count; i++) {
    if (atomic_load(&j->cancel))
      rc = err_set(e, ERR_CANCELED, "%s: cancelled", j->plan.unit);
    else
      rc = steps[j->plan.ops[i]](w, e);
  }
  return rc;
}

/* What an earlier try sent turned out to be something else: a new attempt, from nothing. */
static int begin_anew(struct work *w, err *e) {
  job *j = w->job;
  int at = 0;
  int rc = settle_give_up(w->env->store, j->log, w->attempt, w->env->log, e);
  if (rc < 0) return rc;
  *e = (err){0};
  w->attempt = RUNLOG_NONE;
  w->resumed = false;
  j->attempt = 0;
  atomic_store(&j->moved, 0);
  manifest_free(&w->manifest);
  while (j->plan.ops[at] != PLAN_ATTEMPT) at++;
  return run_plan(w, at, e);
}

void job_run(job *j) {
  struct work w = {.job = j, .env = j->env, .attempt = RUNLOG_NONE};
  err *e = &j->error;
  int rc = check(&w, e);
  if (rc == 0) rc = look(&w, e);
  if (rc == 0) rc = check_touched(&w, e);
  if (rc == 0) rc = run_plan(&w, 0, e);
  if (rc == ERR_EXISTS && w.resumed) rc = begin_anew(&w, e);
  if (rc == 0) j->attempt = 0;
  j->status = rc < 0 ? give_up(&w, rc) : 0;
  clean_up(&w);
}
