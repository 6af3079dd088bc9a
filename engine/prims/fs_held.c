#include "fs_held.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs.h"

typedef struct held_dir {
  char path[FS_PATH_MAX];
  int fd; /* -1: opened for each call */
  /* The directory that root last found here on a way without links of others; only kept while `fd`
   * is -1. Guarded by the handle's mutex. */
  dev_t dev;
  ino_t ino; /* 0: nothing yet */
} held_dir;

struct fs_held {
  io io; /* the inner one's, but for the calls below; its ctx is the inner one's */
  const io *inner;
  held_dir dirs[FS_HELD_MAX];
  int count;
  pthread_mutex_t guard;
};

static fs_held *of(const io *io) {
  return (fs_held *)io;
}

/* ---- the way to a directory ---- */

/* The place where a walk stands: a directory, and the rest of the path. */
typedef struct way {
  const io *io;
  const char *path;
  int fd, links;
  char rest[FS_PATH_MAX];
} way;

static int start(way *w, const char *text) {
  if (w->fd >= 0 && *text != '/') return 0;
  if (w->fd >= 0) w->io->close(w->io, w->fd);
  w->fd = w->io->open(w->io, AT_FDCWD, *text == '/' ? "/" : ".", O_PATH | O_DIRECTORY, 0);
  return w->fd < 0 ? w->fd : 0;
}

/* Follows a link: its target takes the link's place at the head of the rest. */
static int follow(way *w, int link, err *e) {
  enum { LINKS_MAX = 40 };
  char target[FS_PATH_MAX], rest[FS_PATH_MAX];
  ssize_t len = w->io->readlink(w->io, link, "", target, sizeof target - 1);
  if (len < 0) return err_sys(e, (int)len, "cannot read a link on the way to %s", w->path);
  target[len] = 0;
  if (++w->links > LINKS_MAX) return err_sys(e, -ELOOP, "cannot open %s", w->path);
  int rc = fs_join(rest, target, w->rest, e);
  if (rc < 0) return rc;
  memcpy(w->rest, rest, strlen(rest) + 1);
  rc = start(w, rest);
  return rc < 0 ? err_sys(e, rc, "cannot open %s", w->path) : 0;
}

static int foreign_link(const way *w, const char *name, const struct stat *st, err *e) {
  return err_set(
      e, ERR_ACCESS,
      "%s: on the way to it \"%s\" is a link that user %u made, and root follows no link "
      "of others: name the directory that it leads to, or work as that user",
      w->path, name, (unsigned)st->st_uid);
}

/* True if the link's owner cannot lead us where he may not write himself. */
static bool is_harmless(const way *w, const struct stat *link) {
  return link->st_uid == geteuid() || fs_is_outsider(w->io, link->st_uid);
}

/* Takes the next component. */
static int step(way *w, err *e) {
  char name[FS_NAME_MAX];
  struct stat st;
  if (!fs_take_name(w->rest, name)) return err_sys(e, -ENAMETOOLONG, "cannot open %s", w->path);
  if (!*name || strcmp(name, ".") == 0) return 0;
  int fd = w->io->open(w->io, w->fd, name, O_PATH | O_NOFOLLOW, 0);
  if (fd < 0) return err_sys(e, fd, "cannot open %s", w->path);
  int rc = w->io->fstat(w->io, fd, &st);
  if (rc < 0) rc = err_sys(e, rc, "cannot look at %s", w->path);
  if (rc == 0 && S_ISLNK(st.st_mode)) {
    rc = is_harmless(w, &st) ? follow(w, fd, e) : foreign_link(w, name, &st, e);
  } else if (rc == 0) {
    int before = w->fd;
    w->fd = fd;
    fd = before;
  }
  w->io->close(w->io, fd);
  return rc;
}

/* Returns the descriptor. Only root is in danger: it may write where the owner of a link may
 * not. */
