/* The asking side, against a peer that says what this file makes it say. */
#include "with_cmocka.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/job/ask.h"
#include "runner/cli/clock.h"
#include "runner/cli/report.h"
#include "tmpdir.h"

static char *dir;
static char path[100], error[ASK_ERROR_MAX];
static char heard[4096]; /* lines behind the head */
static pid_t peer;

static int set_up(void **state) {
  dir = tmpdir_new_in("/tmp");
  snprintf(path, sizeof path, "%s/s", dir);
  *error = 0;
  peer = 0;
  return 0;
}

static int tear_down(void **state) {
  if (peer > 0) {
    kill(peer, SIGKILL);
    waitpid(peer, NULL, 0);
  }
  tmpdir_remove(dir);
  return 0;
}

/* A process that takes one line and answers with these bytes, a few at a time, then hangs up. */
static void answer_with(const char *text, size_t size) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(fd, 1), 0);
  peer = fork();
  if (peer == 0) {
    char c = 0;
    int client = accept(fd, NULL, NULL);
    while (read(client, &c, 1) == 1 && c != '\n') continue;
    for (size_t i = 0; i < size; i += 7)
      if (send(client, text + i, size - i < 7 ? size - i : 7, MSG_NOSIGNAL) < 0) break;
    _exit(0);
  }
  close(fd);
}

static ask_result ask_peer(void) {
  memset(heard, 0, sizeof heard);
  FILE *f = fmemopen(heard, sizeof heard, "w");
  ask_result result = ask(path, "{\"a\":1}", f, error);
  fclose(f);
  return result;
}

static ask_result hears(const char *text) {
  answer_with(text, strlen(text));
  return ask_peer();
}

static void an_ok_is_done(void **state) {
  assert_int_equal(hears("{\"ok\":true}\n"), ASK_DONE);
  assert_string_equal(heard, "");
}

static void lines_are_handed_on_as_they_are_and_no_more_than_announced(void **state) {
  assert_int_equal(hears("{\"ok\":true,\"lines\":2}\none\ntwo \xff\nthree\n"), ASK_DONE);
  assert_string_equal(heard, "one\ntwo \xff\n");
}

static void a_refusal_has_its_reason(void **state) {
  assert_int_equal(hears("{\"error\":\"no \\\"object\\\"\"}\n"), ASK_REFUSED);
  assert_string_equal(error, "no \"object\"");
}

static void an_end_in_the_middle_is_told_as_one(void **state) {
  assert_int_equal(hears("{\"ok\":true,\"lines\":2}\none\n"), ASK_HUNG_UP);
  assert_non_null(strstr(error, path));
}

/* As a run does that ends just now. */
static void an_end_before_the_answer_is_told_as_one(void **state) {
  assert_int_equal(hears(""), ASK_HUNG_UP);
  assert_non_null(strstr(error, "does not answer"));
  assert_int_equal(ask_exit_code(ASK_HUNG_UP), 1);
}

static void nonsense_is_a_failure(void **state) {
  assert_int_equal(hears("HTTP/1.1 400 Bad Request\r\n\r\n"), ASK_FAILED);
  assert_non_null(strstr(error, "no answer of ours"));
}

static void an_ok_that_is_not_true_is_a_failure(void **state) {
  assert_int_equal(hears("{\"ok\":1}\n"), ASK_FAILED);
}

static void a_head_without_end_is_given_up(void **state) {
  char *endless = malloc(1 << 16);
  memset(endless, '{', 1 << 16);
  answer_with(endless, 1 << 16);
  assert_int_equal(ask_peer(), ASK_FAILED);
  free(endless);
}

static void where_nobody_listens_nobody_is(void **state) {
  assert_int_equal(ask_peer(), ASK_NOBODY);
  assert_non_null(strstr(error, "no run is alive"));
  write_file(path, "a file"); /* not a socket */
  assert_int_equal(ask_peer(), ASK_NOBODY);
}

/* A socket at our path, of which nobody takes a connection yet. */
static int listen_there(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(fd, 1), 0);
  return fd;
}

