#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "event/rules.h"

static void is_unit(const char *path, bool is_dir, match_kind kind, int64_t step) {
  match_unit m;
  if (!rules_match(rules_builtin(), path, is_dir, &m)) fail_msg("%s is no unit", path);
  if (m.kind != kind || m.step != step)
    fail_msg("%s: kind %d, step %lld", path, (int)m.kind, (long long)m.step);
}

static void is_none(const char *path, bool is_dir) {
  match_unit m;
  const char *pattern = rules_match(rules_builtin(), path, is_dir, &m);
  if (pattern) fail_msg("%s is a unit by %s", path, pattern);
}

static void directories_of_the_known_frameworks_are_units(void **state) {
  static const char *const names[] = {"checkpoint-7", "checkpoint_7", "step-7",  "step_7",
                                      "global_step7", "epoch-7",      "epoch_7", "iter_7",
                                      "ckpt-7",       "ckpt_7",       "7"};
  char path[64];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    is_unit(names[i], true, MATCH_DIR, 7);
    snprintf(path, sizeof path, "exp/T7/%s", names[i]);
    is_unit(path, true, MATCH_DIR, 7);
  }
  is_unit("exp/checkpoint_2026-11-21_03-59-09.883640", true, MATCH_DIR, MATCH_NO_STEP);
  is_unit("epoch=1-step=8.ckpt", true, MATCH_DIR, 8);
  is_none("checkpoint-best", true);
  is_none("checkpoint_tmp", true);
  is_none("metadata", true);
}

static void files_of_the_known_frameworks_are_units(void **state) {
  is_unit("ckpt_000003.pt", false, MATCH_FILE, 3);
  is_unit("last.pt", false, MATCH_FILE, MATCH_NO_STEP);
  is_unit("checkpoints/epoch=4-step=20-val_loss=0.126.ckpt", false, MATCH_FILE, 20);
  is_unit("epoch=4-step=20.ckpt", false, MATCH_FILE, 20);
  is_unit("ep1-ba40-rank0.pt", false, MATCH_FILE, 40);
  is_unit("model_6.ubj", false, MATCH_FILE, 6);
  is_unit("backup/latest.weights.h5", false, MATCH_FILE, MATCH_NO_STEP);
  is_unit("experiment.cbsnapshot", false, MATCH_FILE, MATCH_NO_STEP);
  is_unit("checkpoint_12", false, MATCH_FILE, 12);
  is_unit("ckpt-4.pt", false, MATCH_FILE, 4);
  is_unit("ckpt-4.index", false, MATCH_GROUP, 4);
  is_unit("ckpt-4.data-00000-of-00001", false, MATCH_GROUP, 4);
  is_none("result.json", false);
  is_none("latest", false);
  is_none("checkpoint", false);
  is_none("trainer_state.json", false);
}

static void only_a_bare_number_needs_proof(void **state) {
  match_unit m;
  const rules *r = rules_builtin();
  assert_true(rules_needs_proof(r, rules_match(r, "12", true, &m)));
  assert_false(rules_needs_proof(r, rules_match(r, "checkpoint-12", true, &m)));
}

