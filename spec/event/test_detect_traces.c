/* Recordings of real trainings, replayed through detect in virtual time. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect_trace.h"

/* From the last write to the start of the transfer, at most. */
static const double renamed = 0.5, marked = 2, proven = 2, rested = 30.1;

static void torch_save_is_complete_after_the_last_write(void **state) {
  sim *s = trace_replay("torch_save", 8);
  trace_complete_by(s, "best.pt", 23.899008, 0.11);        /* renamed: at once */
  trace_complete_by(s, "ckpt_000003.pt", 23.897346, 1.01); /* a zip, closed */
  trace_complete_by(s, "last.pt", 23.898149, 1.01);
  trace_complete_by(s, "legacy_3.pth", 23.895, 30.1); /* no zip */
  assert_true(sim_unit(s, "last.pt").in_place);
  assert_int_equal(sim_unit(s, "ckpt_000003.pt").step, 3);
  sim_free(s);
}

static void adaptdl_is_complete_when_renamed(void **state) {
  sim *s = trace_replay("adaptdl", 1);
  trace_each_within(s, "adaptdl", renamed);
  trace_complete_by(s, "checkpoint-3", 0.225414, 0.11);
  assert_int_equal(sim_unit(s, "checkpoint-3").files, 2);
  sim_free(s);
}

static void orbax_is_complete_when_renamed(void **state) {
  sim *s = trace_replay("orbax", 2);
  trace_each_within(s, "orbax", renamed);
  trace tr = trace_read("orbax");
  for (size_t i = 0; i < tr.count; i++)
    if (trace_is(&tr.at[i], "MOVED_TO") && strchr(tr.at[i].path, '/') == NULL &&
        tr.at[i].path[0] > '2')
      trace_complete_by(s, tr.at[i].path, tr.at[i].t, 0.11);
  assert_int_equal(sim_unit(s, "4").step, 4);
  free(tr.at);
  sim_free(s);
}

static void what_orbax_moved_to_its_bin_is_no_checkpoint(void **state) {
  sim *s = trace_replay("orbax_trash", 2);
  trace_each_within(s, "orbax_trash", renamed);
  assert_int_equal(sim_unit(s, "4").step, 4);
  assert_int_equal(sim_unit(s, "5").step, 5);
  for (size_t i = 0; i < s->count; i++)
    if (strchr(s->news[i].path, '/')) fail_msg("%s is told", s->news[i].path);
  for (int n = 1; n < 4; n++)
    assert_int_equal(sim_times(s, (const char[]){(char)('0' + n), 0}, DETECT_GONE), 1);
  sim_free(s);
}

static void files_of_sb3_are_seen(void **state) {
  sim *s = trace_replay("sb3", 4);
  assert_int_equal(sim_unit(s, "rl_model_256_steps.zip").step, 256);
  sim_free(s);
}

/* The recording has no bytes: no text in it is told to be LightGBM's, so only joblib's are. */
static void compressed_files_of_joblib_are_seen_and_texts_are_not(void **state) {
  sim *s = trace_replay("lightgbm_joblib", 3);
  assert_int_equal(sim_unit(s, "sgd_9.joblib.gz").step, 9);
  sim_free(s);
}

static void lightning_is_complete_at_its_bare_rename(void **state) {
  sim *s = trace_replay("lightning", 3);
  trace_each_within(s, "lightning", renamed);
  trace_complete_by(s, "checkpoints/epoch=4-step=20-val_loss=0.126.ckpt", 52.896824, 0.11);
  trace_complete_by(s, "checkpoints/last.ckpt", 52.900755, 0.12);
  assert_int_equal(sim_unit(s, "checkpoints/epoch=4-step=20-val_loss=0.126.ckpt").step, 20);
  sim_free(s);
}

static void a_lightning_link_is_no_unit(void **state) {
  sim *s = trace_replay("lightning_link", 2);
  trace_each_within(s, "lightning_link", renamed);
  assert_int_equal(sim_times(s, "checkpoints/last.ckpt", DETECT_COMPLETE), 0);
  sim_free(s);
}

