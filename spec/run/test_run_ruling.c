/* Other policies in the middle of a run, once they are taken: what they rule at once, and what is kept until those
 * before rule no more. The policies are asked for real. */
#include "with_cmocka.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decision/policy_link.h"
#include "reloads.h"
#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static const double hour = 3600;

/* ---- what is taken ---- */

static void what_new_policies_say_of_saving_rules_at_once(void **state) {
  run_host *h = *state;
  reloads_begin(h, "return { api = 1, sync = function() return 'skip', 'not yet' end }", hour);
  run_host_save(h, "ckpt-1.pt", RUN_SKIPPED);
  run_reload_result r = reloads_take(h, "return { api = 1, sync = function() return 'sync' end }");
  assert_int_equal(r.status, 0);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt"); /* it was held back, and is asked about again */
}

static void what_policies_before_keep_stays_until_their_grace_is_over(void **state) {
  run_host *h = *state;
  reloads_begin(h, reloads_multiples(1), hour);
  reloads_save_to(h, 4);
  assert_int_equal(reloads_take(h, reloads_multiples(4)).status, 0);
  reloads_save(h, 5);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt ckpt-3.pt ckpt-4.pt ckpt-5.pt");
  run_host_skip(h, hour - 100);
  reloads_save(h, 6);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, NULL), 0);
  run_host_skip(h, 101);
  run_host_step(h, NULL);
  reloads_settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-4.pt ckpt-6.pt");
  assert_string_equal(run_host_reason(h, RUN_EXPIRED, "ckpt-1.pt"),
                      "its function does not keep it");
}

static void without_a_grace_new_policies_rule_at_once(void **state) {
  run_host *h = *state;
  reloads_begin(h, reloads_multiples(1), 0);
  reloads_save_to(h, 3);
  assert_int_equal(reloads_take(h, reloads_multiples(2)).status, 0);
  reloads_settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-3.pt");
}

/* 2 and 3 are kept by one alone, and each goes when that one's own grace is over. */
static void each_of_several_rules_until_its_own_grace_is_over(void **state) {
  run_host *h = *state;
  reloads_begin(h, reloads_multiples(2), hour);
  reloads_save_to(h, 1);
  reloads_save(h, 2);
  reloads_save(h, 5);
  run_host_skip(h, 0);
  assert_int_equal(reloads_take(h, reloads_multiples(3)).status, 0);
  reloads_save(h, 3);
  run_host_skip(h, hour / 2);
  assert_int_equal(reloads_take(h, reloads_multiples(7)).status, 0);
  reloads_save(h, 7);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-3.pt ckpt-7.pt");
  run_host_skip(h, hour / 2 + 10);
  run_host_step(h, NULL);
  reloads_settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-3.pt ckpt-7.pt");
  run_host_skip(h, hour / 2);
  run_host_step(h, NULL);
  reloads_settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-7.pt");
}

/* One that has no `keep` keeps all. */
static void policies_before_without_a_rule_keep_all_for_the_grace(void **state) {
  run_host *h = *state;
  reloads_begin(h, "return { api = 1 }", hour);
  reloads_save_to(h, 3);
  assert_int_equal(reloads_take(h, reloads_multiples(5)).status, 0);
  reloads_save(h, 5);
  assert_int_equal(run_host_count(h, RUN_EXPIRED, NULL), 0);
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  reloads_settle(h);
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
  reloads_begin(h, reloads_multiples(1), hour);
  reloads_save_to(h, 3);
  run_reload_result r = reloads_as(h, reloads_multiples(2), true);
  assert_true(r.dry && r.left_ns == (int64_t)(hour * 1e9)); /* as it would be */
  assert_string_equal(changes(h, 1), "ckpt-1.pt 1>0, ckpt-3.pt 1>0");
  assert_string_equal(changes(h, 0), ""); /* nothing was taken */
  assert_string_equal(run_host_status(h).policies, "p");
  reloads_take(h, reloads_multiples(2));
  assert_string_equal(changes(h, 2), "ckpt-1.pt 1>0, ckpt-3.pt 1>0");
  reloads_save(h, 5);
  assert_string_equal(changes(h, 0), "ckpt-1.pt 1>0, ckpt-3.pt 1>0, ckpt-5.pt 1>0");
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  assert_string_equal(changes(h, 0), "");
}

