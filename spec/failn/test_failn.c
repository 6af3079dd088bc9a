/* A failure at every call of every operation: see failn.h. FAILN_STRIDE=1 (make test-failn) takes
 * every point; else a few hundred of them. FAILN_ONLY: only what is named so ("save on file"); "?"
 * tells the names, and is a failure. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/keep/collect.h"
#include "commit/lease.h"
#include "job/keep/prune.h"
#include "job/keep/prune_thin.h"
#include "job/restore/restore.h"
#include "commit/settle.h"
#include "failn.h"
#include "tmpdir.h"

#ifdef CKPT_SANITIZED
enum { STRIDE = 1637 };
#else
enum { STRIDE = 409 };
#endif

/* ---- what the scenarios are made of ---- */

static runlog_writer writer_of(const failn_scene *s) {
  runlog_writer who = {.host = "here", .state = "/state", .pid = 7};
  snprintf(who.launch, sizeof who.launch, "play-%u", s->play);
  return who;
}

/* A process begins: a log of its own, with a term. */
static int begin(failn_scene *s, runlog **log, err *e) {
  runlog_writer who = writer_of(s);
  int rc = runlog_open(s->w->env.store, "", log, e);
  return rc == 0 ? runlog_begin(*log, "run", &who, false, e) : rc;
}

/* Before the manifest is put. */
static void add_op(job *j, plan_op what) {
  plan *p = &j->plan;
  int at = 0;
  while (p->ops[at] != PLAN_MANIFEST) at++;
  memmove(p->ops + at + 1, p->ops + at, sizeof *p->ops * (size_t)(p->count - at));
  p->ops[at] = what;
  p->count++;
}

static int save(failn_scene *s, runlog *log, const char *unit, match_kind kind, int with, err *e) {
  job *j = job_for(s->w, log, unit, kind, 1, with);
  if (s->w->env.companions) add_op(j, PLAN_COMPANIONS);
  job_run(j);
  int rc = j->status;
  if (rc == 0)
    failn_ack(s, j->commit.n);
  else
    *e = j->error;
  job_free(j);
  return rc;
}

/* Unless it is there already, as after a start. */
static int save_new(failn_scene *s, runlog *log, const char *unit, match_kind kind, int with,
                    err *e) {
  return runlog_newest(runlog_view(log), unit) ? 0 : save(s, log, unit, kind, with, e);
}

static const char *must_have(const failn_scene *s, const char *unit, size_t count) {
  store *st = world_store(s->w);
  runlog *log = NULL;
  const char *why = NULL;
  if (runlog_open(st, "", &log, NULL) < 0) abort();
  const runlog_state *state = runlog_view(log);
  if (!runlog_newest(state, unit)) why = "it reported success, and the unit is not there";
  if (state->commit_count < count) why = "it reported success, and a commit is missing";
  runlog_close(log);
  store_close(st);
  return why;
}

/* ---- save ---- */

/* A pointer file is saved beside each. */
static void before_save(failn_scene *s) {
  static const char *const beside[] = {"latest", NULL};
  s->w->env.companions = beside;
  write_file(tmpdir_path(s->w->root, "latest"), "checkpoint-1");
  make_unit(s->w, "checkpoint-1", MATCH_DIR, 1);
  make_unit(s->w, "ckpt-2", MATCH_GROUP, 2);
}

static int act_save(failn_scene *s, err *e) {
  runlog *log = NULL;
  int rc = begin(s, &log, e);
  if (rc == 0) rc = settle_attempts(s->w->env.store, log, NULL, e);
  if (rc == 0) rc = save_new(s, log, "checkpoint-1", MATCH_DIR, WITH_SNAPSHOT, e);
  if (rc == 0) rc = save_new(s, log, "ckpt-2", MATCH_GROUP, 0, e);
  runlog_close(log);
  return rc;
}

/* What a commit says that is beside it is there. (It may say that there is nothing: a file that
 * cannot be read is left out.) */
