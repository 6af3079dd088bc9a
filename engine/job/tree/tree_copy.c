/* tree: copies on this machine. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "job/tree/tree.h"
#include "job/move/unit_files.h"
#include "job/move/unit_kept.h"
#include "job/move/unit_links.h"
#include "tree_stage.h"
#include "tree_local.h"
#include "prims/fs.h"
#include "prims/fs_live.h"

/* A file that was rewritten while it was copied, or that vanished, is tried as often as in an
 * upload: it alone, for the copies of the others stay. */
enum { TRIES = 3 };

typedef struct copying {
  const tree_job *p;
  const char *from;
  unit_files tree, before; /* `before`: that of the try before */
  bool *copied, *was;      /* of each file of `tree`, of `before`: whether it is in the stage */
  tree_stage stage;
  tree_moved *out;
  pthread_mutex_t mutex;
  err first;
} copying;

static bool is_in_stage(const copying *c, const unit_file *now) {
  const unit_file *old = unit_files_find(&c->before, now->name);
  if (!old || old->type != now->type || !c->was[old - c->before.files]) return false;
  return now->type != MANIFEST_LINK || strcmp(old->target, now->target) == 0;
}

/* Finds what the try before has copied, and removes what must not stay of it: deepest first. */
static int keep_copied(copying *c, err *e) {
  int rc = 0;
  for (size_t i = c->before.count; rc == 0 && i-- > 0;) {
    const unit_file *old = &c->before.files[i], *now = unit_files_find(&c->tree, old->name);
    char path[FS_PATH_MAX];
    if (!c->was[i]) continue;
    if (now && is_in_stage(c, now)) {
      c->copied[now - c->tree.files] = true;
      continue;
    }
    rc = fs_join(path, c->stage.path, old->name, e);
    int gone = rc == 0 ? c->stage.io->unlink(c->stage.io, AT_FDCWD, path,
                                             old->type == MANIFEST_DIR ? AT_REMOVEDIR : 0)
                       : 0;
    if (gone < 0) rc = err_sys(e, gone, "remove %s again", path);
  }
  return rc;
}

static int make_dirs(const copying *c, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < c->tree.count; i++) {
    char path[FS_PATH_MAX];
    if (c->tree.files[i].type != MANIFEST_DIR) continue;
    c->copied[i] = true;
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

/* Copies a file by the source's own path: the source is not held. */
static int copy_file(const copying *c, const unit_file *f, const char *from, const char *to,
                     err *e) {
  const io *io = c->p->io;
  const fs_copy_how how = {.flush = true, .cancel = c->p->cancel, .copied = c->p->done};
  struct stat st;
  bool young;
  int in = unit_files_open(io, f, from, e);
  if (in >= 0) in = fs_live_look(io, in, from, &st, &young, e);
  if (in < 0) return in;
  atomic_fetch_add(c->p->total, (uint64_t)st.st_size - f->size);
  int rc = fs_live_copy(c->stage.io, in, &st, young, from, to, &how, e);
  io->close(io, in); /* nothing was written: nothing can be lost */
  return rc;
}

static int copy_one(const copying *c, const unit_file *f, err *e) {
  const io *there = c->stage.io;
  char from[FS_PATH_MAX], to[FS_PATH_MAX];
  int rc = unit_files_path(&c->tree, f, from, e);
  if (rc == 0) rc = fs_join(to, c->stage.path, f->name, e);
  if (rc < 0 || f->type == MANIFEST_FILE) return rc < 0 ? rc : copy_file(c, f, from, to, e);
  rc = there->symlink(there, f->target, AT_FDCWD, to);
  return rc < 0 ? err_sys(e, rc, "make the link %s", to) : set_times(there, to, f->mtime_ns, e);
}

static int each(void *ctx, size_t i) {
  copying *c = ctx;
  err e = {0};
  if (c->copied[i]) return 0;
  int rc = copy_one(c, &c->tree.files[i], &e);
  c->copied[i] = rc == 0;
  if (rc == 0) return 0;
  pthread_mutex_lock(&c->mutex);
  if (c->first.code == 0) c->first = e;
  pthread_mutex_unlock(&c->mutex);
  return rc == ERR_RETIRED ? 0 : rc; /* the others are copied all the same */
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
  if (c->first.code < 0 && e) *e = c->first;
  return rc < 0 || c->first.code < 0 ? c->first.code : 0;
}

static int finish_dir(const copying *c, const char *name, mode_t mode, int64_t mtime_ns, err *e) {
  const io *io = c->stage.io;
  char path[FS_PATH_MAX];
  int rc = fs_join(path, c->stage.path, name, e);
  if (rc < 0) return rc;
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
  if (fd < 0) return err_sys(e, fd, "open %s", path);
  rc = io->chmod(io, fd, (mode & 0777) | 0700); /* otherwise it could not be moved */
  if (rc < 0) rc = err_sys(e, rc, "set the mode of %s", path);
  io->close(io, fd);
  return rc < 0 ? rc : set_times(io, path, mtime_ns, e);
}

/* Goes deepest first: a file that is made in a directory moves its time. */
static int finish_dirs(const copying *c, err *e) {
  int rc = 0;
  for (size_t i = c->tree.count; rc == 0 && i-- > 0;) {
    const unit_file *f = &c->tree.files[i];
    if (f->type == MANIFEST_DIR) rc = finish_dir(c, f->name, f->mode, f->mtime_ns, e);
  }
  if (rc == 0) rc = finish_dir(c, "", c->tree.mode, c->tree.mtime_ns, e);
  return rc == 0 ? fs_sync_tree(c->stage.io, c->stage.path, e) : rc;
}

static uint64_t bytes_left(const copying *c) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < c->tree.count; i++)
    if (c->copied && !c->copied[i]) bytes += c->tree.files[i].size;
  return bytes;
}

