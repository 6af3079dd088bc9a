/* For trusted Lua: the system's clock (`require "ckpt.core".clock`). */
#include <lauxlib.h>

#include "base/io.h"
#include "lua_ckpt.h"

/* So many seconds at a time fit, whatever is asked for: math.huge waits for ever. */
enum { NAP_S = 1 << 20 };

static int push_time(lua_State *L, io_clock clock) {
  const io *io = io_system();
  lua_pushnumber(L, (double)io->now(io, clock) / 1e9);
  return 1;
}

static int l_now(lua_State *L) {
  return push_time(L, IO_WALL);
}

static int l_monotonic(lua_State *L) {
  return push_time(L, IO_MONO);
}

static int l_sleep(lua_State *L) {
  const io *io = io_system();
  double left = luaL_checknumber(L, 1);
  while (left > 0) {
    double nap = left < NAP_S ? left : NAP_S;
    io->sleep(io, (int64_t)(nap * 1e9));
    left -= nap;
  }
  return 0;
}

void l_ckpt_register_clock(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"now", l_now}, {"monotonic", l_monotonic}, {"sleep", l_sleep}, {NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "clock");
}
