#include "with_cmocka.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commit/lease.h"
#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static void write_unit(run_host *h, const char *name, const char *text) {
  write_file(run_host_dir(h, name), text);
}

static uint32_t pending(run_host *h) {
  return run_host_status(h).pending;
}

/* A save of `name` that stands still in the middle of its upload. */
static void hold_save_of(run_host *h, const char *name) {
  run_host_hold_save(h, name, "first content");
}

/* ---- whose turn it is ---- */

static void a_complete_unit_is_committed_with_its_numbers(void **state) {
  run_host *h = *state;
  run_host_write(h, "ckpt-7.pt", "seven", RUN_COMMITTED);
  const run_seen *s = run_host_last(h, RUN_COMMITTED, "ckpt-7.pt");
  assert_int_equal(s->step, 7);
  assert_int_equal(s->files, 1);
  assert_int_equal(s->bytes, 5);
  assert_int_not_equal(s->job, 0);
  assert_int_equal(s->status, 0);
  assert_true(s->seconds >= 0 && s->seconds < 10);
  assert_true(run_host_holds(h, "ckpt-7.pt", "seven"));
  run_status now = run_host_status(h);
  assert_int_equal(now.committed, 1);
  assert_int_equal(now.bytes_committed, 5);
  assert_int_equal(now.newest_step, 7);
  assert_string_equal(now.newest_unit, "ckpt-7.pt");
  assert_int_equal(now.newest_status, 0);
}

static void a_newer_unit_drops_the_one_of_its_kind_that_waits(void **state) {
  run_host *h = *state;
  hold_save_of(h, "ckpt-1.pt");
  run_host_let_wait(h, "ckpt-2.pt");
  run_host_let_wait(h, "ckpt-3.pt");
  assert_int_equal(run_host_count(h, RUN_DROPPED, "ckpt-2.pt"), 1);
  assert_int_equal(run_host_last(h, RUN_DROPPED, "ckpt-2.pt")->job, 0);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-3.pt");
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-3.pt");
  assert_int_equal(run_host_status(h).dropped, 1);
  assert_int_equal(run_host_status(h).newest_status, 0);
}

static void a_unit_of_another_kind_is_not_dropped(void **state) {
  run_host *h = *state;
  hold_save_of(h, "ckpt-1.pt");
  run_host_let_wait(h, "best.pt");
  run_host_let_wait(h, "last.pt");
  run_host_let_wait(h, "ckpt-2.pt");
  run_host_hold(h, false);
  run_host_idle(h);
  assert_int_equal(run_host_status(h).dropped, 0);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt best.pt last.pt ckpt-2.pt");
}

static void a_unit_of_another_group_is_saved_beside(void **state) {
  run_host *h = *state;
  make_dir(run_host_dir(h, "T1"));
  make_dir(run_host_dir(h, "T2"));
  run_host_begin(h);
  hold_save_of(h, "T1/ckpt-1.pt");
  write_unit(h, "T2/ckpt-1.pt", "two");
  for (int i = 0; pending(h) < 2 && i < 100; i++) run_host_tick(h);
  unsigned begun = 0;
  for (int i = 0; begun < 2 && i < 100; i++) {
    run_host_tick(h);
    begun = pending(h);
  }
  run_host_hold(h, false);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "T1/ckpt-1.pt T2/ckpt-1.pt");
}

static void an_unproven_unit_drops_nothing(void **state) {
  run_host *h = *state;
  write_unit(h, "ckpt-9.pt", "left by somebody, and of no known format");
  run_host_tick(h);
  run_host_begin(h);
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_let_wait(h, "ckpt-2.pt");
  /* Its writer dies: nothing proves what it closed after ckpt-2. */
  run_host_tick(h);
  write_unit(h, "ckpt-3.pt", "three");
  assert_int_equal(run_child_exit(run_host_run(h), false, NULL), 0);
  run_host_tick(h);
  assert_int_equal(run_host_status(h).dropped, 0);
  assert_int_equal(run_host_status(h).newest_status, ERR_TIMEOUT);
  run_host_hold(h, false);
  run_host_until(h, RUN_UNPROVEN, "ckpt-3.pt");
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt");
  assert_int_equal(run_host_status(h).newest_status, 0);
  assert_int_equal(run_host_status(h).unproven, 2);
}

