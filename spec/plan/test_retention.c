/* What may go and what may not: examples, and a property over random logs, with policies that say
 * anything. Run with a seed as argument: that one alone. */
#include "with_cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/retention.h"
#include "manifest_make.h"

enum { COMMITS_MAX = 64 };

typedef struct log_of {
  runlog_state state;
  runlog_commit commits[COMMITS_MAX];
  retention_item items[COMMITS_MAX];
  bool keep[COMMITS_MAX];
} log_of;

static char *const units[] = {"checkpoint-1", "checkpoint-2", "checkpoint-3", "checkpoint-4",
                              "last.ckpt",    "best.pt",      "epoch=1.ckpt", "epoch=2.ckpt"};
enum { NAMES = sizeof units / sizeof units[0] };

static const retention_guard nobody = {.resumed = RUNLOG_NONE, .verified = RUNLOG_NONE};
static const retention_limits no_limit = {.max_drop = 1};

static runlog_commit *add(log_of *l, int name) {
  l->state.commits = l->commits;
  assert_true(l->state.commit_count < COMMITS_MAX);
  runlog_commit *c = &l->commits[l->state.commit_count++];
  *c = (runlog_commit){.n = l->state.next + 10, .unit = units[name], .dir = units[name]};
  c->step = name < 4 ? name + 1 : MATCH_NO_STEP;
  l->state.next += 3;
  return c;
}

static const retention_item *plan(log_of *l, const retention_guard *guard,
                                  const retention_limits *limits) {
  retention_plan(&l->state, l->keep, guard, limits, l->items);
  return l->items;
}

static retention_verdict verdict_of(log_of *l, size_t i) {
  return l->items[i].verdict;
}

/* ---- examples ---- */

static void what_was_saved_under_other_flags_stays(void **state) {
  log_of l = {0};
  for (int i = 0; i < 4; i++) add(&l, i);
  l.state.flags_since = l.commits[2].n;
  plan(&l, &nobody, &no_limit);
  assert_int_equal(verdict_of(&l, 0), RETENTION_GUARDED);
  assert_non_null(strstr(l.items[0].reason, "other flags"));
  assert_int_equal(verdict_of(&l, 1), RETENTION_GUARDED);
  assert_int_equal(verdict_of(&l, 2), RETENTION_DROP);
  assert_null(retention_guarded(&l.state, &l.commits[0], &nobody, RETENTION_BY_HAND));
  l.state.flags_since = 0;
  plan(&l, &nobody, &no_limit);
  assert_int_equal(verdict_of(&l, 0), RETENTION_DROP);
}

static void what_the_newest_lists_stays_while_it_does(void **state) {
  log_of l = {0};
  char needs[64];
  for (int i = 0; i < 4; i++) add(&l, i);
  snprintf(needs, sizeof needs, "%s/", l.commits[1].unit);
  l.commits[3].needs = needs;
  plan(&l, &nobody, &no_limit);
  assert_int_equal(verdict_of(&l, 0), RETENTION_DROP);
  assert_int_equal(verdict_of(&l, 1), RETENTION_GUARDED);
  assert_non_null(strstr(l.items[1].reason, "names it"));
  assert_non_null(retention_guarded(&l.state, &l.commits[1], &nobody, RETENTION_BY_HAND));
  assert_null(retention_guarded(&l.state, &l.commits[1], &nobody, RETENTION_ALL));
  l.commits[1].life = RUNLOG_DROPPED; /* its data stays, too */
  assert_non_null(retention_guarded(&l.state, &l.commits[1], &nobody, RETENTION_POLICY));
  l.commits[1].life = RUNLOG_LIVE;
  l.commits[3].needs = NULL; /* an older list is put back by no start */
  l.commits[2].needs = needs;
  plan(&l, &nobody, &no_limit);
  assert_int_equal(verdict_of(&l, 1), RETENTION_DROP);
}

static void what_the_newest_of_each_kind_lists_is_told(void **state) {
  log_of l = {0};
  names told = {0};
  char newest[] = "b/a/b/", older[] = "c/";
  for (int i = 0; i < 4; i++) add(&l, i);
  l.commits[2].needs = older;
  assert_true(retention_listed(&l.state, &told));
  assert_int_equal(told.count, 0);
  l.commits[3].needs = newest;
  assert_true(retention_listed(&l.state, &told));
  assert_int_equal(told.count, 2);
  assert_true(names_has(&told, "a") && names_has(&told, "b"));
  l.commits[3].bad = true;
  assert_true(retention_listed(&l.state, &told));
  assert_true(told.count == 1 && names_has(&told, "c"));
  names_free(&told);
}

