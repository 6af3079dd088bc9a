#include "run.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/lease.h"
#include "core/run_state.h"
#include "prims/fs.h"

/* ---- open and close ---- */

/* First of all: nothing is made for a run whose rules are wrong. */
int run_open_policy(run *r, const run_options *o, err *e) {
  char id[33];
  int rc = io_nonce(r->env->io, id);
  if (rc < 0) return err_sys(e, rc, "draw a random name");
  policy_options options = {.io = r->env->io,
                            .log = r->env->log,
                            .link = r->env->policies,
                            .id = id,
                            .names = o->policies,
                            .settings = o->settings,
                            .dir = o->policy_dir,
                            .units = o->units,
                            .excludes = o->excludes,
                            .markers = o->markers,
                            .quiet_ns = o->quiet_ns};
  rc = policy_open(&options, &r->policy, e);
  if (rc < 0) return rc;
  r->rules = policy_rules(r->policy);
  const char *note;
  for (size_t i = 0; (note = policy_note(r->policy, i)); i++)
    log_say(r->env->log, LOG_INFO, "policy %s: %s", policy_names(r->policy), note);
  return 0;
}

/* A run that does not arbitrate must say so before it writes; one that does must be able to. What
 * an earlier run found out here is known by the log that it began. */
static int check_store(run *r, const run_options *o, err *e) {
  store *s = r->store;
  s->single_writer = o->single_writer;
  s->no_delete = o->no_delete || o->keep_all;
  s->cancel = &r->stop;
  if (!s->ops->race || o->single_writer) return 0;
  char key[STORE_KEY_MAX];
  store_object first;
  int rc = runlog_key_entry("", 0, key, e);
  if (rc < 0 || s->ops->head(s, key, &first, NULL) == 0) return rc;
  return s->ops->race(s, e);
}

/* Results are an extra: a run that cannot listen trains and saves all the same. */
static int take_identity(run *r, err *e) {
  const run_env *env = r->env;
  const char *boot = r->group_env.writer.boot;
  places *p = &r->places;
  err why = {0};
  int rc = identity_take(env->io, p->state, &r->lock, boot, &r->identity, e);
  if (rc < 0) return rc;
  if (places_socket(env->io, &r->identity, p, &why) < 0)
    log_say(env->log, LOG_WARN, "this run has no socket, so it cannot be asked or told results: %s",
            why.text);
  memcpy(r->identity.socket, p->socket, sizeof r->identity.socket);
  memcpy(p->state_id, r->identity.id, sizeof p->state_id);
  memcpy(r->identity.launch, r->group_env.writer.launch, sizeof r->identity.launch);
  memcpy(r->identity.host, r->group_env.writer.host, sizeof r->identity.host);
  rc = places_name_writer(p, &r->group_env.writer, e);
  return rc < 0 ? rc : identity_write(env->io, p->state, boot, &r->identity, e);
}

/* What is kept in the state directory is kept in the one that was found, whoever moves it away and
 * puts a link in its place: beside a user's directory it is that user's to move. */
static int find_places(run *r, const run_options *o, err *e) {
  int rc = fs_held_new(r->env->io, &r->held, e);
  if (rc < 0) return rc;
  r->own = *r->env;
  r->own.io = fs_held_io(r->held);
  r->env = &r->own;
  rc = places_open(r->env->io, &o->places, &r->places, e);
  return rc < 0 ? rc : fs_hold(r->held, r->places.state, e);
}

static int take_lock(run *r, err *e) {
  const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
  const char *path = r->places.lock;
  int fd = r->env->io->open(r->env->io, AT_FDCWD, path, flags, 0600);
  if (fd < 0) return err_sys(e, fd, "cannot open the lock file %s", path);
  int rc = lock_take_open(fd, path, &r->lock, e);
  if (rc != ERR_HELD) return rc;
  return err_set(e, ERR_HELD,
                 "another ckpt-lua has the state directory %s: wait for its end, or "
                 "stop it",
                 r->places.state);
}

