#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* l_pid must be 0 for an OFD lock; start 0 and length 0 stand for the whole file. */
static int set_lock(int fd, short type) {
  struct flock range = {.l_type = type, .l_whence = SEEK_SET};
  int rc;
  do rc = fcntl(fd, F_OFD_SETLK, &range);
  while (rc < 0 && errno == EINTR);
  return rc < 0 ? -errno : 0;
}

static int refusal(int rc, const char *path, err *e) {
  switch (rc) {
  case -EAGAIN:
  case -EACCES: /* POSIX allows either for a lock that conflicts */
    return err_set(e, ERR_HELD, "%s is locked by another process: wait for it or stop it", path);
  case -ENOLCK:
  case -EINVAL:
  case -ENOSYS:
  case -EOPNOTSUPP:
    err_sys(e, rc, "%s cannot be locked, its file system has no locks: put it on a local disk",
            path);
    if (e) e->code = ERR_UNSUPPORTED;
    return ERR_UNSUPPORTED;
  default: return err_sys(e, rc, "cannot lock %s", path);
  }
}

static int hold(int fd, const char *path, short type, lock *out, err *e) {
  struct stat st;
  int rc = 0, locked = 0;
  out->fd = -1;
  if (fstat(fd, &st) < 0)
    rc = err_sys(e, errno, "cannot look at the lock file %s", path);
  else if (!S_ISREG(st.st_mode))
    rc = err_set(e, ERR_INVAL, "the lock file %s is not a regular file: remove it", path);
  else if ((locked = set_lock(fd, type)) < 0)
    rc = refusal(locked, path, e);
  if (rc == 0)
    out->fd = fd;
  else
    close(fd);
  return rc;
}

int lock_take(const char *path, bool exclusive, lock *out, err *e) {
  out->fd = -1;
  /* A shared lock needs a readable descriptor only, so readers without write permission work.
   * O_NONBLOCK: a FIFO that somebody put there must not make us wait for its other end. */
  int flags = (exclusive ? O_RDWR : O_RDONLY) | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  int fd;
  do fd = open(path, flags, 0600);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) return err_sys(e, errno, "cannot open the lock file %s", path);
  return hold(fd, path, exclusive ? F_WRLCK : F_RDLCK, out, e);
}

int lock_take_open(int fd, const char *path, lock *out, err *e) {
  return hold(fd, path, F_WRLCK, out, e);
}

bool lock_is_held(const char *path) {
  struct flock range = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  bool held = fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type == F_WRLCK;
  close(fd);
  return held;
}

int lock_take_dir(const char *path, lock *out, err *e) {
  out->fd = -1;
  int fd;
  do fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) return err_sys(e, errno, "cannot open the directory %s", path);
  return lock_take_open_dir(fd, path, out, e);
}

int lock_take_open_dir(int fd, const char *path, lock *out, err *e) {
  int rc;
  out->fd = -1;
  do rc = flock(fd, LOCK_EX | LOCK_NB);
  while (rc < 0 && errno == EINTR);
  if (rc == 0) {
    out->fd = fd;
    return 0;
  }
  bool held = errno == EWOULDBLOCK;
  close(fd);
  return held ? err_set(e, ERR_HELD, "%s is watched by another process: wait for it or stop it",
                        path)
              : 0;
}

void lock_drop(lock *l) {
  if (l->fd < 0) return;
  /* It is unlocked first: a child between fork and exec shares the description, and would keep the
   * lock past our close. Each of the two calls leaves the other kind of lock alone. */
  set_lock(l->fd, F_UNLCK);
  flock(l->fd, LOCK_UN);
  close(l->fd);
  l->fd = -1;
}
