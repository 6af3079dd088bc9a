/* For trusted Lua: places where checkpoints live (`require "ckpt.core".store`). */
#include <lauxlib.h>

#include "lua_ckpt.h"

void l_ckpt_register_store(lua_State *L) {
  static const luaL_Reg functions[] = {{NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "store");
}
