#include "with_cmocka.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prims/fs.h"
#include "run_host.h"
#include "tmpdir.h"

static void must_be_refused(run_host *h, int code, const char *text) {
  err e = {0};
  assert_int_equal(run_host_open(h, &e), code);
  assert_null(run_host_run(h));
  if (!strstr(e.text, text)) fail_msg("\"%s\" is not in: %s", text, e.text);
}

/* ---- open ---- */

static void a_target_in_the_watched_directory_is_refused(void **state) {
  run_host *h = *state;
  char to[700];
  snprintf(to, sizeof to, "%s/store", run_host_dir(h, ""));
  run_host_options(h)->places.to = to;
  must_be_refused(h, ERR_INVAL, "must not lie in one another");
  assert_int_equal(count_entries(run_host_dir(h, "")), 0);
}

static void a_bad_pattern_is_refused_before_anything_is_made(void **state) {
  run_host *h = *state;
  const char *const units[] = {"a{step}b{step}", NULL};
  run_host_options(h)->units = units;
  must_be_refused(h, ERR_INVAL, "{step}");
  assert_false(path_exists(run_host_state(h, "")));
}

static void an_unknown_store_is_refused(void **state) {
  run_host *h = *state;
  run_host_options(h)->places.to = "gopher://there";
  must_be_refused(h, ERR_UNSUPPORTED, "gopher");
}

static void a_target_of_another_run_is_refused_and_the_text_names_both(void **state) {
  run_host *h = *state;
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host_close(h);
  run_host_options(h)->places.run_id = "another";
  must_be_refused(h, ERR_OTHER_RUN, "another");
  must_be_refused(h, ERR_OTHER_RUN, "test");
  must_be_refused(h, ERR_OTHER_RUN, "ckpt-1.pt");
  must_be_refused(h, ERR_OTHER_RUN, "`continue_run`");
  run_host_options(h)->continue_run = true;
  run_host_begin(h);
  run_host_write(h, "ckpt-2.pt", "two", RUN_COMMITTED);
}

static void a_second_run_on_the_same_state_is_refused_and_changes_nothing(void **state) {
  run_host *h = *state;
  write_file(run_host_state(h, "staging/of-the-first"), "x");
  run_host *second = run_host_new(run_host_top(h));
  must_be_refused(second, ERR_HELD, "another ckpt-lua has the state directory");
  assert_true(path_exists(run_host_state(h, "staging/of-the-first")));
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host_close(h);
  run_host_begin(second);
  assert_false(path_exists(run_host_state(h, "staging/of-the-first")));
  run_host_free(second);
}

/* The same run on another machine. */
static run_host *elsewhere(run_host *h) {
  run_host *second = run_host_elsewhere(h);
  run_host_options(second)->places.run_id = "one";
  return second;
}

static void two_never_own_one_directory_whatever_their_state_directories_are(void **state) {
  run_host *h = *state;
  run_host *second = run_host_new(run_host_top(h));
  char place[700];
  snprintf(place, sizeof place, "%s/state2", run_host_top(h));
  run_host_options(second)->places.state = place;
  must_be_refused(second, ERR_HELD, "is watched by another process");
  run_host_free(second);
}

static void one_that_watches_beside_the_owner_saves_and_restores_nothing(void **state) {
  run_host *h = *state;
  run_host *second = run_host_new(run_host_top(h));
  char place[700], to[700];
  err e = {0};
  snprintf(place, sizeof place, "%s/state2", run_host_top(h));
  snprintf(to, sizeof to, "file://%s/store2", run_host_top(h));
  run_host_options(second)->places.state = place;
  run_host_options(second)->places.to = to;
  run_host_options(second)->beside = true;
  assert_int_equal(run_host_open(second, &e), 0);
  run_prepared ignored;
  assert_int_equal(run_prepare(run_host_run(second), RUN_AUTO, NULL, &ignored, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "beside others"));
  assert_int_equal(run_prepare(run_host_run(second), RUN_NEVER, NULL, &ignored, &e), 0);
  assert_int_equal(run_start(run_host_run(second), &e), 0);
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host_until(second, RUN_COMMITTED, "ckpt-1.pt");
  run_host_free(second);
  run_host_write(h, "ckpt-2.pt", "two", RUN_COMMITTED);
}

static void a_writer_that_lives_elsewhere_is_not_pushed_aside_unasked(void **state) {
  run_host *h = *state;
  run_host_options(h)->places.run_id = "one";
  run_host_begin(h);
  run_host *second = elsewhere(h);
  must_be_refused(second, ERR_HELD, "`take_over`");
  run_host_options(second)->take_over = true;
  err e = {0};
  assert_int_equal(run_host_open(second, &e), 0);
  run_host_free(second);
}

