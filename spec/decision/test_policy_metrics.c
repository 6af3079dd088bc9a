#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "decision/policy.h"
#include "policy_helper.h"
#include "tmpdir.h"

typedef struct fixture {
  policy_world *w;
  char *root;
  detect_unit unit;
  char warning[POLICY_REASON_MAX];
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  f->w = policy_world_new();
  f->root = tmpdir_new();
  f->unit = (detect_unit){.path = "exp/ck-3", .name = "ck-3", .kind = MATCH_DIR};
  make_dir(tmpdir_path(f->root, "exp"));
  make_dir(tmpdir_path(f->root, "exp/ck-3"));
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  policy_world_free(f->w);
  tmpdir_remove(f->root);
  free(f);
  return 0;
}

static char *metrics_by(fixture *f, const char *sources, const char *result) {
  char text[1000];
  snprintf(text, sizeof text, "{\"ok\":true,\"metrics\":%s}", sources);
  policy *p = policy_world_must(f->w, text);
  memcpy(f->warning, "unset", 6);
  char *found = policy_metrics(p, f->root, &f->unit, result, f->warning);
  return found;
}

/* `wanted` NULL: none; `warning` NULL: none, else a part of it. */
static void expect(fixture *f, const char *sources, const char *result, const char *wanted,
                   const char *warning) {
  char *found = metrics_by(f, sources, result);
  if (wanted) {
    if (!found) fail_msg("%s: nothing: %s", sources, f->warning);
    assert_string_equal(found, wanted);
  } else if (found) {
    fail_msg("%s: %s", sources, found);
  }
  if (warning ? !strstr(f->warning, warning) : *f->warning != '\0')
    fail_msg("%s: warning \"%s\"", sources, f->warning);
  free(found);
}

static void put(fixture *f, const char *name, const char *text) {
  char path[200];
  snprintf(path, sizeof path, "exp/ck-3/%s", name);
  write_file(tmpdir_path(f->root, path), text);
}

#define FROM_JSON(path) "[{\"from\":\"json\",\"file\":\"s.json\",\"path\":\"" path "\"}]"

static void a_path_leads_to_what_is_meant(void **state) {
  fixture *f = *state;
  put(f, "s.json",
      "{\"best\":0.5,\"log_history\":[{\"loss\":3},{\"loss\":2,\"eval\":{\"acc\":0.75,\"deep\":"
      "{\"x\":1}},\"name\":\"b\",\"ok\":true,\"none\":null,\"list\":[1]}]}");
  expect(f, FROM_JSON("log_history[-1].loss"), NULL, "{\"loss\":2}", NULL);
  expect(f, FROM_JSON("log_history[0].loss"), NULL, "{\"loss\":3}", NULL);
  expect(f, FROM_JSON("log_history[-2]"), NULL, "{\"loss\":3}", NULL);
  expect(f, FROM_JSON("log_history[1]"), NULL,
         "{\"eval.acc\":0.75,\"loss\":2,\"name\":\"b\",\"ok\":true}", NULL);
  expect(f, FROM_JSON("log_history[1].eval"), NULL, "{\"acc\":0.75,\"deep.x\":1}", NULL);
  expect(f, FROM_JSON(""), NULL, "{\"best\":0.5}", NULL);
  expect(f, FROM_JSON("log_history[2].loss"), NULL, NULL, "log_history[2].loss");
  expect(f, FROM_JSON("log_history[-3]"), NULL, NULL, "s.json");
  expect(f, FROM_JSON("log_history[99999999999999999999]"), NULL, NULL, "s.json");
  expect(f, FROM_JSON("best.of"), NULL, NULL, "best.of");
  expect(f, FROM_JSON("best[0]"), NULL, NULL, "best[0]");
  put(f, "s.json", "[[{\"a\":1}]]");
  expect(f, FROM_JSON("[0][0]"), NULL, "{\"a\":1}", NULL);
  expect(f, FROM_JSON("[0][-1].a"), NULL, "{\"a\":1}", NULL);
}

