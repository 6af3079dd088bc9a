#include "with_cmocka.h"

#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lua/policy/policy_guard.h"

static bool admitted(const char *pattern, size_t len) {
  return guard_pattern_cost(pattern, strlen(pattern), len, false) > 0;
}

static void what_people_write_is_admitted(void **unused) {
  static const char *const usual[] = {
      "^checkpoint%-(%d+)$",
      "loss=([%d.]+)",
      "^%s*(.-)%s*$",
      "(%d+)%-(%d+)",
      "step_(%d+)_loss_(%d+%.%d+)",
      "[^/]*$",
      "%.bin$",
      "^epoch=(%d+)%-step=(%d+)",
      "^model%-?%d*%.pt$",
      "best",
      "",
      "^",
  };
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    if (!admitted(usual[i], 64)) fail_msg("%s is refused", usual[i]);
  assert_true(admitted("%d+", 3000));
  assert_true(admitted("best", 1 << 20));
}

static void what_cannot_end_is_refused(void **unused) {
  assert_false(admitted(".-.-.-.-.-.-.-.-b", 1000));
  assert_false(admitted(".*.*.*b", 60000));
  assert_false(admitted("a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?b", 40));
  assert_false(admitted("(.*)%1b", 60000));
  assert_false(admitted("%b()%b()", 60000));
}

static void a_set_hides_what_looks_like_a_repetition(void **unused) {
  static const char *const sets[] = {"[*+-]b", "[]*]b", "[^]*]b", "[%]*]b", "%*b", "[^]-b"};
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    assert_in_range((int)guard_pattern_cost(sets[i], strlen(sets[i]), 100, false), 100, 1000);
  assert_in_range((int)guard_pattern_cost("[*]*b", 5, 100, false), 10000, 100000);
  /* The brackets of %b[] are no set, and a repetition behind it is one. */
  assert_false(admitted("%b[].-.-.-.-b", 1000));
  assert_false(admitted("(*-*-*-*-*-*-b", 4000));
}

static void a_long_set_weighs_as_much_as_it_has_members(void **unused) {
  char set[2003];
  memset(set, 'x', sizeof set);
  set[0] = '[';
  memcpy(set + sizeof set - 3, "]*b", 3);
  assert_true(guard_pattern_cost("[x]*b", 5, 300, false) > 0);
  assert_true(guard_pattern_cost(set, sizeof set, 300, false) == 0);
}

static void an_anchor_counts_only_where_it_is_one(void **unused) {
  double anchored = guard_pattern_cost("^.*b", 4, 100, false);
  assert_true(guard_pattern_cost(".*b", 3, 100, false) > anchored);
  assert_true(guard_pattern_cost("^.*b", 4, 100, true) > anchored);
}

static void a_pattern_that_breaks_off_is_read_to_its_end_only(void **unused) {
  static const char *const torn[] = {"%",  "[",  "[^", "[]", "[a-", "[%",
                                     "%b", "%f", "(",  "a%", "[^]"};
  for (size_t i = 0; i < sizeof torn / sizeof *torn; i++)
    assert_true(guard_pattern_cost(torn[i], strlen(torn[i]), 10, false) > 0);
}

/* ---- what is admitted ends soon: random patterns against the texts that are worst for them ----
 */

static uint32_t seed = 12345;

static uint32_t draw(uint32_t n) {
  seed = seed * 1664525 + 1013904223;
  return (seed >> 8) % n;
}

static void make_pattern(char *out, size_t room) {
  static const char *const items[] = {"a",    ".",      "%a",       "[ab]", "[^b]",
                                      "(.)",  "(a-)",   "%1",       "%bab", "%w",
                                      "aaaa", "%f[%a]", "[%a%d_.]", "a",    "."};
  static const char *const ends[] = {"", "", "*", "+", "-", "?"};
  size_t used = (size_t)snprintf(out, room, "%s%s", draw(4) ? "" : "^", draw(2) ? "(.-)" : "");
  for (uint32_t n = 1 + draw(8); n > 0 && used + 16 < room; n--) {
    const char *item = items[draw(sizeof items / sizeof *items)];
    used += (size_t)snprintf(out + used, room - used, "%s%s", item,
                             *item == '(' ? "" : ends[draw(sizeof ends / sizeof *ends)]);
  }
  snprintf(out + used, room - used, "%s", draw(3) ? "b" : "");
}

