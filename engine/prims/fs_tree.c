#include "fs_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum { DENTS_BYTES = 32 << 10, NAMES_MAX = 64 << 20 };

/* The current entry, for people; in t->text. */
static const char *where(fs_tree *t) {
  snprintf(t->text, sizeof t->text, "%s%s%s", t->plan->root, *t->path ? "/" : "", t->path);
  return t->text;
}

/* Handles an entry that was listed and is not there (or not a directory) any more. */
static int vanished(fs_tree *t, err *e) {
  if (!t->plan->strict) return 0;
  return err_set(e, ERR_RETIRED, "%s vanished while its tree was read", where(t));
}

static bool gone(int rc) {
  return rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP || rc == -ESTALE;
}

static int add_names(fs_tree *t, fs_level *l, size_t len, err *e) {
  for (size_t at = 0; at < len;) {
    const struct dirent64 *d = (const void *)(t->dents + at);
    size_t name_at = offsetof(struct dirent64, d_name);
    if (len - at <= name_at || d->d_reclen <= name_at || d->d_reclen > len - at)
      return err_set(e, ERR_IO, "the kernel gave a malformed listing of %s", where(t));
    at += d->d_reclen;
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0) continue;
    if (t->plan->wants && !t->plan->wants(t->plan->ctx, d->d_name, d->d_type)) continue;
    buf_add(&l->bytes, d->d_name, strlen(d->d_name) + 1);
    l->count++;
  }
  return 0;
}

static int too_many(fs_tree *t, int code, err *e) {
  if (code == ERR_NOMEM) return err_set(e, code, "no memory for the names in %s", where(t));
  return err_set(e, ERR_LIMIT, "too many names in %s: more than %d MiB of them", where(t),
                 NAMES_MAX >> 20);
}

/* Reads the names of a directory that is open, sorted. 1 if it was removed meanwhile. */
static int list_names(fs_tree *t, fs_level *l, err *e) {
  buf_init(&l->bytes, NAMES_MAX - t->held);
  for (;;) {
    ssize_t n = t->io->getdents(t->io, l->fd, t->dents, DENTS_BYTES);
    if (n == 0) break;
    if (gone((int)n)) return 1;
    if (n < 0) return err_sys(e, (int)n, "cannot list %s", where(t));
    int rc = add_names(t, l, (size_t)n, e);
    if (rc < 0) return rc;
    if (buf_failed(&l->bytes)) return too_many(t, buf_failed(&l->bytes), e);
  }
  size_t total = l->bytes.len + l->count * sizeof *l->names;
  if (total > NAMES_MAX - t->held) return too_many(t, ERR_LIMIT, e);
  if (l->count == 0) return 0;
  l->names = malloc(l->count * sizeof *l->names);
  if (!l->names) return too_many(t, ERR_NOMEM, e);
  t->held += total;
  char *name = l->bytes.data;
  for (size_t i = 0; i < l->count; i++, name += strlen(name) + 1) l->names[i] = name;
  qsort(l->names, l->count, sizeof *l->names, vec_texts);
  return 0;
}

static void close_level(fs_tree *t, fs_level *l) {
  if (l->names) t->held -= l->bytes.len + l->count * sizeof *l->names;
  free(l->names);
  buf_free(&l->bytes);
  t->io->close(t->io, l->fd); /* nothing was written: nothing can be lost */
}

/* Refuses a directory that is also above itself: links can lead back, and would do so again and
 * again. */
static int check_round(fs_tree *t, const fs_level *l, err *e) {
  for (int i = 0; i < t->depth; i++) {
    const struct stat *above = &t->levels[i].st;
    if (above->st_dev == l->st.st_dev && above->st_ino == l->st.st_ino)
      return err_set(e, ERR_INVAL, "%s leads to a directory that it is in", where(t));
  }
  return 0;
}

/* Opens a directory and makes it the current one. 1 if it has vanished. */
static int descend(fs_tree *t, int dir, const char *base, err *e) {
  if (t->depth > FS_DEPTH_MAX)
    return err_set(e, ERR_LIMIT, "%s lies more than %d directories deep", where(t), FS_DEPTH_MAX);
  int stay = t->plan->follow ? 0 : O_NOFOLLOW;
  int fd = t->io->open(t->io, dir, base, O_RDONLY | O_DIRECTORY | stay, 0);
  if (fd < 0 && gone(fd) && t->depth > 0) return 1;
  if (fd == -ENOTDIR || fd == -ELOOP)
    return err_set(e, ERR_INVAL, "%s is not a directory (links are not followed)", where(t));
  if (fd < 0) return err_sys(e, fd, "cannot open the directory %s", where(t));
  fs_level *l = &t->levels[t->depth];
  *l = (fs_level){.fd = fd, .path_len = strlen(t->path)};
  int rc = t->io->fstat(t->io, fd, &l->st);
  if (rc < 0) rc = err_sys(e, rc, "cannot look at %s", where(t));
  if (rc == 0 && t->plan->follow) rc = check_round(t, l, e);
  if (rc == 0 && t->plan->enter) rc = t->plan->enter(t, l, e);
  if (rc == 0) rc = list_names(t, l, e);
  if (rc == 0)
    t->depth++;
  else
    close_level(t, l);
  return rc;
}

