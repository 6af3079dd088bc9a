/* open: opens a run: its policies, its places, its store, and the logs that it holds. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "commit/arbiter.h"
#include "run/begin/begin.h"
#include "run/begin/open.h"
#include "run/wait/waiting.h"
#include "prims/fs.h"

/* Checks the target. A store that does not arbitrate needs the user's word before anything is
 * written; one that is relied on has to prove that it does. Of ranks the first one has it prove that
 * for all, before it is ready: the others try out only a server that was not shown to arbitrate. */
static int check_store(run *r, const run_options *o, bool *due, err *e) {
  store *s = r->store;
  *due = false;
  s->single_writer = o->single_writer;
  s->no_delete = o->no_delete || o->keep_all;
  s->cancel = &r->stop;
  if (!run_follows(r)) return arbiter_check(s, "", due, e);
  int rc = run_ranks_await(r, e);
  return rc < 0 ? rc : arbiter_check_guest(s, "", e);
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
    log_say(env->log, LOG_WARN,
            "this run has no socket, so it cannot be asked or told results: %s; an XDG_RUNTIME_DIR "
            "that is there, writable and private to this user, or a shorter `state`, gives it one",
            why.text);
  memcpy(r->identity.socket, p->socket, sizeof r->identity.socket);
  memcpy(p->state_id, r->identity.id, sizeof p->state_id);
  memcpy(r->identity.launch, r->group_env.writer.launch, sizeof r->identity.launch);
  memcpy(r->identity.host, r->group_env.writer.host, sizeof r->identity.host);
  rc = places_name_writer(p, &r->group_env.writer, e);
  return rc < 0 ? rc : identity_write(env->io, p->state, boot, &r->identity, e);
}

/* Holds the state directory that was found, so that its files stay in it, whoever moves it away and
 * puts a link in its place: if it stands beside a user's directory, that user may move it. */
static int find_places(run *r, const run_options *o, err *e) {
  int rc = fs_held_new(r->env->io, &r->held, e);
  if (rc < 0) return rc;
  if (r->env != &r->own) r->own = *r->env;
  r->own.io = fs_held_io(r->held);
  r->env = &r->own;
  rc = places_open(r->env->io, &o->places, &r->places, e);
  if (rc == 0) rc = fs_hold(r->held, r->places.state, e);
  if (rc == 0) run_find_home(r);
  return rc;
}

static int take_lock(run *r, err *e) {
  const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK;
  const char *path = r->places.lock;
  int fd = r->env->io->open(r->env->io, AT_FDCWD, path, flags, 0600);
  if (fd < 0) return err_sys(e, fd, "cannot open the lock file %s", path);
  int rc = lock_take_open(fd, path, &r->lock, e);
  if (rc != ERR_HELD) return rc;
  return err_set(e, ERR_HELD,
                 "another ckpt-lua has the state directory %s: wait for its end, or stop it%s",
                 r->places.state,
                 r->beside ? "; to save to another target beside it, name another `state`" : "");
}

static int open_parts(run *r, const run_options *o, err *e) {
  fs_kind kind;
  int rc = run_open_policy(r, o, e);
  if (rc == 0) rc = find_places(r, o, e);
  const run_env *env = r->env;
  if (rc == 0 && places_shared(env->io, &r->places))
    log_say(env->log, LOG_WARN,
            "others may write in the state directory %s: what is restored and saved depends on it "
            "(chmod 700)",
            r->places.state);
  if (rc == 0) rc = take_lock(r, e);
  if (rc == 0) rc = places_writer(env->io, &r->places, o->launch, &r->group_env.writer, e);
  if (rc == 0) rc = take_identity(r, e);
  r->served = fs_kind_of(r->places.dir, &kind, NULL) == 0 && kind.keeps_flushed;
  if (rc == 0)
    rc = journal_open(env->io, r->places.journal, r->group_env.writer.boot, r->served, &r->journal,
                      e);
  if (rc == 0) rc = run_own(r, e);
  if (rc == 0) rc = trail_open(env->io, env->log, r->places.state, &r->trail, e);
  if (rc == 0) rc = store_open(&r->places.target, r->outer, env->log, &r->store, e);
  return rc;
}

/* All that asks the store: with patience, since the job of a scheduler that waited for days must not
 * die of a hiccup. */
static int meet_store(run *r, const run_options *o, err *e) {
  bool due;
  run_patience_begin(r, o->start_wait_ns);
  int rc = check_store(r, o, &due, e);
  if (rc == 0) rc = run_leases_await(r, e);
  if (rc == 0 && due) arbiter_note(r->store, "");
  if (rc < 0) run_patience_explain(r, e);
  return rc;
}

/* Ranks save together, so each must know the others' launch. */
static int take_ranks(run *r, const run_options *o, err *e) {
  uint32_t world = o->world > 1 ? o->world : 1, tasks = o->tasks > 1 ? o->tasks : 1;
  r->ranks = (ranks){.rank = o->rank,
                     .world = world,
                     .wait_ns = o->rank_wait_ns > 0 ? o->rank_wait_ns : (int64_t)600 * 1000000000};
  if (o->rank >= world || world > RANKS_MAX)
    return err_set(e, ERR_INVAL, "rank %u of %u: ranks count from 0, at most %d", o->rank, world,
                   RANKS_MAX);
  if (o->task >= tasks || tasks > RANKS_MAX)
    return err_set(e, ERR_INVAL, "task %u of %u: tasks count from 0, at most %d", o->task, tasks,
                   RANKS_MAX);
  if (tasks > 1 && (!o->launch || !*o->launch))
    return err_set(e, ERR_INVAL,
                   "task %u of %u: tasks that write into one directory need an id that they share "
                   "and that no other launch has (`launch`)",
                   o->task, tasks);
  if (world == 1) return 0;
  if (!o->launch || !*o->launch)
    return err_set(e, ERR_INVAL,
                   "rank %u of %u: ranks that save together need an id that they share and that no "
                   "other launch has (`launch`)",
                   o->rank, world);
  snprintf(r->ranks.launch, sizeof r->ranks.launch, "%s", o->launch);
  r->group_env.writer.world = world;
  r->group_env.ranks = r->job_env.ranks = &r->ranks;
  r->plan_flags |= PLAN_HAS_RANKS;
  return 0;
}