/* Nobody takes a connection out of the queue: at first they wait for an answer, then to get in. */
static void a_listener_that_does_nothing_is_given_up_in_time(void **state) {
  int fd = listen_there();
  setenv("CKPT_ANSWER_WAIT", "0.2", 1);
  alarm(20); /* a connect that blocks has no limit of its own */
  for (int i = 0; i < 5; i++) {
    double begin = clock_s();
    assert_int_equal(ask_peer(), ASK_FAILED);
    double took = clock_s() - begin;
    assert_true(took >= 0.2 && took < 5);
  }
  alarm(0);
  unsetenv("CKPT_ANSWER_WAIT");
  close(fd);
}

/* It was ten seconds for whatever could not be read. */
static void a_wait_that_is_no_time_is_refused(void **state) {
  static const char *const wrong[] = {"soon", "0", "-1", "nan", "1x", "None", " 5"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    setenv("CKPT_ANSWER_WAIT", wrong[i], 1);
    assert_int_equal(ask_peer(), ASK_FAILED);
    assert_non_null(strstr(error, "CKPT_ANSWER_WAIT"));
  }
  static const char *const right[] = {"", "none", "inf", "2.5", "30s"};
  for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
    setenv("CKPT_ANSWER_WAIT", right[i], 1);
    assert_int_equal(ask_peer(), ASK_NOBODY);
  }
  unsetenv("CKPT_ANSWER_WAIT");
}

/* A byte now and then is no answer. */
static void an_answer_that_trickles_is_given_up_in_time(void **state) {
  int fd = listen_there();
  peer = fork();
  if (peer == 0) {
    int client = accept(fd, NULL, NULL);
    while (send(client, "{", 1, MSG_NOSIGNAL) == 1) usleep(50000);
    _exit(0);
  }
  close(fd);
  setenv("CKPT_ANSWER_WAIT", "0.5", 1);
  double begin = clock_s();
  assert_int_equal(ask_peer(), ASK_FAILED);
  assert_true(clock_s() - begin < 5);
  unsetenv("CKPT_ANSWER_WAIT");
}

static void the_job_knows_its_run_by_its_environment(void **state) {
  ckpt_place place;
  options o = {0};
  unsetenv("CKPT_SOCKET");
  assert_int_equal(ask_find(&o, &place, error), ASK_NOBODY);
  assert_non_null(strstr(error, "--dir"));
  setenv("CKPT_SOCKET", path, 1);
  assert_int_equal(ask_find(&o, &place, error), ASK_DONE);
  assert_string_equal(place.socket, path);
  assert_string_equal(place.state, "");
  char endless[300];
  memset(endless, 'x', sizeof endless - 1);
  endless[sizeof endless - 1] = 0;
  setenv("CKPT_SOCKET", endless, 1);
  assert_int_equal(ask_find(&o, &place, error), ASK_FAILED);
  o.dir = "/no/such/place/out"; /* --dir goes before the environment */
  assert_int_equal(ask_find(&o, &place, error), ASK_NOBODY);
  assert_non_null(strstr(error, "/no/such/place/out.ckpt"));
  assert_string_equal(place.state, "/no/such/place/out.ckpt");
  unsetenv("CKPT_SOCKET");
}

static void results_have_their_exit_codes(void **state) {
  assert_int_equal(ask_exit_code(ASK_DONE), EXIT_DONE);
  assert_int_equal(ask_exit_code(ASK_NOBODY), EXIT_NOTHING);
  assert_int_equal(ask_exit_code(ASK_REFUSED), EXIT_FAILED);
  assert_int_equal(ask_exit_code(ASK_FAILED), EXIT_FAILED);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(an_ok_is_done),
      TEST(lines_are_handed_on_as_they_are_and_no_more_than_announced),
      TEST(a_refusal_has_its_reason),
      TEST(an_end_in_the_middle_is_told_as_one),
      TEST(an_end_before_the_answer_is_told_as_one),
      TEST(nonsense_is_a_failure),
      TEST(an_ok_that_is_not_true_is_a_failure),
      TEST(a_head_without_end_is_given_up),
      TEST(where_nobody_listens_nobody_is),
      TEST(a_listener_that_does_nothing_is_given_up_in_time),
      TEST(a_wait_that_is_no_time_is_refused),
      TEST(an_answer_that_trickles_is_given_up_in_time),
      TEST(the_job_knows_its_run_by_its_environment),
      TEST(results_have_their_exit_codes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
