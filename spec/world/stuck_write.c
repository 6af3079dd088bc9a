/* Loaded before a program (LD_PRELOAD), it makes a disk that gets stuck: who writes a file beyond its
 * first STUCK_AT bytes waits for ever. So a test can end the program at a known point. */
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <dlfcn.h>

typedef ssize_t write_fn(int fd, const void *from, size_t len);
typedef ssize_t copy_fn(int from, off_t *from_at, int to, off_t *to_at, size_t len, unsigned flags);

static void maybe_stuck(int fd) {
  const char *at = getenv("STUCK_AT");
  struct stat st;
  if (!at || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < atoll(at)) return;
  for (;;) pause();
}

ssize_t write(int fd, const void *from, size_t len) {
  write_fn *next = (write_fn *)dlsym(RTLD_NEXT, "write");
  maybe_stuck(fd);
  return next(fd, from, len);
}

ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t len,
                        unsigned flags) {
  copy_fn *next = (copy_fn *)dlsym(RTLD_NEXT, "copy_file_range");
  maybe_stuck(to);
  return next(from, from_at, to, to_at, len, flags);
}
