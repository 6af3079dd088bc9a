/* What the core lets go by itself: examples, and a property over random logs against a second notion
 * of it. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifest_make.h"
#include "plan/generations.h"
#include "plan/retention.h"

enum { COMMITS_MAX = 64 };
static const int64_t hour_ns = INT64_C(3600) * 1000000000;

typedef struct log_of {
  runlog_state state;
  runlog_commit commits[COMMITS_MAX];
} log_of;

static runlog_commit *add(log_of *l, const char *name, int64_t hours) {
  l->state.commits = l->commits;
  assert_true(l->state.commit_count < COMMITS_MAX);
  runlog_commit *c = &l->commits[l->state.commit_count++];
  *c = (runlog_commit){.n = l->state.commit_count,
                       .unit = (char *)name,
                       .step = MATCH_NO_STEP,
                       .time_ns = hours * hour_ns};
  return c;
}

/* Stands in for what the rules say of a name. */
static bool is_reused(const runlog_commit *c) {
  return strchr(c->unit, '.') != NULL;
}

static generations_doubt doubt = {{RUNLOG_NONE, RUNLOG_NONE}};

/* 's' for what stays, 'g' for what goes. */
static const char *fates(log_of *l, bool few) {
  static char out[COMMITS_MAX + 1];
  size_t i = 0;
  for (; i < l->state.commit_count; i++)
    out[i] = generations_passed(&l->state, &l->commits[i], few && is_reused(&l->commits[i]), &doubt)
                 ? 'g'
                 : 's';
  out[i] = '\0';
  return out;
}

static void of_a_day_the_last_three_stay(void **state) {
  log_of l = {0};
  (void)state;
  for (int i = 0; i < 10; i++) add(&l, "last.pt", 1);
  assert_string_equal(fates(&l, true), "gggggggsss");
  assert_string_equal(fates(&l, false), "ssssssssss");
}

static void the_last_of_each_day_stays(void **state) {
  log_of l = {0};
  (void)state;
  for (int i = 0; i < 12; i++) add(&l, "last.pt", (int64_t)i * 6);
  assert_string_equal(fates(&l, true), "gggsgggsgsss");
}

/* Of a clock that runs back each day that is told has its last one. */
/* Guards: a job that began anew under the same name let go what the job before it had ended with. */
static void what_each_writer_saved_last_stays(void **state) {
  runlog_attempt by[10] = {0};
  log_of l = {.state = {.attempts = by, .attempt_count = 10}};
  (void)state;
  for (int i = 0; i < 10; i++) {
    by[i] = (runlog_attempt){.n = (uint64_t)i + 1, .owner = i < 1 ? 0 : i < 5 ? 1 : 2};
    add(&l, "last.pt", 1)->attempt = by[i].n;
  }
  assert_string_equal(fates(&l, true), "sgggsggsss");
}

static void times_that_run_back_lose_no_day(void **state) {
  log_of l = {0};
  const int64_t hours[] = {30, 31, 2, -1, -2, 3, 32, 33};
  (void)state;
  for (size_t i = 0; i < sizeof hours / sizeof *hours; i++) add(&l, "last.pt", hours[i]);
  assert_string_equal(fates(&l, true), "ggggssss");
}

static void what_is_bad_takes_no_place_and_stays(void **state) {
  log_of l = {0};
  (void)state;
  for (int i = 0; i < 8; i++) add(&l, "last.pt", 1)->bad = i > 4 || i == 1;
  assert_string_equal(fates(&l, true), "gsssssss");
}

static void what_is_not_kept_any_more_takes_no_place(void **state) {
  log_of l = {0};
  (void)state;
  for (int i = 0; i < 6; i++) add(&l, "last.pt", 1)->life = i == 4 ? RUNLOG_DROPPED : RUNLOG_LIVE;
  assert_string_equal(fates(&l, true), "ggssss");
}

static void each_name_has_its_own(void **state) {
  log_of l = {0};
  (void)state;
  for (int i = 0; i < 5; i++) {
    add(&l, "last.pt", 1);
    add(&l, "best.pt", 1);
    add(&l, "best_pt", 1); /* of which the rules say that it is not written again */
  }
  assert_string_equal(fates(&l, true), "ggsggssssssssss");
}

static void what_has_a_step_stays_as_soon_as_there_is_another_step(void **state) {
  log_of l = {0};
  (void)state;
  for (int i = 0; i < 6; i++) add(&l, "resnet50.pt", 1)->step = 50;
  assert_string_equal(fates(&l, true), "gggsss");
  add(&l, "resnet51.pt", 1)->step = 51;
  assert_string_equal(fates(&l, true), "sssssss");
}

