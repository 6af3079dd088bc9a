/* The promises of detect at the end of the writer, and of what the caller knows at the start. */
#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "detect_sim.h"

/* One with a text file, which no structural check can judge. */
static void hf_save(sim *s, const char *dir) {
  static const char *const names[] = {"merges.txt", "training_args.bin", "optimizer.pt",
                                      "trainer_state.json"};
  char path[256];
  sim_mkdir(s, dir);
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/%s", dir, names[i]);
    sim_wait(s, 5 * SIM_MS);
    sim_save(s, path, 1000);
  }
}

/* --- nothing stays open for ever --- */

static void a_complete_unit_that_lost_a_file_is_unproven_at_a_clean_end(void **state) {
  sim *s = *state;
  sim_mkdir(s, "checkpoint_1");
  sim_save(s, "checkpoint_1/a.bin", 2);
  sim_save(s, "checkpoint_1/b.bin", 2);
  sim_after(s, 40 * SIM_S, "checkpoint_1", DETECT_COMPLETE);
  sim_remove(s, "checkpoint_1/b.bin");
  sim_wait(s, SIM_S);
  detect_writer_gone(s->d, true);
  sim_wait(s, SIM_S);
  detect_unit u = sim_unit(s, "checkpoint_1");
  assert_int_equal(u.state, DETECT_UNPROVEN);
  assert_true(u.lacking);
  assert_true(detect_due(s->d) == INT64_MAX);
  assert_int_equal(sim_times(s, "checkpoint_1", DETECT_COMPLETE), 1);
}

static void a_unit_whose_marker_is_old_is_unproven_at_a_clean_end(void **state) {
  sim *s = *state;
  sim_mkdir(s, "checkpoint-1");
  sim_save(s, "checkpoint-1/__0_0.distcp", 2);
  sim_save(s, "checkpoint-1/.metadata", 2);
  sim_wait(s, 200 * SIM_MS);
  sim_save(s, "checkpoint-1/extra.txt", 2);
  sim_after(s, 3 * SIM_S, "checkpoint-1", DETECT_OPEN);
  detect_writer_gone(s->d, true);
  sim_after(s, SIM_S, "checkpoint-1", DETECT_UNPROVEN);
  assert_true(detect_due(s->d) == INT64_MAX);
}

static void a_removal_that_a_clean_end_cut_short_makes_nothing_complete(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_remove(s, "checkpoint-2/merges.txt"); /* before it was ever complete */
  detect_writer_gone(s->d, true);
  sim_after(s, 60 * SIM_S, "checkpoint-2", DETECT_UNPROVEN);
  assert_int_equal(sim_times(s, "checkpoint-2", DETECT_COMPLETE), 0);
}

static void what_changes_after_a_clean_end_is_judged_in_time_too(void **state) {
  sim *s = *state;
  sim_mkdir(s, "step-1");
  sim_save(s, "step-1/__0_0.distcp", 2);
  sim_mkdir(s, "checkpoint_1");
  sim_save(s, "checkpoint_1/a.bin", 2);
  sim_save(s, "checkpoint_1/b.bin", 2);
  sim_wait(s, 40 * SIM_S);
  detect_writer_gone(s->d, true);
  sim_save(s, "step-1/__1_0.distcp", 2); /* by a process that the writer left behind */
  sim_remove(s, "checkpoint_1/a.bin");
  sim_after(s, 20 * SIM_S, "step-1", DETECT_OPEN);
  sim_after(s, 11 * SIM_S, "step-1", DETECT_BROKEN);
  assert_int_equal(sim_state(s, "checkpoint_1"), DETECT_UNPROVEN);
  assert_true(detect_due(s->d) == INT64_MAX);
}