static int open_way(const io *io, const char *path, err *e) {
  way w = {.io = io, .path = path, .fd = -1};
  const int flags = O_PATH | O_DIRECTORY;
  if (geteuid() != 0) {
    int fd = io->open(io, AT_FDCWD, path, flags, 0);
    return fd < 0 ? err_sys(e, fd, "cannot open %s", path) : fd;
  }
  int rc = fs_join(w.rest, path, "", e);
  if (rc < 0) return rc;
  rc = start(&w, path);
  if (rc < 0) return err_sys(e, rc, "cannot open %s", path);
  while (rc == 0 && *w.rest) rc = step(&w, e);
  int fd = rc == 0 ? io->open(io, w.fd, ".", flags, 0) : rc;
  if (rc == 0 && fd < 0) fd = err_sys(e, fd, "cannot open %s", path);
  if (w.fd >= 0) io->close(io, w.fd);
  return fd;
}

int fs_resolve_way(const io *io, const char *path, char out[FS_PATH_MAX], err *e) {
  char link[64];
  int fd = open_way(io, path, e);
  if (fd < 0) return fd;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t len = io->readlink(io, AT_FDCWD, link, out, FS_PATH_MAX - 1);
  io->close(io, fd);
  if (len < 0) return err_sys(e, (int)len, "cannot resolve %s", path);
  out[len] = 0;
  return 0;
}

int fs_check_way(const io *io, const char *path, err *e) {
  char at[FS_PATH_MAX], up[FS_PATH_MAX];
  int rc = fs_join(at, path, "", e);
  if (rc < 0 || geteuid() != 0) return rc;
  for (;;) {
    err why = {0};
    int fd = open_way(io, at, &why);
    if (fd >= 0) io->close(io, fd);
    if (fd == ERR_ACCESS && e) *e = why;
    if (fd != ERR_NOENT) return fd == ERR_ACCESS ? fd : 0; /* whoever opens it will be told */
    fs_parent(at, up);
    if (strcmp(up, at) == 0) return 0;
    memcpy(at, up, strlen(up) + 1);
  }
}

/* ---- what is held ---- */

/* Returns the rest of the path below a directory; NULL if the path is not at or below it. */
static const char *behind(const held_dir *d, const char *path) {
  size_t len = strlen(d->path);
  if (strncmp(path, d->path, len) != 0) return NULL;
  if (path[len] == 0) return path + len;
  if (path[len] != '/' && d->path[len - 1] != '/') return NULL;
  path += len;
  path += strspn(path, "/");
  return strcmp(path, ".") == 0 ? path + 1 : path;
}

/* Finds the innermost directory that the path is below, or at if `itself`. */
static held_dir *find(fs_held *h, const char *path, bool itself, const char **rest) {
  held_dir *best = NULL;
  for (int i = 0; i < h->count; i++) {
    const char *left = behind(&h->dirs[i], path);
    if (!left || (!*left && !itself)) continue;
    if (best && strlen(best->path) > strlen(h->dirs[i].path)) continue;
    best = &h->dirs[i];
    *rest = left;
  }
  return best;
}

/* A name in an open directory. */
typedef struct spot {
  const io *io;
  int fd, close; /* close: the descriptor to close, or -1 */
  const char *name;
} spot;

static bool is_known(fs_held *h, const held_dir *d, const struct stat *st) {
  pthread_mutex_lock(&h->guard);
  bool known = d->ino == st->st_ino && d->dev == st->st_dev;
  pthread_mutex_unlock(&h->guard);
  return known;
}

static void know(fs_held *h, held_dir *d, const struct stat *st) {
  pthread_mutex_lock(&h->guard);
  d->dev = st->st_dev;
  d->ino = st->st_ino;
  pthread_mutex_unlock(&h->guard);
}

static int errno_of(const err *why) {
  return why->sys ? -why->sys : why->code == ERR_ACCESS ? -EACCES : -EIO;
}

/* Checks for root that a directory which it opened by name is the one that the name leads to
 * without links of others. */