static int try_once(copying *c, err *e) {
  int rc = tree_local_scan(c->p, c->from, &c->tree, e);
  if (rc < 0) return rc;
  c->out->files = c->tree.regular;
  c->copied = calloc(c->tree.count + 1, sizeof *c->copied);
  if (!c->copied) rc = err_set(e, ERR_NOMEM, "copy %s: out of memory", c->from);
  if (rc == 0) rc = keep_copied(c, e);
  if (rc == 0) rc = make_dirs(c, e);
  atomic_store(c->p->total, atomic_load(c->p->done) + bytes_left(c));
  if (rc == 0) rc = copy_files(c, e);
  if (rc == 0) rc = finish_dirs(c, e);
  if (rc == 0) {
    unit_links_tell(&c->tree, c->p->log, c->from);
    unit_kept_tell(unit_kept_look(c->p->io, &c->tree), c->p->log, c->from);
  }
  unit_files_free(&c->before);
  free(c->was);
  c->before = c->tree;
  c->was = c->copied;
  c->tree = (unit_files){0};
  c->copied = NULL;
  return rc;
}

static int copy_tries(copying *c, const char *to, err *e) {
  atomic_store(c->p->done, 0);
  int rc = tree_stage_open(&c->stage, c->p->io, to, c->p->merge, e);
  if (rc < 0) return rc;
  rc = ERR_RETIRED;
  for (int i = 0; i < TRIES && rc == ERR_RETIRED; i++) rc = try_once(c, e);
  unit_files_free(&c->before);
  free(c->was);
  c->out->bytes = atomic_load(c->p->done);
  if (rc == 0) return tree_stage_show(&c->stage, e);
  tree_stage_drop(&c->stage, e);
  return rc;
}

int tree_copy(const tree_job *p, const char *from, const char *to, tree_moved *out, err *e) {
  copying c = {.p = p, .from = from, .out = out};
  struct stat st;
  int rc = tree_local_check(p, from, e);
  if (rc == 0) rc = tree_local_apart(p, from, to, e);
  if (rc == 0 && !p->merge && p->io->lstat(p->io, AT_FDCWD, to, &st) == 0)
    rc = err_set(e, ERR_EXISTS, "%s is there already", to);
  return rc == 0 ? copy_tries(&c, to, e) : rc;
}
