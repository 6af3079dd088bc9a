/* Which arrangement stops a loop on the LuaJIT that is here. The sandbox rests on two of the rows
 * (the JIT is off for the state and policies cannot turn it on); a row that changes with an upgrade
 * of LuaJIT fails, and somebody has to think again. */

#include "with_cmocka.h"

#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum arrangement { JIT_ON, JIT_OFF, JIT_OFF_FOR_CHUNK };

typedef struct row {
  const char *name;
  enum arrangement arrangement;
  const char *loop;
  int stops;
} row;

#define LOOP "local i = 0 while true do i = i + 1 end"

static const row rows[] = {
    {"count hook, JIT on", JIT_ON, LOOP, 0},
    {"count hook, JIT on, empty loop", JIT_ON, "while true do end", 0},
    {"count hook, JIT on, tail calls", JIT_ON, "local function f() return f() end f()", 0},
    {"count hook, JIT off for the state", JIT_OFF, LOOP, 1},
    {"count hook, JIT off for the state, empty loop", JIT_OFF, "while true do end", 1},
    {"count hook, JIT off for the state, tail calls", JIT_OFF,
     "local function f() return f() end f()", 1},
    {"count hook, JIT off for the state, goto", JIT_OFF, "::again:: goto again", 1},
    {"count hook, JIT off for the chunk and its children", JIT_OFF_FOR_CHUNK, LOOP, 1},
    {"count hook, JIT off for the chunk, inner function", JIT_OFF_FOR_CHUNK,
     "(function() " LOOP " end)()", 1},
    {"JIT off, but the script reaches jit.on()", JIT_OFF, "jit.on() " LOOP, 0},
    {"JIT off, but pcall around the loop, in a loop", JIT_OFF,
     "while true do pcall(function() while true do end end) end", 0},
    {"JIT off, a coroutine spins", JIT_OFF, "coroutine.wrap(function() " LOOP " end)()", 1},
    {"JIT off, a pattern with twenty wildcards", JIT_OFF,
     "return ('a'):rep(30000):find(('.-'):rep(20) .. 'b')", 0},
    {"JIT off, a sort whose comparison loops", JIT_OFF,
     "table.sort({ 2, 1 }, function() while true do end end)", 1},
};

enum { ROWS = sizeof rows / sizeof *rows, LIMIT_MS = 400, STOPPED = 0 };

static void hook(lua_State *L, lua_Debug *at) {
  luaL_error(L, "enough");
}

/* In a process of its own: what is not stopped is killed after LIMIT_MS of CPU time. */
static void run(const row *r) {
  struct itimerval limit = {.it_value = {0, LIMIT_MS * 1000}};
  signal(SIGPROF, SIG_DFL);
  setitimer(ITIMER_PROF, &limit, NULL);
  lua_State *L = luaL_newstate();
  if (!L) _exit(9);
  luaL_openlibs(L);
  if (r->arrangement == JIT_OFF) luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  if (luaL_loadstring(L, r->loop) != 0) _exit(9);
  if (r->arrangement == JIT_OFF_FOR_CHUNK)
    luaJIT_setmode(L, -1, LUAJIT_MODE_ALLFUNC | LUAJIT_MODE_OFF);
  lua_sethook(L, hook, LUA_MASKCOUNT, 1000000);
  lua_pcall(L, 0, 0, 0);
  _exit(STOPPED);
}

static void each_row_is_as_it_was_when_the_sandbox_was_built_on_it(void **unused) {
  pid_t pids[ROWS];
  int changed = 0;
  for (int i = 0; i < ROWS; i++) {
    pids[i] = fork();
    assert_true(pids[i] >= 0);
    if (pids[i] == 0) run(&rows[i]);
  }
  for (int i = 0; i < ROWS; i++) {
    int status;
    assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
    int stops = WIFEXITED(status) && WEXITSTATUS(status) == STOPPED;
    int runs_on = WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF;
    printf("# %-50s %s\n", rows[i].name, stops ? "stops" : runs_on ? "runs on" : "?");
    changed += rows[i].stops ? !stops : !runs_on;
  }
  fflush(stdout);
  assert_int_equal(changed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_row_is_as_it_was_when_the_sandbox_was_built_on_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
