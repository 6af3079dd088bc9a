#include "opened.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "prims/fs.h"

enum { DIRS_MAX = 4096 };

struct opened {
  int fd;
  size_t dirs;
  char stem[NAME_MAX + 2]; /* names begin with it; "": all do */
  bool yes;
};

static int watch_one(opened *o, const char *path) {
  if (++o->dirs > DIRS_MAX) return ERR_LIMIT;
  return inotify_add_watch(o->fd, path, IN_OPEN | IN_DONT_FOLLOW) < 0 ? -errno : 0;
}

struct below {
  opened *o;
  const char *root;
};

static int on_entry(void *ctx, const fs_entry *entry, err *e) {
  const struct below *b = ctx;
  char path[FS_PATH_MAX];
  if (!S_ISDIR(entry->st->st_mode)) return 0;
  int rc = fs_join(path, b->root, entry->name, e);
  if (rc == 0 && watch_one(b->o, path) < 0) rc = err_set(e, ERR_LIMIT, "%s: no watch", path);
  return rc;
}

/* A group of files with a common stem has no path of its own. */
static int watch_beside(opened *o, const char *path) {
  char dir[FS_PATH_MAX];
  const char *base = fs_base(path);
  size_t len = strlen(base);
  if (len == 0 || len > NAME_MAX) return -EINVAL;
  memcpy(o->stem, base, len);
  memcpy(o->stem + len, ".", 2);
  fs_parent(path, dir);
  return watch_one(o, dir);
}

static int watch_all(opened *o, const io *io, const char *path) {
  struct stat st;
  err why = {0};
  int rc = io->lstat(io, AT_FDCWD, path, &st);
  if (rc == -ENOENT) return watch_beside(o, path);
  if (rc < 0) return rc;
  rc = watch_one(o, path);
  if (rc == 0 && S_ISDIR(st.st_mode))
    rc = fs_walk(io, path, on_entry, &(struct below){o, path}, &why);
  return rc;
}

opened *opened_begin(const io *io, const char *path) {
  opened *o = calloc(1, sizeof *o);
  if (!o) return NULL;
  o->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (o->fd >= 0 && watch_all(o, io, path) == 0 && opened_say(o) != OPENED_UNSEEN) {
    o->yes = false; /* the listing itself opens directories alone */
    return o;
  }
  opened_free(o);
  return NULL;
}

static bool is_one(const opened *o, const struct inotify_event *event) {
  if (event->mask & IN_Q_OVERFLOW) return true; /* so much was opened */
  if (!(event->mask & IN_OPEN) || event->mask & IN_ISDIR) return false;
  return !*o->stem || (event->len && strncmp(event->name, o->stem, strlen(o->stem)) == 0);
}

opened_word opened_say(opened *o) {
  _Alignas(struct inotify_event) char bytes[16384];
  ssize_t len;
  if (!o) return OPENED_UNSEEN;
  while ((len = read(o->fd, bytes, sizeof bytes)) > 0) {
    for (ssize_t at = 0; at < len;) {
      const struct inotify_event *event = (const void *)(bytes + at);
      o->yes |= is_one(o, event);
      at += (ssize_t)(sizeof *event + event->len);
    }
  }
  return o->yes ? OPENED_YES : OPENED_NEVER;
}

void opened_free(opened *o) {
  if (!o) return;
  if (o->fd >= 0) close(o->fd);
  free(o);
}