static double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The longest text that the guard lets through for this pattern, at most 64 KiB. */
static size_t longest(const char *pattern, bool anywhere) {
  size_t low = 0, high = 64 << 10;
  while (low < high) {
    size_t middle = (low + high + 1) / 2;
    if (guard_pattern_cost(pattern, strlen(pattern), middle, anywhere) > 0)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

static const char match[] =
    "local name, letter, n, pattern = ...\n"
    "local text = letter:rep(n)\n"
    "if name == 'gmatch' then for _ in text:gmatch(pattern) do end\n"
    "else return string[name](text, pattern, name == 'gsub' and '' or nil) end";

static double time_of(lua_State *L, const char *name, const char *letter, const char *pattern) {
  double begin = cpu_s();
  assert_int_equal(luaL_loadstring(L, match), 0);
  lua_pushstring(L, name);
  lua_pushstring(L, letter);
  lua_pushinteger(L, (lua_Integer)longest(pattern, strcmp(name, "gmatch") == 0));
  lua_pushstring(L, pattern);
  lua_pcall(L, 4, 0, 0); /* malformed ones raise: that is an end, too */
  lua_settop(L, 0);
  return cpu_s() - begin;
}

static void whatever_is_admitted_ends_soon(void **unused) {
  static const char *const names[] = {"find", "gsub", "gmatch"}, *const letters[] = {"a", "ab",
                                                                                     "^"};
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  char pattern[200];
  double slowest = 0;
  for (int i = 0; i < 150; i++) {
    make_pattern(pattern, sizeof pattern);
    const char *name = names[draw(3)], *letter = letters[draw(3)];
    double took = time_of(L, name, letter, pattern);
    if (took > slowest) slowest = took;
    if (took > 1) fail_msg("%s of \"%s\" on %s...: %.2f s", name, pattern, letter, took);
  }
  printf("# the slowest took %.0f ms\n", slowest * 1000);
  lua_close(L);
}

/* ---- the functions as Lua calls them ---- */

static const char *run(const char *text) {
  static char said[300];
  lua_State *L = luaL_newstate();
  assert_non_null(L);
  luaL_openlibs(L);
  guard_push(L);
  lua_setglobal(L, "guard");
  assert_int_equal(luaL_loadbuffer(L, text, strlen(text), "=mine.lua"), 0);
  snprintf(said, sizeof said, "%s", lua_pcall(L, 0, 0, 0) == 0 ? "ok" : lua_tostring(L, -1));
  lua_close(L);
  return said;
}

static void each_guard_passes_what_is_small_and_names_the_line_of_what_is_not(void **unused) {
  assert_string_equal(run("guard.rep('x', 65536) guard.rep('x', -1) guard.rep('', 3)"), "ok");
  assert_string_equal(run("\nlocal _ = guard.rep('x', 65537)"),
                      "mine.lua:2: rep: the result is limited to 65536 bytes");
  assert_non_null(strstr(run("local _ = guard.rep('x', 2^53)"), "limited"));
  assert_non_null(strstr(run("local _ = guard.rep('', 1e300)"), "limited"));
  assert_non_null(strstr(run("local _ = guard.rep('', 1000, ('x'):rep(1000))"), "limited"));
  assert_string_equal(run("guard.plain(('a'):rep(1000), 'b')"), "ok");
  assert_non_null(strstr(run("local s = ('a'):rep(1e5) local _ = guard.plain(s, s)"), "too long"));
  assert_string_equal(run("guard.pattern('a', '.-')"), "ok");
  assert_non_null(strstr(run("local _ = guard.pattern(('a'):rep(1e5), '.-.-b')"), "mine.lua:1: "));
}

static void what_is_no_text_is_left_to_the_function_itself(void **unused) {
  assert_string_equal(run("guard.pattern() guard.pattern({}, 'x') guard.pattern('x', nil)\n"
                          "guard.plain() guard.rep() guard.rep('x') guard.rep({}, {})\n"
                          "guard.pattern(12, 1) guard.rep(1, '3')"),
                      "ok");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_people_write_is_admitted),
      cmocka_unit_test(what_cannot_end_is_refused),
      cmocka_unit_test(a_set_hides_what_looks_like_a_repetition),
      cmocka_unit_test(a_long_set_weighs_as_much_as_it_has_members),
      cmocka_unit_test(an_anchor_counts_only_where_it_is_one),
      cmocka_unit_test(a_pattern_that_breaks_off_is_read_to_its_end_only),
      cmocka_unit_test(whatever_is_admitted_ends_soon),
      cmocka_unit_test(each_guard_passes_what_is_small_and_names_the_line_of_what_is_not),
      cmocka_unit_test(what_is_no_text_is_left_to_the_function_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
