/* Loaded before a program (LD_PRELOAD), it makes a slow store: reading a file of SLOW_BYTES bytes
 * in one go takes a tenth of a second. Other reads, of logs and manifests, are as quick as ever. */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef ssize_t read_fn(int fd, void *to, size_t len, off_t at);

ssize_t pread(int fd, void *to, size_t len, off_t at) {
  const char *slow = getenv("SLOW_BYTES");
  struct timespec tenth = {.tv_nsec = 100000000};
  read_fn *next = (read_fn *)dlsym(RTLD_NEXT, "pread");
  if (slow && len == strtoul(slow, NULL, 10)) nanosleep(&tenth, NULL);
  return next(fd, to, len, at);
}
