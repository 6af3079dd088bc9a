#include "policy_bounds.h"

#include <lauxlib.h>
#include <string.h>
#include <time.h>

enum { LEVELS_MAX = 40 };

static int64_t now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns what this thread has used, or had within the last millisecond: an end that is counted from
 * there comes so much sooner, and not later. */
static int64_t used_at(int64_t wall) {
  enum { SERVES_NS = 1000000 };
  static _Thread_local int64_t used, looked;
  if (looked == 0 || wall - looked >= SERVES_NS) {
    used = now(CLOCK_THREAD_CPUTIME_ID);
    looked = wall;
  }
  return used;
}

/* The wall's clock is looked at first: what passes between two looks does not make it later. */
bounds_end bounds_in(int64_t ns) {
  int64_t wall = now(CLOCK_MONOTONIC_RAW);
  return (bounds_end){.wall = wall + ns, .cpu = used_at(wall) + ns};
}

bool bounds_reached(bounds_end *end) {
  int64_t wall = now(CLOCK_MONOTONIC_RAW);
  if (wall < end->wall) return false;
  int64_t left = end->cpu - now(CLOCK_THREAD_CPUTIME_ID);
  if (left > 0) end->wall = wall + left;
  return left <= 0;
}

static void *allocate(void *ud, void *block, size_t old, size_t size) {
  policy_bounds *b = ud;
  /* A block that shrinks is never refused: Lua takes that for granted. */
  if (b->cap && size > old && size - old > b->cap - (b->used < b->cap ? b->used : b->cap))
    return NULL;
  void *moved = b->memory(b->arena, block, old, size);
  if (moved || size == 0) b->used = b->used - old + size;
  return moved;
}

lua_State *bounds_state(policy_bounds *b) {
  *b = (policy_bounds){0};
  lua_State *L = luaL_newstate();
  if (!L) return NULL;
  lua_atpanic(L, NULL); /* what that would print is for no host of ours */
  b->memory = lua_getallocf(L, &b->arena);
  b->used = ((size_t)lua_gc(L, LUA_GCCOUNT, 0) << 10) + (size_t)lua_gc(L, LUA_GCCOUNTB, 0);
  lua_setallocf(L, allocate, b);
  return L;
}

void bounds_close(policy_bounds *b, lua_State *L) {
  lua_setallocf(L, b->memory, b->arena);
  lua_close(L);
}

void bounds_push_where(lua_State *L) {
  lua_Debug at;
  for (int level = 0; level < LEVELS_MAX && lua_getstack(L, level, &at); level++) {
    lua_getinfo(L, "Sl", &at);
    size_t len = strlen(at.short_src);
    if (len > 4 && strcmp(at.short_src + len - 4, ".lua") == 0 && at.currentline > 0) {
      lua_pushfstring(L, "%s:%d: ", at.short_src, at.currentline);
      return;
    }
  }
  lua_pushliteral(L, "");
}

static policy_bounds *bounds_of(lua_State *L) {
  void *ud;
  lua_getallocf(L, &ud);
  return ud;
}

static void l_over(lua_State *L, const policy_bounds *b) {
  bounds_push_where(L);
  if (b->over == BOUNDS_OVER_COUNT)
    lua_pushfstring(L, "used up its %d instructions", BOUNDS_INSTRUCTIONS);
  else
    lua_pushfstring(L, "used up its %d ms of CPU time", BOUNDS_CPU_MS);
  lua_concat(L, 2);
  lua_error(L);
}

static void hook(lua_State *L, lua_Debug *at) {
  policy_bounds *b = bounds_of(L);
  if (at->event == LUA_HOOKLINE) {
    cover_line(b->cover, L, at);
    return;
  }
  b->instructions += BOUNDS_STEP;
  if (b->over == BOUNDS_KEPT && b->instructions >= BOUNDS_INSTRUCTIONS) b->over = BOUNDS_OVER_COUNT;
  if (b->over != BOUNDS_KEPT || bounds_late(b)) l_over(L, b);
}

void bounds_look(lua_State *L) {
  policy_bounds *b = bounds_of(L);
  if (b->cap && bounds_late(b)) l_over(L, b);
}

void bounds_arm(policy_bounds *b, lua_State *L, size_t cap) {
  b->cap = cap;
  b->instructions = 0;
  b->over = BOUNDS_KEPT;
  b->end = bounds_in((int64_t)BOUNDS_CPU_MS * 1000000);
  lua_sethook(L, hook, LUA_MASKCOUNT | (b->cover ? LUA_MASKLINE : 0), BOUNDS_STEP);
}

void bounds_disarm(policy_bounds *b, lua_State *L) {
  b->cap = 0;
  lua_sethook(L, NULL, 0, 0);
}

bool bounds_late(policy_bounds *b) {
  if (b->over == BOUNDS_KEPT && bounds_reached(&b->end)) b->over = BOUNDS_OVER_CPU;
  return b->over != BOUNDS_KEPT;
}