static void hf_trainer_is_complete_by_its_marker(void **state) {
  sim *s = trace_replay("hf_trainer", 2);
  trace_each_within(s, "hf_trainer", marked);
  const detect_unit u = sim_unit(s, "checkpoint-8");
  assert_non_null(strstr(u.reason, "trainer_state.json"));
  assert_int_equal(u.files, 8);
  sim_free(s);
}

static void ranks_of_hf_trainer_are_waited_for(void **state) {
  sim *s = trace_replay("hf_trainer_ddp", 2);
  trace_each_within(s, "hf_trainer_ddp", marked);
  sim_free(s);
}

static void accelerate_is_complete_after_quiet(void **state) {
  sim *s = trace_replay("accelerate", 2);
  trace_each_within(s, "accelerate", rested);
  sim_free(s);
}

static void dcp_is_complete_by_its_metadata(void **state) {
  sim *s = trace_replay("dcp", 2);
  trace_each_within(s, "dcp", marked);
  trace_complete_by(s, "step-4", 63.157443, 1.51);
  sim_free(s);
}

static void keras_files_are_complete_after_a_second(void **state) {
  sim *s = trace_replay("keras", 6);
  trace_each_within(s, "keras", proven);
  trace_complete_by(s, "backup/latest.weights.h5", 66.942567, 1.01);
  sim_free(s);
}

static void tf_groups_are_complete_after_quiet(void **state) {
  sim *s = trace_replay("tf_ckpt", 2);
  assert_int_equal(sim_unit(s, "ckpt-4").files, 2);
  assert_int_equal(sim_unit(s, "ckpt-4").kind, MATCH_GROUP);
  sim_free(s);
}

static void xgboost_files_are_complete_after_quiet(void **state) {
  sim_free(trace_replay("xgboost", 3));
}

static void ray_tune_directories_are_complete_after_quiet(void **state) {
  sim *s = trace_replay("ray_tune", 7);
  trace_each_within(s, "ray_tune", rested);
  size_t above = 0;
  for (size_t i = 0; i < s->count; i++) above += trace_is_above(s->news[i].path);
  assert_in_range(above, 3, 30);
  sim_free(s);
}

static void ray_train_directories_are_complete_after_quiet(void **state) {
  sim *s = trace_replay("ray_train", 2);
  trace_each_within(s, "ray_train", rested);
  sim_free(s);
}

static void ignite_is_complete_when_renamed(void **state) {
  sim *s = trace_replay("ignite", 2);
  trace_each_within(s, "ignite", renamed);
  assert_int_equal(sim_times(s, "checkpoint_8_loss=-0.8691.pt", DETECT_COMPLETE), 1);
  assert_int_equal(sim_unit(s, "checkpoint_12_loss=-0.4100.pt").step, 12);
  sim_free(s);
}

/* Its directory has a log, and the file that names the newest, which is written each time. */
static void files_of_mmengine_are_complete_after_a_second(void **state) {
  sim *s = trace_replay("mmengine", 2);
  trace_each_within(s, "mmengine", proven);
  assert_int_equal(sim_unit(s, "epoch_5.pth").step, 5);
  assert_false(sim_unit(s, "epoch_5.pth").in_place);
  sim_free(s);
}

/* No file's name is in two of them, and directories are found by listing. */
static void torchsnapshot_is_complete_by_its_metadata(void **state) {
  sim *s = trace_replay("torchsnapshot", 3);
  trace_each_within(s, "torchsnapshot", marked);
  assert_non_null(strstr(sim_reason(s, "step-2"), ".snapshot_metadata"));
  sim_free(s);
}

static void a_file_of_flax_is_complete_when_renamed(void **state) {
  sim *s = trace_replay("flax_legacy", 2);
  trace_each_within(s, "flax_legacy", renamed);
  assert_int_equal(sim_times(s, "checkpoint_1", DETECT_COMPLETE), 1);
  assert_int_equal(sim_unit(s, "checkpoint_4").step, 4);
  for (size_t i = 0; i < s->count; i++) assert_string_not_equal(s->news[i].path, "checkpoint_tmp");
  sim_free(s);
}

