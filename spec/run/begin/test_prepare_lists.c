/* What a list names is to be whole at a start: what stands torn there gives way to its commit. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run_host.h"
#include "tmpdir.h"

#define LIST "checkpoint_manager_snapshot.json"
#define TORN "PK\3\4 the first part"

static void begin(run_host *h) {
  run_host_begin(h);
}

/* Two checkpoints that a list names, both of them in the store. */
static void save_two(run_host *h) {
  run_host_policy(h, "return { api = 1, with = { '" LIST "' } }");
  begin(h);
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  write_file(run_host_dir(h, LIST), "[{\"checkpoint_dir_name\": \"ckpt-1.pt\"},"
                                    " {\"checkpoint_dir_name\": \"ckpt-2.pt\"}]");
  run_host_write(h, "ckpt-2.pt", "two", RUN_COMMITTED);
  run_host_close(h);
}

static bool in_quarantine(run_host *h, const char *text) {
  char command[700];
  snprintf(command, sizeof command, "grep -rq '%s' '%s'", text, run_host_state(h, "quarantine"));
  return system(command) == 0;
}

static void one_that_stands_torn_gives_way_to_its_commit(void **state) {
  run_host *h = *state;
  save_two(h);
  write_file(run_host_dir(h, "ckpt-1.pt"), TORN);
  begin(h);
  assert_true(file_is(run_host_dir(h, "ckpt-1.pt"), "one"));
  assert_true(file_is(run_host_dir(h, "ckpt-2.pt"), "two"));
  assert_true(in_quarantine(h, "the first part"));
  run_host_for(h, 0.3);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt");
}

static void what_no_list_names_stays_as_it_is(void **state) {
  run_host *h = *state;
  save_two(h);
  assert_int_equal(remove(run_host_dir(h, LIST)), 0);
  write_file(run_host_dir(h, "ckpt-0.pt"), TORN);
  begin(h);
  assert_true(file_is(run_host_dir(h, "ckpt-0.pt"), TORN));
}

/* ---- of one that is asked for by its name ---- */

static void save_three(run_host *h) {
  save_two(h);
  begin(h);
  write_file(run_host_dir(h, LIST), "[{\"checkpoint_dir_name\": \"ckpt-3.pt\"}]");
  run_host_write(h, "ckpt-3.pt", "three", RUN_COMMITTED);
  run_host_close(h);
}

static run_prepared prepare_named(run_host *h, const char *name) {
  run_prepared p;
  assert_int_equal(run_host_open(h, NULL), 0);
  err e = {0};
  if (run_prepare(run_host_run(h), RUN_NAMED, name, &p, &e) < 0) fail_msg("%s", e.text);
  return p;
}

static void of_one_that_is_asked_for_its_own_list_counts(void **state) {
  run_host *h = *state;
  char command[700];
  save_three(h);
  snprintf(command, sizeof command, "rm -rf '%s'/*", run_host_dir(h, ""));
  assert_int_equal(system(command), 0);
  run_prepared p = prepare_named(h, "ckpt-2.pt");
  assert_int_equal(p.restored, 2);
  assert_true(file_is(run_host_dir(h, "ckpt-1.pt"), "one"));
  assert_true(file_is(run_host_dir(h, "ckpt-2.pt"), "two"));
  assert_false(path_exists(run_host_dir(h, "ckpt-3.pt")));
  assert_string_equal(strrchr(p.resume, '/'), "/ckpt-2.pt");
}

/* It is loaded by that list, too. */
static void beside_one_that_is_asked_for_what_is_torn_gives_way(void **state) {
  run_host *h = *state;
  save_three(h);
  write_file(run_host_dir(h, "ckpt-1.pt"), TORN);
  run_prepared p = prepare_named(h, "ckpt-2.pt");
  assert_int_equal(p.restored, 1);
  assert_true(file_is(run_host_dir(h, "ckpt-1.pt"), "one"));
  assert_true(in_quarantine(h, "the first part"));
}

/* ---- what tells how far a training came ---- */

#define STATE "training_metadata.json"

static void write_keras(run_host *h) {
  write_file(run_host_dir(h, "latest.weights.h5"), "\x89HDF\r\n\x1a\n, and then it was killed");
  write_file(run_host_dir(h, STATE), "{\"epoch\": 7}");
}

/* Keras takes the epoch from there, weights or none. */
static void a_state_goes_with_its_weights_that_are_torn(void **state) {
  run_host *h = *state;
  write_keras(h);
  begin(h);
  assert_false(path_exists(run_host_dir(h, "latest.weights.h5")));
  assert_false(path_exists(run_host_dir(h, STATE)));
  assert_true(in_quarantine(h, "epoch"));
}

static void a_state_stays_where_nothing_was_moved(void **state) {
  run_host *h = *state;
  write_file(run_host_dir(h, STATE), "{\"epoch\": 7}");
  write_file(run_host_dir(h, "other.h5"), "\x89HDF\r\n\x1a\n, and then it was killed");
  begin(h);
  assert_false(path_exists(run_host_dir(h, "other.h5")));
  assert_true(path_exists(run_host_dir(h, STATE)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(one_that_stands_torn_gives_way_to_its_commit),
      WITH_HOST(what_no_list_names_stays_as_it_is),
      WITH_HOST(of_one_that_is_asked_for_its_own_list_counts),
      WITH_HOST(beside_one_that_is_asked_for_what_is_torn_gives_way),
      WITH_HOST(a_state_goes_with_its_weights_that_are_torn),
      WITH_HOST(a_state_stays_where_nothing_was_moved),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
