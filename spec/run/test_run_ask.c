/* When a run asks its policies about a checkpoint: once for each event, and when it is time. The
 * policies are asked for real, the clock is the test's. */
#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

/* Makes a directory that is renamed into place, with this as its m.json. */
static void save_dir(run_host *h, const char *name, const char *metrics) {
  char tmp[600], file[640];
  snprintf(tmp, sizeof tmp, "%s.tmp", run_host_dir(h, name));
  snprintf(file, sizeof file, "%s/m.json", tmp);
  make_dir(tmp);
  write_file(file, metrics);
  assert_int_equal(rename(tmp, run_host_dir(h, name)), 0);
}

/* ---- time ---- */

/* Guards: a checkpoint that was skipped for the time was saved at the end of the job, or never. */
static void the_run_wakes_up_when_a_rule_of_time_holds(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = when.at_most_every '1s' }");
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  run_host_save(h, "ckpt-2.pt", RUN_SKIPPED);
  run_host_step(h, NULL);
  assert_in_range(run_host_due(h), 200000000, 1002000000);
  run_host_until(h, RUN_COMMITTED, "ckpt-2.pt"); /* nothing was told to it meanwhile */
  assert_int_equal(run_host_count(h, RUN_SKIPPED, NULL), 1);
}

static void a_function_says_when_to_ask_it_again(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function(e)\n"
                         "  if e.event == 'time' then return true, 'it is time' end\n"
                         "  return false, 'not yet', '40s' end }");
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  run_host_step(h, NULL);
  assert_in_range(run_host_due(h), 5000000000, 40001000000);
  run_host_skip(h, 41);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
}

static void what_is_not_ready_is_asked_when_it_said(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, ready = function(e)\n"
                         "  if e.event == 'time' then return true end\n"
                         "  return false, 'not yet', 20 end }");
  run_host_put(h, "ckpt-1.pt");
  run_host_for(h, 0.1);
  run_host_skip(h, 21);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
}

static void a_function_that_wants_to_be_asked_at_once_does_not_keep_the_run_busy(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function(e) return false, 'never', 0 end }");
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  run_host_step(h, NULL);
  assert_in_range(run_host_due(h), 500000000, 1001000000);
}

/* Only the newest is of use: the older one has no timer of its own. */
static void by_time_the_newest_alone_is_asked(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function(e)\n"
                         "  if e.event == 'time' then return true end\n"
                         "  return false, 'not yet', '40s' end }");
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  run_host_save(h, "ckpt-2.pt", RUN_SKIPPED);
  run_host_skip(h, 41);
  run_host_until(h, RUN_COMMITTED, "ckpt-2.pt");
  run_host_skip(h, 100);
  run_host_for(h, 0.1);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt");
}

/* ---- how often ---- */

static void report(run_host *h, const char *json) {
  run_host_for(h, 0.02);
  assert_int_equal(run_result(run_host_run(h), json, NULL), 0);
  run_host_idle(h);
}

/* Guards: it was counted anew with each result, so that "each third" saved others. */
static void what_a_function_counts_is_counted_once(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, queue = 'all', sync = function(e, memory)\n"
                         "  memory.seen = (memory.seen or 0) + 1\n"
                         "  return memory.seen % 3 == 0, 'this is ' .. memory.seen end }");
  for (int i = 1; i <= 7; i++) {
    char name[32];
    snprintf(name, sizeof name, "ckpt-%d.pt", i);
    run_host_save(h, name, i % 3 == 0 ? RUN_COMMITTED : RUN_SKIPPED);
    report(h, "{\"loss\": 1}");
    report(h, "{\"loss\": 2}");
  }
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-3.pt ckpt-6.pt");
  assert_string_equal(run_host_reason(h, RUN_SKIPPED, "ckpt-7.pt"), "this is 7");
  assert_int_equal(run_host_count(h, RUN_SKIPPED, NULL), 5);
}

/* ---- over a restart ---- */

static const char each_third[] = "return { api = 1, queue = 'all', keep = keep.last(5),\n"
                                 "sync = function(e, memory)\n"
                                 "  memory.seen = (memory.seen or 0) + 1\n"
                                 "  return memory.seen % 3 == 0, 'this is ' .. memory.seen end }";

/* Four of them, of which the third is saved; then two more, in another run. */
static void save_four(run_host *h) {
  run_host_begin_with(h, each_third);
  for (int i = 1; i <= 4; i++) {
    char name[32];
    snprintf(name, sizeof name, "ckpt-%d.pt", i);
    run_host_save(h, name, i == 3 ? RUN_COMMITTED : RUN_SKIPPED);
  }
}

