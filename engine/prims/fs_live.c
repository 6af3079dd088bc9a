#include "fs_live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* The grain of a file system that keeps whole seconds only, and that of the kernel's ticks. */
static const int64_t GRAIN_COARSE = 2000000000, GRAIN_FINE = 20000000;
enum { CHUNK = 8 << 20, BUFFER = 256 << 10 };

static bool is_young(const io *io, const struct stat *st) {
  int64_t mtime = io_time_ns(st->st_mtim), ctime = io_time_ns(st->st_ctim);
  bool whole = st->st_mtim.tv_nsec == 0 && st->st_ctim.tv_nsec == 0;
  /* A time in the future is young for as long as it lies there. */
  int64_t until = io->now(io, IO_WALL) - (whole ? GRAIN_COARSE : GRAIN_FINE);
  return (mtime > ctime ? mtime : ctime) > until;
}

int fs_live_look(const io *io, int fd, const char *path, struct stat *st, bool *young, err *e) {
  int rc = io->fstat(io, fd, st);
  if (rc == -ESTALE)
    rc = err_set(e, ERR_RETIRED, "%s vanished before it was read", path);
  else if (rc < 0)
    rc = err_sys(e, rc, "look at %s", path);
  else if (!S_ISREG(st->st_mode))
    rc = err_set(e, ERR_RETIRED, "%s is no file any more", path);
  if (rc < 0) {
    io->close(io, fd); /* only read */
    return rc;
  }
  *young = is_young(io, st);
  return fd;
}

int fs_live_open(const io *io, const char *path, struct stat *st, bool *young, err *e) {
  /* O_NONBLOCK: a pipe that has taken the file's place would wait for its writer for ever. A socket
   * answers ENXIO. */
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  bool gone = fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -ESTALE || fd == -ENXIO;
  if (gone) return err_set(e, ERR_RETIRED, "%s vanished before it was read", path);
  if (fd < 0) return err_sys(e, fd, "open %s", path);
  return fs_live_look(io, fd, path, st, young, e);
}

int fs_live_changed(const io *io, int fd, const struct stat *before, const char *path, err *e) {
  struct stat now;
  int rc = io->fstat(io, fd, &now);
  if (rc == -ESTALE) return err_set(e, ERR_RETIRED, "%s vanished while it was read", path);
  if (rc < 0) return err_sys(e, rc, "look at %s", path);
  if (now.st_size < before->st_size)
    return err_set(e, ERR_RETIRED, "%s shrank while it was read", path);
  return now.st_size != before->st_size || io_time_ns(now.st_mtim) != io_time_ns(before->st_mtim) ||
         io_time_ns(now.st_ctim) != io_time_ns(before->st_ctim);
}

ssize_t fs_live_read(const io *io, int fd, void *to, size_t len, uint64_t at) {
  size_t got = 0;
  while (got < len) {
    ssize_t n = io->pread(io, fd, (char *)to + got, len - got, (off_t)(at + got));
    if (n < 0) return n;
    if (n == 0) break;
    got += (size_t)n;
  }
  return (ssize_t)got;
}

/* ---- the copy ---- */

typedef struct copying {
  const io *io;
  int in, out;
  const char *from, *to;
  uint64_t size, gone; /* `gone` over of that, as *copied knows */
  const fs_copy_how *how;
  char *bytes; /* two buffers */
} copying;

static int canceled(const copying *c, err *e) {
  const atomic_int *cancel = c->how->cancel;
  return cancel && atomic_load(cancel)
             ? err_set(e, ERR_CANCELED, "copying %s was cancelled", c->from)
             : 0;
}

/* Returns how many bytes went over, at most `most`; 0: the system cannot do it for these files. */
static ssize_t copy_range(const copying *c, size_t most, err *e) {
  ssize_t n = c->io->copy_range(c->io, c->in, c->out, most);
  bool cannot = n == -EXDEV || n == -EINVAL || n == -ENOSYS || n == -EOPNOTSUPP || n == -EPERM;
  if (n < 0 && !cannot) return err_sys(e, (int)n, "cannot copy %s to %s", c->from, c->to);
  return n < 0 ? 0 : n;
}

