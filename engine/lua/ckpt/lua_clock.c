/* For trusted Lua: the system's clock (`require "ckpt.core".clock`). */
#include <lauxlib.h>

#include "base/io.h"
#include "base/seconds.h"
#include "lua_ckpt.h"

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
  int64_t ns = l_ckpt_seconds(L, luaL_checknumber(L, 1), "clock.sleep");
  if (ns == SECONDS_FOREVER)
    for (;;) io->sleep(io, ns); /* it is not over after 292 years either */
  io->sleep(io, ns);
  return 0;
}

void l_ckpt_register_clock(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"now", l_now}, {"monotonic", l_monotonic}, {"sleep", l_sleep}, {NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "clock");
}
