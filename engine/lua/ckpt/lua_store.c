/* For trusted Lua: places where checkpoints live (`require "ckpt.core".store`). Calls block. What
 * lua/ckpt/store/store.lua hands out has these methods. */
#include <errno.h>
#include <lauxlib.h>
#include <string.h>

#include "base/uri.h"
#include "lua_ckpt.h"
#include "store/store.h"

static const char type_name[] = "ckpt.store";

/* One get() returns at most so many bytes. */
enum { GET_MAX = 1 << 30 };

typedef struct store_box {
  store *store; /* NULL: closed */
  io io;        /* with the environment of this store */
} store_box;

static store *l_store(lua_State *L) {
  store_box *box = luaL_checkudata(L, 1, type_name);
  if (!box->store) luaL_argerror(L, 1, "this store is closed");
  return box->store;
}

/* A text without a NUL, which no key can have. */
static const char *l_key(lua_State *L, int index) {
  size_t len;
  const char *key = luaL_checklstring(L, index, &len);
  luaL_argcheck(L, strlen(key) == len, index, "a key has no byte 0");
  return key;
}

static int l_done(lua_State *L, int rc, const err *e) {
  if (rc < 0) return l_ckpt_err(L, e);
  lua_pushboolean(L, 1);
  return 1;
}

/* open(uri[, { environment= }]) -> store */
static int l_open(lua_State *L) {
  uri where;
  err e = {0};
  const char *text = l_key(L, 1);
  static const char *const keys[] = {"environment", NULL};
  const char *const *laid = NULL;
  if (!lua_isnoneornil(L, 2)) {
    l_ckpt_check_keys(L, 2, keys);
    laid = l_ckpt_texts(L, 2, "environment");
  }
  store_box *box = lua_newuserdata(L, sizeof *box);
  *box = (store_box){0};
  luaL_getmetatable(L, type_name);
  lua_setmetatable(L, -2);
  int rc = io_lay(io_system(), laid, &box->io);
  if (rc == -EINVAL)
    return l_ckpt_fail(L, "open: `environment` is a list of NAME=VALUE", CKPT_EINVAL);
  if (rc < 0) return l_ckpt_fail(L, "open: out of memory", CKPT_ENOMEM);
  rc = uri_parse(text, &where, &e);
  if (rc == 0) rc = store_open(&where, &box->io, NULL, &box->store, &e);
  if (rc == 0) rc = store_spell(box->store, "", STORE_SPELT_PLAIN, &e);
  return rc < 0 ? l_ckpt_err(L, &e) : 1;
}

static int l_close(lua_State *L) {
  store_box *box = luaL_checkudata(L, 1, type_name);
  store_close(box->store);
  box->store = NULL;
  io_lay_free(&box->io);
  return 0;
}

/* ---- reading ---- */

static int l_get_part(lua_State *L, store *s, const char *key) {
  double from = luaL_checknumber(L, 3), len = luaL_checknumber(L, 4);
  luaL_argcheck(L, from >= 0 && from < 9e15, 3, "an offset is 0 or more");
  luaL_argcheck(L, len >= 0 && len <= GET_MAX, 4, "a length is 0 to 1 GiB");
  err e = {0};
  buf *b = l_ckpt_buf(L, GET_MAX);
  char *to = len > 0 ? buf_reserve(b, (size_t)len) : NULL;
  if (len > 0 && !to) return l_ckpt_fail(L, "get: out of memory", CKPT_ENOMEM);
  ssize_t got = s->ops->read(s, key, (uint64_t)from, to ? to : "", (size_t)len, &e);
  if (got < 0) return l_ckpt_err(L, &e);
  if (len > 0) buf_grown(b, (size_t)got);
  l_ckpt_push_buf(L, b);
  return 1;
}

/* get(key[, from, len]) -> data */
static int l_get(lua_State *L) {
  store *s = l_store(L);
  const char *key = l_key(L, 2);
  err e = {0};
  if (!lua_isnoneornil(L, 3)) return l_get_part(L, s, key);
  buf *b = l_ckpt_buf(L, GET_MAX);
  if (s->ops->get(s, key, b, &e) < 0) return l_ckpt_err(L, &e);
  l_ckpt_push_buf(L, b);
  return 1;
}

static void l_push_object(lua_State *L, const store_object *o) {
  lua_createtable(L, 0, 2);
  l_ckpt_set_number(L, "size", (double)o->size);
  if (o->mtime_ns) l_ckpt_set_number(L, "mtime", (double)o->mtime_ns / 1e9);
}

/* head(key) -> { size=, mtime= } */
static int l_head(lua_State *L) {
  store *s = l_store(L);
  store_object o;
  err e = {0};
  if (s->ops->head(s, l_key(L, 2), &o, &e) < 0) return l_ckpt_err(L, &e);
  l_push_object(L, &o);
  return 1;
}

/* exists(key) -> boolean */
static int l_exists(lua_State *L) {
  store *s = l_store(L);
  store_object o;
  err e = {0};
  int rc = s->ops->head(s, l_key(L, 2), &o, &e);
  if (rc < 0 && rc != ERR_NOENT) return l_ckpt_err(L, &e);
  lua_pushboolean(L, rc == 0);
  return 1;
}

