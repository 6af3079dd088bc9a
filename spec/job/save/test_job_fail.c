/* A save that is cancelled or fenced, or of which calls fail: it gives a commit, or an error without one. */
#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/save/job.h"
#include "commit/settle.h"
#include "io_fault.h"
#include "store_lossy.h"
#include "tmpdir.h"
#include "world.h"

enum { SCHEMES = 2 };

static world *now; /* the one of the hooks */

/* ---- cancelled, fenced ---- */

static void cancel_it(void *ctx) {
  atomic_store(&((job *)ctx)->cancel, 1);
}

static void a_job_can_be_cancelled_at_any_point_and_leaves_nothing(void **state) {
  for (int s = 0; s < SCHEMES; s++) {
    int canceled = 0;
    for (long nth = 1;; nth++) {
      world *w = now = world_new(world_schemes[s], world_io());
      runlog *log = world_log(w, "", "one");
      make_unit(w, "checkpoint-1", MATCH_DIR, 1);
      job *j = job_for(w, log, "checkpoint-1", MATCH_DIR, 1, WITH_SNAPSHOT);
      w->env.io = hooked_io(world_io(), NULL, nth, cancel_it, j);
      w->env.store->io = w->env.io;
      job_run(j);
      bool ran = hook_ran();
      if (j->status == 0)
        must_restore(w, "", &runlog_view(log)->commits[0], "checkpoint-1");
      else
        assert_int_equal(j->status, ERR_CANCELED);
      canceled += j->status != 0;
      assert_int_equal(runlog_view(log)->commit_count, j->status == 0);
      world_must_be_clean(w);
      w->env.store->io = world_io();
      job_free(j);
      world_free(w);
      if (!ran) break;
    }
    assert_true(canceled > 10);
  }
}

static void another_term_begins(void *ctx) {
  store *s = world_store(ctx);
  runlog_close(world_begin(s, "", "two"));
  store_close(s);
}

/* The zombie made nothing in the log after the newer term, and its files were not touched. */
static void a_job_that_is_fenced_neither_sweeps_nor_commits(void **state) {
  for (int s = 0; s < SCHEMES; s++) {
    int fenced = 0;
    for (long nth = 1;; nth++) {
      world *w = now = world_new(world_schemes[s], world_io());
      runlog *log = world_log(w, "", "one");
      make_unit(w, "last.ckpt", MATCH_FILE, 1);
      job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, 0);
      w->env.io = hooked_io(world_io(), NULL, nth, another_term_begins, w);
      w->env.store->io = w->env.io;
      job_run(j);
      bool ran = hook_ran();
      w->env.store->io = world_io();
      store *other = world_store(w);
      runlog *seen = NULL;
      assert_int_equal(runlog_open(other, "", &seen, NULL), 0);
      const runlog_state *st = runlog_view(seen);
      if (j->status == ERR_FENCED) {
        fenced++;
        assert_int_equal(st->commit_count, 0);
        if (st->attempt_count) assert_int_equal(st->attempts[0].fate, RUNLOG_OPEN);
      } else {
        assert_int_equal(j->status, 0);
        must_restore(w, "", &st->commits[0], "last.ckpt");
      }
      runlog_close(seen);
      /* The next term has one whole checkpoint, or none, and no litter. */
      runlog *next = world_begin(other, "", "three");
      assert_int_equal(settle_attempts(other, next, NULL, NULL), 0);
      settle_older(other, next, NULL);
      settle_staged(other, next, 0, NULL);
      if (runlog_view(next)->commit_count)
        must_restore(w, "", &runlog_view(next)->commits[0], "last.ckpt");
      runlog_close(next);
      store_close(other);
      world_must_be_clean(w);
      job_free(j);
      world_free(w);
      if (!ran) break;
    }
    assert_true(s == 1 || fenced > 10);
  }
}

static void begin_and_remove(void *ctx) {
  another_term_begins(ctx);
  remove_unit(ctx, "last.ckpt", MATCH_FILE);
}

static void a_failed_job_that_finds_a_newer_term_says_so(void **state) {
  for (int s = 0; s < SCHEMES; s++) {
    world *w = world_new(world_schemes[s], world_io());
    runlog *log = world_log(w, "", "one");
    make_unit(w, "last.ckpt", MATCH_FILE, 1);
    job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, 0);
    w->env.io = hooked_io(world_io(), "watched/last.ckpt", 1, begin_and_remove, w);
    job_run(j);
    assert_int_equal(j->status, ERR_FENCED);
    assert_int_equal(j->error.code, ERR_FENCED);
    if (s == 1) assert_int_equal(runlog_view(log)->attempts[0].fate, RUNLOG_OPEN);
    if (s == 0) assert_int_equal(runlog_view(log)->attempt_count, 0);
    job_free(j);
    world_free(w);
  }
}