static void the_same_launch_takes_over_unasked(void **state) {
  run_host *h = *state;
  run_host_options(h)->launch = "job 7, try 1";
  run_host_options(h)->places.run_id = "one";
  run_host_begin(h);
  run_host *second = elsewhere(h);
  run_host_options(second)->launch = "job 7, try 1";
  err e = {0};
  assert_int_equal(run_host_open(second, &e), 0);
  run_host_free(second);
}

/* ---- start and events ---- */

static void events_before_the_start_are_errors(void **state) {
  run_host *h = *state;
  err e = {0};
  assert_int_equal(run_host_open(h, &e), 0);
  run *r = run_host_run(h);
  assert_int_equal(run_child(r, getpid(), &e), ERR_INVAL);
  assert_int_equal(run_child_exit(r, true, &e), ERR_INVAL);
  assert_int_equal(run_result(r, "{}", &e), ERR_INVAL);
  assert_int_equal(run_preempt(r, 10, &e), ERR_INVAL);
  assert_int_equal(run_list(r, &e), ERR_INVAL);
  assert_int_equal(run_fd(r), -1);
  assert_int_equal(run_host_step(h, &e), 0);
}

static void a_start_that_fails_can_be_tried_again(void **state) {
  run_host *h = *state;
  err e = {0};
  run_prepared p;
  assert_int_equal(run_host_open(h, &e), 0);
  assert_int_equal(run_prepare(run_host_run(h), RUN_AUTO, NULL, &p, &e), 0);
  int fds = count_fds();
  char away[700];
  snprintf(away, sizeof away, "%s/away", run_host_top(h));
  assert_int_equal(rename(run_host_dir(h, ""), away), 0);
  assert_int_equal(run_start(run_host_run(h), &e), ERR_NOENT);
  assert_int_equal(run_fd(run_host_run(h)), -1);
  assert_int_equal(count_fds(), fds);
  assert_int_equal(rename(away, run_host_dir(h, "")), 0);
  assert_int_equal(run_start(run_host_run(h), &e), 0);
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
}

static void a_result_is_an_object_of_at_most_64_KiB(void **state) {
  run_host *h = *state;
  err e = {0};
  run_host_begin(h);
  run *r = run_host_run(h);
  char *large = malloc(70000);
  assert_non_null(large);
  memset(large, ' ', 69999);
  large[69999] = '\0';
  assert_int_equal(run_result(r, large, &e), ERR_LIMIT);
  free(large);
  assert_true(run_result(r, "", &e) < 0);
  assert_true(run_result(r, "{", &e) < 0);
  assert_true(run_result(r, "[1]", &e) < 0);
  assert_true(run_result(r, "{\"loss\": 0.5, \"step\": 3}", &e) == 0);
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  char *manifest = read_file(run_host_store(h, "ckpt-1.pt/.ckpt-manifest.json"), NULL);
  assert_non_null(manifest);
  assert_non_null(strstr(manifest, "\"loss\""));
  free(manifest);
}

typedef struct found {
  int count;
  pid_t pid;
  char left[200]; /* "": ours to end */
} found;

static int keep_found(void *ctx, const proc_info *info, const char *left) {
  found *f = ctx;
  f->count++;
  f->pid = info->pid;
  snprintf(f->left, sizeof f->left, "%s", left ? left : "");
  return 0;
}

/* As if we had died: nobody said that the trainer ended. */
static int found_after_death(run_host *h, found *f) {
  err e = {0};
  run_host_close(h);
  *f = (found){0};
  if (run_host_open(h, &e) < 0) fail_msg("%s", e.text);
  return run_trainers(run_host_run(h), keep_found, f, &e);
}

static pid_t start_trainer(run_host *h, bool carries) {
  char entry[100];
  err e = {0};
  snprintf(entry, sizeof entry, "CKPT_STATE_ID=%s", run_places(run_host_run(h))->state_id);
  char *argv[] = {"sleep", "60", NULL}, *env[] = {carries ? entry : "A=1", NULL};
  int ends[2];
  char c;
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  pid_t child = fork();
  if (child == 0) {
    execve("/bin/sleep", argv, env);
    _exit(1);
  }
  close(ends[1]);
  while (read(ends[0], &c, 1) > 0) continue; /* until it is another program */
  close(ends[0]);
  assert_int_equal(run_child(run_host_run(h), child, &e), 0);
  return child;
}

