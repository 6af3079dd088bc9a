/* Which copies in quarantine may go: examples, and a property over random ones, clocks included. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/holding.h"

enum { NOW = 1800000000, HOUR = 3600 };

static const holding *find(const holding *all, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(all[i].name, name) == 0) return &all[i];
  fail_msg("%s is gone", name);
  return NULL;
}

static void a_day_old_one_may_go_and_a_younger_one_may_not(void **unused) {
  (void)unused;
  holding all[] = {{"a", "1-old", NOW - 25 * HOUR, true}, {"b", "2-young", NOW - 23 * HOUR, true}};
  holdings_judge(all, 2, NOW);
  assert_true(find(all, 2, "1-old")->due);
  assert_false(find(all, 2, "2-young")->due);
}

static void two_generations_of_a_kind_stay_for_a_day(void **unused) {
  (void)unused;
  holding all[] = {{"a", "1", NOW - 3, false},
                   {"b", "2", NOW - 9, false},
                   {"a", "3", NOW - 2, false},
                   {"a", "4", NOW - 4, false},
                   {"a", "5", NOW - 1, false}};
  holdings_judge(all, 5, NOW);
  assert_true(find(all, 5, "1")->due);
  assert_true(find(all, 5, "4")->due);
  assert_false(find(all, 5, "3")->due);
  assert_false(find(all, 5, "5")->due);
  assert_false(find(all, 5, "2")->due);
}

static void one_of_a_time_to_come_is_not_old_and_counts_as_the_latest(void **unused) {
  (void)unused;
  holding all[] = {{"a", "1", NOW + 99 * HOUR, false},
                   {"a", "2", NOW + 98 * HOUR, false},
                   {"a", "3", NOW, false},
                   {"a", "4", INT64_MAX, false}};
  holdings_judge(all, 4, NOW);
  assert_false(find(all, 4, "4")->due);
  assert_false(find(all, 4, "1")->due);
  assert_true(find(all, 4, "2")->due);
  assert_true(find(all, 4, "3")->due);
}

static void only_names_that_a_start_gives_are_any(void **unused) {
  (void)unused;
  static const char *const none[] = {"",
                                     "1795273311",
                                     "1795273311-0213acc",
                                     "1795273311-0213acc37",
                                     "-0213acc3",
                                     "1795273311-0213ACC3",
                                     "x795273311-0213acc3",
                                     "1795273311-0213acc3.removing",
                                     "1795273311_0213acc3",
                                     "9999999999999999999-0213acc3",
                                     "..",
                                     "1-0213acc/"};
  int64_t time_s = 0;
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    if (holding_name(none[i], &time_s)) fail_msg("%s", none[i]);
  assert_true(holding_name("1795273311-0213acc3", &time_s));
  assert_true(time_s == 1795273311);
}

/* The same by counting, whatever the order. */
static bool is_due(const holding *all, size_t count, const holding *h, int64_t now) {
  size_t later = 0;
  for (size_t i = 0; i < count; i++)
    later += strcmp(all[i].kind, h->kind) == 0 &&
             (all[i].time_s > h->time_s ||
              (all[i].time_s == h->time_s && strcmp(all[i].name, h->name) < 0));
  return later >= 2 || (h->time_s <= now && now - h->time_s > 24 * HOUR);
}

static void
whatever_is_there_the_latest_two_of_each_kind_stay_until_they_are_a_day_old(void **unused) {
  enum { ROUNDS = 2000, MOST = 24 };
  static const char *const kinds[] = {"/ckpt-#", "/last", "exp/T1/ckpt-#"};
  (void)unused;
  srand(17);
  for (int round = 0; round < ROUNDS; round++) {
    holding all[MOST];
    char names[MOST][32];
    size_t count = (size_t)(rand() % (MOST + 1));
    for (size_t i = 0; i < count; i++) {
      snprintf(names[i], sizeof names[i], "%zu-%d", i, rand() % 100);
      all[i] = (holding){kinds[rand() % 3], names[i], NOW + (rand() % 60 - 45) * HOUR, rand() % 2};
    }
    holdings_judge(all, count, NOW);
    for (size_t i = 0; i < count; i++)
      assert_int_equal(all[i].due, is_due(all, count, &all[i], NOW));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_day_old_one_may_go_and_a_younger_one_may_not),
      cmocka_unit_test(two_generations_of_a_kind_stay_for_a_day),
      cmocka_unit_test(one_of_a_time_to_come_is_not_old_and_counts_as_the_latest),
      cmocka_unit_test(only_names_that_a_start_gives_are_any),
      cmocka_unit_test(whatever_is_there_the_latest_two_of_each_kind_stay_until_they_are_a_day_old),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
