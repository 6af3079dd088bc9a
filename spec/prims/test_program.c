#include "with_cmocka.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prims/program.h"
#include "tmpdir.h"

static const int64_t second = 1000000000;
static char *dir; /* of the test that runs */

static int make_dir_of_test(void **unused) {
  dir = tmpdir_new();
  return 0;
}

static int remove_dir_of_test(void **unused) {
  tmpdir_remove(dir);
  return 0;
}

static program *start(const program_plan *plan) {
  program *p;
  err e = {0};
  if (program_start(io_system(), plan, &p, &e) < 0) fail_msg("%s", e.text);
  return p;
}

static program *shell_with(const char *text, program_plan plan) {
  char *const argv[] = {"sh", "-c", (char *)text, NULL};
  plan.argv = argv;
  if (!plan.keep) plan.keep = 1 << 20;
  return start(&plan);
}

static program *shell(const char *text) {
  return shell_with(text, (program_plan){0});
}

static int64_t now(void) {
  return io_system()->now(io_system(), IO_MONO);
}

/* Turns until it has ended, for 20 s. */
static void await_end(program *p, int *code, int *sig) {
  int64_t until = now() + 20 * second;
  while (!program_ended(p, code, sig)) {
    assert_true(program_turn(p, 1000, NULL) >= 0);
    assert_true(now() < until);
  }
}

static void assert_output(program *p, int which, const char *text) {
  size_t len;
  uint64_t dropped;
  const char *got = program_output(p, which, &len, &dropped);
  if (len != strlen(text) || memcmp(got, text, len) != 0)
    fail_msg("\"%.*s\", not \"%s\"", (int)len, got, text);
  assert_int_equal(dropped, 0);
}

static void what_it_prints_and_how_it_ended_is_told(void **unused) {
  int code, sig;
  program *p = shell("echo out; echo err >&2; exit 3");
  await_end(p, &code, &sig);
  assert_int_equal(code, 3);
  assert_int_equal(sig, 0);
  assert_output(p, 1, "out\n");
  assert_output(p, 2, "err\n");
  assert_true(program_silent(p));
  assert_int_equal(program_turn(p, 0, NULL), 0);
  program_close(p);
  p = shell("kill -SEGV $$");
  await_end(p, &code, &sig);
  assert_int_equal(code, -1);
  assert_int_equal(sig, SIGSEGV);
  program_close(p);
}

static void what_is_not_there_is_named_and_nothing_stays_open(void **unused) {
  char *const argv[] = {"no-such-program", NULL}, *const fine[] = {"true", NULL};
  program *p;
  err e = {0};
  int fds = count_fds();
  const char *path = tmpdir_path(dir, "socket");
  program_plan plan = {.argv = argv, .input = "x", .input_len = 1, .socket = path};
  assert_int_equal(program_start(io_system(), &plan, &p, &e), ERR_NOENT);
  assert_non_null(strstr(e.text, "no-such-program"));
  assert_null(p);
  assert_false(path_exists(path));
  plan = (program_plan){.argv = fine, .dir = tmpdir_path(dir, "gone")};
  assert_int_equal(program_start(io_system(), &plan, &p, &e), ERR_NOENT);
  assert_non_null(strstr(e.text, "gone"));
  assert_int_equal(count_fds(), fds);
}

static void it_reads_its_whole_input_and_then_its_end(void **unused) {
  enum { LEN = 3 << 20 };
  char *text = malloc(LEN);
  int code, sig;
  for (size_t i = 0; i < LEN; i++) text[i] = (char)(i * 7 + i / 251);
  program *p =
      shell_with("cat", (program_plan){.input = text, .input_len = LEN, .keep = 2 * (size_t)LEN});
  await_end(p, &code, &sig);
  size_t len;
  uint64_t dropped;
  const char *got = program_output(p, 1, &len, &dropped);
  assert_int_equal(len, LEN);
  assert_memory_equal(got, text, LEN);
  program_close(p);
  free(text);
  p = shell("cat; echo end");
  await_end(p, &code, &sig);
  assert_output(p, 1, "end\n");
  program_close(p);
}

static void of_a_flood_the_last_bytes_are_kept(void **unused) {
  int code, sig;
  size_t len;
  uint64_t dropped;
  program *p = shell_with("yes 1234567 | head -c 8000000; echo last", (program_plan){.keep = 1000});
  await_end(p, &code, &sig);
  const char *got = program_output(p, 1, &len, &dropped);
  assert_int_equal(len, 1000);
  assert_int_equal(dropped, 8000005 - 1000);
  assert_memory_equal(got + len - 13, "1234567\nlast\n", 13);
  program_close(p);
}