/* Guards: with the last entry alone, a run that logs its loss after an evaluation had no eval_loss. */
static void of_a_list_the_last_entry_that_has_it_counts(void **state) {
  fixture *f = *state;
  put(f, "s.json",
      "{\"global_step\":20,\"log_history\":["
      "{\"eval_loss\":1,\"step\":10},{\"loss\":4,\"step\":10},3,"
      "{\"eval_acc\":0.5,\"eval_loss\":2,\"step\":20},{\"loss\":3,\"step\":20}]}");
  expect(f, FROM_JSON("log_history[*]"), NULL,
         "{\"eval_acc\":0.5,\"eval_loss\":2,\"loss\":3,\"step\":20}", NULL);
  expect(f, FROM_JSON("log_history[*].eval_loss"), NULL, "{\"eval_loss\":2}", NULL);
  expect(f, FROM_JSON("log_history[*].other"), NULL, NULL, "log_history[*].other");
  expect(f, FROM_JSON("global_step[*]"), NULL, NULL, "global_step[*]");
}

/* What was measured of an older step is no number of this one: or a checkpoint that was never evaluated
 * would be as good as the best. */
static void entries_of_another_step_count_for_nothing(void **state) {
  fixture *f = *state;
  put(f, "s.json",
      "{\"global_step\":20,\"log_history\":["
      "{\"eval_loss\":1,\"step\":10},{\"loss\":3,\"step\":20},{\"lr\":0.5}]}");
  expect(f, FROM_JSON("log_history[step=global_step]"), NULL, "{\"loss\":3,\"lr\":0.5,\"step\":20}",
         NULL);
  put(f, "s.json", "{\"log_history\":[{\"eval_loss\":1,\"step\":10},{\"loss\":3}]}");
  expect(f, FROM_JSON("log_history[step=global_step]"), NULL,
         "{\"eval_loss\":1,\"loss\":3,\"step\":10}", NULL);
  /* A number that is none hides the older one: it did diverge. */
  put(f, "s.json", "{\"l\":[{\"loss\":1},{\"loss\":NaN}]}");
  expect(f, FROM_JSON("l[*]"), NULL, NULL, NULL);
}

static void a_name_tells_all_its_numbers(void **state) {
  static const struct {
    const char *name, *wanted;
  } names[] = {
      {"epoch=3-val_loss=0.126.ckpt", "{\"epoch\":3,\"val_loss\":0.126}"},
      {"epoch=3-val_loss=-1.5e-3-v1.ckpt", "{\"epoch\":3,\"val_loss\":-0.0015}"},
      {"m-epoch=07-step=400.ckpt", "{\"epoch\":7,\"step\":400}"},
      {"a=b=4-=5-c=.ckpt", "{\"b\":4}"},
      {"checkpoint-3", NULL},
  };
  fixture *f = *state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    f->unit.name = names[i].name;
    expect(f, "[{\"from\":\"names\"}]", NULL, names[i].wanted, NULL);
  }
}

static char *by_itself(fixture *f, const char *result) {
  policy *p;
  assert_int_equal(policy_world_open(f->w, NULL, NULL, &p, NULL), 0);
  char *found = policy_metrics(p, f->root, &f->unit, result, f->warning);
  policy_close(p);
  assert_string_equal(f->warning, "");
  return found;
}

static void the_files_of_known_frameworks_count_before_a_result(void **state) {
  fixture *f = *state;
  put(f, "trainer_state.json",
      "{\"global_step\":3,\"log_history\":[{\"eval_loss\":0.5,\"step\":3}]}");
  char *found = by_itself(f, "{\"eval_loss\":9,\"loss\":1}");
  assert_string_equal(found, "{\"eval_loss\":0.5,\"loss\":1,\"step\":3}");
  free(found);
  put(f, "trainer_state.json", "{\"version\":1}"); /* of another tool: nobody is told */
  make_dir(tmpdir_path(f->root, "exp/ck-3/metrics"));
  put(f, "metrics/metrics", "{\"accuracy\":0.75}");
  found = by_itself(f, NULL);
  assert_string_equal(found, "{\"accuracy\":0.75}");
  free(found);
}