static const char *after_save(failn_scene *s, bool done) {
  store *st = world_store(s->w);
  runlog *log = NULL;
  const char *why = NULL;
  if (runlog_open(st, "", &log, NULL) < 0) abort();
  const runlog_state *state = runlog_view(log);
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    char key[STORE_KEY_MAX], name[STORE_KEY_MAX + 20];
    if (c->companions.files == 0) continue;
    assert_int_equal(
        runlog_key_companions(runlog_prefix(log), c->attempt, c->companions.term, key, NULL), 0);
    snprintf(name, sizeof name, "%s/latest", key);
    if (!store_holds(st, name))
      why = "torn: a file that was saved beside a checkpoint is not there";
  }
  runlog_close(log);
  store_close(st);
  return why || !done ? why : must_have(s, "ckpt-2", 2);
}

/* ---- save over an aborted save ---- */

/* An earlier process died in the middle of a save, and another one between its manifest and its
 * commit. */
static void before_aborted(failn_scene *s) {
  uint64_t n;
  char dir[STORE_KEY_MAX], key[STORE_KEY_MAX + 20], id[RUNLOG_NONCE_MAX];
  make_unit(s->w, "checkpoint-1", MATCH_DIR, 1);
  make_unit(s->w, "last.ckpt", MATCH_FILE, 2);
  s->log = world_begin(s->w->env.store, "", "first");
  failn_ack(s, save_unit(s->w, s->log, "last.ckpt", MATCH_FILE, 1));
  assert_int_equal(runlog_attempt_begin(s->log, "checkpoint-1", &n, NULL), 0);
  if (store_can(s->w->env.store, STORE_CAP_PUBLISH))
    assert_int_equal(runlog_key_staging(s->log, n, dir, NULL), 0);
  else
    assert_int_equal(runlog_key_dir(s->log, "checkpoint-1", dir, NULL), 0);
  snprintf(key, sizeof key, "%s/model.bin", dir);
  assert_int_equal(runlog_attempt_id(s->log, n, id, NULL), 0);
  assert_int_equal(
      store_put_marked(s->w->env.store, key, "half", strlen("half"), STORE_IF_ABSENT, id, NULL), 0);
}

static int act_aborted(failn_scene *s, err *e) {
  runlog *log = NULL;
  int rc = begin(s, &log, e);
  if (rc == 0) rc = settle_attempts(s->w->env.store, log, NULL, e);
  if (rc == 0) rc = save_new(s, log, "checkpoint-1", MATCH_DIR, 0, e);
  if (rc == 0) rc = save(s, log, "last.ckpt", MATCH_FILE, 0, e);
  runlog_close(log);
  return rc;
}

static const char *after_aborted(failn_scene *s, bool done) {
  return done ? must_have(s, "checkpoint-1", 3) : NULL;
}

/* ---- retention, and the collection of what it left ---- */

enum { SAVES = 4, DROPS = 2 };

static void before_retention(failn_scene *s) {
  runlog *log = s->log = world_begin(s->w->env.store, "", "first");
  for (int i = 0; i < SAVES; i++) {
    char name[32];
    snprintf(name, sizeof name, "checkpoint-%d", i);
    make_unit(s->w, name, i == 0 ? MATCH_DIR : MATCH_FILE, (unsigned)i);
    failn_ack(s, save_unit(s->w, log, name, i == 0 ? MATCH_DIR : MATCH_FILE, i));
    s->acks[i].may_go = i < DROPS;
  }
}

static int act_retention(failn_scene *s, err *e) {
  runlog *log = NULL;
  prune_wish wishes[DROPS];
  prune_rest rest = {0};
  int rc = begin(s, &log, e);
  prune p = {
      .store = s->w->env.store, .log = log, .limits = {.max_drop = 1}, .resumed = RUNLOG_NONE};
  for (int i = 0; i < DROPS; i++) wishes[i] = (prune_wish){s->acks[i].commit, "p", "not kept"};
  if (rc == 0) rc = prune_drop(&p, wishes, DROPS, e);
  do {
    if (rc == 0) rc = prune_delete(&p, 1, &rest, e);
  } while (rc == 0 && rest.more);
  if (rc == 0) settle_litter(s->w->env.store, log, NULL);
  runlog_close(log);
  return rc;
}

