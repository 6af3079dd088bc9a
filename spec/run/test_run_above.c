/* Files above the checkpoints of many groups: saved together, when they change, into the log of their
 * own directory; restored last, in a generation of which all is there. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

#define STATE "exp/experiment_state-2026-11-23_19-58-33.json"
#define VARIANTS "exp/basic-variant-state-2026-11-23_19-58-33.json"

static void put(run_host *h, const char *name, const char *text) {
  write_file(run_host_dir(h, name), text);
}

static void make_trials(run_host *h) {
  make_dir(run_host_dir(h, "exp"));
  make_dir(run_host_dir(h, "exp/t1"));
  make_dir(run_host_dir(h, "exp/t2"));
}

/* A checkpoint of a trial, which is one file here. */
static void save(run_host *h, const char *name) {
  put(h, name, name);
  run_host_until(h, RUN_COMMITTED, name);
}

/* A state that names these checkpoints. */
static void name_two(run_host *h, const char *a, const char *b) {
  char text[600];
  snprintf(text, sizeof text, "{\"a\": \"/there/exp/%s\", \"b\": \"/there/exp/%s\"}", a, b);
  put(h, STATE, text);
}

static const run_group *group_of(run_host *h, const char *prefix) {
  const run_group *g = run_group_find(run_host_run(h), prefix);
  assert_non_null(g);
  return g;
}

static size_t live_of(run_host *h, const char *prefix) {
  const runlog_state *state = runlog_view(group_of(h, prefix)->group.log);
  size_t count = 0;
  for (size_t i = 0; i < state->commit_count; i++) count += state->commits[i].life == RUNLOG_LIVE;
  return count;
}

static void lose_machine(run_host *h) {
  char command[900];
  run_host_close(h);
  snprintf(command, sizeof command, "cd '%s' && rm -rf dir state", run_host_top(h));
  assert_int_equal(system(command), 0);
  make_dir(run_host_dir(h, ""));
}

/* A later session of Ray's tuner writes them anew, and goes on by the last name. */
static void what_an_earlier_session_began_is_not_saved_again(void **state) {
  run_host *h = *state;
  static const char later[] = "exp/experiment_state-2026-11-23_20-00-00.json";
  make_trials(h);
  put(h, STATE, "{\"session\": 1}");
  run_host_until(h, RUN_COMMITTED, STATE);
  put(h, later, "{\"session\": 2}");
  run_host_skip(h, 61);
  run_host_until(h, RUN_COMMITTED, later);
  for (int i = 0; i < 4; i++) {
    char text[60];
    snprintf(text, sizeof text, "{\"session\": 1, \"again\": %d}", i);
    put(h, STATE, text);
    run_host_skip(h, 61);
    run_host_for(h, 0.2);
  }
  assert_int_equal(run_host_count(h, RUN_COMMITTED, STATE), 1);
  put(h, later, "{\"session\": 2, \"more\": 1}");
  run_host_skip(h, 61);
  run_host_until(h, RUN_COMMITTED, later);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, later), 2);
  lose_machine(h);
  run_host_begin(h);
  assert_true(access(run_host_dir(h, later), F_OK) == 0);
}

/* The end of the run would never come. */
static void one_that_a_later_session_overtakes_is_waited_for_no_more(void **state) {
  run_host *h = *state;
  static const char later[] = "exp/experiment_state-2026-11-23_20-00-00.json";
  make_trials(h);
  run_host_for(h, 0.3); /* its directory has a watch: it is seen to be open */
  int fd = open(run_host_dir(h, STATE), O_CREAT | O_WRONLY, 0600);
  assert_int_equal(write(fd, "{}", 2), 2);
  run_host_for(h, 0.2);
  put(h, later, "{\"session\": 2}");
  run_host_until(h, RUN_COMMITTED, later);
  close(fd);
  run_host_for(h, 0.2);
  run_host_idle(h);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, STATE), 0);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_for(h, 0.2);
  run_status now = run_host_status(h);
  assert_int_equal(now.pending + now.settling, 0);
}

/* It was there at the start, and nobody knows whether it is whole: that decides nothing any more. */
static void one_of_before_that_nothing_proves_makes_no_end_less_than_durable(void **state) {
  run_host *h = *state;
  static const char later[] = "exp/searcher-state-2026-11-23_20-00-00.pkl";
  make_trials(h);
  put(h, "exp/searcher-state-2026-11-23_19-58-33.pkl", "no pickle");
  run_host_begin(h);
  run_host_for(h, 0.3);
  assert_int_equal(run_host_status(h).unproven, 1);
  put(h, later, "\x80\x05N.");
  run_host_until(h, RUN_COMMITTED, later);
  assert_int_equal(run_host_status(h).unproven, 0);
}