/* A Trainer writes its state beside the last model, too, when all is over. */
static void what_is_beside_a_file_is_not_its_own(void **state) {
  fixture *f = *state;
  write_file(tmpdir_path(f->root, "exp/trainer_state.json"),
             "{\"log_history\":[{\"eval_loss\":0.5}]}");
  f->unit.kind = MATCH_FILE;
  assert_null(by_itself(f, NULL));
}

static void results_are_laid_one_over_the_other(void **state) {
  (void)state;
  char *all = policy_numbers("{\"a\":1,\"b\":{\"c\":2},\"no\":[1]}", "{\"a\":3}");
  assert_string_equal(all, "{\"a\":3,\"b.c\":2}");
  char *again = policy_numbers(all, NULL);
  assert_string_equal(again, all);
  free(all);
  free(again);
  assert_null(policy_numbers("{}", NULL));
  assert_null(policy_numbers(NULL, NULL));
}

static void a_path_that_is_none_is_a_load_error(void **state) {
  static const char *const wrong[] = {".",   "a.",    "a..b",  "a[",    "a[]",   "a[x]",
                                      "a[1", "[1]a",  "a]b",   "a[ 1]", "a[1].", ".a",
                                      "a[*", "a[**]", "a[b=]", "a[=b]", "a[b=c", "a[b.c=d]"};
  static const char *const files[] = {"", "/etc/passwd", "../x", "a/../b", "a/..", ".."};
  fixture *f = *state;
  char text[300];
  policy *p;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    snprintf(text, sizeof text,
             "{\"ok\":true,\"metrics\":[{\"from\":\"json\",\"file\":\"f\",\"path\":\"%s\"}]}",
             wrong[i]);
    if (policy_world_open(f->w, text, NULL, &p, NULL) != ERR_POLICY) fail_msg("%s", wrong[i]);
  }
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(text, sizeof text, "{\"ok\":true,\"metrics\":[{\"from\":\"jsonl\",\"file\":\"%s\"}]}",
             files[i]);
    if (policy_world_open(f->w, text, NULL, &p, NULL) != ERR_POLICY) fail_msg("%s", files[i]);
  }
  static const char *const names[] = {"{\"from\":\"name\"}", "{\"from\":\"name\",\"key\":\"a\"}",
                                      "{\"from\":\"name\",\"key\":\"a\",\"after\":\"\"}", "5"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(text, sizeof text, "{\"ok\":true,\"metrics\":[%s]}", names[i]);
    if (policy_world_open(f->w, text, NULL, &p, NULL) != ERR_POLICY) fail_msg("%s", names[i]);
  }
}

/* What Python's json.dump writes, and jansson does not read. */
static void numbers_that_are_none_cost_only_themselves(void **state) {
  fixture *f = *state;
  put(f, "s.json",
      "{\"a\": NaN, \"b\": Infinity, \"c\": -Infinity, \"d\": 1e999, \"e\": -1e999, \"good\": "
      "1.5,\n"
      " \"text\": \"NaN, \\\"Infinity\\\" and 1e999\", \"NaN\": 2, \"seed\": "
      "18446744073709551615,\n"
      " \"many\": [NaN, 1], \"step\": 9007199254740991, \"last\": NaN}");
  expect(f, FROM_JSON(""), NULL,
         "{\"NaN\":2,\"good\":1.5,\"seed\":1.8446744073709552e19,\"step\":9007199254740991,"
         "\"text\":\"NaN, \\\"Infinity\\\" and 1e999\"}",
         NULL);
  buf digits;
  buf_init(&digits, 6000);
  buf_str(&digits, "{\"x\": ");
  for (int i = 0; i < 5000; i++) buf_str(&digits, "7");
  buf_str(&digits, ", \"y\": 1}");
  put(f, "s.json", digits.data);
  expect(f, FROM_JSON(""), NULL, "{\"y\":1}", NULL);
  buf_free(&digits);
  put(f, "s.json", "NaN");
  expect(f, FROM_JSON(""), NULL, NULL, NULL);
}

