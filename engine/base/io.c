#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "secret.h"

static int result(int rc) {
  return rc < 0 ? -errno : rc;
}
static ssize_t result_len(ssize_t rc) {
  return rc < 0 ? -errno : rc;
}

/* Repeats a call that a signal interrupted before it did anything. */
#define AGAIN_ON_EINTR(type, call)                                                                 \
  type rc;                                                                                         \
  do {                                                                                             \
    rc = (type)(call);                                                                             \
  } while (rc < 0 && errno == EINTR);

/* ---- what another host has changed ---- */

/* Has a network file system ask its server for what it knows of a file or a directory, and drop what
 * it remembers if that is another: NFS answers from memory for up to a minute, listings, sizes and
 * "it is not there" alike. Others know nothing but the truth, and this costs them nothing. Errors
 * are those of the call behind it. */
static void ask_server(int dirfd, const char *path, int flags) {
  struct statx seen;
  (void)!statx(dirfd, path, flags | AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS,
               &seen);
}

/* Has the server asked for the directory in which a name is not, as it was remembered. */
static void ask_above(int dirfd, const char *path) {
  char above[PATH_MAX];
  const char *name = strrchr(path, '/');
  if (!name) {
    ask_server(dirfd, "", AT_EMPTY_PATH);
  } else if (name == path) {
    ask_server(dirfd, "/", 0);
  } else if ((size_t)(name - path) < sizeof above) {
    memcpy(above, path, (size_t)(name - path));
    above[name - path] = 0;
    ask_server(dirfd, above, 0);
  }
}

static int open_known(int dirfd, const char *path, int flags, mode_t mode) {
  AGAIN_ON_EINTR(int, openat(dirfd, path, flags | O_CLOEXEC, mode))
  return result(rc);
}

static int sys_open(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  (void)io;
  int rc = open_known(dirfd, path, flags, mode);
  if (rc != -ENOENT || flags & O_CREAT) return rc;
  ask_above(dirfd, path);
  return open_known(dirfd, path, flags, mode);
}

static int open_beneath_known(int dirfd, const char *path, int flags, mode_t mode) {
  struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                         .mode = flags & O_CREAT ? mode : 0,
                         .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  AGAIN_ON_EINTR(int, (int)syscall(SYS_openat2, dirfd, path, &how, sizeof how))
  /* Seccomp filters that are older than the call refuse it with EPERM. */
  return rc < 0 && errno == EPERM ? -ENOSYS : result(rc);
}

static int sys_open_beneath(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  (void)io;
  int rc = open_beneath_known(dirfd, path, flags, mode);
  if (rc != -ENOENT || flags & O_CREAT) return rc;
  ask_above(dirfd, path);
  return open_beneath_known(dirfd, path, flags, mode);
}

/* Linux frees the descriptor even when close reports EINTR: a second try could close a stranger's.
 */
static int sys_close(const io *io, int fd) {
  (void)io;
  int rc = close(fd);
  return rc < 0 && errno == EINTR ? 0 : result(rc);
}

static ssize_t sys_read(const io *io, int fd, void *to, size_t len) {
  (void)io;
  AGAIN_ON_EINTR(ssize_t, read(fd, to, len))
  return result_len(rc);
}

static ssize_t sys_pread(const io *io, int fd, void *to, size_t len, off_t at) {
  (void)io;
  AGAIN_ON_EINTR(ssize_t, pread(fd, to, len, at))
  return result_len(rc);
}

static ssize_t sys_write(const io *io, int fd, const void *from, size_t len) {
  (void)io;
  AGAIN_ON_EINTR(ssize_t, write(fd, from, len))
  return result_len(rc);
}

static int sys_fsync(const io *io, int fd) {
  (void)io;
  AGAIN_ON_EINTR(int, fsync(fd))
  return result(rc);
}

static int sys_fdatasync(const io *io, int fd) {
  (void)io;
  AGAIN_ON_EINTR(int, fdatasync(fd))
  return result(rc);
}

static int sys_syncfs(const io *io, int fd) {
  (void)io;
  AGAIN_ON_EINTR(int, syncfs(fd))
  return result(rc);
}

static int sys_ftruncate(const io *io, int fd, off_t size) {
  (void)io;
  AGAIN_ON_EINTR(int, ftruncate(fd, size))
  return result(rc);
}

static int sys_fstat(const io *io, int fd, struct stat *out) {
  (void)io;
  return result(fstat(fd, out));
}

static int sys_lstat(const io *io, int dirfd, const char *path, struct stat *out) {
  (void)io;
  ask_server(dirfd, path, 0);
  int rc = result(fstatat(dirfd, path, out, AT_SYMLINK_NOFOLLOW));
  if (rc != -ENOENT) return rc;
  ask_above(dirfd, path);
  return result(fstatat(dirfd, path, out, AT_SYMLINK_NOFOLLOW));
}

static int sys_birth(const io *io, int fd, int64_t *ns) {
  (void)io;
  struct statx seen;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &seen) != 0)
    return errno == ENOSYS || errno == EPERM ? -ENODATA : -errno;
  if (!(seen.stx_mask & STATX_BTIME)) return -ENODATA;
  *ns = io_time_ns((struct timespec){seen.stx_btime.tv_sec, seen.stx_btime.tv_nsec});
  return 0;
}

