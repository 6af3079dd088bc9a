/* Retention inside a run: when the policy is asked, what goes, what is told, and that no save
 * waits. The policy is the helper of policy_helper.h: it answers what the test puts into the
 * memory. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "commit/pins.h"
#include "run/run_state.h"
#include "policy_helper.h"
#include "run_host.h"
#include "tmpdir.h"

#define KEEPS "{\"ok\":true,\"has\":{\"keep\":[\"p\"]}}"

typedef struct scene {
  policy_world *world;
  run_host *host;
  char *policy;
  const char *names[2];
} scene;

static scene *scene_new(const char *loads) {
  scene *s = calloc(1, sizeof *s);
  s->world = policy_world_new();
  s->host = run_host_new(NULL);
  s->policy = strdup(tmpdir_path(s->world->dir, "p.lua"));
  write_file(s->policy, loads);
  s->names[0] = s->policy;
  ((run_env *)run_host_env(s->host))->policies = s->world->link;
  run_options *o = run_host_options(s->host);
  o->policies = s->names;
  o->max_delete = 1;
  return s;
}

static void scene_free(scene *s) {
  run_host_close(s->host);
  ((run_env *)run_host_env(s->host))->policies = NULL; /* the link is the world's */
  policy_world_free(s->world);
  run_host_free(s->host);
  free(s->policy);
  free(s);
}

static int set_up(void **state) {
  *state = scene_new(KEEPS);
  return 0;
}

static int tear_down(void **state) {
  scene_free(*state);
  return 0;
}

static run_group *root(scene *s) {
  return run_host_run(s->host)->groups[0];
}

/* What the policy says of so many commits from now on: 'k' keeps, 'd' does not; NULL: nonsense. */
static void says(scene *s, const char *word) {
  buf keep, why, reasons, answer;
  buf_init(&keep, 4096);
  buf_init(&why, 4096);
  buf_init(&reasons, 4096);
  buf_init(&answer, 16384);
  for (const char *at = word ? word : ""; *at; at++) {
    const char *gap = at == word ? "" : ",";
    buf_str(&keep, *at == 'k' ? "1" : "0");
    buf_fmt(&why, "%s%d", gap, (int)(at - word) + 1);
    buf_fmt(&reasons, "%s\"said %c\"", gap, *at);
  }
  buf_fmt(&answer,
          "{\"ok\":true,\"answer\":{\"keep\":\"%s\",\"why\":[%s],\"reasons\":[%s]},\"by\":\"p\"}",
          keep.len ? keep.data : "", why.len ? why.data : "", reasons.len ? reasons.data : "");
  free(root(s)->memory);
  root(s)->memory = policy_world_memory(answer.data);
  buf_free(&keep);
  buf_free(&why);
  buf_free(&reasons);
  buf_free(&answer);
}

static void save(scene *s, const char *name) {
  write_file(run_host_dir(s->host, name), name);
  run_host_until(s->host, RUN_COMMITTED, name);
}

static void settle_down(scene *s) {
  for (int i = 0; i < 400 && run_host_status(s->host).keeping; i++) run_host_for(s->host, 0.005);
  assert_false(run_host_status(s->host).keeping);
}

/* With what the policy says from now on. */
static void save_and_settle(scene *s, const char *name, const char *word) {
  says(s, word);
  save(s, name);
  settle_down(s);
}

static void what_the_policy_does_not_keep_is_dropped_and_deleted(void **state) {
  scene *s = *state;
  run_host_begin(s->host);
  save_and_settle(s, "ckpt-1.pt", "k");
  save_and_settle(s, "ckpt-2.pt", "kk");
  says(s, "dkk");
  save(s, "ckpt-3.pt");
  run_host_until(s->host, RUN_DELETED, "ckpt-1.pt");
  const run_seen *seen = run_host_last(s->host, RUN_EXPIRED, "ckpt-1.pt");
  assert_non_null(seen);
  assert_string_equal(seen->reason, "said d");
  seen = run_host_last(s->host, RUN_DELETED, "ckpt-1.pt");
  assert_string_equal(seen->reason, "said d");
  assert_int_equal(seen->step, 1);
  settle_down(s);
  assert_string_equal(run_host_commits(s->host), "ckpt-2.pt ckpt-3.pt");
  assert_false(path_exists(run_host_store(s->host, "ckpt-1.pt")));
  assert_true(path_exists(run_host_dir(s->host, "ckpt-1.pt"))); /* that one is the framework's */
  assert_int_equal(run_host_count(s->host, RUN_DELETED, NULL), 1);
}

