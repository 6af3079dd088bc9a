#include "policy_json.h"

#include <lauxlib.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/number.h"
#include "base/shown.h"

/* JSON has no NaN: in results and metrics it is written as a text. */
void policy_push_numbers(lua_State *L, const json_t *object) {
  const char *key;
  json_t *member;
  double number;
  luaL_checkstack(L, 4, "JSON is nested too deep");
  lua_createtable(L, 0, (int)json_object_size(object));
  json_object_foreach((json_t *)object, key, member) {
    lua_pushstring(L, key);
    if (json_is_string(member) && number_spelt(json_string_value(member), &number))
      lua_pushnumber(L, number);
    else
      policy_push_json(L, member);
    lua_rawset(L, -3);
  }
}

void policy_push_json(lua_State *L, const json_t *value) {
  luaL_checkstack(L, 4, "JSON is nested too deep");
  switch (json_typeof(value)) {
  case JSON_OBJECT: {
    const char *key;
    json_t *member;
    lua_createtable(L, 0, (int)json_object_size(value));
    json_object_foreach((json_t *)value, key, member) {
      lua_pushstring(L, key);
      bool numbers = strcmp(key, "metrics") == 0 || strcmp(key, "result") == 0;
      if (numbers && json_is_object(member))
        policy_push_numbers(L, member);
      else
        policy_push_json(L, member);
      lua_rawset(L, -3);
    }
    break;
  }
  case JSON_ARRAY:
    lua_createtable(L, (int)json_array_size(value), 0);
    for (size_t i = 0; i < json_array_size(value); i++) {
      policy_push_json(L, json_array_get(value, i));
      lua_rawseti(L, -2, (int)i + 1);
    }
    break;
  case JSON_STRING: lua_pushlstring(L, json_string_value(value), json_string_length(value)); break;
  case JSON_INTEGER:
  case JSON_REAL: lua_pushnumber(L, json_number_value(value)); break;
  case JSON_TRUE:
  case JSON_FALSE: lua_pushboolean(L, json_is_true(value)); break;
  case JSON_NULL: lua_pushnil(L); break;
  }
}

/* A member of results or metrics may be a text that spells a number. */
typedef enum place { ANYWHERE, NUMBERS, IN_NUMBERS } place;

static place place_of(const char *key, place above) {
  if (above == NUMBERS) return IN_NUMBERS;
  return strcmp(key, "metrics") == 0 || strcmp(key, "result") == 0 ? NUMBERS : ANYWHERE;
}

void policy_l_broken(lua_State *L, const char *part) {
  luaL_error(L, "the %s of the question is broken", part);
}

/* Returns how many members a table has; each takes a byte at least, so that the room which is made for
 * them is bounded by what came. */
static int l_count(lua_State *L, packed *from) {
  double count;
  if (!packed_number(from, &count) || !(count >= 0 && count <= (double)(from->end - from->at)))
    policy_l_broken(L, "event");
  return (int)count;
}

static void l_string(lua_State *L, packed *from, place at) {
  const char *text;
  size_t len;
  double number;
  if (!packed_text(from, &text, &len) || !text) policy_l_broken(L, "event");
  if (at == IN_NUMBERS && number_spelt(text, &number))
    lua_pushnumber(L, number);
  else
    lua_pushlstring(L, text, len);
}

static void l_packed(lua_State *L, packed *from, int depth, place at);

static void l_object(lua_State *L, packed *from, int depth, place at) {
  int count = l_count(L, from);
  lua_createtable(L, 0, count);
  for (int i = 0; i < count; i++) {
    const char *key;
    size_t len;
    if (!packed_text(from, &key, &len) || !key) {
      policy_l_broken(L, "event");
      return;
    }
    lua_pushlstring(L, key, len);
    l_packed(L, from, depth - 1, place_of(key, at));
    lua_rawset(L, -3);
  }
}

static void l_array(lua_State *L, packed *from, int depth) {
  int count = l_count(L, from);
  lua_createtable(L, count, 0);
  for (int i = 1; i <= count; i++) {
    l_packed(L, from, depth - 1, ANYWHERE);
    lua_rawseti(L, -2, i);
  }
}

static void l_packed(lua_State *L, packed *from, int depth, place at) {
  unsigned char kind = PACKED_NULL;
  double number;
  if (depth == 0 || !packed_byte(from, &kind)) policy_l_broken(L, "event");
  luaL_checkstack(L, 4, "the event is nested too deep");
  switch (kind) {
  case PACKED_NULL: lua_pushnil(L); break;
  case PACKED_FALSE:
  case PACKED_TRUE: lua_pushboolean(L, kind == PACKED_TRUE); break;
  case PACKED_NUMBER:
    if (!packed_number(from, &number)) policy_l_broken(L, "event");
    lua_pushnumber(L, number);
    break;
  case PACKED_STRING: l_string(L, from, at); break;
  case PACKED_ARRAY: l_array(L, from, depth); break;
  case PACKED_OBJECT: l_object(L, from, depth, at); break;
  default: policy_l_broken(L, "event");
  }
}

