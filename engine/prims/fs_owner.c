/* fs_owner: tells whose a file is, also where the file system gives owners of its own. */
#include "fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int fs_probe_owner(const io *io, int dirfd, const char *dir, struct stat *out, err *e) {
  char nonce[33], name[64], path[FS_PATH_MAX];
  int rc = io_nonce(io, nonce);
  if (rc < 0) return err_sys(e, rc, "random numbers");
  snprintf(name, sizeof name, ".ckpt-owner.%s", nonce);
  rc = fs_join(path, dir, name, e);
  if (rc < 0) return rc;
  int fd = io->open(io, dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return err_sys(e, fd, "cannot make %s", path);
  rc = io->fstat(io, fd, out); /* by the descriptor: it is ours, whatever has its name by now */
  io->close(io, fd);
  io->unlink(io, dirfd, path, 0);
  return rc < 0 ? err_sys(e, rc, "cannot look at %s", path) : 0;
}

bool fs_is_ours(const io *io, const char *dir, uid_t owner) {
  struct stat st;
  if (owner == geteuid()) return true;
  return fs_probe_owner(io, AT_FDCWD, dir, &st, NULL) == 0 && st.st_uid == owner;
}

/* Each line of the map has the first id here, the first id outside, and how many there are. */
static bool is_mapped(const char *map, unsigned long uid) {
  unsigned long first, count;
  for (const char *line = map; line && *line; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (sscanf(line, "%lu %*u %lu", &first, &count) == 2 && uid >= first && uid - first < count)
      return true;
  }
  return false;
}

bool fs_is_outsider(const io *io, uid_t owner) {
  enum { MAP_MAX = 64 << 10 };
  buf map;
  buf_init(&map, MAP_MAX);
  int rc = fs_read(io, "/proc/self/uid_map", MAP_MAX, &map, NULL);
  bool outside = rc == 0 && map.len > 0 && !is_mapped(map.data, owner);
  buf_free(&map);
  return outside;
}
