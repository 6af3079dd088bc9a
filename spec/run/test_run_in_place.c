/* Names without a step, which a job writes again and again: each is saved once in a while, the newest
 * is never lost, and nothing else waits for it. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static void begin(run_host *h) {
  run_host_options(h)->in_place_every_ns = (int64_t)60 * 1000000000;
  run_host_begin(h);
}

/* Writes it, and gives the run time to take it in. */
static void put(run_host *h, const char *name, const char *text) {
  run_host_tick(h);
  write_file(run_host_dir(h, name), text);
  run_host_for(h, 0.2);
}

static void of_one_that_is_written_every_nine_seconds_one_a_minute_is_saved(void **state) {
  run_host *h = *state;
  char text[20] = "";
  begin(h);
  for (int i = 0; i < 20; i++) {
    snprintf(text, sizeof text, "state %d", i);
    put(h, "last.pt", text);
    run_host_skip(h, 9);
  }
  run_host_for(h, 0.2);
  assert_in_range(run_host_count(h, RUN_COMMITTED, "last.pt"), 3, 4);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_idle(h);
  assert_true(run_host_newest_holds(h, text));
}

static void one_that_is_written_once_more_is_saved_when_it_is_due(void **state) {
  run_host *h = *state;
  begin(h);
  run_host_write(h, "last.pt", "one", RUN_COMMITTED);
  put(h, "last.pt", "two");
  run_host_skip(h, 50);
  run_host_for(h, 0.2);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "last.pt"), 1);
  assert_in_range(run_host_due(h), 1, (int64_t)10 * 1000000000);
  run_host_skip(h, 10);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  assert_true(run_host_newest_holds(h, "two"));
}

static void one_that_is_removed_before_it_is_written_is_paced_too(void **state) {
  run_host *h = *state;
  begin(h);
  run_host_write(h, "last.pt", "one", RUN_COMMITTED);
  assert_int_equal(unlink(run_host_dir(h, "last.pt")), 0);
  run_host_for(h, 0.1);
  put(h, "last.pt", "two");
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "last.pt"), 1);
  run_host_skip(h, 60);
  run_host_until(h, RUN_COMMITTED, "last.pt");
}

static void at_the_end_of_the_job_nothing_is_waited_for(void **state) {
  run_host *h = *state;
  begin(h);
  run_host_write(h, "last.pt", "one", RUN_COMMITTED);
  put(h, "last.pt", "two");
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "last.pt"), 1);
  assert_int_equal(run_child_exit(run_host_run(h), false, NULL), 0);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  assert_true(run_host_newest_holds(h, "two"));
}

static void when_time_is_short_nothing_is_waited_for(void **state) {
  run_host *h = *state;
  begin(h);
  run_host_write(h, "last.pt", "one", RUN_COMMITTED);
  put(h, "last.pt", "two");
  assert_int_equal(run_preempt(run_host_run(h), 10, NULL), 0);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  assert_true(run_host_newest_holds(h, "two"));
}

static void a_number_in_the_name_is_another_checkpoint_each_time(void **state) {
  run_host *h = *state;
  begin(h);
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host_write(h, "ckpt-2.pt", "two", RUN_COMMITTED);
  run_host_write(h, "epoch=3-loss=0.5.ckpt", "three", RUN_COMMITTED);
  run_host_write(h, "epoch=4-loss=0.4.ckpt", "four", RUN_COMMITTED);
}

static void a_number_that_never_changes_is_none(void **state) {
  run_host *h = *state;
  begin(h);
  run_host_write(h, "resnet50.pt", "one", RUN_COMMITTED);
  run_host_write(h, "resnet50.pt", "two", RUN_COMMITTED);
  put(h, "resnet50.pt", "three");
  run_host_for(h, 0.2);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "resnet50.pt"), 2);
  run_host_skip(h, 60);
  run_host_until(h, RUN_COMMITTED, "resnet50.pt");
  run_host_write(h, "resnet101.pt", "another", RUN_COMMITTED);
  run_host_write(h, "resnet50.pt", "four", RUN_COMMITTED);
}

static void lightnings_last_v1_is_written_again_and_again(void **state) {
  run_host *h = *state;
  begin(h);
  run_host_write(h, "last-v1.ckpt", "one", RUN_COMMITTED);
  put(h, "last-v1.ckpt", "two");
  run_host_for(h, 0.2);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "last-v1.ckpt"), 1);
}