static void a_directory_of_flax_is_complete_when_renamed(void **state) {
  sim *s = trace_replay("flax_orbax", 2);
  trace_each_within(s, "flax_orbax", renamed);
  for (int n = 1; n <= 4; n++) {
    char unit[32];
    snprintf(unit, sizeof unit, "checkpoint_%d", n);
    assert_int_equal(sim_times(s, unit, DETECT_COMPLETE), 1);
  }
  for (size_t i = 0; i < s->count; i++) assert_null(strstr(s->news[i].path, "-tmp"));
  sim_free(s);
}

/* `latest` names each of them 0.3 s before the second rank's file is there. */
static void deepspeed_is_complete_after_quiet_whatever_latest_says(void **state) {
  sim *s = trace_replay("deepspeed", 3);
  trace_each_within(s, "deepspeed", rested);
  for (int n = 1; n <= 3; n++) {
    char unit[32];
    snprintf(unit, sizeof unit, "global_step%d", n);
    assert_int_equal(sim_unit(s, unit).files, 3);
  }
  sim_free(s);
}

/* The second rank's random state comes half a second after the marker, in the first one too. */
static void a_slow_rank_of_hf_trainer_is_waited_for(void **state) {
  sim *s = trace_replay("hf_trainer_slow_rank", 2);
  trace_each_within(s, "hf_trainer_slow_rank", marked);
  assert_int_equal(sim_times(s, "checkpoint-5", DETECT_COMPLETE), 1);
  assert_int_equal(sim_unit(s, "checkpoint-15").files, 9);
  sim_free(s);
}

/* It keeps the first, which is the best, and removes the others as soon as the next is there. */
static void each_of_hf_trainer_is_complete_before_it_is_removed(void **state) {
  sim *s = trace_replay("hf_trainer_best", 2);
  trace_each_within(s, "hf_trainer_best", marked);
  for (int n = 5; n <= 20; n += 5) {
    char unit[32];
    snprintf(unit, sizeof unit, "checkpoint-%d", n);
    assert_int_equal(sim_times(s, unit, DETECT_COMPLETE), 1);
  }
  sim_free(s);
}

/* It is renamed twice: to a name that is none, and then over the one before. */
static void each_snapshot_of_catboost_is_complete_when_renamed(void **state) {
  sim *s = trace_replay("catboost", 1);
  trace_each_within(s, "catboost", renamed);
  assert_int_equal(sim_times(s, "experiment.cbsnapshot", DETECT_COMPLETE), 4);
  for (size_t i = 0; i < s->count; i++)
    assert_string_equal(s->news[i].path, "experiment.cbsnapshot");
  sim_free(s);
}

/* --- what kill -9 left --- */

static void must_leave_checkpoint_4_broken(const char *trace) {
  sim *s = trace_ruins(trace);
  sim_wait(s, 60 * SIM_S);
  sim_open(s);
  assert_int_equal(sim_state(s, "checkpoint-2"), DETECT_COMPLETE);
  assert_int_equal(sim_state(s, "checkpoint-4"), DETECT_BROKEN);
  sim_wait(s, 3600 * SIM_S);
  assert_int_equal(sim_times(s, "checkpoint-4", DETECT_COMPLETE), 0);
  sim_free(s);
}

static void an_hf_checkpoint_that_was_killed_in_its_optimizer_is_broken(void **state) {
  must_leave_checkpoint_4_broken("hf_optimizer");
}

/* Neither signature nor temporary name says so: the checkpoint before it does. */
static void an_hf_checkpoint_that_was_killed_in_its_model_is_broken(void **state) {
  must_leave_checkpoint_4_broken("hf_model_tmp");
}

