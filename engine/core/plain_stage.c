#include "plain_stage.h"

#include <errno.h>
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

/* A user's ".model.ckpt-1000" is none of ours. */
static bool is_stage(const sweep *s, const char *name) {
  size_t len = strlen(s->prefix);
  return strncmp(name, s->prefix, len) == 0 && strlen(name + len) == NONCE_LEN &&
         strspn(name + len, "0123456789abcdef") == NONCE_LEN;
}

static int sweep_one(void *ctx, const fs_entry *entry, err *e) {
  const sweep *s = ctx;
  char path[FS_PATH_MAX];
  lock held = {.fd = -1};
  (void)e; /* whose it is, and that it stays, is no trouble of ours */
  if (!S_ISDIR(entry->st->st_mode) || !is_stage(s, entry->name)) return 0;
  if (fs_join(path, s->dir, entry->name, NULL) < 0) return 0;
  /* Without locks nobody can tell who lives. */
  if (lock_take_dir(path, &held, NULL) == 0 && held.fd >= 0) fs_remove_tree(s->io, path, NULL);
  lock_drop(&held);
  return 0;
}

static void set_prefix(const char *target, char out[BASE_SHOWN + 16]) {
  snprintf(out, BASE_SHOWN + 16, ".%.*s.ckpt-", BASE_SHOWN, fs_base(target));
}

/* ---- opening ---- */

static int make_parent(plain_stage *s, const char *parent, err *e) {
  char at[FS_PATH_MAX], up[FS_PATH_MAX];
  struct stat st;
  memcpy(at, parent, strlen(parent) + 1);
  while (!is_there(s->io, at, &st) && strcmp(at, "/") != 0 && strcmp(at, ".") != 0) {
    memcpy(s->made, at, sizeof s->made);
    fs_parent(at, up);
    memcpy(at, up, sizeof at);
  }
  return *s->made ? fs_mkdirs(s->io, parent, 0777, e) : 0;
}

/* Between its making and its lock somebody may have taken it for a dead one's. */
static bool is_ours(const plain_stage *s) {
  struct stat ours, named;
  if (s->held.fd < 0) return true;
  return s->io->fstat(s->io, s->held.fd, &ours) == 0 && is_there(s->io, s->path, &named) &&
         ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

static int make_one(plain_stage *s, const char *parent, const char *prefix, err *e) {
  char nonce[NONCE_LEN + 1], name[BASE_SHOWN + 64];
  int rc = io_nonce(s->io, nonce);
  if (rc < 0) return err_sys(e, rc, "make a name beside %s", s->target);
  snprintf(name, sizeof name, "%s%s", prefix, nonce);
  rc = fs_join(s->path, parent, name, e);
  if (rc < 0) return rc;
  rc = s->io->mkdir(s->io, AT_FDCWD, s->path, 0700);
  if (rc < 0) return err_sys(e, rc, "make a directory beside %s", s->target);
  rc = lock_take_dir(s->path, &s->held, e);
  if (rc == 0 && is_ours(s)) return 0;
  s->io->unlink(s->io, AT_FDCWD, s->path, AT_REMOVEDIR); /* if nobody did that already */
  s->path[0] = 0;
  lock_drop(&s->held);
  return rc == 0 || rc == ERR_NOENT || rc == ERR_HELD ? ERR_HELD : rc;
}

int plain_stage_open(plain_stage *s, const io *io, const char *target, bool merge, err *e) {
  char parent[FS_PATH_MAX], listed[FS_PATH_MAX];
  struct stat st;
  *s = (plain_stage){.io = io, .held = {.fd = -1}, .merge = merge};
  int rc = fs_join(s->target, target, "", e);
  if (rc < 0) return rc;
  fs_parent(target, parent);
  /* No rename leads to another file system, as a mounted volume is one. */
  if (merge && fs_same_device(io, target, parent, NULL) == 0)
    memcpy(parent, s->target, strlen(s->target) + 1);
  if (!merge && is_there(io, target, &st))
    return err_set(e, ERR_EXISTS, "%s is there already", target);
  sweep old = {.io = io, .dir = listed};
  set_prefix(target, old.prefix);
  rc = make_parent(s, parent, e);
  if (rc == 0) rc = fs_join(listed, parent, ".", e); /* it may be a link */
  if (rc == 0) rc = fs_list(io, listed, sweep_one, &old, e);
  if (rc == 0) rc = ERR_HELD;
  /* Whoever made the parent may take it away again after a failure. */
  for (int i = 0; i < TRIES && (rc == ERR_HELD || rc == ERR_NOENT); i++) {
    rc = make_parent(s, parent, e);
    if (rc == 0) rc = make_one(s, parent, old.prefix, e);
  }
  if (rc < 0) plain_stage_drop(s, e);
  return rc;
}

/* ---- the end ---- */

static void remove_made(plain_stage *s) {
  char at[FS_PATH_MAX], up[FS_PATH_MAX];
  fs_parent(s->target, at);
  while (*s->made && s->io->unlink(s->io, AT_FDCWD, at, AT_REMOVEDIR) == 0 &&
         strcmp(at, s->made) != 0) {
    fs_parent(at, up);
    memcpy(at, up, sizeof at);
  }
  s->made[0] = 0;
}

void plain_stage_drop(plain_stage *s, err *e) {
  if (*s->path) fs_discard(s->io, s->path, e);
  s->path[0] = 0;
  lock_drop(&s->held);
  remove_made(s);
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

int plain_stage_show(plain_stage *s, err *e) {
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
  plain_stage_drop(s, rc < 0 ? e : NULL);
  return rc;
}
