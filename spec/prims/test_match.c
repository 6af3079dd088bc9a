#include "with_cmocka.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prims/match.h"
#include "prims/match_series.h"
#include "prims/numbers/match_step.h"

static void a_star_or_question_mark_never_crosses_a_slash(void **state) {
  assert_true(match_glob("*.pt", "a.pt"));
  assert_true(match_glob("a/*", "a/b"));
  assert_false(match_glob("*", "a/b"));
  assert_false(match_glob("a*b", "a/b"));
  assert_false(match_glob("a?b", "a/b"));
  assert_false(match_glob("a[!x]b", "a/b"));
  assert_true(match_glob(".tmp??????", ".tmpzvLx4k"));
  assert_false(match_glob(".tmp??????", ".tmpzvLx4"));
  assert_true(match_glob("", ""));
  assert_false(match_glob("", "a"));
  assert_true(match_glob("*", ""));
}

static void a_set_takes_ranges_negation_and_odd_members(void **state) {
  assert_true(match_glob("[a-c]", "b"));
  assert_false(match_glob("[a-c]", "d"));
  assert_true(match_glob("[!a-c]", "d"));
  assert_true(match_glob("[]]", "]"));
  assert_false(match_glob("[!]]", "]"));
  assert_true(match_glob("[a-]", "-"));
  assert_true(match_glob("[*]", "*"));
  assert_false(match_glob("[*]", "x"));
  assert_true(match_glob("[\xc0-\xff]", "\xe4"));
  /* Not closed in its component: an ordinary byte. */
  assert_true(match_glob("[a", "[a"));
  assert_true(match_glob("[a/b]", "[a/b]"));
  assert_true(match_glob("[!]", "[!]"));
}

static void a_double_star_is_any_number_of_components(void **state) {
  assert_true(match_glob("**/x", "x"));
  assert_true(match_glob("**/x", "a/b/c/x"));
  assert_false(match_glob("**/x", "a/b/c/yx"));
  assert_true(match_glob("a/**", "a"));
  assert_true(match_glob("a/**", "a/b/c"));
  assert_true(match_glob("a/**/b", "a/b"));
  assert_true(match_glob("a/**/b", "a/x/y/b"));
  assert_false(match_glob("a/**/b", "a/x/y/b/c"));
  assert_true(match_glob("a/**/b/**/c", "a/b/x/b/y/c"));
  assert_false(match_glob("a/**/b/**/c", "a/b/x/b/y/d"));
  assert_true(match_glob("**/**/a", "a"));
  assert_true(match_glob("**", "a/b"));
  assert_false(match_glob("a**", "ax/b")); /* only as a whole component */
}

/* Appends `part` to a text in `room` bytes. */
static void append(char *text, size_t room, const char *part) {
  size_t len = strlen(text);
  assert_true(snprintf(text + len, room - len, "%s", part) < (int)(room - len));
}

/* Each of these takes longer than the age of the universe in a matcher that goes back to every
 * star. */
static void no_pattern_can_hang_the_matcher(void **state) {
  enum { LONG = 4000 };
  char text[LONG + 2], glob[400] = "";
  memset(text, 'a', LONG);
  memcpy(text + LONG, "b", 2);
  for (int i = 0; i < 40; i++) append(glob, sizeof glob, "a*");
  assert_true(match_glob(glob, text));
  append(glob, sizeof glob, "c");
  assert_false(match_glob(glob, text));

  char deep[LONG + 2];
  for (int i = 0; i < LONG; i++) deep[i] = i % 2 ? '/' : 'a';
  memcpy(deep + LONG, "b", 2);
  glob[0] = 0;
  for (int i = 0; i < 40; i++) append(glob, sizeof glob, "**/a*/");
  append(glob, sizeof glob, "c");
  assert_false(match_glob(glob, deep));

  memset(glob, '[', 250);
  glob[0] = '*';
  glob[250] = 0;
  memset(text, '[', LONG);
  assert_false(match_glob(glob, text));

  match_unit unit;
  memset(text, '1', LONG);
  memcpy(text + LONG, "b", 2);
  assert_false(match_unit_path("*{step}x", text, false, &unit));
  assert_false(match_unit_path("*?{step}x", text, false, &unit));
}