static void save_three(scene *s) {
  save_and_settle(s, "ckpt-1.pt", "k");
  save_and_settle(s, "ckpt-2.pt", "kk");
  save_and_settle(s, "ckpt-3.pt", "kkk");
}

static void nonsense_keeps_all(void **state) {
  scene *s = *state;
  run_host_begin(s->host);
  save_three(s);
  says(s, "dd"); /* not one for each */
  save(s, "ckpt-4.pt");
  settle_down(s);
  assert_int_equal(run_host_count(s->host, RUN_EXPIRED, NULL), 0);
  assert_true(run_host_status(s->host).fallbacks > 0);
}

static void a_policy_that_drops_everything_drops_neither_the_newest_nor_too_many(void **state) {
  scene *s = *state;
  run_host_options(s->host)->max_delete = 0.25;
  run_host_begin(s->host);
  save_three(s);
  save_and_settle(s, "ckpt-4.pt", "dddd");
  assert_int_equal(run_host_count(s->host, RUN_EXPIRED, NULL), 1);
  assert_string_equal(run_host_commits(s->host), "ckpt-2.pt ckpt-3.pt ckpt-4.pt");
  for (int i = 0; i < 4; i++) { /* nothing new: no more passes */
    says(s, "ddd");
    run_host_for(s->host, 0.01);
  }
  assert_int_equal(run_host_count(s->host, RUN_EXPIRED, NULL), 1);
  says(s, "ddd");
  assert_int_equal(run_child_exit(run_host_run(s->host), true, NULL), 0);
  run_host_until(s->host, RUN_DELETED, "ckpt-2.pt"); /* at the end it is asked again */
  settle_down(s);
  assert_int_equal(run_host_count(s->host, RUN_EXPIRED, NULL), 2);
}

static void without_keep_nothing_is_asked_and_nothing_goes(void **state) {
  scene *s = scene_new("{\"ok\":true,\"has\":{}}");
  run_host_begin(s->host);
  says(s, "d");
  save(s, "ckpt-1.pt");
  save(s, "ckpt-2.pt");
  settle_down(s);
  assert_int_equal(run_host_count(s->host, RUN_EXPIRED, NULL), 0);
  assert_false(root(s)->keep_asked);
  scene_free(s);
}

static void no_delete_hides_and_leaves_the_data(void **state) {
  scene *s = *state;
  run_host_options(s->host)->no_delete = true;
  run_host_begin(s->host);
  save_and_settle(s, "ckpt-1.pt", "k");
  says(s, "dk");
  save(s, "ckpt-2.pt");
  run_host_until(s->host, RUN_EXPIRED, "ckpt-1.pt");
  settle_down(s);
  assert_int_equal(run_host_count(s->host, RUN_DELETED, NULL), 0);
  assert_string_equal(run_host_commits(s->host), "ckpt-2.pt");
  assert_true(path_exists(run_host_store(s->host, "ckpt-1.pt/ckpt-1.pt")));
}

static void the_data_goes_when_the_grace_is_over_without_another_commit(void **state) {
  scene *s = *state;
  run_host_options(s->host)->grace_delete_ns = 300000000;
  run_host_begin(s->host);
  save_and_settle(s, "ckpt-1.pt", "k");
  says(s, "dk");
  save(s, "ckpt-2.pt");
  run_host_until(s->host, RUN_EXPIRED, "ckpt-1.pt");
  assert_int_equal(run_host_count(s->host, RUN_DELETED, NULL), 0);
  assert_true(path_exists(run_host_store(s->host, "ckpt-1.pt/ckpt-1.pt")));
  run_host_until(s->host, RUN_DELETED, "ckpt-1.pt");
}

/* A commit that a guest dropped goes too, also where no policy has a `keep`. */
static void what_a_guest_dropped_is_deleted_by_the_run(void **state) {
  scene *s = scene_new("{\"ok\":true,\"has\":{}}");
  run_host_begin(s->host);
  save(s, "ckpt-1.pt");
  save(s, "ckpt-2.pt");
  runlog *guest = NULL;
  assert_int_equal(runlog_open(run_host_run(s->host)->store, "", &guest, NULL), 0);
  uint64_t n = runlog_newest(runlog_view(guest), "ckpt-1.pt")->n;
  assert_int_equal(runlog_drop(guest, n, "user", "by hand", NULL, NULL, NULL), 0);
  runlog_close(guest);
  save(s, "ckpt-3.pt");
  run_host_until(s->host, RUN_DELETED, "ckpt-1.pt");
  assert_string_equal(run_host_last(s->host, RUN_DELETED, NULL)->reason, "by hand");
  scene_free(s);
}

