/* run_later: restores checkpoints behind the start of the job: its framework may want them at the end, and
 * lives without.
 *
 * One at a time, on a worker, and never over what is there by then. It appears in one step; what the
 * detector has to say of it waits until it is known what became of it.
 *
 * What fails for now is tried again while the job runs. What made way for it, and did not load, stays in
 * quarantine whatever becomes of it: its framework goes on without, and would fail on that one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "commit/manifest_read.h"
#include "job/move/unit_files.h"
#include "job/restore/restore.h"
#include "run/run_state.h"

typedef enum later_state { LATER_WAITS, LATER_BUSY, LATER_PLACED } later_state;

struct run_later {
  run *run;
  run_later *next;
  run_group *group;
  later_state state;
  char *path, *unit, *for_unit; /* for_unit: the checkpoint that names it */
  char dir[FS_PATH_MAX];        /* where it belongs */
  char key[STORE_KEY_MAX];
  digest root, text;
  runlog_ref ref;
  uint64_t term;
  bool made_way; /* what stood under its name is in quarantine */
  unsigned tries;
  int64_t next_at;   /* IO_MONO: not tried before */
  manifest manifest; /* the worker's, while it is busy */
  atomic_int cancel;
  int status; /* of the worker */
  err error;
};

static void later_free(run_later *w) {
  free(w->path);
  free(w->unit);
  free(w->for_unit);
  manifest_free(&w->manifest);
  free(w);
}

static void drop(run *r, run_later *w) {
  run_later **at = &r->later;
  while (*at != w) at = &(*at)->next;
  *at = w->next;
  later_free(w);
}

static run_later *find(const run *r, const char *path) {
  for (run_later *w = r->later; w; w = w->next)
    if (strcmp(w->path, path) == 0) return w;
  return NULL;
}

static run_later *find_state(const run *r, later_state state) {
  for (run_later *w = r->later; w; w = w->next)
    if (w->state == state) return w;
  return NULL;
}

/* ---- what is to come ---- */

bool run_later_may(const run *r, const runlog_commit *c) {
  const places *at = &r->places;
  /* A restore ends in a rename: from another file system it would be staged in the directory itself. */
  return c->kind == MATCH_DIR && r->ranks.world <= 1 && !r->beside &&
         fs_same_device(r->env->io, at->dir, at->state, NULL) == 1;
}

static int fill(const run *r, run_later *w, const runlog_commit *c, const char *for_unit, err *e) {
  char path[FS_PATH_MAX];
  const char *prefix = w->group->group.prefix;
  int rc = fs_join(path, prefix, c->unit, e);
  if (rc == 0) rc = fs_join(w->dir, r->places.dir, prefix, e);
  if (rc == 0) rc = runlog_key_dir(w->group->group.log, c->dir, w->key, e);
  if (rc == 0) rc = runlog_ref_of(w->group->group.log, c->n, &w->ref, e);
  if (rc < 0) return rc;
  w->root = c->root;
  w->text = c->manifest;
  w->path = strdup(path);
  w->unit = strdup(c->unit);
  w->for_unit = strdup(for_unit);
  return w->path && w->unit && w->for_unit ? 0 : err_set(e, ERR_NOMEM, "prepare: out of memory");
}

int run_later_add(run *r, run_group *g, const runlog_commit *c, const char *for_unit, bool made_way,
                  err *e) {
  run_later **end = &r->later, *w = calloc(1, sizeof *w);
  if (!w) return err_set(e, ERR_NOMEM, "prepare: out of memory");
  w->group = g;
  w->made_way = made_way;
  int rc = fill(r, w, c, for_unit, e);
  if (rc < 0 || find(r, w->path)) {
    later_free(w);
    return rc;
  }
  while (*end) end = &(*end)->next;
  *end = w;
  log_say(r->env->log, LOG_INFO, "%s, which %s names, is restored while the job runs", w->path,
          for_unit);
  return 0;
}

/* ---- on a worker ---- */

/* Asks right before it appears, by a handle of its own: others are used by saves and removals. */
static int may_show(void *ctx, err *e) {
  const run_later *w = ctx;
  const run *r = w->run;
  runlog *log = NULL;
  if (!r->owner.held) return err_set(e, ERR_HELD, "%s is not ours to change", r->places.dir);
  int rc = owner_check(r->env->io, &r->owner, e);
  if (rc < 0 || w->term == RUNLOG_NONE) return rc;
  rc = runlog_open(r->store, w->group->group.prefix, &log, e);
  if (rc < 0) return rc;
  runlog_claim(log, w->term);
  rc = runlog_refresh(log, e);
  runlog_close(log);
  return rc;
}

