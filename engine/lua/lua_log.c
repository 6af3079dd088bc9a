/* For trusted Lua: the log (`require "ckpt.core".log`). */
#include <lauxlib.h>

#include "lua_ckpt.h"

void l_ckpt_register_log(lua_State *L) {
  static const luaL_Reg functions[] = {{NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "log");
}