static int open_parts(run *r, const run_options *o, err *e) {
  int rc = run_open_policy(r, o, e);
  if (rc == 0) rc = find_places(r, o, e);
  const run_env *env = r->env;
  if (rc == 0 && places_shared(env->io, &r->places))
    log_say(env->log, LOG_WARN,
            "others may write in the state directory %s: what is restored and saved depends on it "
            "(chmod 700)",
            r->places.state);
  if (rc == 0) rc = take_lock(r, e);
  if (rc == 0) rc = lock_take_dir(r->places.dir, &r->dir_lock, e);
  if (rc == 0) rc = places_writer(env->io, &r->places, o->launch, &r->group_env.writer, e);
  if (rc == 0) rc = take_identity(r, e);
  if (rc == 0)
    rc = journal_open(env->io, r->places.journal, r->group_env.writer.boot, &r->journal, e);
  if (rc == 0) rc = trail_open(env->io, env->log, r->places.state, &r->trail, e);
  if (rc == 0) rc = store_open(&r->places.target, r->outer, env->log, &r->store, e);
  if (rc == 0) rc = check_store(r, o, e);
  return rc;
}

/* Ranks save together: each must know the others' launch. */
static int take_ranks(run *r, const run_options *o, err *e) {
  uint32_t world = o->world > 1 ? o->world : 1;
  r->ranks = (ranks){.rank = o->rank,
                     .world = world,
                     .wait_ns = o->rank_wait_ns > 0 ? o->rank_wait_ns : (int64_t)600 * 1000000000};
  if (o->rank >= world || world > RANKS_MAX)
    return err_set(e, ERR_INVAL, "rank %u of %u: ranks count from 0, at most %d", o->rank, world,
                   RANKS_MAX);
  if (world == 1) return 0;
  if (!o->launch || !*o->launch)
    return err_set(e, ERR_INVAL,
                   "rank %u of %u: ranks that save together need an id that they share and that no "
                   "other launch has (--launch-id)",
                   o->rank, world);
  snprintf(r->ranks.launch, sizeof r->ranks.launch, "%s", o->launch);
  r->group_env.writer.world = world;
  r->group_env.ranks = r->job_env.ranks = &r->ranks;
  r->plan_flags |= PLAN_HAS_RANKS;
  return 0;
}

/* What a dead run left in the staging of this machine is nobody's: we hold the lock. */
static int clear_staging(run *r, err *e) {
  int rc = fs_remove_tree(r->env->io, r->places.staging, e);
  return rc < 0 ? rc : fs_mkdirs(r->env->io, r->places.staging, 0700, e);
}

int run_open(const run_env *given, const run_options *o, run **out, err *e) {
  *out = NULL;
  run *r = calloc(1, sizeof *r);
  if (!r) return err_set(e, ERR_NOMEM, "open a run: out of memory");
  r->env = given;
  r->outer = given->io;
  r->lock.fd = r->dir_lock.fd = -1;
  r->tries = o->tries ? o->tries : 8;
  r->bad_after = o->bad_after ? o->bad_after : 3;
  r->stall_ns = o->stall_ns > 0 ? o->stall_ns : (int64_t)60 * 1000000000;
  r->poll = o->poll;
  r->keep_all = o->keep_all;
  r->lease_at = INT64_MAX;
  r->limits = (retention_limits){
      .max_drop = o->max_delete > 0 ? o->max_delete : 0.25,
      .grace_ns = o->grace_delete_ns >= 0 ? o->grace_delete_ns : (int64_t)24 * 3600 * 1000000000,
      .no_delete = o->no_delete};
  int rc = open_parts(r, o, e);
  if (rc == 0) rc = clear_staging(r, e);
  const run_env *env = r->env;
  r->group_env.store = r->store;
  r->group_env.log = env->log;
  r->group_env.run_id = r->places.run_id;
  r->group_env.continue_run = o->continue_run;
  r->group_env.take_over = o->take_over;
  r->job_env = (job_env){.io = env->io,
                         .log = env->log,
                         .pool = env->pool,
                         .store = r->store,
                         .rules = r->rules,
                         .grace_ns = o->no_delete ? INT64_MAX : r->limits.grace_ns,
                         .root = r->places.dir,
                         .staging = r->places.staging};
  if (rc == 0) rc = take_ranks(r, o, e);
  if (rc == 0 && store_can(r->store, STORE_CAP_PUBLISH)) r->plan_flags |= PLAN_CAN_PUBLISH;
  if (rc == 0) r->job_env.with = policy_with(r->policy);
  if (r->job_env.with) r->plan_flags |= PLAN_HAS_WITH;
  if (rc == 0) rc = run_ranks_await(r, e);
  if (rc == 0) rc = run_leases_await(r, e);
  if (rc == 0) rc = run_ranks_begun(r, e);
  if (rc < 0) {
    run_ranks_failed(r, e);
    run_close(r);
  } else {
    *out = r;
  }
  return rc;
}

