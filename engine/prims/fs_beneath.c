/* fs_beneath: checks paths that somebody else chose, and opens them without following a link out of
 * the directory that they belong to. */
#include "fs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { COMPONENT_MAX = 255, COMPONENTS_MAX = 64 };

static bool is_word(const char *at, size_t len, const char *word) {
  return len == strlen(word) && memcmp(at, word, len) == 0;
}

int fs_beneath_check(const char *path, err *e) {
  size_t count = 0;
  if (!*path) return err_set(e, ERR_INVAL, "the name is empty");
  if (*path == '/') return err_set(e, ERR_INVAL, "the name is absolute");
  if (strlen(path) >= FS_PATH_MAX)
    return err_set(e, ERR_LIMIT, "the name is longer than %d bytes", FS_PATH_MAX - 1);
  for (const char *at = path;; at++) {
    size_t len = strcspn(at, "/");
    if (is_word(at, len, "..")) return err_set(e, ERR_INVAL, "the name has \"..\" in it");
    if (len == 0 || is_word(at, len, "."))
      return err_set(e, ERR_INVAL, "the name has an empty component in it");
    if (len > COMPONENT_MAX)
      return err_set(e, ERR_LIMIT, "a component of the name is longer than %d bytes",
                     COMPONENT_MAX);
    if (++count > COMPONENTS_MAX)
      return err_set(e, ERR_LIMIT, "the name is deeper than %d directories", COMPONENTS_MAX);
    at += len;
    if (!*at) return 0;
  }
}

int fs_beneath_check_link(const char *path, const char *target, err *e) {
  int above = 0;
  bool down = false;
  for (const char *at = path; *at; at++) above += *at == '/';
  if (!*target) return err_set(e, ERR_INVAL, "the link leads nowhere");
  if (*target == '/') return err_set(e, ERR_INVAL, "the link is absolute");
  if (strlen(target) >= FS_PATH_MAX)
    return err_set(e, ERR_LIMIT, "the link is longer than %d bytes", FS_PATH_MAX - 1);
  for (const char *at = target;; at++) {
    size_t len = strcspn(at, "/");
    bool up = is_word(at, len, "..");
    /* A ".." behind a name is relative to wherever that name leads, since it may be a link
     * itself. */
    if (up && (down || --above < 0)) return err_set(e, ERR_INVAL, "the link leads out");
    down |= !up && len > 0 && !is_word(at, len, ".");
    at += len;
    if (!*at) return 0;
  }
}

/* With O_PATH a link itself would be opened. */
static int open_last(const io *io, int dirfd, const char *name, int flags, mode_t mode) {
  struct stat st;
  int fd = io->open(io, dirfd, name, flags | O_NOFOLLOW, mode);
  if (fd < 0 || !(flags & O_PATH) || flags & O_NOFOLLOW) return fd;
  int rc = io->fstat(io, fd, &st);
  if (rc == 0 && S_ISLNK(st.st_mode)) rc = -ELOOP;
  if (rc == 0) return fd;
  io->close(io, fd);
  return rc;
}

/* Opens one component after the other. The directory between two of them is held open, so that it
 * does not matter if somebody puts a link in its place. */
static int walk(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  char name[COMPONENT_MAX + 1];
  int from = dirfd, fd = -EINVAL;
  for (const char *at = path;;) {
    size_t len = strcspn(at, "/");
    bool last = !at[len];
    if (len == 0 || len > COMPONENT_MAX || is_word(at, len, "..")) {
      fd = -EXDEV;
    } else {
      memcpy(name, at, len);
      name[len] = 0;
      fd = last ? open_last(io, from, name, flags, mode)
                : io->open(io, from, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    }
    if (from != dirfd) io->close(io, from);
    if (fd < 0 || last) return fd;
    from = fd;
    at += len + 1;
  }
}

int fs_open_beneath(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  int fd = io->open_beneath ? io->open_beneath(io, dirfd, path, flags, mode) : -ENOSYS;
  return fd == -ENOSYS ? walk(io, dirfd, path, flags, mode) : fd;
}