static void what_the_policy_keeps_is_kept(void **state) {
  log_of l = {0};
  for (int i = 0; i < 4; i++) add(&l, i);
  l.keep[1] = true;
  plan(&l, &nobody, &no_limit);
  assert_int_equal(verdict_of(&l, 0), RETENTION_DROP);
  assert_int_equal(verdict_of(&l, 1), RETENTION_KEEP);
  assert_int_equal(verdict_of(&l, 2), RETENTION_DROP);
}

static void a_bad_one_is_not_the_newest_that_must_stay_and_the_one_before_it_is(void **state) {
  log_of l = {0};
  for (int i = 0; i < 4; i++) add(&l, i);
  l.commits[3].bad = true;
  plan(&l, &nobody, &no_limit);
  assert_int_equal(verdict_of(&l, 3), RETENTION_DROP);
  assert_int_equal(verdict_of(&l, 2), RETENTION_GUARDED);
  assert_int_equal(verdict_of(&l, 1), RETENTION_DROP);
}

static void a_bad_one_that_is_all_there_is_stays(void **state) {
  log_of l = {0};
  add(&l, 0)->bad = true;
  add(&l, 1)->bad = true;
  add(&l, 4); /* of another kind */
  plan(&l, &nobody, &no_limit);
  for (size_t i = 0; i < 3; i++) assert_int_equal(verdict_of(&l, i), RETENTION_GUARDED);
}

static void a_policy_is_not_asked_about_bad_ones(void **state) {
  log_of l = {0};
  policy_item items[COMMITS_MAX];
  for (int i = 0; i < 4; i++) add(&l, i);
  l.commits[3].bad = l.commits[1].bad = true;
  assert_int_equal(retention_items(&l.state, items), 2);
  assert_int_equal(items[0].number, l.commits[0].n);
  assert_int_equal(items[1].number, l.commits[2].n);
  assert_true(items[1].newest);
}

/* Keeps the last two that are good. */
static void a_bad_one_goes_with_the_good_ones_before_it(void **state) {
  log_of l = {0};
  policy_kept said[4] = {0}, all[COMMITS_MAX];
  static const int order[] = {0, 1, 2, 3};
  for (int i = 0; i < 4; i++) add(&l, order[i]);
  l.commits[1].bad = true; /* 1, (2), 3, 4: good are 1, 3 and 4 */
  said[0].keep = said[1].keep = said[2].keep = true;
  retention_spread(&l.state, said, all);
  assert_true(all[0].keep && all[1].keep && all[2].keep && all[3].keep);
  said[0].keep = false;
  retention_spread(&l.state, said, all);
  assert_false(all[0].keep);
  assert_false(all[1].keep);
  assert_true(all[2].keep && all[3].keep);
  assert_non_null(strstr(all[1].reason, "marked bad"));
  retention_spread(&l.state, NULL, all);
  for (size_t i = 0; i < 4; i++) assert_true(all[i].keep);
}

static void without_an_answer_all_is_kept(void **state) {
  log_of l = {0};
  for (int i = 0; i < 4; i++) add(&l, i);
  retention_plan(&l.state, NULL, &nobody, &no_limit, l.items);
  for (size_t i = 0; i < 4; i++) assert_int_equal(verdict_of(&l, i), RETENTION_KEEP);
}

static void the_newest_of_each_kind_stays_whatever_is_said(void **state) {
  log_of l = {0};
  add(&l, 4); /* last.ckpt: older than the others, and the only one of its kind */
  for (int i = 0; i < 4; i++) add(&l, i);
  plan(&l, &nobody, &no_limit);
  assert_int_equal(verdict_of(&l, 0), RETENTION_GUARDED);
  assert_int_equal(verdict_of(&l, 4), RETENTION_GUARDED);
  assert_non_null(strstr(l.items[4].reason, "newest"));
  assert_int_equal(verdict_of(&l, 3), RETENTION_DROP);
}

static void the_last_two_generations_of_a_name_stay(void **state) {
  log_of l = {0};
  for (int i = 0; i < 4; i++) add(&l, 4);
  plan(&l, &nobody, &no_limit);
  assert_int_equal(verdict_of(&l, 0), RETENTION_DROP);
  assert_int_equal(verdict_of(&l, 1), RETENTION_DROP);
  assert_int_equal(verdict_of(&l, 2), RETENTION_GUARDED);
  assert_int_equal(verdict_of(&l, 3), RETENTION_GUARDED);
}