static int sys_mkdir(const io *io, int dirfd, const char *path, mode_t mode) {
  (void)io;
  return result(mkdirat(dirfd, path, mode));
}

static int sys_rename(const io *io, int fromdir, const char *from, int todir, const char *to,
                      unsigned flags) {
  (void)io;
  return result((int)syscall(SYS_renameat2, fromdir, from, todir, to, flags));
}

static int sys_link(const io *io, int fromdir, const char *from, int todir, const char *to) {
  (void)io;
  return result(linkat(fromdir, from, todir, to, 0));
}

static int sys_unlink(const io *io, int dirfd, const char *path, int flags) {
  (void)io;
  return result(unlinkat(dirfd, path, flags));
}

static int sys_symlink(const io *io, const char *target, int dirfd, const char *path) {
  (void)io;
  return result(symlinkat(target, dirfd, path));
}

static ssize_t sys_readlink(const io *io, int dirfd, const char *path, char *to, size_t len) {
  (void)io;
  return result_len(readlinkat(dirfd, path, to, len));
}

static int sys_chmod(const io *io, int fd, mode_t mode) {
  (void)io;
  return result(fchmod(fd, mode));
}

static int sys_utimens(const io *io, int dirfd, const char *path, const struct timespec times[2],
                       int flags) {
  (void)io;
  return result(utimensat(dirfd, path, times, flags));
}

static ssize_t sys_getdents(const io *io, int fd, void *to, size_t len) {
  (void)io;
  ask_server(fd, "", AT_EMPTY_PATH);
  return result_len(syscall(SYS_getdents64, fd, to, len));
}

static int sys_clone(const io *io, int from, int to) {
  (void)io;
  return result(ioctl(to, FICLONE, from));
}

static ssize_t sys_copy_range(const io *io, int from, int to, size_t len) {
  (void)io;
  AGAIN_ON_EINTR(ssize_t, copy_file_range(from, NULL, to, NULL, len, 0))
  return result_len(rc);
}

static int64_t sys_now(const io *io, io_clock clock) {
  (void)io;
  struct timespec t;
  clock_gettime(clock == IO_WALL ? CLOCK_REALTIME : CLOCK_BOOTTIME, &t);
  return io_time_ns(t);
}

static void sys_sleep(const io *io, int64_t ns) {
  (void)io;
  struct timespec left = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
  while (nanosleep(&left, &left) < 0 && errno == EINTR) {
  }
}

static int sys_random(const io *io, void *to, size_t len) {
  (void)io;
  char *at = to;
  while (len) {
    AGAIN_ON_EINTR(ssize_t, getrandom(at, len, 0))
    if (rc < 0) return -errno;
    at += rc;
    len -= (size_t)rc;
  }
  return 0;
}

static const io system_io = {
    .open = sys_open,
    .open_beneath = sys_open_beneath,
    .close = sys_close,
    .read = sys_read,
    .pread = sys_pread,
    .write = sys_write,
    .fsync = sys_fsync,
    .fdatasync = sys_fdatasync,
    .syncfs = sys_syncfs,
    .ftruncate = sys_ftruncate,
    .fstat = sys_fstat,
    .lstat = sys_lstat,
    .birth = sys_birth,
    .mkdir = sys_mkdir,
    .rename = sys_rename,
    .link = sys_link,
    .unlink = sys_unlink,
    .symlink = sys_symlink,
    .readlink = sys_readlink,
    .chmod = sys_chmod,
    .utimens = sys_utimens,
    .getdents = sys_getdents,
    .clone = sys_clone,
    .copy_range = sys_copy_range,
    .now = sys_now,
    .sleep = sys_sleep,
    .random = sys_random,
};

const io *io_system(void) {
  return &system_io;
}

const char *io_variable_laid(const io *io, const char *name) {
  size_t len = strlen(name);
  const char *value = NULL; /* of several the last one counts */
  for (const char *const *at = io->environment; at && *at; at++)
    if (strncmp(*at, name, len) == 0 && (*at)[len] == '=') value = *at + len + 1;
  return value;
}

int io_lay(const io *base, const char *const *environment, io *out) {
  *out = *base;
  out->environment = NULL;
  for (const char *const *at = environment; at && *at; at++)
    if (**at == '=' || !strchr(*at, '=')) return -EINVAL;
  if (environment) out->environment = (const char *const *)secret_copy_list(environment);
  return environment && !out->environment ? -ENOMEM : 0;
}

void io_lay_free(io *laid) {
  secret_free((void *)laid->environment);
  laid->environment = NULL;
}

const char *io_variable(const io *io, const char *name) {
  const char *laid = io_variable_laid(io, name);
  return laid ? laid : getenv(name);
}

int io_move_up(const io *io, int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  int up = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  int rc = up < 0 ? -errno : up;
  io->close(io, fd);
  return rc;
}

int32_t io_utc_offset(int64_t wall_ns) {
  time_t seconds = (time_t)(wall_ns / 1000000000);
  struct tm local;
  return localtime_r(&seconds, &local) ? (int32_t)local.tm_gmtoff : 0;
}

int io_nonce(const io *io, char out[33]) {
  unsigned char bytes[16];
  int rc = io->random(io, bytes, sizeof bytes);
  if (rc < 0) return rc;
  for (size_t i = 0; i < sizeof bytes; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
  return 0;
}
