#include "lua_ckpt.h"

#include <lauxlib.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/seconds.h"

/* ---- arguments ---- */

int l_ckpt_fail(lua_State *L, const char *text, int code) {
  lua_pushnil(L);
  lua_pushstring(L, text);
  lua_pushfstring(L, "E%s", ckpt_status_name(code));
  return 3;
}

int l_ckpt_err(lua_State *L, const err *e) {
  return l_ckpt_fail(L, e->text, e->code);
}

const char *l_ckpt_path(lua_State *L, int index) {
  size_t len;
  if (lua_istable(L, index))
    luaL_argerror(L, index,
                  "a path is a text, not a table; where a Checkpoint's files are, its "
                  "to_directory() or as_directory(fn) tell");
  luaL_checktype(L, index, LUA_TSTRING);
  const char *path = lua_tolstring(L, index, &len);
  if (strlen(path) != len) luaL_argerror(L, index, "a path has no NUL byte");
  return path;
}

static int l_free_buf(lua_State *L) {
  buf_free(lua_touserdata(L, 1));
  return 0;
}

buf *l_ckpt_buf(lua_State *L, size_t max) {
  buf *b = lua_newuserdata(L, sizeof *b);
  buf_init(b, max);
  if (luaL_newmetatable(L, "ckpt.buf")) {
    lua_pushcfunction(L, l_free_buf);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  return b;
}

void l_ckpt_push_buf(lua_State *L, buf *b) {
  lua_pushlstring(L, b->data ? b->data : "", b->len);
  buf_free(b);
}

static int fail(lua_State *L, ckpt *engine, int code) {
  return l_ckpt_fail(L, ckpt_error(engine), code);
}

/* Pushes the member; false if it is absent. */
static bool l_member(lua_State *L, int table, const char *name, int type) {
  lua_getfield(L, table, name);
  if (lua_isnil(L, -1)) return false;
  if (lua_type(L, -1) != type)
    luaL_error(L, "`%s` is a %s, not a %s", name, luaL_typename(L, -1), lua_typename(L, type));
  return true;
}

const char *l_ckpt_text(lua_State *L, int table, const char *name) {
  const char *text = l_member(L, table, name, LUA_TSTRING) ? lua_tostring(L, -1) : NULL;
  lua_pop(L, 1);
  return text;
}

double l_ckpt_number(lua_State *L, int table, const char *name, double otherwise) {
  double n = l_member(L, table, name, LUA_TNUMBER) ? lua_tonumber(L, -1) : otherwise;
  lua_pop(L, 1);
  return n;
}

int64_t l_ckpt_seconds(lua_State *L, double seconds, const char *what) {
  int64_t ns = 0;
  err e = {0};
  if (seconds_to_ns(seconds, what, &ns, &e) < 0) luaL_error(L, "%s", e.text);
  return ns;
}

bool l_ckpt_flag(lua_State *L, int table, const char *name) {
  bool set = l_member(L, table, name, LUA_TBOOLEAN) && lua_toboolean(L, -1);
  lua_pop(L, 1);
  return set;
}

const char *const *l_ckpt_texts(lua_State *L, int table, const char *name) {
  if (!l_member(L, table, name, LUA_TTABLE)) return NULL;
  int list = lua_gettop(L);
  size_t n = lua_objlen(L, list);
  const char **texts = lua_newuserdata(L, (n + 1) * sizeof *texts);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, list, (int)i + 1);
    if (lua_type(L, -1) != LUA_TSTRING) luaL_error(L, "`%s` is not a list of texts", name);
    texts[i] = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  texts[n] = NULL;
  return texts;
}

void l_ckpt_check_keys(lua_State *L, int table, const char *const *known) {
  luaL_checktype(L, table, LUA_TTABLE);
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
    const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
    const char *const *at = known;
    while (key && *at && strcmp(key, *at) != 0) at++;
    if (!key || !*at) luaL_error(L, "unknown option %s", key ? key : luaL_typename(L, -2));
  }
}

/* ---- records ---- */

void l_ckpt_set_text(lua_State *L, const char *name, const char *value) {
  if (!value || !*value) return;
  lua_pushstring(L, value);
  lua_setfield(L, -2, name);
}

void l_ckpt_set_number(lua_State *L, const char *name, double value) {
  lua_pushnumber(L, value);
  lua_setfield(L, -2, name);
}

static double seconds(int64_t ns) {
  return (double)ns / 1e9;
}

