#include "with_cmocka.h"

#include "base/names.h"

static void a_list_holds_copies_in_the_order_in_which_they_came(void **state) {
  names n = {0};
  char name[] = "b";
  assert_true(names_add(&n, name));
  name[0] = 'a';
  assert_true(names_add(&n, name));
  assert_int_equal(n.count, 2);
  assert_string_equal(n.at[0], "b");
  assert_string_equal(n.at[1], "a");
  names_free(&n);
}

static void a_name_is_put_where_it_is_told(void **state) {
  names n = {0};
  assert_true(names_insert(&n, 0, "c"));
  assert_true(names_insert(&n, 0, "a"));
  assert_true(names_insert(&n, 1, "b"));
  assert_true(names_insert(&n, 3, "d"));
  for (size_t i = 0; i < 4; i++) assert_int_equal(n.at[i][0], 'a' + (int)i);
  names_free(&n);
}

static void a_sorted_list_finds_what_it_has(void **state) {
  names n = {0};
  char name[2] = "?";
  for (int i = 0; i < 26; i++) {
    name[0] = (char)('a' + i * 7 % 26);
    assert_true(names_add(&n, name));
  }
  names_sort(&n);
  for (int c = 'a'; c <= 'z'; c++) {
    name[0] = (char)c;
    assert_true(names_has(&n, name));
  }
  assert_false(names_has(&n, ""));
  assert_false(names_has(&n, "aa"));
  assert_false(names_has(&n, "{"));
  names_free(&n);
}

static void the_order_is_that_of_the_bytes(void **state) {
  names n = {0};
  assert_true(names_add(&n, "\xc3\xa4"));
  assert_true(names_add(&n, "a/b"));
  assert_true(names_add(&n, "a-b"));
  names_sort(&n);
  assert_string_equal(n.at[0], "a-b");
  assert_string_equal(n.at[2], "\xc3\xa4");
  names_free(&n);
}

static void what_is_there_twice_is_there_once(void **state) {
  static const char *const given[] = {"b", "a", "b", "c", "a", "b"};
  names n = {0};
  for (size_t i = 0; i < 6; i++) assert_true(names_add(&n, given[i]));
  names_sort_unique(&n);
  assert_int_equal(n.count, 3);
  for (size_t i = 0; i < 3; i++) assert_int_equal(n.at[i][0], 'a' + (int)i);
  names_free(&n);
}

static void an_empty_list_is_sorted_searched_and_freed(void **state) {
  names n = {0};
  names_sort_unique(&n);
  assert_false(names_has(&n, "a"));
  names_free(&n);
  names_free(&n);
  assert_true(names_add(&n, "a"));
  names_free(&n);
}

static void a_list_can_be_handed_on_and_taken_as_one_that_ends_with_null(void **state) {
  static const char *const given[] = {"b", "a", NULL};
  names n = {0};
  assert_null(*names_list(&n));
  assert_true(names_add_all(&n, NULL));
  assert_null(*names_list(&n));
  for (int i = 0; i < 20; i++) {
    assert_true(names_add_all(&n, given));
    assert_int_equal(n.count, 2 * i + 2);
    assert_ptr_equal(names_list(&n), n.at);
    assert_null(names_list(&n)[n.count]);
  }
  assert_string_equal(names_list(&n)[39], "a");
  names_free(&n);
  assert_null(*names_list(&n));
}

static void a_table_gives_the_index_of_a_name(void **state) {
  static const char *const table[] = {"file", "dir", "link", NULL};
  assert_int_equal(names_index(table, "file"), 0);
  assert_int_equal(names_index(table, "link"), 2);
  assert_int_equal(names_index(table, "lin"), 3);
}

static void two_tables_are_the_same_in_whatever_order_and_however_often(void **state) {
  static const char *const a[] = {"x", "y", NULL}, *const b[] = {"y", "x", "y", NULL},
                           *const less[] = {"x", NULL}, *const none[] = {NULL};
  assert_true(names_same(a, b));
  assert_true(names_same(b, a));
  assert_false(names_same(a, less));
  assert_false(names_same(less, a));
  assert_false(names_same(NULL, less));
  assert_false(names_same(less, NULL));
  assert_true(names_same(NULL, none));
  assert_true(names_same(NULL, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_list_holds_copies_in_the_order_in_which_they_came),
      cmocka_unit_test(a_name_is_put_where_it_is_told),
      cmocka_unit_test(a_sorted_list_finds_what_it_has),
      cmocka_unit_test(the_order_is_that_of_the_bytes),
      cmocka_unit_test(what_is_there_twice_is_there_once),
      cmocka_unit_test(an_empty_list_is_sorted_searched_and_freed),
      cmocka_unit_test(a_list_can_be_handed_on_and_taken_as_one_that_ends_with_null),
      cmocka_unit_test(a_table_gives_the_index_of_a_name),
      cmocka_unit_test(two_tables_are_the_same_in_whatever_order_and_however_often),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