/* ---- calls that fail ---- */

/* After a job that may have failed: what it says is so, and a next term saves the unit, with what
 * is there of it or without, and leaves nothing but whole checkpoints. */
static void judge(world *w, const job *j, int fds) {
  store *s = world_store(w);
  runlog *log = world_begin(s, "", "next");
  const runlog_state *st = runlog_view(log);
  size_t before = st->commit_count;
  /* A snapshot that cannot be removed is removed when the next run opens its state. */
  tmpdir_remove(strdup(w->staging));
  make_dir(w->staging);
  if (j->status == 0) assert_int_equal(before, 1);
  if (j->status != 0) assert_int_equal(j->error.code, j->status);
  err e = {0};
  if (settle_attempts(s, log, NULL, &e) < 0) fail_msg("%s", e.text);
  st = runlog_view(log);
  /* What the job did not call committed may be found sealed, and is then committed once. */
  assert_true(st->commit_count <= 1);
  if (st->commit_count) must_restore(w, "", &st->commits[0], j->plan.unit);
  store *before_it = w->env.store;
  w->env.store = s;
  save_unit(w, log, j->plan.unit, j->plan.kind, j->plan.step);
  w->env.store = before_it;
  must_restore(w, "", runlog_newest(st, NULL), j->plan.unit);
  runlog_close(log);
  const char *litter = store_litter(s, "");
  if (litter) fail_msg("in the store: %s", litter);
  store_close(s);
  assert_int_equal(count_fds(), fds);
}

static void fail_at(const char *scheme, int with, io_fault_plan how) {
  io_fault *fault = io_fault_new(world_io());
  int failed = 0, reported = 0;
  for (how.nth = 1;; how.nth++) {
    int before = count_fds();
    world *w = world_new(scheme, io_fault_io(fault));
    io_fault_set(fault, (io_fault_plan){0});
    int fds = count_fds();
    runlog *log = world_log(w, "", "one");
    make_unit(w, "last.ckpt", MATCH_FILE, 1);
    job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, with);
    io_fault_set(fault, how);
    job_run(j);
    failed = io_fault_failed(fault, CALL_ANY) > 0;
    io_fault_set(fault, (io_fault_plan){0});
    reported += j->status != 0;
    uint64_t committed = 0;
    if (runlog_refresh(log, NULL) == 0) committed = runlog_view(log)->commit_count;
    if (j->status == 0) assert_int_equal(committed, 1);
    /* A lost answer of everything is the one case in which the job cannot know. */
    if (j->status != 0 && !how.done && !how.for_good) assert_int_equal(committed, 0);
    judge(w, j, fds);
    job_free(j);
    world_free(w);
    assert_int_equal(count_fds(), before);
    if (!failed) break;
  }
  assert_true(how.nth > 20);
  assert_true(reported > 10);
  io_fault_free(fault);
}

static void any_failing_call_gives_a_commit_or_an_error_without_one(void **state) {
  static const io_fault_plan plans[] = {
      {.errnum = EIO},
      {.errnum = ENOSPC, .for_good = true},
      {.errnum = EIO, .done = true},
      {.errnum = EIO, .done = true, .for_good = true},
  };
  for (int p = 0; p < 3; p++) fail_at("file", 0, plans[p]);
  for (int p = 1; p < 4; p++) fail_at("mem", WITH_SNAPSHOT, plans[p]);
}

static job *job_without_optimizer(const world *w, runlog *log) {
  job *j = job_for(w, log, "checkpoint-1", MATCH_DIR, 1, 0);
  assert_true(names_add(&j->left, "optim*"));
  return j;
}

static void must_lack_the_optimizer_alone(const world *w, const runlog *log) {
  assert_int_equal(runlog_view(log)->commit_count, 1);
  assert_int_equal(restore_commit(w, "", &runlog_view(log)->commits[0], NULL), 0);
  assert_true(path_exists(tmpdir_path(w->out, "checkpoint-1/model.bin")));
  assert_false(path_exists(tmpdir_path(w->out, "checkpoint-1/optimizer.pt")));
}

