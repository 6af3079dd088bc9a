#include "with_cmocka.h"

#include <string.h>

#include "commit/verified.h"

static int setup(void **state) {
  uri where;
  store *s = NULL;
  if (uri_parse("mem://verified", &where, NULL) < 0) return -1;
  if (store_open(&where, io_system(), NULL, &s, NULL) < 0) return -1;
  *state = s;
  return 0;
}

static int teardown(void **state) {
  store_close(*state);
  return 0;
}

static uint64_t known(store *s, const char *prefix) {
  uint64_t n = 0;
  assert_int_equal(verified_read(s, prefix, &n, NULL), 0);
  return n;
}

static void nothing_is_known_before_the_first(void **state) {
  assert_true(known(*state, "") == RUNLOG_NONE);
}

static void the_newest_that_verified_is_remembered_for_each_group(void **state) {
  store *s = *state;
  assert_int_equal(verified_note(s, "", 7, NULL), 0);
  assert_int_equal(verified_note(s, "", 3, NULL), 0);
  assert_int_equal(verified_note(s, "exp/T1", 5, NULL), 0);
  assert_int_equal(known(s, ""), 7);
  assert_int_equal(known(s, "exp/T1"), 5);
  assert_int_equal(verified_note(s, "", 9, NULL), 0);
  assert_int_equal(known(s, ""), 9);
}

static void what_cannot_be_read_may_be_any_of_them(void **state) {
  static const char *const texts[] = {"",
                                      "{",
                                      "[]",
                                      "{}",
                                      "{\"commit\":-1}",
                                      "{\"commit\":\"7\"}",
                                      "{\"commit\":1e99}",
                                      "{\"format\":9,\"reader\":9,\"commit\":7}"};
  store *s = *state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    err e = {0};
    uint64_t n;
    assert_int_equal(
        s->ops->put(s, ".ckpt/verified", texts[i], strlen(texts[i]), STORE_REPLACE, NULL), 0);
    assert_int_equal(verified_read(s, "", &n, &e), ERR_FORMAT);
    assert_non_null(strstr(e.text, ".ckpt/verified"));
    assert_int_equal(verified_note(s, "", 7, NULL), ERR_FORMAT); /* nor is it written over */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(nothing_is_known_before_the_first, setup, teardown),
      cmocka_unit_test_setup_teardown(the_newest_that_verified_is_remembered_for_each_group, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(what_cannot_be_read_may_be_any_of_them, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
