/* What the queue lets go, and what not: what `keep` wants has its turn while there is time; at the end
 * all is saved that fits, and what is not is named. */
#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

/* ckpt-1 is committed, so that it is known how long a save takes; ckpt-2 is held, and `names` wait. */
static void hold_and_wait(run_host *h, const char *const *names) {
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host_hold_save(h, "ckpt-2.pt", "two");
  for (; *names; names++) run_host_let_wait(h, *names);
}

static void release(run_host *h) {
  run_host_hold(h, false);
  run_host_idle(h);
}

static const char *const three_four[] = {"ckpt-3.pt", "ckpt-4.pt", NULL};

/* ---- the end ---- */

static void what_fits_before_the_deadline_is_saved_the_oldest_first(void **state) {
  run_host *h = *state;
  static const char *const names[] = {"best.pt", "last.pt", NULL};
  hold_and_wait(h, names);
  assert_int_equal(run_preempt(run_host_run(h), 600, NULL), 0);
  release(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt best.pt last.pt");
}

/* Guards: of one kind the newest alone was saved, however much time there was. */
static void what_was_let_go_and_fits_is_saved_after_all(void **state) {
  run_host *h = *state;
  hold_and_wait(h, three_four);
  assert_int_equal(run_host_status(h).dropped, 1);
  assert_int_equal(run_preempt(run_host_run(h), 600, NULL), 0);
  run_host_for(h, 0.05);
  assert_int_equal(run_host_status(h).dropped, 0);
  release(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt ckpt-3.pt ckpt-4.pt");
}

static void what_does_not_fit_is_named_and_the_newest_is_saved(void **state) {
  run_host *h = *state;
  run_host_policy(h, "return { api = 1, queue = 'all' }");
  run_host_begin(h);
  hold_and_wait(h, three_four);
  assert_int_equal(run_host_status(h).dropped, 0);
  assert_int_equal(run_preempt(run_host_run(h), 0.001, NULL), 0);
  assert_true(run_host_names(h, "ckpt-3.pt", RUN_NOT_SAVED));
  release(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt ckpt-4.pt");
  assert_true(run_host_names(h, "ckpt-3.pt", RUN_NOT_SAVED));
  assert_false(run_host_names(h, "ckpt-2.pt", RUN_NOT_SAVED));
  assert_int_equal(run_host_status(h).standing, STANDING_DURABLE);
}

static void while_nobody_knows_how_long_a_save_takes_the_newest_is_first(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "ckpt-2.pt", "two");
  run_host_let_wait(h, "ckpt-3.pt");
  run_host_let_wait(h, "ckpt-4.pt");
  assert_int_equal(run_preempt(run_host_run(h), 600, NULL), 0);
  assert_true(run_host_count(h, RUN_DROPPED, "ckpt-3.pt") > 0);
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-4.pt");
}

/* A policy that says "newest" means it. */
static void the_policys_word_is_not_overruled_by_time(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, queue = 'all', on_preempt = 'newest' }");
  hold_and_wait(h, three_four);
  assert_int_equal(run_preempt(run_host_run(h), 600, NULL), 0);
  release(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt ckpt-4.pt");
  assert_true(run_host_names(h, "ckpt-3.pt", RUN_NOT_SAVED));
}

static void what_is_complete_when_the_job_ends_is_all_saved(void **state) {
  run_host *h = *state;
  hold_and_wait(h, three_four);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_for(h, 0.05);
  release(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt ckpt-3.pt ckpt-4.pt");
  assert_int_equal(run_host_status(h).dropped, 0);
}

static void a_store_that_fails_just_then_has_no_time_for_all(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, queue = 'all' }");
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host_fail_store(h, EIO);
  run_host_write(h, "ckpt-2.pt", "two", RUN_RETRYING);
  run_host_let_wait(h, "ckpt-3.pt");
  assert_int_equal(run_preempt(run_host_run(h), 600, NULL), 0);
  run_host_fail_store(h, 0);
  run_host_until(h, RUN_COMMITTED, "ckpt-3.pt");
  assert_true(run_host_names(h, "ckpt-2.pt", RUN_NOT_SAVED));
}

/* ---- what `keep` wants ---- */

/* All that were made, those too that `keep` has let go since. Static memory. */
static const char *all_commits(run_host *h) {
  static char out[1024];
  char story[4096], *rest = story, *one;
  snprintf(story, sizeof story, "%s", run_host_story(h));
  *out = '\0';
  while ((one = strsep(&rest, ",")))
    if (strncmp(one, "COMMITTED", 9) == 0)
      snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s", *out ? "," : "", one);
  return out;
}

#define EVEN "keep = any { keep.last(1), keep.every_steps(2) }"

/* Guards: keep.every_steps(5000) was broken in silence where the store was slower than the job. */
static void what_keep_wants_has_its_turn_before_a_newer_one(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, " EVEN " }");
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_let_wait(h, "ckpt-2.pt");
  run_host_let_wait(h, "ckpt-3.pt");
  run_host_let_wait(h, "ckpt-4.pt");
  run_host_let_wait(h, "ckpt-5.pt");
  assert_int_equal(run_host_count(h, RUN_DROPPED, "ckpt-3.pt"), 1);
  assert_int_equal(run_host_count(h, RUN_DROPPED, NULL), 1);
  release(h);
  assert_string_equal(all_commits(h), "COMMITTED ckpt-1.pt,COMMITTED ckpt-2.pt,"
                                      "COMMITTED ckpt-4.pt,COMMITTED ckpt-5.pt");
  assert_false(run_host_logged(h, "though `keep` wants it"));
}

/* What is committed counts too: of the last two one is there already. */
static void keep_sees_what_is_committed_and_what_waits_in_one_list(void **state) {
  run_host *h = *state;
  run_host_begin_with(
      h, "return { api = 1, keep = function(list)\n"
         "  local names = {}\n"
         "  for i, c in ipairs(list) do\n"
         "    names[i] = c.name .. (c.durable and '+' or '-') .. (c.newest and '!' or '')\n"
         "  end\n"
         "  return list, table.concat(names, ' ') end }");
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host_idle(h);
  run_host_hold_save(h, "ckpt-2.pt", "two");
  run_host_let_wait(h, "ckpt-3.pt");
  run_host_let_wait(h, "ckpt-4.pt");
  assert_string_equal(run_unit_find(run_host_run(h), "ckpt-3.pt")->kept_why,
                      "ckpt-1.pt+ ckpt-2.pt- ckpt-3.pt- ckpt-4.pt-!");
  release(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt ckpt-3.pt ckpt-4.pt");
}

static void what_is_asked_about_the_queue_changes_no_memory(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, keep = function(list, memory)\n"
                         "  memory.asked = (memory.asked or 0) + 1\n"
                         "  return list end }");
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host_idle(h);
  char before[200];
  const run_group *g = run_host_run(h)->groups[0];
  snprintf(before, sizeof before, "%s", g->memory ? g->memory : "");
  assert_non_null(strstr(before, "asked"));
  run_host_hold_save(h, "ckpt-2.pt", "two");
  run_host_let_wait(h, "ckpt-3.pt");
  run_host_let_wait(h, "ckpt-4.pt");
  assert_true(run_unit_find(run_host_run(h), "ckpt-3.pt")->kept);
  assert_string_equal(g->memory, before);
  release(h);
}

static void what_keep_wants_and_is_lost_for_want_of_time_is_named(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, " EVEN " }");
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host_hold_save(h, "ckpt-3.pt", "three");
  run_host_let_wait(h, "ckpt-4.pt");
  run_host_let_wait(h, "ckpt-5.pt");
  assert_int_equal(run_preempt(run_host_run(h), 0.001, NULL), 0);
  release(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-3.pt ckpt-5.pt");
  assert_true(run_host_names(h, "ckpt-4.pt", RUN_NOT_SAVED));
  assert_true(run_host_logged(
      h, "ckpt-4.pt is not saved, though `keep` wants it (its step is a multiple of 2)"));
}

static void what_keep_wants_and_the_job_removes_is_named(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, " EVEN " }");
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_let_wait(h, "ckpt-2.pt");
  run_host_let_wait(h, "ckpt-3.pt");
  unlink(run_host_dir(h, "ckpt-2.pt"));
  run_host_until(h, RUN_RETIRED, "ckpt-2.pt");
  assert_true(run_host_logged(h, "ckpt-2.pt is not saved, though `keep` wants it"));
  release(h);
  assert_string_equal(all_commits(h), "COMMITTED ckpt-1.pt,COMMITTED ckpt-3.pt");
}