static uint32_t seed = 20240611;
static uint32_t next_random(uint32_t below) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

static void globs_agree_with_fnmatch_on_random_small_patterns(void **state) {
  static const char *const parts[] = {"a",     "b",    "c",     "*",    "?", "/", "[ab]", "[!ab]",
                                      "[a-c]", "[]a]", "[!]a]", "[a-]", "-", ".", "[c",   "]"};
  enum { PARTS = sizeof parts / sizeof parts[0] };
  static const char letters[] = "aabbc/.-]";
  int matched = 0;
  for (int i = 0; i < 200000; i++) {
    char glob[64] = "", text[16];
    uint32_t len = next_random(7);
    const char *before = "";
    for (uint32_t k = 0; k < len; k++) {
      const char *part = parts[next_random(PARTS)];
      /* Two stars are our own component; glibc reads a slash in a set in its own way. */
      if (*part == '*' && *before == '*') continue;
      if (*part == '/' && strstr(glob, "[c")) continue;
      append(glob, sizeof glob, part);
      before = part;
    }
    len = next_random(8);
    for (uint32_t k = 0; k < len; k++) text[k] = letters[next_random(sizeof letters - 1)];
    text[len] = 0;
    bool expected = fnmatch(glob, text, FNM_PATHNAME | FNM_NOESCAPE) == 0;
    if (expected != match_glob(glob, text))
      fail_msg("\"%s\" on \"%s\": fnmatch says %d", glob, text, expected);
    matched += expected;
  }
  assert_true(matched > 2000);
}

static void an_exclude_without_a_slash_is_a_base_name_at_any_depth(void **state) {
  assert_true(match_exclude("*.tmp", "a/b/c.tmp", false));
  assert_true(match_exclude("*.tmp", "c.tmp", true));
  assert_false(match_exclude("*.tmp", "c.tmp/d", false));
  assert_true(match_exclude("./x", "x", false));
  assert_false(match_exclude("./x", "a/x", false));
  assert_true(match_exclude("a/b", "a/b", false));
  assert_false(match_exclude("a/b", "c/a/b", false));
  assert_true(match_exclude("wandb/", "a/wandb", true));
  assert_false(match_exclude("wandb/", "a/wandb", false));
  assert_true(match_exclude("./a/*/", "a/b", true));
  assert_false(match_exclude("./a/*/", "a/b", false));
  assert_true(match_exclude("**/logs/*.txt", "a/logs/x.txt", false));
}

