/* What a checkpoint names and its framework lives without: it comes back behind the start. */
#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static void write_in(const char *dir, const char *name, const char *text) {
  char file[700];
  snprintf(file, sizeof file, "%s/%s", dir, name);
  write_file(file, text);
}

/* A Trainer's checkpoint, with the best one so far in its state; it is renamed to its name. */
static void write_hf_of(run_host *h, const char *unit, const char *best, const char *model) {
  char state[600], made[600];
  snprintf(state, sizeof state, "{\"best_model_checkpoint\": \"%s\"}", run_host_dir(h, best));
  snprintf(made, sizeof made, "%s/made", run_host_top(h));
  make_dir(made);
  write_in(made, "config.json", "{}");
  write_in(made, "model.txt", model);
  write_in(made, "training_args.bin", "arguments");
  write_in(made, "trainer_state.json", state);
  assert_int_equal(rename(made, run_host_dir(h, unit)), 0);
}

static void write_hf(run_host *h, const char *unit, const char *best) {
  write_hf_of(h, unit, best, unit);
}

/* An earlier run, whose first checkpoint is the best; then the directory is lost. */
static void save_and_lose_with(run_host *h, const char *best_model) {
  char command[700];
  run_host_begin(h);
  for (int i = 1; i <= 3; i++) {
    char unit[40];
    snprintf(unit, sizeof unit, "checkpoint-%d", i);
    write_hf_of(h, unit, "checkpoint-1", i == 1 ? best_model : unit);
    run_host_until(h, RUN_COMMITTED, unit);
  }
  run_host_close(h);
  snprintf(command, sizeof command, "rm -rf '%s'/*", run_host_dir(h, ""));
  assert_int_equal(system(command), 0);
}

static void save_and_lose(run_host *h) {
  save_and_lose_with(h, "checkpoint-1");
}

static bool is_here(run_host *h, const char *unit) {
  return path_exists(run_host_dir(h, unit));
}

static void await(run_host *h, const char *unit) {
  for (int i = 0; i < 200 && !is_here(h, unit); i++) run_host_for(h, 0.02);
  assert_true(is_here(h, unit));
}

static run_prepared prepare(run_host *h) {
  run_prepared p;
  assert_int_equal(run_host_open(h, NULL), 0);
  assert_int_equal(run_prepare(run_host_run(h), RUN_AUTO, NULL, &p, NULL), 0);
  return p;
}

static void start(run_host *h) {
  assert_int_equal(run_start(run_host_run(h), NULL), 0);
}

static void the_best_comes_back_behind_the_start(void **state) {
  run_host *h = *state;
  save_and_lose(h);
  run_prepared p = prepare(h);
  assert_int_equal(p.restored, 1);
  assert_true(is_here(h, "checkpoint-3"));
  assert_false(is_here(h, "checkpoint-1"));
  start(h);
  assert_false(is_here(h, "checkpoint-1"));
  assert_true(run_host_status(h).keeping); /* the end waits for it */
  await(h, "checkpoint-1");
  assert_true(file_is(run_host_dir(h, "checkpoint-1/model.txt"), "checkpoint-1"));
  run_host_for(h, 0.3);
  assert_false(run_host_status(h).keeping);
  assert_true(run_host_logged(h, "restored checkpoint-1 from"));
}

/* Its framework lives without it: it may not take the disk that the training needs. */
static void one_that_is_more_than_twice_the_newest_does_not_come_back(void **state) {
  run_host *h = *state;
  char model[4096];
  memset(model, 'w', sizeof model - 1);
  model[sizeof model - 1] = '\0';
  save_and_lose_with(h, model);
  run_prepared p = prepare(h);
  assert_int_equal(p.restored, 1);
  assert_true(run_host_logged(h, "checkpoint-1 is not restored"));
  assert_true(run_host_logged(h, "twice the newest"));
  start(h);
  run_host_for(h, 0.3);
  assert_false(is_here(h, "checkpoint-1"));
  assert_false(run_host_status(h).keeping);
}

