/* For trusted Lua: functions that change files and trees. */
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>

#include "lua_ckpt.h"
#include "lua_fs.h"
#include "prims/fs.h"
#include "prims/fs_live.h"
#include "prims/match.h"

/* Pushes the usual result: true, or the failure. */
static int push_done(lua_State *L, int rc, const err *e) {
  if (rc < 0) return l_ckpt_err(L, e);
  lua_pushboolean(L, 1);
  return 1;
}

static mode_t l_mode(lua_State *L, int index, mode_t otherwise) {
  int mode = luaL_optint(L, index, (int)otherwise);
  luaL_argcheck(L, mode >= 0 && mode <= 07777, index, "no mode: write tonumber(\"644\", 8)");
  return (mode_t)mode;
}

/* ---- one file ---- */

typedef int write_fn(const io *io, const char *path, const void *data, size_t len, mode_t mode,
                     err *e);

static int write_by(lua_State *L, write_fn *write) {
  size_t len;
  const char *path = l_ckpt_path(L, 1);
  luaL_checktype(L, 2, LUA_TSTRING);
  const char *data = lua_tolstring(L, 2, &len);
  mode_t mode = l_mode(L, 3, 0666);
  err e = {0};
  return push_done(L, write(io_system(), path, data, len, mode, &e), &e);
}

static int l_write(lua_State *L) {
  return write_by(L, fs_replace);
}

/* Writes a file whose name is seen as soon as it is made, the content a little later. So it is made
 * under another name and linked, where that can be: nobody reads half of it. */
static int write_whole(const io *io, const char *path, const void *data, size_t len, mode_t mode,
                       err *e) {
  char temp[FS_PATH_MAX], nonce[33];
  struct stat st;
  if (io->lstat(io, AT_FDCWD, path, &st) == 0) return err_sys(e, EEXIST, "cannot create %s", path);
  int rc = io_nonce(io, nonce);
  if (rc < 0) return err_sys(e, rc, "no random name for a file beside %s", path);
  int need = snprintf(temp, sizeof temp, "%s.%s.tmp", path, nonce);
  if (need >= FS_PATH_MAX)
    return err_set(e, ERR_LIMIT, "the path %.400s... is longer than %d bytes", path, FS_PATH_MAX);
  rc = fs_write_new(io, temp, data, len, mode, e);
  if (rc == 0) rc = fs_link_new(io, temp, path, e);
  if (rc != ERR_UNSUPPORTED) return rc;
  return fs_publish(io, temp, path, e); /* no hard links here */
}

static int l_write_new(lua_State *L) {
  return write_by(L, write_whole);
}

static int l_remove(lua_State *L) {
  const io *io = io_system();
  const char *path = l_ckpt_path(L, 1);
  err e = {0};
  int rc = io->unlink(io, AT_FDCWD, path, 0);
  if (rc < 0) rc = err_sys(&e, rc, "cannot remove %s", path);
  return push_done(L, rc, &e);
}

static int l_symlink(lua_State *L) {
  const io *io = io_system();
  const char *target = l_ckpt_path(L, 1), *path = l_ckpt_path(L, 2);
  err e = {0};
  int rc = io->symlink(io, target, AT_FDCWD, path);
  if (rc < 0) rc = err_sys(&e, rc, "cannot create the link %s", path);
  return push_done(L, rc, &e);
}

static int l_chmod(lua_State *L) {
  const io *io = io_system();
  const char *path = l_ckpt_path(L, 1);
  luaL_checknumber(L, 2);
  mode_t mode = l_mode(L, 2, 0);
  err e = {0};
  /* O_NONBLOCK: opening a FIFO would wait for its other end. */
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
  if (fd == -EACCES) fd = io->open(io, AT_FDCWD, path, O_WRONLY | O_NONBLOCK, 0);
  int rc = fd < 0 ? fd : io->chmod(io, fd, mode);
  if (fd >= 0) io->close(io, fd);
  if (rc < 0) rc = err_sys(&e, rc, "cannot set the mode of %s", path);
  return push_done(L, rc, &e);
}

static int l_utime(lua_State *L) {
  const io *io = io_system();
  const char *path = l_ckpt_path(L, 1);
  double seconds = luaL_checknumber(L, 2), whole = floor(seconds);
  luaL_argcheck(L, fabs(seconds) < 1e11, 2, "no time in seconds since 1970");
  struct timespec times[2] = {
      {.tv_nsec = UTIME_OMIT},
      {.tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9)}};
  err e = {0};
  int rc = io->utimens(io, AT_FDCWD, path, times, 0);
  if (rc < 0) rc = err_sys(&e, rc, "cannot set the time of %s", path);
  return push_done(L, rc, &e);
}

static int flush(const io *io, const char *path, err *e) {
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
  if (fd < 0) return err_sys(e, fd, "cannot open %s to flush it", path);
  int rc = io->fsync(io, fd);
  io->close(io, fd);
  /* EINVAL: this file system cannot flush such a file at all, as in fs_sync_dir. */
  return rc < 0 && rc != -EINVAL ? err_sys(e, rc, "cannot flush %s", path) : 0;
}

static int l_sync(lua_State *L) {
  const char *path = l_ckpt_path(L, 1);
  err e = {0};
  return push_done(L, flush(io_system(), path, &e), &e);
}

/* ---- trees ---- */

static int l_mkdirs(lua_State *L) {
  const char *path = l_ckpt_path(L, 1);
  mode_t mode = l_mode(L, 2, 0777);
  err e = {0};
  return push_done(L, fs_mkdirs(io_system(), path, mode, &e), &e);
}

