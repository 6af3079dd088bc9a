#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fs.h"

static int sync_both(const io *io, const char *from, const char *to, err *e) {
  char source[FS_PATH_MAX], target[FS_PATH_MAX];
  fs_parent(from, source);
  fs_parent(to, target);
  int rc = fs_sync_dir(io, target, e);
  if (rc == 0 && strcmp(source, target) != 0) rc = fs_sync_dir(io, source, e);
  return rc;
}

/* -EEXIST if `to` is taken. */
static int rename_new(const io *io, const char *from, const char *to) {
  int rc = io->rename(io, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
  if (rc != -EINVAL && rc != -ENOSYS && rc != -EOPNOTSUPP) return rc;
  struct stat st;
  rc = io->lstat(io, AT_FDCWD, to, &st);
  if (rc == 0) return -EEXIST;
  return rc == -ENOENT ? io->rename(io, AT_FDCWD, from, AT_FDCWD, to, 0) : rc;
}

/* Tells, after a rename that failed, whether it was done and only the reply lost. */
static bool renamed_already(const io *io, const char *from, const char *to,
                            const struct stat *before) {
  struct stat st;
  return io->lstat(io, AT_FDCWD, from, &st) == -ENOENT && io->lstat(io, AT_FDCWD, to, &st) == 0 &&
         st.st_dev == before->st_dev && st.st_ino == before->st_ino;
}

int fs_publish(const io *io, const char *from, const char *to, err *e) {
  struct stat before;
  int rc = io->lstat(io, AT_FDCWD, from, &before);
  if (rc < 0) return err_sys(e, rc, "cannot rename %s to %s", from, to);
  rc = rename_new(io, from, to);
  if (rc < 0 && renamed_already(io, from, to, &before)) rc = 0;
  if (rc < 0) return err_sys(e, rc, "cannot rename %s to %s", from, to);
  return sync_both(io, from, to, e);
}

enum { RACES_MAX = 16 };

/* Exchanges two trees in one step. Returns 1 where the file system does not know it; ERR_NOENT if
 * one is missing. */
static int exchange(const io *io, const char *from, const char *to, err *e) {
  int rc = io->rename(io, AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
  if (rc == -EINVAL || rc == -ENOSYS || rc == -EOPNOTSUPP) return 1;
  if (rc < 0) return err_sys(e, rc, "cannot exchange %s and %s", from, to);
  return sync_both(io, from, to, e);
}

/* Replaces without an exchange: the old tree steps aside, and comes back if the new one cannot take
 * its place. A crash in between leaves it beside `to`. */
static int step_aside(const io *io, const char *from, const char *to, const char *aside, err *e) {
  int rc = rename_new(io, to, aside);
  if (rc < 0) return err_sys(e, rc, "cannot rename %s to %s", to, aside);
  err why = {0};
  rc = fs_publish(io, from, to, &why);
  if (rc == 0) return 0;
  if (io->rename(io, AT_FDCWD, aside, AT_FDCWD, to, RENAME_NOREPLACE) < 0)
    err_wrap(&why, "what was at %s is now at %s", to, aside);
  if (e) *e = why;
  return rc;
}

static int aside_name(const io *io, const char *to, char *out, err *e) {
  char nonce[33];
  int rc = io_nonce(io, nonce);
  if (rc < 0) return err_sys(e, rc, "no random name beside %s", to);
  size_t len = strlen(to);
  while (len > 1 && to[len - 1] == '/') len--;
  int need = snprintf(out, FS_PATH_MAX, "%.*s.%s.old", (int)len, to, nonce);
  if (need < FS_PATH_MAX) return 0;
  return err_set(e, ERR_LIMIT, "the path %.400s... is too long for a name beside it", to);
}

static int remove_old(const io *io, const char *to, const char *old, err *e) {
  err why = {0};
  int rc = fs_remove_tree(io, old, &why);
  if (rc == 0) return 0;
  err_wrap(&why, "%s is replaced, but what was there stays behind at %s", to, old);
  if (e) *e = why;
  return rc;
}

/* 1 if somebody else made or removed `to` between two of our steps. */
static int replace_once(const io *io, const char *from, const char *to, const char **how, err *e) {
  char aside[FS_PATH_MAX];
  *how = "published";
  int rc = fs_publish(io, from, to, e);
  if (rc != ERR_EXISTS) return rc;
  *how = "exchanged";
  rc = exchange(io, from, to, e);
  if (rc == 0) return remove_old(io, to, from, e);
  if (rc == 1) {
    *how = "stepped aside";
    rc = aside_name(io, to, aside, e);
    if (rc == 0) rc = step_aside(io, from, to, aside, e);
    if (rc == 0) return remove_old(io, to, aside, e);
  }
  return rc == ERR_NOENT ? 1 : rc;
}

int fs_replace_tree(const io *io, const char *from, const char *to, const char **how, err *e) {
  err why = {0};
  int rc = 1;
  for (int i = 0; rc == 1 && i < RACES_MAX; i++) rc = replace_once(io, from, to, how, &why);
  if (rc == 1)
    rc = err_set(&why, ERR_CONFLICT, "%s is made and removed by somebody else all the time", to);
  if (rc < 0 && e) *e = why;
  return rc;
}
