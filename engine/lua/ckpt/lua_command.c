/* For trusted Lua: programs that run beside the script (`require "ckpt.core".command`). The
 * interface for programs, ckpt.job.command, is made of this. */
#include <lauxlib.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "lua_ckpt.h"
#include "prims/program.h"

static const char program_type[] = "ckpt.program";
enum { KEEP = 1 << 20, KEEP_MAX = 1 << 30 };

typedef struct program_box {
  program *program; /* NULL: closed */
} program_box;

static program *l_program(lua_State *L) {
  program_box *box = luaL_checkudata(L, 1, program_type);
  if (!box->program) luaL_argerror(L, 1, "this program is closed");
  return box->program;
}

/* ---- start ---- */

/* True if the changes name the variable: "NAME=value" sets one, "NAME" takes it away. */
static bool is_changed(const char *variable, const char *const *changes) {
  size_t n = strcspn(variable, "=");
  for (; *changes; changes++)
    if (strcspn(*changes, "=") == n && strncmp(*changes, variable, n) == 0) return true;
  return false;
}

/* Makes our environment with changes; pushes a userdata that owns the list. */
static char *const *l_environment(lua_State *L, const char *const *changes) {
  size_t n = 0, used = 0;
  for (char **e = environ; *e; e++) n++;
  for (const char *const *c = changes; *c; c++) n++;
  const char **all = lua_newuserdata(L, (n + 1) * sizeof *all);
  for (char **e = environ; *e; e++)
    if (!is_changed(*e, changes)) all[used++] = *e;
  for (const char *const *c = changes; *c; c++)
    if (strchr(*c, '=')) all[used++] = *c;
  all[used] = NULL;
  return (char *const *)all;
}

/* start{argv=, env=, cwd=, input=, keep=, socket=} -> program. `env`: a list of changes. */
static int l_start(lua_State *L) {
  static const char *const keys[] = {"argv", "env", "cwd", "input", "keep", "socket", NULL};
  l_ckpt_check_keys(L, 1, keys);
  program_plan plan = {.argv = (char *const *)l_ckpt_texts(L, 1, "argv"),
                       .dir = l_ckpt_text(L, 1, "cwd"),
                       .socket = l_ckpt_text(L, 1, "socket")};
  luaL_argcheck(L, plan.argv && plan.argv[0], 1, "`argv` is missing");
  double keep = l_ckpt_number(L, 1, "keep", KEEP);
  luaL_argcheck(L, keep >= 0 && keep <= KEEP_MAX, 1, "`keep` is not a number from 0 to 2^30");
  plan.keep = (size_t)keep;
  const char *const *changes = l_ckpt_texts(L, 1, "env");
  if (changes) plan.envp = l_environment(L, changes);
  lua_getfield(L, 1, "input");
  if (!lua_isnil(L, -1)) plan.input = lua_tolstring(L, -1, &plan.input_len);
  err e = {0};
  program_box *box = lua_newuserdata(L, sizeof *box);
  *box = (program_box){0};
  luaL_getmetatable(L, program_type);
  lua_setmetatable(L, -2);
  int rc = program_start(io_system(), &plan, &box->program, &e);
  return rc < 0 ? l_ckpt_fail(L, e.text, rc) : 1;
}

/* ---- methods ---- */

static int l_pid(lua_State *L) {
  lua_pushinteger(L, program_pid(l_program(L)));
  return 1;
}

/* turn([seconds]) -> whether there was something; waits no longer than that for it */
static int l_turn(lua_State *L) {
  program *p = l_program(L);
  int64_t wait_ms = l_ckpt_seconds(L, luaL_optnumber(L, 2, 0), "turn") / 1000000;
  err e = {0};
  int rc = program_turn(p, wait_ms < INT_MAX ? (int)wait_ms : INT_MAX, &e);
  if (rc < 0) return l_ckpt_fail(L, e.text, rc);
  lua_pushboolean(L, rc);
  return 1;
}

/* ended() -> nil, or its exit code (false: it has none), the name of the signal that killed it, and
 * whether the last process that inherited its outputs is gone */
static int l_ended(lua_State *L) {
  int code, signal;
  program *p = l_program(L);
  if (!program_ended(p, &code, &signal)) return 0;
  const char *name = signal > 0 ? sigabbrev_np(signal) : NULL;
  if (code >= 0)
    lua_pushinteger(L, code);
  else
    lua_pushboolean(L, 0);
  if (signal > 0 && !name)
    lua_pushfstring(L, "%d", signal);
  else
    lua_pushstring(L, name);
  lua_pushboolean(L, program_silent(p));
  return 3;
}

/* output([from, from]) -> standard output, standard error, how much either had in all; of each the
 * bytes after that many, as far as they are kept */
static int l_output(lua_State *L) {
  program *p = l_program(L);
  lua_settop(L, 3);
  double totals[2];
  for (int i = 0; i < 2; i++) {
    size_t len;
    uint64_t dropped;
    double from = luaL_optnumber(L, 2 + i, 0);
    const char *text = program_output(p, i + 1, &len, &dropped);
    double known = from - (double)dropped;
    size_t skipped = known <= 0 ? 0 : known < (double)len ? (size_t)known : len;
    lua_pushlstring(L, text + skipped, len - skipped);
    totals[i] = (double)dropped + (double)len;
  }
  lua_pushnumber(L, totals[0]);
  lua_pushnumber(L, totals[1]);
  return 4;
}

/* report() -> a number for the answer, the line; nil if there is none */
static int l_report(lua_State *L) {
  uint64_t from;
  const char *line;
  size_t len;
  if (!program_report(l_program(L), &from, &line, &len)) return 0;
  lua_pushnumber(L, (double)from);
  lua_pushlstring(L, line, len);
  return 2;
}

/* answer(number, line) */
static int l_answer(lua_State *L) {
  program *p = l_program(L);
  double from = luaL_checknumber(L, 2);
  luaL_argcheck(L, from >= 0 && from < 9e15, 2, "no number of a report");
  const char *line = luaL_checkstring(L, 3);
  err e = {0};
  int rc = program_answer(p, (uint64_t)from, line, &e);
  if (rc < 0) return l_ckpt_fail(L, e.text, rc);
  lua_pushboolean(L, 1);
  return 1;
}

/* stop(seconds) -> whether it has ended; asks it and its group to, and kills it after that time */
static int l_stop(lua_State *L) {
  program *p = l_program(L);
  lua_pushboolean(L, program_stop(p, l_ckpt_seconds(L, luaL_optnumber(L, 2, 0), "stop")));
  return 1;
}

static int l_close(lua_State *L) {
  program_box *box = luaL_checkudata(L, 1, program_type);
  program_close(box->program);
  box->program = NULL;
  return 0;
}

void l_ckpt_register_command(lua_State *L) {
  static const luaL_Reg functions[] = {{"start", l_start}, {NULL, NULL}};
  static const luaL_Reg methods[] = {
      {"pid", l_pid},       {"turn", l_turn},     {"ended", l_ended},
      {"output", l_output}, {"report", l_report}, {"answer", l_answer},
      {"stop", l_stop},     {"close", l_close},   {NULL, NULL},
  };
  luaL_newmetatable(L, program_type);
  lua_pushcfunction(L, l_close);
  lua_setfield(L, -2, "__gc");
  lua_newtable(L);
  luaL_register(L, NULL, methods);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  lua_newtable(L);
  luaL_register(L, NULL, functions);
  lua_setfield(L, -2, "command");
}