/* temporary(begin): makes a directory of a name that begins so; nobody else may look into it. */
static int l_temporary(lua_State *L) {
  const io *io = io_system();
  const char *begin = l_ckpt_path(L, 1);
  char nonce[33], path[FS_PATH_MAX];
  err e = {0};
  int rc = io_nonce(io, nonce);
  if (rc < 0) err_sys(&e, rc, "no random name for a temporary directory");
  int need = rc < 0 ? 0 : snprintf(path, sizeof path, "%s%.16s", begin, nonce);
  if (need >= FS_PATH_MAX) rc = err_set(&e, ERR_LIMIT, "the path %.400s... is too long", begin);
  if (rc == 0) {
    rc = io->mkdir(io, AT_FDCWD, path, 0700);
    if (rc < 0) err_sys(&e, rc, "cannot make the temporary directory %s", path);
  }
  if (rc < 0) return l_ckpt_err(L, &e);
  lua_pushstring(L, path);
  return 1;
}

static int l_rename(lua_State *L) {
  const io *io = io_system();
  const char *from = l_ckpt_path(L, 1), *to = l_ckpt_path(L, 2);
  err e = {0};
  int rc = io->rename(io, AT_FDCWD, from, AT_FDCWD, to, 0);
  if (rc < 0) rc = err_sys(&e, rc, "cannot rename %s to %s", from, to);
  return push_done(L, rc, &e);
}

static int l_publish(lua_State *L) {
  const char *from = l_ckpt_path(L, 1), *to = l_ckpt_path(L, 2);
  err e = {0};
  return push_done(L, fs_publish(io_system(), from, to, &e), &e);
}

static int l_replace_tree(lua_State *L) {
  const char *from = l_ckpt_path(L, 1), *to = l_ckpt_path(L, 2);
  const char *how;
  err e = {0};
  if (fs_replace_tree(io_system(), from, to, &how, &e) < 0) return l_ckpt_err(L, &e);
  lua_pushboolean(L, 1);
  lua_pushstring(L, how);
  return 2;
}

static int l_remove_tree(lua_State *L) {
  const char *path = l_ckpt_path(L, 1);
  err e = {0};
  return push_done(L, fs_remove_tree(io_system(), path, &e), &e);
}

static int copy_live(const char *from, const char *to, bool flush, err *e) {
  const io *io = io_system();
  const fs_copy_how how = {.flush = flush};
  struct stat st;
  bool young;
  int in = fs_live_open(io, from, &st, &young, e);
  if (in < 0) return in;
  int rc = fs_live_copy(io, in, &st, young, from, to, &how, e);
  io->close(io, in); /* nothing was written: nothing can be lost */
  return rc;
}

static int l_copy_file(lua_State *L) {
  static const char *const keys[] = {"flush", "live", NULL};
  const char *from = l_ckpt_path(L, 1), *to = l_ckpt_path(L, 2);
  bool flush = false, live = false;
  if (!lua_isnoneornil(L, 3)) {
    l_ckpt_check_keys(L, 3, keys);
    flush = l_ckpt_flag(L, 3, "flush");
    live = l_ckpt_flag(L, 3, "live");
  }
  err e = {0};
  int rc = live ? copy_live(from, to, flush, &e)
                : fs_copy_file(io_system(), from, to, flush, NULL, NULL, &e);
  return push_done(L, rc, &e);
}

static bool is_left_out(void *ctx, const char *path) {
  return match_excluded(ctx, path);
}

static int l_copy_tree(lua_State *L) {
  static const char *const keys[] = {"exclude", "follow", "flush", NULL};
  const char *from = l_ckpt_path(L, 1), *to = l_ckpt_path(L, 2);
  fs_copy_how how = {.leave_out = is_left_out};
  if (!lua_isnoneornil(L, 3)) {
    l_ckpt_check_keys(L, 3, keys);
    how.flush = l_ckpt_flag(L, 3, "flush");
    how.follow = l_ckpt_flag(L, 3, "follow");
    how.ctx = (void *)l_ckpt_texts(L, 3, "exclude");
  }
  err e = {0};
  return push_done(L, fs_copy_tree_as(io_system(), from, to, &how, &e), &e);
}

static int sync_file(void *ctx, const fs_entry *entry, err *e) {
  char path[FS_PATH_MAX];
  if (!S_ISREG(entry->st->st_mode)) return 0;
  int rc = fs_join(path, ctx, entry->name, e);
  return rc < 0 ? rc : flush(io_system(), path, e);
}

static int l_sync_tree(lua_State *L) {
  const char *dir = l_ckpt_path(L, 1);
  char root[FS_PATH_MAX];
  err e = {0};
  int rc = fs_join(root, dir, "", &e);
  if (rc == 0) rc = fs_walk(io_system(), root, sync_file, root, &e);
  if (rc == 0) rc = fs_sync_tree(io_system(), root, &e);
  return push_done(L, rc, &e);
}

void l_fs_add_changes(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"write", l_write},
      {"write_new", l_write_new},
      {"remove", l_remove},
      {"symlink", l_symlink},
      {"chmod", l_chmod},
      {"utime", l_utime},
      {"sync", l_sync},
      {"mkdirs", l_mkdirs},
      {"temporary", l_temporary},
      {"rename", l_rename},
      {"publish", l_publish},
      {"replace_tree", l_replace_tree},
      {"copy_file", l_copy_file},
      {"copy_tree", l_copy_tree},
      {"sync_tree", l_sync_tree},
      {"remove_tree", l_remove_tree},
      {NULL, NULL},
  };
  luaL_register(L, NULL, functions);
}
