/* The promises of detect, in virtual time. Names say where real frameworks do this. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect_sim.h"
#include "tensor_bundle.h"
#include "io_fault.h"

#include "prims/match_series.h"

static void hf_files(sim *s, const char *dir, bool with_state) {
  static const char *const names[] = {"model.safetensors", "optimizer.pt", "training_args.bin",
                                      "trainer_state.json"};
  char path[256];
  for (int i = 0; i < (with_state ? 4 : 3); i++) {
    snprintf(path, sizeof path, "%s/%s", dir, names[i]);
    sim_wait(s, 5 * SIM_MS);
    sim_save(s, path, 1000);
  }
}

static void hf_save(sim *s, const char *dir) {
  sim_mkdir(s, dir);
  hf_files(s, dir, true);
}

/* The marker of rank 0 comes last. */
static void two_ranks_save(sim *s) {
  sim_mkdir(s, "checkpoint-2");
  sim_save(s, "checkpoint-2/rng_state_1.pth", 10);
  hf_files(s, "checkpoint-2", true);
}

/* --- FRAMEWORKS 2, in its order --- */

static void a_size_that_is_stable_proves_nothing(void **state) {
  sim *s = *state;
  sim_begin(s, "model.pt", 101960456); /* ftruncate to its last size, then long nothing */
  sim_after(s, 3600 * SIM_S, "model.pt", DETECT_OPEN);
  sim_close(s, "model.pt");
  sim_after(s, 29 * SIM_S, "model.pt", DETECT_OPEN);
  sim_after(s, 2 * SIM_S, "model.pt", DETECT_COMPLETE);
}

static void a_temporary_name_inside_is_no_part_of_the_unit(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_create(s, "checkpoint-2/.tmpzvLx4k");
  sim_wait(s, 60 * SIM_S);
  detect_unit u = sim_unit(s, "checkpoint-2");
  assert_int_equal(u.state, DETECT_COMPLETE);
  assert_int_equal(u.files, 4);
}

static void a_temporary_name_inside_restarts_the_quiet_time(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  for (int i = 0; i < 10; i++) {
    sim_wait(s, 1400 * SIM_MS);
    sim_write(s, "checkpoint-2/.tmpzvLx4k", 10);
  }
  assert_int_equal(sim_state(s, "checkpoint-2"), DETECT_OPEN);
}

static void a_close_after_a_rename_is_no_new_write(void **state) {
  sim *s = *state;
  sim_begin(s, "model.safetensors.tmp", 500);
  sim_rename(s, "model.safetensors.tmp", "model.safetensors");
  sim_after(s, 200 * SIM_MS, "model.safetensors", DETECT_COMPLETE);
  sim_close(s, "model.safetensors");
  detect_unit u = sim_unit(s, "model.safetensors");
  assert_int_equal(u.state, DETECT_COMPLETE);
  assert_int_equal(u.generation, 0);
}

static void a_write_after_a_rename_is_one(void **state) {
  sim *s = *state;
  sim_save(s, "a.tmp", 500);
  sim_rename(s, "a.tmp", "a.pt");
  sim_wait(s, 50 * SIM_MS);
  sim_write(s, "a.pt", 600);
  sim_wait(s, 3600 * SIM_S);
  assert_int_equal(sim_times(s, "a.pt", DETECT_COMPLETE), 0);
}

static void a_file_that_is_opened_again_is_waited_for(void **state) {
  sim *s = *state; /* LightGBM adds 25 bytes after its first close */
  sim_save(s, "model.ubj", 100);
  sim_wait(s, 29 * SIM_S);
  sim_write(s, "model.ubj", 125);
  sim_wait(s, 100 * SIM_S);
  assert_int_equal(sim_times(s, "model.ubj", DETECT_COMPLETE), 0);
  sim_close(s, "model.ubj");
  sim_wait(s, 31 * SIM_S);
  assert_int_equal(sim_unit(s, "model.ubj").bytes, 125);
  assert_int_equal(sim_state(s, "model.ubj"), DETECT_COMPLETE);
}

static void a_rank_that_is_late_is_waited_for(void **state) {
  sim *s = *state;
  two_ranks_save(s);
  sim_after(s, 10 * SIM_S, "checkpoint-2", DETECT_COMPLETE);
  hf_save(s, "checkpoint-4");
  sim_after(s, 20 * SIM_S, "checkpoint-4", DETECT_OPEN); /* the marker is there, rank 1 is not */
  sim_save(s, "checkpoint-4/rng_state_1.pth", 10);
  int64_t at = s->now;
  sim_after(s, 10 * SIM_S, "checkpoint-4", DETECT_COMPLETE);
  assert_true(sim_when(s, "checkpoint-4", DETECT_COMPLETE, 0) >= at + 1500 * SIM_MS);
}

static void a_unit_with_fewer_files_needs_the_long_quiet(void **state) {
  sim *s = *state;
  two_ranks_save(s);
  sim_wait(s, 10 * SIM_S);
  hf_save(s, "checkpoint-4");
  sim_after(s, 31 * SIM_S, "checkpoint-4", DETECT_COMPLETE);
  assert_non_null(strstr(sim_reason(s, "checkpoint-4"), "rng_state_1.pth"));
}

/* Orbax names its data by what is in it, torchsnapshot by chance. */
static void names_that_are_made_anew_each_time_are_not_compared(void **state) {
  static const char *const names[][2] = {
      {"d/8bbc3cd7e21a4b0f9f8f3c2a1b0d9e8f", "d/0123456789abcdef0123456789abcdef"},
      {"b/0f3c8b1e-26a4-4d53-9d0b-0c9f5d1f1a11", "b/7a1d2c3b-4e5f-4a6b-8c7d-9e0f1a2b3c4d"}};
  sim *s = *state;
  char path[80];
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "checkpoint-%d", 2 * i + 2);
    sim_mkdir(s, path);
    for (int k = 0; k < 2; k++) {
      snprintf(path, sizeof path, "checkpoint-%d/%c", 2 * i + 2, *names[k][i]);
      sim_mkdir(s, path);
      snprintf(path, sizeof path, "checkpoint-%d/%s", 2 * i + 2, names[k][i]);
      sim_save(s, path, 10);
    }
    snprintf(path, sizeof path, "checkpoint-%d", 2 * i + 2);
    hf_files(s, path, true);
    sim_after(s, 6 * SIM_S, path, DETECT_COMPLETE);
  }
}

/* Whoever writes it has waited for all ranks. */
static void a_final_marker_spares_the_comparison(void **state) {
  sim *s = *state;
  sim_mkdir(s, "step-1");
  sim_save(s, "step-1/__0_0.distcp", 2);
  sim_save(s, "step-1/__1_0.distcp", 2);
  sim_save(s, "step-1/.metadata", 2);
  sim_after(s, 6 * SIM_S, "step-1", DETECT_COMPLETE);
  sim_mkdir(s, "step-2"); /* of fewer ranks */
  sim_save(s, "step-2/__0_0.distcp", 2);
  sim_save(s, "step-2/.metadata", 2);
  sim_after(s, 6 * SIM_S, "step-2", DETECT_COMPLETE);
  assert_false(sim_unit(s, "step-2").lacking);
}