static void each_is_a_commit_of_the_log_of_its_directory_and_no_checkpoint(void **state) {
  run_host *h = *state;
  make_trials(h);
  save(h, "exp/t1/checkpoint_1.pt");
  put(h, "exp/tuner.pkl", "\x80\x05N.");
  run_host_until(h, RUN_COMMITTED, "exp/tuner.pkl");
  const runlog_state *log = runlog_view(group_of(h, "exp")->group.log);
  assert_int_equal(log->commit_count, 1);
  assert_string_equal(log->commits[0].unit, "tuner.pkl");
  assert_true(log->commits[0].above);
  assert_int_equal(log->commits[0].step, MATCH_NO_STEP);
  assert_null(runlog_newest(log, NULL));
  run_status now = run_host_status(h);
  assert_int_equal(now.standing, STANDING_DURABLE);
  assert_string_equal(now.newest_unit, "exp/t1/checkpoint_1.pt");
}

static void alone_they_make_nothing_durable_and_nothing_to_resume_from(void **state) {
  run_host *h = *state;
  make_trials(h);
  put(h, STATE, "{}");
  run_host_until(h, RUN_COMMITTED, STATE);
  assert_int_equal(run_host_status(h).standing, STANDING_NOTHING_TO_SAVE);
  lose_machine(h);
  run_prepared p = run_host_begin(h);
  assert_null(p.resume);
  assert_true(file_is(run_host_dir(h, STATE), "{}"));
}

static void what_changes_again_is_saved_a_minute_later(void **state) {
  run_host *h = *state;
  make_trials(h);
  run_host_skip(h, 1500); /* of a run that is young, sooner */
  name_two(h, "t1/a.pt", "t2/b.pt");
  put(h, VARIANTS, "{\"n\": 1}");
  run_host_until(h, RUN_COMMITTED, STATE);
  if (run_host_count(h, RUN_COMMITTED, VARIANTS) == 0) run_host_until(h, RUN_COMMITTED, VARIANTS);
  run_host_skip(h, 10);
  for (int i = 0; i < 4; i++) {
    char text[40];
    snprintf(text, sizeof text, "{\"n\": 1%d}", i);
    put(h, STATE, text);
    run_host_for(h, 0.3);
    run_host_skip(h, 5);
  }
  run_host_for(h, 0.3);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, STATE), 1);
  run_host_skip(h, 40);
  run_host_until(h, RUN_COMMITTED, STATE);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, STATE), 2);
}

static void at_the_end_no_minute_is_waited_for(void **state) {
  run_host *h = *state;
  err e = {0};
  make_trials(h);
  put(h, STATE, "{\"n\": 1}");
  run_host_until(h, RUN_COMMITTED, STATE);
  run_host_skip(h, 6);
  put(h, STATE, "{\"n\": 2, \"last\": true}");
  run_host_for(h, 0.3);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, STATE), 1);
  assert_int_equal(run_child_exit(run_host_run(h), true, &e), 0);
  run_host_until(h, RUN_COMMITTED, STATE);
}

static void it_waits_for_the_checkpoints_that_it_names(void **state) {
  run_host *h = *state;
  make_trials(h);
  run_host_hold(h, true);
  run_host_hold_save(h, "exp/t1/checkpoint_1.pt", "one");
  name_two(h, "t1/checkpoint_1.pt", "t2/gone.pt");
  run_host_for(h, 0.3);
  run_host_skip(h, 2);
  run_host_for(h, 1.2);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, STATE), 0);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, STATE);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "exp/t1/checkpoint_1.pt"), 1);
}

/* Two generations: the first names what is in the store, the second what was lost with the machine. */
static void a_state_that_names_what_was_lost_gives_way_to_the_one_before(void **state) {
  run_host *h = *state;
  make_trials(h);
  save(h, "exp/t1/checkpoint_1.pt");
  save(h, "exp/t2/checkpoint_1.pt");
  name_two(h, "t1/checkpoint_1.pt", "t2/checkpoint_1.pt");
  run_host_until(h, RUN_COMMITTED, STATE);
  save(h, "exp/t1/checkpoint_2.pt");
  run_host_skip(h, 70);
  name_two(h, "t1/checkpoint_2.pt", "t2/checkpoint_2.pt");
  run_host_until(h, RUN_COMMITTED, STATE);
  lose_machine(h);
  run_host_begin(h);
  char *text = read_file(run_host_dir(h, STATE), &(size_t){0});
  assert_non_null(text);
  assert_non_null(strstr(text, "t2/checkpoint_1.pt"));
  free(text);
  assert_true(file_is(run_host_dir(h, "exp/t1/checkpoint_1.pt"), "exp/t1/checkpoint_1.pt"));
  assert_true(file_is(run_host_dir(h, "exp/t1/checkpoint_2.pt"), "exp/t1/checkpoint_2.pt"));
  assert_true(run_host_logged(h, "names t2/checkpoint_2.pt, which is not in the store"));
}