static int check_named(fs_held *h, held_dir *d, int fd) {
  const io *io = h->inner;
  struct stat st, way;
  err why = {0};
  int rc = io->fstat(io, fd, &st);
  if (rc < 0 || is_known(h, d, &st)) return rc;
  int there = open_way(io, d->path, &why);
  if (there < 0) return errno_of(&why);
  rc = io->fstat(io, there, &way);
  io->close(io, there);
  if (rc == 0 && (st.st_dev != way.st_dev || st.st_ino != way.st_ino)) rc = -EACCES;
  if (rc == 0) know(h, d, &st);
  return rc;
}

/* Opens a directory that is opened for each call. Root checks the way to it, but only once while
 * the path leads to the same directory: the way may be long. */
static int open_named(fs_held *h, held_dir *d, const char *path, int flags) {
  int fd = h->inner->open(h->inner, AT_FDCWD, path, flags, 0);
  if (fd < 0 || geteuid() != 0) return fd;
  int rc = check_named(h, d, fd);
  if (rc < 0) h->inner->close(h->inner, fd);
  return rc < 0 ? rc : fd;
}

static int root_of(fs_held *h, held_dir *d, spot *at) {
  at->fd = d->fd;
  if (d->fd >= 0) return 0;
  at->fd = at->close = open_named(h, d, d->path, O_PATH | O_DIRECTORY);
  return at->fd < 0 ? at->fd : 0;
}

static bool goes_up(const char *path) {
  for (const char *at = path; *at; at += strspn(at, "/")) {
    size_t len = strcspn(at, "/");
    if (len == 2 && memcmp(at, "..", 2) == 0) return true;
    at += len;
  }
  return false;
}

static void leave(const spot *at) {
  if (at->close >= 0) at->io->close(at->io, at->close);
}

/* Opens the directory in which the last component of `path` is. `itself`: a held directory is "."
 * in itself, not a name in the one above it. */
static int enter(fs_held *h, int dirfd, const char *path, bool itself, spot *at) {
  char parent[FS_PATH_MAX];
  const char *rest;
  *at = (spot){.io = h->inner, .fd = dirfd, .close = -1, .name = path};
  if (dirfd != AT_FDCWD && *path != '/') return 0;
  held_dir *d = find(h, path, itself, &rest);
  if (!d) return 0;
  if (goes_up(rest)) return -EXDEV;
  int rc = root_of(h, d, at);
  if (rc < 0) return rc;
  at->name = *rest ? fs_base(rest) : ".";
  if (!*rest || at->name == rest) return 0;
  fs_parent(rest, parent);
  int fd = fs_open_beneath(h->inner, at->fd, parent, O_PATH | O_DIRECTORY, 0);
  leave(at);
  at->fd = at->close = fd;
  return fd < 0 ? fd : 0;
}

/* ---- the calls ---- */

static int held_open(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  fs_held *h = of(io);
  const char *rest;
  spot at = {.io = h->inner, .close = -1};
  held_dir *d = dirfd == AT_FDCWD || *path == '/' ? find(h, path, true, &rest) : NULL;
  if (!d) return h->inner->open(h->inner, dirfd, path, flags, mode);
  if (goes_up(rest)) return -EXDEV;
  if (!*rest && d->fd < 0) return open_named(h, d, path, flags & ~O_CREAT);
  int rc = root_of(h, d, &at);
  if (rc == 0 && *rest)
    rc = fs_open_beneath(h->inner, at.fd, rest, flags, mode);
  else if (rc == 0)
    rc = h->inner->open(h->inner, at.fd, ".", flags & ~O_CREAT, mode);
  leave(&at);
  return rc;
}

static int held_lstat(const io *io, int dirfd, const char *path, struct stat *out) {
  spot at;
  int rc = enter(of(io), dirfd, path, true, &at);
  if (rc == 0) rc = at.io->lstat(at.io, at.fd, at.name, out);
  leave(&at);
  return rc;
}

/* Makes a directory that is held itself, or stands above a held one. The way to it is checked as
 * when it is opened. */
