/* For trusted Lua: the process in which policies run (`require "ckpt.core".policy`). What is asked of
 * it, and what it answers, is told by decision/policy_link.h. */
#include <lauxlib.h>
#include <math.h>

#include "base/packed.h"
#include "decision/policy_link.h"
#include "lua_ckpt.h"

static const char link_type[] = "ckpt.policies";

typedef struct link_box {
  policy_link *link; /* NULL: closed */
} link_box;

/* open() -> link, which ends with it */
static int l_open(lua_State *L) {
  err e = {0};
  link_box *box = lua_newuserdata(L, sizeof *box);
  *box = (link_box){0};
  luaL_getmetatable(L, link_type);
  lua_setmetatable(L, -2);
  int rc = policy_link_open(&(policy_link_options){0}, &box->link, &e);
  return rc < 0 ? l_ckpt_fail(L, e.text, rc) : 1;
}

/* Packs the checkpoint on top, of which `metrics` is a JSON text. */
static void l_pack_item(lua_State *L, buf *out) {
  static const char *const flags[] = {"newest", "pinned", "durable"};
  static const char *const numbers[] = {"age",   "number", "step",    "time",
                                        "files", "bytes",  "left_out"};
  static const char *const texts[] = {"name", "dir", "kind", "suspect", "metrics"};
  int at = lua_gettop(L);
  unsigned char bits = 0;
  luaL_checktype(L, at, LUA_TTABLE);
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (l_ckpt_flag(L, at, flags[i])) bits |= (unsigned char)(1 << i);
  packed_put_byte(out, bits);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    packed_put_number(out, l_ckpt_number(L, at, numbers[i], NAN));
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    packed_put_text(out, l_ckpt_text(L, at, texts[i]));
}

/* Puts the list at `index`, if there is one, behind the request. */
static void l_pack(lua_State *L, int index, buf *out) {
  if (lua_isnoneornil(L, index)) return;
  luaL_checktype(L, index, LUA_TTABLE);
  size_t count = lua_objlen(L, index);
  buf_add(out, "", 1);
  for (size_t i = 1; i <= count; i++) {
    lua_rawgeti(L, index, (int)i);
    l_pack_item(L, out);
    lua_pop(L, 1);
  }
}

/* call(request[, list]) -> answer, JSON as the request; nil, text, "EPOLICY" where the process died of
 * it. `list`: checkpoints, which become the list of its event. */
static int l_call(lua_State *L) {
  size_t len;
  link_box *box = luaL_checkudata(L, 1, link_type);
  if (!box->link) luaL_argerror(L, 1, "this link is closed");
  luaL_checktype(L, 2, LUA_TSTRING);
  lua_settop(L, 3);
  const char *text = lua_tolstring(L, 2, &len);
  buf *request = l_ckpt_buf(L, (size_t)POLICY_FRAME_MAX + len),
      *answer = l_ckpt_buf(L, POLICY_FRAME_MAX);
  buf_add(request, text, len);
  l_pack(L, 3, request);
  err e = {0};
  int rc = buf_failed(request);
  if (rc < 0) return l_ckpt_fail(L, "the question is too long for a policy", rc);
  rc = policy_link_call(box->link, request->data, request->len, answer, &e);
  buf_free(request);
  if (rc < 0) return l_ckpt_fail(L, e.text, rc);
  l_ckpt_push_buf(L, answer);
  return 1;
}

static int l_close(lua_State *L) {
  link_box *box = luaL_checkudata(L, 1, link_type);
  policy_link_close(box->link);
  box->link = NULL;
  return 0;
}

void l_ckpt_register_policy(lua_State *L) {
  static const luaL_Reg functions[] = {{"open", l_open}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"call", l_call}, {"close", l_close}, {NULL, NULL}};
  l_ckpt_type(L, link_type, methods, l_close);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "policy");
}
