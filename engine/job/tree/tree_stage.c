#include "tree_stage.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { BASE_SHOWN = 180, NONCE_LEN = 32, TRIES = 100 };

static bool is_there(const io *io, const char *path, struct stat *st) {
  return io->lstat(io, AT_FDCWD, path, st) == 0;
}

/* ---- what the dead left ---- */

typedef struct sweep {
  const io *io;
  const char *dir;
  char prefix[BASE_SHOWN + 16];
} sweep;

/* A user's ".model.ckpt-1000" is not one of ours. */
static bool is_stage(const sweep *s, const char *name) {
  size_t len = strlen(s->prefix);
  return strncmp(name, s->prefix, len) == 0 && strlen(name + len) == NONCE_LEN &&
         strspn(name + len, "0123456789abcdef") == NONCE_LEN;
}

/* Locks the stage. An error is about the lock. Nothing is held where there are no locks. */
static int lock_it(const io *io, const char *path, lock *out, err *e) {
  out->fd = -1;
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
  if (fd < 0) return err_sys(e, fd, "cannot open the directory %s", path);
  return lock_take_open_dir(fd, path, out, e);
}

static int sweep_one(void *ctx, const fs_entry *entry, err *e) {
  const sweep *s = ctx;
  char path[FS_PATH_MAX];
  lock held = {.fd = -1};
  (void)e; /* a stage that stays, whosever it is, is no error of ours */
  if (!S_ISDIR(entry->st->st_mode) || !is_stage(s, entry->name)) return 0;
  if (fs_join(path, s->dir, entry->name, NULL) < 0) return 0;
  /* Without locks nobody can tell whether its process lives. */
  if (lock_it(s->io, path, &held, NULL) == 0 && held.fd >= 0) fs_remove_tree(s->io, path, NULL);
  lock_drop(&held);
  return 0;
}

static void set_prefix(const char *target, char out[BASE_SHOWN + 16]) {
  snprintf(out, BASE_SHOWN + 16, ".%.*s.ckpt-", BASE_SHOWN, fs_base(target));
}

/* ---- opening ---- */

/* Splits a path into the nearest directory that is there, without links, and the rest below it. */
static int find_top(const io *io, const char *path, char top[FS_PATH_MAX], char rest[FS_PATH_MAX],
                    err *e) {
  char at[FS_PATH_MAX], up[FS_PATH_MAX], more[FS_PATH_MAX];
  int rc = fs_join(at, path, "", e);
  *rest = 0;
  while (rc == 0 && (rc = fs_resolve_way(io, at, top, e)) == ERR_NOENT) {
    fs_parent(at, up);
    if (strcmp(up, at) == 0) return rc;
    rc = fs_join(more, fs_base(at), rest, e);
    memcpy(rest, more, strlen(more) + 1);
    memcpy(at, up, strlen(up) + 1);
  }
  return rc;
}

/* Holds that directory, and says where the stage is to be. Missing directories are made later. */
static int hold_top(tree_stage *s, const io *io, const char *parent, err *e) {
  char rest[FS_PATH_MAX];
  int rc = find_top(io, parent, s->top, rest, e);
  if (rc == 0) rc = fs_join(s->dir, s->top, rest, e);
  if (rc == 0) rc = fs_hold(s->where, s->top, e);
  s->made[0] = 0;
  if (rc < 0) s->top[0] = 0;
  if (rc < 0 || !*rest) return rc;
  rest[strcspn(rest, "/")] = 0;
  return fs_join(s->made, s->top, rest, e);
}

/* The target may be a link of the user's own, as a way to a directory may. */
static int hold_target(tree_stage *s, const io *io, const char *target, err *e) {
  char real[FS_PATH_MAX];
  err why = {0};
  if (!s->merge) return 0;
  int rc = fs_resolve_way(io, target, real, &why);
  if (rc == ERR_ACCESS) return err_set(e, rc, "%s", why.text);
  if (rc < 0) return 0; /* there is none, or an error will say what is in its place */
  rc = fs_hold(s->where, real, e);
  if (rc < 0) return rc;
  s->into = true;
  memcpy(s->target, real, strlen(real) + 1);
  return 0;
}

/* Makes the directory for the stage. Another process that made one above it may take it away again
 * after a failure. */
static int make_parent(tree_stage *s, const io *io, const char *target, const char *parent,
                       err *e) {
  int rc = *s->top ? 0 : hold_top(s, io, parent, e);
  if (rc == 0 && !s->into) rc = fs_join(s->target, s->dir, fs_base(target), e);
  if (rc == 0 && *s->made) rc = fs_mkdirs(s->io, s->dir, 0777, e);
  if (rc != ERR_NOENT || !*s->top) return rc;
  fs_let_go(s->where, s->top);
  s->top[0] = s->made[0] = 0;
  return rc;
}