static void an_older_unit_is_never_committed_after_a_newer_one(void **state) {
  run_host *h = *state;
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  hold_save_of(h, "ckpt-2.pt");
  run_host_let_wait(h, "ckpt-3.pt");
  run_host_let_wait(h, "ckpt-4.pt");
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-4.pt");
  run_host_close(h);
  /* ckpt-3 is whole, here, and in no store: but the newest commit has to stay the newest step. */
  run_host_begin(h);
  run_host_for(h, 0.1);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt ckpt-4.pt");
  assert_int_equal(run_host_status(h).newest_step, 4);
}

static void the_newest_is_next_when_time_is_short(void **state) {
  run_host *h = *state;
  hold_save_of(h, "ckpt-1.pt");
  run_host_let_wait(h, "best.pt");
  run_host_let_wait(h, "last.pt");
  assert_int_equal(run_preempt(run_host_run(h), 0.001, NULL), 0);
  run_host_hold(h, false);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt last.pt");
}

/* ---- errors ---- */

static void a_save_that_fails_is_tried_again_after_a_growing_pause(void **state) {
  run_host *h = *state;
  run_host_fail_store(h, EIO);
  write_unit(h, "ckpt-1.pt", "one");
  static const int pauses[] = {1, 2, 4, 8};
  for (int i = 0; i < 4; i++) {
    run_host_until(h, RUN_RETRYING, "ckpt-1.pt");
    run_host_step(h, NULL);
    int64_t due = run_host_due(h);
    assert_in_range(due, pauses[i] * (int64_t)800000000, pauses[i] * (int64_t)1000000000);
    assert_int_equal(run_host_status(h).pending, 1);
    assert_int_equal(run_host_status(h).newest_status, ERR_TIMEOUT);
    run_host_skip(h, pauses[i]);
  }
  run_host_fail_store(h, 0);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  const run_seen *s = run_host_last(h, RUN_RETRYING, "ckpt-1.pt");
  assert_int_equal(s->status, ERR_IO);
  assert_int_equal(s->job, run_host_last(h, RUN_COMMITTED, "ckpt-1.pt")->job);
  assert_true(run_host_holds(h, "ckpt-1.pt", "one") ||
              strstr(run_host_commits(h), "ckpt-1.pt") != NULL);
}

static void after_so_many_tries_it_is_given_up_with_its_class(void **state) {
  run_host *h = *state;
  run_host_options(h)->tries = 3;
  run_host_begin(h);
  run_host_fail_store(h, EIO);
  run_host_write(h, "ckpt-1.pt", "one", RUN_RETRYING);
  run_host_skip(h, 60);
  run_host_until(h, RUN_RETRYING, "ckpt-1.pt");
  run_host_skip(h, 60);
  run_host_until(h, RUN_FAILED, "ckpt-1.pt");
  const run_seen *s = run_host_last(h, RUN_FAILED, NULL);
  assert_int_equal(s->status, ERR_IO);
  assert_int_equal(err_class_of(s->status), ERR_CLASS_RETRYABLE);
  assert_non_null(strstr(s->reason, "Input/output error"));
  run_status now = run_host_status(h);
  assert_int_equal(now.failed, 1);
  assert_int_equal(now.pending, 0);
  assert_int_equal(now.newest_status, ERR_IO);
  /* The next one has its own tries, and what it says covers the older one. */
  run_host_fail_store(h, 0);
  run_host_write(h, "ckpt-2.pt", "two", RUN_COMMITTED);
  assert_int_equal(run_host_status(h).newest_status, 0);
}

