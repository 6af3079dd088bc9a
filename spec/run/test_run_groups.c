#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

/* Two hosts on one target: each has a directory and a state of its own. */
typedef struct pair {
  run_host *a, *b;
  char dir[600], state[600];
} pair;

static int setup(void **state) {
  pair *p = calloc(1, sizeof *p);
  assert_non_null(p);
  p->a = run_host_new(NULL);
  p->b = run_host_new(run_host_top(p->a));
  snprintf(p->dir, sizeof p->dir, "%s/dir-b", run_host_top(p->a));
  snprintf(p->state, sizeof p->state, "%s/state-b", run_host_top(p->a));
  make_dir(p->dir);
  run_host_options(p->b)->places.dir = p->dir;
  run_host_options(p->b)->places.state = p->state;
  *state = p;
  return 0;
}

static int teardown(void **state) {
  pair *p = *state;
  run_host_free(p->b);
  run_host_free(p->a);
  free(p);
  return 0;
}

static void save(run_host *h, const char *dir, const char *trial, const char *unit) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", trial, unit);
  if (!path_exists(tmpdir_path(dir, trial))) make_dir(tmpdir_path(dir, trial));
  write_file(tmpdir_path(dir, path), unit);
  run_host_until(h, RUN_COMMITTED, path);
}

/* Begins a host that goes on from nothing, whatever others have. */
static void begin_anew(run_host *h) {
  run_prepared q;
  err e = {0};
  if (run_host_open(h, &e) < 0 || run_prepare(run_host_run(h), RUN_NEVER, NULL, &q, &e) < 0 ||
      run_start(run_host_run(h), &e) < 0)
    fail_msg("%s", e.text);
}

static void two_hosts_with_different_trials_of_one_target_never_fence_each_other(void **state) {
  pair *p = *state;
  run_host_begin(p->a);
  save(p->a, run_host_dir(p->a, ""), "T1", "ckpt-1.pt");
  begin_anew(p->b);
  for (int i = 2; i < 6; i++) {
    char name[32];
    snprintf(name, sizeof name, "ckpt-%d.pt", i);
    save(p->b, p->dir, "T2", name);
    save(p->a, run_host_dir(p->a, ""), "T1", name);
  }
  assert_int_equal(run_host_count(p->a, RUN_FENCED, NULL), 0);
  assert_int_equal(run_host_count(p->b, RUN_FENCED, NULL), 0);
  assert_string_equal(run_host_commits(p->a),
                      "T1/ckpt-1.pt T1/ckpt-2.pt T1/ckpt-3.pt T1/ckpt-4.pt T1/ckpt-5.pt "
                      "T2/ckpt-2.pt T2/ckpt-3.pt T2/ckpt-4.pt T2/ckpt-5.pt");
  /* Either may end and come back. */
  run_host_close(p->b);
  run_prepared q = run_host_begin(p->b);
  assert_int_equal(q.restored, 0);
  assert_string_equal(q.resume, tmpdir_path(p->dir, "T2/ckpt-5.pt"));
  save(p->a, run_host_dir(p->a, ""), "T1", "ckpt-6.pt");
  save(p->b, p->dir, "T2", "ckpt-6.pt");
  assert_int_equal(run_host_count(p->a, RUN_FENCED, NULL), 0);
}

static void a_group_that_another_host_holds_is_neither_restored_nor_moved(void **state) {
  pair *p = *state;
  run_host_begin(p->a);
  save(p->a, run_host_dir(p->a, ""), "T1", "ckpt-1.pt");
  make_dir(tmpdir_path(p->dir, "T1"));
  write_bytes(tmpdir_path(p->dir, "T1/ckpt-1.pt"), "PK\3\4 torn", 9);
  begin_anew(p->b);
  assert_true(path_exists(tmpdir_path(p->dir, "T1/ckpt-1.pt")));
  assert_true(run_host_logged(p->b, "is another writer's"));
  run_host_close(p->b);
  save(p->a, run_host_dir(p->a, ""), "T1", "ckpt-2.pt");
  assert_string_equal(run_host_commits(p->a), "T1/ckpt-1.pt T1/ckpt-2.pt");
}

/* Opens and prepares a host that finds groups which another one holds: that is refused. */
static void refused(run_host *h, const char *group) {
  run_prepared q;
  err e = {0};
  assert_int_equal(run_host_open(h, &e), 0);
  assert_int_equal(run_prepare(run_host_run(h), RUN_AUTO, NULL, &q, &e), ERR_HELD);
  assert_non_null(strstr(e.text, group));
  assert_non_null(strstr(e.text, "another writer is alive"));
  run_host_close(h);
}

static void a_start_that_has_nothing_else_is_refused_beside_a_group_that_is_held(void **state) {
  pair *p = *state;
  run_host_begin(p->a);
  save(p->a, run_host_dir(p->a, ""), "T1", "ckpt-1.pt");
  refused(p->b, "\"T1\"");
  refused(p->b, "\"T1\""); /* the first refusal has left nothing behind */
}

static void a_start_is_refused_where_a_unit_of_a_held_group_stands_here(void **state) {
  pair *p = *state;
  run_host_begin(p->a);
  save(p->a, run_host_dir(p->a, ""), "T1", "ckpt-1.pt");
  begin_anew(p->b);
  save(p->b, p->dir, "T2", "ckpt-1.pt");
  run_host_close(p->b);
  make_dir(tmpdir_path(p->dir, "T1"));
  write_bytes(tmpdir_path(p->dir, "T1/ckpt-1.pt"), "PK\3\4 torn", 9);
  refused(p->b, "\"T1\"");
}

