#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/number.h"
#include "base/seconds.h"
#include "run/run_state.h"
#include "prims/fs.h"

bool run_submit(run *r, pool_fn *work, pool_fn *done, void *ctx) {
  err full = {0};
  if (pool_submit(r->env->pool, work, done, ctx, &full) < 0) return false;
  r->tasks++;
  return true;
}

/* ---- close ---- */

/* A lease that stays would keep a restart on another machine out for its whole life. */
struct patience {
  run *run;
  atomic_bool over;
};

static void patience_on_worker(void *arg) {
  enum { STEPS = 20, NAP_NS = 50000000 };
  struct patience *w = arg;
  run *r = w->run;
  for (int i = 0; i < STEPS && !atomic_load(&w->over); i++) r->env->io->sleep(r->env->io, NAP_NS);
  if (!atomic_load(&w->over)) atomic_store(&r->stop, 1);
}

static void patience_done(void *ctx) {
  ((struct patience *)ctx)->run->tasks--;
}

/* From here on the store has one second to answer; then its calls give up. False: no worker is free. */
static bool patience_begin(run *r, struct patience *w) {
  *w = (struct patience){.run = r};
  return run_submit(r, patience_on_worker, patience_done, w);
}

static void ask_no_more(run *r, struct patience *w) {
  atomic_store(&w->over, true);
  while (r->tasks) pool_settle(r->env->pool, true);
}

/* A restore that nobody waits for any more may be asking a store that does not answer. One worker
 * cannot do both. */
static void await_tasks(run *r, bool later) {
  struct patience w;
  bool patient = later && pool_workers(r->env->pool) > 1 && patience_begin(r, &w);
  if (later && !patient) atomic_store(&r->stop, 1);
  while (r->tasks > (patient ? 1 : 0)) pool_settle(r->env->pool, true);
  if (patient) ask_no_more(r, &w);
}

/* Where the store's calls were cut off, it gets one second more to answer. False: it does not. */
static bool ask_again(run *r, struct patience *w) {
  if (!atomic_load(&r->stop) || !patience_begin(r, w)) return false;
  atomic_store(&r->stop, 0);
  return true;
}

static void release_leases(run *r) {
  struct patience w;
  if (!ask_again(r, &w)) return;
  for (size_t i = 0; i < r->group_count; i++) group_release(&r->groups[i]->group);
  run_ranks_close(r);
  ask_no_more(r, &w);
}

static void keep_memory(run *r, run_group *g) {
  err e = {0};
  if (!g->memory_changed || g->remembers != MEMORY_KNOWN || g->term == RUNLOG_NONE || r->fenced ||
      atomic_load(&r->stop) || run_follows(r))
    return;
  int rc = runlog_refresh(g->group.log, &e);
  if (rc == 0) rc = memory_write(r->store, g->group.prefix, run_memory_at_end(r, g), &e);
  if (rc < 0)
    log_say(r->env->log, LOG_WARN, "what the policies remember could not be kept: %s", e.text);
}

/* Keeps the memories that the hooks after the last commit have changed. It does so neither where
 * another writer is by now, nor when there is no time to ask. */
static void keep_memories(run *r) {
  struct patience w;
  bool cut = ask_again(r, &w);
  for (size_t i = 0; i < r->group_count; i++) keep_memory(r, r->groups[i]);
  if (!cut) return;
  ask_no_more(r, &w);
  atomic_store(&r->stop, 1); /* what comes next has a second of its own */
}

void run_close(run *r) {
  if (!r) return;
  const bool has_all = run_has_all(r); /* what is cut off now is not saved */
  r->closing = true;
  atomic_store(&r->hurried, true);
  run_patience_end(r);
  run_reload_leave(r);
  for (size_t i = 0; i < r->group_count; i++) {
    if (!r->groups[i]->save) continue;
    atomic_store(&r->groups[i]->save->job.cancel, JOB_LEAVE);
    /* A save that gives up just now may be asking a store that does not answer. */
    if (store_can(r->store, STORE_CAP_RESUME)) atomic_store(&r->stop, 1);
  }
  if (r->meeting) atomic_store(&r->stop, 1);
  bool later = run_later_stop(r);
  if (later && r->preempted) atomic_store(&r->stop, 1);
  if (run_empty_stop(r)) later = true;
  run_keep_stop(r);
  bool no_time = atomic_load(&r->stop); /* else only the restore was cut off */
  await_tasks(r, later);
  if (!no_time) keep_memories(r);
  release_leases(r);
  run_ranks_close(r);
  hub_close(r->hub, true);
  node_share_close(r->node);
  run_note_end(r);
  while (r->unit_count) run_unit_remove(r, r->units[r->unit_count - 1]);
  free(r->units);
  detect_close(r->detect);
  run_manifests_drop(r);
  run_groups_close(r);
  store_close(r->store);
  journal_close(r->journal);
  trail_close(r->trail);
  run_record_end(r);
  lab_recorder_close(r->record);
  run_starts_free(r);
  run_leave(r, has_all);
  lock_drop(&r->lock);
  run_reload_free(r);
  run_anyway_free(r);
  run_results_free(r);
  run_in_place_free(r);
  run_later_free(r);
  run_drains_free(r);
  run_status_free(r);
  io_lay_free(&r->laid);
  free(r->resume);
  free(r->restored_from);
  fs_held_free(r->held);
  free(r);
}