static void a_permanent_error_is_not_tried_again(void **state) {
  run_host *h = *state;
  run_host_fail_store(h, ENOSPC);
  run_host_write(h, "ckpt-1.pt", "one", RUN_FAILED);
  assert_string_equal(run_host_story(h), "FAILED ckpt-1.pt");
  assert_int_equal(run_host_status(h).newest_status, ERR_NOSPACE);
  run_host_fail_store(h, 0);
  run_host_write(h, "ckpt-2.pt", "two", RUN_COMMITTED);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt");
}

static void a_retry_waits_until_what_is_written_anew_is_complete(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "last.pt", "whole");
  /* The trainer begins to write it anew; the save of the old content fails meanwhile. */
  FILE *f = fopen(run_host_dir(h, "last.pt"), "w");
  fputs("ha", f);
  fflush(f);
  run_host_for(h, 0.05);
  run_host_fail_store(h, EIO);
  run_host_hold(h, false);
  run_host_until(h, RUN_RETRYING, "last.pt");
  run_host_fail_store(h, 0);
  run_host_skip(h, 120);
  run_host_for(h, 0.2);
  assert_string_equal(run_host_commits(h), "");
  fputs("lf, and the rest", f);
  fclose(f);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  assert_true(run_host_newest_holds(h, "half, and the rest"));
}

static void a_preemption_ends_the_pauses(void **state) {
  run_host *h = *state;
  run_host_fail_store(h, EIO);
  write_unit(h, "ckpt-1.pt", "one");
  for (int i = 0; i < 5; i++) {
    run_host_until(h, RUN_RETRYING, "ckpt-1.pt");
    run_host_skip(h, 60);
  }
  run_host_until(h, RUN_RETRYING, "ckpt-1.pt");
  run_host_step(h, NULL);
  assert_true(run_host_due(h) > (int64_t)10000000000);
  run_host_fail_store(h, 0);
  assert_int_equal(run_preempt(run_host_run(h), 10, NULL), 0);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
}

/* "sync" after an error that passes: the older one must not be let go for the newer. */
static void where_each_is_wanted_a_newer_one_waits_for_the_retry_of_an_older_one(void **state) {
  run_host *h = *state;
  run_host_options(h)->keep_all = true;
  run_host_begin(h);
  run_host_fail_store(h, EIO);
  run_host_write(h, "ckpt-1.pt", "one", RUN_RETRYING);
  run_host_fail_store(h, 0);
  run_host_tick(h);
  run_host_write(h, "ckpt-2.pt", "two", RUN_COMMITTED);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt");
}

/* Somebody may have made room while the job went on; it is one try, not a loop. */
static void what_had_no_space_is_tried_once_more_when_the_job_has_ended(void **state) {
  run_host *h = *state;
  run_host_fail_store(h, ENOSPC);
  run_host_write(h, "ckpt-1.pt", "one", RUN_FAILED);
  assert_int_equal(run_host_last(h, RUN_FAILED, "ckpt-1.pt")->status, ERR_NOSPACE);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_until(h, RUN_FAILED, "ckpt-1.pt");
  run_host_fail_store(h, 0);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_for(h, 0.1);
  assert_int_equal(run_host_count(h, RUN_FAILED, "ckpt-1.pt"), 2);
  assert_int_equal(run_host_status(h).failed, 1);
}

static void what_has_space_by_the_end_of_the_job_is_saved(void **state) {
  run_host *h = *state;
  run_host_fail_store(h, ENOSPC);
  run_host_write(h, "ckpt-1.pt", "one", RUN_FAILED);
  run_host_fail_store(h, 0);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  assert_int_equal(run_host_status(h).failed, 0);
  assert_int_equal(run_host_status(h).newest_status, 0);
}

/* ---- what changes while it is saved ---- */

static void a_unit_written_again_while_it_is_sent_is_cancelled_and_saved_anew(void **state) {
  run_host *h = *state;
  hold_save_of(h, "ckpt-1.pt");
  run_host_tick(h);
  write_unit(h, "ckpt-1.pt", "second content");
  run_host_tick(h);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  assert_int_equal(run_host_count(h, RUN_RETIRED, "ckpt-1.pt"), 1);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "ckpt-1.pt"), 1);
  assert_int_equal(run_host_count(h, RUN_FAILED, NULL), 0);
  const char *dir = run_host_commits(h);
  assert_true(run_host_holds(h, dir, "second content"));
  assert_int_equal(run_host_status(h).retired, 1);
}

