#include "with_cmocka.h"

#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lua/policy/policy_bounds.h"

/* Runs a chunk within the bounds; LUA_ERR*, and what it said. */
typedef struct outcome {
  int status;
  bounds_over over;
  uint64_t instructions;
  char said[200];
} outcome;

typedef struct box {
  policy_bounds bounds;
  lua_State *L;
} box;

static int l_build(lua_State *L) {
  luaL_openlibs(L);
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  return 0;
}

static int l_enter(lua_State *L) {
  box *b = lua_touserdata(L, 1);
  bounds_arm(&b->bounds, L, (size_t)lua_tonumber(L, 2));
  lua_call(L, 0, 0);
  return 0;
}

static void open_box(box *b) {
  b->L = bounds_state(&b->bounds);
  assert_non_null(b->L);
  assert_int_equal(lua_cpcall(b->L, l_build, NULL), 0);
}

static outcome run(box *b, const char *chunk, size_t cap) {
  outcome out = {0};
  lua_State *L = b->L;
  lua_pushcfunction(L, l_enter);
  lua_pushlightuserdata(L, b);
  lua_pushnumber(L, (double)cap);
  assert_int_equal(luaL_loadbuffer(L, chunk, strlen(chunk), "=mine.lua"), 0);
  out.status = lua_pcall(L, 3, 0, 0);
  bounds_disarm(&b->bounds, L);
  out.over = b->bounds.over;
  out.instructions = b->bounds.instructions;
  if (out.status) snprintf(out.said, sizeof out.said, "%s", lua_tostring(L, -1));
  lua_settop(L, 0);
  return out;
}

static outcome run_alone(const char *chunk, size_t cap) {
  box b;
  open_box(&b);
  outcome out = run(&b, chunk, cap);
  size_t held = ((size_t)lua_gc(b.L, LUA_GCCOUNT, 0) << 10) + (size_t)lua_gc(b.L, LUA_GCCOUNTB, 0);
  assert_int_equal(b.bounds.used, held); /* all is counted, what was given back, too */
  bounds_close(&b.bounds, b.L);
  return out;
}

static void a_loop_ends_at_its_instructions_and_names_its_line(void **unused) {
  outcome out = run_alone("\n\nwhile true do end", 0);
  assert_int_equal(out.status, LUA_ERRRUN);
  assert_int_equal(out.over, BOUNDS_OVER_COUNT);
  assert_string_equal(out.said, "mine.lua:3: used up its 10000000 instructions");
}

static void the_count_is_the_same_whenever_it_is_taken(void **unused) {
  const char *chunk = "local n = 0 for i = 1, 300000 do n = n + i end";
  uint64_t first = run_alone(chunk, 0).instructions;
  assert_in_range(first, 300000, 5000000);
  for (int i = 0; i < 5; i++) assert_int_equal(run_alone(chunk, 0).instructions, first);
}

static void slow_functions_end_at_the_cpu_time(void **unused) {
  outcome out = run_alone("local s = ('x'):rep(4e6) while true do s = s:upper() end", 0);
  assert_int_equal(out.over, BOUNDS_OVER_CPU);
  assert_string_equal(out.said, "mine.lua:1: used up its 250 ms of CPU time");
}

static void time_in_which_others_run_is_not_used(void **unused) {
  const int64_t ns = 50 * 1000 * 1000;
  bounds_end end = bounds_in(ns);
  nanosleep(&(struct timespec){.tv_nsec = 2 * ns}, NULL);
  assert_false(bounds_reached(&end));
  struct timespec used = {0};
  while (!bounds_reached(&end)) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  assert_true((int64_t)used.tv_sec * 1000000000 + used.tv_nsec >= end.cpu);
}

static void the_heap_ends_at_its_cap(void **unused) {
  outcome out = run_alone("local t = {} while true do t[#t + 1] = {} end", 4 << 20);
  assert_int_equal(out.status, LUA_ERRMEM);
  assert_int_equal(out.over, BOUNDS_KEPT);
}

static void a_cap_below_what_is_held_refuses_only_what_grows(void **unused) {
  assert_int_equal(run_alone("local t = {}", 1).status, LUA_ERRMEM);
  assert_int_equal(run_alone("local n = 1 + 1", 1 << 20).status, 0);
}

static void each_request_begins_anew(void **unused) {
  box b;
  open_box(&b);
  for (int i = 0; i < 3; i++) {
    outcome out = run(&b, "for i = 1, 2e6 do end", 0);
    assert_int_equal(out.status, 0);
    assert_in_range(out.instructions, 1000000, 9000000);
  }
  bounds_close(&b.bounds, b.L);
}

static void nothing_is_bounded_outside_of_a_request(void **unused) {
  box b;
  open_box(&b);
  run(&b, "local n = 1", 1 << 20);
  assert_int_equal(luaL_dostring(b.L, "local t = {} for i = 1, 3e5 do t[i] = {} end"), 0);
  assert_int_equal(luaL_dostring(b.L, "for i = 1, 2e7 do end"), 0);
  bounds_close(&b.bounds, b.L);
}

static void the_line_is_the_policys_however_deep_the_call(void **unused) {
  box b;
  open_box(&b);
  const char *library = "function spin() while true do end end";
  assert_int_equal(luaL_loadbuffer(b.L, library, strlen(library), "=library"), 0);
  lua_call(b.L, 0, 0);
  outcome out = run(&b, "\nspin()\nlocal n", 0);
  assert_string_equal(out.said, "mine.lua:2: used up its 10000000 instructions");
  bounds_close(&b.bounds, b.L);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_loop_ends_at_its_instructions_and_names_its_line),
      cmocka_unit_test(the_count_is_the_same_whenever_it_is_taken),
      cmocka_unit_test(slow_functions_end_at_the_cpu_time),
      cmocka_unit_test(time_in_which_others_run_is_not_used),
      cmocka_unit_test(the_heap_ends_at_its_cap),
      cmocka_unit_test(a_cap_below_what_is_held_refuses_only_what_grows),
      cmocka_unit_test(each_request_begins_anew),
      cmocka_unit_test(nothing_is_bounded_outside_of_a_request),
      cmocka_unit_test(the_line_is_the_policys_however_deep_the_call),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
