/* detect on a real directory, with inotify and with polling, and writers in other processes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/detect.h"
#include "tmpdir.h"

#define MS INT64_C(1000000)

static rules *quick;

static int setup(void **state) {
  (void)state;
  int rc = rules_custom(NULL, NULL, NULL, 400 * MS, &quick, NULL);
  if (rc == 0) quick->marked_ns = 200 * MS;
  return rc;
}

static int teardown(void **state) {
  (void)state;
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

static int64_t now(void) {
  return io_system()->now(io_system(), IO_MONO);
}

/* Sleeps as the runner does: on the descriptor, until it is due. */
static void run_for(detect *d, int64_t ns) {
  err e = {0};
  for (int64_t end = now() + ns; now() < end;) {
    int64_t due = detect_due(d), left = (due < end ? due : end) - now();
    struct pollfd p = {.fd = detect_fd(d), .events = POLLIN};
    poll(&p, p.fd >= 0, left > 0 ? (int)(left / MS) + 1 : 0);
    if (detect_run(d, &e) < 0) fail_msg("%s", e.text);
  }
}

static detect_state state_of(detect *d, const char *path) {
  detect_unit u;
  return detect_find(d, path, &u) ? u.state : DETECT_GONE;
}

static void wait_for(detect *d, const char *path, detect_state want) {
  for (int i = 0; i < 200 && state_of(d, path) != want; i++) run_for(d, 20 * MS);
  detect_unit u = {.reason = "unknown"};
  detect_find(d, path, &u);
  if (state_of(d, path) != want)
    fail_msg("%s is in state %d: %s", path, (int)state_of(d, path), u.reason);
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
  (void)state;
  char *dir = tmpdir_new();
  detect *d = open_at(dir, DETECT_AUTO);
  int go;
  if (detect_polling(d)) skip();
  pid_t pid = slow_writer(tmpdir_path(dir, "a.pt"), &go);
  run_for(d, 700 * MS);
  assert_int_equal(state_of(d, "a.pt"), DETECT_OPEN);
  close(go);
  waitpid(pid, NULL, 0);
  wait_for(d, "a.pt", DETECT_COMPLETE);
  assert_int_equal(detect_due(d), INT64_MAX);
  detect_close(d);
  tmpdir_remove(dir);
}

static void a_killed_writer_leaves_an_unproven_file(void **state) {
  (void)state;
  char *dir = tmpdir_new();
  detect *d = open_at(dir, DETECT_AUTO);
  int go;
  pid_t pid = slow_writer(tmpdir_path(dir, "a.pt"), &go);
  run_for(d, 100 * MS);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  detect_writer_gone(d, false); /* the close of the kernel has not been read yet */
  run_for(d, 600 * MS);
  assert_int_equal(state_of(d, "a.pt"), DETECT_UNPROVEN);
  close(go);
  detect_close(d);
  tmpdir_remove(dir);
}

static void a_clean_end_completes_at_once(void **state) {
  (void)state;
  char *dir = tmpdir_new();
  detect *d = open_at(dir, DETECT_AUTO);
  int go;
  pid_t pid = slow_writer(tmpdir_path(dir, "a.pt"), &go);
  run_for(d, 50 * MS);
  close(go);
  waitpid(pid, NULL, 0);
  detect_writer_gone(d, true);
  run_for(d, 60 * MS);
  assert_int_equal(state_of(d, "a.pt"), DETECT_COMPLETE);
  detect_close(d);
  tmpdir_remove(dir);
}

/* Whole trees appear between two reads of the events, as cp and mv make them. */
static void trees_that_appear_at_once_are_found(void **state) {
  (void)state;
  char *dir = tmpdir_new(), command[4096];
  detect *d = open_at(dir, DETECT_AUTO);
  snprintf(command, sizeof command,
           "cd '%s' && mkdir -p exp/T1/checkpoint_5/a/b && echo x >exp/T1/checkpoint_5/a/b/c.bin &&"
           "mkdir 2.orbax-checkpoint-tmp && echo x >2.orbax-checkpoint-tmp/data &&"
           "mv 2.orbax-checkpoint-tmp 2 && echo y >best.tmp && mv best.tmp best.pt",
           dir);
  assert_int_equal(system(command), 0);
  wait_for(d, "best.pt", DETECT_COMPLETE);
  wait_for(d, "2", DETECT_COMPLETE);
  wait_for(d, "exp/T1/checkpoint_5", DETECT_COMPLETE);
  snprintf(command, sizeof command, "cd '%s' && mv exp moved && echo z >moved/T1/checkpoint_5/d",
           dir);
  assert_int_equal(system(command), 0);
  run_for(d, 50 * MS);
  assert_int_equal(state_of(d, "exp/T1/checkpoint_5"), DETECT_GONE);
  assert_int_equal(state_of(d, "moved/T1/checkpoint_5"), DETECT_OPEN);
  wait_for(d, "moved/T1/checkpoint_5", DETECT_COMPLETE);
  snprintf(command, sizeof command, "rm -rf '%s/moved'", dir);
  assert_int_equal(system(command), 0);
  wait_for(d, "moved/T1/checkpoint_5", DETECT_GONE);
  detect_close(d);
  tmpdir_remove(dir);
}