static void l_push_item(lua_State *L, const void *record) {
  static const char *const lives[] = {"live", "dropped", "deleted"};
  const ckpt_item *item = record;
  lua_createtable(L, 0, 16);
  l_ckpt_set_text(L, "group", item->group);
  l_ckpt_set_text(L, "name", item->name);
  l_ckpt_set_text(L, "dir", item->dir);
  if (item->step >= 0) l_ckpt_set_number(L, "step", (double)item->step);
  l_ckpt_set_number(L, "time", seconds(item->time_ns));
  l_ckpt_set_number(L, "files", (double)item->files);
  l_ckpt_set_number(L, "bytes", (double)item->bytes);
  l_ckpt_set_number(L, "number", (double)item->number);
  l_ckpt_set_text(L, "root", item->root);
  l_ckpt_set_text(L, "uri", item->uri);
  l_ckpt_set_text(L, "policy", item->policy);
  l_ckpt_set_text(L, "reason", item->reason);
  l_ckpt_set_text(L, "metrics", item->metrics);
  l_ckpt_set_text(L, "life", item->life < 3 ? lives[item->life] : NULL);
  l_ckpt_set_text(L, "drop_policy", item->drop_policy);
  l_ckpt_set_text(L, "drop_reason", item->drop_reason);
  if (item->drop_ns) l_ckpt_set_number(L, "drop_time", seconds(item->drop_ns));
}

static void l_push_verified(lua_State *L, const void *record) {
  const ckpt_verified *v = record;
  if (v->item)
    l_push_item(L, v->item);
  else
    lua_createtable(L, 0, 4);
  lua_pushboolean(L, v->status == CKPT_OK);
  lua_setfield(L, -2, "ok");
  lua_pushfstring(L, v->status == CKPT_OK ? "%s" : "E%s", ckpt_status_name(v->status));
  lua_setfield(L, -2, "status");
  l_ckpt_set_text(L, "finding", v->reason);
  l_ckpt_set_number(L, "findings", v->findings);
  l_ckpt_set_text(L, "links", v->links);
  l_ckpt_set_number(L, "link_count", v->link_count);
}

void l_ckpt_push_finding(lua_State *L, const void *record) {
  const ckpt_finding *f = record;
  lua_createtable(L, 0, 3);
  l_ckpt_set_text(L, "topic", f->topic);
  l_ckpt_set_text(L, "text", f->text);
  if (f->time_ns) l_ckpt_set_number(L, "time", seconds(f->time_ns));
}

void l_ckpt_type(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction close) {
  luaL_newmetatable(L, name);
  lua_newtable(L);
  luaL_register(L, NULL, methods);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, close);
  lua_setfield(L, -2, "__gc");
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 1);
}

/* ---- out of the engine and back ---- */

void l_ckpt_begin(ckpt_relay *r, lua_State *L, int index,
                  void (*push)(lua_State *L, const void *record)) {
  *r = (ckpt_relay){.L = L, .push = push};
  if (lua_isfunction(L, index))
    lua_pushvalue(L, index);
  else
    lua_newtable(L);
  r->to = luaL_ref(L, LUA_REGISTRYINDEX);
}

static int l_send(lua_State *L) {
  ckpt_relay *r = lua_touserdata(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, r->to);
  r->push(L, r->record);
  if (lua_isfunction(L, -2))
    lua_call(L, 1, 0);
  else
    lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
  return 0;
}

int ckpt_relay_send(ckpt_relay *r, const void *record) {
  r->record = record;
  r->failed = lua_cpcall(r->L, l_send, r) != 0;
  return r->failed;
}

void l_ckpt_end(ckpt_relay *r) {
  lua_State *L = r->L;
  if (r->failed) {
    luaL_unref(L, LUA_REGISTRYINDEX, r->to);
    lua_error(L);
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, r->to);
  luaL_unref(L, LUA_REGISTRYINDEX, r->to);
  if (lua_isfunction(L, -1)) {
    lua_pop(L, 1);
    lua_pushnil(L);
  }
}

static int on_item(void *ctx, const ckpt_item *item) {
  return ckpt_relay_send(ctx, item);
}

static int on_verified(void *ctx, const ckpt_verified *verified) {
  return ckpt_relay_send(ctx, verified);
}

static int on_finding(void *ctx, const ckpt_finding *finding) {
  return ckpt_relay_send(ctx, finding);
}

/* ---- functions ---- */

/* weigh(text[, entries]): makes the checks of js_parse() on a text that others wrote, before Lua
 * makes tables of it. With `entries` it is a record of ours of so many, which has bounds of its
 * own. */
static int l_weigh(lua_State *L) {
  enum { VALUES = 10 }; /* of one entry */
  size_t len;
  err e = {0};
  const char *text = luaL_checklstring(L, 1, &len);
  lua_Integer entries = luaL_optinteger(L, 2, 0);
  size_t most = entries > 0 ? (size_t)entries : 0;
  int rc = most ? js_check_weight(text, len, most + 2, VALUES * most, "JSON", &e)
                : js_weigh(text, len, "JSON", &e);
  if (rc < 0) return l_ckpt_err(L, &e);
  lua_pushboolean(L, 1);
  return 1;
}