static void names_are_compared_with_the_step_in_them(void **state) {
  sim *s = *state;
  sim_mkdir(s, "checkpoint-10");
  sim_save(s, "checkpoint-10/model_10.pt", 10);
  hf_files(s, "checkpoint-10", true);
  sim_wait(s, 10 * SIM_S);
  sim_mkdir(s, "checkpoint-20");
  sim_save(s, "checkpoint-20/model_20.pt", 10);
  hf_files(s, "checkpoint-20", true);
  sim_after(s, 10 * SIM_S, "checkpoint-20", DETECT_COMPLETE);
}

static void dcp_save(sim *s, const char *dir, bool finish) {
  char a[64], b[64], c[64];
  snprintf(a, sizeof a, "%s/__0_0.distcp", dir);
  snprintf(b, sizeof b, "%s/.metadata.tmp", dir);
  snprintf(c, sizeof c, "%s/.metadata", dir);
  sim_mkdir(s, dir);
  sim_save(s, a, 1000);
  if (!finish) return;
  sim_save(s, b, 10);
  sim_rename(s, b, c);
}

static void a_marker_that_is_left_over_proves_nothing(void **state) {
  sim *s = *state;
  dcp_save(s, "step-1", true);
  sim_after(s, 6 * SIM_S, "step-1", DETECT_COMPLETE);
  dcp_save(s, "step-1", false); /* overwrites in place; the old .metadata stays */
  sim_after(s, 3600 * SIM_S, "step-1", DETECT_OPEN);
  assert_int_equal(sim_times(s, "step-1", DETECT_COMPLETE), 1);
  dcp_save(s, "step-1", true);
  sim_wait(s, 6 * SIM_S);
  detect_unit u = sim_unit(s, "step-1");
  assert_int_equal(u.state, DETECT_COMPLETE);
  assert_int_equal(u.generation, 1);
  assert_true(u.in_place);
}

static void a_marker_of_an_earlier_save_does_not_prove_the_next(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_wait(s, 6 * SIM_S);
  sim_save(s, "checkpoint-2/model.safetensors", 2000); /* the next save, into the same directory */
  sim_after(s, 3600 * SIM_S, "checkpoint-2", DETECT_OPEN);
  hf_files(s, "checkpoint-2", true);
  sim_after(s, 6 * SIM_S, "checkpoint-2", DETECT_COMPLETE);
}

static void a_late_rank_may_write_its_file_again_after_the_marker(void **state) {
  sim *s = *state;
  two_ranks_save(s);
  sim_wait(s, 6 * SIM_S);
  hf_files(s, "checkpoint-2", true); /* a later run comes to the same step */
  sim_after(s, 20 * SIM_S, "checkpoint-2", DETECT_OPEN);
  sim_save(s, "checkpoint-2/rng_state_1.pth", 11);
  sim_after(s, 6 * SIM_S, "checkpoint-2", DETECT_COMPLETE);
  assert_int_equal(sim_unit(s, "checkpoint-2").generation, 1);
}

static void a_dcp_directory_without_metadata_is_never_complete(void **state) {
  sim *s = *state;
  dcp_save(s, "step-2", false);
  sim_after(s, 3600 * SIM_S, "step-2", DETECT_OPEN);
  detect_writer_gone(s->d, true);
  sim_after(s, SIM_S, "step-2", DETECT_BROKEN);
}

static void files_of_a_young_directory_are_found_by_listing(void **state) {
  sim *s = *state;
  io_tree_mkdir(s->tree, "checkpoint_7"); /* all of it before the event is read */
  io_tree_mkdir(s->tree, "checkpoint_7/sub");
  io_tree_write(s->tree, "checkpoint_7/sub/a.bin", 10);
  io_tree_write(s->tree, "checkpoint_7/b.bin", 10);
  sim_feed(s, WATCH_CREATE, "checkpoint_7", true, 0);
  sim_after(s, 29 * SIM_S, "checkpoint_7", DETECT_OPEN);
  sim_after(s, 2 * SIM_S, "checkpoint_7", DETECT_COMPLETE);
  assert_int_equal(sim_unit(s, "checkpoint_7").files, 2);
}

/* HF makes the directory and its first file within a millisecond, often before the watch is set. */
static void a_marker_counts_for_a_young_directory_too(void **state) {
  sim *s = *state;
  io_tree_mkdir(s->tree, "checkpoint-7");
  io_tree_write(s->tree, "checkpoint-7/config.json", 10);
  io_tree_write(s->tree, "checkpoint-7/merges.txt", 10);
  sim_wait(s, 20 * SIM_MS);
  sim_feed(s, WATCH_CREATE, "checkpoint-7", true, 0);
  sim_save(s, "checkpoint-7/training_args.bin", 10);
  sim_save(s, "checkpoint-7/trainer_state.json", 10);
  sim_somebody_writes = true;
  sim_after(s, 60 * SIM_S, "checkpoint-7", DETECT_OPEN);
  sim_somebody_writes = false;
  sim_after(s, 11 * SIM_S, "checkpoint-7", DETECT_COMPLETE);
  io_tree_mkdir(s->tree, "checkpoint-8"); /* all of it, and nobody writes */
  io_tree_write(s->tree, "checkpoint-8/config.json", 10);
  io_tree_write(s->tree, "checkpoint-8/merges.txt", 10);
  io_tree_write(s->tree, "checkpoint-8/training_args.bin", 10);
  io_tree_write(s->tree, "checkpoint-8/trainer_state.json", 10);
  sim_feed(s, WATCH_CREATE, "checkpoint-8", true, 0);
  sim_after(s, 6 * SIM_S, "checkpoint-8", DETECT_COMPLETE);
}

/* Between a marker and the start of the transfer lie 2 s at most. */
static void a_marker_is_believed_after_a_second_and_a_half(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-7");
  sim_after(s, 1400 * SIM_MS, "checkpoint-7", DETECT_OPEN);
  sim_after(s, 200 * SIM_MS, "checkpoint-7", DETECT_COMPLETE);
}

/* Nobody knows how many more come. */
static void what_comes_long_after_a_marker_without_a_unit_before_waits(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-7");
  sim_wait(s, SIM_S);
  sim_save(s, "checkpoint-7/rng_state_1.pth", 10);
  sim_wait(s, SIM_S);
  sim_save(s, "checkpoint-7/rng_state_2.pth", 10);
  sim_wait(s, 4 * SIM_S);
  sim_save(s, "checkpoint-7/rng_state_3.pth", 10);
  sim_after(s, 31 * SIM_S, "checkpoint-7", DETECT_COMPLETE);
  assert_int_equal(sim_times(s, "checkpoint-7", DETECT_COMPLETE), 1);
}

