#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/run_state.h"
#include "run_marks.h"
#include "tmpdir.h"

/* What a job does that loads its checkpoint. */
static void read_resumed(run_host *h) {
  size_t len;
  char *text = read_file(run_host_run(h)->resume, &len);
  assert_non_null(text);
  free(text);
}

/* A start from what is chosen, and its end. */
static void start(run_host *h, const char *from, bool clean, bool outside) {
  run_prepared p = run_host_begin(h);
  must_resume_from(h, &p, from);
  const run_end end = {.clean = clean, .outside = outside};
  read_resumed(h);
  assert_int_equal(run_start_over(run_host_run(h), &end, NULL), 0);
  assert_int_equal(run_child_exit(run_host_run(h), clean, NULL), 0);
  run_host_close(h);
}

static void fill(run_host *h) {
  commit_file(h, "ckpt-1.pt", "one");
  commit_file(h, "ckpt-2.pt", "two");
}

static void after_three_failed_starts_the_one_before_is_taken(void **state) {
  run_host *h = *state;
  fill(h);
  for (int i = 0; i < 3; i++) start(h, "ckpt-2.pt", false, false);
  assert_false(commit_is_bad(h, "ckpt-2.pt"));
  start(h, "ckpt-1.pt", false, false);
  assert_true(commit_is_bad(h, "ckpt-2.pt"));
  assert_false(path_exists(run_host_dir(h, "ckpt-2.pt")));
}

static void the_number_is_the_hosts_to_choose(void **state) {
  run_host *h = *state;
  fill(h);
  run_host_options(h)->bad_after = 1;
  start(h, "ckpt-2.pt", false, false);
  start(h, "ckpt-1.pt", false, false);
}

static void never_is_never(void **state) {
  run_host *h = *state;
  fill(h);
  run_host_options(h)->bad_after = UINT32_MAX;
  for (int i = 0; i < 6; i++) start(h, "ckpt-2.pt", false, false);
}

static void an_end_from_outside_is_no_failure(void **state) {
  run_host *h = *state;
  fill(h);
  for (int i = 0; i < 6; i++) start(h, "ckpt-2.pt", false, true);
}

static void one_good_end_forgets_the_bad_ones(void **state) {
  run_host *h = *state;
  fill(h);
  for (int i = 0; i < 2; i++) start(h, "ckpt-2.pt", false, false);
  start(h, "ckpt-2.pt", true, false);
  for (int i = 0; i < 2; i++) start(h, "ckpt-2.pt", false, false);
  start(h, "ckpt-2.pt", true, false);
}

static void what_saved_something_before_it_failed_is_no_failed_start(void **state) {
  run_host *h = *state;
  fill(h);
  for (int i = 0; i < 2; i++) start(h, "ckpt-2.pt", false, false);
  run_prepared p = run_host_begin(h);
  must_resume_from(h, &p, "ckpt-2.pt");
  run_host_write(h, "ckpt-3.pt", "three", RUN_COMMITTED);
  read_resumed(h);
  assert_int_equal(run_start_over(run_host_run(h), &(run_end){0}, NULL), 0);
  run_host_close(h);
  /* Should the run go back to it for another reason, it begins with nothing against it. */
  mark_commit(h, "ckpt-3.pt", true);
  start(h, "ckpt-2.pt", false, false);
  assert_false(commit_is_bad(h, "ckpt-2.pt"));
}

static void the_last_one_is_never_given_up(void **state) {
  run_host *h = *state;
  commit_file(h, "ckpt-1.pt", "one");
  for (int i = 0; i < 6; i++) start(h, "ckpt-1.pt", false, false);
  assert_false(commit_is_bad(h, "ckpt-1.pt"));
  assert_true(run_host_logged(h, "there is no older one"));
}

static void move_in_top(run_host *h, const char *from, const char *to) {
  const char *top = run_host_top(h);
  assert_int_equal(rename(tmpdir_path(top, from), tmpdir_path(top, to)), 0);
}

/* Both stores have the same numbers for the same names: what failed from the one says nothing of
 * the other. */
static void what_failed_from_one_target_is_not_held_against_another(void **state) {
  run_host *h = *state;
  fill(h);
  move_in_top(h, "store", "first");
  assert_int_equal(unlink(run_host_dir(h, "ckpt-1.pt")), 0);
  assert_int_equal(unlink(run_host_dir(h, "ckpt-2.pt")), 0);
  fill(h);
  for (int i = 0; i < 3; i++) start(h, "ckpt-2.pt", false, false);
  move_in_top(h, "store", "second");
  move_in_top(h, "first", "store");
  start(h, "ckpt-2.pt", false, false);
  assert_false(commit_is_bad(h, "ckpt-2.pt"));
}

