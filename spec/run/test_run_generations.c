/* Older generations of a name that is written again and again are let go without a policy's word, and
 * nothing else is. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/pins.h"
#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static const int64_t second_ns = 1000000000;

/* A pass comes behind each commit, and no save waits for it. */
static void rest(run_host *h) {
  run_host_idle(h);
  for (int i = 0; i < 1000 && run_host_status(h).keeping; i++) run_host_for(h, 0.005);
  assert_false(run_host_status(h).keeping);
}

static void save(run_host *h, const char *name, int i) {
  char text[40];
  snprintf(text, sizeof text, "generation %d", i);
  run_host_write(h, name, text, RUN_COMMITTED);
  rest(h);
}

static void save_ten(run_host *h, const char *name) {
  for (int i = 0; i < 10; i++) save(h, name, i);
}

static const runlog_state *view(run_host *h) {
  return runlog_view(run_group_find(run_host_run(h), "")->group.log);
}

static size_t live(run_host *h) {
  size_t count = 0;
  for (size_t i = 0; i < view(h)->commit_count; i++)
    count += view(h)->commits[i].life == RUNLOG_LIVE;
  return count;
}

static void begin_with(run_host *h, const char *policy) {
  if (policy) run_host_policy(h, policy);
  run_host_begin(h);
}

static void of_ten_generations_three_stay(void **state) {
  run_host *h = *state;
  begin_with(h, NULL);
  save_ten(h, "last.pt");
  assert_int_equal(live(h), 3);
  assert_int_equal(run_host_count(h, RUN_DELETED, "last.pt"), 7);
  assert_string_equal(run_host_last(h, RUN_EXPIRED, "last.pt")->reason, RETENTION_PASSED);
  const char *dirs = run_host_commits(h);
  assert_true(run_host_holds(h, strrchr(dirs, ' ') + 1, "generation 9"));
  assert_false(path_exists(run_host_store(h, "last.pt/last.pt")));
  assert_true(file_is(run_host_dir(h, "last.pt"), "generation 9"));
}

static void the_last_of_each_day_stays(void **state) {
  run_host *h = *state;
  begin_with(h, NULL);
  for (int day = 0; day < 3; day++) {
    for (int i = 0; i < 4; i++) save(h, "last.pt", 10 * day + i);
    run_host_next_day(h);
  }
  assert_int_equal(live(h), 5);
  const runlog_state *log = view(h);
  assert_int_equal(log->commits[3].life, RUNLOG_LIVE);
  assert_int_equal(log->commits[7].life, RUNLOG_LIVE);
  assert_true(run_host_holds(h, log->commits[3].dir, "generation 3"));
  assert_true(run_host_holds(h, log->commits[7].dir, "generation 13"));
}

static void what_has_a_number_stays_however_often_it_is_saved(void **state) {
  run_host *h = *state;
  begin_with(h, NULL);
  save_ten(h, "ckpt-7.pt");
  save_ten(h, "run-val_loss=0.5.ckpt");
  assert_int_equal(live(h), 20);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, NULL), 0);
}

static void of_a_number_that_never_changes_three_stay(void **state) {
  run_host *h = *state;
  begin_with(h, NULL);
  save_ten(h, "resnet50.pt");
  assert_int_equal(live(h), 3);
  save(h, "resnet101.pt", 0);
  for (int i = 0; i < 5; i++) save(h, "resnet50.pt", 20 + i);
  assert_int_equal(live(h), 9);
}

/* Lightning counts up where another job's "last" stands, and writes that one again and again. */
static void of_lightnings_last_v1_three_stay(void **state) {
  run_host *h = *state;
  begin_with(h, NULL);
  save(h, "last.ckpt", 0);
  save_ten(h, "last-v1.ckpt");
  assert_int_equal(live(h), 4);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, "last.ckpt"), 0);
}

/* A NaN after the restore: the one before is what a policy would go back to. */
static void the_one_before_a_suspect_one_stays(void **state) {
  run_host *h = *state;
  begin_with(h, NULL);
  for (int i = 0; i < 2; i++) save(h, "last.pt", i);
  run_host_close(h);
  run_host_begin(h);
  assert_int_equal(run_result(run_host_run(h), "{\"loss\": NaN}", NULL), 0);
  for (int i = 2; i < 8; i++) save(h, "last.pt", i);
  assert_int_equal(view(h)->commits[0].life, RUNLOG_LIVE);
  assert_int_equal(view(h)->commits[1].life, RUNLOG_LIVE);
  assert_int_equal(live(h), 5);
}

static void other_names_are_not_counted_and_do_not_go(void **state) {
  run_host *h = *state;
  begin_with(h, NULL);
  save(h, "best.pt", 0);
  save(h, "ckpt-1.pt", 0);
  save_ten(h, "last.pt");
  assert_int_equal(run_host_count(h, RUN_EXPIRED, "best.pt"), 0);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, "ckpt-1.pt"), 0);
  assert_int_equal(live(h), 5);
}