static const char *after_retention(failn_scene *s, bool done) {
  store *st = world_store(s->w);
  runlog *log = NULL;
  const char *why = NULL;
  if (runlog_open(st, "", &log, NULL) < 0) abort();
  for (int i = 0; done && i < DROPS; i++)
    if (runlog_find_commit(runlog_view(log), s->acks[i].commit)->life != RUNLOG_DELETED)
      why = "it reported success, and a checkpoint was not deleted";
  runlog_close(log);
  store_close(st);
  return why;
}

/* ---- files that only the newest keep ---- */

enum { WHOLE = 2 };

static void before_thin(failn_scene *s) {
  runlog *log = s->log = world_begin(s->w->env.store, "", "first");
  for (int i = 0; i < WHOLE + 1; i++) failn_ack(s, save_numbered(s->w, log, i));
}

static int act_thin(failn_scene *s, err *e) {
  char *glob[] = {"shard*"};
  const names globs = {glob, 1, 1};
  const prune_thin_wish wish = {.globs = &globs, .newest = WHOLE, .policy = "p"};
  prune_thin_whole whole = {0};
  runlog *log = NULL;
  bool left = true;
  int rc = begin(s, &log, e);
  prune_rest rest;
  prune p = {
      .store = s->w->env.store, .log = log, .limits = {.max_drop = 1}, .resumed = RUNLOG_NONE};
  if (rc == 0) rc = prune_thin(&p, &wish, &whole, 0, &left, NULL, NULL, &rest, e);
  prune_thin_forget(&whole);
  runlog_close(log);
  return rc < 0 ? rc : left ? err_set(e, ERR_IO, "files are left for a later pass") : 0;
}

/* The newest have all; what was taken of the older one is said before it goes. */
static const char *after_thin(failn_scene *s, bool done) {
  store *st = world_store(s->w);
  runlog *log = NULL;
  const char *why = NULL;
  if (runlog_open(st, "", &log, NULL) < 0) abort();
  for (int i = 0; i < WHOLE + 1; i++) {
    char key[100];
    const runlog_commit *c = runlog_find_commit(runlog_view(log), s->acks[i].commit);
    snprintf(key, sizeof key, "%s/" FAILN_SHARD, c->dir);
    const bool there = store_holds(st, key);
    if (!there && !c->thin.globs.count) why = "lost: a file went before the log said so";
    if (i > 0 && c->thin.globs.count) why = "lost: one of the newest has lost files";
    if (i == 0 && done && there) why = "it reported success, and the file is there";
  }
  runlog_close(log);
  store_close(st);
  return why;
}

/* ---- gc, from another machine ---- */

/* The writer died in the middle of a save, and after it had dropped a checkpoint. */
static void before_gc(failn_scene *s) {
  before_aborted(s);
  for (int i = 2; i < 4; i++) failn_ack(s, save_numbered(s->w, s->log, i));
  assert_int_equal(runlog_drop(s->log, s->acks[1].commit, "p", "not kept", NULL, NULL, NULL), 0);
  s->acks[1].may_go = true;
}

static int act_gc(failn_scene *s, err *e) {
  runlog *log = NULL;
  failn_two_days(s);
  int rc = runlog_open(s->w->env.store, "", &log, e);
  collect how = {.store = s->w->env.store, .log = log};
  if (rc == 0) rc = collect_log(&how, e);
  runlog_close(log);
  return rc;
}

static const char *after_gc(failn_scene *s, bool done) {
  store *st = world_store(s->w);
  runlog *log = NULL;
  const char *why = NULL;
  if (!done) goto out;
  if (runlog_open(st, "", &log, NULL) < 0) abort();
  const runlog_state *state = runlog_view(log);
  if (runlog_find_commit(state, s->acks[1].commit)->life != RUNLOG_DELETED)
    why = "it reported success, and what was dropped is not deleted";
  for (size_t i = 0; i < state->attempt_count; i++)
    if (state->attempts[i].fate == RUNLOG_OPEN)
      why = "it reported success, and a save of nobody is open";
out:
  runlog_close(log);
  store_close(st);
  return why;
}

