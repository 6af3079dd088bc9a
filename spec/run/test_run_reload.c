/* Other policies that are asked for in the middle of a run: which are taken, and which are refused, why. The policies
 * are asked for real. */
#include "with_cmocka.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utime.h>

#include "decision/policy_link.h"
#include "reloads.h"
#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static const double hour = 3600;

/* ---- what is not taken ---- */

static void must_go_on(run_host *h, const char *text, const char *why) {
  run_reload_result r = reloads_take(h, text);
  assert_int_equal(r.status, ERR_POLICY);
  if (!strstr(r.text, why)) fail_msg("\"%s\" is not in: %s", why, r.text);
  assert_int_equal(run_host_run(h)->replaced.count, 0);
}

/* They answer about facts that are made up, and fail for those that there are. */
static void policies_that_fail_for_the_commits_that_there_are_are_not_taken(void **state) {
  run_host *h = *state;
  static const char fails[] =
      "return { api = 1, keep = function(list)\n"
      "  if list[1].name == 'ckpt-1.pt' then return list[1].nothing.at_all end\n"
      "  return list end }";
  reloads_begin(h, reloads_multiples(1), hour);
  reloads_save_to(h, 2);
  assert_int_equal(reloads_as(h, fails, true).status, ERR_POLICY);
  must_go_on(h, fails, "fails for the commits that there are: keep: it raised an error: ");
  assert_string_equal(run_host_status(h).policies, "p");
  assert_int_equal(reloads_take(h, "return { api = 1, would_keep = keep.last(1) }").status, 0);
}

static void broken_policies_change_nothing(void **state) {
  run_host *h = *state;
  reloads_begin(h, reloads_multiples(2), hour);
  reloads_save_to(h, 2);
  must_go_on(h, "return {", "p.lua:1");
  must_go_on(h, "return { api = 1, sync = function(e) return e.nothing.at_all end }", "nothing");
  must_go_on(h, "return { api = 1, keep = function(list) while true do end end }", "keep");
  must_go_on(h, "return { api = 1, keep = keep.last(1), must = { never_fewer_than(2) } }",
             "never_fewer_than");
  reloads_save(h, 3);
  reloads_save(h, 5);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-5.pt");
  run_host_skip(h, 2 * hour);
  run_host_step(h, NULL);
  reloads_settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-5.pt");
  assert_int_equal(reloads_take(h, reloads_multiples(3)).status,
                   0); /* one that is mended is taken */
}

static void what_a_checkpoint_is_cannot_change(void **state) {
  run_host *h = *state;
  reloads_begin(h, "return { api = 1, unit = 'ckpt-{step}.pt' }", hour);
  must_go_on(h, "return { api = 1, unit = 'step-{step}.pt' }", "\"unit\"");
  must_go_on(h, "return { api = 1, unit = 'ckpt-{step}.pt', exclude = '*.big' }", "\"exclude\"");
  must_go_on(h, "return { api = 1, unit = 'ckpt-{step}.pt', complete = done.quiet('9s') }",
             "Start the run again");
  must_go_on(h, "return { api = 1, unit = 'ckpt-{step}.pt', markers = { temp = 'T' } }",
             "\"markers\"");
  assert_int_equal(
      reloads_take(h, "return { api = 1, unit = 'ckpt-{step}.pt', queue = 'all' }").status, 0);
}

static void what_new_policies_do_not_name_stays(void **state) {
  run_host *h = *state;
  reloads_begin(h, "return { api = 1, unit = 'ckpt-{step}.pt', with = { 'notes.txt' } }", hour);
  run_reload_result r = reloads_take(h, reloads_multiples(1));
  assert_string_equal(r.text, "");
  assert_string_equal(r.stays, "with, unit");
  write_file(run_host_dir(h, "other.pt"), "a name that has to be named");
  reloads_save(h, 1);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "other.pt"), 0);
  r = reloads_take(h, reloads_multiples(2)); /* also of what stayed before */
  assert_string_equal(r.stays, "with, unit");
  r = reloads_take(h, "return { api = 1, with = { 'notes.txt' }, unit = '*.pt' }");
  assert_int_equal(r.status, ERR_POLICY);
  assert_non_null(strstr(r.text, "\"unit\""));
}

