#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static void write_unit(run_host *h, const char *name, const char *text) {
  write_file(run_host_dir(h, name), text);
}

/* A file that was whole so many seconds ago. */
static void put_aged(run_host *h, const char *name, int ago) {
  static const char zip[22] = {'P', 'K', 5, 6};
  struct timespec times[2];
  write_bytes(run_host_dir(h, name), zip, sizeof zip);
  clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= ago;
  times[1] = times[0];
  assert_int_equal(utimensat(AT_FDCWD, run_host_dir(h, name), times, 0), 0);
}

/* ---- with time: the oldest first, whatever its kind ---- */

static void a_newer_one_of_another_kind_waits_for_the_next_try_of_an_older_one(void **state) {
  run_host *h = *state;
  run_host_fail_store(h, EIO);
  run_host_write(h, "best.pt", "best", RUN_RETRYING);
  run_host_fail_store(h, 0);
  run_host_tick(h);
  run_host_write(h, "last.pt", "last", RUN_COMMITTED);
  assert_string_equal(run_host_commits(h), "best.pt last.pt");
}

static void nobody_waits_for_long_and_what_was_passed_stays_and_is_named(void **state) {
  run_host *h = *state;
  run_host_policy(h, "return { api = 1, on_error = function() return 'retry', '1h' end }");
  run_host_begin(h);
  run_host_fail_store(h, EIO);
  run_host_write(h, "best.pt", "best", RUN_RETRYING);
  run_host_fail_store(h, 0);
  run_host_tick(h);
  run_host_write(h, "last.pt", "last", RUN_COMMITTED);
  run_host_idle(h);
  assert_int_equal(run_host_count(h, RUN_DROPPED, "best.pt"), 1);
  assert_string_equal(run_host_last(h, RUN_DROPPED, "best.pt")->reason, RUN_LATE "last.pt");
  run_host_skip(h, 3700);
  run_host_for(h, 0.1);
  assert_string_equal(run_host_commits(h), "last.pt");
  assert_true(run_host_names(h, "best.pt", RUN_LATE));
  /* Nothing of its kind is in the store. */
  assert_int_equal(run_host_status(h).standing, STANDING_NOT_DURABLE);
  run_host_write(h, "best.pt", "a better one", RUN_COMMITTED);
  assert_string_equal(run_host_commits(h), "last.pt best.pt");
  assert_false(run_host_names(h, "best.pt", RUN_LATE));
  assert_int_equal(run_host_status(h).standing, STANDING_DURABLE);
}

static void where_all_are_queued_an_older_one_that_is_tried_again_goes_first(void **state) {
  run_host *h = *state;
  run_host_policy(h, "return { api = 1, queue = 'all' }");
  run_host_begin(h);
  run_host_fail_store(h, EIO);
  run_host_write(h, "ckpt-1.pt", "one", RUN_RETRYING);
  run_host_fail_store(h, 0);
  run_host_tick(h);
  run_host_write(h, "ckpt-2.pt", "two", RUN_COMMITTED);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt");
}

static void an_idle_wait_for_a_next_try_does_not_turn_in_circles(void **state) {
  run_host *h = *state;
  run_host_fail_store(h, EIO);
  run_host_write(h, "best.pt", "best", RUN_RETRYING);
  run_host_let_wait(h, "last.pt");
  run_host_step(h, NULL);
  assert_in_range(run_host_due(h), (int64_t)300000000, (int64_t)1000000000);
}

static void a_step_that_is_lower_but_complete_later_comes_later(void **state) {
  run_host *h = *state;
  run_host_write(h, "ckpt-30.pt", "thirty", RUN_COMMITTED);
  run_host_tick(h);
  run_host_write(h, "ckpt-20.pt", "after a way back", RUN_COMMITTED);
  assert_string_equal(run_host_commits(h), "ckpt-30.pt ckpt-20.pt");
}

static void
a_higher_step_that_failed_is_late_once_a_lower_one_was_committed_after_it(void **state) {
  run_host *h = *state;
  run_host_fail_store(h, ENOSPC);
  run_host_write(h, "ckpt-30.pt", "thirty", RUN_FAILED);
  run_host_fail_store(h, 0);
  run_host_tick(h);
  run_host_write(h, "ckpt-20.pt", "after a way back", RUN_COMMITTED);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_for(h, 0.1);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-20.pt");
}