static void a_pattern_that_cannot_mean_what_it_says_is_refused_with_its_name(void **state) {
  char long_one[300];
  memset(long_one, 'x', 256);
  long_one[256] = 0;
  const struct {
    const char *pattern, *says;
  } both[] = {
      {"", "empty"},      {"/abs", "relative"}, {"a//b", "between slashes"},
      {"a/", NULL},       {"./x", NULL},        {".", "\"..\""},
      {"../x", "\"..\""}, {"a/./b", "\"..\""},  {"a[b", "closed"},
      {"[!]", "closed"},  {"[^a]", "[!...]"},   {"[[:digit:]]", "range"},
      {"[z-a]", "range"}, {"[a-z]", NULL},      {"[{]x}", NULL},
      {long_one, "255"},  {"{stp}", "{stp}"},   {"a/[x/]", "closed"},
      {"{step", "{"},     {"a/**/b", NULL},     {"./", "\"..\""},
      {"/", "relative"},  {"{a,b}", "[{]"},
  };
  for (size_t i = 0; i < sizeof both / sizeof both[0]; i++) {
    for (int unit = 0; unit < 2; unit++) {
      err e = {0};
      int rc = unit ? match_unit_check(both[i].pattern, NULL, &e)
                    : match_exclude_check(both[i].pattern, &e);
      assert_int_equal(rc, both[i].says ? ERR_INVAL : 0);
      if (both[i].says && !strstr(e.text, both[i].says))
        fail_msg("\"%s\": %s", both[i].pattern, e.text);
    }
  }
  err e = {0};
  long_one[255] = 0;
  assert_int_equal(match_exclude_check(long_one, &e), 0);
  assert_int_equal(match_exclude_check("c-{step}", &e), ERR_INVAL);
  assert_int_equal(match_unit_check("c-{step}", NULL, &e), 0);
  assert_int_equal(match_unit_check("c-{stp}", NULL, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "\"{stp}\""));
  assert_int_equal(match_unit_check("{step}-{step}", NULL, &e), ERR_INVAL);
  assert_int_equal(match_unit_check("{step}/{step}.pt", NULL, &e), ERR_INVAL);
  assert_int_equal(match_unit_check("v1{step}", NULL, &e), ERR_INVAL);
  assert_int_equal(match_unit_check("{step}0", NULL, &e), ERR_INVAL);
  assert_int_equal(match_unit_check("{stp}", NULL, NULL), ERR_INVAL);
}

static void the_kind_of_a_unit_is_written_in_its_pattern(void **state) {
  const struct {
    const char *pattern;
    match_kind kind;
  } rows[] = {
      {"checkpoint-{step}/", MATCH_DIR},
      {"{step}/", MATCH_DIR},
      {"*.pt", MATCH_FILE},
      {"last.ckpt", MATCH_FILE},
      {"ckpt-{step}.*", MATCH_GROUP},
      {"{*}.*", MATCH_GROUP},
      {"*.*", MATCH_FILE},
      {"ckpt-{step}.*/", MATCH_DIR},
      {"ckpt-{step}*", MATCH_FILE},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    match_kind kind;
    assert_int_equal(match_unit_check(rows[i].pattern, &kind, NULL), 0);
    assert_int_equal(kind, rows[i].kind);
  }
}

enum { NO_MATCH = -2 };