static void what_others_print_is_not_waited_for(void **unused) {
  int code, sig;
  int64_t begun = now();
  program *p = shell("(sleep 0.3; echo late) & echo early");
  await_end(p, &code, &sig);
  assert_true(now() - begun < second / 4);
  assert_false(program_silent(p));
  assert_output(p, 1, "early\n");
  while (!program_silent(p)) assert_true(program_turn(p, 5000, NULL) >= 0);
  assert_output(p, 1, "early\nlate\n");
  program_close(p);
}

static void a_turn_waits_no_longer_than_it_is_told(void **unused) {
  program *p = shell("sleep 100");
  int64_t begun = now();
  assert_int_equal(program_turn(p, 100, NULL), 0);
  assert_in_range(now() - begun, second / 12, second);
  program_close(p);
}

static void it_has_its_place_its_environment_and_nothing_else_of_ours(void **unused) {
  int code, sig, pipe_of_host[2]; /* without close-on-exec */
  sigset_t blocked;
  char *const env[] = {"PATH=/usr/bin:/bin", "MINE=m", NULL};
  assert_int_equal(pipe(pipe_of_host), 0);
  setenv("SECRET", "1", 1);
  signal(SIGUSR1, SIG_IGN);
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  /* glibc starts programs with its own two signals, 32 and 33, ignored. */
  program *p =
      shell_with("pwd; echo $MINE$SECRET; ls -l /proc/self/fd | grep -c '[0-9] -> '; grep "
                 "-E 'Sig(Blk|Ign)' /proc/self/status | sed 's/.*\\t//; s/0180000000/none/'"
                 " | grep -v '^0*$' | tr -d 0",
                 (program_plan){.envp = env, .dir = "/"});
  assert_int_equal(getpgid(program_pid(p)), program_pid(p));
  await_end(p, &code, &sig);
  /* ls has the directory that it lists open too. */
  assert_output(p, 1, "/\nm\n4\nnone\n");
  program_close(p);
  sigprocmask(SIG_UNBLOCK, &blocked, NULL);
  signal(SIGUSR1, SIG_DFL);
  unsetenv("SECRET");
  close(pipe_of_host[0]);
  close(pipe_of_host[1]);
}

/* ---- the end that we make ---- */

static void one_that_is_asked_to_end_may_still_say_something(void **unused) {
  int code, sig;
  program *p = shell("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done");
  while (program_turn(p, 1000, NULL) == 0) continue;
  assert_true(program_stop(p, 10 * second));
  assert_true(program_ended(p, &code, &sig));
  assert_int_equal(code, 5);
  assert_output(p, 1, "ready\nbye\n");
  program_close(p);
}

static void one_that_does_not_care_is_killed_with_all_that_it_started(void **unused) {
  int code, sig;
  size_t len;
  uint64_t dropped;
  program *p = shell("trap '' TERM; sleep 1000 & echo $!; while :; do sleep 0.01; done");
  while (program_turn(p, 1000, NULL) == 0) continue;
  int child = atoi(program_output(p, 1, &len, &dropped));
  assert_true(child > 1);
  int64_t begun = now();
  assert_true(program_stop(p, second / 5));
  assert_in_range(now() - begun, second / 6, 3 * second);
  assert_true(program_ended(p, &code, &sig));
  assert_int_equal(sig, SIGKILL);
  program_close(p);
  /* Whoever adopts it may take a moment to reap it; sleep does nothing until then. */
  for (int i = 0; i < 500 && kill(child, 0) == 0; i++) usleep(10000);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/exe", child);
  assert_true(access(path, F_OK) != 0);
}

/* The shell dies at once; what it started has something to save. */
static void what_it_started_has_time_to_end_well(void **unused) {
  int code, sig;
  program *p = shell("sh -c 'trap \"sleep 0.3; echo saved; exit\" TERM; echo ready; while :; do "
                     "sleep 0.01; done'; true");
  while (program_turn(p, 1000, NULL) == 0) continue;
  assert_true(program_stop(p, 10 * second));
  assert_true(program_ended(p, &code, &sig));
  assert_int_equal(sig, SIGTERM);
  assert_output(p, 1, "ready\nsaved\n");
  program_close(p);
}

