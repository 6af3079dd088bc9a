/* For trusted Lua: transfers that go on while Lua does (`require "ckpt.core".job`). They are jobs
 * of the default engine; lua/ckpt/job/job.lua makes objects of them. */
#include <lauxlib.h>

#include "lua_ckpt.h"

static int fail(lua_State *L, ckpt *engine, int code) {
  return l_ckpt_fail(L, ckpt_error(engine), code);
}

/* start{kind=, dir=, uri=, to=, exclude=, merge=, unfinished=, environment=} -> number */
static int l_start(lua_State *L) {
  static const char *const keys[] = {"kind",  "dir",        "uri",         "to", "exclude",
                                     "merge", "unfinished", "environment", NULL};
  static const char *const kinds[] = {"upload", "download", "delete", "copy", NULL};
  l_ckpt_check_keys(L, 1, keys);
  lua_settop(L, 1);
  lua_getfield(L, 1, "kind");
  ckpt_tree_options o = {.size = sizeof o,
                         .kind = (uint32_t)luaL_checkoption(L, 2, NULL, kinds),
                         .flags = (l_ckpt_flag(L, 1, "merge") ? CKPT_TREE_MERGE : 0) |
                                  (l_ckpt_flag(L, 1, "unfinished") ? CKPT_TREE_UNFINISHED : 0),
                         .dir = l_ckpt_text(L, 1, "dir"),
                         .to = l_ckpt_text(L, 1, "to"),
                         .uri = l_ckpt_text(L, 1, "uri"),
                         .excludes = l_ckpt_texts(L, 1, "exclude"),
                         .environment = l_ckpt_texts(L, 1, "environment")};
  ckpt *engine = l_ckpt_engine(L);
  uint64_t job;
  int rc = ckpt_tree(engine, &o, &job);
  if (rc < 0) return fail(L, engine, rc);
  lua_pushnumber(L, (double)job);
  return 1;
}

/* dispatch(milliseconds) -> { { job=, status=, reason=, files=, bytes=, seconds= }, ... }: the jobs
 * that are over. Waits for the first one if there is none, -1: without limit. */
static int l_dispatch(lua_State *L) {
  int timeout = luaL_checkint(L, 1), n = 0;
  ckpt *engine = l_ckpt_engine(L);
  ckpt_completion c = {.size = sizeof c};
  int rc = ckpt_dispatch(engine, timeout);
  if (rc < 0) return fail(L, engine, rc);
  lua_newtable(L);
  while (ckpt_next(engine, &c) == 1) {
    lua_createtable(L, 0, 6);
    l_ckpt_set_number(L, "job", (double)c.job);
    lua_pushfstring(L, c.status == CKPT_OK ? "%s" : "E%s", ckpt_status_name(c.status));
    lua_setfield(L, -2, "status");
    l_ckpt_set_text(L, "reason", c.reason);
    l_ckpt_set_number(L, "files", (double)c.files);
    l_ckpt_set_number(L, "bytes", (double)c.bytes);
    l_ckpt_set_number(L, "seconds", c.seconds);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* cancel(number) -> true; its end still follows */
static int l_cancel(lua_State *L) {
  uint64_t job = (uint64_t)luaL_checknumber(L, 1);
  ckpt *engine = l_ckpt_engine(L);
  int rc = ckpt_cancel(engine, job);
  if (rc < 0) return fail(L, engine, rc);
  lua_pushboolean(L, 1);
  return 1;
}

/* progress(number) -> bytes done, bytes in all */
static int l_progress(lua_State *L) {
  uint64_t job = (uint64_t)luaL_checknumber(L, 1), done, total;
  ckpt *engine = l_ckpt_engine(L);
  int rc = ckpt_tree_progress(engine, job, &done, &total);
  if (rc < 0) return fail(L, engine, rc);
  lua_pushnumber(L, (double)done);
  lua_pushnumber(L, (double)total);
  return 2;
}

void l_ckpt_register_job(lua_State *L) {
  static const luaL_Reg functions[] = {{"start", l_start},
                                       {"dispatch", l_dispatch},
                                       {"cancel", l_cancel},
                                       {"progress", l_progress},
                                       {NULL, NULL}};
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "job");
}