static void an_overwritten_dcp_directory_that_was_killed_is_not_complete(void **state) {
  sim *s = trace_ruins("dcp_overwrite");
  static const char *const dirs[] = {"latest", "step-2", "step-3", "step-4"};
  char path[64];
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/.metadata", dirs[i]);
    sim_wait(s, SIM_MS);
    io_tree_write(s->tree, path, 8890);
  }
  sim_wait(s, SIM_S); /* ... and then the shards of `latest` were begun again */
  io_tree_write(s->tree, "latest/__0_0.distcp", 54198636);
  io_tree_write(s->tree, "latest/__1_0.distcp", 52428800);
  sim_wait(s, 60 * SIM_S);
  const char *const units[] = {"latest/", "step-{step}/", NULL};
  rules *r;
  assert_int_equal(rules_custom(units, NULL, NULL, -1, &r, NULL), 0);
  s->rules = r;
  sim_open(s);
  sim_after(s, 3600 * SIM_S, "step-4", DETECT_COMPLETE);
  assert_int_equal(sim_state(s, "latest"), DETECT_UNPROVEN);
  assert_int_equal(sim_times(s, "latest", DETECT_COMPLETE), 0);
  sim_free(s);
  rules_free(r);
}

static void what_orbax_left_behind_is_no_unit(void **state) {
  sim *s = trace_ruins("orbax");
  sim_wait(s, 60 * SIM_S);
  io_tree_write(s->tree, "1/_CHECKPOINT_METADATA", 361);
  io_tree_write(s->tree, "1/commit_success.txt", 77);
  sim_wait(s, 60 * SIM_S);
  sim_open(s);
  sim_after(s, 3600 * SIM_S, "1", DETECT_COMPLETE);
  for (size_t i = 0; i < s->count; i++) assert_string_equal(s->news[i].path, "1");
  sim_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(torch_save_is_complete_after_the_last_write),
      cmocka_unit_test(adaptdl_is_complete_when_renamed),
      cmocka_unit_test(orbax_is_complete_when_renamed),
      cmocka_unit_test(what_orbax_moved_to_its_bin_is_no_checkpoint),
      cmocka_unit_test(files_of_sb3_are_seen),
      cmocka_unit_test(compressed_files_of_joblib_are_seen_and_texts_are_not),
      cmocka_unit_test(lightning_is_complete_at_its_bare_rename),
      cmocka_unit_test(a_lightning_link_is_no_unit),
      cmocka_unit_test(hf_trainer_is_complete_by_its_marker),
      cmocka_unit_test(ranks_of_hf_trainer_are_waited_for),
      cmocka_unit_test(accelerate_is_complete_after_quiet),
      cmocka_unit_test(dcp_is_complete_by_its_metadata),
      cmocka_unit_test(keras_files_are_complete_after_a_second),
      cmocka_unit_test(tf_groups_are_complete_after_quiet),
      cmocka_unit_test(xgboost_files_are_complete_after_quiet),
      cmocka_unit_test(ray_tune_directories_are_complete_after_quiet),
      cmocka_unit_test(ray_train_directories_are_complete_after_quiet),
      cmocka_unit_test(ignite_is_complete_when_renamed),
      cmocka_unit_test(files_of_mmengine_are_complete_after_a_second),
      cmocka_unit_test(torchsnapshot_is_complete_by_its_metadata),
      cmocka_unit_test(a_file_of_flax_is_complete_when_renamed),
      cmocka_unit_test(a_directory_of_flax_is_complete_when_renamed),
      cmocka_unit_test(deepspeed_is_complete_after_quiet_whatever_latest_says),
      cmocka_unit_test(a_slow_rank_of_hf_trainer_is_waited_for),
      cmocka_unit_test(each_of_hf_trainer_is_complete_before_it_is_removed),
      cmocka_unit_test(each_snapshot_of_catboost_is_complete_when_renamed),
      cmocka_unit_test(an_hf_checkpoint_that_was_killed_in_its_optimizer_is_broken),
      cmocka_unit_test(an_hf_checkpoint_that_was_killed_in_its_model_is_broken),
      cmocka_unit_test(an_overwritten_dcp_directory_that_was_killed_is_not_complete),
      cmocka_unit_test(what_orbax_left_behind_is_no_unit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
