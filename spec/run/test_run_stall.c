#include "with_cmocka.h"

#include <string.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static int setup(void **state) {
  run_host *h = *state = run_host_new(NULL);
  run_host_options(h)->stall_ns = (int64_t)60 * 1000000000;
  return 0;
}

/* A save that stands still in the middle of its upload. */
static void hold_a_save(run_host *h) {
  run_host_begin(h);
  run_host_hold_save(h, "ckpt-1.pt", "content");
  run_host_step(h, NULL);
}

static void a_save_that_stands_still_is_named_with_what_it_waits_for(void **state) {
  run_host *h = *state;
  hold_a_save(h);
  assert_false(run_host_logged(h, "no progress"));
  run_host_skip(h, 59);
  run_host_step(h, NULL);
  assert_false(run_host_logged(h, "no progress"));
  run_host_skip(h, 2);
  run_host_step(h, NULL);
  assert_true(run_host_logged(h, "ckpt-1.pt: no progress for 61 s"));
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
}

static void the_host_is_woken_to_look(void **state) {
  run_host *h = *state;
  hold_a_save(h);
  assert_true(run_host_due(h) <= (int64_t)60 * 1000000000);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  run_host_idle(h);
  assert_true(run_host_due(h) > (int64_t)60 * 1000000000); /* nothing runs: nothing to look at */
}

static void a_save_that_stands_still_for_too_long_is_stopped_and_tried_again(void **state) {
  run_host *h = *state;
  hold_a_save(h);
  for (int i = 0; i < 11; i++) {
    run_host_skip(h, 60);
    run_host_step(h, NULL);
  }
  run_host_hold(h, false);
  run_host_until(h, RUN_RETRYING, "ckpt-1.pt");
  const run_seen *seen = run_host_last(h, RUN_RETRYING, "ckpt-1.pt");
  assert_int_equal(seen->status, ERR_TIMEOUT);
  assert_non_null(strstr(seen->reason, "nothing moved"));
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  assert_true(run_host_holds(h, "ckpt-1.pt", "content"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_save_that_stands_still_is_named_with_what_it_waits_for,
                                      setup, run_host_tear_down),
      cmocka_unit_test_setup_teardown(the_host_is_woken_to_look, setup, run_host_tear_down),
      cmocka_unit_test_setup_teardown(
          a_save_that_stands_still_for_too_long_is_stopped_and_tried_again, setup,
          run_host_tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