/* get_tagged(key) -> data, tag */
static int l_get_tagged(lua_State *L) {
  store *s = l_store(L);
  char tag[STORE_TAG_MAX];
  err e = {0};
  if (!s->ops->get_tagged) return l_ckpt_fail(L, "this store has no tags", CKPT_EUNSUPPORTED);
  buf *b = l_ckpt_buf(L, GET_MAX);
  if (s->ops->get_tagged(s, l_key(L, 2), b, tag, &e) < 0) return l_ckpt_err(L, &e);
  l_ckpt_push_buf(L, b);
  lua_pushstring(L, tag);
  return 2;
}

/* ---- listing ---- */

typedef struct listed {
  const char *key;
  bool is_prefix;
  store_object object;
} listed;

static void l_push_listed(lua_State *L, const void *record) {
  const listed *at = record;
  if (at->is_prefix)
    lua_createtable(L, 0, 2);
  else
    l_push_object(L, &at->object);
  l_ckpt_set_text(L, "key", at->key);
  if (!at->is_prefix) return;
  lua_pushboolean(L, 1);
  lua_setfield(L, -2, "prefix");
}

static int on_listed(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  listed at = {.key = key, .is_prefix = is_prefix};
  if (object) at.object = *object;
  return ckpt_relay_send(ctx, &at);
}

/* list(prefix, delimited) -> { { key=, size=, mtime= } or { key=, prefix=true }, ... } */
static int l_list(lua_State *L) {
  store *s = l_store(L);
  const char *prefix = lua_isnoneornil(L, 2) ? "" : l_key(L, 2);
  bool delimited = lua_toboolean(L, 3);
  ckpt_relay r;
  err e = {0};
  lua_settop(L, 3);
  l_ckpt_begin(&r, L, 4, l_push_listed);
  int rc = s->ops->list(s, prefix, delimited, on_listed, &r, &e);
  l_ckpt_end(&r);
  return rc < 0 ? l_ckpt_err(L, &e) : 1;
}

/* ---- writing ---- */

static int l_put_how(lua_State *L, store_how how) {
  store *s = l_store(L);
  size_t len;
  const char *key = l_key(L, 2), *data = luaL_checklstring(L, 3, &len);
  err e = {0};
  return l_done(L, s->ops->put(s, key, data, len, how, &e), &e);
}

/* put(key, data) -> true */
static int l_put(lua_State *L) {
  return l_put_how(L, STORE_REPLACE);
}

/* put_if_absent(key, data) -> true */
static int l_put_if_absent(lua_State *L) {
  return l_put_how(L, STORE_IF_ABSENT);
}

/* replace_if(key, data, tag) -> true */
static int l_replace_if(lua_State *L) {
  store *s = l_store(L);
  size_t len;
  const char *key = l_key(L, 2), *data = luaL_checklstring(L, 3, &len), *tag = l_key(L, 4);
  err e = {0};
  if (!s->ops->replace_if) return l_ckpt_fail(L, "this store has no tags", CKPT_EUNSUPPORTED);
  return l_done(L, s->ops->replace_if(s, key, data, len, tag, &e), &e);
}

/* delete(key) -> true */
static int l_delete(lua_State *L) {
  store *s = l_store(L);
  err e = {0};
  return l_done(L, s->ops->remove(s, l_key(L, 2), &e), &e);
}

/* delete_prefix(prefix) -> true */
static int l_delete_prefix(lua_State *L) {
  store *s = l_store(L);
  err e = {0};
  return l_done(L, s->ops->remove_prefix(s, l_key(L, 2), &e), &e);
}

/* caps() -> { if_absent=, publish=, resume=, tags= } */
static int l_caps(lua_State *L) {
  static const struct {
    const char *name;
    store_cap cap;
  } caps[] = {{"if_absent", STORE_CAP_IF_ABSENT},
              {"publish", STORE_CAP_PUBLISH},
              {"resume", STORE_CAP_RESUME}};
  store *s = l_store(L);
  lua_newtable(L);
  for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
    lua_pushboolean(L, store_can(s, caps[i].cap));
    lua_setfield(L, -2, caps[i].name);
  }
  lua_pushboolean(L, s->ops->replace_if != NULL);
  lua_setfield(L, -2, "tags");
  return 1;
}

static void push_schemes(lua_State *L) {
  const char *scheme;
  lua_newtable(L);
  for (int i = 0; (scheme = store_scheme((size_t)i)); i++) {
    lua_pushstring(L, scheme);
    lua_rawseti(L, -2, i + 1);
  }
}

void l_ckpt_register_store(lua_State *L) {
  static const luaL_Reg functions[] = {{"open", l_open}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"get", l_get},
                                     {"get_tagged", l_get_tagged},
                                     {"head", l_head},
                                     {"exists", l_exists},
                                     {"list", l_list},
                                     {"put", l_put},
                                     {"put_if_absent", l_put_if_absent},
                                     {"replace_if", l_replace_if},
                                     {"delete", l_delete},
                                     {"delete_prefix", l_delete_prefix},
                                     {"caps", l_caps},
                                     {"close", l_close},
                                     {NULL, NULL}};
  l_ckpt_type(L, type_name, methods, l_close);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  push_schemes(L);
  lua_setfield(L, -2, "schemes");
  lua_setfield(L, -2, "store");
}