static void what_is_no_json_is_a_warning(void **state) {
  static const char *const broken[] = {
      "",     "{",        "{\"a\":}", "{\"a\":1",  "hello",           "\"", "\"\\", "NaNN",
      "[1,2", "\xff\xfe", "-",        "{\"a\" 1}", "\x80\x02}q\x01.", "1e", "--1",  "[]]"};
  fixture *f = *state;
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    put(f, "s.json", broken[i]);
    char *found = metrics_by(f, FROM_JSON(""), NULL);
    if (found || strncmp(f->warning, "s.json: ", 8) != 0)
      fail_msg("%s: %s, \"%s\"", broken[i], found ? found : "none", f->warning);
  }
}

static void a_file_that_is_missing_is_told_if_it_is_the_only_source(void **state) {
  fixture *f = *state;
  expect(f, FROM_JSON("a"), NULL, NULL, "no such file");
  expect(f,
         "[{\"from\":\"json\",\"file\":\"a.json\"},{\"from\":\"jsonl\",\"file\":\"b\"},"
         "{\"from\":\"notify\"}]",
         "{\"loss\":1}", "{\"loss\":1}", NULL);
}

/* Opening a FIFO would wait for ever. */
static void what_is_no_file_is_a_warning(void **state) {
  fixture *f = *state;
  mkfifo(tmpdir_path(f->root, "exp/ck-3/s.json"), 0600);
  expect(f, FROM_JSON("a"), NULL, NULL, "regular file");
  expect(f, "[{\"from\":\"jsonl\",\"file\":\"s.json\"}]", NULL, NULL, "regular file");
  make_dir(tmpdir_path(f->root, "exp/ck-3/d"));
  expect(f, "[{\"from\":\"jsonl\",\"file\":\"d\"}]", NULL, NULL, "d: ");
}

static void the_first_source_that_has_it_counts(void **state) {
  fixture *f = *state;
  put(f, "s.json", "{\"loss\":1,\"a\":2}");
  expect(f, "[{\"from\":\"json\",\"file\":\"s.json\"},{\"from\":\"notify\"}]",
         "{\"loss\":9,\"b\":3}", "{\"a\":2,\"b\":3,\"loss\":1}", NULL);
}

static void without_sources_the_last_result_counts(void **state) {
  fixture *f = *state;
  policy *p;
  assert_int_equal(policy_world_open(f->w, NULL, NULL, &p, NULL), 0);
  char *found = policy_metrics(p, f->root, &f->unit, "{\"loss\":0.5,\"in\":{\"x\":1}}", NULL);
  assert_string_equal(found, "{\"in.x\":1,\"loss\":0.5}");
  free(found);
  assert_null(policy_metrics(p, f->root, &f->unit, NULL, NULL));
  assert_null(policy_metrics(p, f->root, &f->unit, "[1]", NULL));
  assert_null(policy_metrics(p, f->root, &f->unit, "{\"loss\":", NULL));
  policy_close(p);
}

static void the_last_line_of_a_file_of_lines_counts(void **state) {
  static const char sources[] = "[{\"from\":\"jsonl\",\"file\":\"r.json\"}]";
  fixture *f = *state;
  put(f, "r.json", "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n");
  expect(f, sources, NULL, "{\"a\":3}", NULL);
  put(f, "r.json", "{\"a\":1}\n{\"a\":2}\n\n  \n");
  expect(f, sources, NULL, "{\"a\":2}", NULL);
  put(f, "r.json", "{\"a\":1}\n{\"a\":2}");
  expect(f, sources, NULL, "{\"a\":2}", NULL);
  put(f, "r.json", "{\"a\":1}\n{\"a\":2}\n{\"a\":"); /* torn */
  expect(f, sources, NULL, "{\"a\":2}", NULL);
  put(f, "r.json", "{\"a\":1}\nnonsense\n{\"a\":");
  expect(f, sources, NULL, NULL, "r.json");
  put(f, "r.json", "\n\n");
  expect(f, sources, NULL, NULL, "no line");
  put(f, "r.json", "");
  expect(f, sources, NULL, NULL, "no line");
}