/* The same, but the job ends before it opens anything of the checkpoint. */
static void start_blind(run_host *h, const char *from) {
  run_prepared p = run_host_begin(h);
  must_resume_from(h, &p, from);
  run_host_for(h, 0.1);
  const run_end end = {.lines = "Traceback\nAssertionError: latest says global_step3"};
  assert_int_equal(run_start_over(run_host_run(h), &end, NULL), 0);
  assert_int_equal(run_child_exit(run_host_run(h), false, NULL), 0);
  run_host_close(h);
}

static void a_start_that_never_opened_it_is_not_held_against_it(void **state) {
  run_host *h = *state;
  fill(h);
  for (int i = 0; i < 6; i++) start_blind(h, "ckpt-2.pt");
  assert_false(commit_is_bad(h, "ckpt-2.pt"));
  assert_true(run_host_logged(h, "never opened a file of"));
  assert_true(run_host_logged(h, "it said: AssertionError: latest says global_step3"));
  assert_false(path_exists(run_host_state(h, "starts.json")));
}

static void after_a_restore_too_it_is_seen_who_opens_it(void **state) {
  run_host *h = *state;
  fill(h);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(unlink(run_host_dir(h, "ckpt-2.pt")), 0);
    start_blind(h, "ckpt-2.pt");
  }
  assert_false(commit_is_bad(h, "ckpt-2.pt"));
}

static const runlog_commit *commit_named(run_host *h, const char *unit) {
  const runlog_state *log = runlog_view(run_host_run(h)->groups[0]->group.log);
  for (size_t i = 0; i < log->commit_count; i++)
    if (strcmp(log->commits[i].unit, unit) == 0) return &log->commits[i];
  return NULL;
}

static void the_last_lines_are_kept_with_the_mark(void **state) {
  run_host *h = *state;
  fill(h);
  for (int i = 0; i < 3; i++) {
    run_host_begin(h);
    read_resumed(h);
    const run_end end = {.lines = "Traceback:\n  a \x1b[31mline\nRuntimeError: size mismatch"};
    assert_int_equal(run_start_over(run_host_run(h), &end, NULL), 0);
    run_host_close(h);
  }
  run_host_begin(h);
  const runlog_commit *c = commit_named(h, "ckpt-2.pt");
  assert_true(c->bad);
  assert_string_equal(c->bad_reason, "3 starts in a row from it failed; the job said last: "
                                     "RuntimeError: size mismatch");
  assert_non_null(c->bad_lines);
  assert_non_null(strstr(c->bad_lines, "Traceback:\n"));
  assert_non_null(strstr(c->bad_lines, "\nRuntimeError: size mismatch"));
  assert_null(strchr(c->bad_lines, '\x1b'));
}

static const char *suspect(run_host *h, const char *unit) {
  const run_group *g = run_host_run(h)->groups[0];
  return run_starts_suspect(run_host_run(h), g, commit_named(h, unit)->n);
}

static void before_it_is_bad_it_is_suspect(void **state) {
  run_host *h = *state;
  fill(h);
  run_host_begin(h);
  assert_null(suspect(h, "ckpt-2.pt"));
  run_host_close(h);
  start(h, "ckpt-2.pt", false, false);
  assert_true(run_host_logged(h, "1 of 3 times: it is suspect"));
  run_host_begin(h);
  assert_non_null(suspect(h, "ckpt-2.pt"));
  assert_null(suspect(h, "ckpt-1.pt"));
}

static void a_nan_after_a_restore_makes_it_suspect_and_never_bad(void **state) {
  run_host *h = *state;
  fill(h);
  for (int i = 0; i < 4; i++) {
    run_prepared p = run_host_begin(h);
    must_resume_from(h, &p, "ckpt-2.pt");
    assert_int_equal(run_result(run_host_run(h), "{\"step\": 3, \"loss\": NaN}", NULL), 0);
    assert_string_equal(suspect(h, "ckpt-2.pt"), "loss was NaN after it was restored");
    const run_end end = {.clean = i % 2 == 0, .outside = true};
    assert_int_equal(run_start_over(run_host_run(h), &end, NULL), 0);
    run_host_close(h);
  }
  run_host_begin(h);
  assert_string_equal(suspect(h, "ckpt-2.pt"), "loss was NaN after it was restored");
  assert_false(commit_named(h, "ckpt-2.pt")->bad);
}

