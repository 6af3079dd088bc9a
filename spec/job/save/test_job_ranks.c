#include "with_cmocka.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "job/save/job.h"
#include "commit/parts.h"
#include "commit/ranks_said.h"
#include "commit/settle.h"
#include "log_check.h"
#include "manifest_make.h"
#include "prims/numbers/match_step.h"
#include "store_lossy.h"
#include "tmpdir.h"
#include "world.h"

enum { RANKS = 4, FASTER = 20 };

/* ---- a clock that runs faster: deadlines are waited for ---- */

static const io *inner;
static io fast;

static int64_t fast_now(const io *io, io_clock clock) {
  int64_t now = inner->now(inner, clock);
  return clock == IO_WALL ? now : now * FASTER;
}

static void fast_sleep(const io *io, int64_t ns) {
  struct timespec t = {.tv_nsec = ns / FASTER < 1000000000 ? ns / FASTER : 999999999};
  nanosleep(&t, NULL);
}

static const io *fast_io(void) {
  inner = world_io();
  fast = *inner;
  fast.now = fast_now;
  fast.sleep = fast_sleep;
  return &fast;
}

/* ---- ranks, each a thread with its own directory ---- */

typedef struct rank {
  world world; /* the shared one, with a directory, a store handle and an environment of its own */
  ranks ranks;
  runlog *log;
  store *s;
  store_lossy *lossy;
  job *j;
  unsigned delay_us, tries;
  pthread_t thread;
} rank;

typedef struct team {
  world *w;
  rank rank[RANKS];
  uint32_t world;
} team;

static void write_part(const rank *r, const char *unit, uint32_t number, const char *shared) {
  char name[100];
  make_dir(tmpdir_path(r->world.root, unit));
  snprintf(name, sizeof name, "%s/rank-%u.bin", unit, number);
  write_pattern(tmpdir_path(r->world.root, name), 3000 + number, number + 1);
  snprintf(name, sizeof name, "%s/config.json", unit);
  write_file(tmpdir_path(r->world.root, name), shared);
  snprintf(name, sizeof name, "%s/sub", unit);
  make_dir(tmpdir_path(r->world.root, name));
}

static void begin_term(team *t, const char *launch, bool all) {
  err e = {0};
  runlog_writer who = {.host = "here", .pid = 7, .world = t->world};
  snprintf(who.launch, sizeof who.launch, "%s", launch);
  for (uint32_t i = 0; i < t->world; i++) {
    rank *r = &t->rank[i];
    runlog_close(r->log);
    snprintf(r->ranks.launch, sizeof r->ranks.launch, "%s", launch);
    if (runlog_open(r->world.env.store, "", &r->log, &e) < 0) fail_msg("%s", e.text);
    if (i == 0 && all && runlog_begin(r->log, "run", &who, false, &e) < 0) fail_msg("%s", e.text);
  }
}

/* `seed` 0: stores that lose nothing. */
static team *team_new(const char *scheme, uint32_t count, double wait_s, uint64_t seed) {
  team *t = calloc(1, sizeof *t);
  if (!t) abort();
  t->w = world_new(scheme, fast_io());
  t->world = count;
  for (uint32_t i = 0; i < count; i++) {
    char name[32];
    rank *r = &t->rank[i];
    r->world = *t->w;
    snprintf(name, sizeof name, "root-%u", i);
    r->world.root = strdup(tmpdir_path(t->w->dir, name));
    make_dir(r->world.root);
    r->s = world_store(t->w);
    r->s->io = fast_io();
    r->ranks = (ranks){.rank = i, .world = count, .wait_ns = (int64_t)(wait_s * 1e9)};
    r->world.env.root = r->world.root;
    r->world.env.ranks = &r->ranks;
    r->world.env.store = r->s;
    r->tries = 1;
    if (seed) {
      r->lossy = store_lossy_new(r->s, seed * 100 + i + 1, true);
      r->lossy->base.io = fast_io();
      r->world.env.store = &r->lossy->base;
      r->world.env.pool = NULL;
    }
  }
  begin_term(t, "launch-1", true);
  return t;
}

static void team_free(team *t) {
  for (uint32_t i = 0; i < t->world; i++) {
    rank *r = &t->rank[i];
    if (r->j) job_free(r->j);
    runlog_close(r->log);
    if (r->lossy) store_lossy_free(r->lossy);
    store_close(r->s);
    free(r->world.root);
  }
  world_free(t->w);
  free(t);
}

