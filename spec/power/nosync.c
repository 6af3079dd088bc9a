/* What the proof of the power losses must catch: an engine that flushes nothing. For LD_PRELOAD. */
#include <unistd.h>

int fsync(int fd) {
  (void)fd;
  return 0;
}

int fdatasync(int fd) {
  (void)fd;
  return 0;
}
