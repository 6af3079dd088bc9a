/* Other policies in the middle of a run: when they are taken, what is kept until those before rule no more, and what
 * is refused. The policies are asked for real. */
#include "with_cmocka.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utime.h>

#include "decision/policy_link.h"
#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static const double hour = 3600;

/* Keeps those whose step is a multiple of N. */
static const char *multiples(int n) {
  static char text[2][300];
  static int turn;
  char *to = text[turn++ % 2];
  snprintf(
      to, sizeof text[0],
      "return { api = 1, keep = function(list)\n"
      "  local kept = {}\n"
      "  for _, c in ipairs(list) do if (c.step or 1) %% %d == 0 then kept[#kept + 1] = c end end\n"
      "  return kept, 'by %d' end }",
      n, n);
  return to;
}

static const char *policy_path(run_host *h) {
  return run_host_options(h)->policies[0];
}

static void begin(run_host *h, const char *policy, double grace_s) {
  run_host_options(h)->grace_delete_ns = (int64_t)(grace_s * 1e9);
  run_host_options(h)->max_delete = 1;
  run_host_begin_with(h, policy);
}

static run_reload_result await(run_host *h, uint64_t job) {
  run_reload_result out = {0};
  for (int i = 0; i < 2000 && !out.over; i++) {
    run_host_for(h, 0.005);
    assert_int_equal(run_reloaded(run_host_run(h), job, &out, NULL, NULL, NULL), 0);
  }
  assert_true(out.over);
  return out;
}

static run_reload_result reload_as(run_host *h, const char *text, bool dry) {
  uint64_t job;
  err e = {0};
  write_file(policy_path(h), text);
  const run_reload_options o = {.dry = dry};
  if (run_reload_ask(run_host_run(h), &o, &job, &e) < 0) fail_msg("%s", e.text);
  return await(h, job);
}

static run_reload_result reload(run_host *h, const char *text) {
  return reload_as(h, text, false);
}

static int refused(run_host *h, err *e) {
  uint64_t job;
  return run_reload_ask(run_host_run(h), &(run_reload_options){0}, &job, e);
}

static void settle(run_host *h) {
  for (int i = 0; i < 400 && run_host_status(h).keeping; i++) run_host_for(h, 0.005);
  assert_false(run_host_status(h).keeping);
}

static void save(run_host *h, int step) {
  char name[32];
  snprintf(name, sizeof name, "ckpt-%d.pt", step);
  run_host_save(h, name, RUN_COMMITTED);
  settle(h);
}

static void save_to(run_host *h, int last) {
  for (int i = 1; i <= last; i++) save(h, i);
}

/* ---- what is taken ---- */

static void what_new_policies_say_of_saving_rules_at_once(void **state) {
  run_host *h = *state;
  begin(h, "return { api = 1, sync = function() return 'skip', 'not yet' end }", hour);
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  run_reload_result r = reload(h, "return { api = 1, sync = function() return 'sync' end }");
  assert_int_equal(r.status, 0);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt"); /* it was held back, and is asked about again */
}

static void what_policies_before_keep_stays_until_their_grace_is_over(void **state) {
  run_host *h = *state;
  begin(h, multiples(1), hour);
  save_to(h, 4);
  assert_int_equal(reload(h, multiples(4)).status, 0);
  save(h, 5);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt ckpt-3.pt ckpt-4.pt ckpt-5.pt");
  run_host_skip(h, hour - 100);
  save(h, 6);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, NULL), 0);
  run_host_skip(h, 101);
  run_host_step(h, NULL);
  settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-4.pt ckpt-6.pt");
  assert_string_equal(run_host_reason(h, RUN_EXPIRED, "ckpt-1.pt"),
                      "its function does not keep it");
}

static void without_a_grace_new_policies_rule_at_once(void **state) {
  run_host *h = *state;
  begin(h, multiples(1), 0);
  save_to(h, 3);
  assert_int_equal(reload(h, multiples(2)).status, 0);
  settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-3.pt");
}

