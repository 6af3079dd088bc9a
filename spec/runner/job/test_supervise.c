#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runner/job/supervise.h"

/* Each test runs in a process of its own: supervise_begin() changes masks and makes a subreaper,
 * for good. The body returns 0 when its promise holds, else the line that broke it. */
static void in_process(int (*body)(void)) {
  pid_t pid = fork();
  int status = 0;
  if (pid == 0) {
    alarm(20);
    _exit(body());
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (status != 0)
    print_message("%s: %d\n", WIFEXITED(status) ? "line" : "wait status",
                  WIFEXITED(status) ? WEXITSTATUS(status) : status);
  assert_int_equal(status, 0);
}
/* An exit status has a byte: lines beyond it are told on stderr. */
#define NEED(condition)                                                                            \
  do {                                                                                             \
    if (!(condition)) return fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), 1;    \
  } while (0)

static supervisor sup;

static int start(const char *script) {
  char *argv[] = {"/bin/sh", "-c", (char *)script, NULL};
  char *env[] = {"PATH=/usr/bin:/bin", "ONLY=this", NULL};
  int why = 0;
  return supervise_start(&sup, argv, env, &why);
}

/* Waits for the child's end as the loop does; its wait status, or -1. */
static int await(void) {
  struct signalfd_siginfo info;
  for (;;) {
    struct pollfd fd = {.fd = sup.signals, .events = POLLIN};
    if (poll(&fd, 1, 10000) != 1) return -1;
    while (read(sup.signals, &info, sizeof info) == sizeof info)
      if (info.ssi_signo == SIGCHLD && supervise_reap(&sup)) return sup.status;
  }
}

static bool begin(void) {
  supervise_init(&sup);
  return supervise_begin(&sup) == 0;
}

static int exit_code(void) {
  NEED(begin());
  NEED(start("exit 7") == 0);
  int status = await();
  NEED(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  NEED(supervise_signal(&sup, SIGTERM) == -ESRCH);
  return 0;
}

static int not_found(void) {
  char *none[] = {"no-such-command-here", NULL}, *dir[] = {"/tmp", NULL};
  char *env[] = {NULL};
  int why = 0;
  NEED(begin());
  NEED(supervise_start(&sup, none, env, &why) == 127 && why == ENOENT);
  NEED(supervise_start(&sup, dir, env, &why) == 126 && why == EACCES);
  NEED(sup.child == 0);
  NEED(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* nobody is left over */
  return 0;
}

static int no_process(void) {
  char *argv[] = {"/bin/true", NULL}, *env[] = {NULL};
  int why = 0;
  NEED(begin());
  while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) continue;
  NEED(supervise_start(&sup, argv, env, &why) == 125 && why == EMFILE);
  return 0;
}

static int environment(void) {
  NEED(begin());
  NEED(start("test \"$ONLY\" = this && test -z \"$HOME\"") == 0);
  NEED(await() == 0);
  return 0;
}

static int masks(void) {
  /* As started by a shell with nohup, and with a signal blocked. 32 and 33 are glibc's own: make
   * starts its children with them ignored. */
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_SETMASK, &set, NULL);
  for (int number = 1; number < 32; number++)
    signal(number, SIG_DFL); /* as we are run, some are not */
  signal(SIGHUP, SIG_IGN);
  NEED(begin());
  NEED(start("grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\n\\t' | "
             "grep -q '^SigBlk:0000000000000800SigIgn:[0-9a-f]*[08]0000001$'") == 0);
  NEED(await() == 0);
  return 0;
}

static int ignored_stays_ignored(void) {
  struct signalfd_siginfo info;
  signal(SIGHUP, SIG_IGN);
  NEED(begin());
  raise(SIGHUP);
  raise(SIGTERM);
  NEED(read(sup.signals, &info, sizeof info) == sizeof info && info.ssi_signo == SIGTERM);
  NEED(read(sup.signals, &info, sizeof info) < 0);
  return 0;
}

static int child_is_reaped_though_sigchld_was_ignored(void) {
  signal(SIGCHLD, SIG_IGN);
  NEED(begin());
  NEED(start("exit 3") == 0);
  int status = await();
  NEED(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  return 0;
}

static int descriptors(void) {
  close_range(3, ~0u, 0); /* what the tests' own caller left open */
  NEED(begin());
  NEED(start("test \"$(ls /proc/self/fd | sort -n | tr '\\n' ' ')\" = '0 1 2 3 '") == 0); /* ls's */
  NEED(await() == 0);
  return 0;
}

static int same_group(void) {
  char script[128];
  NEED(begin());
  snprintf(script, sizeof script, "test \"$(cut -d' ' -f5,6 /proc/self/stat)\" = '%d %d'",
           (int)getpgrp(), (int)getsid(0));
  NEED(start(script) == 0);
  NEED(await() == 0);
  return 0;
}

static int orphans(void) {
  siginfo_t info;
  NEED(begin());
  NEED(start("(sleep 0.2; exit 5) & exit 0") == 0);
  NEED(await() == 0);
  /* The grandchild has become ours, and is there to be waited for. */
  NEED(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) == 0);
  NEED(info.si_status == 5);
  supervise_reap(&sup);
  NEED(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
  NEED(sup.status == 0); /* and is not taken for the child */
  return 0;
}

static int begun[2], go_on[2], code_of_thread = -1;

/* As the engine does, which has a thread for each program that it waits for. */
static void *run_program(void *unused) {
  char byte = 0;
  int status = 0;
  pid_t pid = fork();
  if (pid == 0) _exit(3);
  siginfo_t info;
  if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0 && write(begun[1], &byte, 1) == 1 &&
      read(go_on[0], &byte, 1) == 1 && waitpid(pid, &status, 0) == pid)
    code_of_thread = WEXITSTATUS(status);
  return unused;
}

