/* Many runs in one engine: what each costs while nothing happens. */
#include "with_cmocka.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "api/ckpt_state.h"
#include "tmpdir.h"

enum { RUNS = 24, DISPATCHES = 400 };

static ckpt *engine;
static ckpt_run *runs[RUNS];

static unsigned descriptors(void) {
  unsigned count = 0;
  DIR *d = opendir("/proc/self/fd");
  assert_non_null(d);
  while (readdir(d)) count++;
  closedir(d);
  return count;
}

static void open_runs(const char *top, int count) {
  char dir[64], to[64];
  assert_int_equal(ckpt_open(&engine, NULL), 0);
  for (int i = 0; i < count; i++) {
    snprintf(dir, sizeof dir, "dir-%d", i);
    snprintf(to, sizeof to, "store-%d", i);
    ckpt_run_options o = {
        .size = sizeof o, .dir = tmpdir_path(top, dir), .to = tmpdir_path(top, to), .run_id = "r"};
    if (ckpt_run_open(engine, &runs[i], &o) < 0 || ckpt_run_start(runs[i]) < 0)
      fail_msg("run %d: %s", i, ckpt_error(engine));
  }
}

static void close_runs(int count) {
  for (int i = 0; i < count; i++) ckpt_run_close(runs[i]);
  ckpt_close(engine);
}

static void one_that_has_nothing_to_do_is_not_stepped_for_the_others(void **state) {
  uint64_t before[RUNS], idle = 0;
  open_runs(*state, RUNS);
  for (int i = 0; i < DISPATCHES; i++) ckpt_dispatch(engine, 5); /* till they are at rest */
  for (int i = 0; i < RUNS; i++) before[i] = runs[i]->steps;
  for (int i = 0; i < DISPATCHES; i++) {
    make_dir(tmpdir_path(*state, "dir-0/d"));
    ckpt_dispatch(engine, 100);
    remove(tmpdir_path(*state, "dir-0/d"));
    ckpt_dispatch(engine, 100);
  }
  for (int i = 1; i < RUNS; i++) idle += runs[i]->steps - before[i];
  assert_true(runs[0]->steps - before[0] >= DISPATCHES);
  assert_true(idle < DISPATCHES); /* they were RUNS - 1 times as many as those of the first */
  close_runs(RUNS);
}

static void a_run_has_no_more_descriptors_than_the_limits_say(void **state) {
  open_runs(*state, 1);
  unsigned one = descriptors();
  close_runs(1);
  open_runs(*state, 11);
  unsigned eleven = descriptors();
  close_runs(11);
  assert_true(eleven - one <= 10 * 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(one_that_has_nothing_to_do_is_not_stepped_for_the_others,
                                      tmpdir_set_up, tmpdir_tear_down),
      cmocka_unit_test_setup_teardown(a_run_has_no_more_descriptors_than_the_limits_say,
                                      tmpdir_set_up, tmpdir_tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