static void a_close_that_is_lost_is_waited_for_only_while_somebody_has_it_open(void **state) {
  for (int clean = 0; clean < 2; clean++) {
    sim *s = sim_new(NULL);
    sim_open(s);
    detect_writer_gone(s->d, clean);
    sim_begin(s, "a.pt", 10);
    sim_somebody_writes = true;
    sim_after(s, 600 * SIM_S, "a.pt", DETECT_OPEN);
    sim_somebody_writes = false;
    sim_after(s, 6 * SIM_S, "a.pt", DETECT_UNPROVEN);
    assert_true(detect_due(s->d) == INT64_MAX);
    sim_free(s);
  }
}

/* --- a writer that lived on after its last close --- */

static void a_save_that_ended_before_the_death_is_complete_at_once(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2"); /* after a TERM; then it lives on a little */
  sim_after(s, 1100 * SIM_MS, "checkpoint-2", DETECT_OPEN);
  detect_writer_gone(s->d, false);
  sim_after(s, 50 * SIM_MS, "checkpoint-2", DETECT_COMPLETE);
  detect_writer_new(s->d);
  hf_save(s, "checkpoint-4"); /* there is one before it now */
  sim_wait(s, 250 * SIM_MS);
  detect_writer_gone(s->d, false);
  sim_after(s, 50 * SIM_MS, "checkpoint-4", DETECT_COMPLETE);
}

static void a_close_just_before_the_death_counts_for_nothing(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_wait(s, 6 * SIM_S);
  hf_save(s, "checkpoint-4");
  sim_save(s, "checkpoint-4/optimizer.pt", 1001);
  sim_save(s, "checkpoint-4/trainer_state.json", 1000); /* again: which was the last? */
  sim_wait(s, 190 * SIM_MS);
  detect_writer_gone(s->d, false);
  sim_after(s, 3600 * SIM_S, "checkpoint-4", DETECT_UNPROVEN);
}

static void a_marker_that_was_begun_when_all_was_closed_outlives_any_death(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_wait(s, 6 * SIM_S);
  hf_save(s, "checkpoint-4");
  detect_writer_gone(s->d, false);
  sim_after(s, 50 * SIM_MS, "checkpoint-4", DETECT_COMPLETE);
  detect_writer_new(s->d);
  hf_save(s, "checkpoint-6");
  io_tree_content(s->tree, "checkpoint-6/trainer_state.json", "{\"epoch\": 1, ", 13);
  sim_feed(s, WATCH_MODIFY, "checkpoint-6/trainer_state.json", false, 0);
  sim_feed(s, WATCH_CLOSE_WRITE, "checkpoint-6/trainer_state.json", false, 0);
  detect_writer_gone(s->d, false);
  sim_after(s, 3600 * SIM_S, "checkpoint-6", DETECT_BROKEN);
}

/* Its files were there when the directory got its watch. */
static void what_was_closed_in_a_young_directory_outlives_its_writer(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_wait(s, 6 * SIM_S);
  io_tree_mkdir(s->tree, "checkpoint-4");
  io_tree_write(s->tree, "checkpoint-4/merges.txt", 1000);
  io_tree_write(s->tree, "checkpoint-4/optimizer.pt", 1000);
  io_tree_write(s->tree, "checkpoint-4/training_args.bin", 1000);
  sim_feed(s, WATCH_CREATE, "checkpoint-4", true, 0);
  sim_save(s, "checkpoint-4/trainer_state.json", 1000);
  sim_wait(s, 20 * SIM_MS);
  detect_writer_gone(s->d, false);
  sim_after(s, 50 * SIM_MS, "checkpoint-4", DETECT_COMPLETE);
  detect_writer_new(s->d);
  io_tree_mkdir(s->tree, "checkpoint-6"); /* the marker too: then the silence tells */
  io_tree_write(s->tree, "checkpoint-6/merges.txt", 1000);
  io_tree_write(s->tree, "checkpoint-6/optimizer.pt", 1000);
  io_tree_write(s->tree, "checkpoint-6/training_args.bin", 1000);
  sim_wait(s, 20 * SIM_MS);
  io_tree_write(s->tree, "checkpoint-6/trainer_state.json", 1000);
  sim_feed(s, WATCH_CREATE, "checkpoint-6", true, 0);
  sim_wait(s, 210 * SIM_MS);
  detect_writer_gone(s->d, false);
  sim_after(s, 50 * SIM_MS, "checkpoint-6", DETECT_COMPLETE);
}

