#include "with_cmocka.h"

#include "plan/deadline.h"

enum { MIB = 1 << 20 };

static const int64_t second = 1000000000;

static bool is_about(double a, double b) {
  return a > b - 1e-9 && a < b + 1e-9;
}

static void nobody_knows_before_a_save_was_seen(void **state) {
  (void)state;
  deadline_pace pace = {0};
  assert_true(deadline_takes(&pace, 1) < 0);
  assert_true(deadline_takes(&pace, 0) < 0);
  assert_false(deadline_fits(-1, 1000 * second));
  deadline_note(&pace, MIB, 0); /* a clock that stood still has measured nothing */
  assert_true(deadline_takes(&pace, 1) < 0);
}

static void a_save_takes_as_long_as_those_before_by_its_size(void **state) {
  (void)state;
  deadline_pace pace = {0};
  deadline_note(&pace, 100 * MIB, 10 * second);
  assert_true(is_about(deadline_takes(&pace, 100 * MIB), 10));
  assert_true(is_about(deadline_takes(&pace, 250 * MIB), 25));
  assert_true(is_about(deadline_takes(&pace, 5), 10)); /* none was ever shorter */
  deadline_note(&pace, 0, second);
  assert_true(is_about(deadline_takes(&pace, 5), 1));
  assert_true(deadline_takes(&pace, 100 * MIB) > 10);
}

static void what_the_store_does_now_counts_most(void **state) {
  (void)state;
  deadline_pace pace = {0};
  for (int i = 0; i < 50; i++) deadline_note(&pace, 100 * MIB, second);
  for (int i = 0; i < 6; i++) deadline_note(&pace, 100 * MIB, 20 * second);
  assert_in_range((int)deadline_takes(&pace, 100 * MIB), 18, 20);
}

static void there_must_be_something_to_spare(void **state) {
  (void)state;
  assert_true(deadline_fits(0, 0));
  assert_false(deadline_fits(0, -1));
  assert_true(deadline_fits(8, 10 * second));
  assert_false(deadline_fits(8.1, 10 * second));
  assert_true(deadline_fits(1e9, INT64_MAX));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nobody_knows_before_a_save_was_seen),
      cmocka_unit_test(a_save_takes_as_long_as_those_before_by_its_size),
      cmocka_unit_test(what_the_store_does_now_counts_most),
      cmocka_unit_test(there_must_be_something_to_spare),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