static void what_is_rewritten_in_place_commits_its_snapshot_and_then_the_new_content(void **state) {
  run_host *h = *state;
  hold_save_of(h, "last.pt");
  run_host_tick(h);
  write_unit(h, "last.pt", "second content");
  for (int i = 0; i < 5; i++) run_host_tick(h);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  if (run_host_count(h, RUN_COMMITTED, "last.pt") < 2) run_host_until(h, RUN_COMMITTED, "last.pt");
  char dirs[512], *second;
  snprintf(dirs, sizeof dirs, "%s", run_host_commits(h));
  second = strchr(dirs, ' ');
  assert_non_null(second);
  *second++ = '\0';
  assert_true(run_host_holds(h, dirs, "first content"));
  assert_true(run_host_holds(h, second, "second content"));
  assert_int_equal(run_host_count(h, RUN_RETIRED, NULL), 0);
  assert_int_equal(run_host_status(h).newest_status, 0);
}

/* The event of a write may still be on its way when a worker reads the files. */
static void what_is_not_as_the_detector_saw_it_is_not_read(void **state) {
  run_host *h = *state;
  hold_save_of(h, "ckpt-1.pt");
  run_host_let_wait(h, "last.pt");
  run_unit_find(run_host_run(h), "last.pt")->stamp++;
  run_host_hold(h, false);
  run_host_until(h, RUN_RETIRED, "last.pt");
  assert_non_null(strstr(run_host_last(h, RUN_RETIRED, NULL)->reason, "before it was read"));
  run_host_skip(h, 2);
  run_host_until(h, RUN_COMMITTED, "last.pt");
}

static void a_snapshot_that_is_committed_does_not_hide_that_the_unit_is_open(void **state) {
  run_host *h = *state;
  hold_save_of(h, "last.pt");
  FILE *f = fopen(run_host_dir(h, "last.pt"), "w");
  fputs("ha", f);
  fflush(f);
  run_host_for(h, 0.05);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  assert_int_equal(run_host_status(h).settling, 1);
  fputs("lf", f);
  fclose(f);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  run_host_idle(h);
}

static void a_name_that_changes_for_ever_is_saved_each_time_it_rests(void **state) {
  run_host *h = *state;
  for (int i = 0; i < 6; i++) { /* more often than an unchanged one is tried */
    run_host_hold(h, true);
    write_file(run_host_dir(h, "tmp"), "x");
    char text[32];
    snprintf(text, sizeof text, "content %d", i);
    write_unit(h, "ckpt-1.pt", text);
    run_host_for(h, 0.06);
    write_unit(h, "ckpt-1.pt", "quickly over it");
    run_host_hold(h, false);
    run_host_for(h, 0.03);
  }
  run_host_tick(h);
  write_unit(h, "ckpt-1.pt", "the end");
  run_host_for(h, 0.1);
  run_host_idle(h);
  assert_true(run_host_newest_holds(h, "the end"));
}

static void a_unit_removed_while_it_waits_is_retired(void **state) {
  run_host *h = *state;
  hold_save_of(h, "ckpt-1.pt");
  run_host_let_wait(h, "ckpt-2.pt");
  unlink(run_host_dir(h, "ckpt-2.pt"));
  run_host_until(h, RUN_RETIRED, "ckpt-2.pt");
  assert_int_equal(run_host_last(h, RUN_RETIRED, NULL)->status, ERR_RETIRED);
  run_host_hold(h, false);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt");
  assert_int_equal(run_host_status(h).failed, 0);
}

static void a_unit_removed_while_it_is_sent_is_retired_and_never_listed(void **state) {
  run_host *h = *state;
  hold_save_of(h, "ckpt-1.pt");
  unlink(run_host_dir(h, "ckpt-1.pt"));
  run_host_tick(h);
  run_host_hold(h, false);
  run_host_until(h, RUN_RETIRED, "ckpt-1.pt");
  run_host_idle(h);
  assert_int_equal(run_host_count(h, RUN_FAILED, NULL), 0);
  assert_string_equal(run_host_commits(h), "");
  assert_false(path_exists(run_host_store(h, "ckpt-1.pt")));
  assert_int_equal(run_host_status(h).newest_status, 0);
}

