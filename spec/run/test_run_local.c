/* What a run removes in the watched directory, and what it must not. */
#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static void temp_unit(run_host *h, const char *name) {
  char path[300];
  mkdir(run_host_dir(h, name), 0755);
  snprintf(path, sizeof path, "%s/.temp_marker", name);
  write_file(run_host_dir(h, path), "");
  snprintf(path, sizeof path, "%s/model.pt", name);
  write_file(run_host_dir(h, path), "weights");
}

static void a_temporary_one_that_is_named_before_its_events_are_read_is_saved(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, markers = { temp = '.temp_marker' } }");
  run_host_for(h, 0.05);
  temp_unit(h, "checkpoint-7");
  assert_int_equal(run_result(run_host_run(h), "{\"checkpoint\": \"checkpoint-7\"}", NULL), 0);
  run_host_for(h, 0.5);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "checkpoint-7");
}

static void a_temporary_one_that_was_named_outlives_the_job_until_it_is_saved(void **state) {
  run_host *h = *state;
  run_host_options(h)->quiet_ns = (int64_t)1000 * 1000000000;
  run_host_begin_with(h, "return { api = 1, markers = { temp = '.temp_marker' } }");
  run_host_for(h, 0.05);
  temp_unit(h, "checkpoint-7");
  run_host_for(h, 0.02);
  err e = {0};
  assert_int_equal(run_host_step(h, &e), 0);
  assert_int_equal(run_result(run_host_run(h), "{\"checkpoint\": \"checkpoint-7\"}", NULL), 0);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_for(h, 0.5);
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "checkpoint-7");
}

static void a_temporary_one_that_was_named_and_not_saved_stays_here(void **state) {
  run_host *h = *state;
  run_host_options(h)->tries = 1;
  run_host_begin_with(h, "return { api = 1, markers = { temp = '.temp_marker' } }");
  run_host_for(h, 0.05);
  temp_unit(h, "checkpoint-7");
  run_host_until(h, RUN_SKIPPED, "checkpoint-7");
  run_host_fail_store(h, ENOSPC);
  assert_int_equal(run_result(run_host_run(h), "{\"checkpoint\": \"checkpoint-7\"}", NULL), 0);
  run_host_until(h, RUN_FAILED, "checkpoint-7");
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_for(h, 0.5);
  assert_true(path_exists(run_host_dir(h, "checkpoint-7/model.pt")));
}

static void what_was_written_again_since_it_was_saved_stays(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, keep_local = keep.last(1) }");
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  run_host_hold(h, true);
  run_host_put(h, "ckpt-2.pt");
  run_host_held(h);
  write_file(run_host_dir(h, "ckpt-1.pt"), "another content, after a way back");
  run_host_hold(h, false);
  struct timespec t = {.tv_nsec = 300000000};
  nanosleep(&t, NULL); /* the save ends; its end is taken before the events are */
  run_host_until(h, RUN_COMMITTED, "ckpt-2.pt");
  run_host_for(h, 0.4);
}

static void what_keep_local_lets_go_is_removed(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, keep_local = keep.last(1) }");
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  run_host_save(h, "ckpt-2.pt", RUN_COMMITTED);
  for (int i = 0; i < 100 && path_exists(run_host_dir(h, "ckpt-1.pt")); i++) run_host_for(h, 0.1);
  assert_false(path_exists(run_host_dir(h, "ckpt-1.pt")));
  assert_true(path_exists(run_host_dir(h, "ckpt-2.pt")));
  mkdir(run_host_dir(h, "checkpoint-3"), 0755);
  write_file(run_host_dir(h, "checkpoint-3/a"), "a");
  run_host_until(h, RUN_COMMITTED, "checkpoint-3");
  mkdir(run_host_dir(h, "checkpoint-4"), 0755);
  write_file(run_host_dir(h, "checkpoint-4/a"), "a");
  run_host_until(h, RUN_COMMITTED, "checkpoint-4");
  run_host_for(h, 0.3);
  assert_false(path_exists(run_host_dir(h, "checkpoint-3")));
}

/* A Trainer's checkpoint, renamed to its name, whose state names the best one so far. */
static void put_trained(run_host *h, const char *unit, const char *best) {
  char made[700], file[900], text[700];
  snprintf(made, sizeof made, "%s/made", run_host_top(h));
  make_dir(made);
  snprintf(file, sizeof file, "%s/trainer_state.json", made);
  snprintf(text, sizeof text, "{\"best_model_checkpoint\": \"%s\"}", run_host_dir(h, best));
  write_file(file, text);
  assert_int_equal(rename(made, run_host_dir(h, unit)), 0);
  run_host_until(h, RUN_COMMITTED, unit);
}

static void await_gone(run_host *h, const char *unit) {
  for (int i = 0; i < 100 && path_exists(run_host_dir(h, unit)); i++) run_host_for(h, 0.1);
  assert_false(path_exists(run_host_dir(h, unit)));
}

