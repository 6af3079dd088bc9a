/* policy_json: brings JSON into a Lua state, and out of it. */
#ifndef LUA_POLICY_POLICY_JSON_H
#define LUA_POLICY_POLICY_JSON_H

#include <lua.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/packed.h"
#include "policy_bounds.h"

enum { POLICY_DEPTH_MAX = 32 };

/* Pushes a value; null is nil, so a member that is null is not there. May raise (memory): call it
 * inside of a protected call. The value has been parsed by js_parse, which limits its depth. */
void policy_push_json(lua_State *L, const json_t *value);

/* Pushes an object of numbers as it is in results and metrics: texts as "NaN" are numbers, too. */
void policy_push_numbers(lua_State *L, const json_t *object);

/* Pushes the packed value that comes next, as policy_push_json() would the JSON that it was made of.
 * Raises also if it is none, or is nested too deep. */
void policy_push_packed(lua_State *L, packed *from);

/* Raises that this part of a question ("list") is not as it was packed. */
void policy_l_broken(lua_State *L, const char *part);

/* Appends the value at `index` as JSON. Raises nothing and runs nothing of the policy: tables are
 * read raw. A table with the keys 1..n is an array, one with other keys than that an object, and
 * all of those have to be texts; an empty table is {}. Bytes that are not UTF-8, and NUL, become
 * U+FFFD. It refuses functions, NaN and infinity, values that are nested deeper than
 * POLICY_DEPTH_MAX (a table inside of itself is), mixed keys, and values that take longer than `b`
 * allows or more room than `out` has. NULL if it went well, else why not (static). */
const char *policy_print_json(lua_State *L, int index, policy_bounds *b, buf *out);

/* Appends a text of `len` bytes, ended by a NUL, as a JSON string. */
void policy_print_text(const char *text, size_t len, buf *out);

#endif
