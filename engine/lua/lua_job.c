/* For trusted Lua: transfers that go on while Lua does (`require "ckpt.core".job`). */
#include <lauxlib.h>

#include "lua_ckpt.h"

void l_ckpt_register_job(lua_State *L) {
  static const luaL_Reg functions[] = {{NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "job");
}