/* A lease that stays would keep a restart on another machine out for its whole life. */
struct patience {
  run_task task;
  atomic_bool over;
};

static void patience_on_worker(void *arg) {
  enum { STEPS = 20, NAP_NS = 50000000 };
  struct patience *w = arg;
  run *r = w->task.run;
  for (int i = 0; i < STEPS && !atomic_load(&w->over); i++) r->env->io->sleep(r->env->io, NAP_NS);
  atomic_store(&r->stop, 1);
  r->env->finished(r->env->ctx, &w->task);
}

static void patience_done(run_task *task) {
  (void)task; /* its owner's */
}

/* The store's calls were cut off: the leases go if it answers within a second. */
static void release_leases(run *r) {
  struct patience w = {.task = {.run = r, .done = patience_done}};
  err full = {0};
  if (!atomic_load(&r->stop) || pool_submit(r->env->pool, patience_on_worker, &w, &full) < 0)
    return;
  r->tasks++;
  atomic_store(&r->stop, 0);
  for (size_t i = 0; i < r->group_count; i++) group_release(&r->groups[i]->group);
  run_ranks_close(r);
  atomic_store(&w.over, true);
  while (r->tasks) r->env->wait(r->env->ctx, r);
}

/* What was remembered since the last commit, by the hooks that follow it. Not where another writer
 * is by now, and not when there is no time to ask. */
static void keep_memories(run *r) {
  for (size_t i = 0; i < r->group_count; i++) {
    run_group *g = r->groups[i];
    err e = {0};
    if (!g->memory_changed || g->term == RUNLOG_NONE || r->fenced || atomic_load(&r->stop) ||
        run_follows(r))
      continue;
    int rc = runlog_refresh(g->group.log, &e);
    if (rc == 0) rc = run_memory_write(r->store, g->group.prefix, g->memory ? g->memory : "{}", &e);
    if (rc < 0)
      log_say(r->env->log, LOG_WARN, "what the policies remember could not be kept: %s", e.text);
  }
}

void run_close(run *r) {
  if (!r) return;
  r->closing = true;
  for (size_t i = 0; i < r->group_count; i++) {
    if (!r->groups[i]->save) continue;
    atomic_store(&r->groups[i]->save->job.cancel, JOB_LEAVE);
    /* One that gives up just now may be asking a store that does not answer. */
    if (store_can(r->store, STORE_CAP_RESUME)) atomic_store(&r->stop, 1);
  }
  run_keep_stop(r);
  while (r->tasks) r->env->wait(r->env->ctx, r);
  keep_memories(r);
  release_leases(r);
  run_ranks_close(r);
  run_note_end(r);
  while (r->unit_count) run_unit_remove(r, r->units[r->unit_count - 1]);
  free(r->units);
  detect_close(r->detect);
  run_manifests_drop(r);
  run_groups_close(r);
  store_close(r->store);
  journal_close(r->journal);
  trail_close(r->trail);
  lock_drop(&r->lock);
  lock_drop(&r->dir_lock);
  policy_close(r->policy);
  free(r->metrics);
  free(r->resume);
  free(r->restored_from);
  fs_held_free(r->held);
  free(r);
}

const places *run_places(const run *r) {
  return &r->places;
}

/* ---- what the detector says ---- */

/* What a save sends from a snapshot is none of the original's business any more. */
static void stop_save(run_unit *u) {
  if (u->save && !u->save->copied) atomic_store(&u->save->job.cancel, JOB_CANCEL);
}