/* ---- restore ---- */

static void before_restore(failn_scene *s) {
  s->log = world_begin(s->w->env.store, "", "first");
  make_unit(s->w, "checkpoint-1", MATCH_DIR, 1);
  make_unit(s->w, "ckpt-2", MATCH_GROUP, 2);
  failn_ack(s, save_unit(s->w, s->log, "checkpoint-1", MATCH_DIR, 1));
  failn_ack(s, save_unit(s->w, s->log, "ckpt-2", MATCH_GROUP, 2));
  make_dir(tmpdir_path(s->w->dir, "target"));
}

static int restore_all(failn_scene *s, runlog *log, err *e) {
  const runlog_state *st = runlog_view(log);
  restore how = {
      .io = s->w->env.io, .store = s->w->env.store, .pool = s->w->pool, .staging = s->w->staging};
  char dir[4096];
  int rc = 0;
  snprintf(dir, sizeof dir, "%s/target", s->w->dir);
  for (size_t i = 0; rc == 0 && i < st->commit_count; i++) {
    manifest m = {0};
    rc = restore_manifest(s->w->env.store, "", &st->commits[i], &m, e);
    if (rc == 0) rc = restore_unit(&how, &m, st->commits[i].dir, dir, e);
    if (rc == ERR_EXISTS && s->play > 1) rc = 0; /* the first time had come so far */
    manifest_free(&m);
  }
  return rc;
}

/* Of a group a part may be there after a failure that nothing could be undone after. A start moves
 * it away before it restores. */
static void move_away(failn_scene *s) {
  char target[2048];
  snprintf(target, sizeof target, "%s/target", s->w->dir);
  int entries = count_entries(target);
  if (entries == 4 || entries == (path_exists(tmpdir_path(target, "checkpoint-1")) ? 1 : 0)) return;
  for (int i = 0; i < 3; i++) {
    char name[32];
    snprintf(name, sizeof name, "ckpt-2.part-%d", i);
    unlink(tmpdir_path(target, name));
  }
}

static int act_restore(failn_scene *s, err *e) {
  runlog *log = NULL;
  move_away(s);
  int rc = runlog_open(s->w->env.store, "", &log, e);
  if (rc == 0) rc = restore_all(s, log, e);
  runlog_close(log);
  return rc;
}

/* A directory is there whole or not at all, and so is each file of a group. */
static const char *after_restore(failn_scene *s, bool done) {
  static const char *const names[] = {"checkpoint-1", "ckpt-2.part-0", "ckpt-2.part-1",
                                      "ckpt-2.part-2"};
  char target[2048];
  const char *why = NULL;
  snprintf(target, sizeof target, "%s/target", s->w->dir);
  for (int i = 0; !why && i < 4; i++)
    if (path_exists(tmpdir_path(target, names[i])))
      why = tree_differs(tmpdir_path(s->w->root, names[i]), tmpdir_path(target, names[i]));
  if (!why && done && count_entries(target) != 4)
    why = "it reported success, and a name is missing";
  return why;
}

/* ---- take-over ---- */

/* Its first writer is alive somewhere, and has a sealed save that it did not commit yet. */
static void before_take_over(failn_scene *s) {
  uint64_t n;
  before_aborted(s);
  const runlog_writer *who = &runlog_view(s->log)->term.writer;
  assert_int_equal(lease_renew(s->w->env.store, "", runlog_view(s->log)->term.n, who, NULL), 0);
  assert_int_equal(runlog_attempt_begin(s->log, "last.ckpt", &n, NULL), 0);
}

