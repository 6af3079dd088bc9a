/* Drains: what is complete is to be durable in time, and the job goes on. */
#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static uint64_t drain(run_host *h, double for_s) {
  uint64_t id = 0;
  assert_int_equal(run_drain(run_host_run(h), for_s, &id, NULL), 0);
  assert_int_not_equal(id, 0);
  return id;
}

static int status_of(run_host *h, const char *unit) {
  return run_host_last(h, RUN_DRAINED, unit)->status;
}

typedef struct seen {
  const char *unit;
  run_drained_unit told;
  char reason[320];
  unsigned count;
} seen;

static void on_unit(void *ctx, const run_drained_unit *u) {
  seen *s = ctx;
  if (strcmp(u->unit, s->unit) != 0) return;
  s->told = *u;
  s->count++;
  snprintf(s->reason, sizeof s->reason, "%s", u->reason);
}

static seen look(run_host *h, uint64_t id, const char *unit) {
  seen s = {.unit = unit};
  run_drain_state state;
  assert_int_equal(run_drained(run_host_run(h), id, &state, on_unit, &s), 0);
  return s;
}

static const char rate[] =
    "return { api = 1, sync = function(e)\n"
    "  if e.event == 'preempt' then return true, 'time is short: ' .. tostring(e.grace) end\n"
    "  return false, 'not yet' end }";

static void with_nothing_to_save_it_is_over_at_once(void **state) {
  run_host *h = *state;
  drain(h, 30);
  run_host_until(h, RUN_DRAINED, "");
  assert_int_equal(status_of(h, ""), 0);
}

/* A rename of a moment ago is complete for whoever made it, and asked for a drain then. */
static void what_only_rests_is_waited_for(void **state) {
  run_host *h = *state;
  run_host_options(h)->quiet_ns = 3 * (int64_t)1000000000;
  run_host_begin(h);
  run_host_put(h, "ckpt-1.pt");
  run_host_for(h, 0.1);
  uint64_t id = drain(h, 30);
  run_host_step(h, NULL);
  assert_int_equal(run_host_count(h, RUN_DRAINED, NULL), 0);
  assert_int_equal(look(h, id, "ckpt-1.pt").told.is, DRAIN_WAITS);
  run_host_until(h, RUN_DRAINED, "");
  assert_int_equal(status_of(h, ""), 0);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt");
  assert_int_equal(look(h, id, "ckpt-1.pt").told.is, DRAIN_STORED);
}

static void what_has_not_rested_when_time_is_up_is_no_success(void **state) {
  run_host *h = *state;
  run_host_options(h)->quiet_ns = 3 * (int64_t)1000000000;
  run_host_begin(h);
  run_host_put(h, "ckpt-1.pt");
  run_host_for(h, 0.1);
  drain(h, 0);
  run_host_until(h, RUN_DRAINED, "ckpt-1.pt");
  assert_int_equal(status_of(h, "ckpt-1.pt"), ERR_TIMEOUT);
}

static void what_is_being_written_is_not_waited_for(void **state) {
  run_host *h = *state;
  int fd = open(run_host_dir(h, "ckpt-1.pt"), O_CREAT | O_WRONLY, 0600);
  assert_int_equal(write(fd, "half", 4), 4);
  run_host_for(h, 0.1);
  uint64_t id = drain(h, 30);
  run_host_until(h, RUN_DRAINED, "");
  assert_int_equal(look(h, id, "ckpt-1.pt").told.is, DRAIN_OPEN);
  close(fd);
}

static void what_was_given_up_is_told_as_not_sent(void **state) {
  run_host *h = *state;
  run_evict cost;
  run_host_fail_store(h, EACCES);
  run_host_write(h, "best.pt", "first", RUN_FAILED);
  run_get_evict(run_host_run(h), &cost);
  assert_int_equal(cost.bytes, strlen("first"));
  assert_true(cost.durable_in_s < 0);
  run_host_fail_store(h, 0);
  run_host_write(h, "best.pt", "second", RUN_COMMITTED);
  run_get_evict(run_host_run(h), &cost);
  assert_int_equal(cost.bytes, 0);
  assert_true(cost.durable_in_s == 0);
}

static void what_is_durable_already_is_told(void **state) {
  run_host *h = *state;
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  uint64_t id = drain(h, 30);
  run_host_until(h, RUN_DRAINED, "");
  assert_int_equal(look(h, id, "ckpt-1.pt").told.is, DRAIN_STORED);
}