/* 2 and 3 are kept by one alone, and each goes when that one's own grace is over. */
static void each_of_several_rules_until_its_own_grace_is_over(void **state) {
  run_host *h = *state;
  begin(h, multiples(2), hour);
  save_to(h, 1);
  save(h, 2);
  save(h, 5);
  run_host_skip(h, 0);
  assert_int_equal(reload(h, multiples(3)).status, 0);
  save(h, 3);
  run_host_skip(h, hour / 2);
  assert_int_equal(reload(h, multiples(7)).status, 0);
  save(h, 7);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-3.pt ckpt-7.pt");
  run_host_skip(h, hour / 2 + 10);
  run_host_step(h, NULL);
  settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-3.pt ckpt-7.pt");
  run_host_skip(h, hour / 2);
  run_host_step(h, NULL);
  settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-7.pt");
}

/* One that has no `keep` keeps all. */
static void policies_before_without_a_rule_keep_all_for_the_grace(void **state) {
  run_host *h = *state;
  begin(h, "return { api = 1 }", hour);
  save_to(h, 3);
  assert_int_equal(reload(h, multiples(5)).status, 0);
  save(h, 5);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, NULL), 0);
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-5.pt");
}

static int collect(void *ctx, const run_changed *what) {
  buf *out = ctx;
  buf_fmt(out, "%s%s %d>%d", out->len ? ", " : "", what->name, what->before->keep,
          what->after->keep);
  return 0;
}

static const char *changes(run_host *h, uint64_t job) {
  static char text[1000];
  run_reload_result r;
  buf out;
  buf_init(&out, sizeof text - 1);
  assert_int_equal(run_reloaded(run_host_run(h), job, &r, collect, &out, NULL), 0);
  snprintf(text, sizeof text, "%s", out.data ? out.data : "");
  buf_free(&out);
  return text;
}

static void the_difference_of_what_is_kept_is_told(void **state) {
  run_host *h = *state;
  begin(h, multiples(1), hour);
  save_to(h, 3);
  run_reload_result r = reload_as(h, multiples(2), true);
  assert_true(r.dry && r.left_ns == (int64_t)(hour * 1e9)); /* as it would be */
  assert_string_equal(changes(h, 1), "ckpt-1.pt 1>0, ckpt-3.pt 1>0");
  assert_string_equal(changes(h, 0), ""); /* nothing was taken */
  assert_string_equal(run_host_status(h).policies, "p");
  reload(h, multiples(2));
  assert_string_equal(changes(h, 2), "ckpt-1.pt 1>0, ckpt-3.pt 1>0");
  save(h, 5);
  assert_string_equal(changes(h, 0), "ckpt-1.pt 1>0, ckpt-3.pt 1>0, ckpt-5.pt 1>0");
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  assert_string_equal(changes(h, 0), "");
}

static void what_there_is_no_time_to_compare_is_counted(void **state) {
  run_host *h = *state;
  begin(h, multiples(1), hour);
  save_to(h, 3);
  run_host_run(h)->compare_ns = 0;
  run_reload_result r = reload(h, multiples(2));
  assert_int_equal(r.status, 0);
  assert_int_equal(r.uncompared, 3);
  assert_string_equal(changes(h, 1), "");
}

/* It keeps the first that it saw, which its memory alone knows. */
#define KEEPS_FIRST                                                                                \
  "return { api = 1, keep = function(list, memory)\n"                                              \
  "  memory.first = memory.first or list[1].name\n"                                                \
  "  local kept = {}\n"                                                                            \
  "  for _, c in ipairs(list) do if c.name == memory.first then kept[1] = c end end\n"             \
  "  return kept, 'the first' end }"

static void policies_before_go_on_by_a_memory_of_their_own(void **state) {
  run_host *h = *state;
  begin(h, KEEPS_FIRST, hour);
  save_to(h, 2);
  assert_int_equal(reload(h, "return { api = 1, keep = function(list, memory)\n"
                             "  memory.first, memory.seen = 'none', true\n"
                             "  return {}, 'none' end }")
                       .status,
                   0);
  save_to(h, 0);
  save(h, 3);
  save(h, 4);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-4.pt");
  assert_non_null(strstr(run_host_run(h)->groups[0]->memory, "\"seen\":true"));
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-4.pt");
}

static void save_below(run_host *h, const char *dir, int step) {
  char name[64];
  if (!path_exists(run_host_dir(h, dir))) make_dir(run_host_dir(h, dir));
  snprintf(name, sizeof name, "%s/ckpt-%d.pt", dir, step);
  run_host_save(h, name, RUN_COMMITTED);
  settle(h);
}

