#include "policy_guard.h"

#include <lauxlib.h>
#include <math.h>

#include "policy_bounds.h"

/* About 200 ms of matching; texts are compared far quicker than patterns are tried. */
static const double steps_max = 1e7, plain_max = 2e9;
/* For costs above these the clock is looked at first: between two looks of the hook there is room
 * for a hundred calls. */
static const double steps_slow = 1e5, plain_slow = 1e7;

/* One item of a pattern, as LuaJIT's matcher reads it. */
typedef struct item {
  size_t end;
  bool is_single; /* it stands for one character, and the next item may repeat it */
  bool is_long;   /* %bxy runs along the text, a back reference %1 compares with as much */
  size_t weight;  /* cost of one try: a [set] is read from its beginning to its end */
} item;

static size_t set_end(const char *p, size_t len, size_t at) {
  size_t i = at + 1;
  if (i < len && p[i] == '^') i++;
  if (i < len && p[i] == ']') i++; /* the first one is a member */
  while (i < len && p[i] != ']') i += p[i] == '%' ? 2 : 1;
  return i + 1 < len ? i + 1 : len;
}

static item item_at(const char *p, size_t len, size_t at) {
  char next = at + 1 < len ? p[at + 1] : 0;
  item i = {.end = at + 1, .weight = 1};
  if (p[at] == '[') {
    i.is_single = true;
    i.end = set_end(p, len, at);
    i.weight = i.end - at;
  } else if (p[at] == '%') {
    i.is_long = next == 'b' || (next >= '0' && next <= '9');
    i.is_single = !i.is_long && next != 'f';
    i.end = at + (next == 'b' ? 4 : 2);
  } else {
    i.is_single = p[at] != '(' && p[at] != ')';
  }
  if (i.end > len) i.end = len;
  return i;
}

/* Backtracking tries each place with each length of each repetition: with r of them (the place is
 * one), these are the ways to cut a text of n into r + 1 pieces. "?" doubles that. And each try may
 * compare a run of items before it fails. */
double guard_pattern_cost(const char *pattern, size_t pattern_len, size_t len, bool anywhere) {
  int repeats = 0, options = 0;
  size_t run = 0, longest = 1, at = 0;
  if (!anywhere && pattern_len > 0 && pattern[0] == '^')
    at = 1;
  else
    repeats = 1;
  while (at < pattern_len) {
    item i = item_at(pattern, pattern_len, at);
    char suffix = i.is_single && i.end < pattern_len ? pattern[i.end] : 0;
    bool repeated = suffix == '*' || suffix == '+' || suffix == '-';
    at = i.end;
    if (repeated || i.is_long) repeats++;
    if (suffix == '?') options++;
    run += i.weight;
    if (run > longest) longest = run;
    if (repeated || suffix == '?') {
      at++;
      run = 0;
    }
  }
  double cost = (double)longest * pow(2, options);
  for (int i = 1; i <= repeats && cost <= steps_max; i++) cost *= ((double)len + i) / i;
  return cost > steps_max ? 0 : cost;
}

static int l_refuse(lua_State *L, const char *fmt, double a, double b) {
  bounds_push_where(L);
  lua_pushfstring(L, fmt, a, b);
  lua_concat(L, 2);
  return lua_error(L);
}

static int l_admit(lua_State *L, bool anywhere) {
  size_t len, pattern_len;
  if (!lua_isstring(L, 1) || !lua_isstring(L, 2)) return 0; /* the function itself says it better */
  lua_tolstring(L, 1, &len);
  const char *pattern = lua_tolstring(L, 2, &pattern_len);
  double cost = guard_pattern_cost(pattern, pattern_len, len, anywhere);
  if (cost == 0)
    return l_refuse(L, "this pattern (%f bytes) may take too long on a text of %f bytes",
                    (double)pattern_len, (double)len);
  if (cost > steps_slow) bounds_look(L);
  return 0;
}

static int l_pattern(lua_State *L) {
  return l_admit(L, false);
}

static int l_gmatch(lua_State *L) {
  return l_admit(L, true);
}

static int l_plain(lua_State *L) {
  if (!lua_isstring(L, 1) || !lua_isstring(L, 2)) return 0;
  double len = (double)lua_objlen(L, 1), part = (double)lua_objlen(L, 2);
  if (len * part > plain_max)
    return l_refuse(L, "looking for %f bytes in %f bytes may take too long", part, len);
  if (len * part > plain_slow) bounds_look(L);
  return 0;
}

static int l_rep(lua_State *L) {
  if (!lua_isstring(L, 1) || !lua_isnumber(L, 2)) return 0;
  double len = (double)lua_objlen(L, 1), times = lua_tonumber(L, 2);
  if (lua_isstring(L, 3)) len += (double)lua_objlen(L, 3);
  /* Empty texts cost a turn each, too. */
  if (times > GUARD_REP_MAX || len * times > GUARD_REP_MAX)
    return l_refuse(L, "rep: the result is limited to %f bytes", GUARD_REP_MAX, 0);
  return 0;
}

void guard_push(lua_State *L) {
  static const luaL_Reg functions[] = {{"rep", l_rep},
                                       {"pattern", l_pattern},
                                       {"gmatch", l_gmatch},
                                       {"plain", l_plain},
                                       {NULL, NULL}};
  lua_createtable(L, 0, 4);
  luaL_register(L, NULL, functions);
}