static int act_take_over(failn_scene *s, err *e) {
  runlog *log = NULL;
  runlog_writer who = writer_of(s);
  store *st = s->w->env.store;
  int rc = runlog_open(st, "", &log, e);
  if (rc == 0) rc = lease_check(st, "", &runlog_view(log)->term, &who, true, NULL, e);
  if (rc == 0) rc = runlog_begin(log, "run", &who, false, e);
  if (rc == 0) rc = lease_renew(st, "", runlog_view(log)->term.n, &who, e);
  if (rc == 0) rc = settle_attempts(st, log, NULL, e);
  if (rc == 0) rc = save_new(s, log, "checkpoint-1", MATCH_DIR, 0, e);
  if (rc == 0) rc = lease_release(st, "", runlog_view(log)->term.n, &who, e);
  runlog_close(log);
  return rc;
}

/* The first writer goes on as if nothing had happened: once a newer term is there, it is told. */
static const char *after_take_over(failn_scene *s, bool done) {
  const char *why = NULL;
  if (!done) return NULL;
  uint64_t n;
  if (runlog_attempt_begin(s->log, "last.ckpt", &n, NULL) != ERR_FENCED)
    why = "the writer that was taken over from was not fenced";
  return why ? why : must_have(s, "checkpoint-1", 2);
}

/* ---- the commit of two ranks ---- */

enum { RANKS = 2 };

typedef struct rank {
  world world; /* the scene's, with a directory of its own */
  ranks ranks;
  runlog *log;
  job *job;
  pthread_t thread;
  int rc;
  err e;
} rank;

static void stamp(const char *path) {
  const struct timespec when[2] = {{1700000000, 0}, {1700000000, 0}};
  if (utimensat(AT_FDCWD, path, when, 0) < 0) abort();
}

/* Rank 0 and 1 have a part each; `both` is what a restore has to give back. */
static void write_part(const char *root, bool zero, bool one) {
  char unit[2048];
  snprintf(unit, sizeof unit, "%s/checkpoint-1", root);
  make_dir(unit);
  for (int i = 0; i < RANKS; i++) {
    char name[32];
    snprintf(name, sizeof name, "rank-%d.bin", i);
    if (!(i == 0 ? zero : one)) continue;
    write_pattern(tmpdir_path(unit, name), 3000 + (size_t)i, (unsigned)i);
    stamp(tmpdir_path(unit, name));
  }
  write_file(tmpdir_path(unit, "config.json"), "{}");
  stamp(tmpdir_path(unit, "config.json"));
  stamp(unit);
}

static void before_ranks(failn_scene *s) {
  make_dir(tmpdir_path(s->w->dir, "rank-0"));
  make_dir(tmpdir_path(s->w->dir, "rank-1"));
  write_part(tmpdir_path(s->w->dir, "rank-0"), true, false);
  write_part(tmpdir_path(s->w->dir, "rank-1"), false, true);
  write_part(s->w->root, true, true);
}

static void *run_rank(void *arg) {
  rank *r = arg;
  job_run(r->job);
  r->rc = r->job->status;
  r->e = r->job->error;
  return NULL;
}

/* Where nothing fails a busy machine is no reason to give up. */
static int64_t patience_of(const failn_scene *s) {
  const int64_t second = 1000000000;
  return s->play == 2 ? 1200 * second : 2 * second;
}

static int rank_begin(failn_scene *s, rank *r, uint32_t number, err *e) {
  char name[32];
  runlog_writer who = writer_of(s);
  who.world = RANKS;
  snprintf(name, sizeof name, "rank-%u", number);
  r->world = *s->w;
  r->world.root = strdup(tmpdir_path(s->w->dir, name));
  r->world.env.root = r->world.root;
  r->world.env.ranks = &r->ranks;
  r->ranks = (ranks){.rank = number, .world = RANKS, .wait_ns = patience_of(s)};
  snprintf(r->ranks.launch, sizeof r->ranks.launch, "%s", who.launch);
  int rc = runlog_open(s->w->env.store, "", &r->log, e);
  if (rc == 0 && number == 0) rc = runlog_begin(r->log, "run", &who, false, e);
  if (rc == 0 && number == 0) rc = settle_attempts(s->w->env.store, r->log, NULL, e);
  if (rc < 0) return rc;
  r->job = job_for(&r->world, r->log, "checkpoint-1", MATCH_DIR, 1, 0);
  add_op(r->job, PLAN_GATHER);
  return 0;
}

