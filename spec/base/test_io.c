#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

/* Every test gets an empty directory, as its descriptor and its path. */
typedef struct place {
  char path[200];
  int fd;
} place;

static int enter(void **state) {
  static place p;
  const char *tmp = getenv("TMPDIR");
  snprintf(p.path, sizeof p.path, "%s/ckpt-io-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(p.path)) return -1;
  p.fd = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  *state = &p;
  return p.fd < 0 ? -1 : 0;
}

static int leave(void **state) {
  place *p = *state;
  close(p->fd);
  char command[300];
  snprintf(command, sizeof command, "rm -rf '%s'", p->path);
  return system(command); // NOLINT(bugprone-command-processor, cert-env33-c): our own mkdtemp name
}

static const char *at(const place *p, const char *name, char *out, size_t room) {
  snprintf(out, room, "%s/%s", p->path, name);
  return out;
}

static int made(const place *p, const char *name, const char *bytes) {
  const io *io = io_system();
  int fd = io->open(io, p->fd, name, O_RDWR | O_CREAT | O_EXCL, 0600);
  assert_true(fd >= 0);
  assert_int_equal(io->write(io, fd, bytes, strlen(bytes)), strlen(bytes));
  return fd;
}

static void the_table_has_no_hole(void **state) {
  const io *io = io_system();
  void (*const *fn)(void) = (void (*const *)(void)) & io->open;
  void (*const *end)(void) = (void (*const *)(void)) & io->environment; /* the last, and no call */
  for (; fn < end; fn++) assert_true(*fn != NULL);
}

static void a_file_is_written_and_read_back(void **state) {
  place *p = *state;
  const io *io = io_system();
  int fd = made(p, "f", "0123456789");
  char got[20] = "";
  assert_int_equal(io->pread(io, fd, got, 4, 3), 4);
  assert_string_equal(got, "3456");
  assert_int_equal(io->fsync(io, fd), 0);
  assert_int_equal(io->fdatasync(io, fd), 0);
  assert_int_equal(io->ftruncate(io, fd, 5), 0);
  struct stat st;
  assert_int_equal(io->fstat(io, fd, &st), 0);
  assert_int_equal(st.st_size, 5);
  assert_int_equal(io->chmod(io, fd, 0640), 0);
  assert_int_equal(io->lstat(io, p->fd, "f", &st), 0);
  assert_int_equal(st.st_mode & 07777, 0640);
  assert_int_equal(io->close(io, fd), 0);
  fd = io->open(io, p->fd, "f", O_RDONLY, 0);
  assert_int_equal(io->read(io, fd, got, sizeof got), 5);
  assert_int_equal(io->read(io, fd, got, sizeof got), 0);
  assert_int_equal(io->close(io, fd), 0);
}

static void a_failed_call_returns_its_errno_negated(void **state) {
  place *p = *state;
  const io *io = io_system();
  struct stat st;
  char b[4], x[300], y[300];
  at(p, "none", x, sizeof x);
  at(p, "other", y, sizeof y);
  errno = 0;
  assert_int_equal(io->open(io, p->fd, "none", O_RDONLY, 0), -ENOENT);
  assert_int_equal(io->lstat(io, p->fd, "none", &st), -ENOENT);
  assert_int_equal(io->unlink(io, p->fd, "none", 0), -ENOENT);
  assert_int_equal(io->readlink(io, p->fd, "none", b, sizeof b), -ENOENT);
  assert_int_equal(io->utimens(io, p->fd, "none", NULL, 0), -ENOENT);
  assert_int_equal(io->mkdir(io, p->fd, "none/x", 0700), -ENOENT);
  assert_int_equal(io->rename(io, AT_FDCWD, x, AT_FDCWD, y, 0), -ENOENT);
  assert_int_equal(io->link(io, AT_FDCWD, x, AT_FDCWD, y), -ENOENT);
  assert_int_equal(io->symlink(io, "x", AT_FDCWD, p->path), -EEXIST);
  assert_int_equal(io->close(io, -1), -EBADF);
  assert_int_equal(io->read(io, -1, b, 1), -EBADF);
  assert_int_equal(io->pread(io, -1, b, 1, 0), -EBADF);
  assert_int_equal(io->write(io, -1, b, 1), -EBADF);
  assert_int_equal(io->fsync(io, -1), -EBADF);
  assert_int_equal(io->fdatasync(io, -1), -EBADF);
  assert_int_equal(io->fstat(io, -1, &st), -EBADF);
  assert_int_equal(io->chmod(io, -1, 0600), -EBADF);
  assert_int_equal(io->getdents(io, -1, b, sizeof b), -EBADF);
  assert_int_equal(io->clone(io, -1, -1), -EBADF);
  assert_int_equal(io->copy_range(io, -1, -1, 1), -EBADF);
}

static void link_and_exclusive_rename_never_replace(void **state) {
  place *p = *state;
  const io *io = io_system();
  char a[300], b[300];
  at(p, "a", a, sizeof a);
  at(p, "b", b, sizeof b);
  io->close(io, made(p, "a", "first"));
  io->close(io, made(p, "b", "second"));
  assert_int_equal(io->link(io, AT_FDCWD, a, AT_FDCWD, b), -EEXIST);
  assert_int_equal(io->rename(io, AT_FDCWD, a, AT_FDCWD, b, RENAME_NOREPLACE), -EEXIST);
  struct stat st;
  assert_int_equal(io->lstat(io, p->fd, "b", &st), 0);
  assert_int_equal(st.st_size, 6);
  assert_int_equal(io->rename(io, AT_FDCWD, a, AT_FDCWD, b, 0), 0);
  assert_int_equal(io->lstat(io, p->fd, "b", &st), 0);
  assert_int_equal(st.st_size, 5);
}

static void lstat_and_link_do_not_follow_symbolic_links(void **state) {
  place *p = *state;
  const io *io = io_system();
  char s[300], h[300], got[10] = "";
  assert_int_equal(io->symlink(io, "gone", AT_FDCWD, at(p, "s", s, sizeof s)), 0);
  struct stat st;
  assert_int_equal(io->lstat(io, p->fd, "s", &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  assert_int_equal(io->readlink(io, p->fd, "s", got, sizeof got), 4);
  assert_string_equal(got, "gone");
  assert_int_equal(io->link(io, AT_FDCWD, s, AT_FDCWD, at(p, "h", h, sizeof h)), 0);
  assert_int_equal(io->lstat(io, p->fd, "h", &st), 0);
  assert_true(S_ISLNK(st.st_mode));
}

static void times_are_set_to_the_nanosecond(void **state) {
  place *p = *state;
  const io *io = io_system();
  io->close(io, made(p, "f", ""));
  const struct timespec times[2] = {{.tv_sec = 1, .tv_nsec = 2},
                                    {.tv_sec = 1700000000, .tv_nsec = 123456789}};
  assert_int_equal(io->utimens(io, p->fd, "f", times, 0), 0);
  struct stat st;
  assert_int_equal(io->lstat(io, p->fd, "f", &st), 0);
  assert_true(io_time_ns(st.st_mtim) == 1700000000123456789);
}

static void a_directory_is_listed_to_its_end(void **state) {
  place *p = *state;
  const io *io = io_system();
  for (int i = 0; i < 50; i++) {
    char name[20];
    snprintf(name, sizeof name, "d%d", i);
    assert_int_equal(io->mkdir(io, p->fd, name, 0700), 0);
  }
  int fd = io->open(io, p->fd, ".", O_RDONLY | O_DIRECTORY, 0), entries = 0;
  char chunk[256];
  ssize_t got;
  while ((got = io->getdents(io, fd, chunk, sizeof chunk)) > 0)
    for (ssize_t i = 0; i < got; entries++) {
      unsigned short len; /* d_reclen of struct linux_dirent64 */
      memcpy(&len, chunk + i + 16, sizeof len);
      i += len;
    }
  assert_int_equal(got, 0);
  assert_int_equal(entries, 52);
  io->close(io, fd);
}

static void a_copied_range_has_the_same_bytes(void **state) {
  place *p = *state;
  const io *io = io_system();
  int from = made(p, "from", "0123456789"), to = made(p, "to", "");
  assert_int_equal(lseek(from, 4, SEEK_SET), 4);
  ssize_t copied = io->copy_range(io, from, to, 100);
  /* Some file systems refuse; then they say which way. */
  if (copied < 0) {
    assert_true(copied == -EXDEV || copied == -EOPNOTSUPP || copied == -EINVAL);
  } else {
    char got[10] = "";
    assert_int_equal(copied, 6);
    assert_int_equal(io->pread(io, to, got, sizeof got, 0), 6);
    assert_memory_equal(got, "456789", 6);
  }
  int rc = io->clone(io, from, to);
  assert_true(rc == 0 || rc == -EOPNOTSUPP || rc == -ENOTTY || rc == -EINVAL || rc == -EXDEV);
  io->close(io, from);
  io->close(io, to);
}

static void no_descriptor_leaks_into_a_child(void **state) {
  place *p = *state;
  const io *io = io_system();
  int fd = made(p, "f", "");
  assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  io->close(io, fd);
}

static void on_alarm(int sig) {}

static void a_signal_does_not_cut_a_read_short(void **state) {
  const io *io = io_system();
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  struct sigaction sa = {.sa_handler = on_alarm}, before; /* no SA_RESTART: read sees EINTR */
  sigaction(SIGALRM, &sa, &before);
  pid_t child = fork();
  if (child == 0) {
    usleep(100000);
    _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
  }
  const struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  char c = 0;
  ssize_t got = io->read(io, ends[0], &c, 1);
  setitimer(ITIMER_REAL, &never, NULL);
  sigaction(SIGALRM, &before, NULL);
  int status = -1;
  waitpid(child, &status, 0);
  close(ends[0]);
  close(ends[1]);
  assert_int_equal(got, 1);
  assert_int_equal(c, 'x');
  assert_int_equal(status, 0);
}

static void the_clocks_go_forward_in_nanoseconds(void **state) {
  const io *io = io_system();
  int64_t mono = io->now(io, IO_MONO), wall = io->now(io, IO_WALL);
  assert_true(wall > 1600000000LL * 1000000000);
  usleep(2000);
  assert_in_range(io->now(io, IO_MONO) - mono, 2000000, 60LL * 1000000000);
}

static void nonces_are_32_hex_digits_and_differ(void **state) {
  const io *io = io_system();
  char nonces[100][33];
  for (int i = 0; i < 100; i++) {
    assert_int_equal(io_nonce(io, nonces[i]), 0);
    assert_int_equal(strlen(nonces[i]), 32);
    assert_int_equal(strspn(nonces[i], "0123456789abcdef"), 32);
    for (int j = 0; j < i; j++) assert_string_not_equal(nonces[i], nonces[j]);
  }
}

static int no_random(const io *io, void *to, size_t len) {
  return -EIO;
}

static void a_nonce_without_randomness_is_an_error(void **state) {
  io broken = *io_system();
  broken.random = no_random;
  char nonce[33] = "";
  assert_int_equal(io_nonce(&broken, nonce), -EIO);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_table_has_no_hole),
      cmocka_unit_test_setup_teardown(a_file_is_written_and_read_back, enter, leave),
      cmocka_unit_test_setup_teardown(a_failed_call_returns_its_errno_negated, enter, leave),
      cmocka_unit_test_setup_teardown(link_and_exclusive_rename_never_replace, enter, leave),
      cmocka_unit_test_setup_teardown(lstat_and_link_do_not_follow_symbolic_links, enter, leave),
      cmocka_unit_test_setup_teardown(times_are_set_to_the_nanosecond, enter, leave),
      cmocka_unit_test_setup_teardown(a_directory_is_listed_to_its_end, enter, leave),
      cmocka_unit_test_setup_teardown(a_copied_range_has_the_same_bytes, enter, leave),
      cmocka_unit_test_setup_teardown(no_descriptor_leaks_into_a_child, enter, leave),
      cmocka_unit_test(a_signal_does_not_cut_a_read_short),
      cmocka_unit_test(the_clocks_go_forward_in_nanoseconds),
      cmocka_unit_test(nonces_are_32_hex_digits_and_differ),
      cmocka_unit_test(a_nonce_without_randomness_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
