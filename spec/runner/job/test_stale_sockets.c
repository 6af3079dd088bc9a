/* Sockets that killed runs left, beside those of runs that live. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "runner/job/stale_sockets.h"
#include "tmpdir.h"

static char *dir;
#define OWN "00000000000000ff"

static int set_up(void **state) {
  dir = tmpdir_new();
  return 0;
}

static int tear_down(void **state) {
  tmpdir_remove(dir);
  return 0;
}

static const char *at(const char *name) {
  static char path[100];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  return path;
}

static int bind_at(const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", at(name));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

static void age(const char *name, int seconds) {
  struct timespec then[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
  assert_int_equal(utimensat(AT_FDCWD, at(name), then, AT_SYMLINK_NOFOLLOW), 0);
}

/* Of a run that was killed so many seconds after it had begun. */
static void dead(const char *name, int seconds) {
  close(bind_at(name));
  age(name, seconds);
}

static bool stands(const char *name) {
  struct stat st;
  return lstat(at(name), &st) == 0;
}

static void those_to_which_nobody_listens_go(void **state) {
  dead("0123456789abcdef", 4000);
  dead("0123456789abcde0", 100 * 86400);
  dead("0123456789abcde1.gone", 4000);
  stale_sockets_remove(at(OWN));
  assert_false(stands("0123456789abcdef") || stands("0123456789abcde0"));
  assert_false(stands("0123456789abcde1.gone"));
}

static void one_that_is_listened_to_stays_however_old(void **state) {
  int fd = bind_at("0123456789abcdef");
  assert_int_equal(listen(fd, 1), 0);
  age("0123456789abcdef", 100 * 86400);
  stale_sockets_remove(at(OWN));
  assert_true(stands("0123456789abcdef"));
  close(fd);
}

static void one_that_is_bound_and_not_listened_to_yet_stays(void **state) {
  int fd = bind_at("0123456789abcdef");
  stale_sockets_remove(at(OWN));
  assert_true(stands("0123456789abcdef"));
  assert_int_equal(listen(fd, 1), 0);
  close(fd);
  dead("0123456789abcde0", 3000);
  dead("0123456789abcde1", -4000); /* a clock was set back */
  stale_sockets_remove(at(OWN));
  assert_true(stands("0123456789abcde0") && stands("0123456789abcde1"));
}

static void what_is_no_socket_of_a_run_stays(void **state) {
  static const char *const names[] = {"0123456789abcde",   "0123456789abcdef0", "0123456789abcdeg",
                                      "0123456789ABCDEF",  "socket.0123456789", "x",
                                      "0123456789abcdef.x"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) dead(names[i], 4000);
  write_file(at("0123456789abcdef"), "");
  age("0123456789abcdef", 4000);
  assert_int_equal(symlink("x", at("0123456789abcde0")), 0);
  age("0123456789abcde0", 4000);
  dead(OWN, 4000);
  stale_sockets_remove(at(OWN));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_true(stands(names[i]));
  assert_true(stands("0123456789abcdef") && stands("0123456789abcde0") && stands(OWN));
  if (geteuid() != 0) return;
  dead("0123456789abcde1", 4000);
  assert_int_equal(lchown(at("0123456789abcde1"), 1234, 1234), 0);
  stale_sockets_remove(at(OWN));
  assert_true(stands("0123456789abcde1"));
}

static void a_directory_that_is_not_for_sockets_alone_is_left_alone(void **state) {
  dead("0123456789abcdef", 4000);
  stale_sockets_remove(at("socket.0123456789abcdef"));
  stale_sockets_remove("");
  stale_sockets_remove("/nowhere/0123456789abcdef");
  assert_true(stands("0123456789abcdef"));
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(those_to_which_nobody_listens_go),
      TEST(one_that_is_listened_to_stays_however_old),
      TEST(one_that_is_bound_and_not_listened_to_yet_stays),
      TEST(what_is_no_socket_of_a_run_stays),
      TEST(a_directory_that_is_not_for_sockets_alone_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
