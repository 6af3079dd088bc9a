/* For trusted Lua: files and trees (`require "ckpt.core".fs`). These functions read; those that
 * change files are in lua_fs_change.c. lua/ckpt/prims/fs.lua describes the arguments and results of
 * each. */
#include "lua_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lua_ckpt.h"
#include "prims/fs.h"
#include "prims/match.h"

enum { READ_MAX = 64 << 20, ENTRIES_MAX = 1 << 20 };

/* ---- one file ---- */

static int l_read(lua_State *L) {
  const char *path = l_ckpt_path(L, 1);
  double max = luaL_optnumber(L, 2, READ_MAX);
  luaL_argcheck(L, max >= 0 && max <= INT32_MAX, 2, "a number of bytes from 0 to 2 GiB");
  err e = {0};
  buf *b = l_ckpt_buf(L, (size_t)max);
  if (fs_read(io_system(), path, (size_t)max, b, &e) < 0) return l_ckpt_err(L, &e);
  l_ckpt_push_buf(L, b);
  return 1;
}

static const char *type_name(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "directory";
  return S_ISLNK(mode) ? "link" : "other";
}

static void l_push_stat(lua_State *L, const struct stat *st) {
  lua_createtable(L, 0, 8);
  l_ckpt_set_text(L, "type", type_name(st->st_mode));
  l_ckpt_set_number(L, "size", (double)st->st_size);
  l_ckpt_set_number(L, "mtime", (double)io_time_ns(st->st_mtim) / 1e9);
  l_ckpt_set_number(L, "mode", st->st_mode & 07777);
  l_ckpt_set_number(L, "owner", st->st_uid);
  l_ckpt_set_number(L, "inode", (double)st->st_ino);
  l_ckpt_set_number(L, "device", (double)st->st_dev);
}

/* Looks at the file that a link leads to. */
static int look(const char *path, struct stat *st) {
  const io *io = io_system();
  int fd = io->open(io, AT_FDCWD, path, O_PATH, 0);
  if (fd < 0) return fd;
  int rc = io->fstat(io, fd, st);
  io->close(io, fd);
  return rc;
}

static int look_at_link(const char *path, struct stat *st) {
  const io *io = io_system();
  return io->lstat(io, AT_FDCWD, path, st);
}

static int push_look(lua_State *L, const char *path, int rc, const struct stat *st) {
  err e = {0};
  if (rc < 0) {
    err_sys(&e, rc, "cannot look at %s", path);
    return l_ckpt_err(L, &e);
  }
  l_push_stat(L, st);
  return 1;
}

static int l_stat(lua_State *L) {
  struct stat st;
  const char *path = l_ckpt_path(L, 1);
  return push_look(L, path, look(path, &st), &st);
}

static int l_lstat(lua_State *L) {
  struct stat st;
  const char *path = l_ckpt_path(L, 1);
  return push_look(L, path, look_at_link(path, &st), &st);
}

static int l_exists(lua_State *L) {
  struct stat st;
  lua_pushboolean(L, look(l_ckpt_path(L, 1), &st) == 0);
  return 1;
}

static int l_readlink(lua_State *L) {
  const io *io = io_system();
  const char *path = l_ckpt_path(L, 1);
  char target[FS_PATH_MAX];
  err e = {0};
  ssize_t len = io->readlink(io, AT_FDCWD, path, target, sizeof target);
  if (len < 0) err_sys(&e, (int)len, "cannot read the link %s", path);
  if (len == sizeof target) err_set(&e, ERR_LIMIT, "the link %s is too long", path);
  if (e.code) return l_ckpt_err(L, &e);
  lua_pushlstring(L, target, (size_t)len);
  return 1;
}

/* ---- directories ---- */

/* Resolves the directory that `path` leads to: the walks do not follow a link, and a user's
 * `latest` is one. */
static int resolve(const char *path, char *real, err *e) {
  struct stat st;
  if (look_at_link(path, &st) < 0 || !S_ISLNK(st.st_mode)) return fs_join(real, path, "", e);
  char *target = realpath(path, NULL);
  if (!target) return err_sys(e, errno, "cannot follow the link %s", path);
  int rc = fs_join(real, target, "", e);
  free(target);
  return rc;
}

/* A walk hands this on to Lua. */
typedef struct walker {
  ckpt_relay relay;
  char root[FS_PATH_MAX];
  long left; /* entries that may still come */
  const fs_entry *entry;
  const char *target; /* of a link; else "" */
} walker;

static int hand_on(walker *w, const fs_entry *entry, const char *target, err *e) {
  if (--w->left < 0)
    return err_set(e, ERR_LIMIT, "%s has more than %d entries", w->root, ENTRIES_MAX);
  w->entry = entry;
  w->target = target;
  return ckpt_relay_send(&w->relay, w) ? ERR_INTERNAL : 0; /* an error of the callback is raised
                                                            * again */
}

static void l_push_name(lua_State *L, const void *record) {
  const walker *w = record;
  lua_pushstring(L, w->entry->name);
}