static void what_there_is_no_time_to_compare_is_counted(void **state) {
  run_host *h = *state;
  reloads_begin(h, reloads_multiples(1), hour);
  reloads_save_to(h, 3);
  run_host_run(h)->compare_ns = 0;
  run_reload_result r = reloads_take(h, reloads_multiples(2));
  assert_int_equal(r.status, 0);
  assert_int_equal(r.uncompared, 3);
  assert_string_equal(changes(h, 1), "");
}

static void policies_before_go_on_by_a_memory_of_their_own(void **state) {
  run_host *h = *state;
  reloads_begin(h, RELOADS_KEEPS_FIRST, hour);
  reloads_save_to(h, 2);
  assert_int_equal(reloads_take(h, "return { api = 1, keep = function(list, memory)\n"
                                   "  memory.first, memory.seen = 'none', true\n"
                                   "  return {}, 'none' end }")
                       .status,
                   0);
  reloads_save_to(h, 0);
  reloads_save(h, 3);
  reloads_save(h, 4);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-4.pt");
  assert_non_null(strstr(run_host_run(h)->groups[0]->memory, "\"seen\":true"));
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  reloads_settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-4.pt");
}

static void save_below(run_host *h, const char *dir, int step) {
  char name[64];
  if (!path_exists(run_host_dir(h, dir))) make_dir(run_host_dir(h, dir));
  snprintf(name, sizeof name, "%s/ckpt-%d.pt", dir, step);
  run_host_save(h, name, RUN_COMMITTED);
  reloads_settle(h);
}

static void policies_that_empty_their_memory_are_compared_by_what_they_say(void **state) {
  run_host *h = *state;
  reloads_begin(h, RELOADS_KEEPS_FIRST, hour);
  reloads_save_to(h, 2);
  assert_non_null(run_host_run(h)->groups[0]->memory);
  assert_int_equal(reloads_take(h, "return { api = 1, keep = function(list, memory)\n"
                                   "  for key in pairs(memory) do memory[key] = nil end\n"
                                   "  return {}, 'none' end }")
                       .status,
                   0);
  assert_string_equal(changes(h, 1), "ckpt-1.pt 1>0");
}

static void all_groups_take_them_and_each_is_remembered_by_itself(void **state) {
  run_host *h = *state;
  reloads_begin(h, RELOADS_KEEPS_FIRST, hour);
  for (int i = 1; i <= 2; i++) {
    save_below(h, "a", i);
    save_below(h, "b", i + 4);
  }
  assert_int_equal(
      reloads_take(h, "return { api = 1, keep = function() return {}, 'none' end }").status, 0);
  assert_string_equal(changes(h, 1), "ckpt-1.pt 1>0, ckpt-5.pt 1>0");
  save_below(h, "a", 3);
  save_below(h, "b", 7);
  save_below(h, "c", 9); /* a group that those before have not seen */
  save_below(h, "c", 10);
  assert_string_equal(run_host_commits(h), "a/ckpt-1.pt a/ckpt-3.pt b/ckpt-5.pt b/ckpt-7.pt "
                                           "c/ckpt-9.pt c/ckpt-10.pt");
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  reloads_settle(h);
  assert_string_equal(run_host_commits(h), "a/ckpt-3.pt b/ckpt-7.pt c/ckpt-10.pt");
}

