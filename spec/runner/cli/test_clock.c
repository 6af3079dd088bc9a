#include "with_cmocka.h"

#include <time.h>

#include "runner/cli/clock.h"

static void it_counts_seconds_and_never_goes_back(void **state) {
  struct timespec t = {.tv_nsec = 20000000};
  double begin = clock_s(), before = begin;
  for (int i = 0; i < 10000; i++) {
    double now = clock_s();
    assert_true(now >= before);
    before = now;
  }
  nanosleep(&t, NULL);
  double passed = clock_s() - begin;
  assert_true(passed >= 0.02 && passed < 60);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_counts_seconds_and_never_goes_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