/* From the last write to complete it takes two listings at most. */
static void a_marker_counts_with_polling_too(void **state) {
  static const char *const names[] = {"merges.txt", "optimizer.pt", "training_args.bin",
                                      "trainer_state.json"};
  sim *s = *state;
  char path[64];
  sim_open_mode(s, DETECT_FED, 5 * SIM_S);
  for (int step = 1; step <= 6; step++) {
    snprintf(path, sizeof path, "checkpoint-%d", step);
    io_tree_mkdir(s->tree, path);
    for (int i = 0; i < 4; i++) {
      snprintf(path, sizeof path, "checkpoint-%d/%s", step, names[i]);
      io_tree_write(s->tree, path, 1000);
      sim_wait(s, 770 * SIM_MS);
    }
    snprintf(path, sizeof path, "checkpoint-%d", step);
    sim_after(s, 10 * SIM_S - 770 * SIM_MS, path, DETECT_COMPLETE);
  }
  io_tree_mkdir(s->tree, "checkpoint-7"); /* the marker is not its last: somebody is at it */
  for (int i = 4; i-- > 0;) {
    snprintf(path, sizeof path, "checkpoint-7/%s", names[i]);
    io_tree_write(s->tree, path, 1000);
    sim_wait(s, 11 * SIM_S);
  }
  assert_int_equal(sim_state(s, "checkpoint-7"), DETECT_OPEN);
  sim_after(s, 30 * SIM_S, "checkpoint-7", DETECT_COMPLETE);
  assert_int_equal(sim_times(s, "checkpoint-7", DETECT_COMPLETE), 1);
}

static void a_file_that_was_only_listed_needs_that_nobody_writes_it(void **state) {
  sim *s = *state;
  io_tree_mkdir(s->tree, "checkpoint_7");
  io_tree_write(s->tree, "checkpoint_7/b.bin", 10);
  sim_feed(s, WATCH_CREATE, "checkpoint_7", true, 0);
  sim_somebody_writes = true;
  sim_after(s, 3600 * SIM_S, "checkpoint_7", DETECT_OPEN);
  sim_somebody_writes = false;
  sim_after(s, 24 * SIM_S, "checkpoint_7",
            DETECT_OPEN); /* quiet begins when it was last seen open */
  sim_after(s, 12 * SIM_S, "checkpoint_7", DETECT_COMPLETE);
}

static void a_renamed_directory_keeps_what_is_known_of_it(void **state) {
  sim *s = *state;
  sim_mkdir(s, "work");
  sim_create(s, "work/a.bin");
  sim_rename(s, "work", "checkpoint-3");
  assert_int_equal(sim_state(s, "checkpoint-3"), DETECT_OPEN);
  sim_write(s, "checkpoint-3/a.bin", 10); /* the event comes under its new path */
  sim_after(s, 3600 * SIM_S, "checkpoint-3", DETECT_OPEN);
  sim_close(s, "checkpoint-3/a.bin");
  sim_after(s, 31 * SIM_S, "checkpoint-3", DETECT_COMPLETE);
}

static void a_bare_rename_is_complete_without_a_close(void **state) {
  sim *s = *state; /* Lightning, from /tmp; then it sets the times */
  sim_arrive(s, "last.ckpt", 1000);
  io_tree_touch(s->tree, "last.ckpt", IO_TREE_EPOCH + 5 * SIM_S);
  sim_feed(s, WATCH_ATTRIB, "last.ckpt", false, 0);
  sim_after(s, 150 * SIM_MS, "last.ckpt", DETECT_COMPLETE);
}

/* --- one file that its structure proves --- */

static const char whole_zip[] = "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"; /* with its NUL: 22 */

static void save_zip(sim *s, const char *path) {
  bool there = io_tree_has(s->tree, path);
  io_tree_content(s->tree, path, whole_zip, sizeof whole_zip);
  sim_feed(s, there ? WATCH_MODIFY : WATCH_CREATE, path, false, 0);
  sim_feed(s, WATCH_MODIFY, path, false, 0);
}

/* torch.save over the same name each 9 s */
static void what_its_structure_proves_is_complete_after_a_second(void **state) {
  sim *s = *state;
  for (int i = 0; i < 8; i++) {
    save_zip(s, "last.pt");
    sim_after(s, 2 * SIM_S, "last.pt", DETECT_OPEN); /* not closed yet */
    sim_close(s, "last.pt");
    sim_after(s, 900 * SIM_MS, "last.pt", DETECT_OPEN);
    sim_after(s, 200 * SIM_MS, "last.pt", DETECT_COMPLETE);
    assert_true(sim_unit(s, "last.pt").in_place);
    sim_wait(s, 8 * SIM_S);
  }
  assert_int_equal(sim_times(s, "last.pt", DETECT_COMPLETE), 8);
  assert_non_null(strstr(sim_reason(s, "last.pt"), "structure"));
}

/* As TensorFlow does: the shard gets its name, then the index is written. */
static void a_bundle_of_tensors_is_complete_a_second_after_its_index(void **state) {
  static const char zeros[BUNDLE_SHARD];
  sim *s = *state;
  io_tree_content(s->tree, "ckpt-1.data-00000-of-00001", zeros, sizeof zeros);
  sim_feed(s, WATCH_MOVED_TO, "ckpt-1.data-00000-of-00001", false, 7);
  sim_after(s, 5 * SIM_S, "ckpt-1", DETECT_OPEN);
  io_tree_content(s->tree, "ckpt-1.index", bundle_index, sizeof bundle_index);
  sim_feed(s, WATCH_CREATE, "ckpt-1.index", false, 0);
  sim_feed(s, WATCH_MODIFY, "ckpt-1.index", false, 0);
  sim_after(s, 2 * SIM_S, "ckpt-1", DETECT_OPEN); /* not closed yet */
  sim_close(s, "ckpt-1.index");
  sim_after(s, 900 * SIM_MS, "ckpt-1", DETECT_OPEN);
  sim_after(s, 200 * SIM_MS, "ckpt-1", DETECT_COMPLETE);
  sim_save(s, "ckpt-2.data-00000-of-00001", 300);
  sim_save(s, "ckpt-2.index", 300); /* no table */
  sim_after(s, 28 * SIM_S, "ckpt-2", DETECT_OPEN);
}

/* How many shards there are the index tells, and not the checkpoint before. */
static void a_bundle_of_fewer_shards_than_the_one_before_lacks_none(void **state) {
  static const char zeros[BUNDLE_SHARD];
  sim *s = *state;
  sim_save(s, "ckpt-1.data-00000-of-00002", 300);
  sim_save(s, "ckpt-1.data-00001-of-00002", 300);
  sim_save(s, "ckpt-1.index", 300);
  sim_after(s, 31 * SIM_S, "ckpt-1", DETECT_COMPLETE);
  io_tree_content(s->tree, "ckpt-2.data-00000-of-00001", zeros, sizeof zeros);
  sim_feed(s, WATCH_MOVED_TO, "ckpt-2.data-00000-of-00001", false, 8);
  io_tree_content(s->tree, "ckpt-2.index", bundle_index, sizeof bundle_index);
  sim_feed(s, WATCH_CREATE, "ckpt-2.index", false, 0);
  sim_feed(s, WATCH_MODIFY, "ckpt-2.index", false, 0);
  sim_close(s, "ckpt-2.index");
  sim_after(s, 1100 * SIM_MS, "ckpt-2", DETECT_COMPLETE);
}

static void a_structure_that_proves_nothing_waits_and_says_so(void **state) {
  sim *s = *state;
  sim_save(s, "last.pt", 1000);
  sim_after(s, 2 * SIM_S, "last.pt", DETECT_OPEN);
  assert_non_null(
      strstr(sim_reason(s, "last.pt"), "structure does not prove it whole, quiet 2.0 of 30"));
  io_tree_content(s->tree, "torn.pt", "PK\3\4 and so on", 14); /* nobody has it open */
  sim_feed(s, WATCH_CREATE, "torn.pt", false, 0);
  sim_feed(s, WATCH_CLOSE_WRITE, "torn.pt", false, 0);
  sim_after(s, 5 * SIM_S, "torn.pt", DETECT_OPEN); /* and not broken: it may be written on */
  sim_after(s, 30 * SIM_S, "torn.pt", DETECT_BROKEN);
  assert_int_equal(sim_state(s, "last.pt"), DETECT_COMPLETE);
}

