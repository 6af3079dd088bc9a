/* The deadline of a job: what a run takes for it, by what its record says is left at the start. */
#include "with_cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "ckpt.h"
#include "tmpdir.h"

static int without_slurm(void **state) {
  unsetenv("SLURM_JOB_ID");
  unsetenv("SLURM_JOB_END_TIME");
  int rc = tmpdir_set_up(state);
  if (rc == 0) make_dir(tmpdir_path(*state, "dir"));
  return rc;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, without_slurm, tmpdir_tear_down)

static void in_slurm(const char *end) {
  setenv("SLURM_JOB_ID", "17", 1);
  setenv("SLURM_JOB_END_TIME", end, 1);
}

static void in_slurm_for(int seconds) {
  char end[32];
  snprintf(end, sizeof end, "%lld", (long long)time(NULL) + seconds);
  in_slurm(end);
}

/* Opens a run and starts it; its record is `<top>/record`. */
static int begin(ckpt *c, const char *top, double deadline_s, ckpt_run **run) {
  ckpt_prepare_options how = {.size = sizeof how};
  ckpt_prepared prepared = {.size = sizeof prepared};
  remove(tmpdir_path(top, "record"));
  ckpt_run_options o = {.size = sizeof o,
                        .dir = tmpdir_path(top, "dir"),
                        .to = tmpdir_path(top, "store"),
                        .run_id = "test",
                        .record = tmpdir_path(top, "record"),
                        .deadline_s = deadline_s};
  int rc = ckpt_run_open(c, run, &o);
  if (rc == 0) rc = ckpt_run_prepare(*run, &how, &prepared);
  return rc == 0 ? ckpt_run_start(*run) : rc;
}

/* Seconds until the deadline that such a run has at its start; negative: it knows of none. */
static double left_of(const char *top, double deadline_s) {
  ckpt *c = NULL;
  ckpt_run *run = NULL;
  json_t *start = NULL;
  assert_int_equal(ckpt_open(&c, NULL), 0);
  if (begin(c, top, deadline_s, &run) < 0) fail_msg("%s", ckpt_error(c));
  ckpt_run_close(run);
  ckpt_close(c);
  char *text = read_file(tmpdir_path(top, "record"), NULL);
  assert_non_null(text);
  assert_int_equal(js_parse(text, strcspn(text, "\n"), "record", &start, NULL), 0);
  assert_string_equal(json_string_value(json_object_get(start, "event")), "start");
  const json_t *left = json_object_get(start, "left");
  double seconds = left ? json_number_value(left) : -1;
  json_decref(start);
  free(text);
  return seconds;
}

static void is_about(double wanted, double seconds) {
  if (seconds > wanted || seconds < wanted - 60) fail_msg("%g s, not %g", seconds, wanted);
}

static void a_deadline_counts_from_the_call_on(void **state) {
  is_about(600, left_of(*state, 600));
}

static void nobody_knows_of_one_that_nobody_told(void **state) {
  assert_true(left_of(*state, 0) < 0);
  setenv("SLURM_JOB_END_TIME", "4102444800", 1); /* but this is no job */
  assert_true(left_of(*state, 0) < 0);
}

static void the_end_that_slurm_says_is_one(void **state) {
  in_slurm_for(1800);
  is_about(1800, left_of(*state, 0));
  in_slurm_for(-5);
  is_about(0, left_of(*state, 0));
}

static void an_end_that_is_no_time_is_none(void **state) {
  static const char *const ends[] = {"",
                                     "N/A",
                                     "NONE",
                                     "99999999999",
                                     "0",
                                     "-5",
                                     "-9999999999",
                                     "+5",
                                     " 5",
                                     "1700000000 s",
                                     "99999999999999999999999"};
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    in_slurm(ends[i]);
    double left = left_of(*state, 0);
    if (left >= 0) fail_msg("'%s': %g s are left", ends[i], left);
  }
}

static void the_users_word_counts_before_slurms(void **state) {
  in_slurm_for(1800);
  is_about(60, left_of(*state, 60));
  assert_true(left_of(*state, -1) < 0);
  assert_true(left_of(*state, (double)INFINITY) < 0);
}

static void what_is_no_time_is_refused(void **state) {
  ckpt *c = NULL;
  ckpt_run *run = NULL;
  assert_int_equal(ckpt_open(&c, NULL), 0);
  assert_int_equal(begin(c, *state, (double)NAN, &run), CKPT_EINVAL);
  assert_null(run);
  assert_non_null(strstr(ckpt_error(c), "deadline"));
  ckpt_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_deadline_counts_from_the_call_on),  TEST(nobody_knows_of_one_that_nobody_told),
      TEST(the_end_that_slurm_says_is_one),      TEST(an_end_that_is_no_time_is_none),
      TEST(the_users_word_counts_before_slurms), TEST(what_is_no_time_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