static void end_trainer(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

static void a_trainer_that_carries_the_runs_id_is_ours_to_end(void **state) {
  run_host *h = *state;
  err e = {0};
  found f;
  run_host_begin(h);
  assert_int_equal(run_child(run_host_run(h), 0, &e), ERR_INVAL);
  assert_int_equal(run_child(run_host_run(h), -1, &e), ERR_INVAL);
  pid_t child = start_trainer(h, true);
  assert_int_equal(found_after_death(h, &f), 1);
  assert_int_equal(f.count, 1); /* the journal's is the same one */
  assert_int_equal(f.pid, child);
  assert_string_equal(f.left, "");
  end_trainer(child);
  assert_int_equal(run_trainers(run_host_run(h), NULL, NULL, &e), 0);
}

static void one_that_only_the_journal_names_is_told_and_left(void **state) {
  run_host *h = *state;
  found f;
  run_host_begin(h);
  pid_t child = start_trainer(h, false);
  assert_int_equal(found_after_death(h, &f), 0);
  assert_int_equal(f.count, 1);
  assert_int_equal(f.pid, child);
  assert_non_null(strstr(f.left, "CKPT_STATE_ID"));
  end_trainer(child);
}

static void one_of_a_copied_state_is_told_and_left(void **state) {
  run_host *h = *state;
  found f;
  run_host_begin(h);
  pid_t carries = start_trainer(h, true);
  char from[600], to[600];
  snprintf(from, sizeof from, "%s", run_host_state(h, "."));
  snprintf(to, sizeof to, "%s", tmpdir_path(run_host_top(h), "first"));
  run_host_close(h);
  from[strlen(from) - 2] = 0;
  assert_int_equal(rename(from, to), 0);
  assert_int_equal(fs_copy_tree(io_system(), to, from, false, NULL, NULL), 0);
  assert_int_equal(found_after_death(h, &f), 0);
  assert_int_equal(f.count, 1);
  assert_int_equal(f.pid, carries);
  assert_non_null(strstr(f.left, "copy"));
  end_trainer(carries);
}

static void a_child_that_ended_before_it_was_looked_at_is_no_error(void **state) {
  run_host *h = *state;
  pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  assert_int_equal(run_child(run_host_run(h), child, NULL), 0);
}

static void a_clean_end_makes_the_last_unit_complete_at_once(void **state) {
  run_host *h = *state;
  run_host_options(h)->quiet_ns = (int64_t)3600 * 1000000000;
  run_host_begin(h);
  write_file(run_host_dir(h, "ckpt-1.pt"), "one");
  run_host_for(h, 0.05);
  assert_int_equal(run_host_status(h).settling, 1);
  assert_int_equal(run_child_exit(run_host_run(h), true, NULL), 0);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
}

static void what_only_its_structure_proves_waits_for_quiet_while_a_writer_may_live(void **state) {
  run_host *h = *state;
  static const char zip[22] = {'P', 'K', 5, 6};
  run_host_options(h)->quiet_ns = (int64_t)30 * 1000000000;
  write_bytes(run_host_dir(h, "ckpt-1.pt"), zip, sizeof zip);
  err e = {0};
  assert_int_equal(run_host_open(h, &e), 0);
  assert_int_equal(run_start(run_host_run(h), &e), 0); /* as `watch`: beside a job that runs */
  run_host_for(h, 0.2);
  assert_string_equal(run_host_story(h), "");
  write_bytes(run_host_dir(h, "ckpt-1.pt"), zip, sizeof zip);
  run_host_skip(h, 20);
  run_host_for(h, 0.1);
  assert_string_equal(run_host_story(h), "");
  run_host_skip(h, 40);
  run_host_until(h, RUN_COMMITTED, "ckpt-1.pt");
  assert_int_equal(run_host_last(h, RUN_COMMITTED, NULL)->files, 1);
}

static void files_of_no_unit_are_counted_with_an_example(void **state) {
  run_host *h = *state;
  write_file(run_host_dir(h, "model.weights"), "x");
  run_host_for(h, 0.05);
  run_status s = run_host_status(h);
  assert_int_equal(s.unmatched, 1);
  assert_string_equal(s.unmatched_example, "model.weights");
}

static void what_cannot_be_listed_does_not_stop_what_is_known(void **state) {
  run_host *h = *state;
  run_host_hold_save(h, "last.pt", "the last one");
  char away[700];
  snprintf(away, sizeof away, "%s/away", run_host_top(h));
  assert_int_equal(rename(run_host_dir(h, ""), away), 0);
  err e = {0};
  for (int i = 0; i < 20; i++) {
    usleep(10000);
    run_host_step(h, &e);
  }
  run_host_hold(h, false);
  for (int i = 0; !run_host_count(h, RUN_COMMITTED, NULL) && i < 200; i++) {
    usleep(10000);
    run_host_step(h, &e);
  }
  assert_int_equal(run_host_count(h, RUN_COMMITTED, "last.pt"), 1);
}

/* ---- status ---- */

static void on_pending(void *ctx, const char *unit, const char *reason, uint64_t bytes,
                       uint64_t left, bool begun) {
  char *text = ctx;
  snprintf(text + strlen(text), 1000 - strlen(text), "%s: %s, %d of %d%s\n", unit, reason,
           (int)left, (int)bytes, begun ? ", begun" : "");
}

static void all_that_is_not_durable_is_named_with_its_reason(void **state) {
  run_host *h = *state;
  char text[1000] = "";
  run_host_begin(h);
  run_host_hold_save(h, "ckpt-1.pt", "12345");
  write_file(run_host_dir(h, "last.pt"), "123");
  run_host_for(h, 0.1);
  FILE *f = fopen(run_host_dir(h, "best.pt"), "w");
  fputs("1", f);
  fflush(f);
  run_host_for(h, 0.05);
  assert_int_equal(run_pending(run_host_run(h), on_pending, text), 3);
  assert_non_null(strstr(text, "being written"));
  assert_non_null(strstr(text, "ckpt-1.pt: uploading, 5 of 5, begun\n"
                               "last.pt: waiting for its turn, 3 of 3\n"));
  assert_int_equal(run_host_status(h).bytes_left, 9);
  fclose(f);
  run_host_fail_store(h, 28 /* ENOSPC */);
  run_host_hold(h, false);
  run_host_idle(h);
  text[0] = '\0';
  assert_int_equal(run_pending(run_host_run(h), on_pending, text), 3);
  assert_non_null(strstr(text, "last.pt: no space"));
  run_host_fail_store(h, 0);
}

/* ---- close ---- */

static int count_threads(void) {
  return count_entries("/proc/self/task");
}

static void a_close_in_the_middle_of_an_upload_leaves_nothing_behind(void **state) {
  int fds = count_fds(), threads = count_threads();
  run_host *h = run_host_new(NULL);
  run_host_begin(h);
  run_host_hold_save(h, "ckpt-1.pt", "one");
  run_host_let_wait(h, "last.pt");
  run_host_close(h); /* lets the worker go on, and cancels it */
  assert_string_equal(run_host_commits(h), "");
  assert_false(path_exists(run_host_store(h, "ckpt-1.pt")));
  char *lease = read_file(run_host_store(h, ".ckpt/lease"), NULL);
  assert_non_null(strstr(lease, "\"released\":true"));
  free(lease);
  assert_int_equal(count_entries(run_host_state(h, "staging")), 0);
  /* The journal knows what was whole: a run without events saves it. */
  run_host_begin(h);
  run_host_idle(h);
  assert_true(run_host_count(h, RUN_COMMITTED, "ckpt-1.pt") == 1);
  assert_true(run_host_count(h, RUN_COMMITTED, "last.pt") == 1);
  run_host_free(h);
  assert_int_equal(count_fds(), fds);
  for (int i = 0; count_threads() != threads && i < 100; i++) usleep(1000);
  assert_int_equal(count_threads(), threads);
}

static void closing_nothing_is_fine(void **state) {
  run_close(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(a_target_in_the_watched_directory_is_refused),
      WITH_HOST(a_bad_pattern_is_refused_before_anything_is_made),
      WITH_HOST(an_unknown_store_is_refused),
      WITH_RUN(a_target_of_another_run_is_refused_and_the_text_names_both),
      WITH_RUN(a_second_run_on_the_same_state_is_refused_and_changes_nothing),
      WITH_RUN(two_never_own_one_directory_whatever_their_state_directories_are),
      WITH_RUN(one_that_watches_beside_the_owner_saves_and_restores_nothing),
      WITH_HOST(a_writer_that_lives_elsewhere_is_not_pushed_aside_unasked),
      WITH_HOST(the_same_launch_takes_over_unasked),
      WITH_HOST(events_before_the_start_are_errors),
      WITH_HOST(a_start_that_fails_can_be_tried_again),
      WITH_HOST(a_result_is_an_object_of_at_most_64_KiB),
      WITH_HOST(a_trainer_that_carries_the_runs_id_is_ours_to_end),
      WITH_HOST(one_that_only_the_journal_names_is_told_and_left),
      WITH_HOST(one_of_a_copied_state_is_told_and_left),
      WITH_RUN(a_child_that_ended_before_it_was_looked_at_is_no_error),
      WITH_HOST(a_clean_end_makes_the_last_unit_complete_at_once),
      WITH_HOST(what_only_its_structure_proves_waits_for_quiet_while_a_writer_may_live),
      WITH_RUN(files_of_no_unit_are_counted_with_an_example),
      WITH_RUN(what_cannot_be_listed_does_not_stop_what_is_known),
      WITH_HOST(all_that_is_not_durable_is_named_with_its_reason),
      cmocka_unit_test(a_close_in_the_middle_of_an_upload_leaves_nothing_behind),
      cmocka_unit_test(closing_nothing_is_fine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
