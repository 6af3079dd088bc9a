/* What a run does with the answers of a policy, which is asked for real. */
#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

/* ---- sync ---- */

static void what_a_policy_skips_is_told_once_and_is_not_missing_at_the_end(void **state) {
  run_host *h = *state;
  run_host_begin_with(
      h, "return { api = 1, sync = function(e) return 'skip', 'not ' .. e.checkpoint.name end }");
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  assert_string_equal(run_host_reason(h, RUN_SKIPPED, "ckpt-1.pt"), "not ckpt-1.pt");
  assert_int_equal(run_result(run_host_run(h), "{\"loss\": 1}", NULL), 0);
  run_host_idle(h);
  assert_int_equal(run_host_count(h, RUN_SKIPPED, NULL), 1);
  run_status s = run_host_status(h);
  assert_int_equal(s.skipped, 1);
  assert_int_equal(s.pending, 0);
  assert_int_equal(s.newest_status, 0);
}

static void a_result_may_bring_back_the_newest_of_what_was_skipped(void **state) {
  run_host *h = *state;
  run_host_begin_with(
      h, "return { api = 1, sync = function(e)\n"
         "  return e.event == 'result' and e.result.good and 'sync' or 'skip', e.event end }");
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  run_host_save(h, "ckpt-2.pt", RUN_SKIPPED);
  assert_int_equal(run_result(run_host_run(h), "{\"good\": false}", NULL), 0);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "");
  assert_int_equal(run_result(run_host_run(h), "{\"good\": true}", NULL), 0);
  assert_int_equal(run_host_status(h).skipped, 1); /* it is wanted after all */
  run_host_until(h, RUN_COMMITTED, "ckpt-2.pt");
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt");
}

static void thresholds_count_from_the_last_save(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = when.iterations(2) }");
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED); /* nothing was ever saved: it is due */
  run_result(run_host_run(h), "{}", NULL);
  run_host_save(h, "ckpt-2.pt", RUN_SKIPPED);
  run_result(run_host_run(h), "{}", NULL);
  run_host_until(h, RUN_COMMITTED, "ckpt-2.pt");
  run_host_save(h, "ckpt-3.pt", RUN_SKIPPED);
}

static void what_is_not_ready_waits_for_the_files_or_for_the_end(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, ready = function(e)\n"
                         "  if e.event == 'end' then return true end\n"
                         "  return false, 'not yet' end }");
  run_host_put(h, "ckpt-1.pt");
  run_host_for(h, 0.3);
  assert_string_equal(run_host_story(h), "");
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
}

/* Guards: a run whose job had ended well waited for it until a signal came. */
static void what_is_never_ready_is_skipped_once_the_job_has_ended(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, ready = function() return false, 'never' end }");
  run_host_put(h, "ckpt-1.pt");
  run_host_for(h, 0.2);
  assert_int_equal(run_host_status(h).settling, 1);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_idle(h);
  assert_int_equal(run_host_count(h, RUN_SKIPPED, "ckpt-1.pt"), 1);
}

/* Guards: a run, or a sync, that did not end. */
static void what_is_never_ready_and_outdone_is_skipped_too(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, ready = function(e)\n"
                         "  return e.checkpoint.step ~= 1, 'not the first' end }");
  run_host_put(h, "ckpt-1.pt");
  run_host_for(h, 0.1);
  run_host_save(h, "ckpt-2.pt", RUN_COMMITTED);
  assert_int_equal(run_host_status(h).settling, 1);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_idle(h);
  assert_int_equal(run_host_count(h, RUN_SKIPPED, "ckpt-1.pt"), 1);
}

/* Guards: only complete ones were asked about again; of an older file, which is saved if it is sound, the
 * run waited for news without end. */
static void what_is_to_be_sound_and_is_not_ready_waits_for_the_end_too(void **state) {
  static const char head[] = "{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
  const uint64_t length = sizeof head - 1;
  run_host *h = *state;
  run_prepared prepared;
  FILE *f = fopen(run_host_dir(h, "model-step=1.safetensors"), "w");
  assert_non_null(f);
  fwrite(&length, sizeof length, 1, f);
  fwrite(head, sizeof head, 1, f); /* its end is the byte of data */
  fclose(f);
  run_host_policy(h, "return { api = 1, ready = function(e)\n"
                     "  if e.event == 'end' then return true end\n"
                     "  return false, 'not yet' end }");
  assert_int_equal(run_host_open(h, NULL), 0);
  assert_int_equal(run_prepare(run_host_run(h), RUN_NEVER, NULL, &prepared, NULL), 0);
  assert_int_equal(run_start(run_host_run(h), NULL), 0);
  run_host_for(h, 0.3);
  assert_int_equal(run_host_status(h).settling, 1);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_until(h, RUN_COMMITTED, "model-step=1.safetensors");
}

