/* What two chains differ in: so many are noted, and the others counted, by their group. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/policies/changes.h"

static void add(changes *c, const char *group, unsigned count) {
  const policy_item item = {.name = "ckpt-1", .dir = "ckpt-1", .number = 1};
  const policy_kept before = {.keep = true}, after = {.keep = false};
  for (unsigned i = 0; i < count; i++) changes_add(c, group, &item, &before, &after);
}

static void what_is_too_much_is_counted(void **state) {
  changes c = {0};
  add(&c, "a", CHANGES_MOST - 10);
  add(&c, "b", 1000);
  assert_int_equal(c.count, CHANGES_MOST);
  assert_int_equal(changes_all(&c), CHANGES_MOST - 10 + 1000);
  changes_clear(&c, "b"); /* its place is free, and none of it is counted */
  assert_int_equal(changes_all(&c), CHANGES_MOST - 10);
  add(&c, "b", 5);
  assert_int_equal(c.count, CHANGES_MOST - 5);
  add(&c, "a", 7);
  assert_int_equal(c.count, CHANGES_MOST);
  changes_clear(&c, "a");
  assert_int_equal(changes_all(&c), 5);
  changes_clear(&c, NULL);
  assert_int_equal(changes_all(&c), 0);
  changes_free(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_too_much_is_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