static void it_is_over_when_all_that_was_complete_is_durable(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_let_wait(h, "best.pt");
  uint64_t id = drain(h, 30);
  run_host_step(h, NULL);
  assert_int_equal(run_host_count(h, RUN_DRAINED, NULL), 0);
  assert_int_equal(look(h, id, "best.pt").told.is, DRAIN_WAITS);
  run_host_hold(h, false);
  run_host_until(h, RUN_DRAINED, "");
  assert_int_equal(status_of(h, ""), 0);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt best.pt");
  assert_int_equal(look(h, id, "best.pt").told.is, DRAIN_STORED);
}

static void when_time_is_up_it_names_the_newest_and_the_save_goes_on(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "ckpt-1.pt", "one");
  uint64_t id = drain(h, 30);
  run_host_step(h, NULL);
  assert_true(run_host_due(h) <= 30 * (int64_t)1000000000);
  run_host_skip(h, 31);
  run_host_until(h, RUN_DRAINED, "ckpt-1.pt");
  assert_int_equal(status_of(h, "ckpt-1.pt"), ERR_TIMEOUT);
  assert_int_equal(run_host_last(h, RUN_DRAINED, "ckpt-1.pt")->job, id);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  assert_int_equal(look(h, id, "ckpt-1.pt").told.is, DRAIN_WAITS); /* as it was when time was up */
}

static void a_newer_one_of_its_kind_will_do(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "best.pt", "best");
  run_host_let_wait(h, "ckpt-1.pt");
  uint64_t id = drain(h, 30);
  run_host_let_wait(h, "ckpt-2.pt");
  run_host_hold(h, false);
  run_host_until(h, RUN_DRAINED, "");
  seen one = look(h, id, "ckpt-1.pt");
  assert_int_equal(one.told.is, DRAIN_STORED);
  assert_string_equal(one.reason, "ckpt-2.pt is, which is newer");
}

/* The first took twice as long as what is left: the newest alone fits, and the job goes on. */
static void nothing_that_would_have_been_saved_without_it_is_lost(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_let_wait(h, "best.pt");
  run_host_let_wait(h, "last.pt");
  drain(h, 30);
  run_host_skip(h, 20);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  assert_string_equal(run_host_commits(h), "ckpt-1.pt best.pt last.pt");
  assert_int_equal(run_host_count(h, RUN_DROPPED, NULL), 0);
}

static void with_no_time_at_all_nothing_is_lost_either(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_let_wait(h, "best.pt");
  run_host_let_wait(h, "last.pt");
  drain(h, 0);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  assert_string_equal(run_host_commits(h), "ckpt-1.pt best.pt last.pt");
}

static void where_each_is_kept_each_is_saved(void **state) {
  run_host *h = *state;
  run_host_options(h)->keep_all = true;
  run_host_begin(h);
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_let_wait(h, "ckpt-2.pt");
  run_host_let_wait(h, "ckpt-3.pt");
  drain(h, 30);
  run_host_skip(h, 20);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-3.pt");
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt ckpt-3.pt");
}

static void
one_that_went_for_what_a_drain_alone_wanted_is_saved_when_that_is_put_back(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function(e)\n"
                         "  return e.event == 'preempt' or e.checkpoint.name ~= 'ckpt-2.pt' end }");
  run_host_hold_save(h, "best.pt", "best");
  run_host_let_wait(h, "ckpt-1.pt");
  run_host_save(h, "ckpt-2.pt", RUN_SKIPPED);
  drain(h, 30);
  run_host_skip(h, 31);
  run_host_until(h, RUN_DRAINED, NULL);
  run_host_hold(h, false);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "best.pt ckpt-1.pt");
}

static void what_came_too_late_before_is_named_by_each_drain(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_let_wait(h, "best.pt");
  run_host_let_wait(h, "last.pt");
  assert_int_equal(run_preempt(run_host_run(h), 0.001, NULL), 0);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  assert_int_equal(run_host_status(h).standing, STANDING_NOT_DURABLE);
  for (int i = 0; i < 2; i++) {
    uint64_t id = drain(h, 30);
    run_host_until(h, RUN_DRAINED, "best.pt");
    assert_int_equal(status_of(h, "best.pt"), ERR_TIMEOUT);
    assert_int_equal(look(h, id, "best.pt").told.is, DRAIN_LEFT);
  }
}

