/* lua_ckpt: `require "ckpt.core"`, for trusted Lua: the public API over ckpt.h, and the primitives.
 *
 * A failure returns nil, a text, and the code's name ("ENOENT"); misuse (a wrong type, an unknown
 * key, a closed handle) raises at level 2. Functions named l_ may raise, and hold nothing that Lua
 * does not own while they do. */
#ifndef LUA_CKPT_LUA_CKPT_H
#define LUA_CKPT_LUA_CKPT_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "ckpt.h"

int luaopen_ckpt_core(lua_State *L);

/* ---- shared by lua_*.c ---- */

/* Pushes nil, text, "ENAME". */
int l_ckpt_fail(lua_State *L, const char *text, int code);

/* Does the same for an error of a primitive. */
int l_ckpt_err(lua_State *L, const err *e);

/* Takes an argument that is a path: a text without a NUL byte. Raises otherwise; for a table the
 * text tells a caller who takes a Checkpoint for a path what to do. */
const char *l_ckpt_path(lua_State *L, int index);

/* Pushes a userdata that owns the buffer: it is freed with it, whatever is raised meanwhile. */
buf *l_ckpt_buf(lua_State *L, size_t max);
/* Pushes its content and frees it. */
void l_ckpt_push_buf(lua_State *L, buf *b);

/* These take members of an options table at `table`; each raises if the member is of another type.
 * Absent: NULL, the default, false. The text belongs to the table. */
const char *l_ckpt_text(lua_State *L, int table, const char *name);
double l_ckpt_number(lua_State *L, int table, const char *name, double otherwise);
bool l_ckpt_flag(lua_State *L, int table, const char *name);
/* Converts seconds to nanoseconds, as base/seconds.h does. Raises for NaN and for less than 0. */
int64_t l_ckpt_seconds(lua_State *L, double seconds, const char *what);
/* Takes a list of texts, ended by NULL; pushes a userdata that owns it. NULL (and nil) if it is
 * absent. */
const char *const *l_ckpt_texts(lua_State *L, int table, const char *name);
/* Raises if the table has a key that is not in `known` (ended by NULL). */
void l_ckpt_check_keys(lua_State *L, int table, const char *const *known);

/* Makes a type of userdata whose values have these methods; `close` collects them, and Lua cannot
 * reach the metatable. */
void l_ckpt_type(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction close);

/* Sets a member of the table on top; NULL and "" set nothing. */
void l_ckpt_set_text(lua_State *L, const char *name, const char *value);
void l_ckpt_set_number(lua_State *L, const char *name, double value);

/* Calls back into Lua from inside of the engine, whose frames no error may cross: `push` puts a
 * record on the stack, which goes to a function or to the end of a list. After the engine's call
 * l_ckpt_end() raises what was raised. */
typedef struct ckpt_relay {
  lua_State *L;
  int to; /* reference: a table or a function */
  void (*push)(lua_State *L, const void *record);
  const void *record;
  bool failed; /* the error is on top of the stack */
} ckpt_relay;

/* `index`: a function; else a new list is made. */
void l_ckpt_begin(ckpt_relay *r, lua_State *L, int index,
                  void (*push)(lua_State *L, const void *record));
/* Sends a record from a callback: 0, or 1 to end the engine's call. */
int ckpt_relay_send(ckpt_relay *r, const void *record);
/* Pushes the list (nil if there was a function); raises what the function raised. */
void l_ckpt_end(ckpt_relay *r);

/* Returns an engine of its own for functions that are no methods: made at the first use, closed
 * with the state. */
ckpt *l_ckpt_engine(lua_State *L);
/* Adds `open` to the table on top, and makes the types. */
void l_ckpt_register_engine(lua_State *L);
void l_ckpt_push_finding(lua_State *L, const void *record);
/* Sends the log lines of an engine of this state to the queue that `core.log` empties. */
void l_ckpt_log_to(lua_State *L, ckpt_options *options);

/* The primitives: each adds a table of functions to the table on top, under its file's name
 * (lua_fs.c: "fs"), and makes its types. */
void l_ckpt_register_fs(lua_State *L);
void l_ckpt_register_lock(lua_State *L);
void l_ckpt_register_digest(lua_State *L);
void l_ckpt_register_clock(lua_State *L);
void l_ckpt_register_log(lua_State *L);
void l_ckpt_register_store(lua_State *L);
void l_ckpt_register_job(lua_State *L);
void l_ckpt_register_tar(lua_State *L);
void l_ckpt_register_command(lua_State *L);
void l_ckpt_register_policy(lua_State *L);

#endif
