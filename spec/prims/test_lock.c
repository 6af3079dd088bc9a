#include "with_cmocka.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prims/lock.h"
#include "tmpdir.h"

/* Where the tests run: NULL is the temporary file system. */
static const char *place;
static char *dir;
static char path[4096];

static int enter(void **unused) {
  dir = place ? tmpdir_new_in(place) : tmpdir_new();
  snprintf(path, sizeof path, "%s/lock", dir);
  return 0;
}

static int leave(void **unused) {
  tmpdir_remove(dir);
  return 0;
}

static void one_exclusive_holder_and_no_second(void **unused) {
  lock a, b;
  err e = {0};
  assert_int_equal(lock_take(path, true, &a, NULL), 0);
  assert_int_equal(lock_take(path, true, &b, &e), ERR_HELD);
  assert_int_equal(b.fd, -1);
  assert_non_null(strstr(e.text, path));
  assert_int_equal(lock_take(path, false, &b, NULL), ERR_HELD);
  lock_drop(&a);
  assert_int_equal(a.fd, -1);
  assert_int_equal(lock_take(path, true, &b, NULL), 0);
  lock_drop(&b);
}

static void who_looks_sees_a_holder_and_makes_nothing(void **unused) {
  lock a;
  assert_false(lock_is_held(path));
  assert_false(path_exists(path));
  assert_int_equal(lock_take(path, true, &a, NULL), 0);
  assert_true(lock_is_held(path));
  lock_drop(&a);
  assert_false(lock_is_held(path));
  assert_int_equal(lock_take(path, false, &a, NULL), 0);
  assert_false(lock_is_held(path)); /* a reader is no run */
  lock_drop(&a);
}

static void a_directory_has_one_holder_whatever_its_lock_files_are(void **unused) {
  lock a, b;
  err e = {0};
  assert_int_equal(lock_take_dir(dir, &a, NULL), 0);
  assert_int_equal(lock_take_dir(dir, &b, &e), ERR_HELD);
  assert_non_null(strstr(e.text, dir));
  assert_int_equal(b.fd, -1);
  lock_drop(&a);
  assert_int_equal(lock_take_dir(dir, &b, NULL), 0);
  lock_drop(&b);
}

static void readers_share_and_keep_writers_out(void **unused) {
  lock a, b, c;
  assert_int_equal(lock_take(path, false, &a, NULL), 0);
  assert_int_equal(lock_take(path, false, &b, NULL), 0);
  assert_int_equal(lock_take(path, true, &c, NULL), ERR_HELD);
  lock_drop(&a);
  assert_int_equal(lock_take(path, true, &c, NULL), ERR_HELD);
  lock_drop(&b);
  assert_int_equal(lock_take(path, true, &c, NULL), 0);
  lock_drop(&c);
}

static void closing_the_file_elsewhere_does_not_lose_it(void **unused) {
  lock a, b;
  assert_int_equal(lock_take(path, true, &a, NULL), 0);
  close(open(path, O_RDONLY)); /* a POSIX lock would be gone now */
  assert_int_equal(lock_take(path, true, &b, NULL), ERR_HELD);
  lock_drop(&a);
}

static void a_killed_holder_leaves_it_free(void **unused) {
  int ready[2];
  assert_int_equal(pipe(ready), 0);
  pid_t pid = fork();
  if (pid == 0) {
    lock mine;
    int rc = lock_take(path, true, &mine, NULL);
    if (write(ready[1], &rc, sizeof rc) < 0) _exit(1);
    pause();
    _exit(0);
  }
  int rc = -1;
  assert_int_equal(read(ready[0], &rc, sizeof rc), sizeof rc);
  assert_int_equal(rc, 0);
  lock ours;
  assert_int_equal(lock_take(path, true, &ours, NULL), ERR_HELD);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  assert_int_equal(lock_take(path, true, &ours, NULL), 0);
  lock_drop(&ours);
  close(ready[0]);
  close(ready[1]);
}

static void a_child_program_does_not_inherit_it(void **unused) {
  lock mine;
  assert_int_equal(lock_take(path, true, &mine, NULL), 0);
  assert_true(fcntl(mine.fd, F_GETFD) & FD_CLOEXEC);
  lock_drop(&mine);
}

static void dropping_frees_it_although_a_fork_shares_the_file(void **unused) {
  lock mine, next;
  assert_int_equal(lock_take(path, true, &mine, NULL), 0);
  pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  lock_drop(&mine);
  int rc = lock_take(path, true, &next, NULL);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  assert_int_equal(rc, 0);
  lock_drop(&next);
}