static void what_was_refused_since_another_one_ran_is_told_as_not_wanted(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, queue = 'skip' }");
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_save(h, "ckpt-2.pt", RUN_DROPPED);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  uint64_t id = drain(h, 30);
  run_host_until(h, RUN_DRAINED, "");
  assert_int_equal(look(h, id, "ckpt-2.pt").told.is, DRAIN_UNWANTED);
}

static void beside_a_newer_run_nothing_is_called_unwanted(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, rate);
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  run_fenced(run_host_run(h), "", "a newer one");
  drain(h, 30);
  run_host_until(h, RUN_DRAINED, NULL);
  assert_int_equal(run_host_last(h, RUN_DRAINED, NULL)->status, ERR_FENCED);
}

static void one_that_was_given_up_is_not_durable_by_what_is_written_in_its_place(void **state) {
  run_host *h = *state;
  run_host_fail_store(h, EACCES);
  run_host_write(h, "best.pt", "first", RUN_FAILED);
  run_host_fail_store(h, 0);
  run_host_hold_save(h, "ckpt-1.pt", "one");
  drain(h, 30);
  unlink(run_host_dir(h, "best.pt"));
  run_host_for(h, 0.1);
  run_host_let_wait(h, "best.pt");
  run_host_hold(h, false);
  run_host_until(h, RUN_DRAINED, "best.pt");
  assert_int_not_equal(status_of(h, "best.pt"), 0);
}

static void it_keeps_no_end_of_a_job_waiting(void **state) {
  run_host *h = *state;
  run_host_fail_store(h, EIO);
  run_host_write(h, "ckpt-1.pt", "one", RUN_RETRYING);
  drain(h, 1e6);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  for (int i = 0; i < 40 && run_host_count(h, RUN_FAILED, NULL) == 0; i++) {
    run_host_skip(h, 61);
    run_host_for(h, 0.05);
  }
  assert_int_equal(run_host_count(h, RUN_FAILED, "ckpt-1.pt"), 1);
}

static void a_no_when_time_is_short_takes_no_later_yes_back(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function(e)\n"
                         "  if e.event == 'preempt' then return false, 'never in a hurry' end\n"
                         "  if e.event == 'time' then return true, 'it is time' end\n"
                         "  return false, 'not yet', '40s' end }");
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  drain(h, 5);
  run_host_until(h, RUN_DRAINED, NULL);
  run_host_skip(h, 41);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
}

static void so_many_at_once_are_enough(void **state) {
  run_host *h = *state;
  uint64_t id;
  run_host_hold_save(h, "ckpt-1.pt", "one");
  for (int i = 0; i < 16; i++) drain(h, 30);
  assert_int_equal(run_drain(run_host_run(h), 30, &id, NULL), ERR_LIMIT);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  run_host_step(h, NULL);
  drain(h, 30);
}

static void a_rule_of_pace_holds_nothing_back(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, rate);
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  drain(h, 30);
  run_host_until(h, RUN_DRAINED, "");
  assert_string_equal(run_host_commits(h), "ckpt-1.pt");
  run_host_save(h, "ckpt-2.pt", RUN_SKIPPED); /* and afterwards it is as it was */
  assert_string_equal(run_host_commits(h), "ckpt-1.pt");
}

static void what_had_not_begun_when_time_was_up_is_held_back_again(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function(e)\n"
                         "  return e.event == 'preempt' or e.checkpoint.name == 'best.pt' end }");
  run_host_hold_save(h, "best.pt", "best");
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  drain(h, 30);
  assert_int_equal(run_host_status(h).pending, 2);
  run_host_skip(h, 31);
  run_host_until(h, RUN_DRAINED, "ckpt-1.pt");
  assert_int_equal(run_host_status(h).pending, 1);
  run_host_hold(h, false);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "best.pt");
}

static void a_no_of_the_policy_is_not_waited_for(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function() return false, 'never' end }");
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  uint64_t id = drain(h, 30);
  run_host_until(h, RUN_DRAINED, "");
  seen one = look(h, id, "ckpt-1.pt");
  assert_int_equal(one.told.is, DRAIN_UNWANTED);
  assert_non_null(strstr(one.reason, "never"));
  assert_false(one.told.counts);
}

