/* What pointers and lists of the known frameworks name. */
#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "event/pointers.h"

static const pointer_row *row_of(const char *name) {
  const pointer_row *row = pointers_row(name);
  if (!row) fail_msg("%s is not known", name);
  return row;
}

/* The names that a text has, with a blank between them. */
static void must_name(const pointer_row *row, const char *text, const char *expected) {
  names got = {0};
  char all[500] = "";
  assert_int_equal(pointers_read(row, text, strlen(text), &got, NULL), 0);
  for (size_t i = 0; i < got.count; i++)
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", got.at[i]);
  assert_string_equal(all, expected);
  names_free(&got);
}

static void each_framework_is_read_as_it_writes(void **state) {
  must_name(row_of("latest"), "global_step3", "global_step3");
  must_name(row_of("last_checkpoint"), "/abs/work/epoch_3.pth\n", "/abs/work/epoch_3.pth");
  must_name(row_of("latest_checkpointed_iteration.txt"), "3000\n", "3000");
  must_name(row_of("checkpoint"),
            "model_checkpoint_path: \"ckpt-3\"\nall_model_checkpoint_paths: \"ckpt-2\"\n"
            "all_model_checkpoint_paths: \"ckpt-3\"\n",
            "ckpt-3");
  must_name(row_of("checkpoint_manager_snapshot.json"),
            "{\"ray_version\": \"2.60.0\", \"checkpoint_results\": ["
            "{\"checkpoint_dir_name\": \"checkpoint_b\", \"metrics\": {}},"
            "{\"checkpoint_dir_name\": \"checkpoint_a\", \"metrics\": {}}],"
            "\"latest_checkpoint_result\": {\"checkpoint_dir_name\": \"checkpoint_b\"}}",
            "checkpoint_a checkpoint_b");
  must_name(row_of("result.json"), "{\"checkpoint_dir_name\": \"checkpoint_000001\"}", "");
  must_name(row_of("training_metadata.json"), "{\"epoch\": 3}", "");
  must_name(pointers_link(), "epoch=5-step=24.ckpt", "epoch=5-step=24.ckpt");
}

static void a_row_tells_whose_it_is(void **state) {
  assert_string_equal(pointers_framework(row_of("latest")), "DeepSpeed");
  assert_string_equal(pointers_framework(row_of("checkpoint_manager_snapshot.json")), "Ray Train");
  assert_null(pointers_framework(pointers_link()));
}

static void what_is_not_of_its_form_names_nothing(void **state) {
  must_name(row_of("latest"), "", "");
  must_name(row_of("latest"), "two\nlines", "");
  must_name(row_of("latest"), "\x80\x02}q", "");
  must_name(row_of("checkpoint"), "model_checkpoint_path: \"ckpt-3", "");
  must_name(row_of("checkpoint"), "global_step3", "");
  must_name(row_of("checkpoint_manager_snapshot.json"), "{\"checkpoint_results\": [", "");
  must_name(row_of("checkpoint_manager_snapshot.json"), "{\"checkpoint_dir_name\": 7}", "");
  assert_null(pointers_row("model.bin"));
  assert_null(pointers_guess("a b", 3));
  assert_null(pointers_guess("{\"a\":1}", 7));
  assert_non_null(pointers_guess("ckpt-3\n", 7));
}

static void a_unit_is_meant_by_its_own_name_or_its_step(void **state) {
  const pointer_row *text = row_of("latest"), *step = row_of("latest_checkpointed_iteration.txt");
  assert_true(pointers_mean(text, "global_step1", "global_step1", 1));
  assert_true(pointers_mean(text, "/a/b/epoch_3.pth", "epoch_3.pth", 3));
  assert_true(pointers_mean(text, "out/checkpoint-3/", "checkpoint-3", 3));
  assert_false(pointers_mean(text, "global_step10", "global_step1", 1));
  assert_false(pointers_mean(text, "..", "..", 1));
  assert_true(pointers_mean(step, "3000", "iter_0003000", 3000));
  assert_false(pointers_mean(step, "3001", "iter_0003000", 3000));
  assert_true(pointers_mean(step, "release", "release", -1));
}

static void must_become(const pointer_row *row, const char *text, const char *spelt,
                        const char *unit, int64_t step, const char *expected) {
  char out[500] = "";
  size_t len = pointers_rewrite(row, text, strlen(text), spelt, unit, step, out, sizeof out);
  assert_int_equal(len, strlen(expected));
  assert_string_equal(len ? out : "", expected);
}

static void another_unit_is_named_as_its_framework_would(void **state) {
  must_become(row_of("latest"), "global_step3", "global_step3", "global_step2", 2, "global_step2");
  must_become(row_of("last_checkpoint"), "/w/epoch_3.pth", "/w/epoch_3.pth", "epoch_2.pth", 2,
              "/w/epoch_2.pth");
  must_become(row_of("latest_checkpointed_iteration.txt"), "3000\n", "3000", "iter_0002000", 2000,
              "2000");
  must_become(row_of("checkpoint"),
              "model_checkpoint_path: \"ckpt-10\"\nall_model_checkpoint_paths: \"ckpt-1\"\n",
              "ckpt-10", "ckpt-9", 9,
              "model_checkpoint_path: \"ckpt-9\"\nall_model_checkpoint_paths: \"ckpt-1\"\n");
  must_become(pointers_link(), "./epoch=2.ckpt", "./epoch=2.ckpt", "epoch=1.ckpt", 1,
              "./epoch=1.ckpt");
  must_become(row_of("checkpoint_manager_snapshot.json"), "{}", "a", "b", 1, "");
  /* Megatron's other word, which no step takes the place of. */
  must_become(row_of("latest_checkpointed_iteration.txt"), "release", "release", "iter_0000002", 2,
              "");
  char small[4];
  assert_int_equal(pointers_rewrite(row_of("latest"), "abc", 3, "abc", "abcdef", 1, small, 4), 0);
}

static void what_a_checkpoint_itself_names_is_read(void **state) {
  names got = {0};
  const char *key = pointers_wish("trainer_state.json");
  static const char text[] = "{\"best_model_checkpoint\": \"out/checkpoint-10\", \"epoch\": 1.0}";
  static const char none[] = "{\"best_model_checkpoint\": null}";
  assert_non_null(key);
  assert_null(pointers_wish("config.json"));
  assert_int_equal(pointers_read_json(none, strlen(none), key, &got, NULL), 0);
  assert_int_equal(got.count, 0);
  assert_int_equal(pointers_read_json(text, strlen(text), key, &got, NULL), 0);
  assert_int_equal(got.count, 1);
  assert_string_equal(got.at[0], "out/checkpoint-10");
  names_free(&got);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_framework_is_read_as_it_writes),
      cmocka_unit_test(a_row_tells_whose_it_is),
      cmocka_unit_test(what_is_not_of_its_form_names_nothing),
      cmocka_unit_test(a_unit_is_meant_by_its_own_name_or_its_step),
      cmocka_unit_test(another_unit_is_named_as_its_framework_would),
      cmocka_unit_test(what_a_checkpoint_itself_names_is_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