static void policies_that_empty_their_memory_are_compared_by_what_they_say(void **state) {
  run_host *h = *state;
  begin(h, KEEPS_FIRST, hour);
  save_to(h, 2);
  assert_non_null(run_host_run(h)->groups[0]->memory);
  assert_int_equal(reload(h, "return { api = 1, keep = function(list, memory)\n"
                             "  for key in pairs(memory) do memory[key] = nil end\n"
                             "  return {}, 'none' end }")
                       .status,
                   0);
  assert_string_equal(changes(h, 1), "ckpt-1.pt 1>0");
}

static void all_groups_take_them_and_each_is_remembered_by_itself(void **state) {
  run_host *h = *state;
  begin(h, KEEPS_FIRST, hour);
  for (int i = 1; i <= 2; i++) {
    save_below(h, "a", i);
    save_below(h, "b", i + 4);
  }
  assert_int_equal(reload(h, "return { api = 1, keep = function() return {}, 'none' end }").status,
                   0);
  assert_string_equal(changes(h, 1), "ckpt-1.pt 1>0, ckpt-5.pt 1>0");
  save_below(h, "a", 3);
  save_below(h, "b", 7);
  save_below(h, "c", 9); /* a group that those before have not seen */
  save_below(h, "c", 10);
  assert_string_equal(run_host_commits(h), "a/ckpt-1.pt a/ckpt-3.pt b/ckpt-5.pt b/ckpt-7.pt "
                                           "c/ckpt-9.pt c/ckpt-10.pt");
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  settle(h);
  assert_string_equal(run_host_commits(h), "a/ckpt-3.pt b/ckpt-7.pt c/ckpt-10.pt");
}

static void what_is_kept_here_is_ruled_by_those_before_as_long(void **state) {
  run_host *h = *state;
  begin(h, "return { api = 1, keep_local = keep.last(3) }", hour);
  save_to(h, 2);
  assert_int_equal(reload(h, "return { api = 1, keep_local = keep.last(1) }").status, 0);
  save(h, 3);
  save(h, 4);
  for (int i = 0; i < 100 && path_exists(run_host_dir(h, "ckpt-1.pt")); i++) run_host_for(h, 0.1);
  assert_false(path_exists(run_host_dir(h, "ckpt-1.pt"))); /* both let it go */
  assert_true(path_exists(run_host_dir(h, "ckpt-2.pt")));
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  for (int i = 0; i < 100 && path_exists(run_host_dir(h, "ckpt-3.pt")); i++) run_host_for(h, 0.1);
  assert_false(path_exists(run_host_dir(h, "ckpt-2.pt")));
  assert_false(path_exists(run_host_dir(h, "ckpt-3.pt")));
  assert_true(path_exists(run_host_dir(h, "ckpt-4.pt")));
}

static void dropped(run_host *h, int step, bool is) {
  char name[32];
  snprintf(name, sizeof name, "ckpt-%d.pt", step);
  if ((run_host_count(h, RUN_DROPPED, name) > 0) != is)
    fail_msg("%s was %slet go", name, is ? "not " : "");
}

static void let_wait(run_host *h, int first, int last) {
  char name[32];
  for (int i = first; i <= last; i++) {
    snprintf(name, sizeof name, "ckpt-%d.pt", i);
    run_host_let_wait(h, name);
  }
}

/* 2 and 4 are kept by those before alone, 3 by the new ones, 5 by none. */
static void the_queue_lets_nothing_go_that_any_of_those_wants_that_rule(void **state) {
  run_host *h = *state;
  begin(h, multiples(2), hour);
  run_host_hold_save(h, "ckpt-1.pt", "one");
  let_wait(h, 2, 2);
  assert_int_equal(reload(h, multiples(3)).status, 0);
  let_wait(h, 3, 7);
  for (int i = 2; i <= 7; i++) dropped(h, i, i == 5);
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  let_wait(h, 8, 10);
  for (int i = 2; i <= 10; i++) dropped(h, i, i % 3 != 0 && i != 10);
  run_host_hold(h, false);
  run_host_idle(h);
  assert_false(run_host_logged(h, "though `keep` wants it"));
}

