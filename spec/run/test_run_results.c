/* Which checkpoint a result belongs to. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static void report(run_host *h, const char *json) {
  err e = {0};
  if (run_result(run_host_run(h), json, &e) < 0) fail_msg("%s: %s", json, e.text);
}

/* Of the newest commit of that name, as the log has them; NULL: none. */
static const char *numbers_of(run_host *h, const char *unit) {
  const runlog_state *log = runlog_view(run_host_run(h)->groups[0]->group.log);
  for (size_t i = log->commit_count; i-- > 0;)
    if (strcmp(log->commits[i].unit, unit) == 0) return log->commits[i].metrics;
  fail_msg("%s is not committed", unit);
  return NULL;
}

static void must_have(run_host *h, const char *unit, const char *numbers) {
  const char *has = numbers_of(h, unit);
  if (numbers ? !has || strcmp(has, numbers) != 0 : has != NULL)
    fail_msg("%s has %s", unit, has ? has : "none");
}

/* Guards: a trainer that logs more often than it saves gave each checkpoint a number of later. */
static void the_last_result_before_its_first_write_is_its_own(void **state) {
  run_host *h = *state;
  report(h, "{\"loss\":5}");
  report(h, "{\"loss\":3}");
  run_host_put(h, "ckpt-1.pt");
  report(h, "{\"loss\":991}"); /* its write was not looked at by then */
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  report(h, "{\"loss\":2}");
  run_host_hold_save(h, "ckpt-2.pt", "two");
  report(h, "{\"loss\":992}");
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-2.pt");
  must_have(h, "ckpt-1.pt", "{\"loss\":3}");
  must_have(h, "ckpt-2.pt", "{\"loss\":2}");
}

/* Guards: what was skipped was asked about again with the result of the one after it. */
static void what_is_asked_about_again_keeps_its_own(void **state) {
  run_host *h = *state;
  run_host_policy(h, "return { api = 1, sync = when.metric_improved('loss', 'min') }");
  run_host_begin(h);
  report(h, "{\"loss\":4}");
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  report(h, "{\"loss\":4.5}");
  run_host_put(h, "ckpt-2.pt");
  run_host_until(h, RUN_SKIPPED, "ckpt-2.pt");
  report(h, "{\"loss\":3}");
  run_host_for(h, 0.3);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt");
  run_host_save(h, "ckpt-3.pt", RUN_COMMITTED);
  must_have(h, "ckpt-3.pt", "{\"loss\":3}");
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-3.pt");
}

#define NAMED(unit, loss) "{\"checkpoint\":\"" unit "\",\"loss\":" loss "}"

static void a_result_that_names_one_waits_for_it_and_is_nobody_elses(void **state) {
  run_host *h = *state;
  report(h, "{\"epoch\":1,\"loss\":9}");
  report(h, NAMED("ckpt-2.pt", "2"));
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  run_host_save(h, "ckpt-2.pt", RUN_COMMITTED);
  must_have(h, "ckpt-1.pt", "{\"epoch\":1,\"loss\":9}");
  must_have(h, "ckpt-2.pt", "{\"epoch\":1,\"loss\":2}");
}

static void one_that_comes_later_goes_to_it_while_it_is_saved_and_after_its_commit(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "ckpt-1.pt", "one");
  report(h, NAMED("ckpt-1.pt", "1"));
  run_host_hold(h, false);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  run_host_save(h, "ckpt-2.pt", RUN_COMMITTED);
  report(h, NAMED("ckpt-2.pt", "2"));
  run_host_for(h, 0.3);
  must_have(h, "ckpt-1.pt", "{\"loss\":1}");
  must_have(h, "ckpt-2.pt", "{\"loss\":2}");
  /* It stays when the log is read anew, and a second one goes over the first. */
  run_host_close(h);
  run_host_begin(h);
  report(h, "{\"checkpoint\":\"ckpt-2.pt\",\"acc\":0.5}");
  run_host_for(h, 0.3);
  must_have(h, "ckpt-2.pt", "{\"acc\":0.5,\"loss\":2}");
}

