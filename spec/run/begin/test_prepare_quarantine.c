/* What a start moved away goes when a commit has it and its time is over, and that is told. */
#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "run_host.h"
#include "tmpdir.h"

static int held(run_host *h) {
  const char *root = run_host_state(h, "quarantine");
  return path_exists(root) ? count_entries(root) : 0;
}

static void begin_and_end(run_host *h) {
  run_host_begin(h);
  run_host_rest(h);
  run_host_close(h);
}

/* A copy, as a start moves one away that long ago. */
static void hold(run_host *h, const char *name, const char *text) {
  char path[200];
  if (!path_exists(run_host_state(h, "quarantine"))) make_dir(run_host_state(h, "quarantine"));
  snprintf(path, sizeof path, "quarantine/%s", name);
  make_dir(run_host_state(h, path));
  snprintf(path, sizeof path, "quarantine/%s/last.pt", name);
  write_file(run_host_state(h, path), text);
}

static const char *named(run_host *h, int age_s, char name[64]) {
  const io *io = run_host_env(h)->io;
  snprintf(name, 64, "%lld-0000000%d", (long long)(io->now(io, IO_WALL) / 1000000000 - age_s),
           age_s % 10);
  return name;
}

static void commit(run_host *h) {
  run_host_begin(h);
  run_host_write(h, "last.pt", "the weights", RUN_COMMITTED);
  run_host_close(h);
}

static void a_start_empties_it_after_a_day_and_says_so(void **state) {
  run_host *h = *state;
  char name[64];
  commit(h);
  hold(h, named(h, 1, name), "the weights");
  begin_and_end(h);
  assert_int_equal(held(h), 1);
  assert_false(run_host_logged(h, "removed, which"));
  run_host_next_day(h);
  begin_and_end(h);
  assert_int_equal(held(h), 0);
  assert_true(run_host_logged(h, "quarantine: 1 copy of 11 bytes removed, which file://"));
  assert_true(run_host_logged(h, "has as last.pt (commit "));
}

static void two_later_ones_of_its_kind_push_one_out(void **state) {
  run_host *h = *state;
  char name[64];
  commit(h);
  for (int age = 1; age < 5; age++) hold(h, named(h, age, name), "the weights");
  begin_and_end(h);
  assert_int_equal(held(h), 2);
  assert_true(run_host_logged(h, "quarantine: 2 copies of 22 bytes removed"));
  assert_true(run_host_logged(h, "; 2 stay"));
}

static void what_is_unique_stays_for_ever(void **state) {
  run_host *h = *state;
  char name[64];
  commit(h);
  for (int age = 1; age < 5; age++) hold(h, named(h, age, name), "the weighty");
  for (int day = 0; day < 2; day++) {
    run_host_next_day(h);
    begin_and_end(h);
  }
  assert_int_equal(held(h), 4);
  assert_int_equal(run_host_logs(h, "removed, which"), 0);
}

static void what_becomes_a_day_old_while_the_job_runs_goes_then(void **state) {
  run_host *h = *state;
  char name[64];
  commit(h);
  hold(h, named(h, 1, name), "the weights");
  run_host_begin(h);
  run_host_rest(h);
  assert_int_equal(held(h), 1);
  run_host_next_day(h);
  run_host_skip(h, 3601);
  run_host_step(h, NULL);
  run_host_rest(h);
  assert_int_equal(held(h), 0);
}

static run_prepared prepare(run_host *h) {
  run_prepared p;
  err e = {0};
  if (run_host_open(h, &e) < 0) fail_msg("%s", e.text);
  if (run_prepare(run_host_run(h), RUN_AUTO, NULL, &p, &e) < 0) fail_msg("%s", e.text);
  return p;
}

static void where_the_store_cannot_be_read_nothing_is_removed(void **state) {
  run_host *h = *state;
  char name[64];
  commit(h);
  hold(h, named(h, 2 * 86400, name), "the weights");
  prepare(h);
  assert_int_equal(run_start(run_host_run(h), NULL), 0);
  run_host_fail_reads(h, EIO);
  run_host_step(h, NULL);
  run_host_rest(h);
  assert_int_equal(held(h), 1);
  assert_true(run_host_logged(h, "of some it could not be told whether"));
}

/* ---- what a start says of what it moves ---- */

static void what_is_saved_and_makes_room_is_not_called_incomplete(void **state) {
  run_host *h = *state;
  run_host_begin(h);
  run_host_write(h, "last.pt", "the first", RUN_COMMITTED);
  size_t len;
  char *first = read_file(run_host_dir(h, "last.pt"), &len);
  struct stat st;
  assert_int_equal(stat(run_host_dir(h, "last.pt"), &st), 0);
  run_host_tick(h);
  run_host_write(h, "last.pt", "the second", RUN_COMMITTED);
  run_host_close(h);
  assert_int_equal(remove(run_host_dir(h, "last.pt")), 0);
  write_file(run_host_dir(h, "last.pt"), first);
  free(first);
  assert_int_equal(utimensat(AT_FDCWD, run_host_dir(h, "last.pt"),
                             (struct timespec[]){st.st_atim, st.st_mtim}, 0),
                   0);
  run_prepared p = prepare(h);
  assert_int_equal(p.quarantined, 1);
  assert_int_equal(p.incomplete, 0);
}

static void what_nothing_proves_whole_is(void **state) {
  run_host *h = *state;
  commit(h);
  write_file(run_host_dir(h, "last.pt"), "half");
  run_prepared p = prepare(h);
  assert_int_equal(p.quarantined, 1);
  assert_int_equal(p.incomplete, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(a_start_empties_it_after_a_day_and_says_so),
      WITH_HOST(two_later_ones_of_its_kind_push_one_out),
      WITH_HOST(what_is_unique_stays_for_ever),
      WITH_HOST(what_becomes_a_day_old_while_the_job_runs_goes_then),
      WITH_HOST(where_the_store_cannot_be_read_nothing_is_removed),
      WITH_HOST(what_is_saved_and_makes_room_is_not_called_incomplete),
      WITH_HOST(what_nothing_proves_whole_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
