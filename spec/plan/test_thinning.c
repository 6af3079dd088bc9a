/* May files of an older commit go: among the newest, pinned, bad, gone on from, verified they may not,
 * whatever the log looks like. */
#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "base/seconds.h"
#include "manifest_make.h"
#include "plan/thinning.h"
#include "prims/match_series.h"

enum { COMMITS_MAX = 24 };

typedef struct log_of {
  runlog_state state;
  runlog_commit commits[COMMITS_MAX];
} log_of;

static char *const units[] = {"checkpoint-1", "checkpoint-2", "checkpoint-3", "checkpoint-4",
                              "best.pt"};
static const retention_guard nobody = {.resumed = RUNLOG_NONE, .verified = RUNLOG_NONE};

static void add(log_of *l, int name) {
  l->state.commits = l->commits;
  runlog_commit *c = &l->commits[l->state.commit_count++];
  *c = (runlog_commit){.n = 10 * l->state.commit_count, .unit = units[name], .dir = units[name]};
}

static log_of four(void) {
  log_of l = {0};
  for (int i = 0; i < 4; i++) add(&l, i);
  return l;
}

static const char *judged(log_of *l, size_t i, const retention_guard *g, uint64_t newest) {
  l->state.commits = l->commits;
  return thinning_guarded(&l->state, &l->commits[i], g, newest, NULL);
}

static void one_with_so_many_newer_good_ones_may_lose_files(void **state) {
  log_of l = four();
  assert_null(judged(&l, 0, &nobody, 2));
  assert_null(judged(&l, 1, &nobody, 2));
  assert_string_equal(judged(&l, 2, &nobody, 2), "it is among the newest of its kind");
  assert_string_equal(judged(&l, 3, &nobody, 2), "it is the newest of its kind");
  assert_string_equal(judged(&l, 1, &nobody, 3), "it is among the newest of its kind");
  assert_non_null(judged(&l, 3, &nobody, 0));
  (void)state;
}

static void a_newer_one_that_is_bad_dropped_or_of_another_kind_is_none(void **state) {
  log_of l = four();
  l.commits[2].bad = true;
  assert_non_null(judged(&l, 1, &nobody, 2));
  assert_null(judged(&l, 0, &nobody, 2));
  l = four();
  l.commits[3].life = RUNLOG_DROPPED;
  assert_non_null(judged(&l, 1, &nobody, 2));
  l = four();
  l.commits[3].unit = units[4];
  assert_non_null(judged(&l, 1, &nobody, 2));
  (void)state;
}

/* One without such files is no reason to take any of the last that have. */
static void only_those_that_have_such_files_count(void **state) {
  log_of l = four();
  const uint64_t has[] = {l.commits[2].n, l.commits[1].n};
  const thinning_have two = {has, 2}, one = {has, 1}, none = {NULL, 0};
  l.state.commits = l.commits;
  assert_null(thinning_guarded(&l.state, &l.commits[0], &nobody, 2, &two));
  assert_string_equal(thinning_guarded(&l.state, &l.commits[0], &nobody, 2, &one),
                      "it is among the newest of its kind");
  assert_non_null(thinning_guarded(&l.state, &l.commits[0], &nobody, 0, &none));
  l.commits[2].bad = true;
  assert_non_null(thinning_guarded(&l.state, &l.commits[0], &nobody, 2, &two));
  (void)state;
}

static void what_is_held_stays_whole(void **state) {
  log_of l = four();
  const uint64_t pin = l.commits[0].n;
  retention_guard g = {&pin, 1, RUNLOG_NONE, RUNLOG_NONE};
  assert_string_equal(judged(&l, 0, &g, 2), "it is pinned");
  g = (retention_guard){.resumed = pin, .verified = RUNLOG_NONE};
  assert_string_equal(judged(&l, 0, &g, 2), "the run goes on from it");
  g = (retention_guard){.resumed = RUNLOG_NONE, .verified = pin};
  assert_string_equal(judged(&l, 0, &g, 2), "it is the last one that verified");
  l.commits[0].bad = true;
  assert_string_equal(judged(&l, 0, &nobody, 2), "it is marked bad");
  l = four();
  l.state.flags_since = l.commits[1].n;
  assert_non_null(strstr(judged(&l, 0, &nobody, 2), "other flags"));
  (void)state;
}

static void with_the_newest_alone_that_one_has_to_be_proven(void **state) {
  log_of l = four();
  assert_non_null(judged(&l, 2, &nobody, 1));
  retention_guard g = {.resumed = l.commits[3].n, .verified = RUNLOG_NONE};
  assert_null(judged(&l, 2, &g, 1));
  g = (retention_guard){.resumed = RUNLOG_NONE, .verified = l.commits[3].n};
  assert_null(judged(&l, 2, &g, 1));
  l.commits[3].bad = true;
  assert_non_null(judged(&l, 2, &g, 1));
  g = (retention_guard){.resumed = RUNLOG_NONE, .verified = l.commits[1].n};
  assert_non_null(judged(&l, 2, &g, 1)); /* an older one proves nothing */
  (void)state;
}

static thinning judge(log_of *l, size_t i, int64_t grace, int64_t now) {
  const retention_limits limits = {.max_drop = 1, .grace_ns = grace, .now_ns = now};
  l->state.commits = l->commits;
  return thinning_judge(&l->state, &l->commits[i], &nobody, &limits, 2, NULL);
}

