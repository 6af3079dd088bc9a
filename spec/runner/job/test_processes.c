#include "with_cmocka.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runner/job/processes.h"

static int ready[2];

/* A child that says so when it is set up, and then sleeps. */
static pid_t sleeper(bool ignores_term, const char *name) {
  char byte;
  assert_int_equal(pipe(ready), 0);
  pid_t pid = fork();
  if (pid == 0) {
    if (ignores_term) signal(SIGTERM, SIG_IGN);
    if (name) prctl(PR_SET_NAME, name);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  return pid;
}

static int end_of(pid_t pid) {
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void a_name_may_have_blanks_and_parentheses(void **state) {
  pid_t pid = sleeper(false, "a) R 1 (b");
  process p;
  assert_int_equal(process_read(pid, &p), 0);
  assert_string_equal(p.name, "a) R 1 (b");
  assert_int_equal(p.parent, getpid());
  assert_true(p.start > 0);
  assert_false(p.zombie);
  kill(pid, SIGKILL);
  end_of(pid);
  assert_true(process_read(pid, &p) < 0);
}

static void descendants_are_found_at_any_depth_and_zombies_are_none(void **state) {
  char byte;
  int pipe_fds[2];
  pid_t deep = 0;
  assert_int_equal(pipe(pipe_fds), 0);
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pid_t grandchild = sleeper(false, NULL);
    pid_t dead = fork();
    if (dead == 0) _exit(0);
    siginfo_t info;
    waitid(P_PID, (id_t)dead, &info, WEXITED | WNOWAIT); /* stays a zombie */
    if (write(pipe_fds[1], &grandchild, sizeof grandchild) < 0) _exit(1);
    for (;;) pause();
  }
  assert_int_equal(read(pipe_fds[0], &deep, sizeof deep), sizeof deep);
  process_list list = {0};
  assert_int_equal(processes_below(getpid(), &list), 0);
  assert_int_equal(list.count, 2);
  bool both = (list.items[0].pid == child && list.items[1].pid == deep) ||
              (list.items[0].pid == deep && list.items[1].pid == child);
  assert_true(both);
  kill(deep, SIGKILL);
  kill(child, SIGKILL);
  end_of(child);
  assert_true(read(pipe_fds[0], &byte, 0) == 0);
  close(pipe_fds[0]);
  close(pipe_fds[1]);
  processes_free(&list);
}

static void a_number_that_another_process_has_now_is_not_hit(void **state) {
  pid_t pid = sleeper(false, NULL);
  process p;
  assert_int_equal(process_read(pid, &p), 0);
  assert_int_equal(process_signal(pid, p.start + 1, SIGKILL), -ESRCH);
  p.start--;
  process_list list = {.items = &p, .count = 1};
  assert_int_equal(processes_end(&list, 0.1, NULL), 0); /* that one is gone */
  assert_int_equal(kill(pid, 0), 0);
  assert_int_equal(process_signal(pid, p.start + 1, SIGTERM), 0);
  assert_int_equal(end_of(pid), SIGTERM);
}

static void who_listens_to_term_is_not_killed(void **state) {
  process p[2];
  for (int i = 0; i < 2; i++) assert_int_equal(process_read(sleeper(false, NULL), &p[i]), 0);
  process_list list = {.items = p, .count = 2};
  double begin = now_s();
  assert_int_equal(processes_end(&list, 10, NULL), 0);
  assert_true(now_s() - begin < 5); /* and nobody waits for the whole grace */
  assert_int_equal(end_of(p[0].pid), SIGTERM);
  assert_int_equal(end_of(p[1].pid), SIGTERM);
}

static void who_ignores_term_is_killed_after_the_grace(void **state) {
  process p;
  assert_int_equal(process_read(sleeper(true, NULL), &p), 0);
  process_list list = {.items = &p, .count = 1};
  double begin = now_s();
  assert_int_equal(processes_end(&list, 0.2, NULL), 0);
  assert_true(now_s() - begin >= 0.2);
  assert_int_equal(end_of(p.pid), SIGKILL);
}

static void a_process_of_another_user_is_named_and_left_alone(void **state) {
  if (geteuid() != 0) skip();
  process p, left = {0};
  assert_int_equal(process_read(sleeper(false, NULL), &p), 0);
  pid_t tester = fork();
  if (tester == 0) {
    process_list list = {.items = &p, .count = 1};
    if (setuid(65534) != 0) _exit(2);
    _exit(processes_end(&list, 0.1, &left) == -EPERM && left.pid == p.pid ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(tester, &status, 0), tester);
  assert_int_equal(status, 0);
  assert_int_equal(kill(p.pid, 0), 0);
  kill(p.pid, SIGKILL);
  end_of(p.pid);
}

static void ancestors_are_known(void **state) {
  assert_true(process_is_ancestor(getpid()));
  assert_true(process_is_ancestor(getppid()));
  pid_t pid = sleeper(false, NULL);
  assert_false(process_is_ancestor(pid));
  kill(pid, SIGKILL);
  end_of(pid);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_name_may_have_blanks_and_parentheses),
      cmocka_unit_test(descendants_are_found_at_any_depth_and_zombies_are_none),
      cmocka_unit_test(a_number_that_another_process_has_now_is_not_hit),
      cmocka_unit_test(who_listens_to_term_is_not_killed),
      cmocka_unit_test(who_ignores_term_is_killed_after_the_grace),
      cmocka_unit_test(a_process_of_another_user_is_named_and_left_alone),
      cmocka_unit_test(ancestors_are_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