static void a_copy_with_old_times_has_its_place_when_it_is_made(void **state) {
  run_host *h = *state;
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host_tick(h);
  put_aged(h, "best.tmp", 3600);
  assert_int_equal(rename(run_host_dir(h, "best.tmp"), run_host_dir(h, "best.pt")), 0);
  run_host_until(h, RUN_COMMITTED, "best.pt");
  assert_string_equal(run_host_commits(h), "ckpt-1.pt best.pt");
}

/* ---- without time: the newest first ---- */

static void what_is_older_than_the_newest_is_left_when_time_is_short(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_let_wait(h, "best.pt");
  run_host_let_wait(h, "last.pt");
  assert_int_equal(run_preempt(run_host_run(h), 0.001, NULL), 0);
  run_host_hold(h, false);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt last.pt");
  assert_true(run_host_names(h, "best.pt", RUN_LATE));
  assert_int_equal(run_host_status(h).standing, STANDING_NOT_DURABLE);
}

static void what_belongs_to_the_step_of_the_newest_is_saved_before_it(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "best.pt", "best");
  run_host_let_wait(h, "weights-3.pt");
  run_host_let_wait(h, "optimizer-3.pt");
  assert_int_equal(run_preempt(run_host_run(h), 10, NULL), 0);
  run_host_hold(h, false);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "best.pt weights-3.pt optimizer-3.pt");
}

/* ---- at a start ---- */

static void an_older_one_found_at_a_start_is_not_committed_after_the_newest(void **state) {
  run_host *h = *state;
  put_aged(h, "ckpt-20.pt", 100);
  run_host_begin(h);
  run_host_until(h, RUN_COMMITTED, "ckpt-20.pt");
  run_host_close(h);
  assert_int_equal(unlink(run_host_dir(h, "ckpt-20.pt")), 0);
  put_aged(h, "ckpt-10.pt", 200);
  put_aged(h, "other.pt", 150);
  run_host_options(h)->continue_run = true;
  run_host_begin(h);
  run_host_for(h, 0.2);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-20.pt");
  assert_true(run_host_names(h, "ckpt-10.pt", RUN_LATE));
  assert_true(run_host_names(h, "other.pt", RUN_LATE));
  /* What was there before decides nothing. */
  assert_int_equal(run_host_status(h).standing, STANDING_DURABLE);
  run_host_write(h, "ckpt-5.pt", "after a way back", RUN_COMMITTED);
  assert_string_equal(run_host_commits(h), "ckpt-20.pt ckpt-5.pt");
}

static void several_found_at_a_start_are_committed_oldest_first(void **state) {
  run_host *h = *state;
  run_host_policy(h, "return { api = 1, queue = 'all' }");
  put_aged(h, "ckpt-20.pt", 100);
  put_aged(h, "best.pt", 200);
  put_aged(h, "ckpt-10.pt", 300);
  put_aged(h, "aaa.pt", 50);
  run_host_begin(h);
  run_host_for(h, 0.2);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-10.pt best.pt ckpt-20.pt aaa.pt");
}

static void what_is_marked_bad_is_not_the_newest(void **state) {
  run_host *h = *state;
  put_aged(h, "ckpt-20.pt", 100);
  run_host_begin(h);
  run_host_until(h, RUN_COMMITTED, "ckpt-20.pt");
  err e = {0};
  runlog *log = run_group_find(run_host_run(h), "")->group.log;
  assert_true(runlog_mark(log, runlog_newest(runlog_view(log), NULL)->n, true, "NaN", &e) >= 0);
  run_host_close(h);
  assert_int_equal(unlink(run_host_dir(h, "ckpt-20.pt")), 0);
  put_aged(h, "ckpt-10.pt", 200);
  run_host_options(h)->continue_run = true;
  run_host_begin(h);
  run_host_until(h, RUN_COMMITTED, "ckpt-10.pt");
}

/* ---- anything, in any order ---- */

static const char *const names_of[] = {"ckpt-%d.pt", "weights-%d.pt", "last.pt", "best.pt"};

typedef struct history {
  run_host *h;
  unsigned seed;
  int made; /* how many were completed so far */
} history;

static unsigned any(history *w, unsigned of) {
  return (unsigned)rand_r(&w->seed) % of;
}

/* Each has its number as its text: the order in which they were completed. */
static void complete_one(history *w) {
  char name[64], text[32];
  unsigned kind = any(w, 4);
  int n = ++w->made;
  if (kind < 2 && any(w, 4) == 0) n = 1 + (int)any(w, (unsigned)w->made); /* after a way back */
  snprintf(name, sizeof name, names_of[kind], n);
  snprintf(text, sizeof text, "number %d", w->made);
  write_unit(w->h, name, text);
}