/* safetensors has its length before it has its bytes. */
static void a_length_proves_only_with_a_close_that_was_seen(void **state) {
  sim *s = *state;
  sim_begin(s, "a.safetensors", 1000);
  sim_after(s, 60 * SIM_S, "a.safetensors", DETECT_OPEN);
  sim_close(s, "a.safetensors");
  sim_after(s, 1100 * SIM_MS, "a.safetensors", DETECT_COMPLETE);
  io_tree_mkdir(s->tree, "exp");
  io_tree_write(s->tree, "exp/b.safetensors", 1000); /* found by a listing: no close was seen */
  io_tree_content(s->tree, "exp/b.pt", whole_zip, sizeof whole_zip);
  sim_feed(s, WATCH_CREATE, "exp", true, 0);
  sim_after(s, 1100 * SIM_MS, "exp/b.pt", DETECT_COMPLETE);
  sim_after(s, 28 * SIM_S, "exp/b.safetensors", DETECT_OPEN);
  sim_after(s, 2 * SIM_S, "exp/b.safetensors", DETECT_COMPLETE);
}

static void with_polling_a_structure_needs_an_interval_and_a_length_all_the_time(void **state) {
  sim *s = *state;
  sim_open_mode(s, DETECT_FED, 5 * SIM_S);
  for (int i = 0; i < 4; i++) {
    io_tree_content(s->tree, "last.pt", whole_zip, sizeof whole_zip);
    sim_after(s, 10 * SIM_S, "last.pt", DETECT_COMPLETE);
    sim_wait(s, 1700 * SIM_MS);
  }
  assert_int_equal(sim_times(s, "last.pt", DETECT_COMPLETE), 4);
  io_tree_write(s->tree, "a.safetensors", 1000);
  sim_after(s, 30 * SIM_S, "a.safetensors", DETECT_OPEN);
  sim_after(s, 6 * SIM_S, "a.safetensors", DETECT_COMPLETE);
  io_tree_content(s->tree, "open.pt", whole_zip, sizeof whole_zip);
  sim_somebody_writes = true;
  sim_after(s, 60 * SIM_S, "open.pt", DETECT_OPEN);
  sim_somebody_writes = false;
}

static void a_name_that_is_written_again_has_generations(void **state) {
  sim *s = *state;
  for (uint32_t i = 0; i < 3; i++) {
    sim_save(s, "best.keras", 1000 + i);
    assert_int_equal(sim_state(s, "best.keras"), DETECT_OPEN);
    sim_wait(s, 31 * SIM_S);
    detect_unit u = sim_unit(s, "best.keras");
    assert_int_equal(u.state, DETECT_COMPLETE);
    assert_int_equal(u.generation, i);
    assert_true(u.in_place);
    assert_int_equal(u.bytes, 1000 + i);
  }
}

static void a_name_that_is_replaced_by_rename_has_generations(void **state) {
  sim *s = *state;
  for (uint32_t i = 0; i < 3; i++) {
    sim_save(s, "best.pt.tmp", 1000 + i);
    sim_rename(s, "best.pt.tmp", "best.pt");
    sim_wait(s, 150 * SIM_MS);
    detect_unit u = sim_unit(s, "best.pt");
    assert_int_equal(u.state, DETECT_COMPLETE);
    assert_int_equal(u.generation, i);
  }
  assert_int_equal(sim_times(s, "best.pt", DETECT_GONE), 0);
}

static void a_unit_that_is_being_removed_is_never_complete(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_mkdir(s, "checkpoint_9");
  sim_save(s, "checkpoint_9/a.bin", 1);
  sim_save(s, "checkpoint_9/b.bin", 1);
  sim_wait(s, 40 * SIM_S);
  sim_remove(s, "checkpoint-2/optimizer.pt");
  sim_remove(s, "checkpoint_9/a.bin");
  assert_int_equal(sim_state(s, "checkpoint-2"), DETECT_OPEN);
  sim_after(s, 3600 * SIM_S, "checkpoint-2", DETECT_OPEN); /* rmtree hangs on a slow disk */
  assert_int_equal(sim_state(s, "checkpoint_9"), DETECT_OPEN);
  sim_remove_tree(s, "checkpoint-2");
  assert_int_equal(sim_state(s, "checkpoint-2"), DETECT_GONE);
  assert_int_equal(sim_times(s, "checkpoint-2", DETECT_GONE), 1);
  assert_int_equal(sim_times(s, "checkpoint-2", DETECT_COMPLETE), 1);
}

static void silence_between_files_is_no_proof(void **state) {
  sim *s = *state;
  sim_mkdir(s, "checkpoint_3");
  for (int i = 0; i < 5; i++) {
    char path[64];
    snprintf(path, sizeof path, "checkpoint_3/%d.bin", i);
    sim_save(s, path, 10);
    sim_after(s, 25 * SIM_S, "checkpoint_3", DETECT_OPEN);
  }
  sim_after(s, 6 * SIM_S, "checkpoint_3", DETECT_COMPLETE);
}

static void dot_files_are_data(void **state) {
  sim *s = *state;
  dcp_save(s, "step-1", true);
  sim_save(s, "step-1/.metadata.json", 5);
  sim_wait(s, 40 * SIM_S);
  assert_int_equal(sim_unit(s, "step-1").files, 3);
}

static void an_empty_directory_is_broken_once_nobody_writes(void **state) {
  sim *s = *state;
  io_tree_mkdir(s->tree, "checkpoint-8");
  sim_somebody_writes = true;
  sim_open(s);
  assert_int_equal(sim_state(s, "checkpoint-8"), DETECT_OPEN);
  sim_somebody_writes = false;
  sim_after(s, 6 * SIM_S, "checkpoint-8", DETECT_BROKEN);
}

static void a_link_that_replaces_itself_is_no_unit(void **state) {
  sim *s = *state;
  for (int i = 0; i < 3; i++) {
    if (i) sim_remove(s, "last.ckpt");
    io_tree_link(s->tree, "last.ckpt", "epoch=1.ckpt");
    sim_feed(s, WATCH_CREATE, "last.ckpt", false, 0);
    sim_wait(s, 60 * SIM_S);
  }
  assert_int_equal(s->count, 0);
}

static void a_link_in_a_directory_is_never_followed(void **state) {
  sim *s = *state;
  io_tree_mkdir(s->tree, "checkpoint-1");
  io_tree_write(s->tree, "checkpoint-1/a.bin", 1);
  io_tree_link(s->tree, "loop", ".");
  io_tree_link(s->tree, "checkpoint-5", "checkpoint-1");
  sim_open(s);
  sim_after(s, 60 * SIM_S, "checkpoint-5", DETECT_GONE);
  assert_int_equal(sim_state(s, "loop/checkpoint-1"), DETECT_GONE);
}

/* --- what was there before --- */

