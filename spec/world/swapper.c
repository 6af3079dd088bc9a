/* Loaded before the program SWAP_OF of root's (LD_PRELOAD), it is user SWAP_UID, who owns the directory
 * SWAP_IN and is as quick as one can be: just before the SWAP_AT-th call that names a file, from
 * the time on when a directory whose name begins with SWAP_NAME stands there (and the file
 * SWAP_AFTER, if it is set), that directory is moved aside, and its name becomes a link to SWAP_TO. Then it writes the file SWAP_SAY. So all
 * that a race can do between two calls is done once, one call after the other, and nothing is left
 * to luck. Nothing is flushed, which would only take time. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef long syscall_fn(long number, ...);
static syscall_fn *raw;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *in, *name, *to, *say, *after;
static long left;
static unsigned uid;

/* The helpers of the program are not asked: they may do too little. */
__attribute__((constructor)) static void begin(void) {
  raw = (syscall_fn *)dlsym(RTLD_NEXT, "syscall");
  if (strcmp(program_invocation_short_name, getenv("SWAP_OF")) != 0) return;
  in = getenv("SWAP_IN");
  name = getenv("SWAP_NAME");
  to = getenv("SWAP_TO");
  say = getenv("SWAP_SAY");
  after = getenv("SWAP_AFTER");
  uid = (unsigned)atoi(getenv("SWAP_UID"));
  left = atol(getenv("SWAP_AT"));
}

static bool is_dir(const char *path) {
  struct stat st;
  return raw(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool find(char path[4096]) {
  struct stat st;
  if (after && raw(SYS_newfstatat, AT_FDCWD, after, &st, 0) != 0) return false;
  DIR *d = opendir(in);
  bool found = false;
  for (struct dirent *entry; d && !found && (entry = readdir(d));) {
    size_t len = strlen(entry->d_name);
    if (entry->d_name[0] == '.' && (entry->d_name[1] == 0 || entry->d_name[1] == '.')) continue;
    if (strncmp(entry->d_name, name, strlen(name)) != 0) continue;
    if (len > 2 && strcmp(entry->d_name + len - 2, ".x") == 0) continue;
    found = snprintf(path, 4096, "%s/%s", in, entry->d_name) < 4096 && is_dir(path);
  }
  if (d) closedir(d);
  return found;
}

static void swap(const char *path) {
  char aside[4200];
  snprintf(aside, sizeof aside, "%s.x", path);
  setfsgid(uid);
  setfsuid(uid);
  bool done = raw(SYS_rename, path, aside) == 0 && raw(SYS_symlinkat, to, AT_FDCWD, path) == 0;
  setfsuid(0);
  setfsgid(0);
  if (done) close(creat(say, 0600));
}

static void tick(void) {
  char path[4096];
  int before = errno;
  if (!in) return;
  pthread_mutex_lock(&mutex);
  if (left > 0 && find(path) && --left == 0) swap(path);
  pthread_mutex_unlock(&mutex);
  errno = before;
}

int fsync(int fd) {
  (void)fd;
  return 0;
}

int syncfs(int fd) {
  (void)fd;
  return 0;
}

int openat(int at, const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  int mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, int) : 0;
  va_end(args);
  tick();
  return (int)raw(SYS_openat, at, path, flags, mode);
}

int mkdirat(int at, const char *path, mode_t mode) {
  tick();
  return (int)raw(SYS_mkdirat, at, path, mode);
}

int fstatat(int at, const char *path, struct stat *out, int flags) {
  tick();
  return (int)raw(SYS_newfstatat, at, path, out, flags);
}

int linkat(int at, const char *path, int other, const char *made, int flags) {
  tick();
  return (int)raw(SYS_linkat, at, path, other, made, flags);
}

int unlinkat(int at, const char *path, int flags) {
  tick();
  return (int)raw(SYS_unlinkat, at, path, flags);
}

int symlink(const char *target, const char *path) {
  tick();
  return (int)raw(SYS_symlinkat, target, AT_FDCWD, path);
}

int symlinkat(const char *target, int at, const char *path) {
  tick();
  return (int)raw(SYS_symlinkat, target, at, path);
}

int utimensat(int at, const char *path, const struct timespec times[2], int flags) {
  tick();
  return (int)raw(SYS_utimensat, at, path, times, flags);
}

long syscall(long number, ...) {
  long a[6];
  va_list args;
  va_start(args, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(args, long);
  va_end(args);
  if (number == SYS_openat2 || number == SYS_renameat2) tick();
  return raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