static void unit_patterns_find_step_and_name(void **state) {
  const struct {
    const char *pattern, *path;
    bool is_dir;
    int64_t step;
    const char *name; /* NULL: all of the path */
  } rows[] = {
      {"checkpoint-{step}/", "checkpoint-12", true, 12, NULL},
      {"checkpoint-{step}/", "a/b/checkpoint-0012", true, 12, NULL},
      {"checkpoint-{step}/", "checkpoint-12", false, NO_MATCH, NULL},
      {"checkpoint-{step}/", "checkpoint-12a", true, NO_MATCH, NULL},
      {"checkpoint-{step}/", "checkpoint-", true, NO_MATCH, NULL},
      {"checkpoint-{step}/", "tmp-checkpoint-12", true, NO_MATCH, NULL},
      {"checkpoint-{step}/", "checkpoint-12/x", true, NO_MATCH, NULL},
      {"{step}/", "5", true, 5, NULL},
      {"{step}/", "a5", true, NO_MATCH, NULL},
      {"{step}/", "5.partial", true, NO_MATCH, NULL},
      {"{step}/", "x/0", true, 0, NULL},
      {"global_step{step}/", "global_step1", true, 1, NULL},
      {"epoch={*}-step={step}.ckpt", "epoch=0-step=8.ckpt", false, 8, NULL},
      {"epoch={*}-step={step}.ckpt", "x/epoch=1-a-step=9-step=10.ckpt", false, 10, NULL},
      {"epoch={*}-step={step}.ckpt", "epoch=0/1-step=8.ckpt", false, NO_MATCH, NULL},
      {"epoch={*}-step={step}.ckpt", "epoch=0-step=8-v1.ckpt", false, NO_MATCH, NULL},
      {"ckpt-{step}.*", "x/ckpt-12.data-00000-of-00001", false, 12, "x/ckpt-12"},
      {"ckpt-{step}.*", "ckpt-12.index", false, 12, "ckpt-12"},
      {"ckpt-{step}.*", "ckpt-12", false, NO_MATCH, NULL},
      {"ckpt-{step}.*", "ckpt-12.index", true, NO_MATCH, NULL},
      {"ckpt-{step}.*", "ckpt-12a.index", false, NO_MATCH, NULL},
      {"model-{*}.*", "model-7.data.x", false, 7, "model-7"},
      {"{*}.*", ".hidden", false, NO_MATCH, NULL},
      {"./sub/ckpt-{step}.*", "sub/ckpt-3.index", false, 3, "sub/ckpt-3"},
      {"*.pt", "deep/er/model_e3_12.pt", false, 12, NULL},
      {"*.pt", "last.pt", false, MATCH_NO_STEP, NULL},
      {"*.h5", "weights.h5", false, MATCH_NO_STEP, NULL},
      {"*.h5", "weights-4.h5", false, 4, NULL},
      {"run3-*.pt", "run3-best.pt", false, MATCH_NO_STEP, NULL},
      {"last.ckpt", "last.ckpt", false, MATCH_NO_STEP, NULL},
      {"last.ckpt", "a/last.ckpt", false, MATCH_NO_STEP, NULL},
      {"last.ckpt", "at_last.ckpt", false, NO_MATCH, NULL},
      {"sub/checkpoint-{step}/", "sub/checkpoint-4", true, 4, NULL},
      {"sub/checkpoint-{step}/", "x/sub/checkpoint-4", true, NO_MATCH, NULL},
      {"**/sub/checkpoint-{step}/", "x/sub/checkpoint-4", true, 4, NULL},
      {"./checkpoint-{step}/", "checkpoint-4", true, 4, NULL},
      {"./checkpoint-{step}/", "x/checkpoint-4", true, NO_MATCH, NULL},
      {"run-{step}/model.pt", "run-6/model.pt", false, 6, NULL},
      {"*{step}", "ab1234", false, 1234, NULL},
      {"[{]step}-{step}", "{step}-3", false, 3, NULL},
      {"\xc3\xa9tape-{step}/", "\xc3\xa9tape-3", true, 3, NULL},
      {"{*}-{step}/", "\xff\xfe\n-3", true, 3, NULL},
      {"checkpoint-{step}/", "checkpoint-3\n", true, NO_MATCH, NULL},
      {"{step}/", "9223372036854775807", true, INT64_MAX, NULL},
      {"{step}/", "9223372036854775808", true, MATCH_NO_STEP, NULL},
      {"{step}/", "99999999999999999999999999999999", true, MATCH_NO_STEP, NULL},
      {"{step}/", "00000000000000000000000000000007", true, 7, NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    match_unit unit = {.step = -9};
    assert_int_equal(match_unit_check(rows[i].pattern, NULL, NULL), 0);
    bool is = match_unit_path(rows[i].pattern, rows[i].path, rows[i].is_dir, &unit);
    if (is != (rows[i].step != NO_MATCH))
      fail_msg("\"%s\" on \"%s\"", rows[i].pattern, rows[i].path);
    if (!is) continue;
    const char *name = rows[i].name ? rows[i].name : rows[i].path;
    assert_int_equal(unit.step, rows[i].step);
    assert_int_equal(unit.name_len, strlen(name));
    assert_memory_equal(rows[i].path, name, unit.name_len);
  }
}

static void the_last_number_is_read_from_the_base_name_only(void **state) {
  assert_int_equal(match_step("run7/last"), MATCH_NO_STEP);
  assert_int_equal(match_step("run7/e3-s040.pt"), 40);
  assert_int_equal(match_step("12"), 12);
  assert_int_equal(match_step(""), MATCH_NO_STEP);
  assert_int_equal(match_step("x/"), MATCH_NO_STEP);
  assert_int_equal(match_step("9223372036854775808"), MATCH_NO_STEP);
}

static void what_is_called_a_step_is_the_step(void **state) {
  assert_int_equal(match_step("epoch=1-step=200-val_loss=0.126.ckpt"), 200);
  assert_int_equal(match_step("global_step12_v3"), 12);
  assert_int_equal(match_step("rl_model_5000_steps.zip"), 5000);
}

/* As the frameworks' own examples and many loops name their files, and what the step is. */
static void a_step_is_never_a_metric_or_a_time(void **state) {
  static const struct {
    const char *name;
    int64_t step;
  } rows[] = {
      {"epoch=5-val_loss=0.21.ckpt", 5},    /* Lightning */
      {"epoch=5-val_loss=0.21-v1.ckpt", 5}, /* ... a second time */
      {"epoch=3-val_acc=1.ckpt", 3},
      {"epoch=3-val_loss=nan.ckpt", 3},
      {"val_loss=0.21-epoch=5-step=24.ckpt", 24},
      {"last-v1.ckpt", MATCH_NO_STEP},
      {"weights.07-0.35.keras", 7}, /* Keras */
      {"weights.07-0.35.weights.h", 7},
      {"model.keras", MATCH_NO_STEP},
      {"checkpoint_10_loss=-6.6460.pt", 10}, /* ignite */
      {"best_model_12_val_acc=0.9531.pt", 12},
      {"model_0.9500.pt", MATCH_NO_STEP},
      {"rl_model_100_steps.zip", 100}, /* SB3 */
      {"rl_model_replay_buffer_100_steps.pkl", 100},
      {"ep1-ba40-rank0.pt", 40}, /* composer */
      {"epoch_12_iter_3400.pth", 3400},
      {"iter_3400_epoch_12.pth", 3400},
      {"epoch_3_step_100.pt", 100},
      {"model_epoch_3_loss_2.pth", 3},
      {"model_epoch_3_loss_2.51e-05.pth", 3},
      {"loss_0.5_acc_93.pt", MATCH_NO_STEP},
      {"lr=1e-05-step=7.pt", 7},
      {"seed42_5.pt", 5},
      {"fold3.pt", MATCH_NO_STEP},
      {"resnet50_12.pth", 12},
      {"12_resnet50.pth", 12},
      {"f1=0.9_5.pt", 5},
      {"checkpoint=5.ckpt", 5},
      {"checkpoint_2026-11-22_10-22-58.642753", MATCH_NO_STEP}, /* Ray Train */
      {"model_20261122_102258.pt", MATCH_NO_STEP},
      {"model_20261122102258.pt", MATCH_NO_STEP},
      {"model-2026-11-22T10:22:58.pt", MATCH_NO_STEP},
      {"Nov22_10-22-58_17.pt", 17},
      {"model_10:22.pt", MATCH_NO_STEP},
      {"model_2026-11-22_7.pt", 7},
      {"step_20261122.pt", 20261122},
      {"model_3f1e5a9c_4.pt", 4},
      {"0a1b2c3d-0a1b-4a1b-8a1b-0a1b2c3d4e5f.pt", MATCH_NO_STEP},
      {"100_steps.pt", 100},
      {"3-epochs_17.pt", 17},
      {"5_epochs.pt", 5},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (match_step(rows[i].name) != rows[i].step)
      fail_msg("%s: %lld, not %lld", rows[i].name, (long long)match_step(rows[i].name),
               (long long)rows[i].step);
}

/* Unless it is a version, or may be a part of what the thing is called. */
static void a_name_with_any_number_is_not_written_again(void **state) {
  static const struct {
    const char *pattern, *path;
    bool numbered, called;
  } rows[] = {{"*.pt", "last.pt", false, false},
              {"*.h5", "weights.h5", false, false},
              {"run3-*.pt", "run3-best.pt", false, false},
              {"*.safetensors", "model-00001-of-00004.safetensors", false, false},
              {"*.ckpt", "last-v1.ckpt", false, false},
              {"*.ckpt", "last-v12.ckpt", false, false},
              {"*.pt", "mobilenet_v2.pt", false, false},
              {"*.pt", "model_v2.1.pt", false, false},
              {"*.ckpt", "epoch=3-v1.ckpt", true, false},
              {"*.pt", "model_v2_100.pt", true, false},
              {"*.pt", "resnet50.pt", true, true},
              {"*.pt", "vit_b_16-v1.pt", true, true},
              {"*.pt", "resnet50_acc0.9.pt", true, false},
              {"*.pt", "resnet50_epoch3.pt", true, false},
              {"*.pt", "ckpt-7.pt", true, false},
              {"*.pt", "7.pt", true, false},
              {"*.pt", "model_0.9500.pt", true, false},
              {"*.pt", "model_20261122_102258.pt", true, false},
              {"*-{step}.pt", "a-5.pt", true, false}};
  match_unit m;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_true(match_unit_path(rows[i].pattern, rows[i].path, false, &m));
    if (m.numbered != rows[i].numbered || m.called != rows[i].called) fail_msg("%s", rows[i].path);
  }
}

static void a_kind_is_told_by_the_name_without_its_numbers(void **state) {
  static const struct {
    const char *name, *series;
  } rows[] = {{"epoch=5-val_loss=0.21.ckpt", "epoch=#-val_loss=#.ckpt"},
              {"epoch=5-val_loss=-10.5.ckpt", "epoch=#-val_loss=#.ckpt"},
              {"epoch=5-val_loss=1e-05.ckpt", "epoch=#-val_loss=#.ckpt"},
              {"epoch=5-val_loss=nan.ckpt", "epoch=#-val_loss=#.ckpt"},
              {"epoch=5-val_loss=inf.ckpt", "epoch=#-val_loss=#.ckpt"},
              {"checkpoint_2026-11-22_10-22-58.642753", "checkpoint_#"},
              {"model_3f1e5a9c_4.pt", "model_#_#.pt"},
              {"model_ab1e5a9c_4.pt", "model_#_#.pt"},
              {"rank0_12.pt", "rank0_#.pt"},
              {"loss=nano.pt", "loss=nano.pt"}};
  char series[64];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    match_series(rows[i].name, series, sizeof series);
    assert_string_equal(series, rows[i].series);
  }
}