static void what_a_listing_saw_outlives_its_writer_too(void **state) {
  static const char *const names[] = {"merges.txt", "optimizer.pt", "training_args.bin",
                                      "trainer_state.json"};
  sim *s = *state;
  char path[64];
  sim_open_mode(s, DETECT_FED, 5 * SIM_S);
  for (int step = 2; step <= 6; step += 2) {
    snprintf(path, sizeof path, "checkpoint-%d", step);
    io_tree_mkdir(s->tree, path);
    for (int i = 0; i < 4; i++) {
      snprintf(path, sizeof path, "checkpoint-%d/%s", step, names[i]);
      io_tree_write(s->tree, path, 1000);
      sim_wait(s, 20 * SIM_MS);
    }
    sim_wait(s, step < 6 ? SIM_S : 0);
  }
  detect_writer_gone(s->d, false);
  sim_after(s, 5 * SIM_S, "checkpoint-2", DETECT_COMPLETE);
  assert_int_equal(sim_state(s, "checkpoint-4"), DETECT_COMPLETE);
  assert_int_equal(sim_state(s, "checkpoint-6"), DETECT_UNPROVEN); /* 0.02 s before the death */
}

static void without_a_unit_before_it_late_ranks_are_given_a_second(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_wait(s, 900 * SIM_MS);
  detect_writer_gone(s->d, false);
  sim_after(s, 3600 * SIM_S, "checkpoint-2", DETECT_UNPROVEN);
}

static void closes_without_a_marker_behind_them_need_their_quiet_time(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_wait(s, 6 * SIM_S);
  hf_save(s, "checkpoint-4");
  sim_save(s, "checkpoint-4/rng_state_1.pth", 5); /* of a rank that may have died long before */
  sim_save(s, "a.pt", 10);
  sim_mkdir(s, "checkpoint-6");
  sim_save(s, "checkpoint-6/training_args.bin", 10);
  sim_wait(s, 1400 * SIM_MS);
  detect_writer_gone(s->d, false);
  sim_after(s, 3600 * SIM_S, "checkpoint-4", DETECT_UNPROVEN);
  assert_int_equal(sim_state(s, "a.pt"), DETECT_UNPROVEN);
  assert_int_equal(sim_state(s, "checkpoint-6"), DETECT_BROKEN);
}

static void a_unit_with_fewer_files_does_not_outlive_its_writer(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_save(s, "checkpoint-2/rng_state_1.pth", 5);
  sim_wait(s, 40 * SIM_S);
  hf_save(s, "checkpoint-4");
  sim_mkdir(s, "checkpoint-6");
  sim_save(s, "checkpoint-6/rng_state_1.pth", 5);
  sim_create(s, "checkpoint-6/.tmpAbCdEf"); /* and never closed by the living */
  hf_save(s, "checkpoint-6");
  sim_wait(s, 1400 * SIM_MS);
  detect_writer_gone(s->d, false);
  sim_after(s, 3600 * SIM_S, "checkpoint-4", DETECT_UNPROVEN);
  assert_true(sim_unit(s, "checkpoint-4").lacking);
  assert_int_equal(sim_state(s, "checkpoint-6"), DETECT_UNPROVEN);
}