/* It ends between two looks: what it printed is taken in all the same. */
static void what_a_dead_one_has_printed_is_there_after_a_stop(void **unused) {
  int code, sig;
  siginfo_t info;
  program *p = shell("head -c 60000 /dev/zero; echo last >&2");
  assert_int_equal(waitid(P_PID, (id_t)program_pid(p), &info, WEXITED | WNOWAIT), 0);
  assert_true(program_stop(p, 0));
  assert_true(program_ended(p, &code, &sig));
  assert_int_equal(code, 0);
  size_t len;
  uint64_t dropped;
  program_output(p, 1, &len, &dropped);
  assert_int_equal(len, 60000);
  assert_output(p, 2, "last\n");
  program_close(p);
}

static void one_that_stands_still_is_ended_too(void **unused) {
  int code, sig;
  program *p = shell("kill -STOP $$; sleep 100");
  usleep(50000);
  assert_true(program_stop(p, 5 * second));
  assert_true(program_ended(p, &code, &sig));
  assert_int_equal(sig, SIGTERM);
  program_close(p);
}

static void closing_kills_and_reaps(void **unused) {
  int fds = count_fds();
  program *p = shell("trap '' TERM; sleep 1000");
  pid_t pid = program_pid(p);
  program_close(p);
  assert_int_equal(kill(pid, 0), -1);
  assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
  assert_int_equal(errno, ECHILD);
  assert_int_equal(count_fds(), fds);
  program_close(NULL);
}

/* A host may reap all children. Its number may be somebody else's then: nothing is sent to it. */
static void what_somebody_else_reaps_has_ended(void **unused) {
  int code, sig;
  program *p = shell("exit 3");
  assert_int_equal(waitpid(program_pid(p), NULL, 0), program_pid(p));
  await_end(p, &code, &sig);
  assert_int_equal(code, -1);
  assert_int_equal(sig, 0);
  assert_true(program_stop(p, 0));
  program_close(p);
}

static int without_standard_files(void) {
  int code = 0, sig;
  for (int fd = 0; fd < 3; fd++) close(fd);
  char *const argv[] = {"sh", "-c", "cat; echo err >&2", NULL};
  program_plan plan = {.argv = argv, .input = "in", .input_len = 2, .keep = 100};
  program *p;
  if (program_start(io_system(), &plan, &p, NULL) < 0) return 1;
  while (!program_ended(p, &code, &sig))
    if (program_turn(p, 5000, NULL) < 0) return 2;
  size_t out, error;
  uint64_t dropped;
  program_output(p, 1, &out, &dropped);
  program_output(p, 2, &error, &dropped);
  program_close(p);
  return code != 0 ? 3 : out != 2 ? 4 : error != 4 ? 5 : 0;
}

static void a_host_without_standard_files_can_run_programs(void **unused) {
  int status;
  pid_t pid = fork();
  if (pid == 0) _exit(without_standard_files());
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
}

/* ---- reports ---- */