static void any_failing_call_gives_what_is_to_be_saved_without_a_file_or_nothing(void **state) {
  io_fault *fault = io_fault_new(world_io());
  io_fault_plan how = {.errnum = EIO};
  int reported = 0;
  for (bool failed = true; failed;) {
    how.nth++;
    world *w = world_new("file", io_fault_io(fault));
    io_fault_set(fault, (io_fault_plan){0});
    runlog *log = world_log(w, "", "one");
    make_unit(w, "checkpoint-1", MATCH_DIR, 1);
    write_file(tmpdir_path(w->root, "checkpoint-1/optimizer.pt"), "moments");
    job *j = job_without_optimizer(w, log);
    io_fault_set(fault, how);
    job_run(j);
    failed = io_fault_failed(fault, CALL_ANY) > 0;
    io_fault_set(fault, (io_fault_plan){0});
    reported += j->status != 0;
    if (j->status != 0) {
      job_free(j);
      j = job_without_optimizer(w, log);
      job_run(j);
      if (j->status != 0) fail_msg("%s", j->error.text);
    }
    must_lack_the_optimizer_alone(w, log);
    job_free(j);
    world_free(w);
  }
  assert_true(reported > 10);
  io_fault_free(fault);
}

static void a_lost_answer_of_the_store_never_makes_two_commits(void **state) {
  for (int never = 0; never < 2; never++)
    for (long nth = 1;; nth++) {
      world *w = world_new("mem", world_io());
      store_lossy *lossy = world_lossy(w, true);
      runlog *log = world_log(w, "", "one");
      make_unit(w, "last.ckpt", MATCH_FILE, 1);
      job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, 0);
      long from = lossy->puts;
      if (never)
        lossy->never_at = from + nth;
      else
        lossy->lost_at = from + nth;
      job_run(j);
      bool all = lossy->puts < from + nth;
      lossy->never_at = lossy->lost_at = 0;
      assert_int_equal(runlog_refresh(log, NULL), 0);
      assert_int_equal(runlog_view(log)->commit_count, j->status == 0);
      judge(w, j, count_fds());
      job_free(j);
      world_free(w);
      if (all) break;
    }
}

/* The third put of a save on this store is its commit, and it is made; the store is silent then
 * until the job has given up asking, and sweeps. */
static long commit_put;
static void be_silent_a_while(void *ctx) {
  store_lossy *lossy = ctx;
  long tries = lossy->puts - commit_put;
  lossy->deaf = tries >= 0 && tries < 3 ? 1000 : 0;
}

static void a_commit_whose_answer_stays_lost_is_found_in_the_log(void **state) {
  world *w = *state;
  store_lossy *lossy = world_lossy(w, true);
  runlog *log = world_log(w, "", "one");
  make_unit(w, "last.ckpt", MATCH_FILE, 1);
  job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, 0);
  commit_put = lossy->lost_at = lossy->puts + 3;
  lossy->between = be_silent_a_while;
  lossy->ctx = lossy;
  job_run(j);
  assert_true(lossy->puts > commit_put + 2);
  lossy->between = NULL;
  if (j->status != 0) fail_msg("%s", j->error.text);
  assert_int_equal(j->error.code, 0);
  assert_int_equal(j->commit.n, 3); /* after run, term, attempt */
  job_free(j);
  world_must_be_clean(w);
}

static void a_save_that_could_not_even_be_swept_is_swept_by_the_next_job(void **state) {
  world *w = *state;
  store_lossy *lossy = world_lossy(w, true);
  runlog *log = world_log(w, "", "one");
  make_unit(w, "last.ckpt", MATCH_FILE, 1);
  job *j = job_for(w, log, "last.ckpt", MATCH_FILE, 1, 0);
  lossy->never_at = lossy->puts + 2; /* the manifest, and all after it */
  job_run(j);
  assert_int_equal(j->status, ERR_IO);
  assert_int_equal(runlog_view(log)->attempts[0].fate, RUNLOG_OPEN);
  job_free(j);
  lossy->never_at = 0;
  save_unit(w, log, "last.ckpt", MATCH_FILE, 1);
  assert_int_equal(runlog_view(log)->attempts[0].fate, RUNLOG_SWEPT);
  must_restore(w, "", &runlog_view(log)->commits[0], "last.ckpt");
  world_must_be_clean(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_job_can_be_cancelled_at_any_point_and_leaves_nothing),
      cmocka_unit_test(a_job_that_is_fenced_neither_sweeps_nor_commits),
      cmocka_unit_test(a_failed_job_that_finds_a_newer_term_says_so),
      cmocka_unit_test(any_failing_call_gives_a_commit_or_an_error_without_one),
      cmocka_unit_test(any_failing_call_gives_what_is_to_be_saved_without_a_file_or_nothing),
      cmocka_unit_test(a_lost_answer_of_the_store_never_makes_two_commits),
      IN_A_MEM_WORLD(a_commit_whose_answer_stays_lost_is_found_in_the_log),
      IN_A_MEM_WORLD(a_save_that_could_not_even_be_swept_is_swept_by_the_next_job),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
