#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run_marks.h"
#include "tmpdir.h"

/* A start from what is chosen, and its end. */
static void start(run_host *h, const char *from, bool clean, bool outside) {
  run_prepared p = run_host_begin(h);
  must_resume_from(h, &p, from);
  assert_int_equal(run_start_over(run_host_run(h), clean, outside, NULL), 0);
  assert_int_equal(run_child_exit(run_host_run(h), clean, NULL), 0);
  run_host_close(h);
}

static void fill(run_host *h) {
  commit_file(h, "ckpt-1.pt", "one");
  commit_file(h, "ckpt-2.pt", "two");
}

static void after_three_failed_starts_the_one_before_is_taken(void **state) {
  run_host *h = *state;
  fill(h);
  for (int i = 0; i < 3; i++) start(h, "ckpt-2.pt", false, false);
  assert_false(commit_is_bad(h, "ckpt-2.pt"));
  start(h, "ckpt-1.pt", false, false);
  assert_true(commit_is_bad(h, "ckpt-2.pt"));
  assert_false(path_exists(run_host_dir(h, "ckpt-2.pt")));
}

static void the_number_is_the_hosts_to_choose(void **state) {
  run_host *h = *state;
  fill(h);
  run_host_options(h)->bad_after = 1;
  start(h, "ckpt-2.pt", false, false);
  start(h, "ckpt-1.pt", false, false);
}

static void never_is_never(void **state) {
  run_host *h = *state;
  fill(h);
  run_host_options(h)->bad_after = UINT32_MAX;
  for (int i = 0; i < 6; i++) start(h, "ckpt-2.pt", false, false);
}

static void an_end_from_outside_is_no_failure(void **state) {
  run_host *h = *state;
  fill(h);
  for (int i = 0; i < 6; i++) start(h, "ckpt-2.pt", false, true);
}

static void one_good_end_forgets_the_bad_ones(void **state) {
  run_host *h = *state;
  fill(h);
  for (int i = 0; i < 2; i++) start(h, "ckpt-2.pt", false, false);
  start(h, "ckpt-2.pt", true, false);
  for (int i = 0; i < 2; i++) start(h, "ckpt-2.pt", false, false);
  start(h, "ckpt-2.pt", true, false);
}

static void what_saved_something_before_it_failed_is_no_failed_start(void **state) {
  run_host *h = *state;
  fill(h);
  for (int i = 0; i < 2; i++) start(h, "ckpt-2.pt", false, false);
  run_prepared p = run_host_begin(h);
  must_resume_from(h, &p, "ckpt-2.pt");
  run_host_write(h, "ckpt-3.pt", "three", RUN_COMMITTED);
  assert_int_equal(run_start_over(run_host_run(h), false, false, NULL), 0);
  run_host_close(h);
  /* Should the run go back to it for another reason, it begins with nothing against it. */
  mark_commit(h, "ckpt-3.pt", true);
  start(h, "ckpt-2.pt", false, false);
  assert_false(commit_is_bad(h, "ckpt-2.pt"));
}

static void the_last_one_is_never_given_up(void **state) {
  run_host *h = *state;
  commit_file(h, "ckpt-1.pt", "one");
  for (int i = 0; i < 6; i++) start(h, "ckpt-1.pt", false, false);
  assert_false(commit_is_bad(h, "ckpt-1.pt"));
  assert_true(run_host_logged(h, "there is no older one"));
}

static void move_in_top(run_host *h, const char *from, const char *to) {
  const char *top = run_host_top(h);
  assert_int_equal(rename(tmpdir_path(top, from), tmpdir_path(top, to)), 0);
}

/* Both stores have the same numbers for the same names: what failed from the one says nothing of
 * the other. */
static void what_failed_from_one_target_is_not_held_against_another(void **state) {
  run_host *h = *state;
  fill(h);
  move_in_top(h, "store", "first");
  assert_int_equal(unlink(run_host_dir(h, "ckpt-1.pt")), 0);
  assert_int_equal(unlink(run_host_dir(h, "ckpt-2.pt")), 0);
  fill(h);
  for (int i = 0; i < 3; i++) start(h, "ckpt-2.pt", false, false);
  move_in_top(h, "store", "second");
  move_in_top(h, "first", "store");
  start(h, "ckpt-2.pt", false, false);
  assert_false(commit_is_bad(h, "ckpt-2.pt"));
}

static void a_torn_record_is_no_reason_not_to_start(void **state) {
  run_host *h = *state;
  fill(h);
  write_file(run_host_state(h, "starts.json"), "{\"format\":1,");
  start(h, "ckpt-2.pt", false, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(after_three_failed_starts_the_one_before_is_taken),
      WITH_HOST(the_number_is_the_hosts_to_choose),
      WITH_HOST(never_is_never),
      WITH_HOST(an_end_from_outside_is_no_failure),
      WITH_HOST(one_good_end_forgets_the_bad_ones),
      WITH_HOST(what_saved_something_before_it_failed_is_no_failed_start),
      WITH_HOST(the_last_one_is_never_given_up),
      WITH_HOST(what_failed_from_one_target_is_not_held_against_another),
      WITH_HOST(a_torn_record_is_no_reason_not_to_start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