static int dial(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

static void say(int fd, const char *text, size_t len) {
  assert_int_equal(send(fd, text, len, MSG_NOSIGNAL), len);
}

static void hear(int fd, const char *text) {
  char got[200] = "";
  size_t len = 0;
  while (len < strlen(text)) {
    struct pollfd f = {.fd = fd, .events = POLLIN};
    if (poll(&f, 1, 5000) <= 0) break;
    ssize_t n = recv(fd, got + len, strlen(text) - len, 0);
    if (n <= 0) break;
    len += (size_t)n;
  }
  assert_string_equal(got, text);
}

static bool is_over(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static program *with_socket(const char *path) {
  return shell_with("sleep 1000", (program_plan){.socket = path});
}

/* Turns until nothing happens any more. */
static void settle(program *p) {
  while (program_turn(p, 5, NULL) > 0) continue;
}

static uint64_t assert_report(program *p, const char *text) {
  uint64_t from;
  const char *line;
  size_t len;
  settle(p);
  assert_true(program_report(p, &from, &line, &len));
  if (len != strlen(text) || memcmp(line, text, len) != 0)
    fail_msg("\"%.*s\", not \"%s\"", (int)len, line, text);
  return from;
}

static void assert_no_report(program *p) {
  uint64_t from;
  const char *line;
  size_t len;
  settle(p);
  assert_false(program_report(p, &from, &line, &len));
}

static void a_report_waits_for_its_answer_and_the_next_one_for_that(void **unused) {
  const char *path = tmpdir_path(dir, "socket");
  program *p = with_socket(path);
  assert_int_equal(path_mode(path), 0600);
  int fd = dial(path);
  say(fd, "one\ntwo\r\n\n\r\nthr", 15);
  uint64_t from = assert_report(p, "one");
  assert_no_report(p);
  assert_int_equal(program_answer(p, from, "yes", NULL), 0);
  hear(fd, "yes\n");
  from = assert_report(p, "two");
  assert_int_equal(program_answer(p, from, "yes", NULL), 0);
  assert_no_report(p);
  say(fd, "ee\n", 3);
  from = assert_report(p, "three");
  assert_int_equal(program_answer(p, from, "yes", NULL), 0);
  assert_int_equal(program_answer(p, from, "again", NULL), ERR_NOENT);
  hear(fd, "yes\nyes\n");
  close(fd);
  program_close(p);
}

/* Lines of any length, in pieces of any length. */
static void lines_arrive_whole_however_they_are_cut(void **unused) {
  enum { LINES = 200, ROOM = 400 * 1024 };
  static char sent[ROOM];
  const char *path = tmpdir_path(dir, "socket");
  program *p = with_socket(path);
  int fd = dial(path);
  size_t starts[LINES + 1], len = 0, said = 0;
  uint32_t seed = 7;
  for (int i = 0; i < LINES; i++) {
    seed = seed * 1664525 + 1013904223;
    size_t size = 1 + (seed >> 8) % (i % 10 == 0 ? 9000 : 300);
    starts[i] = len;
    for (size_t k = 0; k < size; k++) sent[len++] = (char)('a' + (i + (int)k) % 26);
    sent[len++] = '\n';
  }
  starts[LINES] = len;
  for (int i = 0; i < LINES;) {
    uint64_t from;
    const char *line;
    size_t got;
    seed = seed * 1664525 + 1013904223;
    size_t piece = 1 + (seed >> 8) % 3000;
    if (piece > len - said) piece = len - said;
    ssize_t n = send(fd, sent + said, piece, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) said += (size_t)n;
    assert_true(program_turn(p, 0, NULL) >= 0);
    while (program_report(p, &from, &line, &got)) {
      assert_true(i < LINES);
      assert_int_equal(got, starts[i + 1] - starts[i] - 1);
      assert_memory_equal(line, sent + starts[i], got);
      assert_int_equal(program_answer(p, from, "", NULL), 0);
      i++;
    }
  }
  assert_int_equal(said, len);
  close(fd);
  program_close(p);
}

static void clients_do_not_wait_for_each_other(void **unused) {
  const char *path = tmpdir_path(dir, "socket");
  program *p = with_socket(path);
  int a = dial(path), b = dial(path);
  say(a, "a\n", 2);
  uint64_t first = assert_report(p, "a");
  say(b, "b\n", 2);
  uint64_t other = assert_report(p, "b");
  assert_int_equal(program_answer(p, other, "to b", NULL), 0);
  assert_int_equal(program_answer(p, first, "to a", NULL), 0);
  hear(a, "to a\n");
  hear(b, "to b\n");
  close(a);
  close(b);
  program_close(p);
}

static void more_clients_than_places_wait_for_one(void **unused) {
  enum { MORE = PROGRAM_CLIENTS + 3 };
  const char *path = tmpdir_path(dir, "socket");
  program *p = with_socket(path);
  int fds[MORE];
  for (int i = 0; i < MORE; i++) {
    fds[i] = dial(path);
    say(fds[i], "x\n", 2);
    settle(p);
  }
  for (int i = 0; i < MORE; i++) {
    uint64_t from = assert_report(p, "x");
    assert_int_equal(program_answer(p, from, "y", NULL), 0);
    close(fds[i]); /* the oldest is asked first */
  }
  assert_no_report(p);
  program_close(p);
}

static void a_line_without_an_end_counts_when_its_client_ends(void **unused) {
  const char *path = tmpdir_path(dir, "socket");
  program *p = with_socket(path);
  int fd = dial(path);
  say(fd, "all", 3);
  assert_no_report(p);
  shutdown(fd, SHUT_WR);
  uint64_t from = assert_report(p, "all");
  assert_int_equal(program_answer(p, from, "heard", NULL), 0);
  hear(fd, "heard\n");
  settle(p);
  assert_true(is_over(fd));
  close(fd);
  program_close(p);
}

static void a_client_that_is_gone_is_told_of_and_harms_nobody(void **unused) {
  const char *path = tmpdir_path(dir, "socket");
  program *p = with_socket(path);
  int fd = dial(path);
  say(fd, "x\n", 2);
  uint64_t from = assert_report(p, "x");
  close(fd);
  settle(p); /* it is not looked at while it waits: no busy loop */
  assert_int_equal(program_answer(p, from, "y", NULL), ERR_NOENT);
  assert_no_report(p);
  program_close(p);
}

static void what_is_too_long_or_has_a_nul_is_refused(void **unused) {
  const char *path = tmpdir_path(dir, "socket");
  program *p = with_socket(path);
  int fd = dial(path);
  say(fd, "a\0b\nfine\n", 9);
  assert_report(p, "fine");
  hear(fd, "{\"error\":\"the line has a NUL byte\"}\n");
  close(fd);
  fd = dial(path);
  char *text = malloc(PROGRAM_LINE_MAX + 2);
  memset(text, 'x', PROGRAM_LINE_MAX + 2);
  for (size_t at = 0; at < PROGRAM_LINE_MAX; at += 4096) {
    say(fd, text, 4096);
    settle(p);
  }
  assert_no_report(p);
  say(fd, "x", 1);
  settle(p);
  hear(fd, "{\"error\":\"the line is longer than 65536 bytes\"}\n");
  assert_true(is_over(fd));
  close(fd);
  /* The longest that is fine. */
  fd = dial(path);
  text[PROGRAM_LINE_MAX] = '\n';
  for (size_t at = 0; at < PROGRAM_LINE_MAX; at += 4096) {
    say(fd, text + at, at + 4096 < PROGRAM_LINE_MAX ? 4096 : 4097);
    settle(p);
  }
  text[PROGRAM_LINE_MAX] = 0;
  assert_report(p, text);
  close(fd);
  free(text);
  program_close(p);
}

static void what_was_sent_before_the_end_is_there_after_it(void **unused) {
  const char *path = tmpdir_path(dir, "socket");
  int code, sig;
  program *p = shell_with("read x; exit 0", (program_plan){.socket = path});
  int fd = dial(path);
  say(fd, "last\n", 5);
  await_end(p, &code, &sig);
  assert_report(p, "last");
  program_close(p);
  assert_true(is_over(fd));
  assert_false(path_exists(path));
  close(fd);
}

static void a_path_that_no_socket_can_have_is_refused(void **unused) {
  char path[300];
  char *const argv[] = {"true", NULL};
  program *p;
  err e = {0};
  memset(path, 'x', sizeof path);
  memcpy(path, "/tmp/", 5);
  path[sizeof path - 1] = 0;
  program_plan plan = {.argv = argv, .socket = path};
  assert_int_equal(program_start(io_system(), &plan, &p, &e), ERR_LIMIT);
  assert_non_null(strstr(e.text, "TMPDIR"));
  plan.socket = tmpdir_path(dir, "no/such/socket");
  assert_int_equal(program_start(io_system(), &plan, &p, &e), ERR_NOENT);
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir_of_test, remove_dir_of_test)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_it_prints_and_how_it_ended_is_told),
      WITH_DIR(what_is_not_there_is_named_and_nothing_stays_open),
      cmocka_unit_test(it_reads_its_whole_input_and_then_its_end),
      cmocka_unit_test(of_a_flood_the_last_bytes_are_kept),
      cmocka_unit_test(what_others_print_is_not_waited_for),
      cmocka_unit_test(a_turn_waits_no_longer_than_it_is_told),
      cmocka_unit_test(it_has_its_place_its_environment_and_nothing_else_of_ours),
      cmocka_unit_test(one_that_is_asked_to_end_may_still_say_something),
      cmocka_unit_test(one_that_does_not_care_is_killed_with_all_that_it_started),
      cmocka_unit_test(what_it_started_has_time_to_end_well),
      cmocka_unit_test(what_a_dead_one_has_printed_is_there_after_a_stop),
      cmocka_unit_test(one_that_stands_still_is_ended_too),
      cmocka_unit_test(closing_kills_and_reaps),
      cmocka_unit_test(what_somebody_else_reaps_has_ended),
      cmocka_unit_test(a_host_without_standard_files_can_run_programs),
      WITH_DIR(a_report_waits_for_its_answer_and_the_next_one_for_that),
      WITH_DIR(lines_arrive_whole_however_they_are_cut),
      WITH_DIR(clients_do_not_wait_for_each_other),
      WITH_DIR(more_clients_than_places_wait_for_one),
      WITH_DIR(a_line_without_an_end_counts_when_its_client_ends),
      WITH_DIR(a_client_that_is_gone_is_told_of_and_harms_nobody),
      WITH_DIR(what_is_too_long_or_has_a_nul_is_refused),
      WITH_DIR(what_was_sent_before_the_end_is_there_after_it),
      WITH_DIR(a_path_that_no_socket_can_have_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