/* Guards: the pass that judges what stays must not come before the numbers. */
static void what_stays_is_judged_by_what_came_late(void **state) {
  run_host *h = *state;
  run_host_options(h)->max_delete = 1;
  run_host_policy(h, "return { api = 1, keep = keep.best('loss', 1, 'min') }");
  run_host_begin(h);
  for (int i = 1; i <= 5; i++) {
    static const int loss[] = {5, 4, 2, 3, 6};
    char name[20], json[80];
    snprintf(name, sizeof name, "ckpt-%d.pt", i);
    snprintf(json, sizeof json, "{\"checkpoint\":\"%s\",\"loss\":%d}", name, loss[i - 1]);
    run_host_save(h, name, RUN_COMMITTED);
    report(h, json);
  }
  run_host_for(h, 0.5);
  assert_string_equal(run_host_commits(h), "ckpt-3.pt ckpt-5.pt");
}

static void who_asks_for_a_checkpoint_says_nothing_of_it(void **state) {
  run_host *h = *state;
  report(h, "{\"loss\":1}");
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  report(h, "{\"checkpoint\":\"ckpt-1.pt\"}");
  report(h, "{\"checkpoint\":\"ckpt-2.pt\"}");
  run_host_save(h, "ckpt-2.pt", RUN_COMMITTED);
  must_have(h, "ckpt-1.pt", "{\"loss\":1}");
  must_have(h, "ckpt-2.pt", "{\"loss\":1}");
}

static void a_name_that_is_used_again_has_numbers_for_each_save(void **state) {
  run_host *h = *state;
  report(h, "{\"loss\":5}");
  run_host_save(h, "last.pt", RUN_COMMITTED);
  must_have(h, "last.pt", "{\"loss\":5}");
  report(h, "{\"loss\":4}");
  run_host_save(h, "last.pt", RUN_COMMITTED);
  must_have(h, "last.pt", "{\"loss\":4}");
  /* After each save... */
  run_host_save(h, "best.pt", RUN_COMMITTED);
  report(h, NAMED("best.pt", "3"));
  run_host_for(h, 0.3);
  must_have(h, "best.pt", "{\"loss\":3}");
  /* ...or before each: it has its own, so this one is the next one's. */
  report(h, NAMED("best.pt", "2"));
  run_host_for(h, 0.3);
  must_have(h, "best.pt", "{\"loss\":3}");
  run_host_save(h, "best.pt", RUN_COMMITTED);
  must_have(h, "best.pt", "{\"loss\":2}");
}

/* Guards: a job that was killed between its save and the commit lost the number of its best. */
static void a_checkpoint_of_the_run_before_keeps_what_it_had(void **state) {
  run_host *h = *state;
  report(h, "{\"loss\":0.5}");
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_fail_store(h, 5);
  run_host_hold(h, false);
  run_host_close(h);
  run_host_fail_store(h, 0);
  assert_string_equal(run_host_commits(h), "");
  run_host_begin(h);
  report(h, "{\"loss\":9}");
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  must_have(h, "ckpt-1.pt", "{\"loss\":0.5}");
}

/* Guards: where the job went on without its runner, the next one gave the new content the number that
 * the journal had of the old one. */
static void what_was_written_anew_while_nobody_looked_has_none(void **state) {
  run_host *h = *state;
  report(h, "{\"loss\":0.5}");
  run_host_save(h, "last.pt", RUN_COMMITTED);
  must_have(h, "last.pt", "{\"loss\":0.5}");
  run_host_close(h);
  write_file(run_host_dir(h, "last.pt"), "another one");
  run_host_options(h)->trust = true;
  run_host_begin(h);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  must_have(h, "last.pt", NULL);
}

