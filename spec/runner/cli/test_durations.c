#include "with_cmocka.h"

#include <math.h>
#include <stdio.h>

#include "runner/cli/durations.h"

static void a_time_is_a_number_and_perhaps_a_unit(void **state) {
  static const struct {
    const char *text;
    double seconds;
  } good[] = {{"0", 0},
              {"2.5", 2.5},
              {".5", .5},
              {"30s", 30},
              {"5m", 300},
              {"1.5h", 5400},
              {"24h", 86400},
              {"7d", 604800},
              {"36500d", 36500 * 86400.0},
              {"inf", INFINITY},
              {"99999999999d", 99999999999 * 86400.0}};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    double s = -1;
    if (!duration_read(good[i].text, &s) || s != good[i].seconds)
      fail_msg("%s: %g", good[i].text, s);
  }
}

static void nothing_else_is_a_time(void **state) {
  static const char *const bad[] = {"",         " ",    "s",   "x",   "-1",  "+1",   "nan",
                                    "infinity", "-inf", "1e3", "0x1", "1 s", " 1",   "1.2.3",
                                    "1ss",      "1w",   "1S",  ".",   "1,5", "5m3s", "1s "};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    double s;
    if (duration_read(bad[i], &s)) fail_msg("taken: %s", bad[i]);
  }
}

static void a_share_is_per_cent_or_a_fraction(void **state) {
  double share;
  assert_true(share_read("25%", &share) && share == 0.25);
  assert_true(share_read("0.25", &share) && share == 0.25);
  assert_true(share_read("100%", &share) && share == 1);
  assert_true(share_read("1.0", &share) && share == 1);
  assert_true(share_read("0.5%", &share) && share == 0.005);
  static const char *const bad[] = {"",     "%",   "1",   "3",    "0",    "0%", "0.0",
                                    "101%", "1.1", "-5%", "25 %", "25%%", "x",  "nan"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (share_read(bad[i], &share)) fail_msg("taken: %s", bad[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_time_is_a_number_and_perhaps_a_unit),
      cmocka_unit_test(nothing_else_is_a_time),
      cmocka_unit_test(a_share_is_per_cent_or_a_fraction),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