static void the_file_is_private_and_stays(void **unused) {
  lock mine;
  mode_t old = umask(0);
  assert_int_equal(lock_take(path, true, &mine, NULL), 0);
  umask(old);
  lock_drop(&mine);
  assert_int_equal(path_mode(path), 0600);
}

static void content_is_never_touched(void **unused) {
  lock mine;
  write_file(path, "someone's file");
  assert_int_equal(lock_take(path, true, &mine, NULL), 0);
  lock_drop(&mine);
  assert_true(file_is(path, "someone's file"));
}

static void what_is_no_regular_file_is_refused_without_waiting(void **unused) {
  lock mine;
  err e = {0};
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(lock_take(path, false, &mine, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, path));
  assert_int_equal(lock_take(path, true, &mine, NULL), ERR_INVAL);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(symlink("elsewhere", path), 0);
  assert_int_equal(lock_take(path, true, &mine, NULL), ERR_INVAL);
  assert_false(path_exists(tmpdir_path(dir, "elsewhere")));
  assert_int_equal(lock_take(dir, true, &mine, NULL), ERR_INVAL);
  assert_int_equal(lock_take(tmpdir_path(dir, "no/lock"), true, &mine, NULL), ERR_NOENT);
  assert_int_equal(mine.fd, -1);
}

static void a_reader_needs_no_right_to_write(void **unused) {
  if (geteuid() == 0) {
    print_message("root may write everything\n");
    skip();
  }
  lock mine;
  write_file(path, "");
  assert_int_equal(chmod(path, 0400), 0);
  assert_int_equal(lock_take(path, true, &mine, NULL), ERR_ACCESS);
  assert_int_equal(lock_take(path, false, &mine, NULL), 0);
  lock_drop(&mine);
}

static void no_descriptor_leaks(void **unused) {
  int before = count_fds();
  lock a, b;
  assert_int_equal(lock_take(path, true, &a, NULL), 0);
  for (int i = 0; i < 20; i++) assert_int_equal(lock_take(path, true, &b, NULL), ERR_HELD);
  assert_int_equal(count_fds(), before + 1);
  lock_drop(&a);
  lock_drop(&a);
  assert_int_equal(count_fds(), before);
}

static void of_many_processes_exactly_one_wins(void **unused) {
  enum { RACERS = 8 };
  int gate[2];
  assert_int_equal(pipe(gate), 0);
  pid_t pids[RACERS];
  for (int i = 0; i < RACERS; i++) {
    pids[i] = fork();
    if (pids[i] == 0) {
      char byte;
      close(gate[1]);
      if (read(gate[0], &byte, 1) != 0) _exit(3); /* opens when all writers are gone */
      lock mine;
      int rc = lock_take(path, true, &mine, NULL);
      usleep(300000); /* longer than the slowest racer takes to try */
      _exit(rc == 0 ? 0 : rc == ERR_HELD ? 1 : 2);
    }
  }
  close(gate[1]);
  close(gate[0]);
  int winners = 0;
  for (int i = 0; i < RACERS; i++) {
    int status;
    waitpid(pids[i], &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    winners += WEXITSTATUS(status) == 0;
  }
  assert_int_equal(winners, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(one_exclusive_holder_and_no_second),
      TEST(who_looks_sees_a_holder_and_makes_nothing),
      TEST(a_directory_has_one_holder_whatever_its_lock_files_are),
      TEST(readers_share_and_keep_writers_out),
      TEST(closing_the_file_elsewhere_does_not_lose_it),
      TEST(a_killed_holder_leaves_it_free),
      TEST(a_child_program_does_not_inherit_it),
      TEST(dropping_frees_it_although_a_fork_shares_the_file),
      TEST(the_file_is_private_and_stays),
      TEST(content_is_never_touched),
      TEST(what_is_no_regular_file_is_refused_without_waiting),
      TEST(a_reader_needs_no_right_to_write),
      TEST(no_descriptor_leaks),
      TEST(of_many_processes_exactly_one_wins),
  };
  int failed = cmocka_run_group_tests_name("temporary directory", tests, NULL, NULL);
  place = "/dev/shm";
  if (access(place, W_OK) == 0) failed += cmocka_run_group_tests_name("tmpfs", tests, NULL, NULL);
  return failed;
}
