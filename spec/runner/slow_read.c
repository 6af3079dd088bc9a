/* Loaded before a program (LD_PRELOAD), it makes a slow store: reading a file of SLOW_BYTES bytes
 * in one go takes a tenth of a second. Other reads, of logs and manifests, are as quick as ever. With
 * SLOW_SOURCE it is the files of a checkpoint that are slow to read when it is saved. */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef ssize_t pread_fn(int fd, void *to, size_t len, off_t at);
typedef ssize_t read_fn(int fd, void *to, size_t len);

static void wait_for(size_t len) {
  const char *slow = getenv("SLOW_BYTES");
  struct timespec tenth = {.tv_nsec = 100000000};
  if (slow && len == strtoul(slow, NULL, 10)) nanosleep(&tenth, NULL);
}

ssize_t pread(int fd, void *to, size_t len, off_t at) {
  pread_fn *next = (pread_fn *)dlsym(RTLD_NEXT, "pread");
  if (!getenv("SLOW_SOURCE")) wait_for(len);
  return next(fd, to, len, at);
}

ssize_t read(int fd, void *to, size_t len) {
  read_fn *next = (read_fn *)dlsym(RTLD_NEXT, "read");
  if (getenv("SLOW_SOURCE")) wait_for(len);
  return next(fd, to, len);
}