static void the_queue_goes_on_letting_go_beside_policies_without_keep(void **state) {
  run_host *h = *state;
  begin(h, "return { api = 1 }", hour);
  run_host_hold_save(h, "ckpt-1.pt", "one");
  assert_int_equal(reload(h, multiples(3)).status, 0);
  let_wait(h, 2, 5);
  for (int i = 2; i <= 5; i++) dropped(h, i, i == 2 || i == 4);
  assert_int_equal(reload(h, "return { api = 1, queue = 'newest' }").status, 0);
  let_wait(h, 6, 8);
  for (int i = 3; i <= 8; i++) dropped(h, i, i % 3 != 0 && i != 8);
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  let_wait(h, 9, 10); /* nobody wants any now */
  for (int i = 2; i <= 10; i++) dropped(h, i, i != 10);
  run_host_hold(h, false);
}

static void the_queue_asks_those_before_by_a_memory_of_their_own(void **state) {
  run_host *h = *state;
  begin(h,
        "return { api = 1, keep = function(list, memory)\n"
        "  memory.wants = memory.wants or 4\n"
        "  local kept = {}\n"
        "  for _, c in ipairs(list) do if c.step == memory.wants then kept[1] = c end end\n"
        "  return kept, 'what it wants' end }",
        hour);
  save_to(h, 1);
  run_host_hold_save(h, "ckpt-2.pt", "two");
  assert_int_equal(reload(h, "return { api = 1, keep = function(list, memory)\n"
                             "  memory.wants = 3\n"
                             "  return {}, 'none' end }")
                       .status,
                   0);
  let_wait(h, 3, 6);
  for (int i = 3; i <= 6; i++) dropped(h, i, i == 3 || i == 5);
  run_host_hold(h, false);
}

/* The core lets older generations of one name go, but not while policies rule that say `keep_in_place = "all"`. */
static void generations_stay_as_long_as_one_of_those_keeps_them(void **state) {
  run_host *h = *state;
  begin(h, "return { api = 1, keep_in_place = 'all' }", hour);
  assert_int_equal(reload(h, "return { api = 1 }").status, 0);
  assert_false(ruling_keeps_few(&run_host_run(h)->replaced));
  for (int i = 0; i < 6; i++) {
    run_host_skip(h, 600);
    run_host_write(h, "last.pt", (const char *[]){"a", "b", "c", "d", "e", "f"}[i], RUN_COMMITTED);
    settle(h);
    if (i == 4) assert_int_equal(run_host_count(h, RUN_EXPIRED, NULL), 0);
  }
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  settle(h);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, "last.pt"), 3);
}

#define COUNTS                                                                                     \
  "return { api = 1, on_committed = function(e, memory) memory.n = (memory.n or 0) + 1 end, "      \
  "keep = function(list, memory) return list, 'counted ' .. (memory.n or 0) .. ' %s' end }"

static void each_of_those_that_rule_hears_of_a_commit_once(void **state) {
  run_host *h = *state;
  char before[300], after[300];
  snprintf(before, sizeof before, COUNTS, "before");
  snprintf(after, sizeof after, COUNTS, "after");
  begin(h, before, hour);
  save_to(h, 2);
  assert_int_equal(reload(h, after).status, 0);
  save(h, 3);
  const run *r = run_host_run(h);
  assert_int_equal(r->replaced.count, 1);
  assert_non_null(strstr(r->groups[0]->memory, "\"n\":3"));
  assert_non_null(strstr(r->replaced.at[0].memories.at[0].text, "\"n\":3"));
}