static run_reload_result reload_from(run_host *h, const char *path) {
  uint64_t job;
  err e = {0};
  const char *const policies[] = {path, NULL};
  const run_reload_options o = {.policies = policies};
  if (run_reload_ask(run_host_run(h), &o, &job, &e) < 0) fail_msg("%s", e.text);
  return reloads_await(h, job);
}

/* It names much that holds without being named, too, and some that does not. */
static void the_shipped_default_gives_way_to_a_policy_of_ones_own_and_comes_back(void **state) {
  run_host *h = *state;
  static const char shipped[] = "policies/default.lua";
  const char *const names[] = {shipped, NULL};
  run_host_policy(h, "return { api = 1, keep = keep.last(2) }");
  char *mine = strdup(reloads_path(h));
  run_host_options(h)->policies = names;
  run_host_begin(h);
  run_reload_result r = reload_from(h, mine);
  assert_string_equal(r.text, "");
  assert_string_equal(r.stays, "markers, with");
  assert_string_equal(run_host_status(h).policies, "p");
  r = reload_from(h, shipped);
  assert_string_equal(r.text, "");
  assert_string_equal(r.stays, "");
  write_file(mine, "return { api = 1, with = { 'notes.txt' } }");
  r = reload_from(h, mine);
  free(mine);
  assert_int_equal(r.status, ERR_POLICY);
  assert_non_null(strstr(r.text, "\"with\""));
  assert_string_equal(run_host_status(h).policies, "default");
}

static void other_files_and_options_may_be_named(void **state) {
  run_host *h = *state;
  uint64_t job;
  char other[600];
  reloads_begin(h, reloads_multiples(1), hour);
  snprintf(other, sizeof other, "%s/other.lua", run_host_top(h));
  write_file(other, "local o = options { last = { type = 'integer', default = 1 } }\nreturn { api "
                    "= 1, keep = keep.last(o.last) }");
  const char *const policies[] = {other, NULL}, *const settings[] = {"last=3", NULL};
  const char *const wrong[] = {"lust=3", NULL};
  run_reload_options o = {.policies = policies, .settings = wrong};
  assert_int_equal(run_reload_ask(run_host_run(h), &o, &job, NULL), 0);
  assert_int_equal(reloads_await(h, job).status, ERR_INVAL);
  o.settings = settings;
  assert_int_equal(run_reload_ask(run_host_run(h), &o, &job, NULL), 0);
  run_reload_result r = reloads_await(h, job);
  assert_string_equal(r.text, "");
  assert_string_equal(r.policies, "other");
  assert_string_equal(r.replaced, "p");
  assert_string_equal(run_host_status(h).policies, "other");
}

static void a_run_that_cannot_answer_says_why(void **state) {
  run_host *h = *state;
  err e = {0};
  run_host_policy(h, reloads_multiples(1));
  assert_int_equal(run_host_open(h, &e), 0);
  assert_int_equal(reloads_refused(h, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "not started yet"));
  run_host_close(h);
  run_host_begin(h);
  run *r = run_host_run(h);
  r->groups[0]->remembers = MEMORY_UNREAD;
  assert_int_equal(reloads_refused(h, &e), ERR_HELD);
  assert_int_equal(err_class_of(ERR_HELD), ERR_CLASS_RETRYABLE);
  assert_non_null(strstr(e.text, "remember"));
  r->groups[0]->remembers = MEMORY_BROKEN;
  assert_int_equal(reloads_refused(h, &e), ERR_HELD);
  assert_non_null(strstr(e.text, ".ckpt/memory"));
  r->groups[0]->remembers = MEMORY_KNOWN;
  const ranks alone = r->ranks;
  r->ranks.rank = 1;
  r->ranks.world = 2;
  assert_int_equal(reloads_refused(h, &e), ERR_UNSUPPORTED);
  assert_non_null(strstr(e.text, "rank 0 decides"));
  r->ranks = alone;
  r->preempted = true;
  assert_int_equal(reloads_refused(h, &e), ERR_CANCELED);
  r->preempted = false;
  assert_int_equal(run_child_exit(r, true, NULL), 0);
  assert_int_equal(reloads_refused(h, &e), ERR_CANCELED);
}

