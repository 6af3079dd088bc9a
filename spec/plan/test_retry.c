#include "with_cmocka.h"

#include "base/seconds.h"
#include "plan/retry.h"

/* Seconds until the next try; -1: there is none. */
static int64_t pause_of(retry_facts f) {
  int64_t ns;
  return retry_again(&f, &ns) ? ns / SECOND_NS : -1;
}

static void the_pause_grows_to_a_minute(void **state) {
  const int64_t pauses[] = {1, 2, 4, 8, 16, 32, 60, 60};
  for (unsigned i = 0; i < sizeof pauses / sizeof *pauses; i++)
    assert_int_equal(pause_of((retry_facts){.status = ERR_TIMEOUT, .tries = i + 1, .most = 99}),
                     pauses[i]);
}

static void when_time_is_short_each_second_counts(void **state) {
  assert_int_equal(
      pause_of((retry_facts){.status = ERR_TIMEOUT, .tries = 5, .most = 99, .short_of_time = true}),
      1);
}

static void nothing_is_tried_for_ever(void **state) {
  assert_int_equal(pause_of((retry_facts){.status = ERR_TIMEOUT, .tries = 8, .most = 8}), -1);
  assert_int_equal(
      pause_of((retry_facts){
          .status = ERR_TIMEOUT, .tries = 8, .most = 8, .remedy = POLICY_RETRY, .seconds = 1}),
      -1);
}

static void a_policy_overrules_the_kind_of_the_error_but_a_fatal_one(void **state) {
  retry_facts f = {.status = ERR_INVAL, .tries = 1, .most = 8};
  assert_int_equal(pause_of(f), -1);
  f.remedy = POLICY_RETRY;
  f.seconds = 7;
  assert_int_equal(pause_of(f), 7);
  f.seconds = 1e9;
  assert_int_equal(pause_of(f), 3600);
  f.status = ERR_FENCED;
  assert_int_equal(pause_of(f), -1);
  f = (retry_facts){.status = ERR_TIMEOUT, .tries = 1, .most = 8, .remedy = POLICY_GIVE_UP};
  assert_int_equal(pause_of(f), -1);
  f.remedy = POLICY_ABORT;
  assert_int_equal(pause_of(f), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_pause_grows_to_a_minute),
      cmocka_unit_test(when_time_is_short_each_second_counts),
      cmocka_unit_test(nothing_is_tried_for_ever),
      cmocka_unit_test(a_policy_overrules_the_kind_of_the_error_but_a_fatal_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