static int bring(run_later *w, fs_held *held, err *e) {
  const run *r = w->run;
  restore_staging staging;
  int rc = fs_hold(held, r->places.dir, e);
  if (rc == 0) rc = fs_hold(held, r->places.state, e);
  if (rc == 0) rc = manifest_read_proven(r->store, w->key, &w->root, &w->text, &w->manifest, e);
  if (rc == 0) rc = restore_open_staging(held, r->places.staging, &staging, e);
  if (rc < 0) return rc;
  restore how = {.io = fs_held_io(held),
                 .store = r->store,
                 .pool = r->env->pool,
                 .staging = staging.path,
                 .cancel = &w->cancel,
                 .may_show = may_show,
                 .ctx = w};
  rc = restore_unit(&how, &w->manifest, w->key, w->dir, e);
  return restore_close_staging(held, &staging, rc, e);
}

static void later_on_worker(void *arg) {
  run_later *w = arg;
  const run_env *env = w->run->env;
  fs_held *held = NULL;
  w->status = fs_held_new(env->io, &held, &w->error);
  if (w->status == 0) w->status = bring(w, held, &w->error);
  fs_held_free(held);
}

/* ---- on the owner's thread ---- */

static bool is_damaged(const run_later *w) {
  return w->status == ERR_CORRUPT || w->status == ERR_FORMAT;
}

static void say_missing(const run *r, const run_later *w, const char *why) {
  log_say(r->env->log, is_damaged(w) ? LOG_ERROR : LOG_WARN,
          "%s, which %s names, is NOT here: %s%s%s", w->path, w->for_unit, why,
          is_damaged(w)
              ? " (`verify` says what else is damaged; `mark` bad keeps it from being tried)"
              : "",
          w->made_way ? "; what stood under its name, and did not load, stays in quarantine" : "");
}

static void say_failed(const run *r, const run_later *w) {
  const char *early = "the run ended before it was restored; the next start does that";
  if (w->status == ERR_EXISTS)
    log_say(r->env->log, LOG_INFO,
            "%s, which %s names, is not restored: the job has made it, and nothing is put over "
            "what is there",
            w->path, w->for_unit);
  else
    say_missing(r, w, atomic_load(&w->cancel) ? early : w->error.text);
}

/* Shows the run what stands there now: its news were held back. */
static void look_at(run *r, const char *path) {
  err e = {0};
  detect_unit facts;
  int rc = detect_run(r->detect, &e);
  if (rc >= 0 && detect_find(r->detect, path, &facts)) rc = run_unit_news(r, &facts, &e);
  if (rc < 0) log_say(r->env->log, LOG_WARN, "%s", e.text);
}

static void placed(run *r, run_later *w) {
  err e = {0};
  w->state = LATER_PLACED;
  log_say(r->env->log, LOG_INFO, "restored %s from %s/%s, behind the start of the job", w->path,
          r->places.target_text, w->key);
  if (r->writer_gone)
    log_say(r->env->log, LOG_WARN,
            "%s, which %s names, came when the job had ended: what it chose at its end it chose "
            "without",
            w->path, w->for_unit);
  /* Its bytes were checked on the way. */
  if (journal_note(r->journal, w->path, JOURNAL_COMMITTED, NULL, &w->ref, 1, &e) < 0)
    log_say(r->env->log, LOG_WARN, "%s", e.text);
}

/* The damage may have come about on the way, so that is read once more. A store that does not answer, or a
 * disk that is full, may do better while the job runs. */
static bool try_again(run *r, run_later *w) {
  enum { LONGEST_S = 600, DOUBLED = 6 };
  const int64_t pause_s = INT64_C(10) << (w->tries < DOUBLED ? w->tries : DOUBLED);
  const bool soon = w->status == ERR_CORRUPT && w->tries == 0;
  bool later = err_class_of(w->status) == ERR_CLASS_RETRYABLE || w->status == ERR_NOSPACE;
  later = later && !r->writer_gone && !r->preempted;
  if (atomic_load(&w->cancel) || r->closing || r->fenced || (!soon && !later)) return false;
  if (later && w->tries == 0)
    log_say(r->env->log, LOG_WARN, "%s, which %s names, is not here yet, and is tried again: %s",
            w->path, w->for_unit, w->error.text);
  int64_t pause_ns = soon ? 0 : (pause_s < LONGEST_S ? pause_s : LONGEST_S) * SECOND_NS;
  w->next_at = seconds_later(r->env->io->now(r->env->io, IO_MONO), pause_ns);
  w->tries++;
  w->error = (err){0};
  manifest_free(&w->manifest);
  w->manifest = (manifest){0};
  w->state = LATER_WAITS;
  return true;
}