/* It is a commit already: neither is it saved again, nor is it anything new to a start. */
static void it_is_known_for_what_it_is(void **state) {
  run_host *h = *state;
  save_and_lose(h);
  prepare(h);
  start(h);
  await(h, "checkpoint-1");
  run_host_for(h, 0.5);
  run_host_idle(h);
  const run_unit *u = run_unit_find(run_host_run(h), "checkpoint-1");
  assert_non_null(u);
  assert_int_equal(u->phase, UNIT_DURABLE);
  journal_unit known = journal_find(run_host_run(h)->journal, "checkpoint-1");
  assert_int_equal(known.state, JOURNAL_COMMITTED);
  assert_true(digest_equal(&known.fingerprint, &u->fingerprint));
  assert_string_equal(run_host_commits(h), "checkpoint-1 checkpoint-2 checkpoint-3");
  run_host_close(h);
  run_prepared p = prepare(h);
  assert_int_equal(p.restored, 0);
  assert_int_equal(p.found, 2);
}

static void it_does_so_where_the_tree_is_polled(void **state) {
  run_host *h = *state;
  save_and_lose(h);
  run_host_options(h)->poll = true;
  prepare(h);
  start(h);
  await(h, "checkpoint-1");
  for (int i = 0; i < 100 && !run_unit_find(run_host_run(h), "checkpoint-1"); i++)
    run_host_for(h, 0.05);
  run_host_for(h, 0.5);
  const run_unit *u = run_unit_find(run_host_run(h), "checkpoint-1");
  assert_non_null(u);
  assert_int_equal(u->phase, UNIT_DURABLE);
  assert_string_equal(run_host_commits(h), "checkpoint-1 checkpoint-2 checkpoint-3");
}

static void what_is_there_by_then_stays(void **state) {
  run_host *h = *state;
  save_and_lose(h);
  prepare(h);
  start(h);
  make_dir(run_host_dir(h, "checkpoint-1"));
  write_in(run_host_dir(h, "checkpoint-1"), "model.txt", "the job's own");
  run_host_for(h, 0.5);
  assert_true(file_is(run_host_dir(h, "checkpoint-1/model.txt"), "the job's own"));
  assert_false(path_exists(run_host_dir(h, "checkpoint-1/config.json")));
  assert_true(run_host_logged(h, "checkpoint-1, which checkpoint-3 names, is not restored"));
  assert_false(run_host_status(h).keeping);
}

static void an_end_before_it_is_here_says_so(void **state) {
  run_host *h = *state;
  save_and_lose(h);
  prepare(h);
  start(h);
  run_host_close(h);
  assert_false(is_here(h, "checkpoint-1"));
  assert_true(run_host_logged(h, "checkpoint-1, which checkpoint-3 names, is NOT here"));
  run_prepared p = prepare(h); /* the next one does it */
  assert_int_equal(p.restored, 0);
  start(h);
  await(h, "checkpoint-1");
}

static void it_has_no_turn_when_time_is_short(void **state) {
  run_host *h = *state;
  save_and_lose(h);
  prepare(h);
  start(h);
  assert_int_equal(run_preempt(run_host_run(h), 30, NULL), 0);
  assert_false(run_host_status(h).keeping);
  run_host_for(h, 0.3);
  assert_false(is_here(h, "checkpoint-1"));
  assert_true(run_host_logged(h, "checkpoint-1, which checkpoint-3 names, is NOT here"));
}

