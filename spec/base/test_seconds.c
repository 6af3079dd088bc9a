#include "with_cmocka.h"

#include <math.h>
#include <string.h>

#include "base/seconds.h"
#include "manifest_make.h"

static int64_t ns_of(double seconds) {
  int64_t ns = -1;
  err e = {0};
  if (seconds_to_ns(seconds, "quiet", &ns, &e) < 0) fail_msg("%g: %s", seconds, e.text);
  return ns;
}

static void seconds_become_nanoseconds(void **state) {
  assert_true(ns_of(0) == 0);
  assert_true(ns_of(-0.0) == 0);
  assert_true(ns_of(1.5) == 1500000000);
  assert_true(ns_of(86400) == 86400 * SECOND_NS);
  assert_true(ns_of(1e-9) == 1);
}

static void a_time_above_0_never_becomes_none(void **state) {
  assert_true(ns_of(1e-10) == 1);
  assert_true(ns_of(5e-324) == 1);
}

static void what_is_too_long_is_for_ever(void **state) {
  static const double long_ones[] = {INFINITY, 1e300, 1e10, 9223372036.854776, 0x1p1023};
  for (size_t i = 0; i < sizeof long_ones / sizeof *long_ones; i++)
    assert_true(ns_of(long_ones[i]) == SECONDS_FOREVER);
  assert_true(ns_of(9223372036) < SECONDS_FOREVER);
}

static void what_is_no_time_is_refused_with_its_name(void **state) {
  static const double bad[] = {NAN, -NAN, -1, -1e300, -INFINITY, -5e-324};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    int64_t ns = 7;
    err e = {0};
    assert_int_equal(seconds_to_ns(bad[i], "grace_delete", &ns, &e), ERR_INVAL);
    assert_int_equal(e.code, ERR_INVAL);
    assert_non_null(strstr(e.text, "grace_delete: "));
    assert_non_null(strstr(e.text, "give 0 or more seconds"));
    assert_true(ns == 7);
  }
}

static void zero_may_stand_for_a_default_and_less_for_none(void **state) {
  int64_t ns;
  assert_int_equal(seconds_or(0, 42, "stall", &ns, NULL), 0);
  assert_true(ns == 42);
  assert_int_equal(seconds_or(2, 42, "stall", &ns, NULL), 0);
  assert_true(ns == 2 * SECOND_NS);
  assert_int_equal(seconds_or(-1, 42, "stall", &ns, NULL), ERR_INVAL);
  assert_int_equal(seconds_or(NAN, 42, "stall", &ns, NULL), ERR_INVAL);
  assert_int_equal(seconds_or_none(-1, 42, "quiet", &ns, NULL), 0);
  assert_true(ns == 0);
  assert_int_equal(seconds_or_none(0, 42, "quiet", &ns, NULL), 0);
  assert_true(ns == 42);
  assert_int_equal(seconds_or_none(INFINITY, 42, "quiet", &ns, NULL), 0);
  assert_true(ns == SECONDS_FOREVER);
  assert_int_equal(seconds_or_none(NAN, 42, "quiet", &ns, NULL), ERR_INVAL);
}

/* Every pattern of 64 bits is a double: no result is negative, a longer time is never a shorter
 * one, and what comes back is within a rounding of what was given. */
static void any_double_is_a_time_or_refused(void **state) {
  uint64_t seed = 20261122;
  double before = 0;
  for (int i = 0; i < 2000000; i++) {
    uint64_t bits = next_random(&seed);
    double s;
    int64_t ns = -1;
    memcpy(&s, &bits, sizeof s);
    if (i % 4 == 0) s = (double)(bits >> 20) / 1e6; /* and some that people give */
    int rc = seconds_to_ns(s, "x", &ns, NULL);
    if (isnan(s) || s < 0) {
      assert_int_equal(rc, ERR_INVAL);
      assert_true(ns == -1);
      continue;
    }
    assert_int_equal(rc, 0);
    assert_true(ns >= 0 && (ns > 0) == (s > 0));
    assert_true(s <= before ? ns <= ns_of(before) : ns >= ns_of(before));
    if (ns < SECONDS_FOREVER && s > 1e-9)
      assert_true(fabs(seconds_of_ns(ns) - s) <= 1e-9 + s * 1e-15);
    if (ns == SECONDS_FOREVER) assert_true(s >= 9.2e9 && isinf(seconds_of_ns(ns)));
    before = s;
  }
}

static void no_moment_comes_after_for_ever(void **state) {
  assert_true(seconds_later(5, 7) == 12);
  assert_true(seconds_later(5, SECONDS_FOREVER) == SECONDS_FOREVER);
  assert_true(seconds_later(SECONDS_FOREVER, 1) == SECONDS_FOREVER);
  assert_true(seconds_later(INT64_MAX - 3, 3) == INT64_MAX);
  assert_true(seconds_left(5, 7, 10) == 2);
  assert_true(seconds_left(5, 7, 13) == 0);
  assert_true(seconds_left(-5, SECONDS_FOREVER, 13) == SECONDS_FOREVER);
  assert_true(seconds_left(INT64_MAX - 3, 9, 13) == SECONDS_FOREVER);
  assert_true(seconds_left(5, 7, INT64_MIN) == SECONDS_FOREVER);
  assert_true(seconds_left(INT64_MIN, 7, INT64_MAX) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(seconds_become_nanoseconds),
      cmocka_unit_test(a_time_above_0_never_becomes_none),
      cmocka_unit_test(what_is_too_long_is_for_ever),
      cmocka_unit_test(what_is_no_time_is_refused_with_its_name),
      cmocka_unit_test(zero_may_stand_for_a_default_and_less_for_none),
      cmocka_unit_test(any_double_is_a_time_or_refused),
      cmocka_unit_test(no_moment_comes_after_for_ever),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