/* It reads the files that its command names, as they are then. What it went on from stays in any case. */
static void a_start_begins_with_the_new_ones_alone(void **state) {
  run_host *h = *state;
  begin(h, multiples(1), hour);
  save_to(h, 3);
  assert_int_equal(reload(h, multiples(2)).status, 0);
  run_host_close(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt ckpt-3.pt");
  run_host_begin(h);
  save(h, 5);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-3.pt ckpt-5.pt");
}

static void new_policies_begin_with_the_memory_that_there_is(void **state) {
  run_host *h = *state;
  begin(h, KEEPS_FIRST, 0);
  save_to(h, 2);
  assert_int_equal(reload(h, KEEPS_FIRST " -- another text").status, 0);
  save(h, 3);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-3.pt");
}

/* ---- what is not taken ---- */

static void must_go_on(run_host *h, const char *text, const char *why) {
  run_reload_result r = reload(h, text);
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
  begin(h, multiples(1), hour);
  save_to(h, 2);
  assert_int_equal(reload_as(h, fails, true).status, ERR_POLICY);
  must_go_on(h, fails, "fails for the commits that there are: keep: it raised an error: ");
  assert_string_equal(run_host_status(h).policies, "p");
  assert_int_equal(reload(h, "return { api = 1, would_keep = keep.last(1) }").status, 0);
}

static void broken_policies_change_nothing(void **state) {
  run_host *h = *state;
  begin(h, multiples(2), hour);
  save_to(h, 2);
  must_go_on(h, "return {", "p.lua:1");
  must_go_on(h, "return { api = 1, sync = function(e) return e.nothing.at_all end }", "nothing");
  must_go_on(h, "return { api = 1, keep = function(list) while true do end end }", "keep");
  must_go_on(h, "return { api = 1, keep = keep.last(1), must = { never_fewer_than(2) } }",
             "never_fewer_than");
  save(h, 3);
  save(h, 5);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-5.pt");
  run_host_skip(h, 2 * hour);
  run_host_step(h, NULL);
  settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-5.pt");
  assert_int_equal(reload(h, multiples(3)).status, 0); /* one that is mended is taken */
}

static void what_a_checkpoint_is_cannot_change(void **state) {
  run_host *h = *state;
  begin(h, "return { api = 1, unit = 'ckpt-{step}.pt' }", hour);
  must_go_on(h, "return { api = 1, unit = 'step-{step}.pt' }", "\"unit\"");
  must_go_on(h, "return { api = 1, unit = 'ckpt-{step}.pt', exclude = '*.big' }", "\"exclude\"");
  must_go_on(h, "return { api = 1, unit = 'ckpt-{step}.pt', complete = done.quiet('9s') }",
             "Start the run again");
  must_go_on(h, "return { api = 1, unit = 'ckpt-{step}.pt', markers = { temp = 'T' } }",
             "\"markers\"");
  assert_int_equal(reload(h, "return { api = 1, unit = 'ckpt-{step}.pt', queue = 'all' }").status,
                   0);
}

static void what_new_policies_do_not_name_stays(void **state) {
  run_host *h = *state;
  begin(h, "return { api = 1, unit = 'ckpt-{step}.pt', with = { 'notes.txt' } }", hour);
  run_reload_result r = reload(h, multiples(1));
  assert_string_equal(r.text, "");
  assert_string_equal(r.stays, "with, unit");
  write_file(run_host_dir(h, "other.pt"), "a name that has to be named");
  save(h, 1);
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "other.pt"), 0);
  r = reload(h, multiples(2)); /* also of what stayed before */
  assert_string_equal(r.stays, "with, unit");
  r = reload(h, "return { api = 1, with = { 'notes.txt' }, unit = '*.pt' }");
  assert_int_equal(r.status, ERR_POLICY);
  assert_non_null(strstr(r.text, "\"unit\""));
}

static run_reload_result reload_from(run_host *h, const char *path) {
  uint64_t job;
  err e = {0};
  const char *const policies[] = {path, NULL};
  const run_reload_options o = {.policies = policies};
  if (run_reload_ask(run_host_run(h), &o, &job, &e) < 0) fail_msg("%s", e.text);
  return await(h, job);
}

/* It names much that holds without being named, too, and some that does not. */
static void the_shipped_default_gives_way_to_a_policy_of_ones_own_and_comes_back(void **state) {
  run_host *h = *state;
  static const char shipped[] = "policies/default.lua";
  const char *const names[] = {shipped, NULL};
  run_host_policy(h, "return { api = 1, keep = keep.last(2) }");
  char *mine = strdup(policy_path(h));
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
  begin(h, multiples(1), hour);
  snprintf(other, sizeof other, "%s/other.lua", run_host_top(h));
  write_file(other, "local o = options { last = { type = 'integer', default = 1 } }\nreturn { api "
                    "= 1, keep = keep.last(o.last) }");
  const char *const policies[] = {other, NULL}, *const settings[] = {"last=3", NULL};
  const char *const wrong[] = {"lust=3", NULL};
  run_reload_options o = {.policies = policies, .settings = wrong};
  assert_int_equal(run_reload_ask(run_host_run(h), &o, &job, NULL), 0);
  assert_int_equal(await(h, job).status, ERR_INVAL);
  o.settings = settings;
  assert_int_equal(run_reload_ask(run_host_run(h), &o, &job, NULL), 0);
  run_reload_result r = await(h, job);
  assert_string_equal(r.text, "");
  assert_string_equal(r.policies, "other");
  assert_string_equal(r.replaced, "p");
  assert_string_equal(run_host_status(h).policies, "other");
}

