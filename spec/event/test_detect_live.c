/* detect on a real directory, with inotify and with polling, and writers in other processes. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "detect_live.h"
#include "tmpdir.h"

#define MS INT64_C(1000000)

static rules *quick;

static int setup(void **state) {
  int rc = rules_custom(NULL, NULL, NULL, 400 * MS, &quick, NULL);
  if (rc == 0) quick->marked_ns = 200 * MS;
  return rc;
}

static int teardown(void **state) {
  rules_free(quick);
  return 0;
}

static detect *open_at(const char *dir, detect_mode mode) {
  detect *d;
  err e = {0};
  detect_options o = {
      .io = io_system(), .root = dir, .rules = quick, .mode = mode, .poll_ns = 50 * MS};
  if (detect_open(&o, &d, &e) < 0) fail_msg("%s", e.text);
  return d;
}

/* A process that opens the file, writes half, waits for a byte, writes the rest and ends. */
static pid_t slow_writer(const char *path, int *go) {
  int pipes[2];
  assert_int_equal(pipe(pipes), 0);
  pid_t pid = fork();
  if (pid == 0) {
    char c;
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    close(pipes[1]);
    if (write(fd, "half", 4) < 0 || read(pipes[0], &c, 1) < 0 || write(fd, "rest", 4) < 0) _exit(1);
    _exit(0); /* the kernel closes it */
  }
  close(pipes[0]);
  *go = pipes[1];
  return pid;
}

static void a_file_is_complete_when_its_writer_has_closed_it(void **state) {
  char *dir = *state;
  detect *d = open_at(dir, DETECT_AUTO);
  int go;
  if (detect_polling(d)) skip();
  pid_t pid = slow_writer(tmpdir_path(dir, "a.pt"), &go);
  live_run_for(d, 700 * MS);
  assert_int_equal(live_state(d, "a.pt"), DETECT_OPEN);
  close(go);
  waitpid(pid, NULL, 0);
  live_wait_for(d, "a.pt", DETECT_COMPLETE);
  assert_int_equal(detect_due(d), INT64_MAX);
  detect_close(d);
}

static void a_killed_writer_leaves_an_unproven_file(void **state) {
  char *dir = *state;
  detect *d = open_at(dir, DETECT_AUTO);
  int go;
  pid_t pid = slow_writer(tmpdir_path(dir, "a.pt"), &go);
  live_run_for(d, 100 * MS);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  detect_writer_gone(d, false); /* the close of the kernel has not been read yet */
  live_run_for(d, 600 * MS);
  assert_int_equal(live_state(d, "a.pt"), DETECT_UNPROVEN);
  close(go);
  detect_close(d);
}

static void a_clean_end_completes_at_once(void **state) {
  char *dir = *state;
  detect *d = open_at(dir, DETECT_AUTO);
  int go;
  pid_t pid = slow_writer(tmpdir_path(dir, "a.pt"), &go);
  live_run_for(d, 50 * MS);
  close(go);
  waitpid(pid, NULL, 0);
  detect_writer_gone(d, true);
  live_run_for(d, 60 * MS);
  assert_int_equal(live_state(d, "a.pt"), DETECT_COMPLETE);
  detect_close(d);
}

/* Whole trees appear between two reads of the events, as cp and mv make them. */
static void trees_that_appear_at_once_are_found(void **state) {
  char *dir = *state, command[4096];
  detect *d = open_at(dir, DETECT_AUTO);
  snprintf(command, sizeof command,
           "cd '%s' && mkdir -p exp/T1/checkpoint_5/a/b && echo x >exp/T1/checkpoint_5/a/b/c.bin &&"
           "mkdir 2.orbax-checkpoint-tmp && echo x >2.orbax-checkpoint-tmp/data &&"
           "mv 2.orbax-checkpoint-tmp 2 && echo y >best.tmp && mv best.tmp best.pt",
           dir);
  assert_int_equal(system(command), 0);
  live_wait_for(d, "best.pt", DETECT_COMPLETE);
  live_wait_for(d, "2", DETECT_COMPLETE);
  live_wait_for(d, "exp/T1/checkpoint_5", DETECT_COMPLETE);
  snprintf(command, sizeof command, "cd '%s' && mv exp moved && echo z >moved/T1/checkpoint_5/d",
           dir);
  assert_int_equal(system(command), 0);
  live_run_for(d, 50 * MS);
  assert_int_equal(live_state(d, "exp/T1/checkpoint_5"), DETECT_GONE);
  assert_int_equal(live_state(d, "moved/T1/checkpoint_5"), DETECT_OPEN);
  live_wait_for(d, "moved/T1/checkpoint_5", DETECT_COMPLETE);
  snprintf(command, sizeof command, "rm -rf '%s/moved'", dir);
  assert_int_equal(system(command), 0);
  live_wait_for(d, "moved/T1/checkpoint_5", DETECT_GONE);
  detect_close(d);
}

