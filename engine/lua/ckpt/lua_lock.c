/* For trusted Lua: locks of this host (`require "ckpt.core".lock`). */
#include <fcntl.h>
#include <lauxlib.h>

#include "base/io.h"
#include "lua_ckpt.h"
#include "prims/lock.h"

static const char lock_type[] = "ckpt.lock";

/* True if the path leads to the file that is locked. The last holder may have removed it while we
 * opened it, and then somebody else may lock another one of that name. */
static bool stands(const char *path, const lock *l) {
  const io *io = io_system();
  struct stat held, there;
  if (io->fstat(io, l->fd, &held) < 0 || io->lstat(io, AT_FDCWD, path, &there) < 0) return false;
  return held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

static int take(const char *path, bool exclusive, lock *l, err *e) {
  while (true) {
    int rc = lock_take(path, exclusive, l, e);
    if (rc < 0 || stands(path, l)) return rc;
    lock_drop(l);
  }
}

/* try(path, shared) -> lock, which is dropped with it */
static int l_try(lua_State *L) {
  const char *path = l_ckpt_path(L, 1);
  bool shared = lua_toboolean(L, 2);
  err e = {0};
  lock *l = lua_newuserdata(L, sizeof *l);
  *l = (lock){.fd = -1};
  luaL_getmetatable(L, lock_type);
  lua_setmetatable(L, -2);
  return take(path, !shared, l, &e) < 0 ? l_ckpt_err(L, &e) : 1;
}

static int l_drop(lua_State *L) {
  lock_drop(luaL_checkudata(L, 1, lock_type));
  return 0;
}

void l_ckpt_register_lock(lua_State *L) {
  static const luaL_Reg functions[] = {{"try", l_try}, {"drop", l_drop}, {NULL, NULL}};
  luaL_newmetatable(L, lock_type);
  lua_pushcfunction(L, l_drop);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "lock");
}