static void where_no_state_has_all_the_newest_comes_back(void **state) {
  run_host *h = *state;
  make_trials(h);
  save(h, "exp/t1/checkpoint_1.pt");
  name_two(h, "t1/checkpoint_1.pt", "t2/checkpoint_2.pt");
  run_host_until(h, RUN_COMMITTED, STATE);
  lose_machine(h);
  run_host_begin(h);
  assert_true(path_exists(run_host_dir(h, STATE)));
  assert_true(run_host_logged(h, "what goes on from that checkpoint will fail"));
}

/* Ray fails on a tuner without a state; without both it begins anew. */
static void a_tuner_of_which_no_state_was_saved_stays_in_the_store(void **state) {
  run_host *h = *state;
  make_trials(h);
  save(h, "exp/t1/checkpoint_1.pt");
  put(h, "exp/tuner.pkl", "\x80\x05N.");
  run_host_until(h, RUN_COMMITTED, "exp/tuner.pkl");
  lose_machine(h);
  run_host_begin(h);
  assert_false(path_exists(run_host_dir(h, "exp/tuner.pkl")));
  assert_true(path_exists(run_host_dir(h, "exp/t1/checkpoint_1.pt")));
  assert_true(run_host_logged(h, "tuner.pkl of \"exp\" is not restored"));
  put(h, STATE, "{\"n\": 1}");
  run_host_until(h, RUN_COMMITTED, STATE);
  lose_machine(h);
  run_host_begin(h);
  assert_true(path_exists(run_host_dir(h, "exp/tuner.pkl")));
  assert_true(path_exists(run_host_dir(h, STATE)));
}

static void a_torn_one_goes_to_quarantine_and_the_saved_one_comes_back(void **state) {
  run_host *h = *state;
  make_trials(h);
  put(h, STATE, "{\"n\": 1}");
  run_host_until(h, RUN_COMMITTED, STATE);
  run_host_close(h);
  put(h, STATE, "{\"n\": 2, \"tri");
  put(h, "exp/experiment_state-2026-11-24_00-00-00.json", "{\"later\": ");
  run_host_begin(h);
  assert_true(file_is(run_host_dir(h, STATE), "{\"n\": 1}"));
  assert_false(path_exists(run_host_dir(h, "exp/experiment_state-2026-11-24_00-00-00.json")));
}

/* A tuner knows it, and may go back to it. */
static void a_named_one_that_stands_torn_gives_way_to_its_commit(void **state) {
  run_host *h = *state;
  char command[700];
  make_trials(h);
  save(h, "exp/t1/checkpoint_1.pt");
  save(h, "exp/t1/checkpoint_2.pt");
  name_two(h, "t1/checkpoint_1.pt", "t1/checkpoint_2.pt");
  run_host_until(h, RUN_COMMITTED, STATE);
  run_host_close(h);
  assert_int_equal(remove(run_host_dir(h, STATE)), 0);
  put(h, "exp/t1/checkpoint_1.pt", "PK\3\4 the first part");
  run_host_begin(h);
  assert_true(file_is(run_host_dir(h, "exp/t1/checkpoint_1.pt"), "exp/t1/checkpoint_1.pt"));
  assert_true(path_exists(run_host_dir(h, STATE)));
  snprintf(command, sizeof command, "grep -rq 'the first part' '%s'",
           run_host_state(h, "quarantine"));
  assert_int_equal(system(command), 0);
}

static void one_that_stands_here_whole_is_not_touched(void **state) {
  run_host *h = *state;
  make_trials(h);
  put(h, STATE, "{\"n\": 1}");
  run_host_until(h, RUN_COMMITTED, STATE);
  run_host_close(h);
  sleep(1); /* or it could be of the time of the saved one */
  put(h, STATE, "{\"n\": 2}");
  run_host_begin(h);
  assert_true(file_is(run_host_dir(h, STATE), "{\"n\": 2}"));
}

/* A pass comes behind each commit, and no save waits for it. */
static void rest(run_host *h) {
  run_host_idle(h);
  for (int i = 0; i < 1000 && run_host_status(h).keeping; i++) run_host_for(h, 0.005);
  assert_false(run_host_status(h).keeping);
}

static void the_last_three_generations_stay(void **state) {
  run_host *h = *state;
  make_trials(h);
  for (int i = 0; i < 6; i++) {
    char text[40];
    snprintf(text, sizeof text, "{\"n\": %d}", i);
    put(h, STATE, text);
    run_host_until(h, RUN_COMMITTED, STATE);
    rest(h); /* one may go in a pass */
    run_host_skip(h, 70);
  }
  assert_int_equal(live_of(h, "exp"), 3);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, STATE), 3);
}