static void a_step_that_was_saved_twice_is_no_generation_once_it_is_passed(void **state) {
  log_of l = {0};
  add(&l, 0);
  add(&l, 0);
  add(&l, 1);
  plan(&l, &nobody, &no_limit);
  assert_int_equal(verdict_of(&l, 0), RETENTION_DROP);
  assert_int_equal(verdict_of(&l, 1), RETENTION_DROP);
}

static void what_is_pinned_resumed_or_verified_stays(void **state) {
  log_of l = {0};
  for (int i = 0; i < 4; i++) add(&l, i);
  uint64_t pinned[] = {999, l.commits[0].n};
  retention_guard guard = {pinned, 2, l.commits[1].n, l.commits[2].n};
  plan(&l, &guard, &no_limit);
  for (size_t i = 0; i < 4; i++) assert_int_equal(verdict_of(&l, i), RETENTION_GUARDED);
  assert_non_null(strstr(l.items[0].reason, "pinned"));
  assert_non_null(strstr(l.items[1].reason, "goes on from"));
  assert_non_null(strstr(l.items[2].reason, "verified"));
}

static void one_pass_drops_a_share_and_at_least_one_oldest_first(void **state) {
  static const struct {
    double share;
    size_t most;
  } cases[] = {{0.25, 4}, {0.01, 1}, {0, 1}, {-3, 1}, {0.5, 8}, {1, 15}, {7, 15}, {NAN, 1}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    log_of l = {0};
    for (int i = 0; i < 16; i++) add(&l, i < 15 ? i % 3 : 3);
    retention_limits limits = {.max_drop = cases[k].share};
    plan(&l, &nobody, &limits);
    for (size_t i = 0; i < 15; i++)
      assert_int_equal(verdict_of(&l, i), i < cases[k].most ? RETENTION_DROP : RETENTION_LIMITED);
    assert_int_equal(verdict_of(&l, 15), RETENTION_GUARDED);
  }
}

static void data_goes_when_the_grace_is_over_and_not_before(void **state) {
  log_of l = {0};
  for (int i = 0; i < 3; i++) add(&l, i);
  l.commits[0].life = l.commits[1].life = RUNLOG_DROPPED;
  l.commits[0].drop_ns = 1000;
  l.commits[1].drop_ns = 2000;
  retention_limits limits = {.grace_ns = 500, .now_ns = 1500};
  plan(&l, &nobody, &limits);
  assert_int_equal(verdict_of(&l, 0), RETENTION_DELETE);
  assert_int_equal(verdict_of(&l, 1), RETENTION_WAIT);
  assert_int_equal(l.items[1].wait_ns, 1000);
  limits.no_delete = true;
  plan(&l, &nobody, &limits);
  assert_int_equal(verdict_of(&l, 0), RETENTION_WAIT);
  l.commits[0].life = RUNLOG_DELETED;
  plan(&l, &nobody, &limits);
  assert_int_equal(verdict_of(&l, 0), RETENTION_GONE);
}

static void a_pin_keeps_the_data_of_what_was_dropped(void **state) {
  log_of l = {0};
  for (int i = 0; i < 2; i++) add(&l, i);
  l.commits[0].life = RUNLOG_DROPPED;
  uint64_t pinned[] = {l.commits[0].n};
  retention_guard guard = {pinned, 1, RUNLOG_NONE, RUNLOG_NONE};
  plan(&l, &guard, &no_limit);
  assert_int_equal(verdict_of(&l, 0), RETENTION_GUARDED);
}

static void of_a_kind_of_which_nothing_lives_the_newest_is_not_deleted(void **state) {
  log_of l = {0};
  for (int i = 0; i < 3; i++) add(&l, i)->life = RUNLOG_DROPPED;
  plan(&l, &nobody, &no_limit);
  assert_int_equal(verdict_of(&l, 1), RETENTION_DELETE);
  assert_int_equal(verdict_of(&l, 2), RETENTION_GUARDED);
  retention_limits all = {.word = RETENTION_ALL};
  plan(&l, &nobody, &all);
  assert_int_equal(verdict_of(&l, 2), RETENTION_DELETE);
}

static void by_hand_neither_generations_nor_shares_stand_in_the_way(void **state) {
  log_of l = {0};
  for (int i = 0; i < 5; i++) add(&l, 4);
  retention_limits hand = {.word = RETENTION_BY_HAND, .max_drop = 0.1};
  plan(&l, &nobody, &hand);
  for (size_t i = 0; i < 4; i++) assert_int_equal(verdict_of(&l, i), RETENTION_DROP);
  assert_int_equal(verdict_of(&l, 4), RETENTION_GUARDED);
}

