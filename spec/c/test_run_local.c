/* What a run removes in the watched directory, and what it must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "core/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static int setup(void **state) {
  *state = run_host_new(NULL);
  return 0;
}
static int teardown(void **state) {
  run_host_free(*state);
  return 0;
}
static void write_unit(run_host *h, const char *name) {
  run_host_for(h, 0.012);
  write_file(run_host_dir(h, name), name);
}
static void begin(run_host *h, const char *policy) {
  run_host_policy(h, policy);
  run_host_begin(h);
}

static void temp_unit(run_host *h, const char *name) {
  char path[300];
  mkdir(run_host_dir(h, name), 0755);
  snprintf(path, sizeof path, "%s/.temp_marker", name);
  write_file(run_host_dir(h, path), "");
  snprintf(path, sizeof path, "%s/model.pt", name);
  write_file(run_host_dir(h, path), "weights");
}

static void a_temporary_one_that_is_named_before_its_events_are_read_is_saved(void **state) {
  run_host *h = *state;
  begin(h, "return { api = 1, markers = { temp = '.temp_marker' } }");
  run_host_for(h, 0.05);
  temp_unit(h, "checkpoint-7");
  assert_int_equal(run_result(run_host_run(h), "{\"checkpoint\": \"checkpoint-7\"}", NULL), 0);
  run_host_for(h, 0.5);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "checkpoint-7");
}

static void a_temporary_one_that_was_named_outlives_the_job_until_it_is_saved(void **state) {
  run_host *h = *state;
  run_host_options(h)->quiet_ns = (int64_t)1000 * 1000000000;
  begin(h, "return { api = 1, markers = { temp = '.temp_marker' } }");
  run_host_for(h, 0.05);
  temp_unit(h, "checkpoint-7");
  run_host_for(h, 0.02);
  err e = {0};
  assert_int_equal(run_host_step(h, &e), 0);
  assert_int_equal(run_result(run_host_run(h), "{\"checkpoint\": \"checkpoint-7\"}", NULL), 0);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_for(h, 0.5);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "checkpoint-7");
}

static void a_temporary_one_that_was_named_and_not_saved_stays_here(void **state) {
  run_host *h = *state;
  run_host_options(h)->tries = 1;
  begin(h, "return { api = 1, markers = { temp = '.temp_marker' } }");
  run_host_for(h, 0.05);
  temp_unit(h, "checkpoint-7");
  run_host_until(h, RUN_SKIPPED, "checkpoint-7");
  run_host_fail_store(h, ENOSPC);
  assert_int_equal(run_result(run_host_run(h), "{\"checkpoint\": \"checkpoint-7\"}", NULL), 0);
  run_host_until(h, RUN_FAILED, "checkpoint-7");
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_for(h, 0.5);
  assert_true(path_exists(run_host_dir(h, "checkpoint-7/model.pt")));
}

static void what_was_written_again_since_it_was_saved_stays(void **state) {
  run_host *h = *state;
  begin(h, "return { api = 1, keep_local = keep.last(1) }");
  write_unit(h, "ckpt-1.pt");
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  run_host_hold(h, true);
  write_unit(h, "ckpt-2.pt");
  run_host_held(h);
  write_file(run_host_dir(h, "ckpt-1.pt"), "another content, after a way back");
  run_host_hold(h, false);
  struct timespec t = {.tv_nsec = 300000000};
  nanosleep(&t, NULL); /* the save ends; its end is taken before the events are */
  run_host_until(h, RUN_COMMITTED, "ckpt-2.pt");
  run_host_for(h, 0.4);
}

static void what_keep_local_lets_go_is_removed(void **state) {
  run_host *h = *state;
  begin(h, "return { api = 1, keep_local = keep.last(1) }");
  write_unit(h, "ckpt-1.pt");
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  write_unit(h, "ckpt-2.pt");
  run_host_until(h, RUN_COMMITTED, "ckpt-2.pt");
  for (int i = 0; i < 100 && path_exists(run_host_dir(h, "ckpt-1.pt")); i++) run_host_for(h, 0.1);
  assert_false(path_exists(run_host_dir(h, "ckpt-1.pt")));
  assert_true(path_exists(run_host_dir(h, "ckpt-2.pt")));
  mkdir(run_host_dir(h, "checkpoint-3"), 0755);
  write_file(run_host_dir(h, "checkpoint-3/a"), "a");
  run_host_until(h, RUN_COMMITTED, "checkpoint-3");
  mkdir(run_host_dir(h, "checkpoint-4"), 0755);
  write_file(run_host_dir(h, "checkpoint-4/a"), "a");
  run_host_until(h, RUN_COMMITTED, "checkpoint-4");
  run_host_for(h, 0.3);
  assert_false(path_exists(run_host_dir(h, "checkpoint-3")));
}

static void a_path_names_the_one_of_its_own_directory(void **state) {
  run_host *h = *state;
  begin(h, "return { api = 1, markers = { temp = '.temp_marker' } }");
  mkdir(run_host_dir(h, "a"), 0755);
  mkdir(run_host_dir(h, "b"), 0755);
  temp_unit(h, "a/checkpoint-7");
  temp_unit(h, "b/checkpoint-7");
  run_host_until(h, RUN_SKIPPED, "b/checkpoint-7");
  run_host_idle(h);
  assert_int_equal(run_result(run_host_run(h), "{\"checkpoint\": \"out/a/checkpoint-7\"}", NULL),
                   0);
  run_host_until(h, RUN_COMMITTED, "a/checkpoint-7");
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "a/checkpoint-7");
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
      T(a_temporary_one_that_is_named_before_its_events_are_read_is_saved),
      T(a_temporary_one_that_was_named_outlives_the_job_until_it_is_saved),
      T(a_temporary_one_that_was_named_and_not_saved_stays_here),
      T(what_was_written_again_since_it_was_saved_stays),
      T(what_keep_local_lets_go_is_removed),
      T(a_path_names_the_one_of_its_own_directory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