static void a_unit_removed_and_made_anew_while_it_is_sent_is_saved(void **state) {
  run_host *h = *state;
  hold_save_of(h, "last.pt");
  unlink(run_host_dir(h, "last.pt"));
  run_host_tick(h);
  write_unit(h, "last.pt", "a new one");
  for (int i = 0; i < 5; i++) run_host_tick(h);
  run_host_hold(h, false);
  run_host_idle(h);
  assert_true(run_host_newest_holds(h, "a new one"));
}

/* ---- let go, and taken back ---- */

/* ckpt-1 is being sent; ckpt-2 was let go for ckpt-3, which waits. */
static void let_two_go_for_three(run_host *h) {
  run_host_begin(h);
  hold_save_of(h, "ckpt-1.pt");
  run_host_let_wait(h, "ckpt-2.pt");
  run_host_let_wait(h, "ckpt-3.pt");
  assert_int_equal(run_host_status(h).dropped, 1);
}

static void what_was_let_go_for_one_that_is_removed_is_saved(void **state) {
  run_host *h = *state;
  let_two_go_for_three(h);
  unlink(run_host_dir(h, "ckpt-3.pt"));
  run_host_until(h, RUN_RETIRED, "ckpt-3.pt");
  assert_int_equal(run_host_status(h).dropped, 0);
  assert_int_equal(run_host_status(h).newest_status, ERR_TIMEOUT);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-2.pt");
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt");
}

static void what_was_let_go_for_one_that_fails_is_tried(void **state) {
  run_host *h = *state;
  let_two_go_for_three(h);
  run_host_fail_store(h, ENOSPC);
  run_host_hold(h, false);
  run_host_until(h, RUN_FAILED, "ckpt-2.pt");
  run_host_idle(h);
  run_status s = run_host_status(h);
  assert_int_equal(s.failed, 3);
  assert_int_equal(s.dropped, 0);
  assert_int_equal(s.newest_status, ERR_NOSPACE);
}

static void only_the_newest_of_those_let_go_is_taken_back(void **state) {
  run_host *h = *state;
  let_two_go_for_three(h);
  run_host_let_wait(h, "ckpt-4.pt");
  assert_int_equal(run_host_status(h).dropped, 2);
  unlink(run_host_dir(h, "ckpt-4.pt"));
  run_host_until(h, RUN_RETIRED, "ckpt-4.pt");
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-3.pt");
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-3.pt");
  assert_int_equal(run_host_status(h).dropped, 1);
}

static void what_was_let_go_for_one_that_is_committed_stays_so(void **state) {
  run_host *h = *state;
  let_two_go_for_three(h);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-3.pt");
  unlink(run_host_dir(h, "ckpt-3.pt"));
  run_host_for(h, 0.1);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-3.pt");
  assert_int_equal(run_host_status(h).dropped, 1);
}

static void what_changes_each_time_it_is_read_is_not_called_durable(void **state) {
  run_host *h = *state;
  hold_save_of(h, "ckpt-1.pt");
  run_host_let_wait(h, "last.pt");
  for (int i = 0; i < 4; i++) {
    run_unit_find(run_host_run(h), "last.pt")->stamp++;
    if (i == 0) run_host_hold(h, false);
    if (i > 0) run_host_skip(h, 10);
    run_host_until(h, RUN_RETIRED, "last.pt");
  }
  run_host_idle(h);
  const run_seen *s = run_host_last(h, RUN_FAILED, "last.pt");
  assert_non_null(s);
  assert_non_null(strstr(s->reason, "each time"));
  assert_int_equal(run_host_status(h).newest_status, ERR_RETIRED);
  assert_int_equal(run_host_status(h).failed, 1);
  run_host_write(h, "last.pt", "at rest", RUN_COMMITTED);
  assert_int_equal(run_host_status(h).newest_status, 0);
}