/* Leaves the current directory, which is done. */
static int ascend(fs_tree *t, err *e) {
  fs_level *l = &t->levels[t->depth - 1];
  t->path[l->path_len] = 0;
  bool top = t->depth == 1;
  int rc = 0;
  if (t->plan->leave)
    rc = t->plan->leave(t, l, top ? AT_FDCWD : l[-1].fd,
                        top ? t->plan->root : t->path + l[-1].path_len + (l[-1].path_len > 0), e);
  close_level(t, l);
  t->depth--;
  return rc;
}

/* Looks at an entry: 0, 1 if it has vanished, or negative. */
static int look_at(fs_tree *t, int dir, const char *base, struct stat *st, err *e) {
  int rc = t->io->lstat(t->io, dir, base, st);
  if (rc < 0 && gone(rc)) return 1;
  if (rc < 0) return err_sys(e, rc, "cannot look at %s", where(t));
  if (!t->plan->follow || !S_ISLNK(st->st_mode)) return 0;
  int fd = t->io->open(t->io, dir, base, O_PATH, 0);
  if (fd < 0) return err_sys(e, fd, "cannot follow the link %s", where(t));
  rc = t->io->fstat(t->io, fd, st);
  t->io->close(t->io, fd);
  return rc < 0 ? err_sys(e, rc, "cannot look at %s", where(t)) : 0;
}

/* Takes the next child of the current directory, and goes down into it if it is a directory. */
static int step(fs_tree *t, err *e) {
  fs_level *l = &t->levels[t->depth - 1];
  const char *base = l->names[l->next++];
  size_t len = l->path_len;
  int need = snprintf(t->path + len, sizeof t->path - len, "%s%s", len ? "/" : "", base);
  if (need < 0 || (size_t)need >= sizeof t->path - len)
    return err_set(e, ERR_LIMIT, "a path below %s is longer than %d bytes", t->plan->root,
                   FS_PATH_MAX - 1);
  struct stat st;
  int rc = look_at(t, l->fd, base, &st, e);
  if (rc != 0) return rc == 1 ? vanished(t, e) : rc;
  fs_entry entry = {t->path, &st};
  if (t->plan->entry) rc = t->plan->entry(t, l->fd, base, &entry, e);
  if (rc != 0 || !S_ISDIR(st.st_mode)) return rc < 0 ? rc : 0;
  rc = descend(t, l->fd, base, e);
  return rc == 1 ? vanished(t, e) : rc;
}

int fs_tree_walk(const fs_plan *plan, err *e) {
  fs_tree *t = malloc(sizeof *t);
  char *dents = malloc(DENTS_BYTES);
  int rc;
  if (!t || !dents) {
    rc = err_set(e, ERR_NOMEM, "no memory to walk through %s", plan->root);
    goto out;
  }
  t->plan = plan;
  t->io = plan->io;
  t->path[0] = 0;
  t->dents = dents;
  t->held = 0;
  t->depth = 0;
  rc = descend(t, AT_FDCWD, plan->root, e);
  if (rc == 1) rc = err_set(e, ERR_NOENT, "%s was removed while it was read", plan->root);
  while (rc == 0 && t->depth > 0) {
    fs_level *l = &t->levels[t->depth - 1];
    rc = l->next < l->count ? step(t, e) : ascend(t, e);
  }
  while (t->depth > 0) close_level(t, &t->levels[--t->depth]);
out:
  free(dents);
  free(t);
  return rc;
}

typedef struct visitor {
  fs_visit *visit;
  void *ctx;
  fs_wants *wants;
} visitor;

static int visit_entry(fs_tree *t, int dir, const char *base, const fs_entry *entry, err *e) {
  (void)dir, (void)base;
  const visitor *v = t->plan->ctx;
  return v->visit(v->ctx, entry, e);
}

static int visit_child(fs_tree *t, int dir, const char *base, const fs_entry *entry, err *e) {
  int rc = visit_entry(t, dir, base, entry, e);
  return rc < 0 ? rc : FS_SKIP;
}