static void so_many_rule_beside_the_newest_and_no_more(void **state) {
  run_host *h = *state;
  err e = {0};
  reloads_begin(h, reloads_multiples(1), hour);
  for (int i = 0; i < RULING_MOST; i++)
    assert_int_equal(reloads_take(h, reloads_multiples(i + 2)).status, 0);
  assert_int_equal(run_host_run(h)->replaced.count, RULING_MOST);
  assert_int_equal(reloads_refused(h, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "ask again"));
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  assert_int_equal(reloads_take(h, reloads_multiples(2)).status, 0);
}

static void what_rules_already_is_not_added_when_it_is_asked_for_again(void **state) {
  run_host *h = *state;
  reloads_begin(h, reloads_multiples(2), hour);
  reloads_save(h, 2);
  const run *r = run_host_run(h);
  for (int i = 0; i < 3; i++) assert_int_equal(reloads_take(h, reloads_multiples(2)).status, 0);
  assert_int_equal(r->replaced.count, 0);
  for (int i = 0; i < 3; i++) {
    run_host_skip(h, hour / 4);
    assert_int_equal(reloads_take(h, reloads_multiples(3)).status, 0);
    assert_int_equal(reloads_take(h, reloads_multiples(2)).status, 0);
  }
  assert_int_equal(r->replaced.count, 2);
  reloads_save(h, 3);
  reloads_save(h, 5);
  run_host_skip(h, hour - 10); /* the time of each was extended */
  run_host_step(h, NULL);
  reloads_settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-3.pt ckpt-5.pt");
  run_host_skip(h, 20);
  run_host_step(h, NULL);
  reloads_settle(h);
  assert_int_equal(r->replaced.count, 0);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-5.pt");
}

/* One that began with another memory may keep others. */
static void what_remembers_something_else_rules_by_itself(void **state) {
  run_host *h = *state;
  reloads_begin(h, RELOADS_KEEPS_FIRST, hour);
  reloads_save_to(h, 2);
  assert_int_equal(reloads_take(h, "return { api = 1, keep = function(list, memory)\n"
                                   "  memory.first = list[#list].name\n"
                                   "  return {}, 'none' end }")
                       .status,
                   0);
  reloads_save(h, 3);
  assert_int_equal(reloads_take(h, RELOADS_KEEPS_FIRST).status, 0);
  assert_int_equal(reloads_take(h, reloads_multiples(100)).status, 0);
  assert_int_equal(run_host_run(h)->replaced.count, 3);
  reloads_save(h, 4);
  reloads_save(h, 5);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-3.pt ckpt-5.pt");
}

static void a_run_without_policies_takes_none(void **state) {
  run_host *h = *state;
  err e = {0};
  run_host_begin(h);
  assert_int_equal(reloads_refused(h, &e), ERR_UNSUPPORTED);
  assert_non_null(strstr(e.text, "`policies`"));
}

/* ---- edits ---- */

static void look(run_host *h) {
  run_host_skip(h, 10);
  run_host_step(h, NULL);
  for (int i = 0; i < 10; i++) run_host_for(h, 0.01); /* the thread has looked by then */
  run_host_skip(h, 10);
  run_host_step(h, NULL);
}

/* In one step, as editors do: a look in between would see two edits. */
static void edit(run_host *h, const char *text, unsigned at) {
  char fresh[600];
  const struct utimbuf times = {(time_t)at, (time_t)at};
  snprintf(fresh, sizeof fresh, "%s.new", reloads_path(h));
  write_file(fresh, text);
  assert_int_equal(utime(fresh, &times), 0);
  assert_int_equal(rename(fresh, reloads_path(h)), 0);
}

