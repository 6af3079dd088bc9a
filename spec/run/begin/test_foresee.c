#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "run_host.h"
#include "tmpdir.h"

static run_host *h;
static char told[512]; /* "there a.pt,unproven b.pt," */
static err e;

static int set_up(void **state) {
  h = run_host_new(NULL);
  e = (err){0};
  return 0;
}

static int tear_down(void **state) {
  run_host_free(h);
  return 0;
}

static int take(void *ctx, const char *unit, int64_t step, run_foreseen what, const char *reason) {
  static const char *const whats[] = {"save", "there", "older", "unproven"};
  snprintf(told + strlen(told), sizeof told - strlen(told), "%s %s,", whats[what], unit);
  return 0;
}

static int foresee(void) {
  *told = 0;
  return run_foresee(run_host_env(h), run_host_options(h), take, NULL, &e);
}

/* Saves a file as a run does, and ends it. */
static void commit(const char *name, const char *text) {
  run_host_begin(h);
  run_host_write(h, name, text, RUN_COMMITTED);
  run_host_close(h);
}

static void what_is_committed_is_there_and_the_rest_is_named(void **state) {
  commit("a.pt", "weights a");
  write_file(run_host_dir(h, "b.pt"), "nothing proves this");
  assert_int_equal(foresee(), 0);
  assert_string_equal(told, "there a.pt,unproven b.pt,");
}

static void a_copy_that_was_damaged_is_not_taken_for_the_commit(void **state) {
  commit("a.pt", "weights a");
  write_file(run_host_dir(h, "a.pt"), "weights b");
  assert_int_equal(foresee(), 0);
  assert_string_equal(told, "unproven a.pt,");
}

static void nothing_is_written_anywhere(void **state) {
  write_file(run_host_dir(h, "a.pt"), "x");
  const char *top = run_host_top(h);
  int entries = count_entries(top), fds = count_fds();
  run_host_fail_store(h, EIO); /* each write to it */
  assert_int_equal(foresee(), 0);
  run_host_fail_store(h, 0);
  assert_int_equal(count_entries(top), entries);
  assert_int_equal(count_fds(), fds);
  assert_false(path_exists(run_host_state(h, "journal.jsonl")));
}

static void a_directory_that_is_not_there_is_said(void **state) {
  run_host_options(h)->places.dir = "/no/such/directory";
  assert_int_equal(foresee(), ERR_NOENT);
  assert_non_null(strstr(e.text, "/no/such/directory"));
}

static void the_target_of_another_run_is_refused(void **state) {
  commit("a.pt", "weights a");
  run_host_options(h)->places.run_id = "somebody-else";
  assert_int_equal(foresee(), ERR_OTHER_RUN);
  run_host_options(h)->continue_run = true;
  assert_int_equal(foresee(), 0);
}

static int refuse(void *ctx, const char *unit, int64_t step, run_foreseen what,
                  const char *reason) {
  return ++*(int *)ctx + 40;
}

static void a_callback_ends_it(void **state) {
  int calls = 0;
  write_file(run_host_dir(h, "a.pt"), "x");
  write_file(run_host_dir(h, "b.pt"), "x");
  assert_int_equal(run_foresee(run_host_env(h), run_host_options(h), refuse, &calls, &e), 41);
  assert_int_equal(calls, 1);
}

/* The other half of `sync`: what is foreseen as saved is saved, the older ones too. */
static void with_keep_all_none_is_let_go_for_a_newer_one(void **state) {
  run_host_options(h)->keep_all = true;
  run_host_begin(h);
  for (int i = 1; i <= 3; i++) {
    char name[32];
    snprintf(name, sizeof name, "step_%d.pt", i);
    write_file(run_host_dir(h, name), name);
  }
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "step_1.pt step_2.pt step_3.pt");
  assert_int_equal(run_host_status(h).dropped, 0);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(what_is_committed_is_there_and_the_rest_is_named),
      TEST(a_copy_that_was_damaged_is_not_taken_for_the_commit),
      TEST(nothing_is_written_anywhere),
      TEST(a_directory_that_is_not_there_is_said),
      TEST(the_target_of_another_run_is_refused),
      TEST(a_callback_ends_it),
      TEST(with_keep_all_none_is_let_go_for_a_newer_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
