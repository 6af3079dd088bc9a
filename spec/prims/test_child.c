#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prims/child.h"
#include "tmpdir.h"

static const int64_t second = 1000000000;

static child *start(const char *program, const char *arg, const char *more) {
  char *const argv[] = {(char *)program, (char *)arg, (char *)more, NULL}, *const envp[] = {NULL};
  child *c;
  err e = {0};
  if (child_start(io_system(), program, argv, envp, &c, &e) < 0) fail_msg("%s", e.text);
  return c;
}

static child *shell(const char *text) {
  return start("/bin/sh", "-c", text);
}

static int64_t now(void) {
  return io_system()->now(io_system(), IO_MONO);
}

static child_limit within(double wall_s) {
  return (child_limit){.wall_ns = now() + (int64_t)(wall_s * 1e9), .cpu_ns = 60 * second};
}

static void what_is_sent_to_cat_comes_back(void **unused) {
  enum { LEN = 3 << 20 }; /* more than any pipe holds: in parts */
  char *sent = malloc(LEN), *got = malloc(LEN);
  child *c = start("/bin/cat", NULL, NULL);
  child_limit limit = within(10);
  for (size_t i = 0; i < LEN; i++) sent[i] = (char)(i * 7 + i / 251);
  for (size_t at = 0; at < LEN; at += 64 << 10) {
    assert_int_equal(child_send(c, sent + at, 64 << 10, &limit, NULL), 0);
    assert_int_equal(child_recv(c, got + at, 64 << 10, &limit, NULL), 0);
  }
  assert_memory_equal(sent, got, LEN);
  assert_true(child_idle(c));
  child_end(c, 0, NULL);
  free(sent);
  free(got);
}

static void a_program_that_is_not_there_is_named(void **unused) {
  char *const argv[] = {"x", NULL}, *const envp[] = {NULL};
  child *c;
  err e = {0};
  int fds = count_fds();
  assert_int_equal(child_start(io_system(), "/no/such/program", argv, envp, &c, &e), ERR_NOENT);
  assert_non_null(strstr(e.text, "/no/such/program"));
  assert_null(c);
  assert_int_equal(count_fds(), fds);
}

static void what_does_not_answer_costs_the_limit_and_no_more(void **unused) {
  char byte;
  err e = {0};
  child *c = start("/bin/sleep", "100", NULL);
  child_limit limit = within(0.2);
  int64_t begun = now();
  assert_int_equal(child_recv(c, &byte, 1, &limit, &e), ERR_TIMEOUT);
  assert_in_range(now() - begun, second / 5, 2 * second);
  char how[CHILD_HOW_MAX];
  child_end(c, 0, how);
  assert_string_equal(how, "signal KILL killed it");
  assert_in_range(now() - begun, 0, 3 * second);
}

static void what_burns_its_cpu_time_is_noticed_before_the_wall_limit(void **unused) {
  char byte;
  err e = {0};
  child *c = shell("while :; do :; done");
  child_limit limit = {.wall_ns = now() + 60 * second, .cpu_ns = second / 10};
  assert_int_equal(child_recv(c, &byte, 1, &limit, &e), ERR_TIMEOUT);
  assert_non_null(strstr(e.text, "CPU"));
  assert_true(child_cpu_ns(c) >= second / 10);
  child_end(c, 0, NULL);
}

static void one_that_takes_nothing_in_blocks_nobody(void **unused) {
  enum { LEN = 8 << 20 };
  char *much = calloc(1, LEN);
  child *c = start("/bin/sleep", "100", NULL);
  child_limit limit = within(0.2);
  assert_int_equal(child_send(c, much, LEN, &limit, NULL), ERR_TIMEOUT);
  child_end(c, 0, NULL);
  free(much);
}

/* Its input has a reader for as long as we are there: what is gone is seen by its output. */
static void one_that_goes_while_it_is_sent_something_is_noticed_at_once(void **unused) {
  enum { LEN = 8 << 20 };
  char *much = calloc(1, LEN);
  err e = {0};
  child *c = shell("head -c 100000 >/dev/null");
  child_limit limit = within(60);
  int64_t begun = now();
  assert_int_equal(child_send(c, much, LEN, &limit, &e), ERR_IO);
  assert_in_range(now() - begun, 0, 30 * second);
  child_end(c, second, NULL);
  free(much);
}

