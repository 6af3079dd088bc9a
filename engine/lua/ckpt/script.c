/* libexec/ckpt-script FILE [ARGS...]: runs a trusted Lua script that can `require "ckpt"`. Behind
 * `ckpt-lua exec`. `arg` is as luajit sets it; an error prints a traceback and ends with 1. */

#include <lauxlib.h>
#include <luajit.h>
#include <lualib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/shown.h"
#include "lua_ckpt.h"

enum { FAILED = 1, USAGE = 2, PATH_ROOM = 4096 };

/* The places of lua/, seen from this program: in the tree that it was built in, or installed. */
static const char *const beside[] = {"../../lua", "../../share/lua/5.1"};

/* Finds the directory of this program; false if it cannot be told. */
static bool find_self(char self[PATH_ROOM]) {
  ssize_t n = readlink("/proc/self/exe", self, PATH_ROOM - 1);
  char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
  if (slash) *slash = 0;
  return slash != NULL;
}

/* Pushes the directory of ckpt/init.lua, which $CKPT_LUADIR names first; false if there is none. */
static bool l_find_lua(lua_State *L, const char *self) {
  const char *given = getenv("CKPT_LUADIR");
  if (given && *given) {
    lua_pushstring(L, given);
    return true;
  }
  for (size_t i = 0; self && i < sizeof beside / sizeof *beside; i++) {
    lua_pushfstring(L, "%s/%s", self, beside[i]);
    lua_pushfstring(L, "%s/ckpt/init.lua", lua_tostring(L, -1));
    bool there = access(lua_tostring(L, -1), R_OK) == 0;
    lua_pop(L, there ? 1 : 2);
    if (there) return true;
  }
  return false;
}

/* Loads the core alone, as ckpt/init.lua does. */
static int l_core(lua_State *L) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "ckpt.core");
  lua_call(L, 1, 1);
  return 1;
}

/* Opens the module. It is linked in; its Lua part is a file. If that is missing, the core answers
 * alone. */
static void l_open_ckpt(lua_State *L) {
  char self[PATH_ROOM];
  bool is_found = find_self(self);
  /* The other helpers stand beside this program; the engine would look beside a runner. */
  if (is_found) setenv("CKPT_LIBEXEC", self, 0);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, luaopen_ckpt_core);
  lua_setfield(L, -2, "ckpt.core");
  if (l_find_lua(L, is_found ? self : NULL)) {
    const char *dir = lua_tostring(L, -1);
    lua_getfield(L, -3, "path");
    lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", dir, dir, lua_tostring(L, -1));
    lua_setfield(L, -5, "path");
  } else {
    lua_pushcfunction(L, l_core);
    lua_setfield(L, -2, "ckpt");
  }
  lua_settop(L, 0);
}

static void l_set_arg(lua_State *L, int argc, char **argv) {
  lua_createtable(L, argc, 1);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - 1);
  }
  lua_setglobal(L, "arg");
}

/* Makes the text of an error and of the calls that led to it. An object without __tostring has
 * none. */
static int l_traceback(lua_State *L) {
  if (!lua_isstring(L, 1)) {
    if (!luaL_callmeta(L, 1, "__tostring") || !lua_isstring(L, -1)) {
      lua_settop(L, 1);
      lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
    }
    lua_replace(L, 1);
  }
  luaL_traceback(L, L, lua_tostring(L, 1), 1);
  return 1;
}

typedef struct command {
  int argc;
  char **argv;
} command;

/* The compiler of LuaJIT 2.1's betas cuts an address in next() to 32 bits now and then (its issue 829), and the
 * process dies of it: there all is interpreted. */
static void l_compile_if_sound(lua_State *L) {
  lua_getglobal(L, "jit");
  lua_getfield(L, -1, "version");
  const char *version = lua_tostring(L, -1);
  if (version && strstr(version, "beta"))
    luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  lua_pop(L, 2);
}

static int l_main(lua_State *L) {
  const command *c = lua_touserdata(L, 1);
  luaL_openlibs(L);
  l_compile_if_sound(L);
  l_open_ckpt(L);
  l_set_arg(L, c->argc, c->argv);
  lua_pushcfunction(L, l_traceback);
  int rc = luaL_loadfile(L, c->argv[1]);
  luaL_checkstack(L, c->argc, "too many arguments");
  for (int i = 2; rc == 0 && i < c->argc; i++) lua_pushstring(L, c->argv[i]);
  if (rc == 0) rc = lua_pcall(L, c->argc - 2, 0, 1);
  return rc == 0 ? 0 : lua_error(L);
}

/* Prints an error, which may quote names that others chose. */
static void print_error(const char *text) {
  size_t len;
  fputs("ckpt-lua exec: ", stderr);
  for (const unsigned char *at = (const unsigned char *)(text ? text : "?"); *at; at += len) {
    bool shown = is_shown(at, &len) || *at == '\n' || *at == '\t';
    for (size_t i = 0; i < len; i++)
      if (shown)
        fputc(at[i], stderr);
      else
        fprintf(stderr, "\\x%02x", at[i]);
  }
  fputc('\n', stderr);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fputs("usage: ckpt-lua exec FILE [ARGS...]\n", stderr);
    return USAGE;
  }
  lua_State *L = luaL_newstate();
  if (!L) {
    fputs("ckpt-lua exec: out of memory\n", stderr);
    return FAILED;
  }
  command c = {argc, argv};
  int rc = lua_cpcall(L, l_main, &c);
  if (rc != 0) print_error(lua_tostring(L, -1));
  lua_close(L);
  return rc == 0 ? 0 : FAILED;
}
