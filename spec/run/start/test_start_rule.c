#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "run/start/start_rule.h"

static const int64_t S = 1000000000;

static void an_outage_is_waited_out_longer_where_commits_were_made_before(void **unused) {
  assert_int_equal(start_patience(0, true), 120 * S);
  assert_int_equal(start_patience(0, false), 15 * S);
  assert_int_equal(start_patience(7 * S, true), 7 * S);
  assert_int_equal(start_patience(7 * S, false), 7 * S);
  assert_int_equal(start_patience(-1, true), S);
}

static void a_job_begins_without_its_store_only_from_what_is_surely_the_newest(void **unused) {
  static const struct {
    start_facts f;
    const char *why; /* NULL: it may */
  } rows[] = {
      {{.wished = false, .outage = true, .never = true, .tied = true}, ""},
      {{.wished = true, .outage = true, .never = true}, NULL},
      {{.wished = true, .outage = true, .tied = true}, NULL},
      {{.wished = true, .outage = true}, "stands whole"},
      {{.wished = true, .outage = false, .never = true, .tied = true}, "does not answer"},
      {{.wished = true, .outage = true, .ranks = true, .never = true, .tied = true}, "alone"},
      {{.wished = true, .outage = true, .named = true, .tied = true}, "named"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *why = start_refusal(&rows[i].f);
    if (!rows[i].why)
      assert_null(why);
    else if (!why || !strstr(why, rows[i].why) || (!*rows[i].why && *why))
      fail_msg("row %zu: %s", i, why ? why : "it may");
  }
}

static runlog_ref ref(uint64_t n, const char *log, const char *entry) {
  runlog_ref r = {.n = n};
  snprintf(r.log, sizeof r.log, "%s", log);
  snprintf(r.entry, sizeof r.entry, "%s", entry);
  return r;
}

static void saving_goes_on_only_in_the_log_that_the_job_came_from(void **unused) {
  const runlog_ref none = {.n = RUNLOG_NONE}, empty = ref(RUNLOG_NONE, "L", "");
  const runlog_ref five = ref(5, "L", "e5"), copy = ref(5, "L", "f5"), nine = ref(9, "L", "e9"),
                   other = ref(5, "M", "e5");
  const struct {
    start_answer a;
    const char *why;
  } rows[] = {
      {{.has_log = true, .newest = five, .came_from = five}, NULL},
      {{.has_log = true, .newest = empty, .came_from = none}, NULL},
      {{.has_log = false, .newest = none, .came_from = none}, NULL},
      {{.has_log = false, .newest = none, .came_from = five}, "not there any more"},
      {{.has_log = true, .newest = nine, .came_from = five}, "not the one"},
      {{.has_log = true, .newest = copy, .came_from = five}, "not the one"},
      {{.has_log = true, .newest = other, .came_from = five}, "another one"},
      {{.has_log = true, .newest = empty, .came_from = five}, "not the one"},
      {{.has_log = true, .newest = five, .came_from = none}, "knew nothing"},
      {{.has_log = true, .newest = five, .came_from = five, .held = true}, "alive"},
      {{.has_log = true, .newest = five, .came_from = five, .other_run = true}, "another run"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *why = start_end(&rows[i].a);
    if (!rows[i].why)
      assert_null(why);
    else if (!why || !strstr(why, rows[i].why))
      fail_msg("row %zu: %s", i, why ? why : "it goes on");
  }
}

static void what_is_whole_is_moved_only_for_a_target_that_is_surely_the_jobs(void **unused) {
  static const struct {
    start_strangers s;
    bool may;
  } rows[] = {
      {{.restores = true, .count = 2}, false},
      {{.restores = true, .count = 2, .fresh = true}, true},
      {{.restores = true, .count = 2, .committed = true}, true},
      {{.restores = true, .count = 2, .used = true}, true},
      {{.restores = false, .count = 2}, true}, /* it moves none */
      {{.restores = true, .count = 0}, true},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (start_may_move(&rows[i].s) != rows[i].may) fail_msg("row %zu", i);
}

int main(void) {
  const struct CMUnitTest promises[] = {
      cmocka_unit_test(an_outage_is_waited_out_longer_where_commits_were_made_before),
      cmocka_unit_test(a_job_begins_without_its_store_only_from_what_is_surely_the_newest),
      cmocka_unit_test(saving_goes_on_only_in_the_log_that_the_job_came_from),
      cmocka_unit_test(what_is_whole_is_moved_only_for_a_target_that_is_surely_the_jobs),
  };
  return cmocka_run_group_tests(promises, NULL, NULL);
}