/* ---- given up by the host ---- */

static void a_cancelled_save_is_given_up_and_says_so(void **state) {
  run_host *h = *state;
  hold_save_of(h, "ckpt-1.pt");
  assert_int_equal(run_cancel(run_host_run(h), 1), 1);
  assert_int_equal(run_cancel(run_host_run(h), 99), 0);
  assert_int_equal(run_cancel(run_host_run(h), 0), 0);
  run_host_hold(h, false);
  run_host_until(h, RUN_FAILED, "ckpt-1.pt");
  assert_int_equal(run_host_last(h, RUN_FAILED, NULL)->status, ERR_CANCELED);
  assert_int_equal(run_host_last(h, RUN_FAILED, NULL)->job, 1);
  assert_int_equal(run_host_status(h).newest_status, ERR_CANCELED);
  assert_int_equal(run_cancel(run_host_run(h), 1), 0);
  run_host_for(h, 0.05);
  assert_string_equal(run_host_commits(h), "");
  /* It is one save that was given up, not the name. */
  run_host_write(h, "ckpt-1.pt", "once more", RUN_COMMITTED);
}

static void a_save_that_waits_for_its_next_try_can_be_cancelled(void **state) {
  run_host *h = *state;
  run_host_fail_store(h, EIO);
  run_host_write(h, "ckpt-1.pt", "one", RUN_RETRYING);
  run_host_fail_store(h, 0);
  uint64_t job = run_host_last(h, RUN_RETRYING, NULL)->job;
  assert_int_equal(run_cancel(run_host_run(h), job), 1);
  assert_string_equal(run_host_story(h), "RETRYING ckpt-1.pt,FAILED ckpt-1.pt");
  run_host_skip(h, 60);
  run_host_for(h, 0.1);
  assert_string_equal(run_host_commits(h), "");
}

/* ---- anything, in any order ---- */

typedef struct trainer {
  run_host *h;
  unsigned seed;
  atomic_int ended;
  int last[4]; /* what each name holds at the end; 0: it is not there */
} trainer;

static const char *const trained[4] = {"last.pt", "best.pt", "ckpt-1.pt", "ckpt-2.pt"};

static void nap(trainer *t, int most_us) {
  usleep((useconds_t)(rand_r(&t->seed) % most_us));
}

/* Writes, slowly or not, in place or renamed; removes; and the store fails now and then. */
static void *train(void *ctx) {
  trainer *t = ctx;
  for (int i = 1; i <= 30; i++) {
    int n = rand_r(&t->seed) % 4, how = rand_r(&t->seed) % 8;
    char path[600], other[608];
    snprintf(path, sizeof path, "%s", run_host_dir(t->h, trained[n]));
    snprintf(other, sizeof other, "%s.tmp", path);
    run_host_fail_store(t->h, rand_r(&t->seed) % 6 == 0 ? EIO : 0);
    if (how == 0) {
      unlink(path);
      t->last[n] = 0;
    } else {
      FILE *f = fopen(how < 3 ? other : path, "w");
      if (!f) abort();
      fprintf(f, "begin %d\n", i);
      fflush(f);
      nap(t, 25000);
      fprintf(f, "end %d\n", i);
      fclose(f);
      if (how < 3 && rename(other, path) < 0) abort();
      t->last[n] = i;
    }
    nap(t, 30000);
  }
  run_host_fail_store(t->h, 0);
  atomic_store(&t->ended, 1);
  return NULL;
}

static int number_in(run_host *h, const char *dir, const char *name) {
  char key[600];
  int begin = 0, end = -1;
  snprintf(key, sizeof key, "%s/%s", dir, name);
  char *text = read_file(run_host_store(h, key), NULL);
  if (!text || sscanf(text, "begin %d end %d", &begin, &end) != 2 || begin != end)
    fail_msg("%s is torn: %s", key, text ? text : "(absent)");
  free(text);
  return begin;
}

