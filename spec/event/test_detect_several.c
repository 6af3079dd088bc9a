/* The promises of detect where several tasks write into a tree, each of which ends for itself. */
#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "detect_sim.h"

static bool agreed;
static unsigned asked;

static bool agree(void *ctx, const char *path, match_kind kind, uint64_t stamp, char *why,
                  size_t room, int64_t *wait) {
  const sim *s = ctx;
  asked++;
  assert_int_equal(kind, MATCH_DIR);
  assert_true(stamp != 0 && *path && s->d);
  snprintf(why, room, "task 3 has not reported yet");
  *wait = SIM_S;
  return agreed;
}

static int set_up(void **state) {
  int rc = sim_set_up_tree(state);
  sim *s = *state;
  s->agree = agree;
  agreed = true;
  asked = 0;
  sim_open(s);
  return rc;
}
#define SEVERAL(test) cmocka_unit_test_setup_teardown(test, set_up, sim_tear_down)

/* The shards of so many tasks; the marker, which the first one writes, is there before the last. */
static void save(sim *s, const char *unit, int shards) {
  char path[64];
  sim_mkdir(s, unit);
  for (int i = 0; i < shards; i++) {
    snprintf(path, sizeof path, "%s/shard-%d", unit, i);
    sim_save(s, path, 1000);
    snprintf(path, sizeof path, "%s/trainer_state.json", unit);
    if (i == 0) sim_save(s, path, 100);
    sim_wait(s, 5 * SIM_MS);
  }
}

static void a_unit_is_open_until_the_others_agree(void **state) {
  sim *s = *state;
  agreed = false;
  save(s, "checkpoint-1", 2);
  sim_after(s, 300 * SIM_S, "checkpoint-1", DETECT_OPEN);
  detect_unit u = sim_unit(s, "checkpoint-1");
  assert_string_equal(u.cause, "tasks");
  assert_string_equal(u.reason, "task 3 has not reported yet");
  agreed = true;
  sim_after(s, 2 * SIM_S, "checkpoint-1", DETECT_COMPLETE);
  unsigned before = asked;
  sim_wait(s, 100 * SIM_S);
  assert_int_equal(asked, before); /* once it is complete nobody is bothered */
}

static void nobody_is_asked_while_its_own_rules_do_not_hold(void **state) {
  sim *s = *state;
  sim_mkdir(s, "checkpoint-1");
  sim_save(s, "checkpoint-1/optimizer.pt", 10); /* the marker is missing */
  sim_wait(s, 20 * SIM_S);
  assert_int_equal(asked, 0);
}

/* Who wrote the marker is one of them, and nothing tells yet how many shards there are. */
static void the_first_one_is_not_complete_before_the_long_time(void **state) {
  sim *s = *state;
  save(s, "checkpoint-1", 2);
  sim_wait(s, 20 * SIM_S);
  assert_int_equal(sim_times(s, "checkpoint-1", DETECT_COMPLETE), 0);
  sim_save(s, "checkpoint-1/shard-2", 1000);
  sim_after(s, 40 * SIM_S, "checkpoint-1", DETECT_COMPLETE);
  assert_int_equal(sim_times(s, "checkpoint-1", DETECT_COMPLETE), 1);
  save(s, "checkpoint-2", 3);
  sim_after(s, 10 * SIM_S, "checkpoint-2", DETECT_COMPLETE);
}

static void what_lacks_a_file_of_the_one_before_is_unproven_when_all_have_ended(void **state) {
  sim *s = *state;
  save(s, "checkpoint-1", 3);
  sim_after(s, 60 * SIM_S, "checkpoint-1", DETECT_COMPLETE);
  save(s, "checkpoint-2", 2);
  detect_writer_gone(s->d, true);
  sim_after(s, SIM_S, "checkpoint-2", DETECT_UNPROVEN);
  assert_non_null(
      strstr(sim_unit(s, "checkpoint-2").reason, "unlike the one before it, it lacks shard-2"));
  assert_true(detect_due(s->d) == INT64_MAX);
}