static void what_is_written_after_the_death_is_not_saved_with_the_rest(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_wait(s, 1200 * SIM_MS);
  sim_somebody_writes = true; /* a child of it that lives on */
  detect_writer_gone(s->d, false);
  sim_after(s, 20 * SIM_S, "checkpoint-2", DETECT_OPEN);
  sim_save(s, "checkpoint-2/optimizer.pt", 7);
  sim_somebody_writes = false;
  sim_after(s, 3600 * SIM_S, "checkpoint-2", DETECT_UNPROVEN);
  assert_int_equal(sim_times(s, "checkpoint-2", DETECT_COMPLETE), 0);
}

/* --- what the caller knows --- */

static void a_number_that_the_caller_knows_is_a_unit(void **state) {
  static const char *const known[] = {"not/there", "1", "exp/3", "plain"};
  sim *s = *state;
  io_tree_mkdir(s->tree, "1");
  io_tree_write(s->tree, "1/model.pt", 200);
  io_tree_mkdir(s->tree, "2");
  io_tree_write(s->tree, "2/model.pt", 200);
  io_tree_mkdir(s->tree, "exp");
  io_tree_mkdir(s->tree, "exp/3");
  io_tree_mkdir(s->tree, "exp/3/checkpoint-1");
  io_tree_write(s->tree, "exp/3/checkpoint-1/a.bin", 200);
  io_tree_mkdir(s->tree, "plain");
  io_tree_write(s->tree, "plain/b.pt", 200);
  s->known = known;
  s->known_count = 4;
  sim_open(s);
  sim_wait(s, 60 * SIM_S);
  detect_unit u = sim_unit(s, "1");
  assert_int_equal(u.state, DETECT_UNPROVEN);
  assert_int_equal(u.kind, MATCH_DIR);
  assert_int_equal(u.step, 1);
  assert_int_equal(u.files, 1);
  assert_string_equal(u.group, "");
  assert_int_equal(sim_state(s, "1/model.pt"), DETECT_GONE);
  assert_int_equal(sim_times(s, "1/model.pt", DETECT_GONE), 0); /* and was never handed out */
  assert_int_equal(sim_state(s, "2"), DETECT_GONE);
  assert_int_not_equal(sim_state(s, "2/model.pt"), DETECT_GONE);
  assert_int_equal(sim_state(s, "exp/3"), DETECT_UNPROVEN);
  assert_int_equal(sim_state(s, "exp/3/checkpoint-1"), DETECT_GONE);
  assert_int_equal(sim_state(s, "plain"), DETECT_GONE); /* matches no pattern */
  assert_int_not_equal(sim_state(s, "plain/b.pt"), DETECT_GONE);
  u = sim_unit(s, "exp/3");
  assert_int_equal(detect_prove(s->d, "exp/3", &u.fingerprint, "committed", NULL), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WATCHED(a_complete_unit_that_lost_a_file_is_unproven_at_a_clean_end),
      WATCHED(a_unit_whose_marker_is_old_is_unproven_at_a_clean_end),
      WATCHED(a_removal_that_a_clean_end_cut_short_makes_nothing_complete),
      WATCHED(what_changes_after_a_clean_end_is_judged_in_time_too),
      cmocka_unit_test(a_close_that_is_lost_is_waited_for_only_while_somebody_has_it_open),
      WATCHED(a_save_that_ended_before_the_death_is_complete_at_once),
      WATCHED(a_close_just_before_the_death_counts_for_nothing),
      WATCHED(a_marker_that_was_begun_when_all_was_closed_outlives_any_death),
      WATCHED(what_was_closed_in_a_young_directory_outlives_its_writer),
      NOT_YET_WATCHED(what_a_listing_saw_outlives_its_writer_too),
      WATCHED(without_a_unit_before_it_late_ranks_are_given_a_second),
      WATCHED(closes_without_a_marker_behind_them_need_their_quiet_time),
      WATCHED(a_unit_with_fewer_files_does_not_outlive_its_writer),
      WATCHED(what_is_written_after_the_death_is_not_saved_with_the_rest),
      NOT_YET_WATCHED(a_number_that_the_caller_knows_is_a_unit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