static void a_damaged_one_is_named_and_stops_nothing(void **state) {
  run_host *h = *state;
  char command[700];
  save_and_lose(h);
  prepare(h);
  snprintf(command, sizeof command, "chmod -R u+w '%s' && echo other >'%s/model.txt'",
           run_host_store(h, "checkpoint-1"), run_host_store(h, "checkpoint-1"));
  assert_int_equal(system(command), 0);
  start(h);
  for (int i = 0; i < 200 && run_host_status(h).keeping; i++) run_host_for(h, 0.02);
  assert_false(is_here(h, "checkpoint-1"));
  assert_true(run_host_logged(h, "checkpoint-1, which checkpoint-3 names, is NOT here"));
  write_hf(h, "checkpoint-4", "checkpoint-1");
  run_host_until(h, RUN_COMMITTED, "checkpoint-4");
}

static void a_store_that_cannot_be_read_now_is_asked_again(void **state) {
  run_host *h = *state;
  save_and_lose(h);
  prepare(h);
  run_host_fail_reads(h, EIO);
  start(h);
  run_host_for(h, 0.5);
  assert_true(run_host_logged(h, "checkpoint-1, which checkpoint-3 names, is not here yet"));
  assert_in_range(run_host_due(h), 1, (int64_t)10 * 1000000000);
  assert_false(run_host_status(h).keeping);
  run_host_fail_reads(h, 0);
  run_host_skip(h, 11);
  await(h, "checkpoint-1");
  assert_false(run_host_logged(h, "is NOT here"));
}

static void it_is_not_asked_again_when_the_job_is_over(void **state) {
  run_host *h = *state;
  save_and_lose(h);
  prepare(h);
  run_host_fail_reads(h, EIO);
  start(h);
  run_host_for(h, 0.5);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_for(h, 0.2);
  assert_false(run_host_status(h).keeping);
  assert_true(run_host_logged(h, "checkpoint-1, which checkpoint-3 names, is NOT here"));
  run_host_fail_reads(h, 0);
}

static void one_that_comes_after_the_end_is_said_to_be_late(void **state) {
  run_host *h = *state;
  save_and_lose(h);
  prepare(h);
  start(h);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  await(h, "checkpoint-1");
  run_host_for(h, 0.2);
  assert_true(run_host_logged(h, "came when the job had ended"));
}

/* The library goes on without its best one, and fails at its end on one that does not load. */
static void what_made_way_for_one_that_is_damaged_stays_away(void **state) {
  run_host *h = *state;
  char command[1500];
  run_host_begin(h);
  for (int i = 1; i <= 2; i++) {
    char unit[40];
    snprintf(unit, sizeof unit, "checkpoint-%d", i);
    write_hf(h, unit, "checkpoint-1");
    run_host_until(h, RUN_COMMITTED, unit);
  }
  run_host_close(h);
  assert_int_equal(unlink(run_host_dir(h, "checkpoint-1/trainer_state.json")), 0);
  prepare(h);
  assert_false(is_here(h, "checkpoint-1"));
  snprintf(command, sizeof command, "chmod -R u+w '%s' && echo other >'%s/model.txt'",
           run_host_store(h, "checkpoint-1"), run_host_store(h, "checkpoint-1"));
  assert_int_equal(system(command), 0);
  start(h);
  for (int i = 0; i < 200 && run_host_status(h).keeping; i++) run_host_for(h, 0.02);
  assert_false(is_here(h, "checkpoint-1"));
  assert_true(run_host_logged(h, "stays in quarantine"));
  assert_int_equal(run_host_logs(h, "checkpoint-1, which checkpoint-2 names, is NOT here"), 1);
}

/* Nothing of ours may stand in the directory while the job runs. */
static void a_state_elsewhere_has_it_before_the_start(void **state) {
  run_host *h = *state;
  struct stat here, there;
  save_and_lose(h);
  assert_int_equal(stat(run_host_top(h), &here), 0);
  if (stat("/dev/shm", &there) < 0 || here.st_dev == there.st_dev) skip();
  char elsewhere[] = "/dev/shm/ckpt-later-XXXXXX";
  if (!mkdtemp(elsewhere)) skip();
  run_host_options(h)->places.state = elsewhere;
  run_prepared p = prepare(h);
  assert_int_equal(p.restored, 2);
  assert_true(is_here(h, "checkpoint-1"));
  run_host_close(h);
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", elsewhere);
  assert_int_equal(system(command), 0);
}