int fs_walk(const io *io, const char *root, fs_visit *visit, void *ctx, err *e) {
  visitor v = {visit, ctx, NULL};
  return fs_tree_walk(&(fs_plan){.io = io, .root = root, .ctx = &v, .entry = visit_entry}, e);
}

static bool visitor_wants(void *ctx, const char *base, unsigned char kind) {
  const visitor *v = ctx;
  return !v->wants || v->wants(v->ctx, base, kind);
}

int fs_list_some(const io *io, const char *dir, fs_wants *wants, fs_visit *visit, void *ctx,
                 err *e) {
  visitor v = {visit, ctx, wants};
  return fs_tree_walk(
      &(fs_plan){.io = io, .root = dir, .ctx = &v, .wants = visitor_wants, .entry = visit_child},
      e);
}

int fs_list(const io *io, const char *dir, fs_visit *visit, void *ctx, err *e) {
  return fs_list_some(io, dir, NULL, visit, ctx, e);
}

static int sync_level(fs_tree *t, const fs_level *l, int dir, const char *base, err *e) {
  (void)dir, (void)base;
  int rc = t->io->fsync(t->io, l->fd);
  if (rc == -EINVAL) rc = 0; /* no such thing on this file system, as in fs_sync_dir */
  return rc < 0 ? err_sys(e, rc, "cannot flush the directory %s", where(t)) : 0;
}

int fs_sync_tree(const io *io, const char *root, err *e) {
  return fs_tree_walk(&(fs_plan){.io = io, .root = root, .leave = sync_level}, e);
}

static int remove_entry(fs_tree *t, int dir, const char *base, const fs_entry *entry, err *e) {
  if (S_ISDIR(entry->st->st_mode)) return 0;
  int rc = t->io->unlink(t->io, dir, base, 0);
  return rc < 0 && rc != -ENOENT ? err_sys(e, rc, "cannot remove %s", where(t)) : 0;
}

static int open_for_removal(fs_tree *t, const fs_level *l, err *e) {
  /* A file system that is mounted inside the tree belongs to somebody else. */
  if (l->st.st_dev != t->levels[0].st.st_dev)
    return err_set(e, ERR_INVAL, "%s is a mount point: unmount it, then remove %s", where(t),
                   t->plan->root);
  /* Copies keep the modes of read-only directories, and must be removable all the same. If this is
   * refused, so are the removals, and they say where. */
  if ((l->st.st_mode & 0700) != 0700) t->io->chmod(t->io, l->fd, 0700);
  return 0;
}

static int remove_level(fs_tree *t, const fs_level *l, int dir, const char *base, err *e) {
  (void)l;
  int rc = t->io->unlink(t->io, dir, base, AT_REMOVEDIR);
  if (rc == 0 || rc == -ENOENT) return 0;
  err_sys(e, rc, "cannot remove the directory %s", where(t));
  /* Somebody adds files, or has removed ones open on NFS (.nfsXXXX): later it may work. */
  bool busy = rc == -ENOTEMPTY || rc == -EEXIST || rc == -EBUSY;
  if (busy && e) e->code = ERR_CONFLICT;
  return busy ? ERR_CONFLICT : err_code_of_errno(rc);
}

/* True if the last component cannot be removed: "", ".", ".." or the root. */
static bool unremovable(const char *path) {
  size_t end = strlen(path);
  while (end > 0 && path[end - 1] == '/') end--;
  size_t start = end;
  while (start > 0 && path[start - 1] != '/') start--;
  return end == start || (end - start <= 2 && strncmp(path + start, "..", end - start) == 0);
}

int fs_remove_tree(const io *io, const char *path, err *e) {
  if (unremovable(path)) /* otherwise all below it would go before the kernel refuses */
    return err_set(e, ERR_INVAL, "will not remove \"%s\"", path);
  int rc = io->unlink(io, AT_FDCWD, path, 0);
  if (rc == 0 || rc == -ENOENT) return 0;
  if (rc != -EISDIR) return err_sys(e, rc, "cannot remove %s", path);
  err why = {0};
  rc = fs_tree_walk(&(fs_plan){.io = io,
                               .root = path,
                               .entry = remove_entry,
                               .enter = open_for_removal,
                               .leave = remove_level},
                    &why);
  /* Somebody else was faster: that is our aim too. It is looked at, since it may be something below
   * that vanished. */
  struct stat st;
  if (rc == ERR_NOENT && io->lstat(io, AT_FDCWD, path, &st) == -ENOENT) return 0;
  if (rc < 0 && e) *e = why;
  return rc;
}