/* Behind the newer one it would never be saved, though nobody may write it again. */
static void a_name_that_waits_goes_before_a_newer_checkpoint_and_is_not_lost(void **state) {
  run_host *h = *state;
  begin(h);
  run_host_write(h, "best.pt", "one", RUN_COMMITTED);
  put(h, "best.pt", "two");
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "best.pt"), 1);
  run_host_write(h, "ckpt-20.pt", "twenty", RUN_COMMITTED);
  assert_string_equal(run_host_commits(h), "best.pt best.pt.~4 ckpt-20.pt");
  assert_int_equal(run_host_status(h).dropped, 0);
}

static void two_names_of_a_directory_wait_together(void **state) {
  run_host *h = *state;
  begin(h);
  run_host_write(h, "last.pt", "one", RUN_COMMITTED);
  run_host_skip(h, 5);
  run_host_write(h, "best.pt", "one", RUN_COMMITTED);
  put(h, "best.pt", "two");
  put(h, "last.pt", "two");
  run_host_skip(h, 56);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "best.pt"), 2);
  assert_int_equal(run_host_status(h).dropped, 0);
}

static void another_directory_has_a_minute_of_its_own(void **state) {
  run_host *h = *state;
  make_dir(run_host_dir(h, "T1"));
  make_dir(run_host_dir(h, "T2"));
  begin(h);
  run_host_write(h, "T1/last.pt", "one", RUN_COMMITTED);
  put(h, "T1/last.pt", "two");
  run_host_write(h, "T2/last.pt", "one", RUN_COMMITTED);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "T1/last.pt"), 1);
}

/* ---- what a day of it is ---- */

#define A_DAY "commits and"

static void what_a_day_of_it_is_is_said_once_when_the_pace_is_known(void **state) {
  run_host *h = *state;
  begin(h);
  for (int i = 0; i < 6; i++) {
    char text[20];
    assert_true(i > 2 || !run_host_logged(h, A_DAY));
    snprintf(text, sizeof text, "state %d", i);
    run_host_write(h, "last.pt", text, RUN_COMMITTED);
    run_host_skip(h, 60);
  }
  assert_true(run_host_logged(h, "last.pt is saved again and again, every 6"));
  assert_true(run_host_logged(h, "KiB a day are sent; of each name the newest three"));
  assert_true(run_host_logged(h, "A longer `in_place_every` makes it fewer"));
  assert_int_equal(run_host_logs(h, A_DAY), 1);
}

static void of_several_names_it_is_their_sum(void **state) {
  run_host *h = *state;
  run_host_policy(h, "return { api = 1, keep = keep.last(3) }\n");
  begin(h);
  for (int i = 0; i < 3; i++) {
    run_host_write(h, "best.pt", i % 2 ? "one" : "two", RUN_COMMITTED);
    run_host_write(h, "last.pt", i % 2 ? "one" : "two", RUN_COMMITTED);
    run_host_skip(h, 600);
  }
  assert_true(run_host_logged(h, ".pt and 1 more are saved again and again, every 60"));
  assert_true(run_host_logged(h, "; what is kept of them the policy says."));
}

static void what_is_rare_or_at_the_end_is_not_foretold(void **state) {
  run_host *h = *state;
  begin(h);
  for (int i = 0; i < 4; i++) {
    run_host_write(h, "last.pt", i % 2 ? "one" : "two", RUN_COMMITTED);
    run_host_skip(h, 2 * 3600);
  }
  assert_false(run_host_logged(h, A_DAY));
  run_host_write(h, "best.pt", "one", RUN_COMMITTED);
  run_host_skip(h, 60);
  run_host_write(h, "best.pt", "two", RUN_COMMITTED);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_write(h, "best.pt", "three", RUN_COMMITTED);
  assert_false(run_host_logged(h, A_DAY));
}

static void each_is_counted_where_each_is_saved(void **state) {
  run_host *h = *state;
  run_host_begin(h);
  for (int i = 0; i < 3; i++) {
    run_host_write(h, "last.pt", i % 2 ? "one" : "two", RUN_COMMITTED);
    run_host_skip(h, 100);
  }
  assert_true(run_host_logged(h, "last.pt is saved again and again, every 10"));
}