static void a_save_into_a_group_that_another_host_holds_waits_and_fences_nobody(void **state) {
  pair *p = *state;
  run_host_begin(p->a);
  save(p->a, run_host_dir(p->a, ""), "T1", "ckpt-1.pt");
  begin_anew(p->b);
  make_dir(tmpdir_path(p->dir, "T1"));
  write_file(tmpdir_path(p->dir, "T1/ckpt-7.pt"), "seven");
  run_host_until(p->b, RUN_RETRYING, "T1/ckpt-7.pt");
  assert_int_equal(run_host_last(p->b, RUN_RETRYING, NULL)->status, ERR_HELD);
  save(p->a, run_host_dir(p->a, ""), "T1", "ckpt-2.pt");
  run_host_close(p->a);
  run_host_skip(p->b, 60);
  run_host_until(p->b, RUN_COMMITTED, "T1/ckpt-7.pt");
}

static void the_root_of_a_live_writer_is_refused_when_it_has_commits(void **state) {
  pair *p = *state;
  run_host_begin(p->a);
  write_file(run_host_dir(p->a, "ckpt-1.pt"), "one");
  run_host_until(p->a, RUN_COMMITTED, "ckpt-1.pt");
  err e = {0};
  assert_int_equal(run_host_open(p->b, &e), ERR_HELD);
}

static void taking_a_trial_over_fences_only_who_had_it(void **state) {
  pair *p = *state;
  run_host_begin(p->a);
  save(p->a, run_host_dir(p->a, ""), "T1", "ckpt-1.pt");
  run_host_options(p->b)->take_over = true;
  run_prepared q = run_host_begin(p->b);
  assert_int_equal(q.restored, 1);
  assert_true(path_exists(tmpdir_path(p->dir, "T1/ckpt-1.pt")));
  save(p->b, p->dir, "T1", "ckpt-2.pt");
  write_file(run_host_dir(p->a, "T1/ckpt-3.pt"), "three");
  run_host_until(p->a, RUN_FENCED, "T1/ckpt-3.pt");
  save(p->b, p->dir, "T1", "ckpt-4.pt");
  assert_string_equal(run_host_commits(p->b), "T1/ckpt-1.pt T1/ckpt-2.pt T1/ckpt-4.pt");
  assert_int_equal(run_host_count(p->b, RUN_FENCED, NULL), 0);
}

static void a_group_is_known_by_its_prefix_and_touches_no_store(void **state) {
  pair *p = *state;
  run_host_begin(p->a);
  run *r = run_host_run(p->a);
  run_group *first, *again, *other;
  assert_int_equal(run_group_get(r, "exp/T1", &first, NULL), 0);
  assert_int_equal(run_group_get(r, "exp/T2", &other, NULL), 0);
  assert_int_equal(run_group_get(r, "exp/T1", &again, NULL), 0);
  assert_ptr_equal(first, again);
  assert_ptr_not_equal(first, other);
  assert_false(path_exists(run_host_store(p->a, "exp")));
  assert_int_equal(run_group_begin(first, NULL), 0);
  assert_true(path_exists(run_host_store(p->a, "exp/T1/.ckpt/log")));
  assert_int_not_equal(first->term, RUNLOG_NONE);
}

static void the_newest_commit_is_shown_with_its_groups_path(void **state) {
  pair *p = *state;
  run_host_begin(p->a);
  save(p->a, run_host_dir(p->a, ""), "T1", "ckpt-3.pt");
  run_host_close(p->a);
  run_host_begin(p->a);
  run_status s = run_host_status(p->a);
  assert_string_equal(s.newest_unit, "T1/ckpt-3.pt");
  assert_int_equal(s.newest_step, 3);
  assert_true(s.newest_time_ns > 0);
}

static void no_group_is_opened_inside_a_committed_directory(void **state) {
  run_host *h = ((pair *)*state)->a;
  run_group *g;
  run_host_begin(h);
  make_dir(run_host_dir(h, "tmp"));
  write_file(run_host_dir(h, "tmp/model.pt"), "x");
  rename(run_host_dir(h, "tmp"), run_host_dir(h, "checkpoint-1"));
  run_host_until(h, RUN_COMMITTED, "checkpoint-1");
  for (int i = 0; i < 2; i++) { /* and the next run knows it from the log */
    run *r = run_host_run(h);
    assert_int_equal(run_group_get(r, "checkpoint-1", &g, NULL), ERR_INVAL);
    assert_int_equal(run_group_get(r, "checkpoint-1/T1", &g, NULL), ERR_INVAL);
    assert_true(run_dir_inside(r, "checkpoint-1/model.pt"));
    assert_true(run_dir_inside(r, "checkpoint-1/T1/ckpt-1.pt"));
    assert_false(run_dir_inside(r, "checkpoint-1"));
    assert_false(run_dir_inside(r, "checkpoint-10/model.pt"));
    assert_false(run_dir_inside(r, "checkpoint/model.pt"));
    run_host_close(h);
    if (i == 0) assert_int_equal(run_host_open(h, NULL), 0);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(no_group_is_opened_inside_a_committed_directory),
      TEST(two_hosts_with_different_trials_of_one_target_never_fence_each_other),
      TEST(a_group_that_another_host_holds_is_neither_restored_nor_moved),
      TEST(a_start_that_has_nothing_else_is_refused_beside_a_group_that_is_held),
      TEST(a_start_is_refused_where_a_unit_of_a_held_group_stands_here),
      TEST(a_save_into_a_group_that_another_host_holds_waits_and_fences_nobody),
      TEST(the_root_of_a_live_writer_is_refused_when_it_has_commits),
      TEST(taking_a_trial_over_fences_only_who_had_it),
      TEST(a_group_is_known_by_its_prefix_and_touches_no_store),
      TEST(the_newest_commit_is_shown_with_its_groups_path),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