static void times_that_no_clock_has_overflow_nothing(void **state) {
  const int64_t times[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
  const size_t n = sizeof times / sizeof times[0];
  for (size_t i = 0; i < n * n * n; i++) {
    log_of l = {0};
    add(&l, 0)->life = RUNLOG_DROPPED;
    add(&l, 1);
    l.commits[0].drop_ns = times[i % n];
    retention_limits limits = {.grace_ns = times[i / n % n], .now_ns = times[i / n / n]};
    plan(&l, &nobody, &limits);
    assert_true(l.items[0].wait_ns >= 0);
    if (limits.grace_ns > 0 && limits.now_ns <= l.commits[0].drop_ns)
      assert_int_equal(verdict_of(&l, 0), RETENTION_WAIT);
  }
}

/* ---- the property ---- */

enum { WORLDS = 3000, STEPS = 30, GRACE = 20 };

typedef struct world {
  log_of log;
  uint64_t seed, random;
  int64_t now;
  uint64_t pinned[8];
  retention_guard guard;
  long drops, deletes, refused;
} world;

static uint64_t roll(world *w, uint64_t sides) {
  return next_random(&w->random) % sides;
}

/* A second notion of what is of one kind: the same but for digits. */
static bool same_kind(const char *a, const char *b) {
  while (*a && *b) {
    bool x = *a >= '0' && *a <= '9', y = *b >= '0' && *b <= '9';
    if (x != y || (!x && *a != *b)) return false;
    a++;
    b++;
  }
  return *a == *b;
}

static void must(const world *w, bool ok, const char *what, const runlog_commit *c) {
  if (!ok)
    fail_msg("seed %llu: commit %llu (%s): %s", (unsigned long long)w->seed,
             (unsigned long long)c->n, c->unit, what);
}

static void must_be_free(const world *w, const runlog_commit *c) {
  for (size_t i = 0; i < w->guard.pinned_count; i++)
    must(w, w->guard.pinned[i] != c->n, "it was pinned", c);
  must(w, w->guard.resumed != c->n && w->guard.verified != c->n, "it was guarded", c);
}

/* Live commits after `c` in the log of its kind, and of its name. */
static void count_after(const world *w, const runlog_commit *c, int *kind, int *name) {
  *kind = *name = 0;
  for (const runlog_commit *o = c + 1; o < w->log.commits + w->log.state.commit_count; o++) {
    if (o->life != RUNLOG_LIVE) continue;
    *kind += same_kind(o->unit, c->unit);
    *name += strcmp(o->unit, c->unit) == 0;
  }
}

static void check_drop(const world *w, const runlog_commit *c) {
  int kind, name;
  must_be_free(w, c);
  must(w, c->life == RUNLOG_LIVE, "it was not live", c);
  count_after(w, c, &kind, &name);
  must(w, kind > 0, "the newest of its kind was dropped", c);
  must(w, name != 1 || kind != name, "one of the last two generations was dropped", c);
}

static void check_delete(const world *w, const runlog_commit *c) {
  bool other = false;
  must_be_free(w, c);
  must(w, c->life == RUNLOG_DROPPED, "it was not dropped", c);
  must(w, w->now - c->drop_ns >= GRACE, "its grace was not over", c);
  for (size_t i = 0; i < w->log.state.commit_count; i++) {
    const runlog_commit *o = &w->log.commits[i];
    other |= o != c && same_kind(o->unit, c->unit) && o->life != RUNLOG_DELETED;
  }
  must(w, other, "the last of its kind was deleted", c);
}

/* Pins come and go, and others append. */
static void meddle(world *w) {
  log_of *l = &w->log;
  size_t count = l->state.commit_count;
  if (roll(w, 3) == 0 && count < COMMITS_MAX - 1) add(l, (int)roll(w, NAMES));
  w->guard.pinned_count = roll(w, 4);
  for (size_t i = 0; i < w->guard.pinned_count; i++)
    w->pinned[i] = count && roll(w, 4) ? l->commits[roll(w, count)].n : roll(w, 500);
  if (!count || roll(w, 6)) return;
  runlog_commit *c = &l->commits[roll(w, count)]; /* a guest removes one by hand */
  if (c->life != RUNLOG_LIVE || retention_guarded(&l->state, c, &w->guard, RETENTION_BY_HAND))
    return;
  c->life = RUNLOG_DROPPED;
  c->drop_ns = w->now;
}

/* As prune does it: what was planned is asked again on the log of then. */
static void act(world *w, const runlog_commit *planned, retention_verdict what) {
  runlog_commit *c = &w->log.commits[planned - w->log.commits];
  bool fits = c->life == (what == RETENTION_DROP ? RUNLOG_LIVE : RUNLOG_DROPPED);
  if (!fits || retention_guarded(&w->log.state, c, &w->guard, RETENTION_POLICY)) {
    w->refused++;
    return;
  }
  if (what == RETENTION_DROP) {
    check_drop(w, c);
    c->life = RUNLOG_DROPPED;
    c->drop_ns = w->now;
    w->drops++;
  } else {
    check_delete(w, c);
    c->life = RUNLOG_DELETED;
    w->deletes++;
  }
}

static void one_pass(world *w) {
  log_of *l = &w->log;
  int style = (int)roll(w, 4); /* hostile, random, generous, forgetful */
  size_t live = 0, dropped = 0, before = l->state.commit_count;
  retention_limits limits = {.max_drop = (double)roll(w, 5) / 4, .grace_ns = GRACE};
  limits.now_ns = w->now;
  for (size_t i = 0; i < before; i++) {
    l->keep[i] = style == 0 ? false : style == 1 ? roll(w, 2) : style == 2 ? roll(w, 5) : i == 0;
    live += l->commits[i].life == RUNLOG_LIVE;
  }
  plan(l, &w->guard, &limits);
  for (size_t i = 0; i < before; i++) dropped += verdict_of(l, i) == RETENTION_DROP;
  size_t most = (size_t)((double)live * limits.max_drop);
  must(w, dropped <= (most ? most : 1), "too many go in one pass", l->commits);
  for (size_t i = 0; i < before; i++) {
    if (roll(w, 3) == 0) meddle(w);
    retention_verdict v = verdict_of(l, i);
    if (v == RETENTION_DROP || v == RETENTION_DELETE) act(w, &l->commits[i], v);
  }
}

static uint64_t only_seed;

static void no_policy_drops_or_deletes_what_must_stay(void **state) {
  long drops = 0, deletes = 0, refused = 0;
  uint64_t first = only_seed ? only_seed : 1, last = only_seed ? only_seed : WORLDS;
  for (uint64_t seed = first; seed <= last; seed++) {
    world w = {.seed = seed, .random = seed, .guard = nobody};
    w.guard.pinned = w.pinned;
    for (int i = 0; i < STEPS; i++) {
      w.now += (int64_t)roll(&w, 12);
      if (w.log.state.commit_count < COMMITS_MAX / 2) add(&w.log, (int)roll(&w, NAMES));
      if (roll(&w, 10) == 0) w.guard.resumed = w.log.commits[roll(&w, w.log.state.commit_count)].n;
      meddle(&w);
      one_pass(&w);
    }
    drops += w.drops;
    deletes += w.deletes;
    refused += w.refused;
  }
  print_message("%ld drops, %ld deletes, %ld refused at the last moment\n", drops, deletes,
                refused);
  if (only_seed) return;
  assert_true(drops > WORLDS && deletes > WORLDS && refused > WORLDS / 10);
}

int main(int argc, char **argv) {
  if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_was_saved_under_other_flags_stays),
      cmocka_unit_test(what_the_newest_lists_stays_while_it_does),
      cmocka_unit_test(what_the_newest_of_each_kind_lists_is_told),
      cmocka_unit_test(what_the_policy_keeps_is_kept),
      cmocka_unit_test(a_bad_one_is_not_the_newest_that_must_stay_and_the_one_before_it_is),
      cmocka_unit_test(a_bad_one_that_is_all_there_is_stays),
      cmocka_unit_test(a_policy_is_not_asked_about_bad_ones),
      cmocka_unit_test(a_bad_one_goes_with_the_good_ones_before_it),
      cmocka_unit_test(without_an_answer_all_is_kept),
      cmocka_unit_test(the_newest_of_each_kind_stays_whatever_is_said),
      cmocka_unit_test(the_last_two_generations_of_a_name_stay),
      cmocka_unit_test(a_step_that_was_saved_twice_is_no_generation_once_it_is_passed),
      cmocka_unit_test(what_is_pinned_resumed_or_verified_stays),
      cmocka_unit_test(one_pass_drops_a_share_and_at_least_one_oldest_first),
      cmocka_unit_test(data_goes_when_the_grace_is_over_and_not_before),
      cmocka_unit_test(a_pin_keeps_the_data_of_what_was_dropped),
      cmocka_unit_test(of_a_kind_of_which_nothing_lives_the_newest_is_not_deleted),
      cmocka_unit_test(by_hand_neither_generations_nor_shares_stand_in_the_way),
      cmocka_unit_test(times_that_no_clock_has_overflow_nothing),
      cmocka_unit_test(no_policy_drops_or_deletes_what_must_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