static void begin_with_the_last_kept(run_host *h) {
  run_host_policy(h, "return { api = 1, keep = keep.last(1) }\n");
  run_host_options(h)->max_delete = 1;
  run_host_begin(h);
  make_trials(h);
}

static void what_a_state_names_stays_whatever_keep_says(void **state) {
  run_host *h = *state;
  begin_with_the_last_kept(h);
  name_two(h, "t1/checkpoint_1.pt", "t2/none.pt");
  run_host_until(h, RUN_COMMITTED, STATE);
  for (int i = 1; i < 5; i++) {
    char name[60];
    run_host_next_day(h);
    snprintf(name, sizeof name, "exp/t1/checkpoint_%d.pt", i);
    save(h, name);
  }
  rest(h);
  const runlog_state *log = runlog_view(group_of(h, "exp/t1")->group.log);
  assert_int_equal(live_of(h, "exp/t1"), 2);
  assert_int_equal(log->commits[0].life, RUNLOG_LIVE);
  assert_int_equal(log->commits[3].life, RUNLOG_LIVE);
}

/* The tuner learns of a checkpoint after it is whole, and writes its state every ten seconds: the first
 * state that names a trial's first checkpoint is saved when the second is committed already. */
static void what_the_next_state_may_name_stays_until_it_is_saved(void **state) {
  run_host *h = *state;
  begin_with_the_last_kept(h);
  put(h, STATE, "{\"n\": 1}");
  run_host_until(h, RUN_COMMITTED, STATE);
  save(h, "exp/t1/checkpoint_1.pt");
  save(h, "exp/t1/checkpoint_2.pt");
  rest(h);
  name_two(h, "t1/checkpoint_1.pt", "t2/none.pt");
  run_host_skip(h, 70);
  run_host_until(h, RUN_COMMITTED, STATE);
  assert_int_equal(live_of(h, "exp/t1"), 2);
  run_host_next_day(h);
  save(h, "exp/t1/checkpoint_3.pt");
  rest(h);
  const runlog_commit *first = &runlog_view(group_of(h, "exp/t1")->group.log)->commits[0];
  assert_int_equal(first->life, RUNLOG_LIVE);
  assert_int_equal(live_of(h, "exp/t1"), 2);
}

/* When the job has ended its last state is on the disk, and tells all that it names. */
static void at_the_end_what_no_state_names_goes(void **state) {
  run_host *h = *state;
  err e = {0};
  begin_with_the_last_kept(h);
  put(h, STATE, "{\"n\": 1}");
  run_host_until(h, RUN_COMMITTED, STATE);
  for (int i = 1; i < 4; i++) {
    char name[60];
    snprintf(name, sizeof name, "exp/t1/checkpoint_%d.pt", i);
    save(h, name);
  }
  name_two(h, "t1/checkpoint_2.pt", "t2/none.pt");
  run_host_for(h, 0.1);
  assert_int_equal(run_child_exit(run_host_run(h), true, &e), 0);
  rest(h);
  assert_int_equal(live_of(h, "exp/t1"), 2);
  assert_int_equal(runlog_view(group_of(h, "exp/t1")->group.log)->commits[0].life, RUNLOG_DELETED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_RUN(what_an_earlier_session_began_is_not_saved_again),
      WITH_RUN(one_that_a_later_session_overtakes_is_waited_for_no_more),
      WITH_HOST(one_of_before_that_nothing_proves_makes_no_end_less_than_durable),
      WITH_RUN(each_is_a_commit_of_the_log_of_its_directory_and_no_checkpoint),
      WITH_RUN(alone_they_make_nothing_durable_and_nothing_to_resume_from),
      WITH_RUN(what_changes_again_is_saved_a_minute_later),
      WITH_RUN(at_the_end_no_minute_is_waited_for),
      WITH_RUN(it_waits_for_the_checkpoints_that_it_names),
      WITH_RUN(a_state_that_names_what_was_lost_gives_way_to_the_one_before),
      WITH_RUN(where_no_state_has_all_the_newest_comes_back),
      WITH_RUN(a_tuner_of_which_no_state_was_saved_stays_in_the_store),
      WITH_RUN(a_torn_one_goes_to_quarantine_and_the_saved_one_comes_back),
      WITH_RUN(a_named_one_that_stands_torn_gives_way_to_its_commit),
      WITH_RUN(one_that_stands_here_whole_is_not_touched),
      WITH_RUN(the_last_three_generations_stay),
      WITH_HOST(what_a_state_names_stays_whatever_keep_says),
      WITH_HOST(what_the_next_state_may_name_stays_until_it_is_saved),
      WITH_HOST(at_the_end_what_no_state_names_goes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
