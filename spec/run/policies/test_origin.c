/* What a chain of policies was made of, and what the next one is made of that is not said otherwise. */
#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "run/policies/origin.h"
#include "tmpdir.h"

typedef struct scene {
  char *dir, *first, *second;
  origin o;
} scene;

static int setup(void **state) {
  scene *s = calloc(1, sizeof *s);
  s->dir = tmpdir_new();
  s->first = strdup(tmpdir_path(s->dir, "a.lua"));
  s->second = strdup(tmpdir_path(s->dir, "b.lua"));
  write_file(s->first, "return {}");
  write_file(s->second, "return { }");
  *state = s;
  return 0;
}

static int teardown(void **state) {
  scene *s = *state;
  origin_free(&s->o);
  free(s->first);
  free(s->second);
  tmpdir_remove(s->dir);
  free(s);
  return 0;
}

static void read_first(scene *s, const char *const *settings, const char *const *units) {
  const char *const names[] = {s->first, NULL};
  const policy_options said = {
      .io = io_system(), .names = names, .settings = settings, .units = units, .quiet_ns = 7};
  assert_int_equal(origin_read(&s->o, &said, NULL), 0);
}

static void what_was_said_is_said_again_when_it_is_gone(void **state) {
  scene *s = *state;
  char setting[] = "every=3", unit[] = "ckpt-*";
  const char *const settings[] = {setting, NULL}, *const units[] = {unit, NULL};
  read_first(s, settings, units);
  memset(setting, 0, sizeof setting);
  memset(unit, 0, sizeof unit);
  const policy_options again = origin_options(&s->o, &s->o.files, &s->o.settings);
  assert_string_equal(again.settings[0], "every=3");
  assert_string_equal(again.units[0], "ckpt-*");
  assert_null(again.units[1]);
  assert_int_equal(again.quiet_ns, 7);
  assert_string_equal(again.files->at[0].text.data, "return {}");
  assert_string_equal(s->o.paths.at[0], s->first);
}

static void an_empty_list_is_another_word_than_none(void **state) {
  scene *s = *state;
  const char *const empty[] = {NULL};
  read_first(s, NULL, empty);
  const policy_options again = origin_options(&s->o, &s->o.files, &s->o.settings);
  assert_non_null(again.units);
  assert_null(again.units[0]);
  assert_null(again.excludes);
  assert_null(again.markers);
}

static void other_files_and_settings_are_what_is_read_again(void **state) {
  scene *s = *state;
  const char *const names_of[] = {s->second, NULL};
  policy_files files = {0};
  names paths = {0}, settings = {0};
  read_first(s, NULL, NULL);
  assert_int_equal(policy_files_read(io_system(), NULL, names_of, &files, NULL), 0);
  assert_true(origin_paths(&files, &paths));
  assert_true(names_add(&settings, "every=9"));
  origin_take(&s->o, &files, &paths, &settings);
  assert_int_equal(files.count + paths.count + settings.count, 0); /* they are the origin's now */
  assert_string_equal(s->o.paths.at[0], s->second);
  assert_string_equal(s->o.files.at[0].text.data, "return { }");
  assert_string_equal(names_list(&s->o.settings)[0], "every=9");
}

static void a_file_that_is_not_there_is_told_by_its_name(void **state) {
  scene *s = *state;
  const char *const none[] = {"/nowhere/p.lua", NULL};
  err e = {0};
  assert_int_equal(origin_read(&s->o, &(policy_options){.io = io_system(), .names = none}, &e),
                   ERR_INVAL);
  assert_non_null(strstr(e.text, "/nowhere/p.lua"));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_was_said_is_said_again_when_it_is_gone),
      TEST(an_empty_list_is_another_word_than_none),
      TEST(other_files_and_settings_are_what_is_read_again),
      TEST(a_file_that_is_not_there_is_told_by_its_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