void run_abandon(run *r) {
  lock *locks[] = {&r->lock, &r->owner.file, &r->owner.dir, &r->watcher.file};
  for (size_t i = 0; i < sizeof locks / sizeof(void *); i++) {
    if (locks[i]->fd >= 0) close(locks[i]->fd); /* nothing was written */
    locks[i]->fd = -1;
  }
}

const places *run_places(const run *r) {
  return &r->places;
}

/* ---- what the detector says ---- */

/* Stops a save, unless it sends a snapshot: a change of the original does not matter to that. */
static void stop_save(run_unit *u) {
  if (u->save && !u->save->copied) atomic_store(&u->save->job.cancel, JOB_CANCEL);
}

static int on_open(run *r, run_unit *u, err *e) {
  stop_save(u);
  if (u->phase != UNIT_SETTLING) run_result_begin(r, u); /* it is written anew */
  /* A result may name the unit before all events of its making were read: that is the same
   * content. */
  if (u->phase != UNIT_SETTLING) u->asked_for = u->last_tried = u->hastened = false;
  run_unit_beside_drop(u);
  if (u->phase != UNIT_RUNNING) run_unit_is(r, u, UNIT_SETTLING);
  u->counted = u->refused = false;
  run_note(r, u, TRAIL_OPEN, NULL);
  journal_unit known = journal_find(r->journal, u->path);
  const bool as_many = (known.parts > 1 ? known.parts : 1) == r->ranks.world;
  if (known.state == JOURNAL_OPEN && known.watched && as_many) return 0;
  return journal_note(r->journal, u->path, JOURNAL_OPEN, NULL, NULL, r->ranks.world, e);
}

/* A journal that cannot be written stops no save: the missing records have to be proven again, no
 * more. */
static int on_complete(run *r, run_unit *u, err *e) {
  journal_unit known = journal_find(r->journal, u->path);
  bool same = digest_equal(&known.fingerprint, &u->fingerprint);
  u->retired = 0;
  run_note(r, u, TRAIL_COMPLETE, NULL);
  if (!same || known.state != JOURNAL_COMMITTED) run_unit_beside(r, u);
  /* A save of the older content is on its way out: the unit's turn comes when it has ended. */
  if (u->phase == UNIT_RUNNING) {
    run_order_note(r, u); /* it is complete now, and not when that save has ended */
  } else if (same && known.state == JOURNAL_COMMITTED) {
    run_unit_durable(r, u);
  } else {
    run_consider(r, u, NULL);
  }
  int rc = 0;
  if (!same || known.state < JOURNAL_COMPLETE)
    rc = journal_note(r->journal, u->path, JOURNAL_COMPLETE, &u->fingerprint, NULL, r->ranks.world,
                      e);
  run_flush_want(r, u);
  return rc;
}

static void on_unproven(run *r, run_unit *u, const detect_unit *facts) {
  if (u->phase == UNIT_RUNNING) {
    stop_save(u);
    return;
  }
  if (policy_builtin(facts).action != POLICY_WAIT) {
    run_consider(r, u, NULL);
    return;
  }
  run_unit_to(r, u, UNIT_UNPROVEN, TRAIL_UNPROVEN, 0, NULL);
}

/* A job that moves its best ones further down loses them here, and does not know it. */
static void say_aside(run *r, const run_unit *u) {
  if (u->phase != UNIT_SETTLING && u->phase != UNIT_RUNNING && !run_unit_queued(u)) return;
  run_say_once(r, "a checkpoint was moved further down before it was saved: that is how frameworks "
                  "delete, so it is NOT saved. To keep one there, copy it instead of moving it");
}

static int on_gone(run *r, run_unit *u, const detect_unit *facts, err *e) {
  int rc = facts->aside ? run_note_aside(r, facts->aside, &facts->fingerprint, e) : 0;
  if (!u) return rc;
  if (facts->aside)
    say_aside(r, u);
  else
    run_hasty_gone(r, u, facts);
  int forgot = journal_forget(r->journal, u->path, e);
  if (rc == 0) rc = forgot;
  run_note(r, u, TRAIL_GONE, "it was removed from the directory");
  if (u->phase == UNIT_RUNNING) { /* it is removed when its save has ended */
    u->gone = true;
    stop_save(u);
    return rc;
  }
  if (run_unit_queued(u)) {
    r->retired++;
    if (u->kept)
      log_say(r->env->log, LOG_WARN,
              "%s is not saved, though `keep` wants it (%s): it was removed before its turn",
              u->path, u->kept_why);
    run_tell(r, u, RUN_RETIRED, NULL, ERR_RETIRED, "it was removed before it was saved");
  }
  run_unit_remove(r, u);
  return rc;
}