static void only_the_end_of_a_long_file_of_lines_is_read(void **state) {
  static const char sources[] = "[{\"from\":\"jsonl\",\"file\":\"r.json\"}]";
  enum { LINES = 100000 };
  fixture *f = *state;
  buf text;
  buf_init(&text, 16 << 20);
  for (int i = 0; i < LINES; i++) buf_fmt(&text, "{\"a\":%d,\"pad\":\"xxxxxxxxxx\"}\n", i);
  put(f, "r.json", text.data);
  expect(f, sources, NULL, "{\"a\":99999,\"pad\":\"xxxxxxxxxx\"}", NULL);
  buf_clear(&text);
  buf_str(&text, "{\"a\":1}\n{\"a\":\"");
  for (int i = 0; i < 300000; i++) buf_str(&text, "x");
  buf_str(&text, "\"}");
  put(f, "r.json", text.data);
  expect(f, sources, NULL, NULL, "too long");
  buf_free(&text);
}

static void the_units_name_may_have_numbers(void **state) {
  static const struct {
    const char *name, *after, *wanted;
  } rows[] = {
      {"epoch=3-val_loss=0.25.ckpt", "val_loss=", "{\"m\":0.25}"},
      {"epoch=3-val_loss=0.25.ckpt", "loss=", NULL},
      {"val_loss=0.25-loss=4", "loss=", "{\"m\":4}"},
      {"epoch=3-step=40", "epoch=", "{\"m\":3}"},
      {"loss=1e-3.pt", "loss=", "{\"m\":0.001}"},
      {"loss=1e.pt", "loss=", "{\"m\":1}"},
      {"loss=-2.5", "loss=", "{\"m\":-2.5}"},
      {"loss=0x10", "loss=", "{\"m\":0}"},
      {"loss=nan-loss=2", "loss=", "{\"m\":2}"},
      {"loss=inf", "loss=", NULL},
      {"loss=1e999", "loss=", NULL},
      {"loss=.5", "loss=", NULL},
      {"acc95.h5", "acc", "{\"m\":95}"},
      {"acc", "acc", NULL},
      {"model-7", "-", "{\"m\":7}"},
      {"aaaa", "aa", NULL},
  };
  fixture *f = *state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char sources[200];
    f->unit.name = rows[i].name;
    snprintf(sources, sizeof sources, "[{\"from\":\"name\",\"key\":\"m\",\"after\":\"%s\"}]",
             rows[i].after);
    expect(f, sources, NULL, rows[i].wanted, NULL);
  }
}

static void a_unit_that_is_a_file_has_its_metrics_beside_it(void **state) {
  fixture *f = *state;
  f->unit = (detect_unit){.path = "exp/m.pt", .name = "m.pt", .kind = MATCH_FILE};
  write_file(tmpdir_path(f->root, "exp/s.json"), "{\"a\":1}");
  expect(f, FROM_JSON(""), NULL, "{\"a\":1}", NULL);
  f->unit = (detect_unit){.path = "m.pt", .name = "m.pt", .kind = MATCH_FILE};
  write_file(tmpdir_path(f->root, "s.json"), "{\"a\":2}");
  expect(f, FROM_JSON(""), NULL, "{\"a\":2}", NULL);
}

static void there_are_never_too_many(void **state) {
  fixture *f = *state;
  buf text;
  buf_init(&text, 1 << 20);
  for (int i = 0; i < 1000; i++) buf_fmt(&text, "%s\"k%d\":%d", i ? "," : "{", i, i);
  buf_str(&text, "}");
  char *found = metrics_by(f, "[{\"from\":\"notify\"}]", text.data);
  json_t *value = json_loads(found, 0, NULL);
  assert_int_equal(json_object_size(value), 64);
  assert_non_null(strstr(f->warning, "too many"));
  json_decref(value);
  free(found);
  buf_clear(&text);
  for (int i = 0; i < 60; i++) buf_fmt(&text, "%s\"k%d\":\"%0400d\"", i ? "," : "{", i, i);
  buf_str(&text, ",\"n\":1}");
  found = metrics_by(f, "[{\"from\":\"notify\"}]", text.data);
  assert_in_range(strlen(found), 3000, 4096);
  free(found);
  buf_clear(&text);
  buf_str(&text, "{\"a\":\"");
  for (int i = 0; i < 1000; i++) buf_str(&text, "x");
  buf_str(&text, "\",\"b\":1}");
  expect(f, "[{\"from\":\"notify\"}]", text.data, "{\"b\":1}", "too long");
  buf_free(&text);
}

