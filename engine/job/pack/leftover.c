#include "leftover.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "prims/fs.h"
#include "prims/lock.h"

struct search {
  const io *io;
  const char *dir, *begin, *end;
  int64_t before_ns;
};

static bool is_one(const struct search *s, const char *name) {
  const size_t hex = 32, begin = strlen(s->begin), end = strlen(s->end);
  return strlen(name) == begin + hex + end && strncmp(name, s->begin, begin) == 0 &&
         strspn(name + begin, "0123456789abcdef") >= hex && strcmp(name + begin + hex, s->end) == 0;
}

static int look_at(void *ctx, const fs_entry *entry, err *e) {
  const struct search *s = ctx;
  const struct stat *st = entry->st;
  char path[FS_PATH_MAX];
  lock held = {.fd = -1};
  bool dir = S_ISDIR(st->st_mode);
  int go_on = dir ? FS_SKIP : 0;
  (void)e;
  if (!is_one(s, entry->name) || (!dir && !S_ISREG(st->st_mode)) ||
      io_time_ns(st->st_mtim) > s->before_ns || !fs_is_ours(s->io, s->dir, st->st_uid) ||
      fs_join(path, s->dir, entry->name, NULL) < 0)
    return go_on;
  const int flags = dir ? O_RDONLY | O_DIRECTORY : O_RDWR | O_NONBLOCK;
  int fd = s->io->open(s->io, AT_FDCWD, path, flags | O_NOFOLLOW, 0);
  if (fd < 0) return go_on;
  int rc = dir ? lock_take_open_dir(fd, path, &held, NULL) : lock_take_open(fd, path, &held, NULL);
  if (rc == 0 && held.fd >= 0) fs_remove_tree(s->io, path, NULL);
  lock_drop(&held);
  return go_on;
}

void leftover_remove(const io *io, const char *dir, const char *begin, const char *end) {
  const int64_t minute = (int64_t)60 * 1000000000;
  struct search s = {.io = io, .dir = dir, .begin = begin, .end = end};
  s.before_ns = io->now(io, IO_WALL) - minute;
  fs_list(io, dir, look_at, &s, NULL);
}
