#include "policy_items.h"

#include <lauxlib.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policy_json.h"

/* As decision/policy_impl.h has them. */
enum { FLAGS = 7 /* newest, pinned, durable */ };

/* The members of an item, in the order in which they come packed; behind them what the flags say. */
static const char *const members[] = {"age",     "number",   "step",   "time",   "files",
                                      "bytes",   "left_out", "name",   "dir",    "kind",
                                      "suspect", "metrics",  "newest", "pinned", "durable"};
enum { AGE, NAME = 7, METRICS = 11, FLAG, MEMBERS = 15 };

/* Where a list is made. */
typedef struct maker {
  lua_State *L;
  packed *from;
  int keys; /* where their names are on the stack: a name that is found again costs more than all else */
  json_t **held;
} maker;

/* Pushes the name of a member: a value and lua_rawset() follow. */
static void push_key(const maker *m, int member) {
  lua_pushvalue(m->L, m->keys + member);
}

static void l_number(const maker *m, int member) {
  double value;
  if (!packed_number(m->from, &value)) policy_l_broken(m->L, "list");
  if (isnan(value)) return;
  push_key(m, member);
  lua_pushnumber(m->L, value);
  lua_rawset(m->L, -3);
}

static void l_text(const maker *m, int member) {
  const char *text;
  size_t len;
  if (!packed_text(m->from, &text, &len)) policy_l_broken(m->L, "list");
  if (!text) return;
  push_key(m, member);
  lua_pushlstring(m->L, text, len);
  lua_rawset(m->L, -3);
}

/* ---- metrics ---- */

static const char *skip_digits(const char *at) {
  while (*at >= '0' && *at <= '9') at++;
  return at;
}

/* Returns the end of a number that strtod() reads as JSON means it: neither too large for a whole number
 * nor for a real one, and no "-0", which is 0. NULL: it is none of these. */
static const char *plain_number_end(const char *at) {
  enum { DIGITS = 18, EXPONENT = 2 };
  const char *begin = *at == '-' ? at + 1 : at, *end = skip_digits(begin);
  bool real = *end == '.';
  if (end == begin || end - begin > DIGITS || (*begin == '0' && end - begin > 1)) return NULL;
  if (real) end = skip_digits(begin = end + 1);
  if (real && (end == begin || end - begin > DIGITS)) return NULL;
  if (*end == 'e') {
    real = true;
    begin = end[1] == '-' || end[1] == '+' ? end + 2 : end + 1;
    end = skip_digits(begin);
    if (end == begin || end - begin > EXPONENT) return NULL;
  }
  return real || strncmp(at, "-0", 2) != 0 ? end : NULL;
}

static const char *plain_key_end(const char *at) {
  while (*at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\') at++;
  return *at == '"' ? at : NULL;
}

/* Sets the member "KEY":NUMBER of the table on top. Returns its end; NULL: it is no such member, or is
 * there already. */
static const char *l_plain_member(lua_State *L, const char *at, locale_t numbers) {
  const char *key_end = *at == '"' ? plain_key_end(at + 1) : NULL;
  const char *number = key_end && key_end[1] == ':' ? key_end + 2 : NULL;
  const char *end = number ? plain_number_end(number) : NULL;
  if (!end) return NULL;
  lua_pushlstring(L, at + 1, (size_t)(key_end - at - 1));
  lua_pushvalue(L, -1);
  lua_rawget(L, -3);
  if (!lua_isnil(L, -1)) return NULL;
  lua_pop(L, 1);
  lua_pushnumber(L, strtod_l(number, NULL, numbers));
  lua_rawset(L, -3);
  return end;
}

/* Pushes metrics that are names and numbers and no more, as nearly all are: a list has thousands, and to
 * make a tree of each first takes most of the time. `text` ends with a NUL. False, and nothing is pushed:
 * they are read as any JSON. */
static bool l_plain_metrics(lua_State *L, const char *text, size_t len) {
  static locale_t numbers; /* a host may write 0,5 */
  int top = lua_gettop(L);
  const char *at = text + 1;
  if (!numbers) numbers = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  if (!numbers || *text != '{' || *at == '}') return false;
  lua_newtable(L);
  while ((at = l_plain_member(L, at, numbers)) && *at == ',') at++;
  if (at && at + 1 == text + len && *at == '}') return true;
  lua_settop(L, top);
  return false;
}

/* A text that is no object, from a log, is left out. */
static void l_metrics(const maker *m) {
  const char *text;
  size_t len;
  if (!packed_text(m->from, &text, &len)) policy_l_broken(m->L, "list");
  if (!text) return;
  push_key(m, METRICS);
  if (l_plain_metrics(m->L, text, len)) {
    lua_rawset(m->L, -3);
    return;
  }
  lua_pop(m->L, 1);
  if (js_parse(text, len, "metrics", m->held, NULL) < 0) return;
  if (json_is_object(*m->held)) {
    push_key(m, METRICS);
    policy_push_numbers(m->L, *m->held);
    lua_rawset(m->L, -3);
  }
  json_decref(*m->held);
  *m->held = NULL;
}

static void l_item(const maker *m) {
  unsigned char flags;
  if (!packed_byte(m->from, &flags) || (flags & ~FLAGS)) policy_l_broken(m->L, "list");
  lua_createtable(m->L, 0, MEMBERS);
  for (int i = AGE; i < NAME; i++) l_number(m, i);
  for (int i = NAME; i < METRICS; i++) l_text(m, i);
  l_metrics(m);
  for (int i = FLAG; i < MEMBERS; i++) {
    push_key(m, i);
    lua_pushboolean(m->L, flags >> (i - FLAG) & 1);
    lua_rawset(m->L, -3);
  }
}

size_t policy_push_items(lua_State *L, packed *from, json_t **held) {
  const maker m = {.L = L, .from = from, .keys = lua_gettop(L) + 1, .held = held};
  luaL_checkstack(L, MEMBERS + 8, "a list of checkpoints");
  for (int i = 0; i < MEMBERS; i++) lua_pushstring(L, members[i]);
  lua_newtable(L);
  int count = 0;
  while (from->at < from->end) {
    l_item(&m);
    lua_rawseti(L, -2, ++count);
  }
  lua_replace(L, m.keys);
  lua_settop(L, m.keys);
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