static void no_policy_waives_a_structural_check(void **state) {
  run_host *h = *state;
  run_host_policy(h, "return { api = 1, sync = function() return 'sync' end }");
  write_file(run_host_dir(h, "ckpt-1.pt"), "PK this is no zip"); /* only ever seen by a listing */
  run_host_begin(h);
  run_host_for(h, 0.2);
  run_host_idle(h);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, NULL), 0);
}

static void without_a_queue_only_one_save_runs_or_waits(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, queue = 'skip' }");
  run_host_hold_save(h, "ckpt-1.pt", "ckpt-1.pt");
  run_host_save(h, "best.pt", RUN_DROPPED);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
}

/* ---- preemption ---- */

/* Leaves the save of ckpt-1.pt held, and ckpt-2.pt let go. */
static void let_go_when_time_is_short(run_host *h) {
  run_host_begin_with(h, "return { api = 1, queue = 'all',\n"
                         "  on_preempt = function(e) assert(e.grace == 7) return 'none' end }");
  run_host_hold_save(h, "ckpt-1.pt", "ckpt-1.pt");
  run_host_put(h, "ckpt-2.pt");
  run_host_for(h, 0.1);
  assert_int_equal(run_preempt(run_host_run(h), 7, NULL), 0);
  assert_int_equal(run_host_count(h, RUN_DROPPED, "ckpt-2.pt"), 1);
}

static void when_time_is_short_the_policy_says_what_is_still_saved(void **state) {
  run_host *h = *state;
  let_go_when_time_is_short(h);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt"); /* it was under way */
  run_host_save(h, "ckpt-3.pt", RUN_SKIPPED);
  assert_int_equal(run_host_status(h).fallbacks, 0);
}

static void when_time_is_short_a_skipped_newest_is_asked_about_again(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = when.at_most_every '1h' }");
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  run_host_save(h, "ckpt-2.pt", RUN_SKIPPED);
  assert_int_equal(run_preempt(run_host_run(h), 10, NULL), 0);
  run_host_until(h, RUN_COMMITTED, "ckpt-2.pt");
}

/* ---- errors ---- */

static void a_policy_may_give_up_what_the_class_would_try_again(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, on_error = function(e)\n"
                         "  return 'skip', e.error.code .. e.error.class end }");
  run_host_fail_store(h, EIO);
  run_host_save(h, "ckpt-1.pt", RUN_FAILED);
  assert_int_equal(run_host_count(h, RUN_RETRYING, NULL), 0);
}

static void a_policy_may_try_a_permanent_error_again_but_not_for_ever(void **state) {
  run_host *h = *state;
  run_host_options(h)->tries = 3;
  run_host_begin_with(h, "return { api = 1, on_error = function() return 'retry', 0 end }");
  run_host_fail_store(h, ENOSPC);
  run_host_save(h, "ckpt-1.pt", RUN_FAILED);
  assert_int_equal(run_host_count(h, RUN_RETRYING, "ckpt-1.pt"), 2);
}

static void after_an_abort_nothing_is_saved_any_more(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, on_error = function() return 'abort' end }");
  run_host_fail_store(h, EIO);
  run_host_save(h, "ckpt-1.pt", RUN_FAILED);
  run_host_fail_store(h, 0);
  run_host_save(h, "ckpt-2.pt", RUN_SKIPPED);
}

/* ---- memory ---- */

static void what_a_policy_remembers_goes_with_the_commit_and_comes_back(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function(e, m) m.n = (m.n or 0) + 1\n"
                         "  return 'sync', 'number ' .. m.n end }");
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  assert_true(path_exists(run_host_store(h, ".ckpt/memory")));
  run_host_close(h);
  run_host_begin(h);
  run_host_save(h, "ckpt-2.pt", RUN_COMMITTED);
  const runlog_state *log = runlog_view(run_host_run(h)->groups[0]->group.log);
  assert_string_equal(log->commits[log->commit_count - 1].reason, "number 2");
}