static void one_that_gives_byte_after_byte_has_its_cpu_time_looked_at(void **unused) {
  enum { LEN = 8 << 20 };
  char *much = malloc(LEN);
  err e = {0};
  child *c = shell("while :; do printf x; done");
  child_limit limit = {.wall_ns = now() + 60 * second, .cpu_ns = second / 10};
  assert_int_equal(child_recv(c, much, LEN, &limit, &e), ERR_TIMEOUT);
  assert_non_null(strstr(e.text, "CPU"));
  child_end(c, 0, NULL);
  free(much);
}

static void a_flood_is_taken_in_parts_and_ended(void **unused) {
  char part[4096];
  child *c = start("/usr/bin/yes", NULL, NULL);
  child_limit limit = within(5);
  for (int i = 0; i < 100; i++) {
    assert_int_equal(child_recv(c, part, sizeof part, &limit, NULL), 0);
    assert_memory_equal(part, "y\ny\n", 4);
  }
  for (int i = 0; i < 500 && child_idle(c); i++) usleep(10000); /* it has to catch up first */
  assert_false(child_idle(c));
  child_end(c, 0, NULL);
}

/* SIGPIPE would end this test. */
static void one_that_is_gone_is_an_error_and_no_signal(void **unused) {
  char byte, how[CHILD_HOW_MAX];
  err e = {0};
  child *c = shell("exit 7");
  child_limit limit = within(5);
  assert_int_equal(child_recv(c, &byte, 1, &limit, &e), ERR_IO);
  assert_false(child_idle(c));
  assert_true(child_send(c, "x", 1, &limit, NULL) < 0);
  assert_true(child_send(c, "x", 1, &limit, NULL) < 0);
  child_end(c, second, how);
  assert_string_equal(how, "it ended with exit code 7");
  c = shell("kill -SEGV $$");
  assert_true(child_recv(c, &byte, 1, &limit, &e) < 0);
  child_end(c, second, how);
  assert_string_equal(how, "signal SEGV killed it");
}

static void the_signals_for_a_whole_job_do_not_end_it(void **unused) {
  static const int jobs[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP};
  char byte;
  child *c = start("/bin/cat", NULL, NULL);
  child_limit limit = within(5);
  for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) kill(child_pid(c), jobs[i]);
  assert_int_equal(child_send(c, "x", 1, &limit, NULL), 0);
  assert_int_equal(child_recv(c, &byte, 1, &limit, NULL), 0);
  assert_int_not_equal(getpgid(child_pid(c)), getpgrp());
  child_end(c, 0, NULL);
}

/* The end of its input is all that it is told. */
static void it_sees_our_end(void **unused) {
  char how[CHILD_HOW_MAX];
  child *c = shell("cat >/dev/null; exit 5");
  child_end(c, 5 * second, how);
  assert_string_equal(how, "it ended with exit code 5");
}

static void it_has_three_descriptors_and_no_environment(void **unused) {
  char text[200] = "";
  int pipe_of_host[2]; /* without close-on-exec */
  assert_int_equal(pipe(pipe_of_host), 0);
  setenv("SECRET", "1", 1);
  child *c = shell("ls -l /proc/self/fd | grep -c '[0-9] -> '; env | grep -c SECRET; readlink "
                   "/proc/self/fd/2; echo end");
  child_limit limit = within(10);
  size_t len = 0;
  while (!strstr(text, "end\n") && len + 1 < sizeof text &&
         child_recv(c, text + len, 1, &limit, NULL) == 0)
    len++;
  child_end(c, 0, NULL);
  /* ls has the directory that it lists open too. */
  assert_string_equal(text, "4\n0\n/dev/null\nend\n");
  close(pipe_of_host[0]);
  close(pipe_of_host[1]);
}