/* The Trainer loads it at its end, and says nothing where it is gone. */
static void what_the_newest_names_stays_while_it_does(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, keep_local = keep.last(1) }");
  put_trained(h, "checkpoint-1", "checkpoint-1");
  put_trained(h, "checkpoint-2", "checkpoint-1");
  put_trained(h, "checkpoint-3", "checkpoint-1");
  await_gone(h, "checkpoint-2");
  assert_true(path_exists(run_host_dir(h, "checkpoint-1")));
  assert_true(run_host_logged(h, "checkpoint-1 stays here"));
  put_trained(h, "checkpoint-4", "checkpoint-4");
  await_gone(h, "checkpoint-1");
}

/* Registers another watcher, which has saved nothing yet. */
static void join_another(run_host *h, watcher *out) {
  char home[700], other[700];
  snprintf(home, sizeof home, "%s/dir.ckpt", run_host_top(h));
  snprintf(other, sizeof other, "%s/other", run_host_top(h));
  make_dir(other);
  watcher_card card = {.state = other, .target = "file:///other", .run = "o", .host = "here"};
  assert_int_equal(watcher_join(io_system(), home, &card, out, NULL), 0);
}

static void wait_for_another(run_host *h, watcher *other) {
  run_host_begin_with(h, "return { api = 1, keep_local = keep.last(1) }");
  join_another(h, other);
  run_host_save(h, "ckpt-1.pt", RUN_COMMITTED);
  run_host_save(h, "ckpt-2.pt", RUN_COMMITTED);
  for (int i = 0; i < 100 && !run_host_logged(h, "ckpt-1.pt stays until"); i++)
    run_host_for(h, 0.1);
  assert_true(run_host_logged(h, "ckpt-1.pt stays until"));
  assert_true(path_exists(run_host_dir(h, "ckpt-1.pt")));
}

static void one_that_another_watcher_has_not_saved_stays_until_it_has(void **state) {
  run_host *h = *state;
  watcher other;
  wait_for_another(h, &other);
  const run_unit *u = run_unit_find(run_host_run(h), "ckpt-1.pt");
  assert_int_equal(watcher_done(io_system(), &other, "ckpt-1.pt", u->stamp + 1, NULL), 0);
  run_host_skip(h, 10);
  run_host_for(h, 0.3);
  assert_true(path_exists(run_host_dir(h, "ckpt-1.pt")));
  assert_int_equal(watcher_done(io_system(), &other, "ckpt-1.pt", u->stamp, NULL), 0);
  for (int i = 0; i < 100 && path_exists(run_host_dir(h, "ckpt-1.pt")); i++) {
    run_host_skip(h, 10);
    run_host_for(h, 0.1);
  }
  assert_false(path_exists(run_host_dir(h, "ckpt-1.pt")));
  watcher_leave(io_system(), &other, false);
}

static void write_in(run_host *h, const char *group, int n) {
  char name[32];
  snprintf(name, sizeof name, "%s/ckpt-%d.pt", group, n);
  run_host_save(h, name, RUN_COMMITTED);
}

static void
what_another_watcher_has_saved_goes_though_another_group_was_looked_at_since(void **state) {
  run_host *h = *state;
  watcher other;
  run_host_begin_with(h, "return { api = 1, keep_local = keep.last(1) }");
  make_dir(run_host_dir(h, "a"));
  make_dir(run_host_dir(h, "b"));
  join_another(h, &other);
  write_in(h, "a", 1);
  write_in(h, "a", 2);
  for (int i = 0; i < 100 && !run_host_logged(h, "a/ckpt-1.pt stays until"); i++)
    run_host_for(h, 0.1);
  const run_unit *u = run_unit_find(run_host_run(h), "a/ckpt-1.pt");
  assert_int_equal(watcher_done(io_system(), &other, "a/ckpt-1.pt", u->stamp, NULL), 0);
  write_in(h, "b", 1);
  write_in(h, "b", 2);
  for (int i = 0; i < 100 && !run_host_logged(h, "b/ckpt-1.pt stays until"); i++)
    run_host_for(h, 0.1);
  for (int i = 0; i < 100 && path_exists(run_host_dir(h, "a/ckpt-1.pt")); i++) {
    run_host_skip(h, 10);
    run_host_for(h, 0.1);
  }
  assert_false(path_exists(run_host_dir(h, "a/ckpt-1.pt")));
  assert_true(path_exists(run_host_dir(h, "b/ckpt-1.pt")));
  watcher_leave(io_system(), &other, false);
}

static void one_that_a_dead_watcher_of_our_own_log_has_not_saved_goes(void **state) {
  run_host *h = *state;
  watcher other;
  wait_for_another(h, &other);
  const run_group *g = run_group_find(run_host_run(h), "");
  assert_int_equal(watcher_log(io_system(), &other, "", g->log_name, NULL), 0);
  run_host_skip(h, 10);
  run_host_for(h, 0.3);
  assert_true(path_exists(run_host_dir(h, "ckpt-1.pt"))); /* it lives */
  watcher_leave(io_system(), &other, true);
  for (int i = 0; i < 100 && path_exists(run_host_dir(h, "ckpt-1.pt")); i++) {
    run_host_skip(h, 10);
    run_host_for(h, 0.1);
  }
  assert_false(path_exists(run_host_dir(h, "ckpt-1.pt")));
}

