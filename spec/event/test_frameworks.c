#include "with_cmocka.h"

#include <string.h>

#include "event/frameworks.h"
#include "event/rules.h"

/* The names at the top of a unit, ended by NULL. */
static bool has_name(void *ctx, const char *glob) {
  for (const char *const *name = ctx; *name; name++)
    if (match_glob(glob, *name)) return true;
  return false;
}

static void is_of(const char *expected, const char *path, bool is_dir, const char *const *names) {
  const framework *f = framework_of(path, is_dir, names ? has_name : NULL, (void *)names);
  if (!f && expected) fail_msg("%s is nobody's, not of %s", path, expected);
  if (f && (!expected || strcmp(f->name, expected) != 0))
    fail_msg("%s is of %s, not of %s", path, f->name, expected ? expected : "nobody");
}

static void what_a_unit_holds_tells_whose_it_is(void **state) {
  is_of("Hugging Face Trainer", "a/checkpoint-5", true,
        (const char *const[]){"model.safetensors", "trainer_state.json", NULL});
  is_of("accelerate", "checkpoint-5", true,
        (const char *const[]){"model.safetensors", "random_states_0.pkl", NULL});
  is_of("torch.distributed.checkpoint", "epoch_5", true,
        (const char *const[]){"__0_0.distcp", ".metadata", NULL});
  is_of("DeepSpeed", "mine-5", true,
        (const char *const[]){"bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", NULL});
  is_of("Orbax", "checkpoint_5", true,
        (const char *const[]){"_CHECKPOINT_METADATA", "manifest.ocdbt", NULL});
  is_of("torchsnapshot", "step-5", true, (const char *const[]){".snapshot_metadata", "0", NULL});
}

static void a_name_tells_where_it_is_of_one_framework(void **state) {
  const char *const none[] = {"model.bin", NULL};
  is_of("DeepSpeed", "global_step5", true, NULL);
  is_of("Megatron", "iter_5", true, none);
  is_of("composer", "ep1-ba40-rank0.pt", false, NULL);
  is_of("TensorFlow", "ckpt-5.index", false, NULL);
  is_of("Lightning", "epoch=1-step=3.ckpt", false, NULL);
  is_of(NULL, "last.pt", false, NULL);
}

static void a_name_alone_tells_nothing_where_evidence_is_missing(void **state) {
  const char *const none[] = {"model.bin", NULL};
  is_of(NULL, "global_step5", true, none);
  is_of(NULL, "checkpoint-5", true, none);
  is_of(NULL, "7", true, none);
  is_of(NULL, "results", true, none);
}

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
    assert_null(f->evidence[FRAMEWORK_NAMES]);
    assert_null(f->begins[FRAMEWORK_BEGINS].text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_a_unit_holds_tells_whose_it_is),
      cmocka_unit_test(a_name_tells_where_it_is_of_one_framework),
      cmocka_unit_test(a_name_alone_tells_nothing_where_evidence_is_missing),
      cmocka_unit_test(a_file_that_other_things_are_called_is_told_by_its_first_bytes),
      cmocka_unit_test(the_rules_have_all_that_is_in_the_table),
      cmocka_unit_test(no_list_of_a_row_is_cut_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