static void an_edited_file_is_told_once_for_each_edit_and_never_taken(void **state) {
  run_host *h = *state;
  reloads_begin(h, reloads_multiples(1), hour);
  reloads_save_to(h, 3);
  look(h);
  assert_int_equal(run_host_logs(h, "was edited"), 0);
  for (unsigned i = 1; i <= 2; i++) {
    edit(h, reloads_multiples(3 + (int)i), 1000 * i);
    for (int k = 0; k < 3; k++) look(h);
    assert_int_equal(run_host_logs(h, "was edited"), i);
  }
  assert_true(run_host_logged(h, "`reload`"));
  reloads_save(h, 4);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, NULL), 0);
  assert_int_equal(reloads_take(h, reloads_multiples(3)).status, 0);
  for (int k = 0; k < 3; k++) look(h);
  assert_int_equal(run_host_logs(h, "was edited"), 2); /* the one that was taken is no edit */
}

/* ---- a file system that does not answer ---- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static int hung_open(const io *self, int dirfd, const char *path, int flags, mode_t mode) {
  (void)self;
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
  return io_system()->open(io_system(), dirfd, path, flags, mode);
}

static void files_that_do_not_come_hold_up_neither_the_run_nor_its_end(void **state) {
  static io hung;
  run_host *h = *state;
  uint64_t job;
  err e = {0};
  reloads_begin(h, reloads_multiples(1), hour);
  hung = *io_system();
  hung.open = hung_open;
  run_host_run(h)->lasting = &hung;
  pthread_mutex_lock(&gate);
  assert_int_equal(run_reload_ask(run_host_run(h), &(run_reload_options){0}, &job, NULL), 0);
  assert_int_equal(reloads_refused(h, &e), ERR_HELD);
  reloads_save_to(h, 2); /* the run goes on */
  run_host_skip(h, 11);
  run_reload_result r = reloads_await(h, job);
  assert_int_equal(r.status, ERR_TIMEOUT);
  assert_string_equal(run_host_status(h).policies, "p");
  assert_int_equal(run_reload_ask(run_host_run(h), &(run_reload_options){0}, &job, NULL), 0);
  run_host_close(h); /* comes back, with three threads that hang */
  pthread_mutex_unlock(&gate);
}

/* ---- a process that dies ---- */

static void a_process_of_the_policies_that_rests_is_asked_later(void **state) {
  run_host *h = *state;
  run_reload_result r = {0};
  reloads_begin(h, reloads_multiples(2), hour);
  const policy_link *link = run_host_env(h)->policies;
  /* Each death is seen when the next one is asked, and another process begins. */
  for (int i = 0; i < 20 && r.status == 0; i++) {
    const pid_t helper = policy_link_pid(link);
    if (helper > 0) kill(helper, SIGKILL);
    if (helper > 0) run_host_for(h, 0.05);
    r = reloads_take(h, reloads_multiples(3 + i));
  }
  assert_int_equal(r.status, ERR_HELD);
  assert_non_null(strstr(r.text, "died too often"));
  assert_non_null(strstr(r.text, "Ask again"));
  run_host_skip(h, 120);
  assert_int_equal(reloads_take(h, reloads_multiples(2)).status, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(policies_that_fail_for_the_commits_that_there_are_are_not_taken),
      WITH_HOST(broken_policies_change_nothing),
      WITH_HOST(what_a_checkpoint_is_cannot_change),
      WITH_HOST(what_new_policies_do_not_name_stays),
      WITH_HOST(the_shipped_default_gives_way_to_a_policy_of_ones_own_and_comes_back),
      WITH_HOST(other_files_and_options_may_be_named),
      WITH_HOST(a_run_that_cannot_answer_says_why),
      WITH_HOST(so_many_rule_beside_the_newest_and_no_more),
      WITH_HOST(what_rules_already_is_not_added_when_it_is_asked_for_again),
      WITH_HOST(what_remembers_something_else_rules_by_itself),
      WITH_HOST(a_run_without_policies_takes_none),
      WITH_HOST(an_edited_file_is_told_once_for_each_edit_and_never_taken),
      WITH_HOST(files_that_do_not_come_hold_up_neither_the_run_nor_its_end),
      WITH_HOST(a_process_of_the_policies_that_rests_is_asked_later),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
