#include "with_cmocka.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/vec.h"

typedef struct list {
  int *at;
  size_t count, room;
} list;

static void there_is_room_for_one_more_each_time(void **state) {
  list l = {0};
  for (int i = 0; i < 1000; i++) {
    assert_true(VEC_ROOM(l.at, l.count, l.room));
    assert_true(l.room > l.count);
    l.at[l.count++] = i;
  }
  for (int i = 0; i < 1000; i++) assert_int_equal(l.at[i], i);
  free(l.at);
}

static void an_array_moves_seldom(void **state) {
  list l = {0};
  size_t moves = 0;
  for (size_t room = 0; l.count < 100000; l.count++) {
    assert_true(VEC_ROOM(l.at, l.count, l.room));
    moves += l.room != room;
    room = l.room;
  }
  assert_in_range(moves, 1, 100); /* where short ones move each time, too */
  free(l.at);
}

static void what_does_not_fit_leaves_all_as_before(void **state) {
  int item = 7, *at = &item;
  size_t room = SIZE_MAX / 2 + 1;
  assert_false(VEC_ROOM(at, room, room)); /* the number of items */
  assert_int_equal(room, SIZE_MAX / 2 + 1);
  room = SIZE_MAX / 4;
  assert_false(VEC_ROOM(at, room, room)); /* their bytes */
  assert_int_equal(room, SIZE_MAX / 4);
  assert_ptr_equal(at, &item);
}

#ifndef CKPT_SANITIZED /* which ends the program instead */
static void without_memory_all_is_as_before(void **state) {
  int *at = NULL;
  size_t room = 0;
  assert_false(vec_grow((void *)&at, 0, &room, SIZE_MAX / 10));
  assert_null(at);
  assert_int_equal(room, 0);
}
#endif

static int order(const void *key, const void *item) {
  int a = *(const int *)key, b = *(const int *)item;
  return (a > b) - (a < b);
}

static void the_place_is_that_of_the_first_which_does_not_come_before(void **state) {
  static const int items[] = {1, 3, 3, 3, 5, 9};
  static const struct {
    int key;
    size_t place;
    bool there;
  } cases[] = {{0, 0, false}, {1, 0, true},  {2, 1, false}, {3, 1, true},  {4, 4, false},
               {5, 4, true},  {7, 5, false}, {9, 5, true},  {10, 6, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bool there;
    assert_int_equal(vec_place(&cases[i].key, items, 6, sizeof *items, order, &there),
                     cases[i].place);
    assert_int_equal(there, cases[i].there);
    const int *found = vec_find(&cases[i].key, items, 6, sizeof *items, order);
    assert_ptr_equal(found, cases[i].there ? items + cases[i].place : NULL);
  }
}

static void each_of_many_is_found(void **state) {
  int items[100];
  for (int i = 0; i < 100; i++) items[i] = 2 * i;
  for (size_t count = 0; count <= 100; count++)
    for (int key = -1; key < 201; key++) {
      bool within = key >= 0 && key % 2 == 0 && (size_t)key / 2 < count;
      assert_int_equal(vec_find(&key, items, count, sizeof *items, order) != NULL, within);
    }
}

static void items_are_found_by_the_text_or_the_number_that_they_begin_with(void **state) {
  static const struct {
    const char *name;
    int value;
  } named[] = {{"a", 1}, {"b", 2}, {"c", 3}};
  static const struct {
    uint64_t n;
    int value;
  } numbered[] = {{1, 1}, {7, 2}, {UINT64_MAX, 3}};
  static const char *const texts[] = {"a", "b", "c"};
  const uint64_t seven = 7, eight = 8;
  assert_ptr_equal(vec_find("b", named, 3, sizeof *named, vec_by_text), named + 1);
  assert_null(vec_find("bb", named, 3, sizeof *named, vec_by_text));
  assert_ptr_equal(vec_find("c", texts, 3, sizeof *texts, vec_by_text), texts + 2);
  assert_ptr_equal(vec_find(&seven, numbered, 3, sizeof *numbered, vec_by_number), numbered + 1);
  assert_null(vec_find(&eight, numbered, 3, sizeof *numbered, vec_by_number));
}

static void nothing_is_in_no_items(void **state) {
  int key = 1;
  bool there = true;
  assert_null(vec_find(&key, NULL, 0, sizeof key, order));
  assert_int_equal(vec_place(&key, NULL, 0, sizeof key, order, &there), 0);
  assert_false(there);
  assert_int_equal(vec_place(&key, NULL, 0, sizeof key, order, NULL), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(there_is_room_for_one_more_each_time),
      cmocka_unit_test(an_array_moves_seldom),
      cmocka_unit_test(what_does_not_fit_leaves_all_as_before),
#ifndef CKPT_SANITIZED
      cmocka_unit_test(without_memory_all_is_as_before),
#endif
      cmocka_unit_test(the_place_is_that_of_the_first_which_does_not_come_before),
      cmocka_unit_test(each_of_many_is_found),
      cmocka_unit_test(items_are_found_by_the_text_or_the_number_that_they_begin_with),
      cmocka_unit_test(nothing_is_in_no_items),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