static void a_pinned_one_stays(void **state) {
  scene *s = *state;
  run_host_begin(s->host);
  save_and_settle(s, "ckpt-1.pt", "k");
  char id[33];
  const runlog_commit *c = runlog_newest(runlog_view(root(s)->group.log), NULL);
  pin_request pin = {.dir = c->dir, .by = "user", .commit = c->n};
  assert_int_equal(pins_put(run_host_run(s->host)->store, "", &pin, id, false, NULL), 0);
  save_and_settle(s, "ckpt-2.pt", "dk");
  assert_int_equal(run_host_count(s->host, RUN_EXPIRED, NULL), 0);
}

static void what_the_run_resumed_from_stays(void **state) {
  scene *s = *state;
  run_host_begin(s->host);
  save_three(s);
  run_host_close(s->host);
  remove(run_host_dir(s->host, "ckpt-1.pt"));
  remove(run_host_dir(s->host, "ckpt-2.pt"));
  remove(run_host_dir(s->host, "ckpt-3.pt"));
  run_prepared p = run_host_begin(s->host);
  assert_string_equal(p.resume, run_host_dir(s->host, "ckpt-3.pt"));
  save_and_settle(s, "ckpt-4.pt", "dddd");
  assert_string_equal(run_host_commits(s->host), "ckpt-3.pt ckpt-4.pt");
}

/* The framework keeps its files: they are not saved again because the store let them go. */
static void what_was_let_go_is_not_saved_again_after_a_restart(void **state) {
  for (int journal = 0; journal < 2; journal++) {
    scene *s = scene_new(KEEPS);
    run_host_options(s->host)->no_delete = !journal;
    run_host_begin(s->host);
    save_three(s);
    save_and_settle(s, "ckpt-4.pt", "ddkk");
    assert_int_equal(run_host_count(s->host, RUN_EXPIRED, NULL), 2);
    unsigned before = run_host_count(s->host, RUN_COMMITTED, NULL);
    run_host_close(s->host);
    if (!journal) tmpdir_remove(strdup(tmpdir_path(run_host_top(s->host), "state")));
    run_host_begin(s->host);
    run_host_idle(s->host);
    run_host_for(s->host, 0.1);
    assert_int_equal(run_host_count(s->host, RUN_COMMITTED, NULL), before);
    assert_string_equal(run_host_commits(s->host), "ckpt-3.pt ckpt-4.pt");
    scene_free(s);
  }
}

static void a_save_that_waits_goes_before_a_pass(void **state) {
  scene *s = *state;
  run_host_begin(s->host);
  save_three(s);
  run_host_hold(s->host, true);
  write_file(run_host_dir(s->host, "ckpt-4.pt"), "four");
  run_host_held(s->host);
  write_file(run_host_dir(s->host, "ckpt-5.pt"), "five");
  for (int i = 0; i < 400 && run_host_status(s->host).pending < 2; i++)
    run_host_for(s->host, 0.005);
  assert_int_equal(run_host_status(s->host).pending, 2);
  says(s, "ddddk");
  run_host_hold(s->host, false);
  run_host_until(s->host, RUN_COMMITTED, "ckpt-5.pt");
  assert_int_equal(run_host_count(s->host, RUN_EXPIRED, NULL), 0);
  assert_true(run_host_status(s->host).keeping);
  settle_down(s);
  assert_int_equal(run_host_count(s->host, RUN_DELETED, NULL), 4);
}

/* It stops for a save that waits, which may be let go then: no commit comes that would ask again. */
static void a_pass_that_was_stopped_is_made_again(void **state) {
  scene *s = *state;
  run_host_begin(s->host);
  save_three(s);
  save_and_settle(s, "ckpt-4.pt", "kkkk");
  says(s, "kkkdk"); /* one alone: of several, some may be gone when the stop comes */
  write_file(run_host_dir(s->host, "ckpt-5.pt"), "five");
  for (int64_t i = 0; i < 100000000 && !root(s)->keeping; i++) run_host_step(s->host, NULL);
  assert_non_null(root(s)->keeping);
  run_keep_stop(run_host_run(s->host));
  settle_down(s);
  assert_string_equal(run_host_commits(s->host), "ckpt-1.pt ckpt-2.pt ckpt-3.pt ckpt-5.pt");
}