/* What a job failed on is no reason to let go what it may have to go back to. */
static void what_is_suspect_takes_no_place_and_the_one_before_it_stays(void **state) {
  log_of l = {0};
  (void)state;
  for (int i = 0; i < 7; i++) add(&l, "last.pt", 1);
  doubt.commits[1] = 4;
  assert_string_equal(fates(&l, true), "ggsgsss");
  doubt.commits[1] = 7;
  assert_string_equal(fates(&l, true), "gggssss");
  doubt.commits[1] = RUNLOG_NONE;
  assert_string_equal(fates(&l, true), "ggggsss");
}

static void of_files_above_the_last_three_of_a_kind_stay(void **state) {
  log_of l = {0};
  (void)state;
  for (int i = 0; i < 6; i++)
    add(&l, i % 2 ? "state-1.json" : "state-2.json", 30 * i)->above = true;
  assert_string_equal(fates(&l, true), "gggsss");
  assert_string_equal(fates(&l, false), "gggsss");
  for (int i = 0; i < 3; i++) add(&l, "state-1.json", 1);
  assert_string_equal(fates(&l, true), "gggssssss");
}

/* ---- the property ---- */

enum { WORLDS = 2000 };

static uint64_t random_now;

static uint64_t roll(uint64_t sides) {
  return next_random(&random_now) % sides;
}

static void check(const log_of *l, size_t at, uint64_t seed) {
  const runlog_commit *c = &l->commits[at];
  bool goes = generations_passed(&l->state, c, is_reused(c), NULL) != NULL;
  int newer = 0, today = 0;
  for (size_t i = at + 1; i < l->state.commit_count; i++) {
    const runlog_commit *k = &l->commits[i];
    if (k->bad || k->above || k->life != RUNLOG_LIVE || strcmp(k->unit, c->unit) != 0) continue;
    newer++;
    today += k->time_ns / (24 * hour_ns) == c->time_ns / (24 * hour_ns);
  }
  bool may = c->life == RUNLOG_LIVE && !c->bad && newer >= 3 && today > 0;
  if (goes != may)
    fail_msg("seed %llu: commit %zu (%s) %s", (unsigned long long)seed, at, c->unit,
             goes ? "goes, and must stay" : "stays, and may go");
}

static void nothing_else_goes_whatever_the_log_is(void **state) {
  static const char *const units[] = {"last.pt", "best.pt", "model.ckpt"};
  long gone = 0;
  (void)state;
  for (uint64_t seed = 1; seed <= WORLDS; seed++) {
    log_of l = {0};
    random_now = seed;
    for (size_t n = 2 + roll(COMMITS_MAX - 2); l.state.commit_count < n;) {
      runlog_commit *c = add(&l, units[roll(3)], (int64_t)roll(96));
      c->bad = roll(6) == 0;
      c->life = roll(6) ? RUNLOG_LIVE : roll(2) ? RUNLOG_DROPPED : RUNLOG_DELETED;
    }
    for (size_t i = 0; i < l.state.commit_count; i++) {
      check(&l, i, seed);
      gone += generations_passed(&l.state, &l.commits[i], true, NULL) != NULL;
    }
  }
  assert_true(gone > WORLDS);
}

/* ---- the grace ---- */

static void what_the_core_lets_go_has_a_24th_of_the_grace(void **state) {
  const int64_t day = 24 * hour_ns;
  (void)state;
  assert_int_equal(retention_grace("builtin", RETENTION_PASSED, day), hour_ns);
  assert_int_equal(retention_grace("builtin", RETENTION_PASSED, INT64_MAX), INT64_MAX);
  assert_int_equal(retention_grace("builtin", RETENTION_PASSED, 0), 0);
  assert_int_equal(retention_grace("builtin", RETENTION_PASSED, -5), 0);
  assert_int_equal(retention_grace("mine", RETENTION_PASSED, day), day);
  assert_int_equal(retention_grace("builtin", "it is marked bad", day), day);
  assert_int_equal(retention_grace(NULL, NULL, day), day);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_a_day_the_last_three_stay),
      cmocka_unit_test(the_last_of_each_day_stays),
      cmocka_unit_test(what_each_writer_saved_last_stays),
      cmocka_unit_test(times_that_run_back_lose_no_day),
      cmocka_unit_test(what_is_bad_takes_no_place_and_stays),
      cmocka_unit_test(what_is_not_kept_any_more_takes_no_place),
      cmocka_unit_test(each_name_has_its_own),
      cmocka_unit_test(what_has_a_step_stays_as_soon_as_there_is_another_step),
      cmocka_unit_test(what_is_suspect_takes_no_place_and_the_one_before_it_stays),
      cmocka_unit_test(of_files_above_the_last_three_of_a_kind_stay),
      cmocka_unit_test(nothing_else_goes_whatever_the_log_is),
      cmocka_unit_test(what_the_core_lets_go_has_a_24th_of_the_grace),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
