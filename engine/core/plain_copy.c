/* plain: copies on this machine. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "core/plain.h"
#include "core/tree.h"
#include "plain_stage.h"
#include "plain_tree.h"
#include "prims/fs.h"

/* As for uploads. */
enum { TRIES = 3 };

typedef struct copying {
  const plain *p;
  const char *from;
  tree tree;
  plain_stage stage;
  pthread_mutex_t mutex;
  err first;
} copying;

static int make_dirs(const copying *c, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < c->tree.count; i++) {
    char path[FS_PATH_MAX];
    if (c->tree.files[i].type != MANIFEST_DIR) continue;
    rc = fs_join(path, c->stage.path, c->tree.files[i].name, e);
    if (rc == 0) rc = fs_mkdirs(c->stage.io, path, 0700, e);
  }
  return rc;
}

static int set_times(const io *io, const char *path, int64_t mtime_ns, err *e) {
  struct timespec when = {.tv_sec = mtime_ns / 1000000000, .tv_nsec = mtime_ns % 1000000000};
  if (when.tv_nsec < 0) when.tv_nsec += 1000000000, when.tv_sec--;
  struct timespec times[2] = {when, when};
  int rc = io->utimens(io, AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
  return rc < 0 ? err_sys(e, rc, "set the time of %s", path) : 0;
}

/* The source by its own path: it is not what is held. */
static int copy_file(const copying *c, const char *from, const char *to, err *e) {
  const io *io = c->p->io;
  int in = io->open(io, AT_FDCWD, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  if (in < 0) return err_sys(e, in, "cannot open %s", from);
  int rc = fs_copy_open(c->stage.io, in, from, to, true, c->p->cancel, c->p->done, e);
  io->close(io, in); /* nothing was written: nothing can be lost */
  return rc;
}

static int copy_one(const copying *c, const tree_file *f, err *e) {
  const io *io = c->p->io, *there = c->stage.io;
  char from[FS_PATH_MAX], to[FS_PATH_MAX];
  int rc = tree_path(&c->tree, f, from, e);
  if (rc == 0) rc = fs_join(to, c->stage.path, f->name, e);
  if (rc < 0) return rc;
  if (f->type == MANIFEST_LINK) {
    rc = there->symlink(there, f->target, AT_FDCWD, to);
    return rc < 0 ? err_sys(e, rc, "make the link %s", to) : set_times(there, to, f->mtime_ns, e);
  }
  rc = copy_file(c, from, to, e);
  if (rc == ERR_NOENT) return err_set(e, ERR_RETIRED, "%s vanished before it was copied", from);
  struct stat st;
  if (rc == 0 && (io->lstat(io, AT_FDCWD, from, &st) < 0 || st.st_ino != f->inode ||
                  (uint64_t)st.st_size != f->size || io_time_ns(st.st_mtim) != f->mtime_ns))
    rc = err_set(e, ERR_RETIRED, "%s changed while it was copied", from);
  return rc;
}

static int each(void *ctx, size_t i) {
  copying *c = ctx;
  err e = {0};
  if (c->tree.files[i].type == MANIFEST_DIR) return 0;
  int rc = copy_one(c, &c->tree.files[i], &e);
  if (rc == 0) return 0;
  pthread_mutex_lock(&c->mutex);
  if (c->first.code == 0) c->first = e;
  pthread_mutex_unlock(&c->mutex);
  return rc;
}

static int copy_files(copying *c, err *e) {
  pool *pool = c->p->pool;
  int rc = 0;
  c->first = (err){0};
  pthread_mutex_init(&c->mutex, NULL);
  if (pool)
    rc = pool_each(pool, c->tree.count, pool_workers(pool), each, c);
  else
    for (size_t i = 0; rc == 0 && i < c->tree.count; i++) rc = each(c, i);
  pthread_mutex_destroy(&c->mutex);
  if (rc < 0 && e) *e = c->first;
  return rc < 0 ? c->first.code : 0;
}

static int finish_dir(const copying *c, const char *name, mode_t mode, int64_t mtime_ns, err *e) {
  const io *io = c->stage.io;
  char path[FS_PATH_MAX];
  int rc = fs_join(path, c->stage.path, name, e);
  if (rc < 0) return rc;
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
  if (fd < 0) return err_sys(e, fd, "open %s", path);
  rc = io->chmod(io, fd, (mode & 0777) | 0700); /* or it could not be moved */
  if (rc < 0) rc = err_sys(e, rc, "set the mode of %s", path);
  io->close(io, fd);
  return rc < 0 ? rc : set_times(io, path, mtime_ns, e);
}

/* The deepest first: what is made in a directory moves its time. */
static int finish_dirs(const copying *c, err *e) {
  int rc = 0;
  for (size_t i = c->tree.count; rc == 0 && i-- > 0;) {
    const tree_file *f = &c->tree.files[i];
    if (f->type == MANIFEST_DIR) rc = finish_dir(c, f->name, f->mode, f->mtime_ns, e);
  }
  if (rc == 0) rc = finish_dir(c, "", c->tree.mode, c->tree.mtime_ns, e);
  return rc == 0 ? fs_sync_tree(c->stage.io, c->stage.path, e) : rc;
}

static int try_once(copying *c, const char *to, plain_moved *out, err *e) {
  int rc = plain_tree_scan(c->p, c->from, &c->tree, e);
  if (rc < 0) return rc;
  *out = (plain_moved){.files = c->tree.regular, .bytes = c->tree.bytes};
  atomic_store(c->p->total, out->bytes);
  atomic_store(c->p->done, 0);
  rc = plain_stage_open(&c->stage, c->p->io, to, c->p->merge, e);
  if (rc == 0) rc = make_dirs(c, e);
  if (rc == 0) rc = copy_files(c, e);
  if (rc == 0) rc = finish_dirs(c, e);
  tree_free(&c->tree);
  if (rc == 0) return plain_stage_show(&c->stage, e);
  plain_stage_drop(&c->stage, e);
  return rc;
}

int plain_copy(const plain *p, const char *from, const char *to, plain_moved *out, err *e) {
  copying c = {.p = p, .from = from};
  struct stat st;
  int rc = plain_tree_check(p, from, e);
  if (rc == 0) rc = plain_tree_apart(p, from, to, e);
  if (rc == 0 && !p->merge && p->io->lstat(p->io, AT_FDCWD, to, &st) == 0)
    rc = err_set(e, ERR_EXISTS, "%s is there already", to);
  if (rc < 0) return rc;
  rc = ERR_RETIRED;
  for (int i = 0; i < TRIES && rc == ERR_RETIRED; i++) rc = try_once(&c, to, out, e);
  return rc;
}