static void a_rule_that_is_only_tried_holds_nothing_back(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, would_keep = keep.all() }");
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_let_wait(h, "ckpt-2.pt");
  run_host_let_wait(h, "ckpt-3.pt");
  assert_int_equal(run_host_count(h, RUN_DROPPED, "ckpt-2.pt"), 1);
  release(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_RUN(what_fits_before_the_deadline_is_saved_the_oldest_first),
      WITH_RUN(what_was_let_go_and_fits_is_saved_after_all),
      WITH_HOST(what_does_not_fit_is_named_and_the_newest_is_saved),
      WITH_RUN(while_nobody_knows_how_long_a_save_takes_the_newest_is_first),
      WITH_HOST(the_policys_word_is_not_overruled_by_time),
      WITH_RUN(what_is_complete_when_the_job_ends_is_all_saved),
      WITH_HOST(a_store_that_fails_just_then_has_no_time_for_all),
      WITH_HOST(what_keep_wants_has_its_turn_before_a_newer_one),
      WITH_HOST(keep_sees_what_is_committed_and_what_waits_in_one_list),
      WITH_HOST(what_is_asked_about_the_queue_changes_no_memory),
      WITH_HOST(what_keep_wants_and_is_lost_for_want_of_time_is_named),
      WITH_HOST(what_keep_wants_and_the_job_removes_is_named),
      WITH_HOST(a_rule_that_is_only_tried_holds_nothing_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