/* In a process of its own, as it closes what the test prints to. */
static int in_other(int (*body)(void)) {
  int status;
  pid_t pid = fork();
  if (pid == 0) _exit(body());
  if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

static int without_standard_files(void) {
  char byte = 0;
  for (int fd = 0; fd < 3; fd++) close(fd);
  char *const argv[] = {"cat", NULL}, *const envp[] = {NULL};
  child *c;
  if (child_start(io_system(), "/bin/cat", argv, envp, &c, NULL) < 0) return 1;
  child_limit limit = within(5);
  /* Whoever prints must not reach the helper. */
  for (int fd = 0; fd < 3; fd++)
    if (write(fd, "junk", 4) >= 0) return 2;
  if (child_send(c, "x", 1, &limit, NULL) < 0) return 3;
  if (child_recv(c, &byte, 1, &limit, NULL) < 0 || byte != 'x') return 4;
  child_end(c, 0, NULL);
  return 0;
}

static void a_host_without_standard_files_is_fine(void **unused) {
  assert_int_equal(in_other(without_standard_files), 0);
}

static int where_children_are_ignored(void) {
  char byte = 0, how[CHILD_HOW_MAX];
  signal(SIGCHLD, SIG_IGN);
  char *const argv[] = {"cat", NULL}, *const envp[] = {NULL};
  child *c;
  if (child_start(io_system(), "/bin/cat", argv, envp, &c, NULL) < 0) return 1;
  child_limit limit = within(5);
  if (child_send(c, "x", 1, &limit, NULL) < 0) return 2;
  if (child_recv(c, &byte, 1, &limit, NULL) < 0) return 3;
  int64_t begun = now();
  child_end(c, 0, how);
  if (now() - begun > second) return 4;
  return strcmp(how, "it ended") == 0 ? 0 : 5;
}

static void a_host_that_ignores_its_children_is_fine(void **unused) {
  assert_int_equal(in_other(where_children_are_ignored), 0);
}

/* The runner does that: it waits for any child. */
static void one_that_the_host_has_reaped_is_no_riddle(void **unused) {
  char how[CHILD_HOW_MAX];
  child *c = shell("exit 3");
  assert_int_equal(waitpid(-1, NULL, 0), child_pid(c));
  assert_int_equal(child_cpu_ns(c), 0);
  child_end(c, 0, how);
  assert_string_equal(how, "it ended");
  errno = 0;
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void children_of_the_host_stay_the_hosts(void **unused) {
  int status;
  pid_t own = fork();
  if (own == 0) _exit(9);
  child *c = start("/bin/cat", NULL, NULL);
  child_end(c, second, NULL);
  assert_int_equal(waitpid(own, &status, 0), own);
  assert_int_equal(WEXITSTATUS(status), 9);
}

static void nothing_is_left_behind(void **unused) {
  int fds = count_fds();
  for (int i = 0; i < 20; i++) child_end(start("/bin/cat", NULL, NULL), 0, NULL);
  child_end(NULL, 0, NULL);
  assert_int_equal(count_fds(), fds);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void on_alarm(int signo) {}

static void *interrupt(void *of) {
  for (int i = 0; i < 200; i++) {
    pthread_kill(*(pthread_t *)of, SIGALRM);
    usleep(1000);
  }
  return NULL;
}

static void a_handler_that_interrupts_all_calls_changes_nothing(void **unused) {
  struct sigaction act = {.sa_handler = on_alarm}, old;
  pthread_t self = pthread_self(), other;
  char text[2];
  sigaction(SIGALRM, &act, &old);
  child *c = shell("sleep 0.15; printf ok; sleep 100");
  child_limit limit = within(10);
  assert_int_equal(pthread_create(&other, NULL, interrupt, &self), 0);
  assert_int_equal(child_recv(c, text, sizeof text, &limit, NULL), 0);
  assert_memory_equal(text, "ok", 2);
  child_end(c, 0, NULL);
  pthread_join(other, NULL);
  sigaction(SIGALRM, &old, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_sent_to_cat_comes_back),
      cmocka_unit_test(a_program_that_is_not_there_is_named),
      cmocka_unit_test(what_does_not_answer_costs_the_limit_and_no_more),
      cmocka_unit_test(what_burns_its_cpu_time_is_noticed_before_the_wall_limit),
      cmocka_unit_test(one_that_takes_nothing_in_blocks_nobody),
      cmocka_unit_test(one_that_goes_while_it_is_sent_something_is_noticed_at_once),
      cmocka_unit_test(one_that_gives_byte_after_byte_has_its_cpu_time_looked_at),
      cmocka_unit_test(a_flood_is_taken_in_parts_and_ended),
      cmocka_unit_test(one_that_is_gone_is_an_error_and_no_signal),
      cmocka_unit_test(the_signals_for_a_whole_job_do_not_end_it),
      cmocka_unit_test(it_sees_our_end),
      cmocka_unit_test(it_has_three_descriptors_and_no_environment),
      cmocka_unit_test(a_host_without_standard_files_is_fine),
      cmocka_unit_test(a_host_that_ignores_its_children_is_fine),
      cmocka_unit_test(one_that_the_host_has_reaped_is_no_riddle),
      cmocka_unit_test(children_of_the_host_stay_the_hosts),
      cmocka_unit_test(nothing_is_left_behind),
      cmocka_unit_test(a_handler_that_interrupts_all_calls_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