static int mkdir_outside(const fs_held *h, const char *path, mode_t mode) {
  char parent[FS_PATH_MAX];
  err why = {0};
  fs_parent(path, parent);
  int fd = open_way(h->inner, parent, &why);
  if (fd < 0) return errno_of(&why);
  int rc = h->inner->mkdir(h->inner, fd, fs_base(path), mode);
  h->inner->close(h->inner, fd);
  return rc;
}

static int held_mkdir(const io *io, int dirfd, const char *path, mode_t mode) {
  const char *rest;
  spot at;
  if (dirfd == AT_FDCWD && geteuid() == 0 && !find(of(io), path, false, &rest))
    return mkdir_outside(of(io), path, mode);
  int rc = enter(of(io), dirfd, path, false, &at);
  if (rc == 0) rc = at.io->mkdir(at.io, at.fd, at.name, mode);
  leave(&at);
  return rc;
}

static int held_rename(const io *io, int fromdir, const char *from, int todir, const char *to,
                       unsigned flags) {
  spot a, b = {.close = -1};
  int rc = enter(of(io), fromdir, from, false, &a);
  if (rc == 0) rc = enter(of(io), todir, to, false, &b);
  if (rc == 0) rc = a.io->rename(a.io, a.fd, a.name, b.fd, b.name, flags);
  leave(&a);
  leave(&b);
  return rc;
}

static int held_link(const io *io, int fromdir, const char *from, int todir, const char *to) {
  spot a, b = {.close = -1};
  int rc = enter(of(io), fromdir, from, false, &a);
  if (rc == 0) rc = enter(of(io), todir, to, false, &b);
  if (rc == 0) rc = a.io->link(a.io, a.fd, a.name, b.fd, b.name);
  leave(&a);
  leave(&b);
  return rc;
}

static int held_unlink(const io *io, int dirfd, const char *path, int flags) {
  spot at;
  int rc = enter(of(io), dirfd, path, false, &at);
  if (rc == 0) rc = at.io->unlink(at.io, at.fd, at.name, flags);
  leave(&at);
  return rc;
}

static int held_symlink(const io *io, const char *target, int dirfd, const char *path) {
  spot at;
  int rc = enter(of(io), dirfd, path, false, &at);
  if (rc == 0) rc = at.io->symlink(at.io, target, at.fd, at.name);
  leave(&at);
  return rc;
}

static ssize_t held_readlink(const io *io, int dirfd, const char *path, char *to, size_t len) {
  spot at;
  ssize_t rc = enter(of(io), dirfd, path, false, &at);
  if (rc == 0) rc = at.io->readlink(at.io, at.fd, at.name, to, len);
  leave(&at);
  return rc;
}

/* Sets a link's own times, never those of the file that it leads to. */
static int held_utimens(const io *io, int dirfd, const char *path, const struct timespec times[2],
                        int flags) {
  spot at;
  const char *rest;
  bool ours = (dirfd == AT_FDCWD || *path == '/') && find(of(io), path, true, &rest);
  int rc = enter(of(io), dirfd, path, true, &at);
  if (rc == 0)
    rc = at.io->utimens(at.io, at.fd, at.name, times, ours ? flags | AT_SYMLINK_NOFOLLOW : flags);
  leave(&at);
  return rc;
}

/* ---- the handle ---- */

int fs_held_new(const io *inner, fs_held **out, err *e) {
  fs_held *h = *out = calloc(1, sizeof *h);
  if (!h) return err_set(e, ERR_NOMEM, "no memory to hold directories");
  h->inner = inner;
  pthread_mutex_init(&h->guard, NULL);
  h->io = *inner; /* what is done to a descriptor is the inner one's */
  h->io.open = held_open;
  h->io.lstat = held_lstat;
  h->io.mkdir = held_mkdir;
  h->io.rename = held_rename;
  h->io.link = held_link;
  h->io.unlink = held_unlink;
  h->io.symlink = held_symlink;
  h->io.readlink = held_readlink;
  h->io.utimens = held_utimens;
  return 0;
}