static void a_run_that_cannot_answer_says_why(void **state) {
  run_host *h = *state;
  err e = {0};
  run_host_policy(h, multiples(1));
  assert_int_equal(run_host_open(h, &e), 0);
  assert_int_equal(refused(h, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "not started yet"));
  run_host_close(h);
  run_host_begin(h);
  run *r = run_host_run(h);
  r->groups[0]->remembers = MEMORY_UNREAD;
  assert_int_equal(refused(h, &e), ERR_HELD);
  assert_int_equal(err_class_of(ERR_HELD), ERR_CLASS_RETRYABLE);
  assert_non_null(strstr(e.text, "remember"));
  r->groups[0]->remembers = MEMORY_BROKEN;
  assert_int_equal(refused(h, &e), ERR_HELD);
  assert_non_null(strstr(e.text, ".ckpt/memory"));
  r->groups[0]->remembers = MEMORY_KNOWN;
  const ranks alone = r->ranks;
  r->ranks.rank = 1;
  r->ranks.world = 2;
  assert_int_equal(refused(h, &e), ERR_UNSUPPORTED);
  assert_non_null(strstr(e.text, "rank 0 decides"));
  r->ranks = alone;
  r->preempted = true;
  assert_int_equal(refused(h, &e), ERR_CANCELED);
  r->preempted = false;
  assert_int_equal(run_child_exit(r, true, NULL), 0);
  assert_int_equal(refused(h, &e), ERR_CANCELED);
}

static void so_many_rule_beside_the_newest_and_no_more(void **state) {
  run_host *h = *state;
  err e = {0};
  begin(h, multiples(1), hour);
  for (int i = 0; i < RULING_MOST; i++) assert_int_equal(reload(h, multiples(i + 2)).status, 0);
  assert_int_equal(run_host_run(h)->replaced.count, RULING_MOST);
  assert_int_equal(refused(h, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "ask again"));
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  assert_int_equal(reload(h, multiples(2)).status, 0);
}

static void what_rules_already_is_not_added_when_it_is_asked_for_again(void **state) {
  run_host *h = *state;
  begin(h, multiples(2), hour);
  save(h, 2);
  const run *r = run_host_run(h);
  for (int i = 0; i < 3; i++) assert_int_equal(reload(h, multiples(2)).status, 0);
  assert_int_equal(r->replaced.count, 0);
  for (int i = 0; i < 3; i++) {
    run_host_skip(h, hour / 4);
    assert_int_equal(reload(h, multiples(3)).status, 0);
    assert_int_equal(reload(h, multiples(2)).status, 0);
  }
  assert_int_equal(r->replaced.count, 2);
  save(h, 3);
  save(h, 5);
  run_host_skip(h, hour - 10); /* the time of each was extended */
  run_host_step(h, NULL);
  settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-3.pt ckpt-5.pt");
  run_host_skip(h, 20);
  run_host_step(h, NULL);
  settle(h);
  assert_int_equal(r->replaced.count, 0);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-5.pt");
}

/* One that began with another memory may keep others. */
static void what_remembers_something_else_rules_by_itself(void **state) {
  run_host *h = *state;
  begin(h, KEEPS_FIRST, hour);
  save_to(h, 2);
  assert_int_equal(reload(h, "return { api = 1, keep = function(list, memory)\n"
                             "  memory.first = list[#list].name\n"
                             "  return {}, 'none' end }")
                       .status,
                   0);
  save(h, 3);
  assert_int_equal(reload(h, KEEPS_FIRST).status, 0);
  assert_int_equal(reload(h, multiples(100)).status, 0);
  assert_int_equal(run_host_run(h)->replaced.count, 3);
  save(h, 4);
  save(h, 5);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-3.pt ckpt-5.pt");
}