int run_unit_news(run *r, const detect_unit *facts, err *e) {
  int later = run_later_takes(r, facts, e);
  if (later != 0) return later < 0 ? later : 0;
  run_unit *u = run_unit_find(r, facts->path);
  if (facts->above && r->ranks.world > 1) return 0; /* of such a file no rank has a part */
  if (facts->state == DETECT_GONE) return on_gone(r, u, facts, e);
  if (run_is_aside(r, facts)) {
    if (u && u->phase == UNIT_SETTLING) run_unit_remove(r, u);
    return run_note_aside(r, facts->path, &facts->fingerprint, e);
  }
  if (!u && (run_dir_inside(r, facts->path) || run_is_others_part(r, facts))) return 0;
  if (facts->above && run_above_is_outdated(r, facts)) {
    if (u && (u->phase == UNIT_SETTLING || u->phase == UNIT_UNPROVEN)) run_unit_remove(r, u);
    return 0;
  }
  int rc = run_unit_take(r, facts, &u, e);
  if (rc < 0) return rc;
  if (u->above) run_above_overtake(r, u);
  switch (facts->state) {
  case DETECT_OPEN: return on_open(r, u, e);
  case DETECT_COMPLETE: return on_complete(r, u, e);
  case DETECT_UNPROVEN:
  case DETECT_BROKEN: on_unproven(r, u, facts); return 0;
  case DETECT_GONE: break;
  }
  return 0;
}

/* Takes in the news of all units: an error with one must not lose the others, whose news come only
 * once. */
static int take_units(run *r, err *e) {
  detect_unit facts;
  int first = 0;
  while (detect_next(r->detect, &facts)) {
    int rc = run_unit_news(r, &facts, first == 0 ? e : NULL);
    if (first == 0) first = rc;
  }
  run_take_back(r);
  return first;
}

/* ---- events ---- */

int run_fd(const run *r) {
  return r->detect ? detect_fd(r->detect) : -1;
}

static int check_started(const run *r, err *e) {
  return r->started ? 0 : err_set(e, ERR_INVAL, "the run is not started yet");
}

int run_child(run *r, pid_t pid, err *e) {
  uint64_t start;
  pid_t sid;
  int rc = check_started(r, e);
  if (rc == 0 && pid <= 0) rc = err_set(e, ERR_INVAL, "a trainer's pid cannot be %ld", (long)pid);
  if (rc == 0 && r->writer_gone) run_record_start(r);
  if (rc == 0) r->writer_gone = false;
  if (rc == 0) atomic_store(&r->hurried, r->preempted);
  if (rc == 0) detect_writer_new(r->detect);
  if (rc == 0) run_tasks_again(r);
  if (rc == 0) rc = proc_identity(pid, &start, &sid, e);
  if (rc == ERR_NOENT) return 0; /* it was quick: there is nobody to remember */
  return rc < 0 ? rc : journal_note_child(r->journal, pid, start, sid, e);
}

void run_writers_gone(run *r, bool clean) {
  detect_writer_gone(r->detect, clean);
  r->writer_gone = true;
  run_record_end(r);
  atomic_store(&r->hurried, true);
  r->meet_at = 0; /* the last chance to learn what is there */
  run_no_writer(r);
  run_keep_ask_all(r);
  run_event(r, true);
  run_reconsider(r, "end");
  if (clean) run_local_end(r);
}

int run_child_exit(run *r, bool clean, err *e) {
  int rc = check_started(r, e);
  if (rc < 0) return rc;
  run_order_now(r);
  rc = detect_run(r->detect, e); /* changes that it made before its end count as its own */
  if (!run_tasks_left(r, clean)) run_writers_gone(r, clean);
  int noted = journal_note_child_end(r->journal, rc < 0 ? NULL : e);
  return rc < 0 ? rc : noted;
}

static int look(run *r, err *e) {
  return detect_run(r->detect, e);
}

/* Files that were written before a result was sent count as written. A listing takes long, and comes
 * for those alone that name a checkpoint. */
static void notice(run *r, bool named) {
  err e = {0};
  bool polls = detect_polling(r->detect);
  if (polls && !named) return;
  int rc = polls ? detect_list(r->detect, &e) : look(r, &e);
  if (rc < 0 || take_units(r, &e) < 0) log_say(r->env->log, LOG_WARN, "%s", e.text);
}