static void make_job(rank *r, const char *unit) {
  job *before = r->j;
  r->j = job_for(&r->world, r->log, unit, MATCH_DIR, match_step(unit), 0);
  plan *p = &r->j->plan;
  int at = 0;
  while (p->ops[at] != PLAN_MANIFEST) at++;
  memmove(p->ops + at + 1, p->ops + at, sizeof *p->ops * (size_t)(p->count - at));
  p->ops[at] = PLAN_GATHER;
  p->count++;
  snprintf(r->j->policy, sizeof r->j->policy, "of rank %u", r->ranks.rank);
  snprintf(r->j->reason, sizeof r->j->reason, "wanted by rank %u", r->ranks.rank);
  if (!before) return;
  r->j->attempt = before->attempt;
  r->j->attempt_shape = before->attempt_shape;
  job_free(before);
}

/* Tries again as a run does, without its pauses. */
static void *run_rank(void *arg) {
  rank *r = arg;
  char unit[PLAN_UNIT_MAX];
  snprintf(unit, sizeof unit, "%s", r->j->plan.unit);
  usleep(r->delay_us);
  for (unsigned i = 0; i < r->tries; i++) {
    if (i) {
      usleep(2000 * i);
      make_job(r, unit);
    }
    r->j->keep = i + 1 < r->tries;
    job_run(r->j);
    if (r->j->status == 0 || err_class_of(r->j->status) != ERR_CLASS_RETRYABLE) break;
  }
  return NULL;
}

static void start(rank *r) {
  if (pthread_create(&r->thread, NULL, run_rank, r)) abort();
}

static void finish(rank *r) {
  pthread_join(r->thread, NULL);
}

static void run_all(team *t, const char *unit) {
  for (uint32_t i = 0; i < t->world; i++) make_job(&t->rank[i], unit);
  for (uint32_t i = 0; i < t->world; i++) start(&t->rank[i]);
  for (uint32_t i = 0; i < t->world; i++) finish(&t->rank[i]);
}

static const runlog_state *refreshed(team *t) {
  runlog *log;
  static runlog *kept;
  runlog_close(kept);
  kept = NULL;
  if (!t) return NULL;
  assert_int_equal(runlog_open(t->w->env.store, "", &log, NULL), 0);
  kept = log;
  return runlog_view(log);
}

static void must_have_all(team *t, const runlog_commit *c, const char *unit) {
  char name[200];
  err e = {0};
  if (restore_commit(t->w, "", c, &e) < 0) fail_msg("%s", e.text);
  for (uint32_t i = 0; i < t->world; i++) {
    snprintf(name, sizeof name, "%s/rank-%u.bin", unit, i);
    assert_true(
        files_equal(tmpdir_path(t->rank[i].world.root, name), tmpdir_path(t->w->out, name)));
  }
  snprintf(name, sizeof name, "%s/config.json", unit);
  assert_true(path_exists(tmpdir_path(t->w->out, name)));
  snprintf(name, sizeof name, "%s", unit);
  assert_int_equal(count_entries(tmpdir_path(t->w->out, name)), t->world + 2);
  assert_int_equal(c->files, t->world + 1);
}

static void must_hold(team *t) {
  size_t entries;
  const char *broken = log_check(t->w->env.store, "", &entries);
  if (broken) fail_msg("the log: %s", broken);
}

/* ---- tests ---- */

static void each_scheme(void (*test)(const char *scheme)) {
  for (int i = 0; i < 2; i++) test(world_schemes[i]);
  refreshed(NULL);
}