static int l_version(lua_State *L) {
  lua_pushstring(L, ckpt_version());
  return 1;
}

/* list(uri) -> { item, ... } */
static int l_list(lua_State *L) {
  const char *uri = luaL_checkstring(L, 1);
  ckpt *engine = l_ckpt_engine(L);
  ckpt_relay r;
  l_ckpt_begin(&r, L, 2, l_push_item);
  int rc = ckpt_list(engine, uri, on_item, &r);
  l_ckpt_end(&r);
  return rc < 0 ? fail(L, engine, rc) : 1;
}

/* restore{uri=, name=, dir=, only=, dry_run=} -> { item, ... } */
static int l_restore(lua_State *L) {
  static const char *const keys[] = {"uri", "name", "dir", "only", "dry_run", NULL};
  l_ckpt_check_keys(L, 1, keys);
  ckpt_restore_options options = {.size = sizeof options,
                                  .uri = l_ckpt_text(L, 1, "uri"),
                                  .name = l_ckpt_text(L, 1, "name"),
                                  .dir = l_ckpt_text(L, 1, "dir"),
                                  .only = l_ckpt_texts(L, 1, "only"),
                                  .flags = l_ckpt_flag(L, 1, "dry_run") ? CKPT_DRY_RUN : 0};
  luaL_argcheck(L, options.uri, 1, "`uri` is missing");
  luaL_argcheck(L, options.dir, 1, "`dir` is missing");
  ckpt *engine = l_ckpt_engine(L);
  ckpt_relay r;
  l_ckpt_begin(&r, L, 2, l_push_item);
  int rc = ckpt_restore(engine, &options, on_item, &r);
  l_ckpt_end(&r);
  return rc < 0 ? fail(L, engine, rc) : 1;
}

/* verify(uri[, name][, fn]) -> { record, ... } or, with a function, true; with what is bad: nil,
 * text, "ECORRUPT", records. */
static int l_verify(lua_State *L) {
  const char *uri = luaL_checkstring(L, 1);
  bool has_name = !lua_isfunction(L, 2);
  const char *name = has_name ? luaL_optstring(L, 2, NULL) : NULL;
  ckpt *engine = l_ckpt_engine(L);
  ckpt_relay r;
  lua_settop(L, 3);
  l_ckpt_begin(&r, L, has_name ? 3 : 2, l_push_verified);
  int rc = ckpt_verify(engine, uri, name, on_verified, &r);
  l_ckpt_end(&r);
  if (rc >= 0 && lua_isnil(L, -1)) lua_pushboolean(L, 1);
  if (rc >= 0) return 1;
  fail(L, engine, rc);
  lua_pushvalue(L, 4);
  return 4;
}

static void l_push_examined(lua_State *L, const void *record) {
  static const char *const words[] = {"fine", "note", "warning", "fault"};
  const ckpt_examined *x = record;
  lua_createtable(L, 0, 5);
  l_ckpt_set_text(L, "topic", x->topic);
  l_ckpt_set_text(L, "word", words[x->word]);
  if (x->status) l_ckpt_set_text(L, "status", ckpt_status_name(x->status));
  l_ckpt_set_text(L, "text", x->text);
  l_ckpt_set_text(L, "advice", x->advice);
}

static void on_examined(void *ctx, const ckpt_examined *examined) {
  ckpt_relay_send(ctx, examined);
}

/* doctor(uri) -> { record, ... }; where saving would fail: nil, text, the error's name, records */
static int l_doctor(lua_State *L) {
  const char *uri = luaL_checkstring(L, 1);
  ckpt *engine = l_ckpt_engine(L);
  ckpt_relay r;
  lua_settop(L, 3);
  l_ckpt_begin(&r, L, 2, l_push_examined);
  int rc = ckpt_doctor(engine, uri, on_examined, &r);
  l_ckpt_end(&r);
  if (rc >= 0) return 1;
  fail(L, engine, rc);
  lua_pushvalue(L, 4);
  return 4;
}

/* show(uri[, name]) -> a JSON text */
static int l_show(lua_State *L) {
  const char *json, *uri = luaL_checkstring(L, 1), *name = luaL_optstring(L, 2, NULL);
  ckpt *engine = l_ckpt_engine(L);
  int rc = ckpt_show(engine, uri, name, &json);
  if (rc < 0) return fail(L, engine, rc);
  lua_pushstring(L, json);
  return 1;
}

/* pin(uri, name[, seconds]) -> id */
static int l_pin(lua_State *L) {
  char id[33];
  const char *uri = luaL_checkstring(L, 1), *name = luaL_checkstring(L, 2);
  double duration = luaL_optnumber(L, 3, 0);
  ckpt *engine = l_ckpt_engine(L);
  int rc = ckpt_pin(engine, uri, name, duration, id);
  if (rc < 0) return fail(L, engine, rc);
  lua_pushstring(L, id);
  return 1;
}