static void go_on(run_host *h) {
  run_host_begin(h);
  run_host_for(h, 0.2);
  run_host_idle(h);
  run_host_save(h, "ckpt-5.pt", RUN_SKIPPED);
  assert_string_equal(run_host_reason(h, RUN_SKIPPED, "ckpt-5.pt"), "this is 5");
  run_host_save(h, "ckpt-6.pt", RUN_COMMITTED);
  assert_string_equal(run_host_commits(h), "ckpt-3.pt ckpt-6.pt");
}

/* Guards: the next run asked about all that stands there, and counted it again. */
static void what_was_counted_is_not_counted_again_by_the_next_run(void **state) {
  run_host *h = *state;
  save_four(h);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_idle(h);
  run_host_close(h);
  go_on(h);
}

/* What it remembers is then as it was with the last commit. */
static void nor_by_one_that_follows_a_kill(void **state) {
  run_host *h = *state;
  char command[1500];
  const char *memory = run_host_store(h, ".ckpt/memory");
  save_four(h);
  snprintf(command, sizeof command, "cp '%s' '%s/kept'", memory, run_host_top(h));
  assert_int_equal(system(command), 0);
  run_host_close(h);
  snprintf(command, sizeof command, "cp '%s/kept' '%s'", run_host_top(h), memory);
  assert_int_equal(system(command), 0);
  go_on(h);
}

/* A hook's notes are kept, as they are not made again. */
static void what_a_hook_has_noted_at_the_end_is_kept(void **state) {
  run_host *h = *state;
  run_host_options(h)->tries = 1;
  run_host_begin_with(
      h, "return { api = 1, on_failed = function(e, memory) memory.failed = true end,\n"
         "  sync = function(e, memory)\n"
         "    return not memory.failed, 'one has failed' end }");
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  run_host_fail_store(h, ENOSPC);
  run_host_save(h, "ckpt-2.pt", RUN_FAILED);
  run_host_fail_store(h, 0);
  run_host_close(h);
  run_host_begin(h);
  run_host_save(h, "ckpt-3.pt", RUN_SKIPPED);
  assert_string_equal(run_host_reason(h, RUN_SKIPPED, "ckpt-3.pt"), "one has failed");
}

/* The rules' own memory goes on: what they said yes to is what the next one must be better than. */
static void what_a_rule_says_yes_to_later_it_remembers(void **state) {
  run_host *h = *state;
  run_host_begin_with(
      h, "return { api = 1, metrics = from.json('m.json'), sync = all {\n"
         "  when.metric_improved('loss', 'min'), function(e) return e.event == 'result' end } }");
  save_dir(h, "checkpoint-1", "{\"loss\": 2}");
  run_host_until(h, RUN_SKIPPED, "checkpoint-1");
  assert_int_equal(run_result(run_host_run(h), "{}", NULL), 0);
  run_host_until(h, RUN_COMMITTED, "checkpoint-1");
  run_host_for(h, 0.02);
  save_dir(h, "checkpoint-2", "{\"loss\": 3}");
  run_host_until(h, RUN_SKIPPED, "checkpoint-2");
  report(h, "{}");
  run_host_for(h, 0.1);
  assert_string_equal(run_host_commits(h), "checkpoint-1");
}

/* A save that is put back is no event: its policy need not say yes a second time. */
static void what_was_put_back_is_not_asked_again(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function(e, memory)\n"
                         "  memory.n = (memory.n or 0) + 1\n"
                         "  return e.event == 'result', 'asked ' .. memory.n end }");
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  run_host_hold(h, true);
  assert_int_equal(run_result(run_host_run(h), "{}", NULL), 0);
  run_host_held(h);
  run_unit_find(run_host_run(h), "ckpt-1.pt")->stamp++;
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(the_run_wakes_up_when_a_rule_of_time_holds),
      WITH_HOST(a_function_says_when_to_ask_it_again),
      WITH_HOST(what_is_not_ready_is_asked_when_it_said),
      WITH_HOST(a_function_that_wants_to_be_asked_at_once_does_not_keep_the_run_busy),
      WITH_HOST(by_time_the_newest_alone_is_asked),
      WITH_HOST(what_a_function_counts_is_counted_once),
      WITH_HOST(what_was_counted_is_not_counted_again_by_the_next_run),
      WITH_HOST(nor_by_one_that_follows_a_kill),
      WITH_HOST(what_a_hook_has_noted_at_the_end_is_kept),
      WITH_HOST(what_a_rule_says_yes_to_later_it_remembers),
      WITH_HOST(what_was_put_back_is_not_asked_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