static void what_is_remembered_of_the_last_commit_comes_back_too(void **state) {
  run_host *h = *state;
  run_host_begin_with(
      h, "return { api = 1, on_committed = function(e, m) m.last = e.checkpoint.name end,\n"
         "  sync = function(e, m) return 'sync', 'after ' .. tostring(m.last) end }");
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  run_host_close(h);
  run_host_begin(h);
  run_host_save(h, "ckpt-2.pt", RUN_COMMITTED);
  const runlog_state *log = runlog_view(run_host_run(h)->groups[0]->group.log);
  assert_string_equal(log->commits[log->commit_count - 1].reason, "after ckpt-1.pt");
}

/* Else what it protects would go with the first pass, and what it was, with the first save. */
static void by_a_memory_that_cannot_be_read_nothing_is_dropped_and_it_stays(void **state) {
  static const char broken[] = "{\"n\": ";
  run_host *h = *state;
  char found[sizeof broken + 1] = {0};
  mkdir(run_host_store(h, ".ckpt"), 0755);
  write_file(run_host_store(h, ".ckpt/memory"), broken);
  run_host_begin_with(h, "return { api = 1,\n"
                         "  sync = function(e, m) m.n = (m.n or 0) + 1\n"
                         "    return 'sync', 'number ' .. m.n end,\n"
                         "  keep = function(list, m) return { list[#list] } end,\n"
                         "  keep_local = function(list, m) return { list[#list] } end }");
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  run_host_save(h, "ckpt-2.pt", RUN_COMMITTED);
  run_host_for(h, 0.3);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, NULL), 0);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt");
  assert_int_equal(run_host_status(h).fallbacks, 0);
  assert_true(path_exists(run_host_dir(h, "ckpt-1.pt")));
  run_host_close(h);
  FILE *f = fopen(run_host_store(h, ".ckpt/memory"), "r");
  assert_non_null(f);
  assert_int_equal(fread(found, 1, sizeof found, f), sizeof broken - 1);
  fclose(f);
  assert_string_equal(found, broken);
  assert_true(run_host_logged(h, "remove .ckpt/memory"));
}

/* ---- what it said holds ---- */

static void what_is_let_go_without_a_queue_is_told_once_and_stays_so(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, queue = 'skip' }");
  run_host_hold_save(h, "ckpt-1.pt", "ckpt-1.pt");
  run_host_save(h, "best.pt", RUN_DROPPED);
  run_host_for(h, 0.2);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  run_host_for(h, 0.3);
  assert_int_equal(run_host_count(h, RUN_DROPPED, "best.pt"), 1);
}

static void what_is_let_go_when_time_is_short_does_not_come_back(void **state) {
  run_host *h = *state;
  let_go_when_time_is_short(h);
  run_host_for(h, 0.2);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  run_host_for(h, 0.3);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt");
}

static void after_an_abort_what_waits_is_let_go(void **state) {
  run_host *h = *state;
  run_host_begin_with(h,
                      "return { api = 1, queue='all', on_error = function() return 'abort' end }");
  run_host_hold_save(h, "ckpt-1.pt", "ckpt-1.pt");
  run_host_put(h, "ckpt-2.pt");
  run_host_for(h, 0.1);
  run_host_fail_store(h, EIO);
  run_host_hold(h, false);
  run_host_until(h, RUN_FAILED, "ckpt-1.pt");
  run_host_fail_store(h, 0);
  run_host_for(h, 0.4);
  assert_string_equal(run_host_commits(h), "");
  assert_int_equal(run_host_count(h, RUN_FAILED, NULL), 1);
  assert_int_equal(run_host_count(h, RUN_DROPPED, "ckpt-2.pt"), 1);
  assert_int_equal(run_host_status(h).pending, 0);
}

static void a_save_that_fails_loses_no_memory(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function(e, m) m.n = (m.n or 0) + 1\n"
                         "  return 'sync', 'number ' .. m.n end }");
  run_host_fail_store(h, EIO);
  run_host_save(h, "ckpt-1.pt", RUN_RETRYING);
  run_host_fail_store(h, 0);
  run_host_skip(h, 5);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  assert_true(path_exists(run_host_store(h, ".ckpt/memory")));
}