static void train_and_check(run_host *h, unsigned seed) {
  trainer t = {.h = h, .seed = seed};
  pthread_t thread;
  run_host_begin(h);
  assert_int_equal(pthread_create(&thread, NULL, train, &t), 0);
  while (!atomic_load(&t.ended)) run_host_for(h, 0.02);
  pthread_join(thread, NULL);
  run_host_skip(h, 300); /* all pauses are over */
  run_host_for(h, 0.05);
  run_host_idle(h);
  assert_int_equal(run_host_status(h).newest_status, 0);
  int newest[4] = {0};
  char dirs[4096];
  snprintf(dirs, sizeof dirs, "%s", run_host_commits(h));
  char *rest = dirs;
  for (char *dir; (dir = strtok_r(rest, " ", &rest));)
    for (int n = 0; n < 4; n++)
      if (strncmp(dir, trained[n], strlen(trained[n])) == 0)
        newest[n] = number_in(h, dir, trained[n]);
  for (int n = 0; n < 4; n++) {
    bool dropped = n == 2 && t.last[3]; /* the other one of its kind may be newer */
    if (t.last[n] && newest[n] != t.last[n] && !(dropped && t.last[3] > t.last[2]))
      fail_msg("seed %u: the last %s was %d, the newest commit has %d", seed, trained[n], t.last[n],
               newest[n]);
  }
}

static void whatever_a_trainer_does_commits_are_whole_and_the_last_content_is_one(void **state) {
  const char *seed = getenv("SEED");
  train_and_check(*state, seed ? (unsigned)atoi(seed) : 1);
}

/* ---- terms and leases ---- */

static void who_is_fenced_is_told_once_and_writes_no_more(void **state) {
  run_host *h = *state;
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host *other = run_host_elsewhere(h);
  run_host_options(other)->take_over = true;
  run_host_begin(other);
  run_host_write(h, "ckpt-2.pt", "two", RUN_FENCED);
  write_unit(h, "ckpt-3.pt", "three");
  write_unit(h, "best.pt", "best");
  run_host_for(h, 0.2);
  assert_int_equal(run_host_count(h, RUN_FENCED, NULL), 1);
  assert_true(run_host_status(h).fenced);
  assert_int_equal(run_host_status(h).newest_status, ERR_FENCED);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt");
  /* Nor does it renew a lease that is the other's now. */
  char *lease = read_file(run_host_store(h, ".ckpt/lease"), NULL);
  run_host_skip(h, LEASE_RENEW_S + 1);
  run_host_for(h, 0.05);
  run_host_close(h);
  assert_true(file_is(run_host_store(h, ".ckpt/lease"), lease));
  free(lease);
  run_host_free(other);
}

static void who_has_nothing_to_save_learns_that_it_is_fenced_when_it_renews(void **state) {
  run_host *h = *state;
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host *other = run_host_elsewhere(h);
  run_host_options(other)->take_over = true;
  run_host_begin(other);
  run_host_for(h, 0.1);
  assert_false(run_host_status(h).fenced);
  run_host_skip(h, LEASE_RENEW_S + 1);
  run_host_for(h, 0.2);
  assert_int_equal(run_host_count(h, RUN_FENCED, NULL), 1);
  assert_true(run_host_status(h).fenced);
  run_host_close(h);
  run_host_free(other);
}

static void the_first_save_of_a_group_renews_its_lease(void **state) {
  run_host *h = *state;
  make_dir(run_host_dir(h, "trial"));
  hold_save_of(h, "trial/ckpt-1.pt");
  assert_int_equal(unlink(run_host_store(h, "trial/.ckpt/lease")), 0);
  run_host_skip(h, LEASE_RENEW_S + 1);
  run_host_for(h, 0.2);
  assert_true(path_exists(run_host_store(h, "trial/.ckpt/lease")));
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "trial/ckpt-1.pt");
}