static void commit_together(const char *scheme) {
  team *t = team_new(scheme, RANKS, 60, 0);
  for (int round = 0; round < 3; round++) {
    char unit[40];
    snprintf(unit, sizeof unit, "checkpoint-%d", round + 1);
    for (uint32_t i = 0; i < RANKS; i++) write_part(&t->rank[i], unit, i, "{}");
    run_all(t, unit);
    for (uint32_t i = 0; i < RANKS; i++)
      if (t->rank[i].j->status != 0) fail_msg("rank %u: %s", i, t->rank[i].j->error.text);
    const runlog_state *state = refreshed(t);
    assert_int_equal(state->commit_count, round + 1);
    for (uint32_t i = 0; i < RANKS; i++) {
      assert_int_equal(t->rank[i].j->commit.n, state->commits[round].n);
      assert_int_equal(t->rank[i].j->files, RANKS + 1);
    }
    assert_string_equal(state->commits[round].policy, "of rank 0");
    must_have_all(t, &state->commits[round], unit);
    /* The records of the one before are gone. */
    char left[64], *listing = store_listing(t->w->env.store, ".ckpt/parts", true);
    snprintf(left, sizeof left, ".ckpt/parts/%d/", (int)state->commits[round].attempt);
    assert_string_equal(listing, left);
    free(listing);
  }
  must_hold(t);
  team_free(t);
}

static void ranks_commit_one_checkpoint_with_the_files_of_all(void **state) {
  each_scheme(commit_together);
}

static void conflict(const char *scheme) {
  for (uint32_t odd = 0; odd < 2; odd++) {
    team *t = team_new(scheme, 2, 60, 0);
    for (uint32_t i = 0; i < 2; i++)
      write_part(&t->rank[i], "checkpoint-1", i, i == odd ? "{1}" : "{0}");
    t->rank[1].delay_us = odd ? 0 : 20000; /* either may be the one that finds the other's */
    run_all(t, "checkpoint-1");
    const job *first = t->rank[0].j;
    assert_int_equal(first->status, ERR_EXISTS);
    if (!strstr(first->error.text, "config.json")) fail_msg("%s", first->error.text);
    if (!strstr(first->error.text, "rank 1")) fail_msg("%s", first->error.text);
    assert_true(t->rank[1].j->status < 0);
    const runlog_state *state = refreshed(t);
    assert_int_equal(state->commit_count, 0);
    assert_int_equal(state->attempts[0].fate, RUNLOG_SWEPT);
    team_free(t);
  }
}

static void different_bytes_under_one_name_are_nobodys_checkpoint(void **state) {
  each_scheme(conflict);
}

static bool has_spoken(rank *r, uint64_t attempt) {
  bool spoken = false;
  runlog *log;
  part p = {.attempt = attempt, .ranks = &r->ranks};
  assert_int_equal(runlog_open(r->s, "", &log, NULL), 0);
  p.term = runlog_view(log)->term.n;
  assert_int_equal(parts_spoken(r->s, log, &p, &spoken, NULL), 0);
  runlog_close(log);
  return spoken;
}

/* The other rank has sent its file, and its record is not there: it is late. */
static void conflict_before_the_record(const char *scheme) {
  for (uint32_t world = 2; world <= 3; world++) {
    team *t = team_new(scheme, world, 60, 0);
    char key[STORE_KEY_MAX];
    for (uint32_t i = 0; i < 2; i++) write_part(&t->rank[i], "checkpoint-1", i, i ? "{1}" : "{0}");
    for (uint32_t i = 0; i < 2; i++) make_job(&t->rank[i], "checkpoint-1");
    start(&t->rank[0]);
    for (int i = 0; i < 10000 && !has_spoken(&t->rank[0], 2); i++) usleep(1000);
    atomic_store(&t->rank[0].j->cancel, JOB_LEAVE);
    finish(&t->rank[0]);
    const runlog *log = t->rank[0].log;
    assert_int_equal(runlog_key_parts(log, 2, runlog_view(log)->term.n, key, NULL), 0);
    assert_int_equal(t->w->env.store->ops->remove_prefix(t->w->env.store, key, NULL), 0);
    start(&t->rank[1]);
    finish(&t->rank[1]);
    const char *text = t->rank[1].j->error.text;
    assert_int_equal(t->rank[1].j->status, ERR_CONFLICT);
    if (!strstr(text, "different files under the name \"config.json\"")) fail_msg("%s", text);
    if (!strstr(text, world == 2 ? "rank 0 and rank 1 " : "rank 1 and one of ranks 0, 2 "))
      fail_msg("%s", text);
    team_free(t);
  }
}

static void whose_record_is_late_is_named_and_no_earlier_run(void **state) {
  each_scheme(conflict_before_the_record);
}