static void polling_sees_what_inotify_does_not(void **state) {
  char *dir = *state;
  detect *d = open_at(dir, DETECT_POLL);
  int go;
  assert_true(detect_polling(d));
  assert_int_equal(detect_fd(d), -1);
  assert_true(detect_due(d) < INT64_MAX);
  pid_t pid = slow_writer(tmpdir_path(dir, "a.pt"), &go);
  live_run_for(d, 800 * MS); /* quiet long enough, but somebody has it open */
  assert_int_equal(live_state(d, "a.pt"), DETECT_OPEN);
  close(go);
  waitpid(pid, NULL, 0);
  live_wait_for(d, "a.pt", DETECT_COMPLETE);
  write_file(tmpdir_path(dir, "a.pt"), "again, and longer");
  live_wait_for(d, "a.pt", DETECT_OPEN);
  live_wait_for(d, "a.pt", DETECT_COMPLETE);
  detect_unit u;
  assert_int_equal(detect_find(d, "a.pt", &u), 1);
  assert_int_equal(u.generation, 1);
  unlink(tmpdir_path(dir, "a.pt"));
  live_wait_for(d, "a.pt", DETECT_GONE);
  detect_close(d);
}

static void polling_recognises_a_rename(void **state) {
  char *dir = *state;
  detect *d = open_at(dir, DETECT_POLL);
  write_file(tmpdir_path(dir, "a.tmp"), "x");
  make_dir(tmpdir_path(dir, "_checkpoint"));
  write_file(tmpdir_path(dir, "_checkpoint/model"), "x");
  live_run_for(d, 150 * MS);
  assert_int_equal(rename(tmpdir_path(dir, "a.tmp"), tmpdir_path(dir, "a.pt")), 0);
  assert_int_equal(rename(tmpdir_path(dir, "_checkpoint"), tmpdir_path(dir, "checkpoint-3")), 0);
  live_wait_for(d, "a.pt", DETECT_COMPLETE);
  live_wait_for(d, "checkpoint-3", DETECT_COMPLETE);
  detect_unit u;
  detect_find(d, "checkpoint-3", &u);
  assert_string_equal(u.reason, "renamed into place");
  detect_close(d);
}

static void a_root_that_is_a_link_is_resolved(void **state) {
  char *dir = *state;
  make_dir(tmpdir_path(dir, "real"));
  assert_int_equal(symlink("real", tmpdir_path(dir, "out")), 0);
  detect *d = open_at(tmpdir_path(dir, "out"), DETECT_AUTO);
  write_file(tmpdir_path(dir, "real/a.pt"), "x");
  live_wait_for(d, "a.pt", DETECT_COMPLETE);
  detect_close(d);
}

static void a_root_that_is_not_there_is_an_error(void **state) {
  detect *d;
  err e = {0};
  char *dir = tmpdir_new();
  detect_options o = {.io = io_system(), .root = tmpdir_path(dir, "nothing"), .rules = quick};
  assert_int_equal(detect_open(&o, &d, &e), ERR_NOENT);
  assert_non_null(strstr(e.text, "nothing"));
  assert_null(d);
  detect_close(d);
  tmpdir_remove(dir);
}

static void no_descriptor_is_left_open(void **state) {
  int before = count_fds();
  char *dir = tmpdir_new();
  make_dir(tmpdir_path(dir, "checkpoint-1"));
  write_file(tmpdir_path(dir, "checkpoint-1/a.json"), "{}");
  detect *d = open_at(dir, DETECT_AUTO);
  live_run_for(d, 50 * MS);
  detect_close(d);
  tmpdir_remove(dir);
  assert_int_equal(count_fds(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_DIRECTORY(a_file_is_complete_when_its_writer_has_closed_it),
      IN_A_DIRECTORY(a_killed_writer_leaves_an_unproven_file),
      IN_A_DIRECTORY(a_clean_end_completes_at_once),
      IN_A_DIRECTORY(trees_that_appear_at_once_are_found),
      IN_A_DIRECTORY(polling_sees_what_inotify_does_not),
      IN_A_DIRECTORY(polling_recognises_a_rename),
      IN_A_DIRECTORY(a_root_that_is_a_link_is_resolved),
      cmocka_unit_test(a_root_that_is_not_there_is_an_error),
      cmocka_unit_test(no_descriptor_is_left_open),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