/* A later try goes on with what the first one has sent. */
static void what_one_is_saved_without_is_asked_once_however_often_its_save_fails(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, exclude = function(e, m) m.n = (m.n or 0) + 1\n"
                         "  m.event = e.event end }");
  run_host_fail_store(h, EIO);
  run_host_save(h, "ckpt-1.pt", RUN_RETRYING);
  run_host_fail_store(h, 0);
  run_host_skip(h, 5);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  const char *memory = run_host_run(h)->groups[0]->memory;
  assert_non_null(memory);
  if (!strstr(memory, "\"n\":1") || !strstr(memory, "\"event\":\"complete\""))
    fail_msg("%s", memory);
  run_host_save(h, "ckpt-2.pt", RUN_COMMITTED);
  memory = run_host_run(h)->groups[0]->memory;
  if (!strstr(memory, "\"n\":2")) fail_msg("%s", memory);
}

static void a_memory_that_was_emptied_stays_empty(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, sync = function(e, m) local n = m.n or 0\n"
                         "  if m.n then m.n = nil else m.n = 1 end\n"
                         "  return 'sync', 'had ' .. n end }");
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  run_host_save(h, "ckpt-2.pt", RUN_COMMITTED);
  run_host_close(h);
  run_host_begin(h);
  run_host_save(h, "ckpt-3.pt", RUN_COMMITTED);
  const runlog_state *log = runlog_view(run_host_run(h)->groups[0]->group.log);
  assert_string_equal(log->commits[log->commit_count - 1].reason, "had 0");
}

/* ---- when it breaks ---- */

static void a_policy_that_fails_costs_a_warning_and_everything_is_saved(void **state) {
  static const char *const broken[] = {"error 'no'", "while true do end", "return 42",
                                       "local t = {} while true do t[#t + 1] = {} end"};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    run_host *h = run_host_new(NULL);
    char text[200];
    snprintf(text, sizeof text, "return { api = 1, sync = function() %s end }", broken[i]);
    run_host_begin_with(h, text);
    run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
    assert_int_not_equal(run_host_status(h).fallbacks, 0);
    assert_true(run_host_logged(h, "sync"));
    run_host_free(h);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(what_a_policy_skips_is_told_once_and_is_not_missing_at_the_end),
      WITH_HOST(a_result_may_bring_back_the_newest_of_what_was_skipped),
      WITH_HOST(thresholds_count_from_the_last_save),
      WITH_HOST(what_is_not_ready_waits_for_the_files_or_for_the_end),
      WITH_HOST(what_is_never_ready_is_skipped_once_the_job_has_ended),
      WITH_HOST(what_is_never_ready_and_outdone_is_skipped_too),
      WITH_HOST(what_is_to_be_sound_and_is_not_ready_waits_for_the_end_too),
      WITH_HOST(no_policy_waives_a_structural_check),
      WITH_HOST(without_a_queue_only_one_save_runs_or_waits),
      WITH_HOST(when_time_is_short_the_policy_says_what_is_still_saved),
      WITH_HOST(when_time_is_short_a_skipped_newest_is_asked_about_again),
      WITH_HOST(a_policy_may_give_up_what_the_class_would_try_again),
      WITH_HOST(a_policy_may_try_a_permanent_error_again_but_not_for_ever),
      WITH_HOST(after_an_abort_nothing_is_saved_any_more),
      WITH_HOST(what_a_policy_remembers_goes_with_the_commit_and_comes_back),
      WITH_HOST(what_is_remembered_of_the_last_commit_comes_back_too),
      WITH_HOST(by_a_memory_that_cannot_be_read_nothing_is_dropped_and_it_stays),
      WITH_HOST(what_is_let_go_without_a_queue_is_told_once_and_stays_so),
      WITH_HOST(what_is_let_go_when_time_is_short_does_not_come_back),
      WITH_HOST(after_an_abort_what_waits_is_let_go),
      WITH_HOST(a_save_that_fails_loses_no_memory),
      WITH_HOST(what_one_is_saved_without_is_asked_once_however_often_its_save_fails),
      WITH_HOST(a_memory_that_was_emptied_stays_empty),
      cmocka_unit_test(a_policy_that_fails_costs_a_warning_and_everything_is_saved),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