/* One removal at a time, each a task of its own. */
static void between_two_removals_a_save_has_its_turn(void **state) {
  scene *s = *state;
  run_host_begin(s->host);
  save_three(s);
  says(s, "dddk");
  save(s, "ckpt-4.pt");
  unsigned deleted = 0;
  for (int i = 0; i < 2000 && deleted < 3; i++) {
    err e = {0};
    assert_int_equal(run_host_step(s->host, &e), 0);
    unsigned now = run_host_count(s->host, RUN_DELETED, NULL);
    assert_true(now <= deleted + 1);
    deleted = now;
    run_keeping *k = root(s)->keeping;
    if (!k) continue;
    while (root(s)->keeping == k) {
      pool_settle(run_host_env(s->host)->pool, true);
    }
    now = run_host_count(s->host, RUN_DELETED, NULL);
    assert_true(now <= deleted + 1);
    deleted = now;
  }
  assert_int_equal(deleted, 3);
}

static void when_time_is_short_nothing_is_cleared_away(void **state) {
  scene *s = *state;
  run_host_begin(s->host);
  save_three(s);
  assert_int_equal(run_preempt(run_host_run(s->host), 30, NULL), 0);
  says(s, "dddd");
  save(s, "ckpt-4.pt");
  run_host_for(s->host, 0.05);
  assert_int_equal(run_host_count(s->host, RUN_EXPIRED, NULL), 0);
  assert_false(run_host_status(s->host).keeping);
}

static void a_closed_run_leaves_no_pass_behind(void **state) {
  for (int i = 0; i < 5; i++) {
    scene *s = scene_new(KEEPS);
    run_host_begin(s->host);
    save_three(s);
    says(s, "dddd");
    save(s, "ckpt-4.pt");
    for (int k = 0; k < i; k++) run_host_step(s->host, NULL);
    run_host_close(s->host);
    scene_free(s);
  }
}

static void a_newer_term_ends_it(void **state) {
  scene *s = *state;
  run_host_begin(s->host);
  save_three(s);
  runlog *other = NULL;
  runlog_writer who = {.launch = "other", .host = "there", .pid = 3};
  assert_int_equal(runlog_open(run_host_run(s->host)->store, "", &other, NULL), 0);
  assert_int_equal(runlog_begin(other, "test", &who, true, NULL), 0);
  says(s, "ddd");
  assert_int_equal(run_child_exit(run_host_run(s->host), true, NULL), 0);
  run_host_until(s->host, RUN_FENCED, "");
  assert_int_equal(run_host_count(s->host, RUN_EXPIRED, NULL), 0);
  assert_true(run_host_status(s->host).fenced);
  runlog_close(other);
}

#define KEEPING(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv) {
  if (policy_helper_is_meant(argv)) return policy_helper_run();
  const struct CMUnitTest tests[] = {
      KEEPING(what_the_policy_does_not_keep_is_dropped_and_deleted),
      KEEPING(nonsense_keeps_all),
      KEEPING(a_policy_that_drops_everything_drops_neither_the_newest_nor_too_many),
      cmocka_unit_test(without_keep_nothing_is_asked_and_nothing_goes),
      KEEPING(no_delete_hides_and_leaves_the_data),
      KEEPING(the_data_goes_when_the_grace_is_over_without_another_commit),
      cmocka_unit_test(what_a_guest_dropped_is_deleted_by_the_run),
      KEEPING(a_pinned_one_stays),
      KEEPING(what_the_run_resumed_from_stays),
      cmocka_unit_test(what_was_let_go_is_not_saved_again_after_a_restart),
      KEEPING(a_save_that_waits_goes_before_a_pass),
      KEEPING(a_pass_that_was_stopped_is_made_again),
      KEEPING(between_two_removals_a_save_has_its_turn),
      KEEPING(when_time_is_short_nothing_is_cleared_away),
      cmocka_unit_test(a_closed_run_leaves_no_pass_behind),
      KEEPING(a_newer_term_ends_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
