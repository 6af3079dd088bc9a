/* Checkpoints that a framework deletes by moving them below their directory, as Orbax does with
 * todelete_subdir: they are gone, and come back under no other name. */
#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "detect_sim.h"

static void save_orbax(sim *s, const char *step) {
  char tmp[64], file[96];
  snprintf(tmp, sizeof tmp, "%s.orbax-checkpoint-tmp", step);
  sim_mkdir(s, tmp);
  snprintf(file, sizeof file, "%s/_CHECKPOINT_METADATA", tmp);
  sim_save(s, file, 100);
  snprintf(file, sizeof file, "%s/d", tmp);
  sim_save(s, file, 1000);
  sim_rename(s, tmp, step);
  sim_wait(s, SIM_S);
}

static void must_be_gone(sim *s, const char *unit, const char *there) {
  detect_unit u;
  assert_int_equal(detect_find(s->d, unit, &u), 0);
  assert_int_equal(detect_find(s->d, there, &u), 0);
  assert_int_equal(sim_times(s, unit, DETECT_GONE), 1);
  for (size_t i = 0; i < s->count; i++) assert_string_not_equal(s->news[i].path, there);
}

static void what_was_moved_below_its_directory_is_no_new_checkpoint(void **state) {
  sim *s = *state;
  save_orbax(s, "1");
  assert_int_equal(sim_times(s, "1", DETECT_COMPLETE), 1);
  sim_mkdir(s, "trash");
  sim_rename(s, "1", "trash/1");
  save_orbax(s, "2");
  sim_wait(s, 120 * SIM_S);
  must_be_gone(s, "1", "trash/1");
  sim_remove_tree(s, "trash/1");
  assert_int_equal(sim_times(s, "2", DETECT_COMPLETE), 1);
  assert_int_equal(detect_unmatched(s->d, NULL), 0);
}

static void so_is_one_that_was_there_before_the_watch(void **state) {
  sim *s = *state;
  io_tree_mkdir(s->tree, "1");
  io_tree_write(s->tree, "1/_CHECKPOINT_METADATA", 100);
  io_tree_write(s->tree, "1/d", 1000);
  sim_wait(s, 60 * SIM_S);
  sim_open(s);
  sim_drain(s);
  sim_mkdir(s, "trash");
  sim_rename(s, "1", "trash/1");
  sim_wait(s, 120 * SIM_S);
  must_be_gone(s, "1", "trash/1");
}

static void so_it_is_where_a_listing_alone_tells(void **state) {
  sim *s = *state;
  sim_open_mode(s, DETECT_FED, 5 * SIM_S);
  s->deaf = true;
  save_orbax(s, "1");
  sim_wait(s, 60 * SIM_S);
  assert_int_equal(sim_times(s, "1", DETECT_COMPLETE), 1);
  sim_mkdir(s, "trash");
  sim_rename(s, "1", "trash/1");
  sim_wait(s, 120 * SIM_S);
  must_be_gone(s, "1", "trash/1");
}

/* Orbax makes its bin and moves the first one there before anybody can watch the bin. */
static void bin_first(sim *s) {
  save_orbax(s, "1");
  io_tree_mkdir(s->tree, "trash");
  io_tree_rename(s->tree, "1", "trash/1");
}

static void it_is_known_in_a_directory_that_was_not_watched_yet(void **state) {
  sim *s = *state;
  bin_first(s);
  sim_feed(s, WATCH_CREATE, "trash", true, 0);
  sim_feed(s, WATCH_MOVED_FROM, "1", true, 77);
  sim_wait(s, 120 * SIM_S);
  must_be_gone(s, "1", "trash/1");
}

static void the_same_where_its_arrival_is_told_after_it_was_found(void **state) {
  sim *s = *state;
  bin_first(s);
  sim_feed(s, WATCH_CREATE, "trash", true, 0);
  sim_feed(s, WATCH_MOVED_FROM, "1", true, 77);
  sim_feed(s, WATCH_MOVED_TO, "trash/1", true, 77);
  sim_wait(s, 120 * SIM_S);
  must_be_gone(s, "1", "trash/1");
}