static void what_was_there_before_is_unproven(void **state) {
  sim *s = *state;
  io_tree_write(s->tree, "last.pt", 1000);
  sim_wait(s, 100 * SIM_S);
  sim_open(s);
  assert_int_equal(sim_state(s, "last.pt"), DETECT_UNPROVEN);
  assert_int_equal(sim_unit(s, "last.pt").fingerprint.len, 16);
  sim_after(s, 3600 * SIM_S, "last.pt", DETECT_UNPROVEN);
  assert_int_equal(detect_due(s->d), INT64_MAX);
}

static void what_was_there_before_is_complete_by_its_marker(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_wait(s, SIM_S);
  sim_open(s);
  assert_int_equal(sim_state(s, "checkpoint-2"), DETECT_OPEN); /* quiet 1 of 1.5 s */
  sim_after(s, 600 * SIM_MS, "checkpoint-2", DETECT_COMPLETE);
}

static void what_the_caller_learned_counts_for_what_was_there_before(void **state) {
  static const char *const names[] = {"rng_state_1.pth", "trainer_state.json"};
  sim *s = *state;
  hf_save(s, "checkpoint-4");
  sim_wait(s, 100 * SIM_S);
  detect_options o = {.io = io_tree_io(s->tree),
                      .root = IO_TREE_ROOT,
                      .rules = rules_builtin(),
                      .mode = DETECT_FED};
  assert_int_equal(detect_open(&o, &s->d, NULL), 0);
  assert_int_equal(detect_learn(s->d, "", "checkpoint-2", names, 2, NULL), 0);
  assert_int_equal(sim_state(s, "checkpoint-4"), DETECT_UNPROVEN);
  assert_non_null(strstr(sim_reason(s, "checkpoint-4"), "rng_state_1.pth"));
  assert_true(sim_unit(s, "checkpoint-4").lacking);
}

static void what_orbax_left_is_complete_by_its_marker(void **state) {
  sim *s = *state;
  char path[80];
  for (int step = 9; step <= 10; step++) {
    snprintf(path, sizeof path, "%d", step);
    io_tree_mkdir(s->tree, path);
    snprintf(path, sizeof path, "%d/state", step);
    io_tree_mkdir(s->tree, path);
    snprintf(path, sizeof path, "%d/state/rank0_%d.bin", step, step == 9 ? 17 : 23);
    io_tree_write(s->tree, path, 10);
    snprintf(path, sizeof path, "%d/_CHECKPOINT_METADATA", step);
    io_tree_write(s->tree, path, 10);
    snprintf(path, sizeof path, "%d/commit_success.txt", step);
    io_tree_write(s->tree, path, 10);
    sim_wait(s, 20 * SIM_S);
  }
  sim_open(s);
  sim_after(s, SIM_S, "10", DETECT_COMPLETE);
  assert_int_equal(sim_state(s, "9"), DETECT_COMPLETE);
}

static void a_torn_file_that_was_there_before_is_broken(void **state) {
  sim *s = *state;
  io_tree_content(s->tree, "a.pt", "PK\3\4 and then the power went", 28);
  sim_wait(s, 100 * SIM_S);
  sim_open(s);
  assert_int_equal(sim_state(s, "a.pt"), DETECT_BROKEN);
}

static void the_caller_can_prove_a_unit(void **state) {
  sim *s = *state;
  io_tree_write(s->tree, "last.pt", 1000);
  io_tree_write(s->tree, "b.pt", 1000);
  sim_wait(s, 100 * SIM_S);
  sim_open(s);
  digest fp = sim_unit(s, "last.pt").fingerprint, other = sim_unit(s, "b.pt").fingerprint;
  assert_int_equal(detect_prove(s->d, "last.pt", &other, "journal", NULL), 0);
  assert_int_equal(detect_prove(s->d, "last.pt", &fp, "journal", NULL), 1);
  assert_int_equal(sim_state(s, "last.pt"), DETECT_COMPLETE);
  assert_string_equal(sim_reason(s, "last.pt"), "journal");
  io_tree_write(s->tree, "b.pt", 1001); /* behind its back */
  assert_int_equal(detect_prove(s->d, "b.pt", &other, "journal", NULL), 0);
  assert_int_equal(detect_prove(s->d, "nothing", &other, "journal", NULL), 0);
}

static void an_unproven_file_is_not_proven_by_a_rename_to_another_unit(void **state) {
  sim *s = *state;
  io_tree_write(s->tree, "last.pt", 1000);
  sim_wait(s, 100 * SIM_S);
  sim_open(s);
  sim_rename(s, "last.pt", "last-v1.pt");
  sim_after(s, 3600 * SIM_S, "last.pt", DETECT_GONE);
  assert_int_equal(sim_state(s, "last-v1.pt"), DETECT_UNPROVEN);
}

static void a_complete_unit_that_is_renamed_is_complete_under_its_new_name(void **state) {
  sim *s = *state;
  sim_save(s, "last.pt", 10);
  sim_wait(s, 31 * SIM_S);
  sim_rename(s, "last.pt", "last-v1.pt");
  sim_wait(s, 150 * SIM_MS);
  assert_int_equal(sim_times(s, "last.pt", DETECT_GONE), 1);
  assert_int_equal(sim_state(s, "last-v1.pt"), DETECT_COMPLETE);
}

static void a_saved_file_that_leaves_the_tree_is_gone(void **state) {
  sim *s = *state;
  sim_save(s, "last.pt", 10);
  sim_wait(s, 31 * SIM_S);
  io_tree_remove(s->tree, "last.pt");
  sim_feed(s, WATCH_MOVED_FROM, "last.pt", false, 77);
  sim_wait(s, SIM_S);
  assert_int_equal(sim_times(s, "last.pt", DETECT_GONE), 1);
}

/* Guards: "tmp-1/w.pt" was a unit, and lived on inside of the unit "checkpoint-1". */
static void what_was_a_unit_in_a_directory_is_its_content_once_that_is_one(void **state) {
  sim *s = *state;
  sim_mkdir(s, "tmp-1");
  sim_save(s, "tmp-1/w.pt", 10);
  sim_rename(s, "tmp-1", "checkpoint-1");
  sim_wait(s, 60 * SIM_S);
  detect_unit u;
  assert_true(detect_find(s->d, "checkpoint-1", &u));
  assert_int_equal(u.state, DETECT_COMPLETE);
  assert_false(detect_find(s->d, "checkpoint-1/w.pt", &u));
  assert_false(detect_find(s->d, "tmp-1/w.pt", &u));
}

static void a_renamed_parent_takes_its_units_along(void **state) {
  sim *s = *state;
  sim_mkdir(s, "exp");
  hf_save(s, "exp/checkpoint-2");
  sim_wait(s, 6 * SIM_S);
  sim_rename(s, "exp", "exp2");
  sim_wait(s, 60 * SIM_S);
  assert_int_equal(sim_times(s, "exp/checkpoint-2", DETECT_GONE), 1);
  detect_unit u = sim_unit(s, "exp2/checkpoint-2");
  assert_int_equal(u.state, DETECT_COMPLETE);
  assert_string_equal(u.group, "exp2");
  assert_string_equal(u.name, "checkpoint-2");
}

/* --- numbers as names --- */

