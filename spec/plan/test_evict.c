#include "with_cmocka.h"

#include "plan/evict.h"

static const int64_t second = 1000000000;

/* A run that began at 1,000 s, and is looked at at 2,000 s. */
static evict_facts begun(void) {
  return (evict_facts){.now_ns = 2000 * second, .started_ns = 1000 * second, .takes_s = -1};
}

static void without_a_checkpoint_all_work_of_the_run_is_lost(void **state) {
  (void)state;
  evict_facts f = begun();
  evict_cost c = evict_judge(&f);
  assert_int_equal(c.lost_since_ns, 1000 * second);
  assert_true(c.lost_s == 1000);
  assert_true(c.durable_in_s == 0);
}

static void work_counts_from_when_the_checkpoint_was_whole(void **state) {
  (void)state;
  evict_facts f = begun();
  f.complete_ns = 1500 * second;
  assert_int_equal(evict_judge(&f).lost_since_ns, 1500 * second);
  assert_true(evict_judge(&f).lost_s == 500);
}

static void a_checkpoint_of_an_earlier_run_costs_the_work_of_this_one_alone(void **state) {
  (void)state;
  evict_facts f = begun();
  f.complete_ns = 10 * second;
  assert_int_equal(evict_judge(&f).lost_since_ns, 1000 * second);
  f.beside = true; /* the job may be older than the one that watches */
  assert_int_equal(evict_judge(&f).lost_since_ns, 10 * second);
}

static void what_is_pending_takes_as_long_as_the_pace_says(void **state) {
  (void)state;
  evict_facts f = begun();
  f.pending = 1;
  assert_true(evict_judge(&f).durable_in_s < 0); /* nothing was measured */
  f.takes_s = 12;
  assert_true(evict_judge(&f).durable_in_s == 12);
  f.rests_s = 60; /* by their own pace they may not begin before */
  assert_true(evict_judge(&f).durable_in_s == 72);
  f.fenced = true; /* and beside a newer run they never come */
  assert_true(evict_judge(&f).durable_in_s < 0);
  f.pending = 0;
  assert_true(evict_judge(&f).durable_in_s == 0);
}

static void when_the_job_is_over_only_what_is_not_in_the_target_can_be_lost(void **state) {
  (void)state;
  evict_facts f = begun();
  f.complete_ns = 1500 * second;
  f.over = true;
  f.last_ns = 1700 * second;
  f.pending = 1;
  assert_true(evict_judge(&f).lost_s == 200);
  f.pending = 0; /* it was given up */
  assert_true(evict_judge(&f).lost_s == 200);
  f.last_ns = 0;
  assert_true(evict_judge(&f).lost_s == 500);
  f.safe = true;
  assert_true(evict_judge(&f).lost_s == 0);
  assert_int_equal(evict_judge(&f).lost_since_ns, 0);
}

static void a_clock_that_is_set_back_costs_nothing(void **state) {
  (void)state;
  evict_facts f = begun();
  f.now_ns = 500 * second;
  assert_true(evict_judge(&f).lost_s == 0);
  assert_int_equal(evict_judge(&f).lost_since_ns, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_checkpoint_all_work_of_the_run_is_lost),
      cmocka_unit_test(work_counts_from_when_the_checkpoint_was_whole),
      cmocka_unit_test(a_checkpoint_of_an_earlier_run_costs_the_work_of_this_one_alone),
      cmocka_unit_test(what_is_pending_takes_as_long_as_the_pace_says),
      cmocka_unit_test(when_the_job_is_over_only_what_is_not_in_the_target_can_be_lost),
      cmocka_unit_test(a_clock_that_is_set_back_costs_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