static void what_is_kept_here_is_ruled_by_those_before_as_long(void **state) {
  run_host *h = *state;
  reloads_begin(h, "return { api = 1, keep_local = keep.last(3) }", hour);
  reloads_save_to(h, 2);
  assert_int_equal(reloads_take(h, "return { api = 1, keep_local = keep.last(1) }").status, 0);
  reloads_save(h, 3);
  reloads_save(h, 4);
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
  reloads_begin(h, reloads_multiples(2), hour);
  run_host_hold_save(h, "ckpt-1.pt", "one");
  let_wait(h, 2, 2);
  assert_int_equal(reloads_take(h, reloads_multiples(3)).status, 0);
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
  reloads_begin(h, "return { api = 1 }", hour);
  run_host_hold_save(h, "ckpt-1.pt", "one");
  assert_int_equal(reloads_take(h, reloads_multiples(3)).status, 0);
  let_wait(h, 2, 5);
  for (int i = 2; i <= 5; i++) dropped(h, i, i == 2 || i == 4);
  assert_int_equal(reloads_take(h, "return { api = 1, queue = 'newest' }").status, 0);
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
  reloads_begin(h,
                "return { api = 1, keep = function(list, memory)\n"
                "  memory.wants = memory.wants or 4\n"
                "  local kept = {}\n"
                "  for _, c in ipairs(list) do if c.step == memory.wants then kept[1] = c end end\n"
                "  return kept, 'what it wants' end }",
                hour);
  reloads_save_to(h, 1);
  run_host_hold_save(h, "ckpt-2.pt", "two");
  assert_int_equal(reloads_take(h, "return { api = 1, keep = function(list, memory)\n"
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
  reloads_begin(h, "return { api = 1, keep_in_place = 'all' }", hour);
  assert_int_equal(reloads_take(h, "return { api = 1 }").status, 0);
  assert_false(ruling_keeps_few(&run_host_run(h)->replaced));
  for (int i = 0; i < 6; i++) {
    run_host_skip(h, 600);
    run_host_write(h, "last.pt", (const char *[]){"a", "b", "c", "d", "e", "f"}[i], RUN_COMMITTED);
    reloads_settle(h);
    if (i == 4) assert_int_equal(run_host_count(h, RUN_EXPIRED, NULL), 0);
  }
  run_host_skip(h, hour + 1);
  run_host_step(h, NULL);
  reloads_settle(h);
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
  reloads_begin(h, before, hour);
  reloads_save_to(h, 2);
  assert_int_equal(reloads_take(h, after).status, 0);
  reloads_save(h, 3);
  const run *r = run_host_run(h);
  assert_int_equal(r->replaced.count, 1);
  assert_non_null(strstr(r->groups[0]->memory, "\"n\":3"));
  assert_non_null(strstr(r->replaced.at[0].memories.at[0].text, "\"n\":3"));
}

/* It reads the files that its command names, as they are then. What it went on from stays in any case. */
static void a_start_begins_with_the_new_ones_alone(void **state) {
  run_host *h = *state;
  reloads_begin(h, reloads_multiples(1), hour);
  reloads_save_to(h, 3);
  assert_int_equal(reloads_take(h, reloads_multiples(2)).status, 0);
  run_host_close(h);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-2.pt ckpt-3.pt");
  run_host_begin(h);
  reloads_save(h, 5);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-3.pt ckpt-5.pt");
}

static void new_policies_begin_with_the_memory_that_there_is(void **state) {
  run_host *h = *state;
  reloads_begin(h, RELOADS_KEEPS_FIRST, 0);
  reloads_save_to(h, 2);
  assert_int_equal(reloads_take(h, RELOADS_KEEPS_FIRST " -- another text").status, 0);
  reloads_save(h, 3);
  assert_string_equal(run_host_commits(h), "ckpt-1.pt ckpt-3.pt");
}

/* ---- a pass that is under way ---- */

static void a_pass_that_began_is_finished_by_those_that_ruled_then(void **state) {
  run_host *h = *state;
  reloads_begin(h, reloads_multiples(2), hour);
  reloads_save(h, 1);
  write_file(run_host_dir(h, "ckpt-2.pt"), "two");
  for (int64_t i = 0; i < 100000000 && !run_host_run(h)->groups[0]->keeping; i++)
    run_host_step(h, NULL);
  assert_non_null(run_host_run(h)->groups[0]->keeping);
  assert_int_equal(reloads_take(h, reloads_multiples(1)).status, 0);
  reloads_settle(h);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt");
  reloads_save(h, 3);
  reloads_save(h, 4);
  assert_string_equal(run_host_commits(h), "ckpt-2.pt ckpt-3.pt ckpt-4.pt");
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
  reloads_begin(h, reloads_multiples(m.n[0]), hour);
  for (int turn = 0; turn < 60; turn++) {
    next = next * 1103515245 + 12345;
    const unsigned what = next >> 16 & 15, more = next >> 20 & 7;
    char name[32];
    if (what < 7) {
      snprintf(name, sizeof name, "ckpt-%d.pt", ++step);
      run_host_save(h, name, RUN_COMMITTED);
      m.committed[step] = true;
    } else if (what < 10 && m.count < 60) {
      const run_reload_result r = reloads_take(h, reloads_multiples(1 + (int)more));
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
    if (more % 2) reloads_settle(h);
    check(h, &m, sure, seed);
    if (more % 2) sure = m.count;
  }
  reloads_settle(h);
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
      WITH_HOST(a_pass_that_began_is_finished_by_those_that_ruled_then),
      cmocka_unit_test(nothing_goes_that_any_of_those_keeps_that_rule),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