static void a_directory_that_is_a_number_needs_a_proof(void **state) {
  sim *s = *state;
  sim_mkdir(s, "7");
  sim_mkdir(s, "7/checkpoint-2");
  sim_save(s, "7/checkpoint-2/a.bin", 1);
  sim_after(s, 60 * SIM_S, "7", DETECT_GONE);
  assert_int_equal(sim_state(s, "7/checkpoint-2"), DETECT_COMPLETE);
  sim_mkdir(s, "8");
  sim_save(s, "8/model.pt", 1);
  sim_save(s, "8/.snapshot_metadata", 1);
  sim_after(s, 60 * SIM_S, "8", DETECT_COMPLETE);
  assert_int_equal(sim_state(s, "8/model.pt"), DETECT_GONE); /* the outermost match wins */
}

/* --- the end of the writer --- */

static void what_a_clean_writer_closed_is_complete_at_once(void **state) {
  sim *s = *state;
  sim_save(s, "a.pt", 10);
  hf_save(s, "checkpoint-2");
  sim_wait(s, 100 * SIM_MS);
  detect_writer_gone(s->d, true);
  sim_after(s, 50 * SIM_MS, "a.pt", DETECT_COMPLETE);
  assert_int_equal(sim_state(s, "checkpoint-2"), DETECT_COMPLETE);
}

static void what_a_child_of_the_writer_still_writes_is_not(void **state) {
  sim *s = *state;
  sim_save(s, "a.pt", 10);
  sim_somebody_writes = true;
  detect_writer_gone(s->d, true);
  sim_after(s, 20 * SIM_S, "a.pt", DETECT_OPEN);
}

static void a_close_by_a_dying_writer_counts_for_nothing(void **state) {
  sim *s = *state;
  sim_save(s, "done.tmp", 5);
  sim_rename(s, "done.tmp", "done.pt"); /* a rename is an act of the living */
  sim_save(s, "a.pt", 10);
  hf_save(s, "checkpoint-2");
  sim_mkdir(s, "checkpoint-4");
  hf_files(s, "checkpoint-4", false);
  sim_begin(s, "b.pt", 5);
  sim_wait(s, 50 * SIM_MS);
  sim_close(s, "b.pt"); /* by the kernel */
  detect_writer_gone(s->d, false);
  sim_after(s, 3600 * SIM_S, "done.pt", DETECT_COMPLETE);
  assert_int_equal(sim_state(s, "a.pt"), DETECT_UNPROVEN);
  assert_int_equal(sim_state(s, "b.pt"), DETECT_UNPROVEN);
  assert_int_equal(sim_state(s, "checkpoint-2"), DETECT_UNPROVEN);
  assert_int_equal(sim_state(s, "checkpoint-4"), DETECT_BROKEN);
}

static void a_close_that_is_read_after_the_death_counts_for_nothing(void **state) {
  sim *s = *state;
  sim_begin(s, "b.pt", 5);
  detect_writer_gone(s->d, false);
  sim_close(s, "b.pt");
  sim_after(s, 3600 * SIM_S, "b.pt", DETECT_UNPROVEN);
  detect_writer_new(s->d);
  sim_save(s, "b.pt", 7); /* the next writer saves it anew */
  sim_after(s, 31 * SIM_S, "b.pt", DETECT_COMPLETE);
}

static void a_new_writer_does_not_prove_what_the_dead_one_left(void **state) {
  sim *s = *state;
  sim_mkdir(s, "checkpoint_4");
  sim_save(s, "checkpoint_4/a.bin", 5);
  sim_save(s, "checkpoint_4/b.bin", 5);
  detect_writer_gone(s->d, false);
  detect_writer_new(s->d);
  sim_save(s, "checkpoint_4/a.bin", 6);
  sim_after(s, 3600 * SIM_S, "checkpoint_4", DETECT_UNPROVEN);
  sim_save(s, "checkpoint_4/b.bin", 6);
  sim_after(s, 31 * SIM_S, "checkpoint_4", DETECT_COMPLETE);
}

static void a_complete_unit_outlives_its_writer(void **state) {
  sim *s = *state;
  hf_save(s, "checkpoint-2");
  sim_wait(s, 6 * SIM_S);
  detect_writer_gone(s->d, false);
  sim_after(s, 60 * SIM_S, "checkpoint-2", DETECT_COMPLETE);
}

/* --- lost events, polling, clocks --- */

static void a_lost_rename_is_found_by_its_inode(void **state) {
  sim *s = *state;
  sim_save(s, "best.pt.tmp", 10);
  sim_mkdir(s, "2.orbax-checkpoint-tmp");
  io_tree_write(s->tree, "2.orbax-checkpoint-tmp/data", 10);
  assert_int_equal(detect_list(s->d, NULL), 0);
  sim_wait(s, SIM_S);
  s->deaf = true;
  sim_rename(s, "best.pt.tmp", "best.pt");
  sim_rename(s, "2.orbax-checkpoint-tmp", "2");
  s->deaf = false;
  sim_feed(s, WATCH_OVERFLOW, "", false, 0);
  sim_after(s, 200 * SIM_MS, "best.pt", DETECT_COMPLETE);
  assert_int_equal(sim_state(s, "2"), DETECT_COMPLETE);
}

static void an_inode_number_that_is_used_again_is_no_rename(void **state) {
  sim *s = *state;
  sim_save(s, "a.tmp", 10);
  sim_wait(s, SIM_S);
  s->deaf = true;
  sim_remove(s, "a.tmp");
  sim_begin(s, "b.pt", 5); /* has the number of a.tmp, and is half written */
  s->deaf = false;
  sim_feed(s, WATCH_OVERFLOW, "", false, 0);
  sim_after(s, 20 * SIM_S, "b.pt", DETECT_OPEN);
}

static void after_an_overflow_everything_that_differs_is_open(void **state) {
  sim *s = *state;
  sim_save(s, "a.pt", 10);
  sim_save(s, "b.pt", 10);
  sim_save(s, "c.pt", 10);
  sim_wait(s, 40 * SIM_S);
  s->deaf = true;
  sim_save(s, "a.pt", 10); /* only its mtime differs */
  sim_remove(s, "b.pt");
  sim_save(s, "d.pt", 10);
  s->deaf = false;
  sim_feed(s, WATCH_OVERFLOW, "", false, 0);
  assert_int_equal(sim_state(s, "a.pt"), DETECT_OPEN);
  assert_int_equal(sim_state(s, "b.pt"), DETECT_GONE);
  assert_int_equal(sim_state(s, "c.pt"), DETECT_COMPLETE);
  assert_int_equal(sim_state(s, "d.pt"), DETECT_OPEN);
  sim_after(s, 31 * SIM_S, "a.pt", DETECT_COMPLETE);
  assert_int_equal(sim_state(s, "d.pt"), DETECT_COMPLETE);
}

static void a_file_whose_close_was_lost_is_complete_in_the_end(void **state) {
  sim *s = *state;
  sim_begin(s, "a.pt", 10);
  sim_feed(s, WATCH_OVERFLOW, "", false, 0);
  sim_after(s, 29 * SIM_S, "a.pt", DETECT_OPEN);
  sim_after(s, 2 * SIM_S, "a.pt", DETECT_COMPLETE);
}