static void a_rank_that_does_not_come(const char *scheme) {
  team *t = team_new(scheme, 3, 2, 0);
  for (uint32_t i = 0; i < 3; i++) write_part(&t->rank[i], "checkpoint-1", i, "{}");
  for (uint32_t i = 0; i < 2; i++) make_job(&t->rank[i], "checkpoint-1");
  for (uint32_t i = 0; i < 2; i++) start(&t->rank[i]);
  char text[100] = "";
  for (int i = 0; i < 10000 && !strstr(text, "rank 2 (2 of 3"); i++) { /* 10 s: nodes are busy */
    usleep(1000);
    ranks_missing_text(t->rank[0].j->doing.ranks, 3, text, sizeof text);
  }
  assert_string_equal(text, "rank 2 (2 of 3 are there)");
  for (uint32_t i = 0; i < 2; i++) finish(&t->rank[i]);
  assert_int_equal(t->rank[0].j->status, ERR_TIMEOUT);
  if (!strstr(t->rank[0].j->error.text, "rank 2 ")) fail_msg("%s", t->rank[0].j->error.text);
  assert_non_null(strstr(t->rank[0].j->error.text, "2 of 3 are there"));
  assert_true(t->rank[1].j->status == ERR_TIMEOUT || t->rank[1].j->status == ERR_CONFLICT);
  const runlog_state *state = refreshed(t);
  assert_int_equal(state->commit_count, 0);
  assert_int_equal(state->attempts[0].fate, RUNLOG_SWEPT);
  team_free(t);
}

static void a_missing_rank_is_named_and_its_save_given_up(void **state) {
  each_scheme(a_rank_that_does_not_come);
}

static void rank_0_goes(const char *scheme) {
  team *t = team_new(scheme, 3, 60, 0);
  for (uint32_t i = 0; i < 3; i++) write_part(&t->rank[i], "checkpoint-1", i, "{}");
  for (uint32_t i = 0; i < 3; i++) make_job(&t->rank[i], "checkpoint-1");
  start(&t->rank[0]);
  for (int i = 0; i < 5000 && !has_spoken(&t->rank[0], 2); i++) usleep(1000);
  atomic_store(&t->rank[0].j->cancel, JOB_LEAVE);
  finish(&t->rank[0]);
  assert_int_equal(t->rank[0].j->status, ERR_CANCELED);
  for (uint32_t i = 1; i < 3; i++) start(&t->rank[i]);
  for (uint32_t i = 1; i < 3; i++) finish(&t->rank[i]);
  for (uint32_t i = 1; i < 3; i++)
    if (t->rank[i].j->status != 0) fail_msg("rank %u: %s", i, t->rank[i].j->error.text);
  const runlog_state *state = refreshed(t);
  assert_int_equal(state->commit_count, 1);
  assert_string_equal(state->commits[0].policy, "of rank 0");
  assert_string_equal(state->commits[0].reason, "wanted by rank 0");
  must_have_all(t, &state->commits[0], "checkpoint-1");
  must_hold(t);
  team_free(t);
}

static void what_rank_0_has_announced_is_committed_without_it(void **state) {
  each_scheme(rank_0_goes);
}

static void a_rank_lets_go_what_rank_0_passes_over(void **state) {
  team *t = team_new("mem", 2, 60, 0);
  write_part(&t->rank[0], "checkpoint-4", 0, "{}");
  write_part(&t->rank[1], "checkpoint-3", 1, "{}");
  write_part(&t->rank[1], "checkpoint-4", 1, "{}");
  write_part(&t->rank[1], "other-9", 1, "{}");
  make_job(&t->rank[0], "checkpoint-4");
  start(&t->rank[0]);
  make_job(&t->rank[1], "checkpoint-3");
  run_rank(&t->rank[1]);
  assert_int_equal(t->rank[1].j->status, ERR_RETIRED);
  assert_int_equal(t->rank[1].j->outcome, JOB_PASSED_OVER);
  assert_non_null(strstr(t->rank[1].j->error.text, "checkpoint-4"));
  make_job(&t->rank[1], "other-9"); /* another series: its turn comes later */
  run_rank(&t->rank[1]);
  assert_int_equal(t->rank[1].j->status, ERR_RETIRED);
  assert_int_equal(t->rank[1].j->outcome, JOB_YIELDED);
  make_job(&t->rank[1], "checkpoint-4");
  run_rank(&t->rank[1]);
  finish(&t->rank[0]);
  assert_int_equal(t->rank[0].j->status, 0);
  assert_int_equal(t->rank[1].j->status, 0);
  team_free(t);
}

