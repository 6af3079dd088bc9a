#include <fcntl.h>

#include "fs_tree.h"

typedef struct copy {
  const char *to;
  const fs_copy_how *how;
  bool made; /* `to` is ours, and must go if we fail */
} copy;

static int set_mtime(const io *io, const char *path, const struct stat *st, err *e) {
  const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
  int rc = io->utimens(io, AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
  return rc < 0 ? err_sys(e, rc, "cannot set the time of %s", path) : 0;
}

static int copy_link(const io *io, const char *from, const char *to, const struct stat *st,
                     err *e) {
  char target[FS_PATH_MAX];
  ssize_t len = io->readlink(io, AT_FDCWD, from, target, sizeof target);
  if (len < 0) return err_sys(e, (int)len, "cannot read the link %s", from);
  if (len == sizeof target) return err_set(e, ERR_LIMIT, "the link %s is too long", from);
  target[len] = 0;
  int rc = io->symlink(io, target, AT_FDCWD, to);
  if (rc < 0) return err_sys(e, rc, "cannot create the link %s", to);
  rc = set_mtime(io, to, st, e);
  if (rc < 0) fs_discard(io, to, e);
  return rc;
}

static int copy_file(const io *io, const char *from, const char *to, const fs_copy_how *how,
                     err *e) {
  if (!how->follow) return fs_copy_file(io, from, to, how->flush, how->cancel, how->copied, e);
  int in = io->open(io, AT_FDCWD, from, O_RDONLY | O_NONBLOCK, 0);
  if (in < 0) return err_sys(e, in, "cannot open %s", from);
  int rc = fs_copy_open(io, in, from, to, how->flush, how->cancel, how->copied, e);
  io->close(io, in); /* nothing was written: nothing can be lost */
  return rc;
}

/* Copies any entry but a directory. */
static int copy_leaf(const io *io, const char *from, const char *to, const struct stat *st,
                     const copy *c, err *e) {
  if (S_ISREG(st->st_mode)) return copy_file(io, from, to, c->how, e);
  if (S_ISLNK(st->st_mode)) return copy_link(io, from, to, st, e);
  return err_set(e, ERR_INVAL, "%s is a device, a pipe or a socket: only files can be copied",
                 from);
}

static int copy_entry(fs_tree *t, int dir, const char *base, const fs_entry *entry, err *e) {
  (void)dir, (void)base;
  const copy *c = t->plan->ctx;
  if (c->how->leave_out && c->how->leave_out(c->how->ctx, entry->name)) return FS_SKIP;
  if (S_ISDIR(entry->st->st_mode)) return 0;
  char from[FS_PATH_MAX], to[FS_PATH_MAX];
  int rc = fs_join(from, t->plan->root, entry->name, e);
  if (rc == 0) rc = fs_join(to, c->to, entry->name, e);
  if (rc == 0) rc = copy_leaf(t->io, from, to, entry->st, c, e);
  if (rc != ERR_NOENT) return rc;
  if (e) e->code = ERR_RETIRED; /* it was listed a moment ago */
  return ERR_RETIRED;
}

static int copy_enter(fs_tree *t, const fs_level *l, err *e) {
  (void)l;
  copy *c = t->plan->ctx;
  if (c->how->cancel && atomic_load(c->how->cancel))
    return err_set(e, ERR_CANCELED, "copying %s was cancelled", t->plan->root);
  char to[FS_PATH_MAX];
  int rc = fs_join(to, c->to, t->path, e);
  if (rc < 0) return rc;
  rc = t->io->mkdir(t->io, AT_FDCWD, to, 0700);
  if (rc < 0) return err_sys(e, rc, "cannot make the directory %s", to);
  c->made = true;
  return 0;
}

/* Mode and time come last: children change the time, and need a directory that can be written. */
static int copy_leave(fs_tree *t, const fs_level *l, int dir, const char *base, err *e) {
  (void)dir, (void)base;
  const copy *c = t->plan->ctx;
  char to[FS_PATH_MAX];
  int rc = fs_join(to, c->to, t->path, e);
  if (rc < 0) return rc;
  int fd = t->io->open(t->io, AT_FDCWD, to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
  if (fd < 0) return err_sys(e, fd, "cannot open the directory %s", to);
  rc = t->io->chmod(t->io, fd, l->st.st_mode & 07777);
  t->io->close(t->io, fd);
  if (rc < 0) return err_sys(e, rc, "cannot set the mode of %s", to);
  rc = set_mtime(t->io, to, &l->st, e);
  if (rc == 0 && c->how->flush) rc = fs_sync_dir(t->io, to, e);
  return rc;
}

/* Looks at the root. */
static int look_at(const io *io, const char *path, bool follow, struct stat *st, err *e) {
  int rc = io->lstat(io, AT_FDCWD, path, st);
  if (rc == 0 && follow && S_ISLNK(st->st_mode)) {
    int fd = io->open(io, AT_FDCWD, path, O_PATH, 0);
    rc = fd < 0 ? fd : io->fstat(io, fd, st);
    if (fd >= 0) io->close(io, fd);
  }
  return rc < 0 ? err_sys(e, rc, "cannot copy %s", path) : 0;
}

int fs_copy_tree_as(const io *io, const char *from, const char *to, const fs_copy_how *how,
                    err *e) {
  struct stat st;
  int rc = look_at(io, from, how->follow, &st, e);
  if (rc < 0) return rc;
  copy c = {.to = to, .how = how};
  if (!S_ISDIR(st.st_mode)) return copy_leaf(io, from, to, &st, &c, e);
  rc = fs_tree_walk(&(fs_plan){.io = io,
                               .root = from,
                               .ctx = &c,
                               .strict = true,
                               .follow = how->follow,
                               .entry = copy_entry,
                               .enter = copy_enter,
                               .leave = copy_leave},
                    e);
  if (rc < 0 && c.made) fs_discard(io, to, e);
  return rc;
}

int fs_copy_tree(const io *io, const char *from, const char *to, bool flush,
                 const atomic_int *cancel, err *e) {
  return fs_copy_tree_as(io, from, to, &(fs_copy_how){.flush = flush, .cancel = cancel}, e);
}