static void a_change_without_an_event_is_seen_before_it_is_handed_out(void **state) {
  sim *s = *state;
  sim_save(s, "a.pt", 10);
  sim_wait(s, 20 * SIM_S);
  io_tree_write(s->tree, "a.pt", 11); /* no event */
  sim_wait(s, 15 * SIM_S);
  assert_int_equal(sim_times(s, "a.pt", DETECT_COMPLETE), 0);
  sim_wait(s, 30 * SIM_S);
  assert_int_equal(sim_unit(s, "a.pt").bytes, 11);
  assert_int_equal(sim_state(s, "a.pt"), DETECT_COMPLETE);
}

static void a_new_mode_leaves_a_unit_complete(void **state) {
  sim *s = *state;
  sim_save(s, "a.pt", 10);
  sim_wait(s, 31 * SIM_S);
  sim_feed(s, WATCH_ATTRIB, "a.pt", false, 0); /* chmod: nothing that counts */
  assert_int_equal(sim_unit(s, "a.pt").generation, 0);
  assert_int_equal(sim_state(s, "a.pt"), DETECT_COMPLETE);
}

static void a_change_within_the_tick_of_the_clock_is_waited_for(void **state) {
  sim *s = *state;
  io_tree_grain(s->tree, SIM_S); /* whole seconds only */
  sim_open(s);
  sim_save(s, "a.tmp", 10);
  sim_rename(s, "a.tmp", "a.pt");
  int64_t at = s->now;
  sim_wait(s, 10 * SIM_S);
  int64_t when = sim_when(s, "a.pt", DETECT_COMPLETE, 0);
  assert_true(when > at + SIM_S && when <= at + 2100 * SIM_MS);
}

static void a_clock_that_stands_wrong_delays_nothing_for_ever(void **state) {
  sim *s = *state;
  sim_save(s, "a.tmp", 10);
  sim_rename(s, "a.tmp", "a.pt");
  io_tree_skew(s->tree, -7200 * SIM_S); /* now all stamps are in the future */
  sim_after(s, SIM_S, "a.pt", DETECT_COMPLETE);
}

static void an_idle_tree_costs_no_wake_up(void **state) {
  sim *s = *state;
  assert_int_equal(detect_due(s->d), INT64_MAX);
  hf_save(s, "checkpoint-2");
  sim_wait(s, 60 * SIM_S);
  assert_int_equal(detect_due(s->d), INT64_MAX);
  io_tree_calls(s->tree);
  sim_wait(s, 86400 * SIM_S);
  assert_int_equal(io_tree_calls(s->tree), 0);
}

/* --- the rest --- */

static void what_no_unit_matches_is_counted(void **state) {
  const char *example;
  sim *s = *state;
  io_tree_write(s->tree, "old.txt", 1);
  sim_open(s);
  assert_int_equal(detect_unmatched(s->d, &example), 0);
  assert_null(example);
  sim_save(s, "log.txt", 1);
  sim_save(s, "log.txt", 2);
  sim_save(s, "a.pt", 2);
  sim_save(s, "x.tmp", 2);
  assert_int_equal(detect_unmatched(s->d, &example), 1);
  assert_string_equal(example, "log.txt");
  sim_save(s, "old.txt", 2);
  assert_int_equal(detect_unmatched(s->d, NULL), 2);
}

static void what_was_written_under_another_name_of_its_unit_is_matched(void **state) {
  sim *s = *state;
  hf_save(s, "new");
  assert_true(detect_unmatched(s->d, NULL) > 0);
  sim_rename(s, "new", "checkpoint-2");
  assert_int_equal(detect_unmatched(s->d, NULL), 0);
  sim_save(s, "weights", 2);
  assert_int_equal(detect_unmatched(s->d, NULL), 1);
  sim_rename(s, "weights", "checkpoint-2/model.bin");
  assert_int_equal(detect_unmatched(s->d, NULL), 0);
}

static void a_users_marker_is_required_even_after_a_rename(void **state) {
  static const char *const markers[] = {"DONE", NULL};
  rules *r;
  assert_int_equal(rules_custom(NULL, NULL, markers, -1, &r, NULL), 0);
  sim *s = sim_new(r);
  sim_open(s);
  sim_mkdir(s, "work");
  sim_save(s, "work/a.bin", 1);
  sim_rename(s, "work", "checkpoint-1");
  sim_after(s, 3600 * SIM_S, "checkpoint-1", DETECT_OPEN);
  sim_create(s, "checkpoint-1/DONE"); /* an empty one is enough */
  sim_close(s, "checkpoint-1/DONE");
  sim_after(s, 6 * SIM_S, "checkpoint-1", DETECT_COMPLETE);
  sim_free(s);
  rules_free(r);
}

static int collect(void *ctx, const detect_unit *u) {
  char *all = ctx;
  size_t len = strlen(all);
  snprintf(all + len, 256 - len, "%s ", u->path);
  return 0;
}

static void units_are_walked_in_order(void **state) {
  char all[256] = "";
  sim *s = *state;
  sim_save(s, "b.pt", 1);
  sim_mkdir(s, "a");
  sim_save(s, "a/z.pt", 1);
  sim_save(s, "a.pt", 1);
  sim_save(s, "ckpt-3.index", 1);
  sim_save(s, "ckpt-3.data-0", 1);
  assert_int_equal(detect_each(s->d, collect, all), 0);
  assert_string_equal(all, "a.pt a/z.pt b.pt ckpt-3 ");
  sim_remove(s, "ckpt-3.index");
  sim_remove(s, "ckpt-3.data-0");
  assert_int_equal(sim_state(s, "ckpt-3"), DETECT_GONE);
}

static void a_root_that_goes_takes_all_units_and_its_next_ones_are_new(void **state) {
  sim *s = *state;
  sim_save(s, "a.pt", 1);
  sim_wait(s, 31 * SIM_S);
  sim_feed(s, WATCH_GONE, "", true, 0);
  assert_int_equal(sim_times(s, "a.pt", DETECT_GONE), 1);
  assert_int_equal(sim_state(s, "a.pt"), DETECT_OPEN);
  sim_after(s, 31 * SIM_S, "a.pt", DETECT_COMPLETE);
  assert_int_equal(detect_due(s->d), INT64_MAX);
}

static void a_series_is_a_name_without_its_numbers(void **state) {
  char out[64];
  match_series("checkpoint-12", out, sizeof out);
  assert_string_equal(out, "checkpoint-#");
  match_series("epoch=0-step=4.ckpt", out, sizeof out);
  assert_string_equal(out, "epoch=#-step=#.ckpt");
  match_series("model-00001-of-00004.safetensors", out, sizeof out);
  assert_string_equal(out, "model-00001-of-00004.safetensors");
  match_series("ep1-ba20-rank0.pt", out, sizeof out);
  assert_string_equal(out, "ep#-ba#-rank0.pt");
  match_series("abcdef", out, 4);
  assert_string_equal(out, "abc");
}

/* Fails each call of the opening and of the last listing in turn: no crash, and never complete
 * without having looked. */