static ssize_t copy_some(const copying *c, size_t most, err *e) {
  ssize_t n = c->io->read(c->io, c->in, c->bytes, most < BUFFER ? most : BUFFER);
  if (n < 0) return err_sys(e, (int)n, "cannot read %s", c->from);
  if (n == 0) return err_set(e, ERR_RETIRED, "%s shrank while it was copied", c->from);
  int rc = fs_write_all(c->io, c->out, c->bytes, (size_t)n, c->to, e);
  return rc < 0 ? rc : n;
}

static int copy_head(copying *c, err *e) {
  bool by_range = true;
  while (c->gone < c->size) {
    uint64_t left = c->size - c->gone;
    size_t most = left < CHUNK ? (size_t)left : CHUNK;
    int rc = canceled(c, e);
    if (rc < 0) return rc;
    ssize_t n = by_range ? copy_range(c, most, e) : copy_some(c, most, e);
    if (n < 0) return (int)n;
    if (n == 0) by_range = false; /* some kernels say so at once for files that do have bytes */
    c->gone += (uint64_t)n;
    if (c->how->copied) atomic_fetch_add(c->how->copied, (uint64_t)n);
  }
  return 0;
}

static int compare_head(const copying *c, err *e) {
  for (uint64_t at = 0; at < c->size;) {
    size_t want = c->size - at < BUFFER ? (size_t)(c->size - at) : BUFFER;
    int rc = canceled(c, e);
    if (rc < 0) return rc;
    ssize_t a = fs_live_read(c->io, c->in, c->bytes, want, at);
    ssize_t b = a < 0 ? a : fs_live_read(c->io, c->out, c->bytes + BUFFER, want, at);
    if (b < 0) return err_sys(e, (int)b, "cannot compare %s with its copy", c->from);
    if ((size_t)a < want || a != b || memcmp(c->bytes, c->bytes + BUFFER, want) != 0)
      return err_set(e, ERR_RETIRED, "%s was rewritten while it was copied", c->from);
    at += want;
  }
  return 0;
}

static int copy_all(copying *c, const struct stat *st, bool young, err *e) {
  const io *io = c->io;
  int rc = copy_head(c, e);
  int changed = rc == 0 ? fs_live_changed(io, c->in, st, c->from, e) : rc;
  if (changed < 0) return changed;
  if (changed || young) rc = compare_head(c, e);
  int set;
  if (rc == 0 && (set = io->chmod(io, c->out, st->st_mode & 07777)) < 0)
    rc = err_sys(e, set, "cannot set the mode of %s", c->to);
  const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
  if (rc == 0 && (set = io->utimens(io, AT_FDCWD, c->to, times, AT_SYMLINK_NOFOLLOW)) < 0)
    rc = err_sys(e, set, "cannot set the time of %s", c->to);
  if (rc == 0 && c->how->flush && (set = io->fsync(io, c->out)) < 0)
    rc = err_sys(e, set, "cannot flush %s", c->to);
  return rc;
}

static int copy_to_new(copying *c, const struct stat *st, bool young, err *e) {
  const io *io = c->io;
  c->out = io->open(io, AT_FDCWD, c->to, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (c->out < 0) return err_sys(e, c->out, "cannot create %s", c->to);
  int rc = copy_all(c, st, young, e), closed = io->close(io, c->out);
  if (rc == 0 && closed < 0) rc = err_sys(e, closed, "cannot close %s", c->to);
  if (rc == 0) return 0;
  if (c->how->copied) atomic_fetch_sub(c->how->copied, c->gone);
  fs_discard(io, c->to, e);
  return rc;
}

int fs_live_copy(const io *io, int in, const struct stat *st, bool young, const char *from,
                 const char *to, const fs_copy_how *how, err *e) {
  copying c = {
      .io = io, .in = in, .from = from, .to = to, .size = (uint64_t)st->st_size, .how = how};
  c.bytes = malloc((size_t)2 * BUFFER);
  if (!c.bytes) return err_set(e, ERR_NOMEM, "no memory to copy %s", from);
  int rc = copy_to_new(&c, st, young, e);
  free(c.bytes);
  return rc;
}