/* Before rank 0 restores: what it fetches is there for the others, who wait for it. */
static void meet_node(run *r) {
  if (r->ranks.world < 2) return;
  r->node = node_share_open(r->env->io, r->env->log, "/tmp", r->ranks.launch,
                            r->group_env.writer.boot, r->places.target_text);
}

/* Clears the staging of this machine: the files that a dead run left in it are nobody's, as we hold
 * the lock. */
static int clear_staging(run *r, err *e) {
  int rc = fs_remove_tree(r->env->io, r->places.staging, e);
  return rc < 0 ? rc : fs_mkdirs(r->env->io, r->places.staging, 0700, e);
}

run *run_new(const run_env *given, const run_options *o) {
  run *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->env = given;
  r->outer = given->io;
  r->lasting = io_system();
  r->compare_ns = 5 * SECOND_NS;
  if (o->environment) {
    if (io_lay(given->io, o->environment, &r->laid) < 0) {
      free(r);
      return NULL;
    }
    r->own = *given;
    r->outer = r->own.io = &r->laid;
    r->env = &r->own;
  }
  r->lock.fd = r->watcher.file.fd = r->owner.file.fd = r->owner.dir.fd = -1;
  r->beside = o->beside;
  r->owns_dir = o->owns_dir;
  r->tries = o->tries ? o->tries : 8;
  r->bad_after = o->bad_after ? o->bad_after : 3;
  r->wait_lease_ns = o->wait_lease_ns;
  r->stall_ns = o->stall_ns > 0 ? o->stall_ns : (int64_t)60 * 1000000000;
  r->in_place_every_ns = o->in_place_every_ns;
  r->deadline_ns = o->deadline_ns;
  r->task_index = o->task;
  r->task_count = o->tasks;
  r->poll = o->poll;
  r->keep_all = o->keep_all;
  r->trust = o->trust;
  r->own_parts = o->own_parts;
  r->fresh = o->fresh;
  r->lease_at = INT64_MAX;
  r->limits = (retention_limits){
      .max_drop = o->max_delete > 0 ? o->max_delete : 0.25,
      .grace_ns = o->grace_delete_ns >= 0 ? o->grace_delete_ns : (int64_t)24 * 3600 * 1000000000,
      .no_delete = o->no_delete};
  return r;
}

/* Fills in what the groups and the saves share, once the parts are open. */
static void share_parts(run *r, const run_options *o) {
  const run_env *env = r->env;
  r->group_env.store = r->store;
  r->group_env.log = env->log;
  r->group_env.run_id = r->places.run_id;
  r->group_env.former = r->places.former;
  r->group_env.writer.any_flags = o->continue_run || o->places.run_id;
  r->group_env.continue_run = o->continue_run;
  r->group_env.take_over = o->take_over;
  r->job_env = (job_env){.io = env->io,
                         .log = env->log,
                         .pool = env->pool,
                         .store = r->store,
                         .rules = r->rules,
                         .grace_ns = o->no_delete ? INT64_MAX : r->limits.grace_ns,
                         .hurry = &r->hurried,
                         .root = r->places.dir,
                         .staging = r->places.staging};
}

int run_open(const run_env *given, const run_options *o, run **out, err *e) {
  *out = NULL;
  run *r = run_new(given, o);
  if (!r) return err_set(e, ERR_NOMEM, "open a run: out of memory");
  waiting *slow = waiting_begin(given->log, r->stall_ns, "locks, logs and leases of the run");
  int rc = open_parts(r, o, e);
  if (rc == 0) rc = clear_staging(r, e);
  share_parts(r, o);
  if (rc == 0) rc = take_ranks(r, o, e);
  if (rc == 0 && store_can(r->store, STORE_CAP_PUBLISH)) r->plan_flags |= PLAN_CAN_PUBLISH;
  if (rc == 0) r->job_env.companions = policy_companions(r->policy);
  r->plan_flags |= PLAN_HAS_COMPANIONS;
  if (rc == 0) meet_node(r);
  if (rc == 0) {
    rc = meet_store(r, o, e);
    if (rc < 0 && run_anyway_begin(r, o->start_anyway, e)) rc = 0;
  }
  if (rc == 0) run_join(r);
  if (rc == 0) rc = run_own_by_term(r, e);
  if (rc == 0) rc = run_ranks_begun(r, e);
  if (rc < 0) {
    if (r->ranks.world == 0) take_ranks(r, o, NULL);
    run_ranks_refused(r, e);
    run_ranks_failed(r, e);
    run_close(r);
  } else {
    run_record_open(r, o->record); /* one that is refused is no part of the record */
    *out = r;
  }
  waiting_end(slow);
  return rc;
}