/* Between its making and its lock somebody may have taken it for a dead one. */
static bool is_ours(const tree_stage *s) {
  struct stat ours, named;
  if (s->held.fd < 0) return true;
  return s->io->fstat(s->io, s->held.fd, &ours) == 0 && is_there(s->io, s->path, &named) &&
         ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

static int make_one(tree_stage *s, const char *prefix, err *e) {
  char nonce[NONCE_LEN + 1], name[BASE_SHOWN + 64];
  int rc = io_nonce(s->io, nonce);
  if (rc < 0) return err_sys(e, rc, "make a name beside %s", s->target);
  snprintf(name, sizeof name, "%s%s", prefix, nonce);
  rc = fs_join(s->path, s->dir, name, e);
  if (rc < 0) return rc;
  rc = s->io->mkdir(s->io, AT_FDCWD, s->path, 0700);
  if (rc < 0) {
    s->path[0] = 0;
    return err_sys(e, rc, "make a directory beside %s", s->target);
  }
  rc = lock_it(s->io, s->path, &s->held, e);
  if (rc == 0 && is_ours(s)) return 0;
  s->io->unlink(s->io, AT_FDCWD, s->path, AT_REMOVEDIR); /* unless somebody did that already */
  s->path[0] = 0;
  lock_drop(&s->held);
  return rc == 0 || rc == ERR_NOENT || rc == ERR_HELD ? ERR_HELD : rc;
}

static int open_at(tree_stage *s, const io *io, const char *target, err *e) {
  char parent[FS_PATH_MAX];
  sweep old = {.io = s->io, .dir = s->dir};
  fs_parent(target, parent);
  int rc = hold_target(s, io, target, e);
  /* A rename does not lead to another file system, and the target may be one, as a mounted
   * volume. */
  if (s->into && fs_same_device(io, s->target, parent, NULL) == 0)
    memcpy(parent, s->target, strlen(s->target) + 1);
  set_prefix(target, old.prefix);
  bool swept = false;
  if (rc == 0) rc = ERR_HELD;
  for (int i = 0; i < TRIES && (rc == ERR_HELD || rc == ERR_NOENT); i++) {
    rc = make_parent(s, io, target, parent, e);
    if (rc == 0 && !swept) rc = fs_list(s->io, s->dir, sweep_one, &old, e);
    swept |= rc == 0;
    if (rc == 0) rc = make_one(s, old.prefix, e);
    if (rc == ERR_NOENT && *s->top) {
      fs_let_go(s->where, s->top);
      s->top[0] = 0;
    }
  }
  return rc;
}

int tree_stage_open(tree_stage *s, const io *io, const char *target, bool merge, err *e) {
  char named[FS_PATH_MAX];
  struct stat st;
  *s = (tree_stage){.io = io, .held = {.fd = -1}, .merge = merge};
  int rc = fs_join(named, target, "", e);
  if (rc < 0) return rc;
  for (size_t len = strlen(named); len > 1 && named[len - 1] == '/';) named[--len] = 0;
  if (!merge && is_there(io, named, &st))
    return err_set(e, ERR_EXISTS, "%s is there already", target);
  rc = fs_held_new(io, &s->where, e);
  if (rc < 0) return rc;
  s->io = fs_held_io(s->where);
  rc = open_at(s, io, named, e);
  if (rc < 0) tree_stage_drop(s, e);
  return rc;
}

/* ---- the end ---- */

static void remove_made(tree_stage *s) {
  char at[FS_PATH_MAX], up[FS_PATH_MAX];
  memcpy(at, s->dir, strlen(s->dir) + 1);
  while (*s->made && s->io->unlink(s->io, AT_FDCWD, at, AT_REMOVEDIR) == 0 &&
         strcmp(at, s->made) != 0) {
    fs_parent(at, up);
    memcpy(at, up, sizeof at);
  }
  s->made[0] = 0;
}

void tree_stage_drop(tree_stage *s, err *e) {
  if (*s->path) fs_discard(s->io, s->path, e);
  s->path[0] = 0;
  lock_drop(&s->held);
  remove_made(s);
  fs_held_free(s->where);
  s->where = NULL;
}

typedef struct merging {
  const io *io;
  const char *from, *to;
} merging;

static int merge_dir(const io *io, const char *from, const char *to, err *e);

static int merge_one(void *ctx, const fs_entry *entry, err *e) {
  const merging *m = ctx;
  char from[FS_PATH_MAX], to[FS_PATH_MAX];
  struct stat st;
  int rc = fs_join(from, m->from, entry->name, e);
  if (rc == 0) rc = fs_join(to, m->to, entry->name, e);
  if (rc < 0) return rc;
  bool dir = S_ISDIR(entry->st->st_mode), there = is_there(m->io, to, &st);
  if (there && dir != S_ISDIR(st.st_mode))
    return err_set(e, ERR_EXISTS, "%s is a directory here or there, and not in both places", to);
  if (there && dir) return merge_dir(m->io, from, to, e);
  rc = m->io->rename(m->io, AT_FDCWD, from, AT_FDCWD, to, 0);
  return rc < 0 ? err_sys(e, rc, "move %s into place", to) : 0;
}

static int merge_dir(const io *io, const char *from, const char *to, err *e) {
  merging m = {.io = io, .from = from, .to = to};
  int rc = fs_list(io, from, merge_one, &m, e);
  return rc == 0 ? fs_sync_dir(io, to, e) : rc;
}

int tree_stage_show(tree_stage *s, err *e) {
  struct stat st;
  int rc = ERR_EXISTS;
  if (!is_there(s->io, s->target, &st)) rc = fs_publish(s->io, s->path, s->target, e);
  if (rc == 0) {
    s->path[0] = 0;
    s->made[0] = 0;
  } else if (rc == ERR_EXISTS && s->merge) {
    rc = merge_dir(s->io, s->path, s->target, e);
  } else if (rc == ERR_EXISTS) {
    rc = err_set(e, rc, "%s is there already", s->target);
  }
  tree_stage_drop(s, rc < 0 ? e : NULL);
  return rc;
}
