#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/job/listener.h"
#include "tmpdir.h"

static char *dir;
static char path[100];
static listener *l;
static char lines[256]; /* what was taken, each in <> */
static size_t longest;
static char error[LISTENER_ERROR_MAX];

static int set_up(void **state) {
  dir = tmpdir_new();
  snprintf(path, sizeof path, "%s/s", dir);
  *lines = 0;
  longest = 0;
  return listener_open(&l, path, error);
}

static int tear_down(void **state) {
  listener_close(l);
  l = NULL;
  tmpdir_remove(dir);
  return 0;
}

static const char *take(void *ctx, char *line, FILE *answer) {
  unsigned count;
  if (sscanf(line, "{lines %u}", &count) == 1)
    for (unsigned i = 0; i < count; i++) fprintf(answer, "line %u of the answer\n", i);
  size_t n = strlen(line);
  if (n > longest) longest = n;
  if (n < 32) snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "<%s>", line);
  return *line == '{' ? NULL : "not an \"object\"";
}

/* Serves until nothing more comes. */
static int serve(void) {
  struct pollfd fds[LISTENER_FDS];
  int rc = 0;
  for (int idle = 0; rc == 0 && !idle;) {
    size_t n = listener_fds(l, fds);
    idle = poll(fds, n, 20) == 0;
    rc = listener_serve(l, fds, n, take, NULL);
  }
  return rc;
}

