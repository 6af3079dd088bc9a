#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"

int scratch_make(const char *verb, const char *parent, char *out, size_t room) {
  const char *tmp = getenv("TMPDIR");
  const char *dir = parent ? parent : tmp && *tmp ? tmp : "/tmp";
  int n = snprintf(out, room, "%s/ckpt-%s.XXXXXX", dir, verb);
  bool fits = n > 0 && (size_t)n < room;
  if (fits && mkdtemp(out)) return 0;
  report_error("cannot make a directory in %s: %s", dir,
               fits ? strerror(errno) : "the path is too long");
  return EXIT_FAILED;
}

static void remove_below(int parent, const char *name) {
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0) fchmod(fd, 0700); /* a checkpoint's directory may be read-only */
  DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
  const struct dirent *entry;
  while (dir && (entry = readdir(dir)))
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
        unlinkat(fd, entry->d_name, 0) != 0)
      remove_below(fd, entry->d_name);
  if (dir)
    closedir(dir);
  else if (fd >= 0)
    close(fd);
  unlinkat(parent, name, AT_REMOVEDIR);
}

void scratch_clear(const char *path) {
  remove_below(AT_FDCWD, path);
}

void scratch_remove(const char *path) {
  struct stat st;
  scratch_clear(path);
  if (lstat(path, &st) == 0) report_warning("%s could not be removed", path);
}
