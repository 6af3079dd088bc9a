/* For trusted Lua: archives (`require "ckpt.core".tar`). A helper process does the work; both
 * block. */
#include <lauxlib.h>

#include "lua_ckpt.h"

static int l_done(lua_State *L, ckpt *engine, int rc) {
  if (rc < 0) return l_ckpt_fail(L, ckpt_error(engine), rc);
  lua_pushboolean(L, 1);
  return 1;
}

/* pack{dir=, file=} -> true */
static int l_pack(lua_State *L) {
  static const char *const keys[] = {"dir", "file", NULL};
  l_ckpt_check_keys(L, 1, keys);
  ckpt_archive_options o = {
      .size = sizeof o, .dir = l_ckpt_text(L, 1, "dir"), .file = l_ckpt_text(L, 1, "file")};
  ckpt *engine = l_ckpt_engine(L);
  return l_done(L, engine, ckpt_pack(engine, &o));
}

/* unpack{dir=, file=, bytes_max=, entries_max=} -> true */
static int l_unpack(lua_State *L) {
  static const char *const keys[] = {"dir", "file", "bytes_max", "entries_max", NULL};
  l_ckpt_check_keys(L, 1, keys);
  ckpt_archive_options o = {.size = sizeof o,
                            .dir = l_ckpt_text(L, 1, "dir"),
                            .file = l_ckpt_text(L, 1, "file"),
                            .bytes_max = (uint64_t)l_ckpt_number(L, 1, "bytes_max", 0),
                            .entries_max = (uint64_t)l_ckpt_number(L, 1, "entries_max", 0)};
  ckpt *engine = l_ckpt_engine(L);
  return l_done(L, engine, ckpt_unpack(engine, &o));
}

void l_ckpt_register_tar(lua_State *L) {
  static const luaL_Reg functions[] = {{"pack", l_pack}, {"unpack", l_unpack}, {NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "tar");
}