static void a_file_system_that_fails_makes_nothing_complete(void **state) {
  for (long n = 1; n < 200; n++) {
    sim *s = sim_new(NULL);
    hf_save(s, "checkpoint-2");
    io_tree_mkdir(s->tree, "checkpoint_3");
    io_tree_write(s->tree, "checkpoint_3/a.bin", 1);
    sim_wait(s, 60 * SIM_S);
    io_fault *f = io_fault_new(io_tree_io(s->tree));
    io_fault_once(f, CALL_ANY, n, 5);
    detect_options o = {
        .io = io_fault_io(f), .root = IO_TREE_ROOT, .rules = rules_builtin(), .mode = DETECT_FED};
    err e = {0};
    int rc = detect_open(&o, &s->d, &e);
    bool failed = io_fault_failed(f, CALL_ANY) > 0;
    if (rc < 0) assert_true(failed && *e.text);
    if (rc == 0) {
      sim_drain(s);
      for (int i = 0; i < 5; i++) {
        detect_run(s->d, NULL);
        io_tree_clock(s->tree, s->now += 10 * SIM_S);
      }
      sim_drain(s);
      assert_int_equal(sim_state(s, "checkpoint-2"), DETECT_COMPLETE);
      assert_int_equal(sim_state(s, "checkpoint_3"), DETECT_UNPROVEN);
    }
    failed = io_fault_failed(f, CALL_ANY) > 0;
    sim_free(s);
    io_fault_free(f);
    if (!failed) return;
  }
  fail_msg("there was always one more call to fail");
}

static void many_files_are_no_problem(void **state) {
  sim *s = *state;
  char path[64];
  for (int i = 0; i < 200; i++) {
    snprintf(path, sizeof path, "checkpoint_%d", i);
    io_tree_mkdir(s->tree, path);
    for (int k = 0; k < 100; k++) {
      snprintf(path, sizeof path, "checkpoint_%d/%d.bin", i, k);
      io_tree_write(s->tree, path, 1);
    }
  }
  sim_wait(s, 100 * SIM_S);
  sim_open(s);
  assert_int_equal(s->count, 200);
  assert_int_equal(detect_list(s->d, NULL), 0);
  sim_drain(s);
  assert_int_equal(s->count, 200);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WATCHED(a_size_that_is_stable_proves_nothing),
      WATCHED(a_temporary_name_inside_is_no_part_of_the_unit),
      WATCHED(a_temporary_name_inside_restarts_the_quiet_time),
      WATCHED(a_close_after_a_rename_is_no_new_write),
      WATCHED(a_write_after_a_rename_is_one),
      WATCHED(a_file_that_is_opened_again_is_waited_for),
      WATCHED(a_rank_that_is_late_is_waited_for),
      WATCHED(a_unit_with_fewer_files_needs_the_long_quiet),
      WATCHED(names_that_are_made_anew_each_time_are_not_compared),
      WATCHED(a_final_marker_spares_the_comparison),
      WATCHED(names_are_compared_with_the_step_in_them),
      WATCHED(a_marker_that_is_left_over_proves_nothing),
      WATCHED(a_marker_of_an_earlier_save_does_not_prove_the_next),
      WATCHED(a_late_rank_may_write_its_file_again_after_the_marker),
      WATCHED(a_dcp_directory_without_metadata_is_never_complete),
      WATCHED(files_of_a_young_directory_are_found_by_listing),
      WATCHED(a_marker_counts_for_a_young_directory_too),
      WATCHED(a_marker_is_believed_after_a_second_and_a_half),
      WATCHED(what_comes_long_after_a_marker_without_a_unit_before_waits),
      NOT_YET_WATCHED(a_marker_counts_with_polling_too),
      WATCHED(a_file_that_was_only_listed_needs_that_nobody_writes_it),
      WATCHED(a_renamed_directory_keeps_what_is_known_of_it),
      WATCHED(a_bare_rename_is_complete_without_a_close),
      WATCHED(what_its_structure_proves_is_complete_after_a_second),
      WATCHED(a_bundle_of_tensors_is_complete_a_second_after_its_index),
      WATCHED(a_bundle_of_fewer_shards_than_the_one_before_lacks_none),
      WATCHED(a_structure_that_proves_nothing_waits_and_says_so),
      WATCHED(a_length_proves_only_with_a_close_that_was_seen),
      NOT_YET_WATCHED(with_polling_a_structure_needs_an_interval_and_a_length_all_the_time),
      WATCHED(a_name_that_is_written_again_has_generations),
      WATCHED(a_name_that_is_replaced_by_rename_has_generations),
      WATCHED(a_unit_that_is_being_removed_is_never_complete),
      WATCHED(silence_between_files_is_no_proof),
      WATCHED(dot_files_are_data),
      NOT_YET_WATCHED(an_empty_directory_is_broken_once_nobody_writes),
      WATCHED(a_link_that_replaces_itself_is_no_unit),
      NOT_YET_WATCHED(a_link_in_a_directory_is_never_followed),
      NOT_YET_WATCHED(what_was_there_before_is_unproven),
      NOT_YET_WATCHED(what_was_there_before_is_complete_by_its_marker),
      NOT_YET_WATCHED(what_the_caller_learned_counts_for_what_was_there_before),
      NOT_YET_WATCHED(what_orbax_left_is_complete_by_its_marker),
      NOT_YET_WATCHED(a_torn_file_that_was_there_before_is_broken),
      NOT_YET_WATCHED(the_caller_can_prove_a_unit),
      NOT_YET_WATCHED(an_unproven_file_is_not_proven_by_a_rename_to_another_unit),
      WATCHED(a_complete_unit_that_is_renamed_is_complete_under_its_new_name),
      WATCHED(a_saved_file_that_leaves_the_tree_is_gone),
      WATCHED(what_was_a_unit_in_a_directory_is_its_content_once_that_is_one),
      WATCHED(a_renamed_parent_takes_its_units_along),
      WATCHED(a_directory_that_is_a_number_needs_a_proof),
      WATCHED(what_a_clean_writer_closed_is_complete_at_once),
      WATCHED(what_a_child_of_the_writer_still_writes_is_not),
      WATCHED(a_close_by_a_dying_writer_counts_for_nothing),
      WATCHED(a_close_that_is_read_after_the_death_counts_for_nothing),
      WATCHED(a_new_writer_does_not_prove_what_the_dead_one_left),
      WATCHED(a_complete_unit_outlives_its_writer),
      WATCHED(a_lost_rename_is_found_by_its_inode),
      WATCHED(an_inode_number_that_is_used_again_is_no_rename),
      WATCHED(after_an_overflow_everything_that_differs_is_open),
      WATCHED(a_file_whose_close_was_lost_is_complete_in_the_end),
      WATCHED(a_change_without_an_event_is_seen_before_it_is_handed_out),
      WATCHED(a_new_mode_leaves_a_unit_complete),
      NOT_YET_WATCHED(a_change_within_the_tick_of_the_clock_is_waited_for),
      WATCHED(a_clock_that_stands_wrong_delays_nothing_for_ever),
      WATCHED(an_idle_tree_costs_no_wake_up),
      NOT_YET_WATCHED(what_no_unit_matches_is_counted),
      WATCHED(what_was_written_under_another_name_of_its_unit_is_matched),
      cmocka_unit_test(a_users_marker_is_required_even_after_a_rename),
      WATCHED(units_are_walked_in_order),
      WATCHED(a_root_that_goes_takes_all_units_and_its_next_ones_are_new),
      cmocka_unit_test(a_series_is_a_name_without_its_numbers),
      cmocka_unit_test(a_file_system_that_fails_makes_nothing_complete),
      NOT_YET_WATCHED(many_files_are_no_problem),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