static void polling_sees_what_inotify_does_not(void **state) {
  (void)state;
  char *dir = tmpdir_new();
  detect *d = open_at(dir, DETECT_POLL);
  int go;
  assert_true(detect_polling(d));
  assert_int_equal(detect_fd(d), -1);
  assert_true(detect_due(d) < INT64_MAX);
  pid_t pid = slow_writer(tmpdir_path(dir, "a.pt"), &go);
  run_for(d, 800 * MS); /* quiet long enough, but somebody has it open */
  assert_int_equal(state_of(d, "a.pt"), DETECT_OPEN);
  close(go);
  waitpid(pid, NULL, 0);
  wait_for(d, "a.pt", DETECT_COMPLETE);
  write_file(tmpdir_path(dir, "a.pt"), "again, and longer");
  wait_for(d, "a.pt", DETECT_OPEN);
  wait_for(d, "a.pt", DETECT_COMPLETE);
  detect_unit u;
  assert_int_equal(detect_find(d, "a.pt", &u), 1);
  assert_int_equal(u.generation, 1);
  unlink(tmpdir_path(dir, "a.pt"));
  wait_for(d, "a.pt", DETECT_GONE);
  detect_close(d);
  tmpdir_remove(dir);
}

static void polling_recognises_a_rename(void **state) {
  (void)state;
  char *dir = tmpdir_new();
  detect *d = open_at(dir, DETECT_POLL);
  write_file(tmpdir_path(dir, "a.tmp"), "x");
  make_dir(tmpdir_path(dir, "_checkpoint"));
  write_file(tmpdir_path(dir, "_checkpoint/model"), "x");
  run_for(d, 150 * MS);
  assert_int_equal(rename(tmpdir_path(dir, "a.tmp"), tmpdir_path(dir, "a.pt")), 0);
  assert_int_equal(rename(tmpdir_path(dir, "_checkpoint"), tmpdir_path(dir, "checkpoint-3")), 0);
  wait_for(d, "a.pt", DETECT_COMPLETE);
  wait_for(d, "checkpoint-3", DETECT_COMPLETE);
  detect_unit u;
  detect_find(d, "checkpoint-3", &u);
  assert_string_equal(u.reason, "renamed into place");
  detect_close(d);
  tmpdir_remove(dir);
}

static void a_root_that_is_a_link_is_resolved(void **state) {
  (void)state;
  char *dir = tmpdir_new();
  make_dir(tmpdir_path(dir, "real"));
  assert_int_equal(symlink("real", tmpdir_path(dir, "out")), 0);
  detect *d = open_at(tmpdir_path(dir, "out"), DETECT_AUTO);
  write_file(tmpdir_path(dir, "real/a.pt"), "x");
  wait_for(d, "a.pt", DETECT_COMPLETE);
  detect_close(d);
  tmpdir_remove(dir);
}

static void a_root_that_is_not_there_is_an_error(void **state) {
  (void)state;
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
  (void)state;
  int before = count_fds();
  char *dir = tmpdir_new();
  make_dir(tmpdir_path(dir, "checkpoint-1"));
  write_file(tmpdir_path(dir, "checkpoint-1/a.json"), "{}");
  detect *d = open_at(dir, DETECT_AUTO);
  run_for(d, 50 * MS);
  detect_close(d);
  tmpdir_remove(dir);
  assert_int_equal(count_fds(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_is_complete_when_its_writer_has_closed_it),
      cmocka_unit_test(a_killed_writer_leaves_an_unproven_file),
      cmocka_unit_test(a_clean_end_completes_at_once),
      cmocka_unit_test(trees_that_appear_at_once_are_found),
      cmocka_unit_test(polling_sees_what_inotify_does_not),
      cmocka_unit_test(polling_recognises_a_rename),
      cmocka_unit_test(a_root_that_is_a_link_is_resolved),
      cmocka_unit_test(a_root_that_is_not_there_is_an_error),
      cmocka_unit_test(no_descriptor_is_left_open),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