static void a_run_without_policies_takes_none(void **state) {
  run_host *h = *state;
  err e = {0};
  run_host_begin(h);
  assert_int_equal(refused(h, &e), ERR_UNSUPPORTED);
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
  snprintf(fresh, sizeof fresh, "%s.new", policy_path(h));
  write_file(fresh, text);
  assert_int_equal(utime(fresh, &times), 0);
  assert_int_equal(rename(fresh, policy_path(h)), 0);
}

static void an_edited_file_is_told_once_for_each_edit_and_never_taken(void **state) {
  run_host *h = *state;
  begin(h, multiples(1), hour);
  save_to(h, 3);
  look(h);
  assert_int_equal(run_host_logs(h, "was edited"), 0);
  for (unsigned i = 1; i <= 2; i++) {
    edit(h, multiples(3 + (int)i), 1000 * i);
    for (int k = 0; k < 3; k++) look(h);
    assert_int_equal(run_host_logs(h, "was edited"), i);
  }
  assert_true(run_host_logged(h, "`reload`"));
  save(h, 4);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, NULL), 0);
  assert_int_equal(reload(h, multiples(3)).status, 0);
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
  begin(h, multiples(1), hour);
  hung = *io_system();
  hung.open = hung_open;
  run_host_run(h)->lasting = &hung;
  pthread_mutex_lock(&gate);
  assert_int_equal(run_reload_ask(run_host_run(h), &(run_reload_options){0}, &job, NULL), 0);
  assert_int_equal(refused(h, &e), ERR_HELD);
  save_to(h, 2); /* the run goes on */
  run_host_skip(h, 11);
  run_reload_result r = await(h, job);
  assert_int_equal(r.status, ERR_TIMEOUT);
  assert_string_equal(run_host_status(h).policies, "p");
  assert_int_equal(run_reload_ask(run_host_run(h), &(run_reload_options){0}, &job, NULL), 0);
  run_host_close(h); /* comes back, with three threads that hang */
  pthread_mutex_unlock(&gate);
}

/* ---- a pass that is under way ---- */

static void a_pass_that_began_is_finished_by_those_that_ruled_then(void **state) {
  run_host *h = *state;
  begin(h, multiples(2), hour);
  save(h, 1);
  write_file(run_host_dir(h, "ckpt-2.pt"), "two");
  for (int64_t i = 0; i < 100000000 && !run_host_run(h)->groups[0]->keeping; i++)
    run_host_step(h, NULL);
  assert_non_null(run_host_run(h)->groups[0]->keeping);
  assert_int_equal(reload(h, multiples(1)).status, 0);
  settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt");
  save(h, 3);
  save(h, 4);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-3.pt ckpt-4.pt");
}

/* ---- a process that dies ---- */

static void a_process_of_the_policies_that_rests_is_asked_later(void **state) {
  run_host *h = *state;
  run_reload_result r = {0};
  begin(h, multiples(2), hour);
  const policy_link *link = run_host_env(h)->policies;
  /* Each death is seen when the next one is asked, and another process begins. */
  for (int i = 0; i < 20 && r.status == 0; i++) {
    const pid_t helper = policy_link_pid(link);
    if (helper > 0) kill(helper, SIGKILL);
    if (helper > 0) run_host_for(h, 0.05);
    r = reload(h, multiples(3 + i));
  }
  assert_int_equal(r.status, ERR_HELD);
  assert_non_null(strstr(r.text, "died too often"));
  assert_non_null(strstr(r.text, "Ask again"));
  run_host_skip(h, 120);
  assert_int_equal(reload(h, multiples(2)).status, 0);
}

/* ---- any order ---- */

/* What a test knows of the chains: which multiples they keep, and until when they rule. */
typedef struct model {
  int n[64];
  double until[64];
  size_t count;
  double now;
  bool committed[200], gone[200];
} model;

static bool ruled(const model *m, size_t i, double at) {
  return i + 1 == m->count || m->until[i] > at;
}