static int on_open(run *r, run_unit *u, err *e) {
  stop_save(u);
  /* A result may name it before all events of its making were read: that is the same content. */
  if (u->phase != UNIT_SETTLING) u->asked_for = u->last_tried = false;
  if (u->phase != UNIT_RUNNING) u->phase = UNIT_SETTLING;
  u->counted = false;
  run_note(r, u, TRAIL_OPEN, NULL);
  journal_unit known = journal_find(r->journal, u->path);
  if (known.state == JOURNAL_OPEN) return 0;
  return journal_note(r->journal, u->path, JOURNAL_OPEN, NULL, NULL, e);
}

/* A journal that cannot be written stops no save: what it lacks has to be proven again, no more. */
static int on_complete(run *r, run_unit *u, err *e) {
  journal_unit known = journal_find(r->journal, u->path);
  bool same = digest_equal(&known.fingerprint, &u->fingerprint);
  u->retired = 0;
  run_note(r, u, TRAIL_COMPLETE, NULL);
  /* A save of the older content is on its way out: the unit's turn comes when it has ended. */
  if (u->phase != UNIT_RUNNING) {
    if (same && known.state == JOURNAL_COMMITTED)
      run_unit_durable(r, u);
    else
      run_consider(r, u, NULL);
  }
  if (same && known.state >= JOURNAL_COMPLETE) return 0;
  return journal_note(r->journal, u->path, JOURNAL_COMPLETE, &u->fingerprint, NULL, e);
}

static void on_unproven(run *r, run_unit *u, detect_state state) {
  if (u->phase == UNIT_RUNNING) {
    stop_save(u);
    return;
  }
  if (state == DETECT_UNPROVEN && u->want.action != POLICY_WAIT) {
    run_consider(r, u, NULL);
    return;
  }
  u->phase = UNIT_UNPROVEN;
  run_note(r, u, TRAIL_UNPROVEN, NULL);
  run_tell(r, u, RUN_UNPROVEN, NULL, 0, u->reason);
}

static int on_gone(run *r, run_unit *u, err *e) {
  int rc = journal_forget(r->journal, u->path, e);
  run_note(r, u, TRAIL_GONE, "it was removed from the directory");
  if (u->phase == UNIT_RUNNING) { /* removed when its save has ended */
    u->gone = true;
    stop_save(u);
    return rc;
  }
  if (run_unit_queued(u)) {
    r->retired++;
    run_tell(r, u, RUN_RETIRED, NULL, ERR_RETIRED, "it was removed before it was saved");
  }
  run_unit_remove(r, u);
  return rc;
}

static int on_unit(run *r, const detect_unit *facts, err *e) {
  run_unit *u = run_unit_find(r, facts->path);
  if (facts->state == DETECT_GONE) return u ? on_gone(r, u, e) : 0;
  if (!u && run_dir_inside(r, facts->path)) return 0;
  int rc = run_unit_take(r, facts, &u, e);
  if (rc < 0) return rc;
  switch (facts->state) {
  case DETECT_OPEN: return on_open(r, u, e);
  case DETECT_COMPLETE: return on_complete(r, u, e);
  case DETECT_UNPROVEN:
  case DETECT_BROKEN: on_unproven(r, u, facts->state); return 0;
  case DETECT_GONE: break;
  }
  return 0;
}

/* What one unit says is said once: an error with it must not lose the others. */
static int take_units(run *r, err *e) {
  detect_unit facts;
  int first = 0;
  while (detect_next(r->detect, &facts)) {
    int rc = on_unit(r, &facts, first == 0 ? e : NULL);
    if (first == 0) first = rc;
  }
  run_take_back(r);
  return first;
}

/* ---- events ---- */

int run_fd(const run *r) {
  return r->detect ? detect_fd(r->detect) : -1;
}

static int take_known(void *ctx, const detect_unit *unit) {
  run *r = ctx;
  if (unit->state != DETECT_UNPROVEN && unit->state != DETECT_OPEN) return 0;
  if (run_dir_inside(r, unit->path)) return 0;
  journal_unit known = journal_find(r->journal, unit->path);
  if (known.state != JOURNAL_COMPLETE && known.state != JOURNAL_COMMITTED) return 0;
  run_unit *u;
  return run_unit_take(r, unit, &u, NULL);
}