static void keep_of_a_policy_decides(void **state) {
  run_host *h = *state;
  begin_with(h, "return { api = 1, keep = keep.last(6), keep_in_place = 'few' }\n");
  save_ten(h, "last.pt");
  assert_int_equal(live(h), 6);
}

static void a_policy_without_keep_leaves_it_as_it_is(void **state) {
  run_host *h = *state;
  begin_with(h, "return { api = 1, would_keep = keep.last(6) }\n");
  save_ten(h, "last.pt");
  assert_int_equal(live(h), 3);
}

static void a_policy_may_keep_all(void **state) {
  run_host *h = *state;
  begin_with(h, "return { api = 1, keep_in_place = 'all' }\n");
  save_ten(h, "last.pt");
  assert_int_equal(live(h), 10);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, NULL), 0);
}

static void what_is_pinned_or_bad_stays(void **state) {
  run_host *h = *state;
  char id[33];
  begin_with(h, NULL);
  save(h, "last.pt", 0);
  save(h, "last.pt", 1);
  const runlog_commit *c = &view(h)->commits[0];
  pin_request pin = {.dir = c->dir, .by = "user", .commit = c->n};
  assert_int_equal(pins_put(run_host_run(h)->store, "", &pin, id, false, NULL), 0);
  runlog *guest = NULL;
  assert_int_equal(runlog_open(run_host_run(h)->store, "", &guest, NULL), 0);
  assert_int_equal(runlog_mark(guest, view(h)->commits[1].n, true, "it does not load", NULL), 0);
  runlog_close(guest);
  save_ten(h, "last.pt");
  assert_int_equal(live(h), 5);
  assert_int_equal(view(h)->commits[0].life, RUNLOG_LIVE);
  assert_int_equal(view(h)->commits[1].life, RUNLOG_LIVE);
}

/* Of 24 s it is one. */
static void its_data_goes_after_a_24th_of_the_grace(void **state) {
  run_host *h = *state;
  run_host_options(h)->grace_delete_ns = 24 * second_ns;
  begin_with(h, NULL);
  for (int i = 0; i < 4; i++) save(h, "last.pt", i);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, "last.pt"), 1);
  if (run_host_count(h, RUN_DELETED, "last.pt") == 0) run_host_until(h, RUN_DELETED, "last.pt");
  assert_false(path_exists(run_host_store(h, "last.pt/last.pt")));
}

/* What it dropped somebody else's `gc` would delete, and nobody has asked for that. */
static void with_no_delete_the_core_lets_nothing_go(void **state) {
  run_host *h = *state;
  run_host_options(h)->no_delete = true;
  begin_with(h, NULL);
  save_ten(h, "last.pt");
  assert_int_equal(live(h), 10);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, NULL), 0);
  assert_true(path_exists(run_host_store(h, "last.pt/last.pt")));
}

static void with_no_delete_the_word_of_a_policy_is_noted(void **state) {
  run_host *h = *state;
  run_host_options(h)->no_delete = true;
  begin_with(h, "return { api = 1, keep = keep.last(6) }\n");
  save_ten(h, "last.pt");
  assert_int_equal(live(h), 6);
  assert_int_equal(run_host_count(h, RUN_DELETED, NULL), 0);
}

/* An old store may have thousands: a pass takes a share of them, one at least, and a commit brings a
 * pass. Of few, one comes and one goes. */
static void what_an_older_engine_left_goes_in_shares(void **state) {
  run_host *h = *state;
  begin_with(h, "return { api = 1, keep_in_place = 'all' }\n");
  for (int i = 0; i < 3; i++) save_ten(h, "last.pt");
  assert_int_equal(live(h), 30);
  run_host_close(h);
  run_host_options(h)->policies = NULL;
  run_host_options(h)->max_delete = 0.25;
  run_host_begin(h);
  save(h, "last.pt", 10);
  assert_in_range(live(h), 17, 24);
  save_ten(h, "last.pt");
  assert_in_range(live(h), 3, 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(of_ten_generations_three_stay),
      WITH_HOST(the_last_of_each_day_stays),
      WITH_HOST(what_has_a_number_stays_however_often_it_is_saved),
      WITH_HOST(other_names_are_not_counted_and_do_not_go),
      WITH_HOST(keep_of_a_policy_decides),
      WITH_HOST(a_policy_without_keep_leaves_it_as_it_is),
      WITH_HOST(a_policy_may_keep_all),
      WITH_HOST(what_is_pinned_or_bad_stays),
      WITH_HOST(its_data_goes_after_a_24th_of_the_grace),
      WITH_HOST(of_a_number_that_never_changes_three_stay),
      WITH_HOST(of_lightnings_last_v1_three_stay),
      WITH_HOST(the_one_before_a_suspect_one_stays),
      WITH_HOST(with_no_delete_the_core_lets_nothing_go),
      WITH_HOST(with_no_delete_the_word_of_a_policy_is_noted),
      WITH_HOST(what_an_older_engine_left_goes_in_shares),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