static void restart(history *w) {
  run_host_fail_store(w->h, 0);
  run_host_close(w->h);
  if (any(w, 2)) complete_one(w);
  run_host_tick(w->h);
  run_host_begin(w->h);
}

static void do_something(history *w) {
  switch (any(w, 10)) {
  case 0: run_host_fail_store(w->h, any(w, 3) ? EIO : ENOSPC); break;
  case 1:
  case 2: run_host_fail_store(w->h, 0); break;
  case 3: run_host_skip(w->h, any(w, 90)); break;
  case 4: restart(w); break;
  case 5:
    if (any(w, 4) == 0) run_preempt(run_host_run(w->h), 10, NULL);
    break;
  default: complete_one(w); break;
  }
  run_host_for(w->h, 0.012 + any(w, 3) * 0.01);
}

static int number_of(run_host *h, const char *dir) {
  char key[900], name[300];
  int number = -1;
  snprintf(name, sizeof name, "%.299s", dir);
  char *tilde = strstr(name, ".~");
  if (tilde) *tilde = '\0';
  snprintf(key, sizeof key, "%.299s/%s", dir, name);
  char *text = read_file(run_host_store(h, key), NULL);
  if (!text || sscanf(text, "number %d", &number) != 1) fail_msg("%s: %s", key, text ? text : "");
  free(text);
  return number;
}

static void play(run_host *h, unsigned seed) {
  history w = {.h = h, .seed = seed};
  run_host_policy(h, seed % 2 ? "return { api = 1, queue = 'all', on_preempt = 'all' }"
                              : "return { api = 1 }");
  run_host_options(h)->continue_run = true;
  run_host_begin(h);
  for (int i = 0; i < 60; i++) do_something(&w);
  run_host_fail_store(h, 0);
  for (int i = 0; i < 8; i++) {
    run_host_skip(h, 70);
    run_host_for(h, 0.02);
  }
  run_host_idle(h);
  char dirs[8192], *rest = dirs;
  snprintf(dirs, sizeof dirs, "%s", run_host_commits(h));
  int last = 0, count = 0;
  for (char *dir; (dir = strtok_r(rest, " ", &rest)); count++) {
    int number = number_of(h, dir);
    if (number < last)
      fail_msg("seed %u: number %d (%s) was committed after number %d", seed, number, dir, last);
    last = number;
  }
  if (count < 3) fail_msg("seed %u: %d commits show nothing", seed, count);
}

static void whatever_happens_commits_are_in_the_order_of_completion(void **state) {
  (void)state;
  const char *seed = getenv("SEED"), *count = getenv("COUNT");
  unsigned first = seed ? (unsigned)atoi(seed) : 1, many = count ? (unsigned)atoi(count) : 5;
  for (unsigned i = first; i < first + (seed && !count ? 1 : many); i++) {
    run_host *h = run_host_new(NULL);
    play(h, i);
    run_host_free(h);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_RUN(a_newer_one_of_another_kind_waits_for_the_next_try_of_an_older_one),
      WITH_HOST(nobody_waits_for_long_and_what_was_passed_stays_and_is_named),
      WITH_HOST(where_all_are_queued_an_older_one_that_is_tried_again_goes_first),
      WITH_RUN(an_idle_wait_for_a_next_try_does_not_turn_in_circles),
      WITH_RUN(a_step_that_is_lower_but_complete_later_comes_later),
      WITH_RUN(a_higher_step_that_failed_is_late_once_a_lower_one_was_committed_after_it),
      WITH_RUN(a_copy_with_old_times_has_its_place_when_it_is_made),
      WITH_RUN(what_is_older_than_the_newest_is_left_when_time_is_short),
      WITH_RUN(what_belongs_to_the_step_of_the_newest_is_saved_before_it),
      WITH_HOST(an_older_one_found_at_a_start_is_not_committed_after_the_newest),
      WITH_HOST(several_found_at_a_start_are_committed_oldest_first),
      WITH_HOST(what_is_marked_bad_is_not_the_newest),
      cmocka_unit_test(whatever_happens_commits_are_in_the_order_of_completion),
  };
  const struct CMUnitTest random[] = {
      cmocka_unit_test(whatever_happens_commits_are_in_the_order_of_completion)};
  if (getenv("SEED")) return cmocka_run_group_tests(random, NULL, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