static int act_ranks(failn_scene *s, err *e) {
  rank r[RANKS] = {0};
  int rc = 0;
  for (uint32_t i = 0; rc == 0 && i < RANKS; i++) rc = rank_begin(s, &r[i], i, e);
  if (rc == 0 && runlog_newest(runlog_view(r[0].log), "checkpoint-1")) goto out;
  for (int i = 0; rc == 0 && i < RANKS; i++)
    if (pthread_create(&r[i].thread, NULL, run_rank, &r[i])) abort();
  for (int i = 0; rc == 0 && i < RANKS; i++) pthread_join(r[i].thread, NULL);
  for (int i = 0; i < RANKS && r[i].job; i++) {
    if (r[i].rc == 0 && r[i].job->commit.n) failn_ack(s, r[i].job->commit.n);
    if (rc < 0 || r[i].rc == 0) continue;
    rc = r[i].rc;
    *e = r[i].e;
  }
out:
  for (int i = 0; i < RANKS; i++) {
    if (r[i].job) job_free(r[i].job);
    runlog_close(r[i].log);
    free(r[i].world.root);
  }
  return rc;
}

static const char *after_ranks(failn_scene *s, bool done) {
  return done ? must_have(s, "checkpoint-1", 1) : NULL;
}

/* ---- all of them ---- */

static const failn_scenario scenarios[] = {
    {"save", "file", before_save, act_save, after_save, false},
    {"save", "mem", before_save, act_save, after_save, false},
    {"save over an aborted save", "file", before_aborted, act_aborted, after_aborted, false},
    {"save over an aborted save", "mem", before_aborted, act_aborted, after_aborted, false},
    {"retention", "file", before_retention, act_retention, after_retention, false},
    {"retention", "mem", before_retention, act_retention, after_retention, false},
    {"thinning", "file", before_thin, act_thin, after_thin, false},
    {"thinning", "mem", before_thin, act_thin, after_thin, false},
    {"gc", "file", before_gc, act_gc, after_gc, false},
    {"gc", "mem", before_gc, act_gc, after_gc, false},
    {"commit of ranks", "file", before_ranks, act_ranks, after_ranks, false},
    {"commit of ranks", "mem", before_ranks, act_ranks, after_ranks, false},
    {"restore", "file", before_restore, act_restore, after_restore, true},
    {"restore", "mem", before_restore, act_restore, after_restore, true},
    {"take-over", "file", before_take_over, act_take_over, after_take_over, false},
    {"take-over", "mem", before_take_over, act_take_over, after_take_over, false},
};

static void wherever_a_call_fails_nothing_is_torn_lost_or_leaked(void **state) {
  const char *stride = getenv("FAILN_STRIDE"), *only = getenv("FAILN_ONLY");
  failn_sum sum = {0};
  int count = 0;
  for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
    char name[100];
    snprintf(name, sizeof name, "%s on %s", scenarios[i].name, scenarios[i].scheme);
    if (only && strcmp(only, "?") == 0) print_message("# scenario: %s\n", name);
    if (only && strcmp(name, only) != 0) continue;
    failn_walk(&scenarios[i], stride ? atol(stride) : STRIDE, &sum);
    count++;
  }
  print_message("# failn: %d scenarios, %ld points, %ld torn, %ld lost, %ld leaks\n", count,
                sum.points, sum.torn, sum.lost, sum.leaks);
  if (sum.points == 0 && stride && atol(stride) > 1)
    skip(); /* green would say that it was played */
  assert_true(sum.points > 0);
  assert_int_equal(sum.torn + sum.lost + sum.leaks + sum.wrong, 0);
}

/* The allocator keeps no freed memory aside from the start, or a leak could not be told from it. */
int main(int argc, char **argv) {
  static const char tunables[] = "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1";
  if (!getenv("GLIBC_TUNABLES") && setenv("GLIBC_TUNABLES", tunables, 1) == 0)
    execv("/proc/self/exe", argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wherever_a_call_fails_nothing_is_torn_lost_or_leaked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