static void nothing_goes_when_a_newer_term_is_there(void **state) {
  run_host *h = *state;
  watcher other;
  err e = {0};
  wait_for_another(h, &other);
  run_host *second = run_host_elsewhere(h);
  run_host_options(second)->take_over = true;
  assert_int_equal(run_host_open(second, &e), 0);
  watcher_leave(io_system(), &other, false);
  for (int i = 0; i < 100 && run_host_count(h, RUN_FENCED, NULL) == 0; i++) {
    run_host_skip(h, 10);
    run_host_for(h, 0.1);
  }
  assert_int_equal(run_host_count(h, RUN_FENCED, NULL), 1);
  assert_true(path_exists(run_host_dir(h, "ckpt-1.pt")));
  run_host_free(second);
}

static void nothing_goes_when_the_directory_is_anothers(void **state) {
  run_host *h = *state;
  watcher other;
  char lock[700];
  wait_for_another(h, &other);
  snprintf(lock, sizeof lock, "%s/dir.ckpt/dir.lock", run_host_top(h));
  assert_int_equal(unlink(lock), 0);
  watcher_leave(io_system(), &other, false);
  for (int i = 0; i < 100 && !run_host_logged(h, "frees nothing here"); i++) {
    run_host_skip(h, 10);
    run_host_for(h, 0.1);
  }
  assert_true(run_host_logged(h, "frees nothing here"));
  assert_true(path_exists(run_host_dir(h, "ckpt-1.pt")));
}

static void what_another_watcher_lets_go_for_a_newer_one_does_not_stay_for_it(void **state) {
  run_host *h = *state;
  run_host *slow = run_host_new(run_host_top(h));
  char place[700], to[700];
  err e = {0};
  snprintf(place, sizeof place, "%s/state2", run_host_top(h));
  snprintf(to, sizeof to, "file://%s/store2", run_host_top(h));
  run_host_options(slow)->places.state = place;
  run_host_options(slow)->places.to = to;
  run_host_options(slow)->beside = true;
  run_host_begin_with(h, "return { api = 1, keep_local = keep.last(1) }");
  assert_int_equal(run_host_open(slow, &e), 0);
  assert_int_equal(run_start(run_host_run(slow), &e), 0);
  for (int i = 1; i < 4; i++) {
    char name[32];
    snprintf(name, sizeof name, "ckpt-%d.pt", i);
    run_host_save(h, name, RUN_COMMITTED);
  }
  for (int i = 0; i < 100 && !run_host_logged(h, "ckpt-1.pt stays until"); i++)
    run_host_for(h, 0.1);
  assert_true(path_exists(run_host_dir(h, "ckpt-1.pt")));
  run_host_until(slow, RUN_COMMITTED, "ckpt-3.pt");
  for (int i = 0; i < 100 && path_exists(run_host_dir(h, "ckpt-1.pt")); i++) {
    run_host_skip(h, 10);
    run_host_for(h, 0.1);
  }
  assert_false(path_exists(run_host_dir(h, "ckpt-1.pt")));
  assert_true(path_exists(run_host_dir(h, "ckpt-3.pt")));
  run_host_free(slow);
}

static void a_path_names_the_one_of_its_own_directory(void **state) {
  run_host *h = *state;
  run_host_begin_with(h, "return { api = 1, markers = { temp = '.temp_marker' } }");
  mkdir(run_host_dir(h, "a"), 0755);
  mkdir(run_host_dir(h, "b"), 0755);
  temp_unit(h, "a/checkpoint-7");
  temp_unit(h, "b/checkpoint-7");
  run_host_until(h, RUN_SKIPPED, "b/checkpoint-7");
  run_host_idle(h);
  assert_int_equal(run_result(run_host_run(h), "{\"checkpoint\": \"out/a/checkpoint-7\"}", NULL),
                   0);
  run_host_until(h, RUN_COMMITTED, "a/checkpoint-7");
  run_host_idle(h);
  assert_string_equal(run_host_commits(h), "a/checkpoint-7");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(a_temporary_one_that_is_named_before_its_events_are_read_is_saved),
      WITH_HOST(a_temporary_one_that_was_named_outlives_the_job_until_it_is_saved),
      WITH_HOST(a_temporary_one_that_was_named_and_not_saved_stays_here),
      WITH_HOST(what_was_written_again_since_it_was_saved_stays),
      WITH_HOST(what_keep_local_lets_go_is_removed),
      WITH_HOST(what_the_newest_names_stays_while_it_does),
      WITH_HOST(one_that_another_watcher_has_not_saved_stays_until_it_has),
      WITH_HOST(what_another_watcher_has_saved_goes_though_another_group_was_looked_at_since),
      WITH_HOST(one_that_a_dead_watcher_of_our_own_log_has_not_saved_goes),
      WITH_HOST(nothing_goes_when_a_newer_term_is_there),
      WITH_HOST(nothing_goes_when_the_directory_is_anothers),
      WITH_HOST(what_another_watcher_lets_go_for_a_newer_one_does_not_stay_for_it),
      WITH_HOST(a_path_names_the_one_of_its_own_directory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
