#include "with_cmocka.h"

#include <string.h>

#include "event/frameworks.h"
#include "event/rules.h"

static void a_file_that_other_things_are_called_is_told_by_its_first_bytes(void **state) {
  char zip[FRAMEWORK_HEAD] = "PK\3\4";
  memcpy(zip + 30, "data", 4);
  assert_true(framework_begins("a/best_model.zip", zip, sizeof zip));
  assert_false(framework_begins("a/best_model.zip", zip, 32));
  memcpy(zip + 30, "imgs", 4);
  assert_false(framework_begins("a/best_model.zip", zip, sizeof zip));
  static const char tree[] = "tree\nversion=v4\n";
  assert_true(framework_begins("lgb_3.txt", tree, sizeof tree));
  assert_true(framework_begins("model.txt.snapshot_iter_5", tree, sizeof tree));
  assert_false(framework_begins("lgb_3.zip", tree, sizeof tree));
  assert_false(framework_begins("log.txt", "tree 3\n", 7));
  assert_false(framework_begins("log.txt", "", 0));
}

static size_t count_of(const char *const *list) {
  size_t n = 0;
  while (list[n]) n++;
  return n;
}

static void the_rules_have_all_that_is_in_the_table(void **state) {
  const rules *r = rules_builtin();
  size_t units = 0, proven = 0, temporary = 0, markers = 0;
  for (const framework *f = frameworks(); f->name; f++) {
    units += count_of(f->units);
    proven += count_of(f->proven);
    temporary += count_of(f->temporary);
    for (const framework_marker *m = f->markers; m->name; m++) {
      assert_true(markers < r->marker_count);
      assert_string_equal(r->markers[markers++].name, m->name);
    }
  }
  assert_int_equal(count_of(r->units), units);
  assert_int_equal(count_of(r->proven), proven);
  assert_int_equal(count_of(r->excludes), temporary);
  assert_int_equal(r->marker_count, markers);
  assert_true(units > 30 && temporary > 10 && markers > 5);
}

static void no_list_of_a_row_is_cut_off(void **state) {
  for (const framework *f = frameworks(); f->name; f++) {
    assert_null(f->units[FRAMEWORK_NAMES]);
    assert_null(f->proven[FRAMEWORK_NAMES]);
    assert_null(f->temporary[FRAMEWORK_NAMES]);
    assert_null(f->markers[FRAMEWORK_MARKERS].name);
    assert_null(f->pointers[FRAMEWORK_POINTERS].name);
    assert_null(f->begins[FRAMEWORK_BEGINS].text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_that_other_things_are_called_is_told_by_its_first_bytes),
      cmocka_unit_test(the_rules_have_all_that_is_in_the_table),
      cmocka_unit_test(no_list_of_a_row_is_cut_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