static rank *changing;

static void change_it(void *ctx) {
  write_pattern(tmpdir_path(changing->world.root, "checkpoint-1/rank-1.bin"), 999, 99);
}

static void a_rank_that_has_no_part_says_so_and_nobody_waits(void **state) {
  team *t = team_new("mem", 2, 600, 0);
  for (uint32_t i = 0; i < 2; i++) write_part(&t->rank[i], "checkpoint-1", i, "{}");
  changing = &t->rank[1];
  t->rank[1].world.env.io = hooked_io(fast_io(), "rank-1.bin", 1, change_it, NULL);
  run_all(t, "checkpoint-1");
  assert_true(hook_ran());
  assert_int_equal(t->rank[1].j->status, ERR_RETIRED);
  assert_int_equal(t->rank[0].j->status, ERR_CONFLICT);
  if (!strstr(t->rank[0].j->error.text, "rank 1 has no part of it"))
    fail_msg("%s", t->rank[0].j->error.text);
  /* And then once more. */
  t->rank[1].world.env.io = fast_io();
  run_all(t, "checkpoint-1");
  assert_int_equal(t->rank[0].j->status, 0);
  assert_int_equal(t->rank[1].j->status, 0);
  const runlog_state *st = refreshed(t);
  assert_int_equal(st->commit_count, 1);
  must_have_all(t, &st->commits[0], "checkpoint-1");
  refreshed(NULL);
  team_free(t);
}

/* The rank that puts its part, and ends, just before rank 0 looks who has ended. */
static rank *last_one;
static const store_ops *plain;

static int list_late(store *s, const char *prefix, bool delimited, store_list_fn *fn, void *ctx,
                     err *e) {
  rank *r = strstr(prefix, ".over") ? last_one : NULL;
  if (r) {
    const ranks_said over = {.over = true};
    last_one = NULL;
    start(r);
    for (int i = 0; i < 5000 && !has_spoken(r, 2); i++) usleep(1000);
    assert_int_equal(ranks_said_put(r->s, &r->ranks, &over, NULL), 0);
  }
  return plain->list(s, prefix, delimited, fn, ctx, e);
}

static void a_rank_whose_part_came_just_before_its_end_is_not_missed(void **state) {
  team *t = team_new("mem", 2, 600, 0);
  for (uint32_t i = 0; i < 2; i++) write_part(&t->rank[i], "checkpoint-1", i, "{}");
  for (uint32_t i = 0; i < 2; i++) make_job(&t->rank[i], "checkpoint-1");
  plain = t->rank[0].s->ops;
  store_ops late = *plain;
  late.list = list_late;
  t->rank[0].s->ops = &late;
  last_one = &t->rank[1];
  run_rank(&t->rank[0]);
  t->rank[0].s->ops = plain;
  assert_null(last_one);
  finish(&t->rank[1]);
  if (t->rank[0].j->status != 0) fail_msg("%s", t->rank[0].j->error.text);
  assert_int_equal(t->rank[1].j->status, 0);
  team_free(t);
}

static void ranks_of_a_launch_that_was_pushed_aside_stop(void **state) {
  team *t = team_new("mem", 3, 600, 0);
  for (uint32_t i = 0; i < 3; i++) write_part(&t->rank[i], "checkpoint-1", i, "{}");
  for (uint32_t i = 0; i < 2; i++) make_job(&t->rank[i], "checkpoint-1");
  for (uint32_t i = 0; i < 2; i++) start(&t->rank[i]);
  for (int i = 0; i < 5000 && !has_spoken(&t->rank[1], 2); i++) usleep(1000);
  runlog *newer = world_begin(t->w->env.store, "", "launch-2");
  for (uint32_t i = 0; i < 2; i++) finish(&t->rank[i]);
  for (uint32_t i = 0; i < 2; i++) assert_int_equal(t->rank[i].j->status, ERR_FENCED);
  assert_int_equal(runlog_refresh(newer, NULL), 0);
  assert_int_equal(runlog_view(newer)->commit_count, 0);
  runlog_close(newer);
  team_free(t);
}

