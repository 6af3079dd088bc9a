/* For trusted Lua: locks of open files (`require "ckpt.core".lock`). */
#include <lauxlib.h>

#include "lua_ckpt.h"

void l_ckpt_register_lock(lua_State *L) {
  static const luaL_Reg functions[] = {{NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "lock");
}
