#include "policy_items.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

#include "policy_json.h"

/* As decision/policy_impl.h has them. */
enum { NEWEST = 1, PINNED = 2, DURABLE = 4, FLAGS = 7, MEMBERS = 14 };

static void l_broken(lua_State *L) {
  luaL_error(L, "the list of the question is broken");
}

static void l_number(lua_State *L, packed *from, const char *key) {
  double value;
  if (!packed_number(from, &value)) l_broken(L);
  if (isnan(value)) return;
  lua_pushnumber(L, value);
  lua_setfield(L, -2, key);
}

static void l_text(lua_State *L, packed *from, const char *key) {
  const char *text;
  size_t len;
  if (!packed_text(from, &text, &len)) l_broken(L);
  if (!text) return;
  lua_pushlstring(L, text, len);
  lua_setfield(L, -2, key);
}

static void l_flag(lua_State *L, bool yes, const char *key) {
  lua_pushboolean(L, yes);
  lua_setfield(L, -2, key);
}

/* A text that is no object, from a log, is left out. */
static void l_metrics(lua_State *L, packed *from, json_t **held) {
  const char *text;
  size_t len;
  if (!packed_text(from, &text, &len)) l_broken(L);
  if (!text || js_parse(text, len, "metrics", held, NULL) < 0) return;
  if (json_is_object(*held)) {
    policy_push_numbers(L, *held);
    lua_setfield(L, -2, "metrics");
  }
  json_decref(*held);
  *held = NULL;
}

static void l_item(lua_State *L, packed *from, json_t **held) {
  unsigned char flags;
  if (!packed_byte(from, &flags) || (flags & ~FLAGS)) l_broken(L);
  lua_createtable(L, 0, MEMBERS);
  l_number(L, from, "age");
  l_number(L, from, "number");
  l_number(L, from, "step");
  l_number(L, from, "time");
  l_number(L, from, "files");
  l_number(L, from, "bytes");
  l_number(L, from, "left_out");
  l_text(L, from, "name");
  l_text(L, from, "dir");
  l_text(L, from, "kind");
  l_text(L, from, "suspect");
  l_metrics(L, from, held);
  l_flag(L, flags & NEWEST, "newest");
  l_flag(L, flags & PINNED, "pinned");
  l_flag(L, flags & DURABLE, "durable");
}

size_t policy_push_items(lua_State *L, packed *from, json_t **held) {
  luaL_checkstack(L, 8, "a list of checkpoints");
  lua_newtable(L);
  int count = 0;
  while (from->at < from->end) {
    l_item(L, from, held);
    lua_rawseti(L, -2, ++count);
  }
  return (size_t)count;
}

/* ---- what was said ---- */

/* Equal texts are one in Lua: a reason that was said a moment ago is known by its address. */
enum { RECENT = 32 };

typedef struct rows {
  buf keep, why, reasons;
  const char *recent[RECENT];
  size_t count; /* of reasons */
} rows;

static size_t place_of(rows *r, const char *reason, size_t len) {
  size_t least = r->count > RECENT ? r->count - RECENT : 0;
  for (size_t i = r->count; i > least; i--)
    if (r->recent[(i - 1) % RECENT] == reason) return i;
  if (r->count > 0) buf_add(&r->reasons, ",", 1);
  policy_print_text(reason, len, &r->reasons);
  r->recent[r->count++ % RECENT] = reason;
  return r->count;
}

/* There is one for each item, and printf takes as long as all else. */
static void put_place(rows *r, size_t place) {
  char digits[24], *at = digits + sizeof digits;
  do *--at = (char)('0' + place % 10);
  while (place /= 10);
  if (r->why.len > 0) *--at = ',';
  buf_add(&r->why, at, (size_t)(digits + sizeof digits - at));
}

/* Takes in the word on one item: whether it is kept, and the reason, are on top. */
static bool take_word(lua_State *L, rows *r) {
  size_t len, place = 0;
  int type = lua_type(L, -1);
  const char *reason = type == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;
  if (!lua_isboolean(L, -2) || (!reason && type != LUA_TNIL)) return false;
  if (reason) place = place_of(r, reason, len);
  buf_add(&r->keep, lua_toboolean(L, -2) ? "1" : "0", 1);
  put_place(r, place);
  return true;
}

/* The lists `keep` and `reason` are on top. */
static const char *take_words(lua_State *L, policy_bounds *b, rows *r) {
  if (!lua_istable(L, -2) || !lua_istable(L, -1)) return "it is no list";
  size_t count = lua_objlen(L, -2);
  for (size_t i = 1; i <= count; i++) {
    if (bounds_late(b)) return "it takes too long to read";
    lua_rawgeti(L, -2, (int)i);
    lua_rawgeti(L, -2, (int)i);
    bool said = take_word(L, r);
    lua_pop(L, 2);
    if (!said) return "a row of it is no word on a checkpoint";
  }
  bool whole = !buf_failed(&r->keep) && !buf_failed(&r->why) && !buf_failed(&r->reasons);
  return whole ? NULL : "it is too large";
}

const char *policy_print_rows(lua_State *L, int index, policy_bounds *b, buf *out) {
  rows r = {.count = 0};
  if (lua_isnil(L, index)) {
    buf_str(out, "null");
    return NULL;
  }
  if (!lua_istable(L, index) || !lua_checkstack(L, 6)) return "it is no list";
  buf_init(&r.keep, out->max);
  buf_init(&r.why, out->max);
  buf_init(&r.reasons, out->max);
  lua_pushvalue(L, index);
  lua_pushliteral(L, "keep");
  lua_rawget(L, -2);
  lua_pushliteral(L, "reason");
  lua_rawget(L, -3);
  const char *why = take_words(L, b, &r);
  lua_pop(L, 3);
  if (!why)
    buf_fmt(out, "{\"keep\":\"%s\",\"why\":[%s],\"reasons\":[%s]}", r.keep.data ? r.keep.data : "",
            r.why.data ? r.why.data : "", r.reasons.data ? r.reasons.data : "");
  buf_free(&r.keep);
  buf_free(&r.why);
  buf_free(&r.reasons);
  return why || buf_failed(out) == 0 ? why : "it is too large";
}