static bool remembers(run_host *h, const char *text) {
  const char *memory = run_host_run(h)->groups[0]->memory;
  return memory && strstr(memory, text);
}

static void a_policy_is_told_what_is_suspect_in_its_lists_and_in_each_event(void **state) {
  run_host *h = *state;
  run_host_policy(h, "return { api = 1,\n"
                     "  sync = function(e) return 'sync', e.suspect or 'fine' end,\n"
                     "  restore = function(list)\n"
                     "    if list[#list].suspect then return list, 'it is suspect' end\n"
                     "    return {}\n"
                     "  end,\n"
                     "  keep = function(list, memory)\n"
                     "    memory.seen = ''\n"
                     "    for _, c in ipairs(list) do\n"
                     "      if c.suspect then memory.seen = c.name .. ': ' .. c.suspect end\n"
                     "    end\n"
                     "    return list\n"
                     "  end }");
  fill(h);
  remove(run_host_dir(h, "ckpt-1.pt"));
  start(h, "ckpt-2.pt", false, false);
  assert_false(path_exists(run_host_dir(h, "ckpt-1.pt")));
  run_host_begin(h);
  assert_true(path_exists(run_host_dir(h, "ckpt-1.pt"))); /* it is suspect by now */
  run_host_write(h, "ckpt-3.pt", "three", RUN_COMMITTED);
  run_host_idle(h);
  static const char failed[] = "the job failed after it was restored, and nothing was saved since";
  assert_string_equal(commit_named(h, "ckpt-3.pt")->reason, failed);
  assert_true(remembers(h, "ckpt-2.pt: the job failed"));
  assert_int_equal(run_result(run_host_run(h), "{\"step\": 3, \"loss\": NaN}", NULL), 0);
  run_host_write(h, "ckpt-4.pt", "four", RUN_COMMITTED);
  run_host_idle(h);
  assert_string_equal(commit_named(h, "ckpt-4.pt")->reason, "loss was NaN after it was restored");
  assert_true(remembers(h, "ckpt-2.pt: loss was NaN"));
  const run_end end = {.clean = true};
  assert_int_equal(run_start_over(run_host_run(h), &end, NULL), 0);
  assert_string_equal(suspect(h, "ckpt-2.pt"), "loss was NaN after it was restored");
  assert_null(suspect(h, "ckpt-4.pt"));
}

/* Guards: a job that diverged and was preempted in turns with its failures was never counted out. */
static void a_nan_takes_no_failure_back(void **state) {
  run_host *h = *state;
  fill(h);
  start(h, "ckpt-2.pt", false, false);
  start(h, "ckpt-2.pt", false, false);
  run_prepared p = run_host_begin(h);
  must_resume_from(h, &p, "ckpt-2.pt");
  assert_int_equal(run_result(run_host_run(h), "{\"loss\": NaN}", NULL), 0);
  assert_int_equal(run_start_over(run_host_run(h), &(run_end){.outside = true}, NULL), 0);
  run_host_close(h);
  start(h, "ckpt-2.pt", false, false);
  start(h, "ckpt-1.pt", false, false);
  assert_true(commit_is_bad(h, "ckpt-2.pt"));
}

static void a_torn_record_is_no_reason_not_to_start(void **state) {
  run_host *h = *state;
  fill(h);
  write_file(run_host_state(h, "starts.json"), "{\"format\":1,");
  start(h, "ckpt-2.pt", false, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(after_three_failed_starts_the_one_before_is_taken),
      WITH_HOST(the_number_is_the_hosts_to_choose),
      WITH_HOST(never_is_never),
      WITH_HOST(an_end_from_outside_is_no_failure),
      WITH_HOST(one_good_end_forgets_the_bad_ones),
      WITH_HOST(what_saved_something_before_it_failed_is_no_failed_start),
      WITH_HOST(the_last_one_is_never_given_up),
      WITH_HOST(what_failed_from_one_target_is_not_held_against_another),
      WITH_HOST(a_start_that_never_opened_it_is_not_held_against_it),
      WITH_HOST(after_a_restore_too_it_is_seen_who_opens_it),
      WITH_HOST(the_last_lines_are_kept_with_the_mark),
      WITH_HOST(before_it_is_bad_it_is_suspect),
      WITH_HOST(a_nan_after_a_restore_makes_it_suspect_and_never_bad),
      WITH_HOST(a_policy_is_told_what_is_suspect_in_its_lists_and_in_each_event),
      WITH_HOST(a_nan_takes_no_failure_back),
      WITH_HOST(a_torn_record_is_no_reason_not_to_start),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