/* None of those may have let it go that ruled all the time since the last look. */
static void check(run_host *h, model *m, size_t chains, unsigned seed) {
  for (int step = 1; step < 200; step++) {
    char name[32];
    snprintf(name, sizeof name, "ckpt-%d.pt", step);
    if (!m->committed[step] || m->gone[step] || run_host_count(h, RUN_EXPIRED, name) == 0) continue;
    m->gone[step] = true;
    for (size_t i = 0; i < chains && i < m->count; i++)
      if (step % m->n[i] == 0 && ruled(m, i, m->now))
        fail_msg("seed %u: %s is gone, which chain %zu (multiples of %d) keeps", seed, name, i,
                 m->n[i]);
  }
}

static void any_order(run_host *h, unsigned seed) {
  model m = {.n = {1 + (int)(seed % 3)}, .count = 1};
  unsigned next = seed;
  int step = 0;
  size_t sure = 1; /* so many ruled when the last pass can have begun */
  begin(h, multiples(m.n[0]), hour);
  for (int turn = 0; turn < 60; turn++) {
    next = next * 1103515245 + 12345;
    const unsigned what = next >> 16 & 15, more = next >> 20 & 7;
    char name[32];
    if (what < 7) {
      snprintf(name, sizeof name, "ckpt-%d.pt", ++step);
      run_host_save(h, name, RUN_COMMITTED);
      m.committed[step] = true;
    } else if (what < 10 && m.count < 60) {
      const run_reload_result r = reload(h, multiples(1 + (int)more));
      if (r.status < 0) { /* their process was killed too often: nothing changes */
        assert_int_equal(r.status, ERR_HELD);
        assert_non_null(strstr(r.text, "helper"));
        continue;
      }
      m.until[m.count - 1] = m.now + hour;
      m.n[m.count++] = 1 + (int)more;
    } else if (what < 12) {
      const pid_t helper = policy_link_pid(run_host_env(h)->policies);
      if (helper > 0) kill(helper, SIGKILL);
    } else {
      m.now += hour / 3 * more;
      run_host_skip(h, hour / 3 * more);
      run_host_step(h, NULL);
    }
    if (more % 2) settle(h);
    check(h, &m, sure, seed);
    if (more % 2) sure = m.count;
  }
  settle(h);
  check(h, &m, sure, seed);
  /* It is not that nothing goes at all. */
  assert_true(run_host_count(h, RUN_EXPIRED, NULL) > 0);
}

static void nothing_goes_that_any_of_those_keeps_that_rule(void **state) {
  (void)state;
  for (unsigned seed = 1; seed <= 4; seed++) {
    run_host *h = run_host_new(NULL);
    any_order(h, seed);
    run_host_free(h);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(what_new_policies_say_of_saving_rules_at_once),
      WITH_HOST(what_policies_before_keep_stays_until_their_grace_is_over),
      WITH_HOST(without_a_grace_new_policies_rule_at_once),
      WITH_HOST(each_of_several_rules_until_its_own_grace_is_over),
      WITH_HOST(policies_before_without_a_rule_keep_all_for_the_grace),
      WITH_HOST(the_difference_of_what_is_kept_is_told),
      WITH_HOST(what_there_is_no_time_to_compare_is_counted),
      WITH_HOST(policies_before_go_on_by_a_memory_of_their_own),
      WITH_HOST(policies_that_empty_their_memory_are_compared_by_what_they_say),
      WITH_HOST(all_groups_take_them_and_each_is_remembered_by_itself),
      WITH_HOST(what_is_kept_here_is_ruled_by_those_before_as_long),
      WITH_HOST(the_queue_lets_nothing_go_that_any_of_those_wants_that_rule),
      WITH_HOST(the_queue_goes_on_letting_go_beside_policies_without_keep),
      WITH_HOST(the_queue_asks_those_before_by_a_memory_of_their_own),
      WITH_HOST(generations_stay_as_long_as_one_of_those_keeps_them),
      WITH_HOST(each_of_those_that_rule_hears_of_a_commit_once),
      WITH_HOST(a_start_begins_with_the_new_ones_alone),
      WITH_HOST(new_policies_begin_with_the_memory_that_there_is),
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
      WITH_HOST(a_pass_that_began_is_finished_by_those_that_ruled_then),
      WITH_HOST(a_process_of_the_policies_that_rests_is_asked_later),
      cmocka_unit_test(nothing_goes_that_any_of_those_keeps_that_rule),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