static void a_lease_is_renewed_in_time_and_nothing_else_wakes_an_idle_run(void **state) {
  run_host *h = *state;
  run_host_for(h, 0.1);
  int64_t due = run_host_due(h);
  assert_in_range(due, (int64_t)(LEASE_RENEW_S - 5) * 1000000000,
                  (int64_t)LEASE_RENEW_S * 1000000000);
  struct stat before, after;
  assert_int_equal(stat(run_host_store(h, ".ckpt/lease"), &before), 0);
  run_host_tick(h);
  run_host_skip(h, LEASE_RENEW_S);
  run_host_for(h, 0.05);
  assert_int_equal(stat(run_host_store(h, ".ckpt/lease"), &after), 0);
  assert_true(after.st_mtim.tv_nsec != before.st_mtim.tv_nsec ||
              after.st_mtim.tv_sec != before.st_mtim.tv_sec);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_RUN(a_complete_unit_is_committed_with_its_numbers),
      WITH_RUN(a_newer_unit_drops_the_one_of_its_kind_that_waits),
      WITH_RUN(a_unit_of_another_kind_is_not_dropped),
      WITH_HOST(a_unit_of_another_group_is_saved_beside),
      WITH_HOST(an_unproven_unit_drops_nothing),
      WITH_RUN(an_older_unit_is_never_committed_after_a_newer_one),
      WITH_RUN(the_newest_is_next_when_time_is_short),
      WITH_RUN(a_save_that_fails_is_tried_again_after_a_growing_pause),
      WITH_HOST(after_so_many_tries_it_is_given_up_with_its_class),
      WITH_RUN(a_permanent_error_is_not_tried_again),
      WITH_RUN(a_retry_waits_until_what_is_written_anew_is_complete),
      WITH_RUN(a_preemption_ends_the_pauses),
      WITH_RUN(a_unit_written_again_while_it_is_sent_is_cancelled_and_saved_anew),
      WITH_RUN(what_is_rewritten_in_place_commits_its_snapshot_and_then_the_new_content),
      WITH_RUN(what_is_not_as_the_detector_saw_it_is_not_read),
      WITH_RUN(a_snapshot_that_is_committed_does_not_hide_that_the_unit_is_open),
      WITH_RUN(a_name_that_changes_for_ever_is_saved_each_time_it_rests),
      WITH_RUN(a_unit_removed_while_it_waits_is_retired),
      WITH_RUN(a_unit_removed_while_it_is_sent_is_retired_and_never_listed),
      WITH_RUN(a_unit_removed_and_made_anew_while_it_is_sent_is_saved),
      WITH_HOST(what_was_let_go_for_one_that_is_removed_is_saved),
      WITH_HOST(what_was_let_go_for_one_that_fails_is_tried),
      WITH_HOST(only_the_newest_of_those_let_go_is_taken_back),
      WITH_HOST(what_was_let_go_for_one_that_is_committed_stays_so),
      WITH_RUN(what_changes_each_time_it_is_read_is_not_called_durable),
      WITH_RUN(a_cancelled_save_is_given_up_and_says_so),
      WITH_RUN(a_save_that_waits_for_its_next_try_can_be_cancelled),
      WITH_HOST(whatever_a_trainer_does_commits_are_whole_and_the_last_content_is_one),
      WITH_HOST(where_each_is_wanted_a_newer_one_waits_for_the_retry_of_an_older_one),
      WITH_RUN(what_had_no_space_is_tried_once_more_when_the_job_has_ended),
      WITH_RUN(what_has_space_by_the_end_of_the_job_is_saved),
      WITH_RUN(who_is_fenced_is_told_once_and_writes_no_more),
      WITH_RUN(who_has_nothing_to_save_learns_that_it_is_fenced_when_it_renews),
      WITH_RUN(the_first_save_of_a_group_renews_its_lease),
      WITH_RUN(a_lease_is_renewed_in_time_and_nothing_else_wakes_an_idle_run),
  };
  /* With SEED=number: that one alone, by that seed. */
  const struct CMUnitTest random[] = {
      WITH_HOST(whatever_a_trainer_does_commits_are_whole_and_the_last_content_is_one)};
  if (getenv("SEED")) return cmocka_run_group_tests(random, NULL, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