static void of_two_each_has_its_own_time(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "ckpt-1.pt", "one");
  uint64_t first = drain(h, 30), second = drain(h, 60);
  assert_int_not_equal(first, second);
  run_host_skip(h, 31);
  run_host_until(h, RUN_DRAINED, "ckpt-1.pt");
  assert_int_equal(run_host_last(h, RUN_DRAINED, NULL)->job, first);
  run_host_hold(h, false);
  run_host_until(h, RUN_DRAINED, "");
  assert_int_equal(run_host_last(h, RUN_DRAINED, NULL)->job, second);
  assert_int_equal(status_of(h, ""), 0);
}

/* The store is away for longer than all tries of a second would last. */
static void it_uses_up_no_tries_while_the_store_is_away(void **state) {
  run_host *h = *state;
  run_host_fail_store(h, EIO);
  run_host_write(h, "ckpt-1.pt", "one", RUN_RETRYING);
  drain(h, 60);
  for (int i = 0; i < 20; i++) {
    run_host_skip(h, 2);
    run_host_until(h, RUN_RETRYING, "ckpt-1.pt");
  }
  assert_int_equal(run_host_count(h, RUN_FAILED, NULL), 0);
  run_host_skip(h, 30);
  run_host_until(h, RUN_DRAINED, "ckpt-1.pt");
  assert_int_equal(status_of(h, "ckpt-1.pt"), ERR_TIMEOUT);
  run_host_fail_store(h, 0);
  run_host_skip(h, 60);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
}

static void the_pace_of_a_name_that_is_written_again_holds_nothing_back(void **state) {
  run_host *h = *state;
  run_host_options(h)->in_place_every_ns = 3600 * (int64_t)1000000000;
  run_host_begin(h);
  run_host_save(h, "last.pt", RUN_COMMITTED);
  run_host_tick(h);
  write_file(run_host_dir(h, "last.pt"), "second");
  run_host_for(h, 0.3);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "last.pt"), 1);
  drain(h, 30);
  run_host_until(h, RUN_DRAINED, "");
  assert_true(run_host_newest_holds(h, "second"));
}

static void what_is_removed_before_its_turn_is_told_as_gone(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "best.pt", "best");
  run_host_let_wait(h, "ckpt-1.pt");
  uint64_t id = drain(h, 30);
  unlink(run_host_dir(h, "ckpt-1.pt"));
  run_host_until(h, RUN_RETIRED, "ckpt-1.pt");
  run_host_hold(h, false);
  run_host_until(h, RUN_DRAINED, "ckpt-1.pt");
  assert_int_equal(status_of(h, "ckpt-1.pt"), ERR_RETIRED);
  assert_int_equal(look(h, id, "ckpt-1.pt").told.is, DRAIN_GONE);
}

static void the_newest_that_is_late_is_the_one_that_the_status_is_about(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "z.pt", "z");
  run_host_let_wait(h, "a.pt");
  uint64_t id = drain(h, 30);
  run_host_skip(h, 31);
  run_host_until(h, RUN_DRAINED, "a.pt");
  assert_true(look(h, id, "a.pt").told.late);
  assert_false(look(h, id, "z.pt").told.late);
}

/* A name that is overwritten is rarely the same when its turn comes. */
static void what_is_written_again_before_its_turn_is_waited_for_as_it_is_then(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function(e)\n"
                         "  return e.event == 'preempt' or e.checkpoint.name == 'best.pt' end }");
  run_host_hold_save(h, "best.pt", "best");
  run_host_save(h, "last.pt", RUN_SKIPPED);
  uint64_t id = drain(h, 30);
  run_host_tick(h);
  write_file(run_host_dir(h, "last.pt"), "second");
  run_host_for(h, 0.1);
  assert_int_equal(run_host_count(h, RUN_DRAINED, NULL), 0);
  run_host_hold(h, false);
  run_host_until(h, RUN_DRAINED, "");
  assert_true(run_host_newest_holds(h, "second"));
  assert_int_equal(look(h, id, "last.pt").told.is, DRAIN_STORED);
}

/* As trainers do that keep one alone. */
static void what_is_removed_for_a_newer_one_of_its_kind_is_waited_for_in_that(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "best.pt", "best");
  run_host_let_wait(h, "ckpt-1.pt");
  uint64_t id = drain(h, 30);
  run_host_let_wait(h, "ckpt-2.pt");
  unlink(run_host_dir(h, "ckpt-1.pt"));
  run_host_for(h, 0.1);
  assert_int_equal(run_host_count(h, RUN_DRAINED, NULL), 0);
  run_host_hold(h, false);
  run_host_until(h, RUN_DRAINED, "");
  assert_string_equal(look(h, id, "ckpt-1.pt").reason, "ckpt-2.pt is, which is newer");
}