/* The same of what its structure proves whole, which the start itself notes. */
static void what_was_written_anew_and_is_whole_has_none(void **state) {
  run_host *h = *state;
  char zip[23] = {'P', 'K', 5, 6};
  report(h, "{\"loss\":0.5}");
  run_host_tick(h);
  write_bytes(run_host_dir(h, "last.pt"), zip, sizeof zip - 1);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  run_host_close(h);
  zip[20] = 1; /* a comment of one byte */
  write_bytes(run_host_dir(h, "last.pt"), zip, sizeof zip);
  run_host_begin(h);
  run_host_until(h, RUN_COMMITTED, "last.pt");
  must_have(h, "last.pt", NULL);
}

/* Guards: what is only seen by a listing had a number that was reported seconds after it was written. */
static void where_the_tree_is_polled_the_times_of_files_tell(void **state) {
  run_host *h = *state;
  run_host_options(h)->poll = true;
  run_host_begin(h);
  report(h, "{\"loss\":3}");
  run_host_for(h, 0.05);
  make_dir(run_host_dir(h, "checkpoint-1"));
  write_file(run_host_dir(h, "checkpoint-1/model.bin"), "one");
  run_host_for(h, 0.05);
  report(h, "{\"loss\":992}");
  write_file(run_host_dir(h, "checkpoint-1/trainer_state.json"), "{}");
  write_file(run_host_dir(h, "ckpt-2.pt"), "two");
  run_host_for(h, 0.05);
  report(h, "{\"loss\":991}");
  run_host_skip(h, 6);
  run_host_for(h, 0.05);
  run_host_skip(h, 60);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_idle(h);
  must_have(h, "checkpoint-1", "{\"loss\":3}");
  must_have(h, "ckpt-2.pt", "{\"loss\":992}");
}

static void a_name_may_be_a_path_and_of_several_the_last_is_meant(void **state) {
  run_host *h = *state;
  char json[600];
  make_dir(run_host_dir(h, "a"));
  make_dir(run_host_dir(h, "b"));
  run_host_save(h, "a/ckpt-1.pt", RUN_COMMITTED);
  run_host_save(h, "b/ckpt-1.pt", RUN_COMMITTED);
  const run *r = run_host_run(h);
  snprintf(json, sizeof json, "{\"checkpoint\":\"%s\",\"loss\":1}",
           run_host_dir(h, "a/ckpt-1.pt/"));
  report(h, json);
  report(h, NAMED("ckpt-1.pt", "2"));
  report(h, NAMED("x/b/ckpt-1.pt", "3"));
  run_host_for(h, 0.4);
  for (size_t i = 0; i < r->group_count; i++) {
    const run_group *g = r->groups[i];
    if (!*g->group.prefix) continue;
    const char *has = runlog_view(g->group.log)->commits[0].metrics;
    if (!has || !strstr(has, *g->group.prefix == 'a' ? "\"loss\":1" : "\"loss\":3"))
      fail_msg("%s has %s", g->group.prefix, has ? has : "none");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_RUN(the_last_result_before_its_first_write_is_its_own),
      WITH_HOST(what_is_asked_about_again_keeps_its_own),
      WITH_RUN(a_result_that_names_one_waits_for_it_and_is_nobody_elses),
      WITH_RUN(one_that_comes_later_goes_to_it_while_it_is_saved_and_after_its_commit),
      WITH_HOST(what_stays_is_judged_by_what_came_late),
      WITH_RUN(who_asks_for_a_checkpoint_says_nothing_of_it),
      WITH_RUN(a_name_that_is_used_again_has_numbers_for_each_save),
      WITH_RUN(a_checkpoint_of_the_run_before_keeps_what_it_had),
      WITH_RUN(what_was_written_anew_while_nobody_looked_has_none),
      WITH_RUN(what_was_written_anew_and_is_whole_has_none),
      WITH_HOST(where_the_tree_is_polled_the_times_of_files_tell),
      WITH_RUN(a_name_may_be_a_path_and_of_several_the_last_is_meant),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