static int client(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

static void say(int fd, const char *text) {
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  serve();
}

static const char *hear(int fd) {
  static char text[512];
  ssize_t n = read(fd, text, sizeof text - 1);
  text[n > 0 ? n : 0] = 0;
  return n == 0 ? "(closed)" : n < 0 ? "(nothing)" : text;
}

static void each_line_is_taken_and_answered(void **state) {
  int fd = client();
  say(fd, "{\"a\":1}\n{\"b\":2}\r\n\n");
  assert_string_equal(lines, "<{\"a\":1}><{\"b\":2}>");
  assert_string_equal(hear(fd), "{\"ok\":true}\n{\"ok\":true}\n");
  say(fd, "nonsense\n");
  assert_string_equal(hear(fd), "{\"error\":\"not an \\\"object\\\"\"}\n");
  close(fd);
}

static void a_line_may_come_in_pieces_and_from_several_clients(void **state) {
  int a = client(), b = client();
  say(a, "{\"lo");
  say(b, "{1}\n");
  say(a, "ng\":1}");
  assert_string_equal(lines, "<{1}>");
  say(a, "\n");
  assert_string_equal(lines, "<{1}><{\"long\":1}>");
  close(a);
  close(b);
}

static void what_ends_without_a_line_end_is_taken_too(void **state) {
  int fd = client();
  assert_int_equal(write(fd, "{1}", 3), 3);
  shutdown(fd, SHUT_WR);
  serve();
  assert_string_equal(lines, "<{1}>");
  assert_string_equal(hear(fd), "{\"ok\":true}\n");
  assert_string_equal(hear(fd), "(closed)");
  close(fd);
}

static void a_nul_byte_is_refused(void **state) {
  int fd = client();
  assert_int_equal(write(fd, "{1}\0{2}\n", 8), 8);
  serve();
  assert_string_equal(lines, "");
  assert_non_null(strstr(hear(fd), "error"));
  close(fd);
}

static void pour(int fd, size_t n) {
  char block[4096];
  memset(block, '{', sizeof block);
  while (n > 0) {
    ssize_t sent = send(fd, block, n < sizeof block ? n : sizeof block, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return; /* we were dropped */
    if (sent > 0) n -= (size_t)sent;
    serve();
  }
}

static void a_line_has_64_kib_at_most(void **state) {
  int fd = client();
  pour(fd, LISTENER_LINE_MAX);
  say(fd, "\n");
  assert_int_equal(longest, LISTENER_LINE_MAX);
  assert_string_equal(hear(fd), "{\"ok\":true}\n");
  pour(fd, LISTENER_LINE_MAX + 1);
  assert_int_equal(longest, LISTENER_LINE_MAX);
  assert_non_null(strstr(hear(fd), "longer than 65536"));
  assert_string_equal(hear(fd), "(closed)");
  close(fd);
}

static void when_all_places_are_taken_who_was_silent_for_longest_goes(void **state) {
  int fds[LISTENER_CLIENTS + 1];
  for (int i = 0; i < LISTENER_CLIENTS; i++) {
    fds[i] = client();
    assert_true(fds[i] >= 0);
    serve();
  }
  say(fds[0], "{first}\n");
  fds[LISTENER_CLIENTS] = client();
  say(fds[LISTENER_CLIENTS], "{late}\n");
  assert_string_equal(lines, "<{first}><{late}>");
  assert_string_equal(hear(fds[0]), "{\"ok\":true}\n");
  assert_string_equal(hear(fds[LISTENER_CLIENTS]), "{\"ok\":true}\n");
  assert_string_equal(hear(fds[1]), "(closed)");
  assert_string_equal(hear(fds[2]), "(nothing)");
  for (int i = 0; i <= LISTENER_CLIENTS; i++) close(fds[i]);
}

static void who_does_not_read_answers_is_dropped(void **state) {
  int fd = client();
  char block[4000];
  for (size_t i = 0; i < sizeof block; i += 2) memcpy(block + i, "{\n", 2);
  for (int i = 0; i < 2000; i++)
    if (send(fd, block, sizeof block, MSG_NOSIGNAL) < 0 && errno != EAGAIN)
      break;
    else {
      struct pollfd fds[LISTENER_FDS];
      size_t n = listener_fds(l, fds);
      poll(fds, n, 0);
      listener_serve(l, fds, n, take, NULL);
    }
  struct pollfd fds[LISTENER_FDS];
  assert_int_equal(listener_fds(l, fds), 1); /* only the listening one */
  close(fd);
}

static void lines_of_an_answer_follow_their_number(void **state) {
  int fd = client();
  say(fd, "{lines 2}\n");
  assert_string_equal(hear(fd),
                      "{\"ok\":true,\"lines\":2}\nline 0 of the answer\nline 1 of the answer\n");
  close(fd);
}

/* All that comes until it is served out. */
static size_t hear_all(int fd, int lines_wanted, char *last, size_t room) {
  char block[4096];
  size_t total = 0;
  int seen = 0;
  for (int turns = 0; seen < lines_wanted && turns < 10000; turns++) {
    ssize_t n = read(fd, block, sizeof block - 1);
    if (n == 0) break;
    if (n < 0) {
      serve();
      continue;
    }
    block[n] = 0;
    total += (size_t)n;
    for (ssize_t i = 0; i < n; i++) seen += block[i] == '\n';
    if ((size_t)n < room) memcpy(last, block, (size_t)n + 1);
  }
  return total;
}

static void a_long_answer_comes_as_fast_as_it_is_read(void **state) {
  enum { MANY = 5000 }; /* some 120 KB */
  int fd = client(), small = 2048;
  char last[4096] = "";
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  int other = client();
  say(fd, "{lines 5000}\n{after}\n");
  say(other, "{meanwhile}\n"); /* nobody else waits for it */
  assert_non_null(strstr(lines, "<{meanwhile}>"));
  size_t total = hear_all(fd, 1 + MANY + 1, last, sizeof last);
  assert_true(total > 100000);
  assert_non_null(strstr(last, "line 4999 of the answer\n{\"ok\":true}\n"));
  say(fd, "{again}\n");
  assert_non_null(strstr(lines, "<{again}>"));
  close(fd);
  close(other);
}

static void an_answer_has_a_limit(void **state) {
  int fd = client();
  say(fd, "{lines 20000}\n");
  assert_non_null(strstr(hear(fd), "too long"));
  close(fd);
}

static void a_client_that_goes_away_in_a_long_answer_leaves_its_place(void **state) {
  struct pollfd fds[LISTENER_FDS];
  int fd = client();
  say(fd, "{lines 5000}\n{lines 5000}\n");
  close(fd);
  serve();
  assert_int_equal(listener_fds(l, fds), 1);
}

static void the_socket_is_ours_alone_and_goes_with_us(void **state) {
  assert_int_equal(path_mode(path), 0600);
  listener_close(l);
  l = NULL;
  assert_false(path_exists(path));
}

static void the_socket_of_a_killed_run_is_replaced(void **state) {
  listener_close(l);
  pid_t pid = fork();
  if (pid == 0) {
    listener *killed;
    _exit(listener_open(&killed, path, error) == 0 ? 0 : 1); /* and does not close it */
  }
  waitpid(pid, NULL, 0);
  assert_true(path_exists(path));
  assert_int_equal(listener_open(&l, path, error), 0);
  int fd = client();
  assert_true(fd >= 0);
  close(fd);
}

static void a_file_in_the_way_is_not_removed(void **state) {
  listener_close(l);
  write_file(path, "mine");
  assert_int_equal(listener_open(&l, path, error), -1);
  assert_null(l);
  assert_true(file_is(path, "mine"));
  assert_non_null(strstr(error, path));
}

static void a_socket_that_is_listened_to_is_not_taken(void **state) {
  listener *second;
  assert_int_equal(listener_open(&second, path, error), -1);
  assert_null(second);
  int fd = client();
  say(fd, "{still here}\n");
  assert_string_equal(lines, "<{still here}>");
  close(fd);
}

static void one_with_a_full_queue_is_not_taken_either(void **state) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  listener_close(l);
  l = NULL;
  int fd = socket(AF_UNIX, SOCK_STREAM, 0), waiting[3];
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(listen(fd, 0), 0);
  for (int i = 0; i < 3; i++) waiting[i] = client();
  assert_int_equal(listener_open(&l, path, error), -1);
  assert_true(path_exists(path));
  for (int i = 0; i < 3; i++)
    if (waiting[i] >= 0) close(waiting[i]);
  close(fd);
}

static void what_came_to_the_place_meanwhile_is_not_removed(void **state) {
  assert_int_equal(unlink(path), 0);
  write_file(path, "mine");
  listener_close(l);
  l = NULL;
  assert_true(file_is(path, "mine"));
}

static void no_listener_has_nothing_to_poll(void **state) {
  struct pollfd fds[LISTENER_FDS];
  assert_int_equal(listener_fds(NULL, fds), 0);
  assert_int_equal(listener_serve(NULL, fds, 0, take, NULL), 0);
}

static void a_path_that_is_too_long_is_an_error_with_advice(void **state) {
  char name[256];
  listener *other;
  snprintf(name, sizeof name, "%s/%0200d", dir, 0);
  assert_int_equal(listener_open(&other, name, error), -1);
  assert_non_null(strstr(error, "XDG_RUNTIME_DIR"));
}

static void without_descriptors_it_says_so_once_and_does_not_spin(void **state) {
  enum { LIMIT = 64 };
  struct rlimit before, low;
  int fds[LIMIT], n = 0;
  int waiting = client();
  getrlimit(RLIMIT_NOFILE, &before);
  low = before;
  low.rlim_cur = LIMIT;
  setrlimit(RLIMIT_NOFILE, &low);
  while (n < LIMIT && (fds[n] = open("/dev/null", O_RDONLY)) >= 0) n++;
  int first = serve(), second = serve();
  while (n > 0) close(fds[--n]);
  setrlimit(RLIMIT_NOFILE, &before);
  assert_int_equal(first, -EMFILE);
  assert_int_equal(second, 0);
  struct pollfd polled[LISTENER_FDS];
  assert_int_equal(listener_fds(l, polled), 0);
  close(waiting);
}

static void without_descriptors_an_idle_client_makes_room(void **state) {
  enum { LIMIT = 64 };
  struct rlimit before, low;
  int fds[LIMIT], n = 0, idle = client();
  serve();
  int next = client();
  getrlimit(RLIMIT_NOFILE, &before);
  low = before;
  low.rlim_cur = LIMIT;
  setrlimit(RLIMIT_NOFILE, &low);
  while (n < LIMIT && (fds[n] = open("/dev/null", O_RDONLY)) >= 0) n++;
  say(next, "{next}\n");
  while (n > 0) close(fds[--n]);
  setrlimit(RLIMIT_NOFILE, &before);
  assert_string_equal(lines, "<{next}>");
  assert_string_equal(hear(idle), "(closed)");
  close(idle);
  close(next);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(each_line_is_taken_and_answered),
      TEST(a_line_may_come_in_pieces_and_from_several_clients),
      TEST(what_ends_without_a_line_end_is_taken_too),
      TEST(a_nul_byte_is_refused),
      TEST(a_line_has_64_kib_at_most),
      TEST(when_all_places_are_taken_who_was_silent_for_longest_goes),
      TEST(who_does_not_read_answers_is_dropped),
      TEST(lines_of_an_answer_follow_their_number),
      TEST(a_long_answer_comes_as_fast_as_it_is_read),
      TEST(an_answer_has_a_limit),
      TEST(a_client_that_goes_away_in_a_long_answer_leaves_its_place),
      TEST(the_socket_is_ours_alone_and_goes_with_us),
      TEST(the_socket_of_a_killed_run_is_replaced),
      TEST(a_file_in_the_way_is_not_removed),
      TEST(a_path_that_is_too_long_is_an_error_with_advice),
      TEST(a_socket_that_is_listened_to_is_not_taken),
      TEST(one_with_a_full_queue_is_not_taken_either),
      TEST(what_came_to_the_place_meanwhile_is_not_removed),
      TEST(no_listener_has_nothing_to_poll),
      TEST(without_descriptors_an_idle_client_makes_room),
      TEST(without_descriptors_it_says_so_once_and_does_not_spin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