static void take_result(run *r, const char *json, const json_t *value) {
  const char *named = json_string_value(json_object_get(value, "checkpoint"));
  run_order_now(r);
  notice(r, named != NULL);
  r->results++;
  for (size_t i = 0; i < r->group_count; i++) r->groups[i]->results++;
  for (size_t i = 0; named && i < r->unit_count; i++)
    if (run_result_names(r, named, r->units[i]->path)) r->units[i]->asked_for = true;
  run_result_take(r, json, named);
  run_record_result(r, json);
  run_starts_result(r, value);
  run_event(r, false);
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
  buf spelt;
  buf_init(&text, 2 * RESULT_MAX);
  buf_init(&spelt, 2 * RESULT_MAX);
  number_spell(json, strlen(json), &spelt); /* a run that diverges reports NaN */
  rc = buf_failed(&spelt) ? err_set(e, buf_failed(&spelt), "a result is too long")
                          : js_parse(spelt.data ? spelt.data : "", spelt.len, "result", &value, e);
  buf_free(&spelt);
  if (rc == 0 && !json_is_object(value))
    rc = err_set(e, ERR_FORMAT, "a result is a JSON object, as in {\"loss\": 0.5}");
  if (rc == 0) rc = js_print(value, &text, e);
  if (rc == 0) take_result(r, text.data, value);
  buf_free(&text);
  json_decref(value);
  return rc;
}

int run_preempt(run *r, double grace_s, err *e) {
  int64_t left;
  int rc = check_started(r, e);
  if (rc < 0) return rc;
  run_order_now(r);
  r->grace_s = grace_s;
  if (seconds_to_ns(grace_s, "grace", &left, e) < 0) return ERR_INVAL;
  r->end_at = seconds_later(r->env->io->now(r->env->io, IO_MONO), left);
  r->rest = run_policy_rest(r);
  r->preempted = true;
  run_event(r, true);
  run_record_preempt(r);
  atomic_store(&r->hurried, true);
  run_reconsider(r, "preempt");
  run_hurry(r);
  run_later_stop(r);
  run_empty_stop(r);
  return 0;
}

int run_drain(run *r, double for_s, uint64_t *id, err *e) {
  int rc = check_started(r, e);
  if (rc < 0) return rc;
  run_order_now(r);
  notice(r, true);
  return run_drain_begin(r, for_s, id, e);
}

int run_list(run *r, err *e) {
  int rc = check_started(r, e);
  return rc < 0 ? rc : detect_list(r->detect, e);
}

/* A directory that cannot be listed now must not keep known units waiting: each part has its turn,
 * and the first error is told. */
int run_step(run *r, int64_t *due, err *e) {
  static int (*const parts[])(run *, err *) = {look, take_units, run_ask_in_time, run_start_saves,
                                               run_keep_step};
  *due = INT64_MAX;
  if (!r->started) return 0;
  run_order_now(r);
  int64_t tasks = run_tasks_step(r);
  int first = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    int rc = parts[i](r, first == 0 ? e : NULL);
    if (first == 0) first = rc;
  }
  run_flush_step(r);
  run_note_open(r);
  int64_t tell = run_result_step(r);
  int64_t meet = run_anyway_step(r, r->env->io->now(r->env->io, IO_MONO));
  int64_t lease = run_renew_leases(r, r->env->io->now(r->env->io, IO_MONO));
  int64_t save = r->fenced ? INT64_MAX : run_next_save(r), next_look = detect_due(r->detect);
  *due = lease < save ? lease : save;
  if (tasks < *due) *due = tasks;
  if (next_look < *due) *due = next_look;
  if (meet < *due) *due = meet;
  if (tell < *due) *due = tell;
  int64_t beside = run_beside_step(r, r->env->io->now(r->env->io, IO_MONO));
  if (beside < *due) *due = beside;
  int64_t keep = r->fenced ? INT64_MAX : run_keep_due(r);
  if (keep < *due) *due = keep;
  int64_t stall = run_watch_stalls(r, r->env->io->now(r->env->io, IO_MONO));
  if (stall < *due) *due = stall;
  int64_t local = run_local_again(r, r->env->io->now(r->env->io, IO_MONO));
  if (local < *due) *due = local;
  int64_t later = run_later_step(r, r->env->io->now(r->env->io, IO_MONO));
  if (later < *due) *due = later;
  int64_t empty = run_empty_step(r, r->env->io->now(r->env->io, IO_MONO));
  if (empty < *due) *due = empty;
  int64_t reload = run_reload_step(r, r->env->io->now(r->env->io, IO_MONO));
  if (reload < *due) *due = reload;
  if (r->ask_due < *due) *due = r->ask_due;
  int64_t drain = run_drain_step(r, r->env->io->now(r->env->io, IO_MONO));
  if (drain < *due) *due = drain;
  return first;
}