static void what_has_all_of_them_is_complete_at_once_when_all_have_ended(void **state) {
  sim *s = *state;
  save(s, "checkpoint-1", 3);
  sim_after(s, 60 * SIM_S, "checkpoint-1", DETECT_COMPLETE);
  save(s, "checkpoint-2", 3);
  detect_writer_gone(s->d, true);
  sim_after(s, SIM_S, "checkpoint-2", DETECT_COMPLETE);
}

static void what_is_not_complete_when_nobody_knows_of_all_is_unproven_and_says_why(void **state) {
  sim *s = *state;
  agreed = false;
  save(s, "checkpoint-1", 3);
  detect_doubt(s->d, "task 3 is not known to have ended");
  detect_writer_gone(s->d, false);
  sim_after(s, SIM_S, "checkpoint-1", DETECT_UNPROVEN);
  detect_unit u = sim_unit(s, "checkpoint-1");
  assert_string_equal(u.reason, "task 3 is not known to have ended");
  assert_string_equal(u.cause, "tasks");
  assert_true(detect_due(s->d) == INT64_MAX);
  detect_writer_new(s->d); /* of a new one all is known again */
  agreed = true;
  save(s, "checkpoint-2", 3);
  sim_after(s, 60 * SIM_S, "checkpoint-2", DETECT_COMPLETE);
}

/* It is found out that no other task was ever asked: then it is as with one writer. */
static void where_there_is_one_after_all_the_end_proves_what_has_its_marker(void **state) {
  sim *s = *state;
  save(s, "checkpoint-1", 3);
  sim_after(s, 60 * SIM_S, "checkpoint-1", DETECT_COMPLETE);
  save(s, "checkpoint-2", 2);
  detect_several(s->d, false);
  detect_writer_gone(s->d, true);
  sim_after(s, SIM_S, "checkpoint-2", DETECT_COMPLETE);
}

/* ---- one of them dies, and the others live on ---- */

static void what_one_may_have_had_open_when_it_died_is_unproven(void **state) {
  sim *s = *state;
  save(s, "checkpoint-1", 3);
  sim_after(s, 60 * SIM_S, "checkpoint-1", DETECT_COMPLETE);
  save(s, "checkpoint-2", 3);
  detect_writer_died(s->d, 0);
  sim_after(s, SIM_S, "checkpoint-2", DETECT_UNPROVEN);
  /* What the others write after that is as good as before. */
  save(s, "checkpoint-3", 3);
  sim_after(s, 60 * SIM_S, "checkpoint-3", DETECT_COMPLETE);
  assert_int_equal(sim_unit(s, "checkpoint-1").state, DETECT_COMPLETE);
}

/* Its files were closed 0.5 s ago: before it died, if that was less long ago than that. */
static void the_time_since_it_was_known_to_live_counts_against_what_was_closed(void **state) {
  for (int late = 0; late < 2; late++) {
    sim *s = *state;
    save(s, "checkpoint-1", 3);
    sim_after(s, 60 * SIM_S, "checkpoint-1", DETECT_COMPLETE);
    save(s, "checkpoint-2", 3);
    sim_save(s, "checkpoint-2/shard-2", 1001);
    sim_save(s, "checkpoint-2/trainer_state.json", 101); /* again: which was the last? */
    sim_wait(s, 500 * SIM_MS);
    detect_writer_died(s->d, late ? 2 * SIM_S : 200 * SIM_MS);
    sim_after(s, 3 * SIM_S, "checkpoint-2", late ? DETECT_UNPROVEN : DETECT_COMPLETE);
    if (late) return;
    sim_tear_down(state);
    set_up(state);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SEVERAL(a_unit_is_open_until_the_others_agree),
      SEVERAL(nobody_is_asked_while_its_own_rules_do_not_hold),
      SEVERAL(the_first_one_is_not_complete_before_the_long_time),
      SEVERAL(what_lacks_a_file_of_the_one_before_is_unproven_when_all_have_ended),
      SEVERAL(what_has_all_of_them_is_complete_at_once_when_all_have_ended),
      SEVERAL(what_is_not_complete_when_nobody_knows_of_all_is_unproven_and_says_why),
      SEVERAL(where_there_is_one_after_all_the_end_proves_what_has_its_marker),
      SEVERAL(what_one_may_have_had_open_when_it_died_is_unproven),
      SEVERAL(the_time_since_it_was_known_to_live_counts_against_what_was_closed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