static int list_visit(void *ctx, const fs_entry *entry, err *e) {
  return hand_on(ctx, entry, "", e);
}

static void l_push_entry(lua_State *L, const void *record) {
  const walker *w = record;
  l_push_stat(L, w->entry->st);
  l_ckpt_set_text(L, "path", w->entry->name);
  l_ckpt_set_text(L, "target", w->target);
}

static int walk_visit(void *ctx, const fs_entry *entry, err *e) {
  const io *io = io_system();
  walker *w = ctx;
  char path[FS_PATH_MAX], target[FS_PATH_MAX] = "";
  if (S_ISLNK(entry->st->st_mode)) {
    int rc = fs_join(path, w->root, entry->name, e);
    if (rc < 0) return rc;
    ssize_t len = io->readlink(io, AT_FDCWD, path, target, sizeof target - 1);
    if (len == -ENOENT || len == -EINVAL) return 0; /* it vanished, or is no link any more */
    if (len < 0) return err_sys(e, (int)len, "cannot read the link %s", path);
    target[len] = 0;
  }
  return hand_on(w, entry, target, e);
}

typedef int walk_fn(const io *io, const char *dir, fs_visit *visit, void *ctx, err *e);

static int l_collect(lua_State *L, walk_fn *walk, fs_visit *visit,
                     void (*push)(lua_State *L, const void *record)) {
  const char *dir = l_ckpt_path(L, 1);
  err e = {0};
  walker w = {.left = ENTRIES_MAX};
  lua_settop(L, 1);
  int rc = resolve(dir, w.root, &e);
  if (rc == 0) {
    l_ckpt_begin(&w.relay, L, 2, push);
    rc = walk(io_system(), w.root, visit, &w, &e);
    l_ckpt_end(&w.relay);
  }
  return rc < 0 ? l_ckpt_err(L, &e) : 1;
}

static int l_list(lua_State *L) {
  return l_collect(L, fs_list, list_visit, l_push_name);
}

static int l_walk(lua_State *L) {
  return l_collect(L, fs_walk, walk_visit, l_push_entry);
}

/* ---- places ---- */

static int l_real(lua_State *L) {
  const char *path = l_ckpt_path(L, 1);
  char real[PATH_MAX];
  err e = {0};
  if (!realpath(path, real)) {
    err_sys(&e, errno, "cannot resolve %s", path);
    return l_ckpt_err(L, &e);
  }
  lua_pushstring(L, real);
  return 1;
}

static int l_cwd(lua_State *L) {
  char dir[FS_PATH_MAX];
  err e = {0};
  if (!getcwd(dir, sizeof dir)) {
    err_sys(&e, errno, "cannot tell the working directory");
    return l_ckpt_err(L, &e);
  }
  lua_pushstring(L, dir);
  return 1;
}

/* home([user]): the directory that the system's list of users names, or nil. */
static int l_home(lua_State *L) {
  const char *user = luaL_optstring(L, 1, NULL);
  char text[4096];
  struct passwd entry, *found = NULL;
  if (user)
    getpwnam_r(user, &entry, text, sizeof text, &found);
  else
    getpwuid_r(getuid(), &entry, text, sizeof text, &found);
  if (!found) return 0;
  lua_pushstring(L, entry.pw_dir);
  return 1;
}

static int l_space(lua_State *L) {
  const char *path = l_ckpt_path(L, 1);
  struct statvfs v;
  err e = {0};
  if (statvfs(path, &v) < 0) {
    err_sys(&e, errno, "cannot tell the space at %s", path);
    return l_ckpt_err(L, &e);
  }
  lua_createtable(L, 0, 3);
  l_ckpt_set_number(L, "total", (double)v.f_blocks * (double)v.f_frsize);
  l_ckpt_set_number(L, "free", (double)v.f_bfree * (double)v.f_frsize);
  l_ckpt_set_number(L, "available", (double)v.f_bavail * (double)v.f_frsize);
  return 1;
}

/* ---- patterns ---- */

static int l_match(lua_State *L) {
  const char *pattern = l_ckpt_path(L, 1);
  lua_pushboolean(L, match_shell(pattern, l_ckpt_path(L, 2)));
  return 1;
}

/* excluded{patterns}, path */
static int l_excluded(lua_State *L) {
  const char *path = l_ckpt_path(L, 2);
  lua_createtable(L, 0, 1);
  lua_pushvalue(L, 1);
  lua_setfield(L, -2, "exclude");
  const char *const *patterns = l_ckpt_texts(L, lua_gettop(L), "exclude");
  lua_pushboolean(L, match_excluded(patterns, path));
  return 1;
}

void l_ckpt_register_fs(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"read", l_read},         {"stat", l_stat},   {"lstat", l_lstat},
      {"exists", l_exists},     {"list", l_list},   {"readlink", l_readlink},
      {"walk", l_walk},         {"real", l_real},   {"cwd", l_cwd},
      {"home", l_home},         {"space", l_space}, {"match", l_match},
      {"excluded", l_excluded}, {NULL, NULL},
  };
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  l_fs_add_changes(L);
  lua_setfield(L, -2, "fs");
}