static void the_same_where_its_departure_was_told_first(void **state) {
  sim *s = *state;
  bin_first(s);
  sim_feed(s, WATCH_MOVED_FROM, "1", true, 77);
  sim_feed(s, WATCH_CREATE, "trash", true, 0);
  sim_wait(s, 120 * SIM_S);
  must_be_gone(s, "1", "trash/1");
}

static void single_files_and_groups_go_the_same_way(void **state) {
  sim *s = *state;
  sim_save(s, "m_1.pt", 100);
  sim_save(s, "ckpt-1.index", 100);
  sim_save(s, "ckpt-1.data-00000-of-00001", 100);
  sim_wait(s, 60 * SIM_S);
  assert_int_equal(sim_times(s, "ckpt-1", DETECT_COMPLETE), 1);
  sim_mkdir(s, "old");
  sim_rename(s, "m_1.pt", "old/m_1.pt");
  sim_rename(s, "ckpt-1.index", "old/ckpt-1.index");
  sim_rename(s, "ckpt-1.data-00000-of-00001", "old/ckpt-1.data-00000-of-00001");
  sim_wait(s, 120 * SIM_S);
  must_be_gone(s, "m_1.pt", "old/m_1.pt");
  must_be_gone(s, "ckpt-1", "old/ckpt-1");
}

static void one_that_comes_back_is_a_checkpoint_again(void **state) {
  sim *s = *state;
  save_orbax(s, "1");
  sim_mkdir(s, "trash");
  sim_rename(s, "1", "trash/1");
  sim_wait(s, 10 * SIM_S);
  sim_rename(s, "trash/1", "1");
  sim_after(s, 10 * SIM_S, "1", DETECT_COMPLETE);
  assert_int_equal(sim_unit(s, "1").files, 2);
}

/* A writer may make it under a name that is a unit's, and publish it by a rename. */
static void one_that_is_still_written_is_published_by_its_rename(void **state) {
  sim *s = *state;
  sim_mkdir(s, "checkpoint-1");
  sim_save(s, "checkpoint-1/model.bin", 100);
  sim_mkdir(s, "done");
  sim_rename(s, "checkpoint-1", "done/checkpoint-1");
  sim_after(s, 60 * SIM_S, "done/checkpoint-1", DETECT_COMPLETE);
}

static void one_that_is_moved_up_or_renamed_is_a_checkpoint(void **state) {
  sim *s = *state;
  sim_mkdir(s, "work");
  sim_mkdir(s, "work/checkpoint-1");
  sim_save(s, "work/checkpoint-1/model.bin", 100);
  sim_wait(s, 60 * SIM_S);
  sim_rename(s, "work/checkpoint-1", "checkpoint-1");
  sim_after(s, 60 * SIM_S, "checkpoint-1", DETECT_COMPLETE);
  sim_rename(s, "checkpoint-1", "checkpoint-7");
  sim_after(s, 60 * SIM_S, "checkpoint-7", DETECT_COMPLETE);
}

static void another_one_under_that_name_is_a_checkpoint(void **state) {
  sim *s = *state;
  save_orbax(s, "1");
  sim_mkdir(s, "trash");
  sim_rename(s, "1", "trash/1");
  sim_remove_tree(s, "trash/1");
  sim_mkdir(s, "trash/x.orbax-checkpoint-tmp");
  sim_save(s, "trash/x.orbax-checkpoint-tmp/_CHECKPOINT_METADATA", 10);
  sim_rename(s, "trash/x.orbax-checkpoint-tmp", "trash/1");
  sim_after(s, 60 * SIM_S, "trash/1", DETECT_COMPLETE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WATCHED(what_was_moved_below_its_directory_is_no_new_checkpoint),
      NOT_YET_WATCHED(so_is_one_that_was_there_before_the_watch),
      NOT_YET_WATCHED(so_it_is_where_a_listing_alone_tells),
      WATCHED(it_is_known_in_a_directory_that_was_not_watched_yet),
      WATCHED(the_same_where_its_arrival_is_told_after_it_was_found),
      WATCHED(the_same_where_its_departure_was_told_first),
      WATCHED(single_files_and_groups_go_the_same_way),
      WATCHED(one_that_comes_back_is_a_checkpoint_again),
      WATCHED(one_that_is_still_written_is_published_by_its_rename),
      WATCHED(one_that_is_moved_up_or_renamed_is_a_checkpoint),
      WATCHED(another_one_under_that_name_is_a_checkpoint),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