static const char noting[] = "return { api = 1,\n"
                             "  on_failed = function(e, memory) memory.failed = true end,\n"
                             "  sync = function(e, memory)\n"
                             "    return not memory.failed, 'one has failed' end }";

/* What a hook has noted is of what has happened: the cut is for the restore alone. */
static void one_that_is_cut_off_takes_no_memory_with_it(void **state) {
  run_host *h = *state;
  save_and_lose(h);
  run_host_options(h)->tries = 1;
  run_host_policy(h, noting);
  prepare(h);
  run_host_fail_reads(h, EIO);
  start(h);
  run_host_for(h, 0.5);
  run_host_fail_store(h, ENOSPC);
  write_hf(h, "checkpoint-4", "checkpoint-1");
  run_host_until(h, RUN_FAILED, "checkpoint-4");
  run_host_fail_store(h, 0);
  run_host_fail_reads(h, 0);
  run_host_slow_reads(h, 2);
  run_host_skip(h, 11);
  run_host_for(h, 0.2);
  run_host_close(h);
  assert_true(run_host_logged(h, "checkpoint-1, which checkpoint-3 names, is NOT here"));
  run_host_slow_reads(h, 0);
  run_host *other = run_host_elsewhere(h);
  run_host_policy(other, noting);
  prepare(other);
  start(other);
  write_hf(other, "checkpoint-5", "checkpoint-1");
  run_host_until(other, RUN_SKIPPED, "checkpoint-5");
  assert_string_equal(run_host_reason(other, RUN_SKIPPED, "checkpoint-5"), "one has failed");
  run_host_free(other);
}

/* The restore has used up its second: what comes behind it has one of its own, and no more. */
static void behind_one_that_is_cut_off_nothing_waits_for_a_silent_store(void **state) {
  run_host *h = *state;
  const io *real = io_system();
  save_and_lose(h);
  prepare(h);
  run_host_fail_reads(h, EIO);
  start(h);
  run_host_for(h, 0.5);
  run_host_fail_reads(h, 0);
  run_host_slow_reads(h, 2);
  write_hf(h, "checkpoint-4", "checkpoint-1");
  run_host_until(h, RUN_COMMITTED, "checkpoint-4");
  run_host_skip(h, 11);
  run_host_for(h, 0.2);
  assert_true(run_host_status(h).keeping);
  run_host_silence(h);
  int64_t begun = real->now(real, IO_MONO);
  run_host_close(h);
  assert_in_range(real->now(real, IO_MONO) - begun, 0, (int64_t)50 * 1000000000);
  assert_true(run_host_logged(h, "checkpoint-1, which checkpoint-3 names, is NOT here"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(the_best_comes_back_behind_the_start),
      WITH_HOST(one_that_is_more_than_twice_the_newest_does_not_come_back),
      WITH_HOST(it_is_known_for_what_it_is),
      WITH_HOST(it_does_so_where_the_tree_is_polled),
      WITH_HOST(what_is_there_by_then_stays),
      WITH_HOST(an_end_before_it_is_here_says_so),
      WITH_HOST(it_has_no_turn_when_time_is_short),
      WITH_HOST(a_damaged_one_is_named_and_stops_nothing),
      WITH_HOST(a_store_that_cannot_be_read_now_is_asked_again),
      WITH_HOST(it_is_not_asked_again_when_the_job_is_over),
      WITH_HOST(one_that_comes_after_the_end_is_said_to_be_late),
      WITH_HOST(what_made_way_for_one_that_is_damaged_stays_away),
      WITH_HOST(a_state_elsewhere_has_it_before_the_start),
      WITH_HOST(one_that_is_cut_off_takes_no_memory_with_it),
      WITH_HOST(behind_one_that_is_cut_off_nothing_waits_for_a_silent_store),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