static int engines_programs(void) {
  pthread_t thread;
  char byte = 0;
  siginfo_t info;
  NEED(begin());
  NEED(pipe(begun) == 0 && pipe(go_on) == 0);
  NEED(pthread_create(&thread, NULL, run_program, NULL) == 0);
  NEED(read(begun[0], &byte, 1) == 1);
  NEED(start("(sleep 0.2; exit 5) & exit 7") == 0);
  NEED(WEXITSTATUS(await()) == 7);
  do NEED(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT | __WNOTHREAD) == 0);
  while (info.si_status != 5);
  supervise_reap(&sup);
  NEED(waitpid(-1, NULL, WNOHANG | __WNOTHREAD) == -1 && errno == ECHILD);
  NEED(write(go_on[1], &byte, 1) == 1);
  NEED(pthread_join(thread, NULL) == 0);
  NEED(code_of_thread == 3);
  return 0;
}

static void the_exit_code_comes_back(void **state) {
  in_process(exit_code);
}
static void what_cannot_be_run_has_the_codes_of_shells(void **state) {
  in_process(not_found);
}
static void what_we_cannot_start_is_125(void **state) {
  in_process(no_process);
}
static void the_child_has_the_environment_that_it_is_given(void **state) {
  in_process(environment);
}
static void the_child_gets_masks_and_dispositions_as_we_found_them(void **state) {
  in_process(masks);
}
static void a_signal_that_was_ignored_stays_ignored(void **state) {
  in_process(ignored_stays_ignored);
}
static void the_child_is_reaped_though_sigchld_was_ignored(void **state) {
  in_process(child_is_reaped_though_sigchld_was_ignored);
}
static void no_descriptor_of_ours_leaks(void **state) {
  in_process(descriptors);
}
static void the_child_stays_in_our_group_and_session(void **state) {
  in_process(same_group);
}
static void grandchildren_become_ours_and_are_reaped(void **state) {
  in_process(orphans);
}
static void a_program_that_another_thread_waits_for_is_left_to_it(void **state) {
  in_process(engines_programs);
}

/* Reads what a process that is not ours writes at its end. */
static char last_byte(int fd) {
  char byte = 0;
  struct pollfd p = {.fd = fd, .events = POLLIN};
  return poll(&p, 1, 10000) == 1 && read(fd, &byte, 1) == 1 ? byte : 0;
}

static void the_child_gets_term_when_we_are_killed(void **state) {
  int fds[2];
  assert_int_equal(pipe(fds), 0);
  pid_t runner = fork();
  if (runner == 0) {
    char script[128];
    snprintf(script, sizeof script,
             "trap 'printf T >&%d; exit' TERM; printf S >&%d; while :; do sleep 0.05; done", fds[1],
             fds[1]);
    if (!begin() || start(script) != 0) _exit(1);
    for (;;) pause();
  }
  close(fds[1]);
  assert_int_equal(last_byte(fds[0]), 'S');
  kill(runner, SIGKILL);
  waitpid(runner, NULL, 0);
  assert_int_equal(last_byte(fds[0]), 'T');
  close(fds[0]);
}

/* Takes one signal that `sender` sends from a process of its own, and asks who has it. */
static int ask(const char *sender_name, const char *variable) {
  struct signalfd_siginfo info;
  unsetenv("SLURM_STEP_ID");
  unsetenv("SLURM_JOB_ID");
  if (variable) setenv(variable, "0", 1);
  pid_t self = getpid(), sender = fork();
  if (sender == 0) {
    prctl(PR_SET_NAME, sender_name);
    kill(self, SIGTERM);
    for (;;) pause();
  }
  struct pollfd p = {.fd = sup.signals, .events = POLLIN};
  if (poll(&p, 1, 5000) != 1 || read(sup.signals, &info, sizeof info) != sizeof info) return -1;
  int has = supervise_has_it(&sup, &info);
  kill(sender, SIGKILL);
  waitpid(sender, NULL, 0);
  while (read(sup.signals, &info, sizeof info) > 0) continue; /* the sender's SIGCHLD */
  return has;
}