/* The detector has only seen a listing; what the journal or the log know to be whole is told to it.
 * The paths are collected first: proving one changes what is walked. */
static int prove_known(run *r, err *e) {
  int rc = detect_each(r->detect, take_known, r);
  if (rc < 0) return err_set(e, rc, "list %s: out of memory", r->places.dir);
  for (size_t i = 0; rc >= 0 && i < r->unit_count; i++) {
    journal_unit known = journal_find(r->journal, r->units[i]->path);
    rc = detect_prove(r->detect, r->units[i]->path, &known.fingerprint,
                      "whole when it was last seen", e);
  }
  return rc < 0 ? rc : 0;
}

int run_start(run *r, err *e) {
  if (r->started) return err_set(e, ERR_INVAL, "the run is started already");
  if (!r->prepared) {
    run_prepared ignored;
    int rc = run_prepare(r, RUN_NEVER, NULL, &ignored, e);
    if (rc < 0) return rc;
  }
  run_paths known;
  int rc = run_paths_take(r, &known, e);
  if (rc < 0) return rc;
  detect_options o = {.io = r->env->io,
                      .log = r->env->log,
                      .root = r->places.dir,
                      .rules = r->rules,
                      .mode = r->poll ? DETECT_POLL : DETECT_AUTO,
                      .known = (const char *const *)known.names,
                      .known_count = known.count};
  rc = detect_open(&o, &r->detect, e);
  run_paths_free(&known);
  if (rc == 0) rc = run_survey_learn(r, r->detect, e);
  if (rc == 0) rc = prove_known(r, e);
  run_manifests_drop(r);
  if (rc < 0) {
    detect_close(r->detect);
    r->detect = NULL;
    return rc;
  }
  r->lease_at = r->env->io->now(r->env->io, IO_MONO) + (int64_t)LEASE_RENEW_S * 1000000000;
  r->started = true;
  run_note_start(r);
  return 0;
}

static int check_started(const run *r, err *e) {
  return r->started ? 0 : err_set(e, ERR_INVAL, "the run is not started yet");
}

int run_child(run *r, pid_t pid, err *e) {
  uint64_t start;
  pid_t sid;
  int rc = check_started(r, e);
  if (rc == 0 && pid <= 0) rc = err_set(e, ERR_INVAL, "a trainer's pid cannot be %ld", (long)pid);
  if (rc == 0) r->writer_gone = false;
  if (rc == 0) detect_writer_new(r->detect);
  if (rc == 0) rc = proc_identity(pid, &start, &sid, e);
  if (rc == ERR_NOENT) return 0; /* it was quick: there is nobody to remember */
  return rc < 0 ? rc : journal_note_child(r->journal, pid, start, sid, e);
}

int run_child_exit(run *r, bool clean, err *e) {
  int rc = check_started(r, e);
  if (rc < 0) return rc;
  rc = detect_run(r->detect, e); /* what it did before its end counts as such */
  detect_writer_gone(r->detect, clean);
  r->writer_gone = true;
  run_no_writer(r);
  run_keep_ask_all(r);
  run_reconsider(r, "end");
  if (clean) run_local_end(r);
  int noted = journal_note_child_end(r->journal, rc < 0 ? NULL : e);
  return rc < 0 ? rc : noted;
}

static int look(run *r, err *e) {
  return detect_run(r->detect, e);
}

static bool ends_in(const char *path, const char *end) {
  size_t len = strlen(path), tail = strlen(end);
  return tail <= len && strcmp(path + len - tail, end) == 0 &&
         (tail == len || path[len - tail - 1] == '/');
}

/* A result may name a unit ("checkpoint"): by its path below the directory, or below the working
 * directory, or by its name alone. What was written before the result was sent counts as such. */
static void ask_for(run *r, const char *name) {
  err e = {0};
  int rc = detect_polling(r->detect) ? detect_list(r->detect, &e) : look(r, &e);
  if (rc < 0 || take_units(r, &e) < 0) log_say(r->env->log, LOG_WARN, "%s", e.text);
  size_t len = strlen(r->places.dir);
  if (strncmp(name, r->places.dir, len) == 0 && name[len] == '/') name += len + 1;
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (ends_in(u->path, name) || ends_in(name, u->path)) u->asked_for = true;
  }
}

