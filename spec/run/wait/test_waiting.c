#include "run/wait/waiting.h"

#include "with_cmocka.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static atomic_int lines;
static char first[256];

static void take(void *ctx, log_level level, const char *text) {
  assert_int_equal(level, LOG_WARN);
  if (atomic_fetch_add(&lines, 1) == 0) snprintf(first, sizeof first, "%s", text);
}

static const log_sink sink = {.fn = take, .min = LOG_DEBUG};

static void nap(long ms) {
  nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void what_takes_long_is_named_again_and_again(void **state) {
  atomic_store(&lines, 0);
  waiting *w = waiting_begin(&sink, 10000000, "reading the logs at file:///nfs");
  assert_non_null(w);
  for (int i = 0; i < 1000 && atomic_load(&lines) < 3; i++) nap(5);
  waiting_end(w);
  assert_true(atomic_load(&lines) >= 3);
  assert_non_null(strstr(first, "reading the logs at file:///nfs"));
}

static void what_is_over_soon_is_not_mentioned(void **state) {
  atomic_store(&lines, 0);
  for (int i = 0; i < 50; i++) waiting_end(waiting_begin(&sink, (int64_t)60 * 1000000000, "x"));
  waiting_end(NULL);
  assert_int_equal(atomic_load(&lines), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_takes_long_is_named_again_and_again),
      cmocka_unit_test(what_is_over_soon_is_not_mentioned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