static void a_rank_without_a_rank_0_gives_up_and_names_it(void **state) {
  team *t = team_new("mem", 2, 2, 0);
  begin_term(t, "launch-2", false); /* whose rank 0 never begins */
  write_part(&t->rank[1], "checkpoint-1", 1, "{}");
  make_job(&t->rank[1], "checkpoint-1");
  run_rank(&t->rank[1]);
  assert_int_equal(t->rank[1].j->status, ERR_TIMEOUT);
  if (!strstr(t->rank[1].j->error.text, "rank 0 of 2")) fail_msg("%s", t->rank[1].j->error.text);
  team_free(t);
}

static void a_rank_that_comes_behind_a_newer_launch_hears_that_its_own_is_over(void **state) {
  team *t = team_new("mem", 2, 3600, 0);
  runlog *newer = world_begin(t->w->env.store, "", "launch-2");
  const ranks_said over = {.over = true};
  assert_int_equal(ranks_said_put(t->rank[0].s, &t->rank[0].ranks, &over, NULL), 0);
  write_part(&t->rank[1], "checkpoint-1", 1, "{}");
  make_job(&t->rank[1], "checkpoint-1");
  run_rank(&t->rank[1]);
  assert_int_equal(t->rank[1].j->status, ERR_TIMEOUT);
  assert_int_equal(t->rank[1].j->outcome, JOB_FORSAKEN);
  if (!strstr(t->rank[1].j->error.text, "rank 0 has ended"))
    fail_msg("%s", t->rank[1].j->error.text);
  runlog_close(newer);
  team_free(t);
}

static void a_cancel_is_heard_while_a_rank_waits(void **state) {
  for (uint32_t i = 0; i < 2; i++) {
    team *t = team_new("mem", 2, 3600, 0);
    write_part(&t->rank[i], "checkpoint-1", i, "{}");
    make_job(&t->rank[i], "checkpoint-1");
    start(&t->rank[i]);
    usleep(30000);
    atomic_store(&t->rank[i].j->cancel, JOB_CANCEL);
    finish(&t->rank[i]);
    assert_int_equal(t->rank[i].j->status, ERR_CANCELED);
    team_free(t);
  }
}

/* Delays, lost requests and lost answers by a seed: the checkpoint is there in the end, whole,
 * once. */
static void whatever_the_store_loses_one_whole_checkpoint_is_committed(void **state) {
  for (uint64_t seed = 1; seed <= 12; seed++) {
    team *t = team_new("mem", 3, 120, seed);
    uint64_t random = seed * 77;
    for (uint32_t i = 0; i < 3; i++) {
      rank *r = &t->rank[i];
      r->lossy->lost = 100, r->lossy->never = 60, r->lossy->late = 40, r->lossy->deaf = 40;
      r->delay_us = (unsigned)(next_random(&random) % 20000);
      r->tries = 60;
      write_part(r, "checkpoint-1", i, "{}");
    }
    run_all(t, "checkpoint-1");
    for (uint32_t i = 0; i < 3; i++)
      if (t->rank[i].j->status != 0)
        fail_msg("seed %d, rank %u: %s", (int)seed, i, t->rank[i].j->error.text);
    const runlog_state *st = refreshed(t);
    assert_int_equal(st->commit_count, 1);
    must_have_all(t, &st->commits[0], "checkpoint-1");
    must_hold(t);
    refreshed(NULL);
    team_free(t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_commit_one_checkpoint_with_the_files_of_all),
      cmocka_unit_test(different_bytes_under_one_name_are_nobodys_checkpoint),
      cmocka_unit_test(whose_record_is_late_is_named_and_no_earlier_run),
      cmocka_unit_test(a_missing_rank_is_named_and_its_save_given_up),
      cmocka_unit_test(what_rank_0_has_announced_is_committed_without_it),
      cmocka_unit_test(a_rank_lets_go_what_rank_0_passes_over),
      cmocka_unit_test(a_rank_that_has_no_part_says_so_and_nobody_waits),
      cmocka_unit_test(a_rank_whose_part_came_just_before_its_end_is_not_missed),
      cmocka_unit_test(ranks_of_a_launch_that_was_pushed_aside_stop),
      cmocka_unit_test(a_rank_without_a_rank_0_gives_up_and_names_it),
      cmocka_unit_test(a_rank_that_comes_behind_a_newer_launch_hears_that_its_own_is_over),
      cmocka_unit_test(a_cancel_is_heard_while_a_rank_waits),
      cmocka_unit_test(whatever_the_store_loses_one_whole_checkpoint_is_committed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
