#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"

static void what_is_appended_stands_there_and_ends_with_a_nul(void **state) {
  buf b;
  buf_init(&b, 1000);
  buf_str(&b, "one ");
  buf_add(&b, "two\0!", 5);
  buf_fmt(&b, " %d", 3);
  assert_int_equal(b.len, 11);
  assert_memory_equal(b.data, "one two\0! 3", 12);
  assert_int_equal(buf_failed(&b), 0);
  buf_free(&b);
}

static void an_empty_append_makes_an_empty_string(void **state) {
  buf b;
  buf_init(&b, 10);
  assert_null(b.data);
  buf_add(&b, NULL, 0);
  assert_string_equal(b.data, "");
  buf_free(&b);
}

static void the_cap_is_exact(void **state) {
  for (size_t max = 0; max < 300; max++) {
    buf b;
    buf_init(&b, max);
    for (size_t i = 0; i < max; i++) buf_add(&b, "x", 1);
    assert_int_equal(buf_failed(&b), 0);
    assert_true(b.room <= max + 1);
    buf_add(&b, "", 0);
    assert_int_equal(buf_failed(&b), 0);
    buf_add(&b, "x", 1);
    assert_int_equal(buf_failed(&b), ERR_LIMIT);
    assert_int_equal(b.len, max);
    buf_free(&b);
  }
}

static void a_failure_sticks_until_clear(void **state) {
  buf b;
  buf_init(&b, 4);
  buf_str(&b, "12345");
  buf_str(&b, "1");
  buf_fmt(&b, "%d", 1);
  assert_int_equal(buf_failed(&b), ERR_LIMIT);
  assert_int_equal(b.len, 0);
  assert_null(buf_reserve(&b, 1));
  assert_null(buf_take(&b));
  buf_clear(&b);
  buf_str(&b, "1234");
  assert_int_equal(buf_failed(&b), 0);
  assert_string_equal(b.data, "1234");
  buf_free(&b);
}

static void a_formatted_text_past_the_cap_adds_nothing(void **state) {
  buf b;
  buf_init(&b, 6);
  buf_str(&b, "abc");
  buf_fmt(&b, "%s", "defg");
  assert_int_equal(buf_failed(&b), ERR_LIMIT);
  assert_string_equal(b.data, "abc");
  buf_free(&b);
}

static void a_length_near_the_end_of_the_address_space_is_over_the_cap(void **state) {
  buf b;
  buf_init(&b, 100);
  buf_str(&b, "abc");
  assert_null(buf_reserve(&b, SIZE_MAX));
  assert_int_equal(buf_failed(&b), ERR_LIMIT);
  buf_free(&b);
}

static void reserve_and_grown_write_in_place(void **state) {
  buf b;
  buf_init(&b, 100000);
  for (int i = 0; i < 1000; i++) {
    char *to = buf_reserve(&b, 50);
    assert_non_null(to);
    memset(to, 'a' + i % 26, 50);
    buf_grown(&b, 37);
  }
  assert_int_equal(b.len, 37000);
  assert_int_equal(strlen(b.data), 37000);
  assert_int_equal(b.data[36999], 'a' + 999 % 26);
  buf_free(&b);
}

static void take_hands_the_memory_over_and_leaves_an_empty_buffer(void **state) {
  buf b;
  buf_init(&b, 5);
  assert_null(buf_take(&b));
  buf_str(&b, "first");
  char *text = buf_take(&b);
  buf_str(&b, "again");
  assert_string_equal(text, "first");
  assert_string_equal(b.data, "again");
  free(text);
  buf_free(&b);
}

static void a_zeroed_or_freed_buffer_may_be_freed(void **state) {
  buf b = {0};
  buf_free(&b);
  buf_str(&b, "x");
  assert_int_equal(buf_failed(&b), ERR_LIMIT);
  buf_init(&b, 10);
  buf_str(&b, "x");
  buf_free(&b);
  buf_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_appended_stands_there_and_ends_with_a_nul),
      cmocka_unit_test(an_empty_append_makes_an_empty_string),
      cmocka_unit_test(the_cap_is_exact),
      cmocka_unit_test(a_failure_sticks_until_clear),
      cmocka_unit_test(a_formatted_text_past_the_cap_adds_nothing),
      cmocka_unit_test(a_length_near_the_end_of_the_address_space_is_over_the_cap),
      cmocka_unit_test(reserve_and_grown_write_in_place),
      cmocka_unit_test(take_hands_the_memory_over_and_leaves_an_empty_buffer),
      cmocka_unit_test(a_zeroed_or_freed_buffer_may_be_freed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
