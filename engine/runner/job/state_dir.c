#include "state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runner/cli/report.h"

int state_dir_open(const char *path) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  struct open_how how = {.flags = (unsigned)flags, .resolve = RESOLVE_NO_SYMLINKS};
  int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
  /* An old kernel does not know the call, and a sandbox may refuse it. */
  if (fd < 0 && (errno == ENOSYS || errno == EPERM)) fd = open(path, flags);
  return fd < 0 ? -errno : fd;
}

int state_dir_create(int dir, const char *name, mode_t mode, FILE **out) {
  /* The old file goes first: nothing is written through a link that somebody put there, nor into
   * the leftover of a killed run of ours. */
  if (unlinkat(dir, name, 0) != 0 && errno != ENOENT) return -errno;
  int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return -errno;
  *out = fdopen(fd, "w");
  if (*out) return 0;
  int error = errno;
  close(fd);
  return -error;
}

int state_dir_finish(FILE *f) {
  int rc = fflush(f) != 0 || fsync(fileno(f)) != 0 ? -errno : 0;
  if (fclose(f) != 0 && rc == 0) rc = -errno;
  return rc;
}

void state_dir_forget(const char *path, const char *name) {
  int dir = state_dir_open(path);
  if (dir < 0 || (unlinkat(dir, name, 0) != 0 && errno != ENOENT))
    report_warning("cannot remove %s/%s: %s", path, name, strerror(dir < 0 ? -dir : errno));
  if (dir >= 0) close(dir);
}