static int step_daemon(void) {
  NEED(begin());
  NEED(ask("slurmstepd", "SLURM_STEP_ID") == 1);
  NEED(ask("slurmstepd", "SLURM_JOB_ID") == 1); /* below the shell of a batch script */
  NEED(ask("slurmstepd", NULL) == 0);           /* a stranger of that name */
  NEED(ask("bash", "SLURM_STEP_ID") == 0);      /* somebody inside the step */
  return 0;
}

/* Signals the script that we are as slurmstepd does, and each process below it or not; asks who has it. */
static int ask_script(bool each) {
  struct signalfd_siginfo info;
  int fds[2], has = -1;
  setenv("SLURM_JOB_ID", "0", 1);
  unsetenv("SLURM_STEP_ID");
  if (pipe(fds) != 0) return -1;
  pid_t script = fork();
  if (script == 0) {
    if (!begin() || sup.witness <= 0 || write(fds[1], &sup.witness, sizeof sup.witness) < 0)
      _exit(3);
    struct pollfd p = {.fd = sup.signals, .events = POLLIN};
    if (poll(&p, 1, 5000) != 1 || read(sup.signals, &info, sizeof info) != sizeof info) _exit(4);
    int told = supervise_has_it(&sup, &info);
    supervise_close(&sup);
    _exit(told);
  }
  close(fds[1]);
  pid_t witness;
  if (read(fds[0], &witness, sizeof witness) == sizeof witness) {
    if (each) kill(witness, SIGTERM);
    kill(script, SIGTERM);
  }
  close(fds[0]);
  int status;
  if (waitpid(script, &status, 0) == script && WIFEXITED(status)) has = WEXITSTATUS(status);
  return has;
}

/* Its number may be another process's by the time that we end. */
static int lost_witness(void) {
  setenv("SLURM_JOB_ID", "0", 1);
  unsetenv("SLURM_STEP_ID");
  pid_t script = fork();
  if (script == 0) {
    if (!begin() || sup.witness <= 0 || kill(sup.witness, SIGKILL) != 0) _exit(3);
    for (int i = 0; i < 1000 && sup.witness; i++) poll(NULL, 0, 5), supervise_reap(&sup);
    _exit(sup.witness != 0);
  }
  int status;
  return waitpid(script, &status, 0) == script && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int batch_script(void) {
  prctl(PR_SET_NAME, "slurmstepd");
  NEED(lost_witness() == 0);
  NEED(ask_script(true) == 1);
  NEED(ask_script(false) == 0);
  return 0;
}
static void the_batch_script_itself_may_be_meant_alone(void **state) {
  in_process(batch_script);
}
static void a_step_daemon_signals_every_process_by_itself(void **state) {
  in_process(step_daemon);
}

/* A terminal of our own: its ^C goes to the foreground group, in which the child is too. */
static int terminal(void) {
  struct signalfd_siginfo info;
  int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return 77;
  NEED(setsid() >= 0);
  int tty = open(ptsname(master), O_RDWR | O_CLOEXEC); /* becomes the controlling one */
  NEED(tty >= 0 && tcgetpgrp(tty) == getpgrp());
  NEED(begin());
  NEED(write(master, "\003", 1) == 1);
  struct pollfd p = {.fd = sup.signals, .events = POLLIN};
  NEED(poll(&p, 1, 5000) == 1 && read(sup.signals, &info, sizeof info) == sizeof info);
  NEED(info.ssi_signo == SIGINT && supervise_has_it(&sup, &info));
  NEED(kill(getpid(), SIGINT) == 0); /* that was a process, to us alone */
  NEED(read(sup.signals, &info, sizeof info) == sizeof info && !supervise_has_it(&sup, &info));
  close(tty);
  close(master); /* the terminal hangs up: its leader alone is told, so the child is not */
  NEED(poll(&p, 1, 5000) == 1 && read(sup.signals, &info, sizeof info) == sizeof info);
  NEED(info.ssi_signo == SIGHUP && !supervise_has_it(&sup, &info));
  return 0;
}
static void a_terminal_signals_its_foreground_group_by_itself(void **state) {
  in_process(terminal);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_exit_code_comes_back),
      cmocka_unit_test(what_cannot_be_run_has_the_codes_of_shells),
      cmocka_unit_test(what_we_cannot_start_is_125),
      cmocka_unit_test(the_child_has_the_environment_that_it_is_given),
      cmocka_unit_test(the_child_gets_masks_and_dispositions_as_we_found_them),
      cmocka_unit_test(a_signal_that_was_ignored_stays_ignored),
      cmocka_unit_test(the_child_is_reaped_though_sigchld_was_ignored),
      cmocka_unit_test(no_descriptor_of_ours_leaks),
      cmocka_unit_test(the_child_stays_in_our_group_and_session),
      cmocka_unit_test(grandchildren_become_ours_and_are_reaped),
      cmocka_unit_test(a_program_that_another_thread_waits_for_is_left_to_it),
      cmocka_unit_test(the_child_gets_term_when_we_are_killed),
      cmocka_unit_test(a_step_daemon_signals_every_process_by_itself),
      cmocka_unit_test(the_batch_script_itself_may_be_meant_alone),
      cmocka_unit_test(a_terminal_signals_its_foreground_group_by_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