static void temporary_names_are_excluded(void **state) {
  static const char *const files[] = {".tmpzvLx4k",
                                      "best.pt.tmp",
                                      ".metadata.tmp",
                                      "__1.metadata.tmp",
                                      "manifest.ocdbt.__lock",
                                      "checkpoint_tmp",
                                      ".validate_storage_marker",
                                      ".0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f-x",
                                      "a.tempstate123",
                                      "checkpoint.tmp0123",
                                      "latest.symlink",
                                      "tmpab_12xyz",
                                      ".nfs000000000001a2b300000001",
                                      ".fuse_hidden0000000200000001",
                                      "x.bak"};
  static const char *const dirs[] = {"tmp-checkpoint-4",
                                     "2.orbax-checkpoint-tmp",
                                     "a/2.orbax-checkpoint-tmp-17",
                                     "ckpt-1_temp",
                                     "tmp",
                                     ".Trash-1000",
                                     "_checkpoint"};
  static const char *const data[] = {".metadata",      ".snapshot_metadata",
                                     ".metadata.json", "latest.weights.h5.bkp",
                                     ".tmp1234567",    "tmpabc",
                                     "temp",           "checkpoint",
                                     ".hidden"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (!rules_excluded(rules_builtin(), files[i], false)) fail_msg("%s is data", files[i]);
  for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
    if (!rules_excluded(rules_builtin(), dirs[i], true)) fail_msg("%s is data", dirs[i]);
  for (size_t i = 0; i < sizeof data / sizeof *data; i++)
    if (rules_excluded(rules_builtin(), data[i], false)) fail_msg("%s is excluded", data[i]);
}

static void each_builtin_pattern_is_valid(void **state) {
  const rules *r = rules_builtin();
  err e = {0};
  for (size_t i = 0; r->units[i]; i++)
    if (match_unit_check(r->units[i], NULL, &e) < 0) fail_msg("%s", e.text);
  for (size_t i = 0; r->excludes[i]; i++)
    if (match_exclude_check(r->excludes[i], &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(r->quiet_ns, INT64_C(30000000000));
  assert_int_equal(r->marked_ns, INT64_C(1500000000));
  assert_int_equal(r->sound_ns, INT64_C(1000000000));
  assert_int_equal(r->settled_ns, INT64_C(100000000));
}

static void rules_of_a_user_take_the_place_of_ours(void **state) {
  char unit[] = "save-{step}/", exclude[] = "*.part", marker[] = "DONE";
  const char *const units[] = {unit, "{step}/", NULL};
  const char *const excludes[] = {exclude, NULL}, *const markers[] = {marker, NULL};
  rules *r;
  match_unit m;
  assert_int_equal(rules_custom(units, excludes, markers, 1000, &r, NULL), 0);
  memset(unit, 'x', 4); /* it has copies */
  memset(exclude, 'x', 4);
  memset(marker, 'x', 4);
  assert_non_null(rules_match(r, "save-3", true, &m));
  assert_null(rules_match(r, "checkpoint-3", true, &m));
  const char *number = rules_match(r, "3", true, &m);
  assert_non_null(number);
  assert_false(rules_needs_proof(r, number)); /* who writes it means it */
  assert_true(rules_excluded(r, "a.part", false));
  assert_true(rules_excluded(r, "a.tmp", false)); /* ours still hold */
  assert_int_equal(r->marker_count, 1);
  assert_true(rules_marker_by_user(rules_marker_named(r, "DONE")));
  assert_null(rules_marker_named(r, ".metadata"));
  assert_int_equal(r->quiet_ns, 1000);
  assert_true(r->marked_ns <= 1000);
  rules_free(r);
}

static void what_a_user_leaves_out_is_ours(void **state) {
  rules *r;
  match_unit m;
  assert_int_equal(rules_custom(NULL, NULL, NULL, -1, &r, NULL), 0);
  assert_non_null(rules_match(r, "checkpoint-3", true, &m));
  assert_true(rules_needs_proof(r, rules_match(r, "3", true, &m)));
  assert_true(rules_marker_named(r, ".metadata")->newest);
  assert_string_equal(rules_marker_named(r, "trainer_state.json")->signature, "training_args.bin");
  assert_int_equal(r->quiet_ns, rules_builtin()->quiet_ns);
  rules_free(r);
  rules_free(NULL);
}

static void refused(const char *unit, const char *exclude, const char *marker) {
  const char *const units[] = {unit, NULL}, *const excludes[] = {exclude, NULL},
                    *const markers[] = {marker, NULL};
  rules *r;
  err e = {0};
  int rc = rules_custom(unit ? units : NULL, exclude ? excludes : NULL, marker ? markers : NULL, -1,
                        &r, &e);
  assert_int_equal(rc, ERR_INVAL);
  assert_null(r);
  assert_true(strlen(e.text) > 0);
}

static void a_pattern_at_fault_is_named(void **state) {
  refused("checkpoint-{stp}/", NULL, NULL);
  refused("", NULL, NULL);
  refused(NULL, "[a", NULL);
  refused(NULL, NULL, "a/b");
  refused(NULL, NULL, "");
  const char *const none[] = {NULL};
  rules *r;
  assert_int_equal(rules_custom(none, NULL, NULL, -1, &r, NULL), ERR_INVAL);
}

static void all_that_a_policy_says_is_copied(void **state) {
  char unit[] = "{step}/", name[] = "END", when[] = "*.bin", marker[] = "DONE";
  const char *const units[] = {"save-{step}/", unit, NULL}, *const proven[] = {unit, NULL};
  const rules_marker known[] = {{.name = name, .signature = when, .newest = true}};
  const rules_test tests[] = {{.op = RULES_ALL, .first = 1, .count = 2},
                              {.op = RULES_MARKER, .name = marker, .newer = true},
                              {.op = RULES_QUIET, .ns = 5}};
  rules_spec spec = {.units = units,
                     .proven = proven,
                     .known = known,
                     .known_count = 1,
                     .quiet_ns = 100,
                     .marked_ns = 50,
                     .settled_ns = 10,
                     .tests = tests,
                     .test_count = 3};
  rules *r;
  match_unit m;
  assert_int_equal(rules_make(&spec, &r, NULL), 0);
  memset(unit, 'x', 3);
  memset(name, 'x', 3);
  memset(when, 'x', 3);
  memset(marker, 'x', 4);
  assert_true(rules_needs_proof(r, rules_match(r, "7", true, &m)));
  assert_false(rules_needs_proof(r, rules_match(r, "save-7", true, &m)));
  assert_int_equal(r->marker_count, 1);
  assert_string_equal(rules_marker_named(r, "END")->signature, "*.bin");
  assert_true(rules_marker_named(r, "END")->newest);
  assert_true(r->quiet_ns == 100 && r->marked_ns == 50 && r->settled_ns == 10);
  assert_int_equal(r->test_count, 3);
  assert_string_equal(r->tests[1].name, "DONE");
  assert_true(r->tests[1].newer);
  assert_true(rules_is_marker(r, "DONE") && rules_is_marker(r, "END"));
  assert_false(rules_is_marker(r, "model.bin"));
  rules_free(r);
  const char *const markers[] = {"DONE", NULL};
  spec = (rules_spec){.known = known, .known_count = 1, .markers = markers};
  assert_int_equal(rules_make(&spec, &r, NULL), 0);
  assert_int_equal(r->marker_count, 1); /* the user's word, in place of all others */
  assert_true(rules_marker_by_user(rules_marker_named(r, "DONE")));
  assert_int_equal(r->quiet_ns, rules_builtin()->quiet_ns);
  assert_int_equal(r->settled_ns, rules_builtin()->settled_ns);
  assert_int_equal(r->test_count, 0);
  rules_free(r);
}

static void what_a_tree_cannot_do_without_is_known(void **state) {
  const rules_test tests[] = {{.op = RULES_ALL, .first = 1, .count = 3},
                              {.op = RULES_MARKER, .name = "A"},
                              {.op = RULES_ALL, .first = 4, .count = 1},
                              {.op = RULES_ANY, .first = 5, .count = 2},
                              {.op = RULES_MARKER, .name = "B"},
                              {.op = RULES_MARKER, .name = "C"},
                              {.op = RULES_KNOWN}};
  rules *r;
  assert_int_equal(rules_make(&(rules_spec){.tests = tests, .test_count = 7}, &r, NULL), 0);
  assert_true(rules_needs(r, RULES_MARKER, "A"));
  assert_true(rules_needs(r, RULES_MARKER, "B"));
  assert_false(rules_needs(r, RULES_MARKER, "C"));
  assert_false(rules_needs(r, RULES_KNOWN, NULL));
  assert_true(rules_needs(rules_builtin(), RULES_KNOWN, NULL));
  rules_free(r);
}

static void not_a_tree(const rules_test *tests, size_t count, int expected) {
  rules *r;
  err e = {0};
  assert_int_equal(rules_make(&(rules_spec){.tests = tests, .test_count = count}, &r, &e),
                   expected);
  assert_null(r);
  assert_true(strlen(e.text) > 0);
}

static void only_a_small_tree_is_taken(void **state) {
  rules_test many[RULES_TESTS_MAX + 1] = {{.op = RULES_ALL, .first = 1, .count = RULES_TESTS_MAX}};
  for (size_t i = 1; i <= RULES_TESTS_MAX; i++) many[i].op = RULES_CLOSED;
  not_a_tree(many, RULES_TESTS_MAX + 1, ERR_LIMIT);
  not_a_tree((rules_test[]){{.op = RULES_ALL}}, 1, ERR_INVAL);
  not_a_tree((rules_test[]){{.op = RULES_ALL, .first = 0, .count = 1}}, 1, ERR_INVAL);
  not_a_tree((rules_test[]){{.op = RULES_ANY, .first = 1, .count = 1}}, 1, ERR_INVAL);
  not_a_tree((rules_test[]){{.op = RULES_ANY, .first = 1, .count = UINT32_MAX}, {0}}, 2, ERR_INVAL);
  not_a_tree((rules_test[]){{.op = RULES_ANY, .first = UINT32_MAX, .count = 2}, {0}}, 2, ERR_INVAL);
  not_a_tree((rules_test[]){{.op = RULES_CLOSED}, {.op = RULES_CLOSED}}, 2, ERR_INVAL);
  not_a_tree((rules_test[]){{.op = RULES_ALL, .first = 1, .count = 2},
                            {.op = RULES_ALL, .first = 2, .count = 1},
                            {.op = RULES_CLOSED}},
             3, ERR_INVAL);
  not_a_tree((rules_test[]){{.op = (rules_op)77}}, 1, ERR_INVAL);
  not_a_tree((rules_test[]){{.op = RULES_MARKER}}, 1, ERR_INVAL);
  not_a_tree((rules_test[]){{.op = RULES_MARKER, .name = "a/b"}}, 1, ERR_INVAL);
  not_a_tree((rules_test[]){{.op = RULES_QUIET, .ns = -1}}, 1, ERR_INVAL);
  const rules_marker bad[] = {{.name = "a", .signature = "[x"}}, slash[] = {{.name = "a/b"}};
  rules *r;
  assert_int_equal(rules_make(&(rules_spec){.known = bad, .known_count = 1}, &r, NULL), ERR_INVAL);
  assert_int_equal(rules_make(&(rules_spec){.known = slash, .known_count = 1}, &r, NULL),
                   ERR_INVAL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(directories_of_the_known_frameworks_are_units),
      cmocka_unit_test(files_of_the_known_frameworks_are_units),
      cmocka_unit_test(only_a_bare_number_needs_proof),
      cmocka_unit_test(temporary_names_are_excluded),
      cmocka_unit_test(each_builtin_pattern_is_valid),
      cmocka_unit_test(rules_of_a_user_take_the_place_of_ours),
      cmocka_unit_test(what_a_user_leaves_out_is_ours),
      cmocka_unit_test(a_pattern_at_fault_is_named),
      cmocka_unit_test(all_that_a_policy_says_is_copied),
      cmocka_unit_test(what_a_tree_cannot_do_without_is_known),
      cmocka_unit_test(only_a_small_tree_is_taken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