/* The newest are always young: what counts is since when enough newer ones are there. */
static void it_waits_until_enough_newer_ones_are_as_old_as_the_grace(void **state) {
  log_of l = four();
  for (int i = 0; i < 4; i++) l.commits[i].time_ns = 100 * (i + 1);
  thinning t = judge(&l, 0, 1000, 1200);
  assert_int_equal(t.verdict, THINNING_WAIT);
  assert_int_equal(t.after, l.commits[2].n);
  assert_int_equal(t.wait_ns, 100);
  assert_int_equal(judge(&l, 0, 1000, 1300).verdict, THINNING_GOES);
  t = judge(&l, 1, 1000, 1300);
  assert_int_equal(t.verdict, THINNING_WAIT);
  assert_int_equal(t.after, l.commits[3].n);
  assert_int_equal(judge(&l, 2, 0, 9999).verdict, THINNING_STAYS);
  assert_int_equal(judge(&l, 0, 0, -5).verdict, THINNING_GOES); /* none needs no clock */
  t = judge(&l, 0, SECONDS_FOREVER, INT64_MAX);
  assert_int_equal(t.verdict, THINNING_WAIT);
  assert_int_equal(t.wait_ns, SECONDS_FOREVER);
  l.commits[2].bad = true; /* it counts for nothing */
  assert_int_equal(judge(&l, 0, 1000, 1300).after, l.commits[3].n);
  (void)state;
}

static void files_go_once_and_nowhere_if_nothing_is_deleted(void **state) {
  log_of l = four();
  retention_limits limits = {.max_drop = 1, .no_delete = true};
  thinning t = thinning_judge(&l.state, &l.commits[0], &nobody, &limits, 2, NULL);
  assert_int_equal(t.verdict, THINNING_STAYS);
  assert_string_equal(t.why, "nothing is deleted here");
  char *glob[] = {units[0]};
  l.commits[0].thin.globs = (names){glob, 1, 1};
  t = judge(&l, 0, 0, 0);
  assert_int_equal(t.verdict, THINNING_STAYS);
  assert_string_equal(t.why, "files of it are gone already");
  (void)state;
}

static void one_share_is_for_what_is_dropped_and_for_what_loses_files(void **state) {
  log_of l = {0};
  for (int i = 0; i < 10; i++) add(&l, i % 4);
  l.state.commits = l.commits;
  l.commits[0].life = RUNLOG_DROPPED; /* it is not live */
  retention_limits limits = {.max_drop = 0.5};
  assert_int_equal(thinning_most(&l.state, &limits, 0), 4);
  for (int i = 1; i < 4; i++) l.commits[i].life = RUNLOG_DROPPED; /* by this pass */
  assert_int_equal(thinning_most(&l.state, &limits, 3), 1);
  assert_int_equal(thinning_most(&l.state, &limits, 9), 0);
  limits.max_drop = 0;
  assert_int_equal(thinning_most(&l.state, &limits, 0), 1);
  assert_int_equal(thinning_most(&l.state, &limits, 1), 0);
  (void)state;
}

/* By a count of its own, over random logs. */
static void whatever_the_log_looks_like_enough_good_ones_are_behind_it(void **state) {
  uint64_t random = 7;
  int free_ones = 0;
  for (int round = 0; round < 3000; round++) {
    log_of l = {0};
    const size_t count = 1 + next_random(&random) % (COMMITS_MAX - 1);
    for (size_t i = 0; i < count; i++) {
      add(&l, (int)(next_random(&random) % 5));
      l.commits[i].bad = next_random(&random) % 4 == 0;
      l.commits[i].life = (runlog_life)(next_random(&random) % 5 == 0);
    }
    const uint64_t pin = 10 * (1 + next_random(&random) % count), newest = next_random(&random) % 4;
    retention_guard g = {&pin, 1, 10 * (1 + next_random(&random) % count),
                         10 * (1 + next_random(&random) % count)};
    for (size_t i = 0; i < count; i++) {
      const runlog_commit *c = &l.commits[i];
      size_t newer = 0;
      if (judged(&l, i, &g, newest)) continue;
      free_ones++;
      for (size_t k = i + 1; k < count; k++)
        newer += !l.commits[k].bad && l.commits[k].life == RUNLOG_LIVE &&
                 match_same_series(l.commits[k].unit, c->unit);
      assert_true(newer > 0 && newer >= newest && !c->bad && c->life == RUNLOG_LIVE);
      assert_true(c->n != pin && c->n != g.resumed && c->n != g.verified);
    }
  }
  assert_true(free_ones > 100);
  (void)state;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_with_so_many_newer_good_ones_may_lose_files),
      cmocka_unit_test(a_newer_one_that_is_bad_dropped_or_of_another_kind_is_none),
      cmocka_unit_test(only_those_that_have_such_files_count),
      cmocka_unit_test(what_is_held_stays_whole),
      cmocka_unit_test(with_the_newest_alone_that_one_has_to_be_proven),
      cmocka_unit_test(it_waits_until_enough_newer_ones_are_as_old_as_the_grace),
      cmocka_unit_test(files_go_once_and_nowhere_if_nothing_is_deleted),
      cmocka_unit_test(one_share_is_for_what_is_dropped_and_for_what_loses_files),
      cmocka_unit_test(whatever_the_log_looks_like_enough_good_ones_are_behind_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