void policy_push_packed(lua_State *L, packed *from) {
  enum { DEPTH = 64 }; /* as js_parse() has it */
  l_packed(L, from, DEPTH, ANYWHERE);
}

void policy_print_text(const char *text, size_t len, buf *out) {
  const unsigned char *at = (const unsigned char *)text, *end = at + len;
  buf_add(out, "\"", 1);
  while (at < end && buf_failed(out) == 0) {
    size_t n = shown_utf8_len(at);
    if (n == 0 || *at == 0) {
      buf_str(out, "\xef\xbf\xbd");
      n = 1;
    } else if (*at == '"' || *at == '\\') {
      buf_fmt(out, "\\%c", *at);
    } else if (*at < 0x20) {
      buf_fmt(out, "\\u%04x", *at);
    } else {
      buf_add(out, at, n);
    }
    at += n;
  }
  buf_add(out, "\"", 1);
}

typedef struct printer {
  lua_State *L;
  policy_bounds *bounds;
  buf *out;
} printer;

static const char *print(const printer *p, int depth);

static const char *print_number(double v, buf *out) {
  if (!isfinite(v)) return "a number is NaN or infinite";
  if (v == floor(v) && fabs(v) < 9007199254740992.0)
    buf_fmt(out, "%.0f", v == 0 ? 0.0 : v); /* "-0" is no integer to some readers */
  else {
    char text[NUMBER_MAX];
    number_print(v, text);
    buf_str(out, text);
  }
  return NULL;
}

/* Returns n if the keys of the table on top are exactly 1..n; 0 if all are texts (or there are
 * none); -1 else. */
static double list_length(lua_State *L) {
  double count = 0, top = 0;
  bool texts = false;
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    if (lua_type(L, -2) == LUA_TSTRING) {
      texts = true;
      continue;
    }
    double key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
    if (key < 1 || key != floor(key)) {
      lua_pop(L, 2);
      return -1;
    }
    count++;
    if (key > top) top = key;
  }
  return count == top && !(texts && count > 0) ? count : -1;
}

static const char *print_list(const printer *p, double length, int depth) {
  const char *why = NULL;
  for (int i = 1; !why && i <= length; i++) {
    buf_add(p->out, i == 1 ? "[" : ",", 1);
    lua_rawgeti(p->L, -1, i);
    why = print(p, depth - 1);
    lua_pop(p->L, 1);
  }
  buf_add(p->out, "]", 1);
  return why;
}

static const char *print_object(const printer *p, int depth) {
  bool first = true;
  buf_add(p->out, "{", 1);
  for (lua_pushnil(p->L); lua_next(p->L, -2); lua_pop(p->L, 1)) {
    size_t len;
    const char *key = lua_tolstring(p->L, -2, &len);
    if (!first) buf_add(p->out, ",", 1);
    first = false;
    policy_print_text(key, len, p->out);
    buf_add(p->out, ":", 1);
    const char *why = print(p, depth - 1);
    if (why) {
      lua_pop(p->L, 2);
      return why;
    }
  }
  buf_add(p->out, "}", 1);
  return NULL;
}

/* A table may be small and be reached in a million ways, and an empty one take long to walk. */
static const char *print_table(const printer *p, int depth) {
  if (bounds_late(p->bounds)) return "it takes too long to read";
  if (depth == 0) return "it is nested too deep";
  double length = list_length(p->L);
  if (length < 0) return "a table has neither the keys 1..n nor texts alone";
  return length > 0 ? print_list(p, length, depth) : print_object(p, depth);
}

/* Prints the value on top of the stack. */
static const char *print(const printer *p, int depth) {
  lua_State *L = p->L;
  const char *why = NULL;
  size_t len;
  if (!lua_checkstack(L, 4)) return "it is nested too deep";
  switch (lua_type(L, -1)) {
  case LUA_TNIL: buf_str(p->out, "null"); break;
  case LUA_TBOOLEAN: buf_str(p->out, lua_toboolean(L, -1) ? "true" : "false"); break;
  case LUA_TNUMBER: why = print_number(lua_tonumber(L, -1), p->out); break;
  case LUA_TSTRING: {
    const char *text = lua_tolstring(L, -1, &len);
    policy_print_text(text, len, p->out);
    break;
  }
  case LUA_TTABLE: why = print_table(p, depth); break;
  default: why = "it has a function, or another thing that is no data"; break;
  }
  return why || buf_failed(p->out) == 0 ? why : "it is too large";
}

const char *policy_print_json(lua_State *L, int index, policy_bounds *b, buf *out) {
  printer p = {L, b, out};
  lua_pushvalue(L, index);
  const char *why = print(&p, POLICY_DEPTH_MAX);
  lua_pop(L, 1);
  return why;
}