static void begin_slow(run_host *h) {
  run_host_options(h)->quiet_ns = (int64_t)30 * 1000000000;
  run_host_begin(h);
}

#define NEVER_SAVED "what is replaced so soon is never saved"

static void what_is_written_again_before_its_rest_is_over_is_said_once(void **state) {
  run_host *h = *state;
  begin_slow(h);
  for (int i = 0; i < 6; i++) {
    assert_true(i > 2 || !run_host_logged(h, NEVER_SAVED));
    put(h, "last.bin.pt", i % 2 ? "of no known format" : "of none that is known");
    run_host_skip(h, 9);
    run_host_for(h, 0.1);
  }
  assert_int_equal(run_host_count(h, RUN_COMMITTED, NULL), 0);
  assert_true(run_host_logged(h, "last.bin.pt was written again"));
  assert_true(run_host_logged(h, NEVER_SAVED));
}

/* Writes one of its two files again, so often, each nine seconds after the one before. */
static void stir(run_host *h, int times) {
  for (int i = 0; i < times; i++) {
    write_file(run_host_dir(h, i % 2 ? "checkpoint-5/a.bin" : "checkpoint-5/b.bin"),
               "no known format");
    run_host_for(h, 0.05);
    run_host_skip(h, 9);
    run_host_for(h, 0.05);
  }
}

static void a_directory_that_never_rests_is_named_after_ten_times_its_rest(void **state) {
  run_host *h = *state;
  begin_slow(h);
  mkdir(run_host_dir(h, "checkpoint-5"), 0755);
  stir(h, 25);
  assert_false(run_host_logged(h, NEVER_SAVED)); /* a slow save */
  stir(h, 15);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, NULL), 0);
  assert_true(run_host_logged(h, "checkpoint-5 was changed again and again"));
  assert_true(run_host_logged(h, NEVER_SAVED));
}

static void what_is_removed_before_its_rest_is_over_is_said(void **state) {
  run_host *h = *state;
  begin_slow(h);
  put(h, "ckpt-1.pt", "of no known format");
  run_host_skip(h, 9);
  run_host_for(h, 0.1);
  assert_false(run_host_logged(h, NEVER_SAVED));
  assert_int_equal(unlink(run_host_dir(h, "ckpt-1.pt")), 0);
  run_host_for(h, 0.2);
  assert_true(run_host_logged(h, "ckpt-1.pt was removed"));
}

static void what_has_its_rest_is_not_named(void **state) {
  run_host *h = *state;
  begin_slow(h);
  put(h, "last.pt", "of no known format");
  for (int i = 0; i < 2; i++) {
    run_host_skip(h, 9);
    run_host_for(h, 0.1);
  }
  assert_int_equal(run_host_count(h, RUN_COMMITTED, NULL), 0);
  run_host_skip(h, 9);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  assert_false(run_host_logged(h, NEVER_SAVED));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(of_one_that_is_written_every_nine_seconds_one_a_minute_is_saved),
      WITH_HOST(one_that_is_written_once_more_is_saved_when_it_is_due),
      WITH_HOST(one_that_is_removed_before_it_is_written_is_paced_too),
      WITH_HOST(at_the_end_of_the_job_nothing_is_waited_for),
      WITH_HOST(when_time_is_short_nothing_is_waited_for),
      WITH_HOST(a_number_in_the_name_is_another_checkpoint_each_time),
      WITH_HOST(a_number_that_never_changes_is_none),
      WITH_HOST(lightnings_last_v1_is_written_again_and_again),
      WITH_HOST(a_name_that_waits_goes_before_a_newer_checkpoint_and_is_not_lost),
      WITH_HOST(two_names_of_a_directory_wait_together),
      WITH_HOST(another_directory_has_a_minute_of_its_own),
      WITH_HOST(what_a_day_of_it_is_is_said_once_when_the_pace_is_known),
      WITH_HOST(of_several_names_it_is_their_sum),
      WITH_HOST(what_is_rare_or_at_the_end_is_not_foretold),
      WITH_HOST(each_is_counted_where_each_is_saved),
      WITH_HOST(what_is_written_again_before_its_rest_is_over_is_said_once),
      WITH_HOST(a_directory_that_never_rests_is_named_after_ten_times_its_rest),
      WITH_HOST(what_is_removed_before_its_rest_is_over_is_said),
      WITH_HOST(what_has_its_rest_is_not_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