static void take_result(run *r, const json_t *value) {
  const char *named = json_string_value(json_object_get(value, "checkpoint"));
  r->results++;
  for (size_t i = 0; i < r->group_count; i++) r->groups[i]->results++;
  if (named) ask_for(r, named);
  run_reconsider(r, "result");
}

int run_result(run *r, const char *json, err *e) {
  enum { RESULT_MAX = 64 << 10 };
  json_t *value = NULL;
  buf text;
  int rc = check_started(r, e);
  if (rc == 0 && strlen(json) > RESULT_MAX)
    rc = err_set(e, ERR_LIMIT, "a result has at most %d bytes", RESULT_MAX);
  if (rc < 0) return rc;
  buf_init(&text, 2 * RESULT_MAX);
  rc = js_parse(json, strlen(json), "result", &value, e);
  if (rc == 0 && !json_is_object(value))
    rc = err_set(e, ERR_FORMAT, "a result is a JSON object, as in {\"loss\": 0.5}");
  if (rc == 0) rc = js_print(value, &text, e);
  if (rc == 0) {
    free(r->metrics);
    r->metrics = buf_take(&text);
    take_result(r, value);
  }
  buf_free(&text);
  json_decref(value);
  return rc;
}

int run_preempt(run *r, double grace_s, err *e) {
  int rc = check_started(r, e);
  if (rc < 0) return rc;
  r->grace_s = grace_s;
  r->rest = run_policy_rest(r);
  r->preempted = true;
  run_reconsider(r, "preempt");
  run_hurry(r);
  return 0;
}

int run_list(run *r, err *e) {
  int rc = check_started(r, e);
  return rc < 0 ? rc : detect_list(r->detect, e);
}

static int64_t next_save(const run *r) {
  int64_t due = INT64_MAX;
  for (size_t i = 0; i < r->unit_count; i++)
    if (run_unit_queued(r->units[i]) && !r->units[i]->group->save && r->units[i]->next_try < due)
      due = r->units[i]->next_try;
  return due;
}

/* What cannot be listed now must not keep waiting what is known already: each part has its turn,
 * and the first error is told. */
int run_step(run *r, int64_t *due, err *e) {
  static int (*const parts[])(run *, err *) = {look, take_units, run_start_saves, run_keep_step};
  *due = INT64_MAX;
  if (!r->started) return 0;
  int first = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    int rc = parts[i](r, first == 0 ? e : NULL);
    if (first == 0) first = rc;
  }
  run_note_open(r);
  int64_t lease = run_renew_leases(r, r->env->io->now(r->env->io, IO_MONO));
  int64_t save = r->fenced ? INT64_MAX : next_save(r), next_look = detect_due(r->detect);
  *due = lease < save ? lease : save;
  if (next_look < *due) *due = next_look;
  int64_t keep = r->fenced ? INT64_MAX : run_keep_due(r);
  if (keep < *due) *due = keep;
  int64_t stall = run_watch_stalls(r, r->env->io->now(r->env->io, IO_MONO));
  if (stall < *due) *due = stall;
  return first;
}

/* ---- status ---- */

static uint64_t left_of(const run_unit *u) {
  if (!u->save) return u->bytes;
  uint64_t moved = atomic_load(&u->save->job.moved), total = atomic_load(&u->save->job.total);
  return moved < total ? total - moved : 0;
}

static bool is_alike(const run_unit *a, const run_unit *b) {
  return a->group == b->group && strcmp(a->series, b->series) == 0;
}

/* The newest one of its kind that is whole, durable or not; NULL if none is. */
static const run_unit *newest_like(const run *r, const run_unit *u) {
  const run_unit *newest = NULL;
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *other = r->units[i];
    if (newest && other->made_ns <= newest->made_ns) continue;
    if ((run_unit_sure(other) || other->phase == UNIT_FAILED) && is_alike(other, u)) newest = other;
  }
  return newest;
}

/* Why the newest unit of some kind is not durable; 0 if each one is. What waits to be proven does
 * not count: nothing says that it is a checkpoint at all. */