/* unpin(uri, name_or_id) -> how many */
static int l_unpin(lua_State *L) {
  const char *uri = luaL_checkstring(L, 1), *name = luaL_checkstring(L, 2);
  ckpt *engine = l_ckpt_engine(L);
  int rc = ckpt_unpin(engine, uri, name);
  if (rc < 0) return fail(L, engine, rc);
  lua_pushinteger(L, rc);
  return 1;
}

/* remove{uri=, name=, all=, dry_run=, grace_delete=} -> { item, ... } */
static int l_remove(lua_State *L) {
  static const char *const keys[] = {"uri", "name", "all", "dry_run", "grace_delete", NULL};
  l_ckpt_check_keys(L, 1, keys);
  ckpt_remove_options options = {.size = sizeof options,
                                 .uri = l_ckpt_text(L, 1, "uri"),
                                 .name = l_ckpt_text(L, 1, "name"),
                                 .grace_delete_s = l_ckpt_number(L, 1, "grace_delete", 0)};
  if (l_ckpt_flag(L, 1, "all")) options.flags |= CKPT_REMOVE_ALL;
  if (l_ckpt_flag(L, 1, "dry_run")) options.flags |= CKPT_DRY_RUN;
  luaL_argcheck(L, options.uri, 1, "`uri` is missing");
  ckpt *engine = l_ckpt_engine(L);
  ckpt_relay r;
  l_ckpt_begin(&r, L, 2, l_push_item);
  int rc = ckpt_remove(engine, &options, on_item, &r);
  l_ckpt_end(&r);
  return rc < 0 ? fail(L, engine, rc) : 1;
}

/* why{name=, dir=, state=, to=} -> cause, text, { finding, ... } */
static int l_why(lua_State *L) {
  static const char *const keys[] = {"name", "dir", "state", "to", NULL};
  const char *cause, *text;
  l_ckpt_check_keys(L, 1, keys);
  ckpt_why_options options = {.size = sizeof options,
                              .name = l_ckpt_text(L, 1, "name"),
                              .dir = l_ckpt_text(L, 1, "dir"),
                              .state = l_ckpt_text(L, 1, "state"),
                              .to = l_ckpt_text(L, 1, "to")};
  luaL_argcheck(L, options.name, 1, "`name` is missing");
  ckpt *engine = l_ckpt_engine(L);
  ckpt_relay r;
  l_ckpt_begin(&r, L, 2, l_ckpt_push_finding);
  int rc = ckpt_why(engine, &options, on_finding, &r, &cause, &text);
  l_ckpt_end(&r);
  if (rc < 0) return fail(L, engine, rc);
  lua_pushstring(L, cause);
  lua_pushstring(L, text);
  lua_pushvalue(L, -3);
  return 3;
}

/* Finds the helper programs. As the module of another LuaJIT we lie where nobody would look for
 * them. It is done when we are loaded, because the name that we were found by may be relative to a
 * directory that the program leaves. */
static void find_helpers(void) {
  static const struct {
    const char *tail, *helpers;
  } places[] = {
      {"/lib/lua/5.1/ckpt/core.so", "/libexec/ckpt-lua"}, /* installed */
      {"/lua/ckpt/core.so", "/libexec"},                  /* where it was built */
  };
  static const char here = 0;
  Dl_info info;
  char path[PATH_MAX];
  if (dladdr(&here, &info) == 0 || !info.dli_fname || !realpath(info.dli_fname, path)) return;
  size_t len = strlen(path);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    size_t tail = strlen(places[i].tail);
    if (len < tail || strcmp(path + len - tail, places[i].tail) != 0) continue;
    memcpy(path + len - tail, places[i].helpers, strlen(places[i].helpers) + 1);
    if (access(path, X_OK) == 0) setenv("CKPT_LIBEXEC", path, 0);
    return;
  }
}

__attribute__((visibility("default"))) int luaopen_ckpt_core(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"version", l_version}, {"list", l_list},   {"restore", l_restore}, {"verify", l_verify},
      {"show", l_show},       {"pin", l_pin},     {"unpin", l_unpin},     {"remove", l_remove},
      {"why", l_why},         {"weigh", l_weigh}, {"doctor", l_doctor},   {NULL, NULL},
  };
  find_helpers();
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  l_ckpt_register_engine(L);
  l_ckpt_register_fs(L);
  l_ckpt_register_lock(L);
  l_ckpt_register_digest(L);
  l_ckpt_register_clock(L);
  l_ckpt_register_log(L);
  l_ckpt_register_store(L);
  l_ckpt_register_job(L);
  l_ckpt_register_tar(L);
  l_ckpt_register_command(L);
  l_ckpt_register_policy(L);
  return 1;
}