static void what_it_alone_had_queued_counts_once_among_those_that_are_not_wanted(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function(e)\n"
                         "  return e.event == 'preempt' or e.checkpoint.name == 'best.pt' end }");
  run_host_hold_save(h, "best.pt", "best");
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  assert_int_equal(run_host_status(h).skipped, 1);
  drain(h, 30);
  assert_int_equal(run_host_status(h).skipped, 0);
  run_host_skip(h, 31);
  run_host_until(h, RUN_DRAINED, "ckpt-1.pt");
  assert_int_equal(run_host_status(h).skipped, 1);
}

static void what_was_written_where_the_tree_is_polled_is_seen_first(void **state) {
  run_host *h = *state;
  run_host_options(h)->poll = true;
  run_host_begin(h);
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  run_host_put(h, "ckpt-2.pt");
  uint64_t id = drain(h, 30);
  assert_int_equal(look(h, id, "ckpt-2.pt").count, 1);
}

static void one_that_was_over_long_ago_is_forgotten(void **state) {
  run_host *h = *state;
  run_drain_state stands;
  uint64_t first = drain(h, 1);
  for (int i = 0; i < 20; i++) {
    run_host_step(h, NULL);
    drain(h, 1);
  }
  assert_int_equal(run_drained(run_host_run(h), first, &stands, NULL, NULL), ERR_NOENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_RUN(with_nothing_to_save_it_is_over_at_once),
      WITH_HOST(what_only_rests_is_waited_for),
      WITH_HOST(what_has_not_rested_when_time_is_up_is_no_success),
      WITH_RUN(what_is_being_written_is_not_waited_for),
      WITH_RUN(what_was_given_up_is_told_as_not_sent),
      WITH_RUN(what_is_durable_already_is_told),
      WITH_RUN(it_is_over_when_all_that_was_complete_is_durable),
      WITH_RUN(when_time_is_up_it_names_the_newest_and_the_save_goes_on),
      WITH_RUN(a_newer_one_of_its_kind_will_do),
      WITH_RUN(nothing_that_would_have_been_saved_without_it_is_lost),
      WITH_RUN(with_no_time_at_all_nothing_is_lost_either),
      WITH_HOST(where_each_is_kept_each_is_saved),
      WITH_HOST(one_that_went_for_what_a_drain_alone_wanted_is_saved_when_that_is_put_back),
      WITH_RUN(what_came_too_late_before_is_named_by_each_drain),
      WITH_HOST(what_was_refused_since_another_one_ran_is_told_as_not_wanted),
      WITH_RUN(one_that_was_given_up_is_not_durable_by_what_is_written_in_its_place),
      WITH_RUN(it_keeps_no_end_of_a_job_waiting),
      WITH_RUN(so_many_at_once_are_enough),
      WITH_HOST(a_no_when_time_is_short_takes_no_later_yes_back),
      WITH_HOST(beside_a_newer_run_nothing_is_called_unwanted),
      WITH_HOST(a_rule_of_pace_holds_nothing_back),
      WITH_HOST(what_had_not_begun_when_time_was_up_is_held_back_again),
      WITH_HOST(a_no_of_the_policy_is_not_waited_for),
      WITH_RUN(of_two_each_has_its_own_time),
      WITH_RUN(it_uses_up_no_tries_while_the_store_is_away),
      WITH_HOST(the_pace_of_a_name_that_is_written_again_holds_nothing_back),
      WITH_RUN(what_is_removed_before_its_turn_is_told_as_gone),
      WITH_HOST(what_is_written_again_before_its_turn_is_waited_for_as_it_is_then),
      WITH_RUN(what_is_removed_for_a_newer_one_of_its_kind_is_waited_for_in_that),
      WITH_HOST(what_it_alone_had_queued_counts_once_among_those_that_are_not_wanted),
      WITH_HOST(what_was_written_where_the_tree_is_polled_is_seen_first),
      WITH_RUN(the_newest_that_is_late_is_the_one_that_the_status_is_about),
      WITH_RUN(one_that_was_over_long_ago_is_forgotten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