void fs_held_free(fs_held *h) {
  if (!h) return;
  for (int i = 0; i < h->count; i++)
    if (h->dirs[i].fd >= 0) h->inner->close(h->inner, h->dirs[i].fd);
  pthread_mutex_destroy(&h->guard);
  free(h);
}

const io *fs_held_io(const fs_held *h) {
  return &h->io;
}

static int hold(fs_held *h, const char *path, int fd, err *e) {
  int rc = h->count < FS_HELD_MAX
               ? 0
               : err_set(e, ERR_LIMIT, "more than %d directories are held", FS_HELD_MAX);
  held_dir *d = &h->dirs[h->count];
  if (rc == 0) rc = fs_join(d->path, path, "", e);
  if (rc < 0) {
    if (fd >= 0) h->inner->close(h->inner, fd);
    return rc;
  }
  for (size_t len = strlen(d->path); len > 1 && d->path[len - 1] == '/';) d->path[--len] = 0;
  d->fd = fd;
  d->ino = 0;
  h->count++;
  return 0;
}

int fs_hold(fs_held *h, const char *path, err *e) {
  int fd = open_way(h->inner, path, e);
  return fd < 0 ? fd : hold(h, path, fd, e);
}

void fs_let_go(fs_held *h, const char *path) {
  for (int i = h->count; i-- > 0;) {
    if (strcmp(h->dirs[i].path, path) != 0) continue;
    if (h->dirs[i].fd >= 0) h->inner->close(h->inner, h->dirs[i].fd);
    h->dirs[i] = h->dirs[--h->count];
    return;
  }
}

int fs_hold_by_name(fs_held *h, const char *path, err *e) {
  return hold(h, path, -1, e);
}

static int seen(void *ctx, const fs_entry *entry, err *e) {
  (void)entry;
  return err_set(e, ERR_ACCESS,
                 "%s is not the directory that was made: somebody else has put it "
                 "there",
                 (const char *)ctx);
}

/* Between the mkdir and the open the name may be given to something else by the owner of the parent
 * directory. If it is ours, closed and empty, it is the directory that we made, or as good. Where
 * the file system keeps no owners or modes, its answer about another file that we make has to do as
 * the measure. */
static int check_new(const fs_held *h, int fd, const char *path, err *e) {
  struct stat st, made;
  int rc = h->inner->fstat(h->inner, fd, &st);
  if (rc < 0) return err_sys(e, rc, "cannot look at %s", path);
  if (st.st_uid == geteuid() && (st.st_mode & 077) == 0) return 0;
  bool is_ours = fs_probe_owner(h->inner, fd, "", &made, NULL) == 0 && made.st_uid == st.st_uid &&
                 ((st.st_mode & 077) == 0 || (made.st_mode & 077) != 0);
  return is_ours ? 0 : seen((void *)path, NULL, e);
}

static int hold_made(fs_held *h, const char *path, err *e) {
  int rc, fd = h->io.open(&h->io, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
  if (fd < 0) return err_sys(e, fd, "cannot open %s", path);
  rc = check_new(h, fd, path, e);
  if (rc < 0) {
    h->inner->close(h->inner, fd);
    return rc;
  }
  rc = hold(h, path, fd, e);
  /* The listing goes through the held descriptor: so it is that very directory which is empty. */
  if (rc == 0 && (rc = fs_list(&h->io, path, seen, (void *)path, e)) < 0) fs_let_go(h, path);
  return rc;
}

int fs_hold_new(fs_held *h, const char *path, err *e) {
  int rc = h->io.mkdir(&h->io, AT_FDCWD, path, 0700);
  if (rc < 0) return err_sys(e, rc, "cannot make the directory %s", path);
  rc = hold_made(h, path, e);
  if (rc < 0) h->io.unlink(&h->io, AT_FDCWD, path, AT_REMOVEDIR); /* only an empty one goes */
  return rc;
}