static void the_number_of_a_part_is_no_step(void **state) {
  assert_int_equal(match_step("model-00001-of-00004.safetensors"), MATCH_NO_STEP);
  assert_int_equal(match_step("ep1-ba20-rank0.pt"), 20);
  assert_int_equal(match_step("zero_pp_rank_3"), MATCH_NO_STEP);
  assert_int_equal(match_step("proof5"), 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_star_or_question_mark_never_crosses_a_slash),
      cmocka_unit_test(a_set_takes_ranges_negation_and_odd_members),
      cmocka_unit_test(a_double_star_is_any_number_of_components),
      cmocka_unit_test(no_pattern_can_hang_the_matcher),
      cmocka_unit_test(globs_agree_with_fnmatch_on_random_small_patterns),
      cmocka_unit_test(an_exclude_without_a_slash_is_a_base_name_at_any_depth),
      cmocka_unit_test(a_pattern_that_cannot_mean_what_it_says_is_refused_with_its_name),
      cmocka_unit_test(the_kind_of_a_unit_is_written_in_its_pattern),
      cmocka_unit_test(unit_patterns_find_step_and_name),
      cmocka_unit_test(the_last_number_is_read_from_the_base_name_only),
      cmocka_unit_test(what_is_called_a_step_is_the_step),
      cmocka_unit_test(a_step_is_never_a_metric_or_a_time),
      cmocka_unit_test(a_name_with_any_number_is_not_written_again),
      cmocka_unit_test(a_kind_is_told_by_the_name_without_its_numbers),
      cmocka_unit_test(the_number_of_a_part_is_no_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