static int newest_status(const run *r) {
  const run_unit *newest = NULL; /* looked for once for a kind: those of one stand together */
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *u = r->units[i];
    bool failed = u->phase == UNIT_FAILED;
    if (u->phase == UNIT_DURABLE || (!failed && !run_unit_sure(u))) continue;
    if (!newest || !is_alike(newest, u)) newest = newest_like(r, u);
    if (newest && newest->made_ns > u->made_ns) continue;
    return failed ? u->status : r->fenced ? ERR_FENCED : ERR_TIMEOUT;
  }
  return run_lost_status(r);
}

void run_get_status(run *r, run_status *out) {
  *out = (run_status){.committed = r->committed,
                      .dropped = r->dropped,
                      .retired = r->retired,
                      .failed = r->failed,
                      .skipped = r->skipped,
                      .policies = policy_names(r->policy),
                      .fallbacks = policy_fallbacks(r->policy),
                      .keeping = r->started && run_keep_pending(r),
                      .bytes_committed = r->bytes_committed,
                      .newest_step = MATCH_NO_STEP,
                      .fenced = r->fenced};
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *u = r->units[i];
    bool pending = u->phase == UNIT_RUNNING || run_unit_queued(u);
    out->pending += pending;
    out->settling += u->phase == UNIT_SETTLING;
    out->unproven += u->phase == UNIT_UNPROVEN;
    if (pending) out->bytes_left += left_of(u);
  }
  for (size_t i = 0; i < r->group_count; i++) {
    const run_group *g = r->groups[i];
    if (g->newest_time_ns <= out->newest_time_ns) continue;
    out->newest_time_ns = g->newest_time_ns;
    out->newest_step = g->newest_step;
    out->newest_unit = g->newest_unit;
  }
  out->newest_status = newest_status(r);
  if (r->detect) out->unmatched = detect_unmatched(r->detect, &out->unmatched_example);
}

/* What its save is at: "uploading", or which ranks it waits for, and for how long still. */
static const char *why_running(const run *r, const run_unit *u, char *text, size_t room) {
  const job_doing *doing = &u->save->job.doing;
  char missing[200];
  ranks_missing_text(doing->ranks, r->ranks.world, missing, sizeof missing);
  if (!*missing) return "uploading";
  int64_t waited = r->env->io->now(r->env->io, IO_MONO) - atomic_load(&doing->since);
  snprintf(text, room, "waiting for %s, %" PRId64 " of %" PRId64 " s", missing, waited / 1000000000,
           r->ranks.wait_ns / 1000000000);
  return text;
}

static const char *why_pending(const run *r, const run_unit *u, char *text, size_t room) {
  switch (u->phase) {
  case UNIT_RUNNING: return why_running(r, u, text, room);
  case UNIT_WAITING: return "waiting for its turn";
  case UNIT_RETRYING: return "waiting for the next try";
  case UNIT_SETTLING: return u->reason;
  case UNIT_FAILED: return err_text(u->status);
  case UNIT_DURABLE:
  case UNIT_UNPROVEN:
  case UNIT_RETIRED:
  case UNIT_SKIPPED:
  case UNIT_DROPPED: break;
  }
  return NULL;
}

/* The newest of a kind that is gone from the store, and no whole copy of it was found here. */
static int pending_lost(run *r, run_pending_fn *fn, void *ctx) {
  int count = 0;
  for (size_t i = 0; i < r->group_count; i++)
    for (size_t k = 0; k < r->groups[i]->lost_count; k++) {
      const run_lost *l = &r->groups[i]->lost[k];
      const run_unit *u = run_unit_find(r, l->unit);
      char text[300];
      if (!l->counts || (u && why_pending(r, u, text, sizeof text))) continue;
      count++;
      if (fn) fn(ctx, l->unit, l->why, l->bytes, l->bytes, false);
    }
  return count;
}

int run_pending(run *r, run_pending_fn *fn, void *ctx) {
  int count = pending_lost(r, fn, ctx);
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *u = r->units[i];
    char text[300];
    const char *why = why_pending(r, u, text, sizeof text);
    if (!why) continue;
    count++;
    if (fn) fn(ctx, u->path, why, u->bytes, left_of(u), u->phase == UNIT_RUNNING);
  }
  return count;
}