static void later_done(void *ctx) {
  run_later *w = ctx;
  run *r = w->run;
  r->tasks--;
  char *path = strdup(w->path);
  bool there = w->status == 0;
  if (there) {
    placed(r, w);
  } else if (!try_again(r, w)) {
    if (w->status == ERR_FENCED) run_fenced(r, w->group->group.prefix, w->error.text);
    say_failed(r, w);
    drop(r, w);
  }
  if (path && !r->closing) look_at(r, path);
  free(path);
}

/* Of what failed before, a job that is over needs none. */
static void give_up(run *r) {
  for (run_later *w = r->later, *next; w; w = next) {
    next = w->next;
    if (w->state != LATER_WAITS || w->tries == 0 || is_damaged(w)) continue;
    atomic_store(&w->cancel, 1);
    say_failed(r, w);
    drop(r, w);
  }
}

static run_later *next_of(const run *r, int64_t now) {
  for (run_later *w = r->later; w; w = w->next)
    if (w->state == LATER_WAITS && w->next_at <= now) return w;
  return NULL;
}

static int64_t next_at(const run *r) {
  int64_t due = INT64_MAX;
  for (const run_later *w = r->later; w; w = w->next)
    if (w->state == LATER_WAITS && w->next_at < due) due = w->next_at;
  return due;
}

static void begin(run *r, run_later *w) {
  if (run_unit_find(r, w->path)) { /* and the detector has told of it */
    w->status = ERR_EXISTS;
    say_failed(r, w);
    drop(r, w);
    return;
  }
  w->run = r;
  w->term = w->group->term;
  if (!run_submit(r, later_on_worker, later_done, w)) return; /* at the next step */
  w->state = LATER_BUSY;
}

int64_t run_later_step(run *r, int64_t now) {
  if (r->closing || r->fenced || r->preempted || find_state(r, LATER_BUSY)) return INT64_MAX;
  if (r->writer_gone) give_up(r);
  run_later *w = next_of(r, now);
  if (w) begin(r, w);
  return find_state(r, LATER_BUSY) ? INT64_MAX : next_at(r);
}

/* An end does not wait for a next try: a store may be silent for days. */
bool run_later_pending(const run *r) {
  if (find_state(r, LATER_BUSY)) return true;
  return !r->fenced && !r->preempted && next_of(r, r->env->io->now(r->env->io, IO_MONO));
}

bool run_later_stop(run *r) {
  run_later *w = find_state(r, LATER_BUSY);
  if (w) atomic_store(&w->cancel, 1);
  for (run_later *next; (next = find_state(r, LATER_WAITS));) {
    atomic_store(&next->cancel, 1);
    next->status = ERR_CANCELED;
    say_failed(r, next);
    drop(r, next);
  }
  return w != NULL;
}

void run_later_free(run *r) {
  while (r->later) drop(r, r->later);
}

/* ---- what is told of it ---- */

static bool is_as_restored(const run *r, const run_later *w) {
  unit_files now = {0};
  bool same = unit_files_scan(r->env->io, r->places.dir, w->path, w->manifest.kind, r->rules, &now,
                              NULL) == 0 &&
              unit_files_matches(&now, &w->manifest);
  unit_files_free(&now);
  return same;
}

/* It is a commit, and needs no save. */
static int adopt(run *r, run_later *w, const detect_unit *facts, err *e) {
  run_unit *u;
  int rc = run_unit_take(r, facts, &u, e);
  if (rc < 0) return rc;
  rc = journal_note(r->journal, u->path, JOURNAL_COMMITTED, &u->fingerprint, &w->ref, 1, e);
  run_unit_durable(r, u);
  drop(r, w);
  return rc;
}

int run_later_takes(run *r, const detect_unit *facts, err *e) {
  run_later *w = find(r, facts->path);
  if (!w || w->state == LATER_WAITS) return 0;
  if (w->state == LATER_BUSY) return 1;
  if (facts->state == DETECT_GONE || !is_as_restored(r, w)) {
    drop(r, w);
    return 0;
  }
  int rc = 0;
  if (facts->state == DETECT_COMPLETE)
    rc = adopt(r, w, facts, e);
  else /* nobody has seen it being written; COMPLETE is told next */
    rc = detect_prove(r->detect, w->path, NULL, "it was restored", e);
  return rc < 0 ? rc : 1;
}
