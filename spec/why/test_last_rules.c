/* The rules that the last run had: what was written is what is read, and nonsense is an error. */
#include "with_cmocka.h"

#include <string.h>

#include "why/last_rules.h"
#include "tmpdir.h"

static void what_was_written_is_what_is_read(void **state) {
  char *dir = tmpdir_new();
  const char *const units[] = {"s-{step}/", "{step}/", NULL}, *const proven[] = {"{step}/", NULL};
  const char *const excludes[] = {"*.skip", NULL};
  const rules_marker known[] = {{.name = "END", .signature = "*.bin", .newest = true}};
  last_rules was = {.dir = "/a/\xff", .target = "file:///s", .policies = "mine", .grace_ns = 7};
  last_rules is;
  match_unit m;
  assert_int_equal(rules_make(&(rules_spec){.units = units,
                                            .proven = proven,
                                            .excludes = excludes,
                                            .known = known,
                                            .known_count = 1,
                                            .quiet_ns = 99},
                              &was.rules, NULL),
                   0);
  assert_int_equal(last_rules_read(io_system(), dir, &is, NULL), ERR_NOENT);
  last_rules_free(&is);
  assert_int_equal(last_rules_write(io_system(), dir, &was, NULL), 0);
  assert_int_equal(last_rules_read(io_system(), dir, &is, NULL), 0);
  assert_non_null(rules_match(is.rules, "s-3", true, &m));
  assert_null(rules_match(is.rules, "checkpoint-3", true, &m));
  assert_true(rules_needs_proof(is.rules, "{step}/"));
  assert_true(rules_excluded(is.rules, "a.skip", false) &&
              rules_excluded(is.rules, "a.tmp", false));
  assert_string_equal(rules_marker_named(is.rules, "END")->signature, "*.bin");
  assert_int_equal(is.rules->quiet_ns, 99);
  assert_string_equal(is.dir, "/a/\xff");
  assert_string_equal(is.target, "file:///s");
  assert_string_equal(is.policies, "mine");
  assert_null(is.null_marker);
  assert_true(is.grace_ns == 7 && !is.no_delete);
  last_rules_free(&is);
  rules_free(was.rules);
  tmpdir_remove(dir);
}

static void nonsense_is_an_error(void **state) {
  static const char *const texts[] = {
      "",
      "[]",
      "{}",
      "{\"format\":0,\"reader\":0}",
      "{\"format\":0,\"reader\":9}",
      "{\"format\":0,\"reader\":0,\"units\":[7],\"proven\":[],\"excludes\":[],\"markers\":[]}",
      "{\"format\":0,\"reader\":0,\"units\":[],\"proven\":[],\"excludes\":[],\"markers\":[]}",
      "{\"format\":0,\"reader\":0,\"units\":[\"*\"],\"proven\":[],\"excludes\":[],\"markers\":[1]}",
      ("{\"format\":0,\"reader\":0,\"units\":[\"%zz\"],\"proven\":[],\"excludes\":[],"
       "\"markers\":[]}")};
  char *dir = tmpdir_new();
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    last_rules is;
    write_file(tmpdir_path(dir, "rules.json"), texts[i]);
    if (last_rules_read(io_system(), dir, &is, NULL) >= 0) fail_msg("taken: %s", texts[i]);
    last_rules_free(&is);
  }
  tmpdir_remove(dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_was_written_is_what_is_read),
      cmocka_unit_test(nonsense_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