static void deep_nesting_is_no_danger(void **state) {
  fixture *f = *state;
  buf text;
  buf_init(&text, 1 << 20);
  for (int i = 0; i < 100000; i++) buf_str(&text, "[");
  put(f, "s.json", text.data);
  char *found = metrics_by(f, FROM_JSON(""), NULL);
  assert_null(found);
  assert_true(*f->warning);
  buf_free(&text);
}

/* Bytes turned over at random: at worst there are no metrics. */
static void no_file_can_break_it(void **state) {
  static const char good[] =
      "{\"a\":NaN,\"b\":[1,-Infinity,{\"c\":1e999}],\"d\":{\"e\":\"x\\\"y\"}}";
  fixture *f = *state;
  policy *p = policy_world_must(
      f->w, "{\"ok\":true,\"metrics\":[{\"from\":\"json\",\"file\":\"s.json\"},{\"from\":\"jsonl\","
            "\"file\":\"s.json\",\"path\":\"d.e\"},{\"from\":\"json\",\"file\":\"s.json\",\"path\":"
            "\"b[-1].c\"}]}");
  srand(1);
  for (int round = 0; round < 1500; round++) {
    char text[sizeof good];
    memcpy(text, good, sizeof good);
    for (int i = rand() % 4; i >= 0; i--) text[rand() % (int)(sizeof good - 1)] = (char)rand();
    write_bytes(tmpdir_path(f->root, "exp/ck-3/s.json"), text, (size_t)rand() % sizeof good);
    char *found = policy_metrics(p, f->root, &f->unit, NULL, f->warning);
    json_t *value = found ? json_loads(found, 0, NULL) : NULL;
    if (found) assert_true(json_object_size(value) > 0);
    for (const char *at = f->warning; *at; at++) assert_true((unsigned char)*at >= 0x20);
    json_decref(value);
    free(found);
  }
}

#define WITH_HELPER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv) {
  if (policy_helper_is_meant(argv)) return policy_helper_run();
  const struct CMUnitTest tests[] = {
      WITH_HELPER(a_path_leads_to_what_is_meant),
      WITH_HELPER(of_a_list_the_last_entry_that_has_it_counts),
      WITH_HELPER(entries_of_another_step_count_for_nothing),
      WITH_HELPER(a_name_tells_all_its_numbers),
      WITH_HELPER(the_files_of_known_frameworks_count_before_a_result),
      WITH_HELPER(what_is_beside_a_file_is_not_its_own),
      WITH_HELPER(results_are_laid_one_over_the_other),
      WITH_HELPER(a_path_that_is_none_is_a_load_error),
      WITH_HELPER(numbers_that_are_none_cost_only_themselves),
      WITH_HELPER(what_is_no_json_is_a_warning),
      WITH_HELPER(a_file_that_is_missing_is_told_if_it_is_the_only_source),
      WITH_HELPER(what_is_no_file_is_a_warning),
      WITH_HELPER(the_first_source_that_has_it_counts),
      WITH_HELPER(without_sources_the_last_result_counts),
      WITH_HELPER(the_last_line_of_a_file_of_lines_counts),
      WITH_HELPER(only_the_end_of_a_long_file_of_lines_is_read),
      WITH_HELPER(the_units_name_may_have_numbers),
      WITH_HELPER(a_unit_that_is_a_file_has_its_metrics_beside_it),
      WITH_HELPER(there_are_never_too_many),
      WITH_HELPER(deep_nesting_is_no_danger),
      WITH_HELPER(no_file_can_break_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
