/* For trusted Lua: programs that run beside the script (`require "ckpt.core".command`). */
#include <lauxlib.h>

#include "lua_ckpt.h"

void l_ckpt_register_command(lua_State *L) {
  static const luaL_Reg functions[] = {{NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "command");
}
