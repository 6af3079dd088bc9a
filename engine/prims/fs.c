#include "fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPY_CHUNK = 8 << 20, COPY_BUFFER = 256 << 10, READ_CHUNK = 1 << 20 };

int fs_join(char *out, const char *dir, const char *name, err *e) {
  size_t len = strlen(dir);
  const char *slash = !len || !*name || dir[len - 1] == '/' ? "" : "/";
  int need = snprintf(out, FS_PATH_MAX, "%s%s%s", dir, slash, name);
  if (need >= 0 && need < FS_PATH_MAX) return 0;
  *out = 0; /* a cut path would name another file */
  return err_set(e, ERR_LIMIT, "the path %.200s.../%.200s is longer than %d bytes", dir, name,
                 FS_PATH_MAX - 1);
}

void fs_parent(const char *path, char *out) {
  size_t len = strlen(path);
  while (len > 1 && path[len - 1] == '/') len--;
  while (len > 0 && path[len - 1] != '/') len--;
  while (len > 1 && path[len - 1] == '/') len--;
  if (len == 0) {
    path = ".";
    len = 1;
  }
  if (len >= FS_PATH_MAX) len = 0; /* "" exists nowhere; a cut path might */
  memcpy(out, path, len);
  out[len] = 0;
}

const char *fs_base(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

bool fs_take_name(char *path, char name[FS_NAME_MAX]) {
  const char *at = path + strspn(path, "/");
  size_t len = strcspn(at, "/");
  if (len >= FS_NAME_MAX) return false;
  memcpy(name, at, len);
  name[len] = 0;
  at += len + strspn(at + len, "/");
  memmove(path, at, strlen(at) + 1);
  return true;
}

void fs_discard(const io *io, const char *path, err *e) {
  err why = {0};
  if (fs_remove_tree(io, path, &why) == 0 || !e) return;
  size_t len = strlen(e->text);
  snprintf(e->text + len, sizeof e->text - len, "; %s stays behind: %s", path, why.text);
}

/* Fills `out` up to its own cap and `max`; one byte more in the file is an error, not a cut. */
static int read_all(const io *io, int fd, const char *path, size_t max, size_t hint, buf *out,
                    err *e) {
  for (size_t got = 0;;) {
    size_t room = out->max - out->len < max - got ? out->max - out->len : max - got;
    size_t want = hint > got ? hint - got : 4096;
    if (want > READ_CHUNK) want = READ_CHUNK;
    if (want > room) want = room;
    char past_end, *to = want ? buf_reserve(out, want) : &past_end;
    if (!to) return err_set(e, buf_failed(out), "no memory to read %s", path);
    ssize_t n = io->read(io, fd, to, want ? want : 1);
    if (n < 0) return err_sys(e, (int)n, "cannot read %s", path);
    if (n == 0) return 0;
    if (!want) return err_set(e, ERR_LIMIT, "%s is larger than %zu bytes", path, got);
    buf_grown(out, (size_t)n);
    got += (size_t)n;
  }
}

int fs_read(const io *io, const char *path, size_t max, buf *out, err *e) {
  if (buf_failed(out)) return err_set(e, buf_failed(out), "no buffer to read %s into", path);
  size_t start = out->len;
  /* O_NONBLOCK: opening a FIFO would wait for its writer for ever. */
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
  if (fd < 0) return err_sys(e, fd, "cannot open %s", path);
  struct stat st;
  int rc = io->fstat(io, fd, &st);
  if (rc < 0)
    rc = err_sys(e, rc, "cannot look at %s", path);
  else if (!S_ISREG(st.st_mode))
    rc = err_set(e, ERR_INVAL, "%s is not a regular file", path);
  else if (st.st_size > 0 && (uint64_t)st.st_size > max)
    rc =
        err_set(e, ERR_LIMIT, "%s has %lld bytes, more than %zu", path, (long long)st.st_size, max);
  else
    rc = read_all(io, fd, path, max, (size_t)st.st_size, out, e);
  io->close(io, fd); /* nothing was written: nothing can be lost */
  if (rc < 0 && out->data) {
    out->len = start;
    out->data[start] = 0;
  }
  return rc;
}

int fs_open_regular(const io *io, const char *path) {
  struct stat st;
  /* O_NONBLOCK: opening a FIFO would wait for its writer for ever. */
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  if (fd < 0) return fd;
  int rc = io->fstat(io, fd, &st);
  if (rc == 0 && S_ISREG(st.st_mode)) return fd;
  io->close(io, fd);
  return rc < 0 ? rc : -EINVAL;
}

ssize_t fs_fill(const io *io, int fd, void *to, size_t len) {
  size_t got = 0;
  while (got < len) {
    ssize_t n = io->read(io, fd, (char *)to + got, len - got);
    if (n < 0) return n;
    if (n == 0) break;
    got += (size_t)n;
  }
  return (ssize_t)got;
}

int fs_write_all(const io *io, int fd, const void *data, size_t len, const char *path, err *e) {
  for (const char *at = data; len;) {
    ssize_t n = io->write(io, fd, at, len);
    if (n < 0) return err_sys(e, (int)n, "cannot write %s", path);
    if (n == 0) return err_set(e, ERR_IO, "cannot write %s: the kernel takes no bytes", path);
    at += n;
    len -= (size_t)n;
  }
  return 0;
}

/* Ends a file that we are making. Flush and close are looked at, since a full disk or quota may
 * show there only. After any failure, `so_far` too, the file goes away: half of it must never be
 * taken for the whole. */
static int end_new(const io *io, int fd, const char *path, bool flush, int so_far, err *e) {
  int rc = so_far, done;
  if (rc == 0 && flush && (done = io->fsync(io, fd)) < 0)
    rc = err_sys(e, done, "cannot flush %s", path);
  done = io->close(io, fd);
  if (rc == 0 && done < 0) rc = err_sys(e, done, "cannot close %s", path);
  if (rc < 0) fs_discard(io, path, e);
  return rc;
}

int fs_write_new(const io *io, const char *path, const void *data, size_t len, mode_t mode,
                 err *e) {
  int fd = io->open(io, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  if (fd < 0) return err_sys(e, fd, "cannot create %s", path);
  int rc = fs_write_all(io, fd, data, len, path, e);
  return end_new(io, fd, path, true, rc, e);
}

int fs_sync_dir(const io *io, const char *path, err *e) {
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
  if (fd < 0) return err_sys(e, fd, "cannot open the directory %s to flush it", path);
  int rc = io->fsync(io, fd);
  io->close(io, fd);
  /* EINVAL: this file system (9p, some FUSE) cannot flush a directory at all. Nothing stronger can
   * be had there, and refusing would make it useless. */
  if (rc == -EINVAL) rc = 0;
  return rc < 0 ? err_sys(e, rc, "cannot flush the directory %s", path) : 0;
}

static int sync_parent(const io *io, const char *path, err *e) {
  char dir[FS_PATH_MAX];
  fs_parent(path, dir);
  return fs_sync_dir(io, dir, e);
}

/* Makes up a name beside `path` that nobody else uses. */
static int temp_name(const io *io, const char *path, char *out, err *e) {
  char nonce[33];
  int rc = io_nonce(io, nonce);
  if (rc < 0) return err_sys(e, rc, "no random name for a file beside %s", path);
  int need = snprintf(out, FS_PATH_MAX, "%s.%s.tmp", path, nonce);
  if (need >= 0 && need < FS_PATH_MAX) return 0;
  return err_set(e, ERR_LIMIT, "the path %.400s... is too long for a temporary name", path);
}

int fs_replace(const io *io, const char *path, const void *data, size_t len, mode_t mode, err *e) {
  char temp[FS_PATH_MAX];
  int rc = temp_name(io, path, temp, e);
  if (rc == 0) rc = fs_write_new(io, temp, data, len, mode, e);
  if (rc < 0) return rc;
  rc = io->rename(io, AT_FDCWD, temp, AT_FDCWD, path, 0);
  if (rc < 0) {
    rc = err_sys(e, rc, "cannot rename %s to %s", temp, path);
    fs_discard(io, temp, e);
    return rc;
  }
  return sync_parent(io, path, e);
}

/* Tells, after a link that was refused, whether it was made all the same, and only the reply lost
 * (NFS sends a request again, and the second one finds the name of the first). `from` is ours
 * alone, so if `to` is the same file, we made it. The file must have two links: otherwise both are
 * one name, and removing `from` would remove the file. */
static bool linked_already(const io *io, const char *from, const char *to) {
  struct stat ours, theirs;
  return io->lstat(io, AT_FDCWD, from, &ours) == 0 && io->lstat(io, AT_FDCWD, to, &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino && ours.st_nlink >= 2;
}

/* Tells "no links here" from a failure. FUSE file systems answer EIO for it, FAT EPERM. */
static int link_refused(int rc, const char *from, const char *to, err *e) {
  fs_kind kind;
  bool fuse = rc == -EIO && fs_kind_of(from, &kind, NULL) == 0 && strcmp(kind.name, "fuse") == 0;
  if (!fuse && rc != -EPERM && rc != -ENOSYS && rc != -EOPNOTSUPP)
    return err_sys(e, rc, "cannot link %s to %s", from, to);
  err_sys(e, rc, "cannot link %s to %s, its file system has no hard links", from, to);
  if (e) e->code = ERR_UNSUPPORTED;
  return ERR_UNSUPPORTED;
}

int fs_link(const io *io, const char *from, const char *to, err *e) {
  if (strcmp(from, to) == 0) /* "taken" would remove the file itself */
    return err_set(e, ERR_INVAL, "%s cannot be linked to itself", from);
  int linked = io->link(io, AT_FDCWD, from, AT_FDCWD, to);
  if (linked < 0 && linked_already(io, from, to)) linked = 0;
  if (linked == -EEXIST) {
    int rc = err_sys(e, linked, "cannot create %s", to);
    fs_discard(io, from, e);
    return rc;
  }
  if (linked < 0) return link_refused(linked, from, to, e);
  int removed = io->unlink(io, AT_FDCWD, from, 0);
  if (removed < 0 && removed != -ENOENT)
    return err_sys(e, removed, "%s is published, but %s stays behind", to, from);
  return 0;
}

int fs_link_new(const io *io, const char *from, const char *to, err *e) {
  int rc = fs_link(io, from, to, e);
  return rc == 0 ? sync_parent(io, to, e) : rc;
}

static bool is_dir(const io *io, const char *path) {
  int fd = io->open(io, AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
  if (fd >= 0) io->close(io, fd);
  return fd >= 0;
}

/* Makes one directory. Returns 1 if its parent is missing. */
static int make_dir(const io *io, const char *path, mode_t mode, err *e) {
  int rc = io->mkdir(io, AT_FDCWD, path, mode);
  if (rc == -ENOENT) return 1;
  if (rc == 0) {
    rc = sync_parent(io, path, e);
    /* The directory must not stay: the next try would find it there, and nobody would ever flush
     * it. Only an empty one goes; if somebody uses it already, the error says enough. */
    if (rc < 0) io->unlink(io, AT_FDCWD, path, AT_REMOVEDIR);
    return rc;
  }
  /* An existing directory does not always answer EEXIST: a read-only or mounted parent may answer
   * EROFS or EACCES first. */
  if (is_dir(io, path)) return 0;
  if (rc == -EEXIST)
    return err_set(e, ERR_EXISTS, "cannot make the directory %s: something else is there", path);
  return err_sys(e, rc, "cannot make the directory %s", path);
}

/* Cuts the last component off; false if that leaves nothing to make. */
static bool cut_last(char *path) {
  char *slash = strrchr(path, '/');
  while (slash && slash > path && slash[-1] == '/') slash--;
  if (!slash || slash == path) return false;
  *slash = 0;
  return true;
}

int fs_mkdirs(const io *io, const char *path, mode_t mode, err *e) {
  char at[FS_PATH_MAX];
  int rc = fs_join(at, path, "", e);
  if (rc < 0) return rc;
  size_t len = strlen(at);
  while (len > 1 && at[len - 1] == '/') at[--len] = 0;
  if (len == 0) return err_set(e, ERR_INVAL, "cannot make a directory without a name");
  /* Goes from the right to the first directory that can be made, then back: the parents that exist
   * are not touched, they may not even be readable. */
  do rc = make_dir(io, at, mode, e);
  while (rc == 1 && cut_last(at));
  while (rc == 0 && strlen(at) < len) {
    at[strlen(at)] = '/';
    rc = make_dir(io, at, mode, e);
  }
  return rc == 1 ? err_sys(e, ENOENT, "cannot make the directory %s", at) : rc;
}

static int canceled(const atomic_int *cancel, const char *path, err *e) {
  return cancel && atomic_load(cancel) ? err_set(e, ERR_CANCELED, "copying %s was cancelled", path)
                                       : 0;
}

/* Copies by reading and writing, from where both descriptors stand to the end. */
static int copy_slowly(const io *io, int in, int out, const char *from, const char *to,
                       const atomic_int *cancel, _Atomic uint64_t *copied, err *e) {
  char *bytes = malloc(COPY_BUFFER);
  if (!bytes) return err_set(e, ERR_NOMEM, "no memory to copy %s", from);
  int rc = 0;
  size_t since = 0;
  while (rc == 0) {
    if (since >= COPY_CHUNK) {
      since = 0;
      rc = canceled(cancel, from, e);
      if (rc < 0) break;
    }
    ssize_t n = io->read(io, in, bytes, COPY_BUFFER);
    if (n < 0) rc = err_sys(e, (int)n, "cannot read %s", from);
    if (n <= 0) break;
    rc = fs_write_all(io, out, bytes, (size_t)n, to, e);
    since += (size_t)n;
    if (copied) atomic_fetch_add(copied, (uint64_t)n);
  }
  free(bytes);
  return rc;
}

static int copy_bytes(const io *io, int in, int out, const char *from, const char *to,
                      const atomic_int *cancel, _Atomic uint64_t *copied, err *e) {
  int rc = canceled(cancel, from, e);
  if (rc < 0) return rc;
  /* The answer of a failed clone does not matter (each file system has its own code for "no"): a
   * copy tells better. */
  if (io->clone(io, in, out) == 0) return 0;
  for (;;) {
    ssize_t n = io->copy_range(io, in, out, COPY_CHUNK);
    if (n > 0) {
      if (copied) atomic_fetch_add(copied, (uint64_t)n);
      rc = canceled(cancel, from, e);
      if (rc < 0) return rc;
      continue;
    }
    bool cannot = n == -EXDEV || n == -EINVAL || n == -ENOSYS || n == -EOPNOTSUPP || n == -EPERM;
    if (n < 0 && !cannot) return err_sys(e, (int)n, "cannot copy %s to %s", from, to);
    /* This runs at the claimed end too: some kernels return 0 at once for files that do have
     * bytes. */
    return copy_slowly(io, in, out, from, to, cancel, copied, e);
  }
}

int fs_copy_open(const io *io, int in, const char *from, const char *to, bool flush,
                 const atomic_int *cancel, _Atomic uint64_t *copied, err *e) {
  struct stat st;
  int rc = io->fstat(io, in, &st);
  if (rc < 0) return err_sys(e, rc, "cannot look at %s", from);
  if (!S_ISREG(st.st_mode)) return err_set(e, ERR_INVAL, "%s is not a regular file", from);
  int fd = io->open(io, AT_FDCWD, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return err_sys(e, fd, "cannot create %s", to);
  rc = copy_bytes(io, in, fd, from, to, cancel, copied, e);
  int set;
  if (rc == 0 && (set = io->chmod(io, fd, st.st_mode & 07777)) < 0)
    rc = err_sys(e, set, "cannot set the mode of %s", to);
  const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st.st_mtim};
  if (rc == 0 && (set = io->utimens(io, AT_FDCWD, to, times, AT_SYMLINK_NOFOLLOW)) < 0)
    rc = err_sys(e, set, "cannot set the time of %s", to);
  return end_new(io, fd, to, flush, rc, e);
}

int fs_copy_file(const io *io, const char *from, const char *to, bool flush,
                 const atomic_int *cancel, _Atomic uint64_t *copied, err *e) {
  int in = io->open(io, AT_FDCWD, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  if (in < 0) return err_sys(e, in, "cannot open %s", from);
  int rc = fs_copy_open(io, in, from, to, flush, cancel, copied, e);
  io->close(io, in); /* nothing was written: nothing can be lost */
  return rc;
}

int fs_move(const io *io, const char *from, const char *to, err *e) {
  err why = {0};
  int rc = fs_publish(io, from, to, &why);
  if (rc < 0 && why.sys != EXDEV) {
    if (e) *e = why;
    return rc;
  }
  if (rc == 0) return 0;
  char temp[FS_PATH_MAX];
  rc = temp_name(io, to, temp, e);
  if (rc == 0) rc = fs_copy_tree(io, from, temp, true, NULL, e);
  if (rc < 0) return rc;
  rc = fs_publish(io, temp, to, e);
  if (rc < 0) {
    fs_discard(io, temp, e);
    return rc;
  }
  rc = fs_remove_tree(io, from, e);
  if (rc < 0) {
    if (e) err_wrap(e, "%s is complete, but its source stays behind", to);
    return rc;
  }
  return sync_parent(io, from, e);
}
