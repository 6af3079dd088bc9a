/* In what two rule sets differ. */
#include "with_cmocka.h"

#include "event/rules_differ.h"

static rules *made(const rules_spec *spec) {
  rules *r = NULL;
  err e = {0};
  if (rules_make(spec, &r, &e) < 0) fail_msg("%s", e.text);
  return r;
}

static const rules_spec none = {.quiet_ns = -1, .marked_ns = -1, .sound_ns = -1, .settled_ns = -1};

static void must_say(const rules_spec *a, const rules_spec *b, const char *key) {
  rules *one = made(a), *other = made(b);
  const char *said = rules_differ(one, other);
  if (key)
    assert_string_equal(said, key);
  else
    assert_null(said);
  assert_true(!said == !rules_differ(other, one));
  rules_free(one);
  rules_free(other);
}

static void each_part_is_named(void **state) {
  static const char *const units[] = {"a-{step}/", "b/", NULL}, *const other[] = {"b/", "a-{step}/",
                                                                                  NULL};
  static const char *const excludes[] = {"*.log", NULL}, *const above[] = {"state.json", NULL};
  static const rules_test tests[] = {{.op = RULES_RENAMED}};
  rules_spec a = none, b = none;
  must_say(&a, &b, NULL);
  a.units = units;
  must_say(&a, &b, "unit");
  b.units = other; /* the first that fits counts */
  must_say(&a, &b, "unit");
  b.units = units;
  must_say(&a, &b, NULL);
  b.proven = &units[1];
  must_say(&a, &b, "unit");
  b = a;
  b.above = above;
  must_say(&a, &b, "above");
  b = a;
  b.excludes = excludes;
  must_say(&a, &b, "exclude");
  b = a;
  b.quiet_ns = 7;
  must_say(&a, &b, "complete");
  b = a;
  b.tests = tests;
  b.test_count = 1;
  must_say(&a, &b, "complete");
}

/* As policies/default.lua writes the built-in rules out. */
static void what_is_written_out_is_the_same(void **state) {
  static const rules_test known[] = {{.op = RULES_KNOWN}};
  const rules *built = rules_builtin();
  rules_spec a = none, b = none;
  b.units = built->units;
  b.proven = built->proven;
  b.above = built->above;
  b.excludes = built->excludes;
  b.tests = known;
  b.test_count = 1;
  must_say(&a, &b, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_part_is_named),
      cmocka_unit_test(what_is_written_out_is_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
