/* policy_items: brings a packed list of checkpoints (decision/policy_link.h) into a Lua state, and
 * what a policy said of each out of it. */
#ifndef LUA_POLICY_POLICY_ITEMS_H
#define LUA_POLICY_POLICY_ITEMS_H

#include <lua.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/packed.h"
#include "policy_bounds.h"

/* Pushes the list that is left, and returns how many are in it. May raise (memory; it is no such
 * list): call it inside of a protected call, and release *held after it. */
size_t policy_push_items(lua_State *L, packed *from, json_t **held);

/* Appends {"keep":"01..","why":[I, ...],"reasons":[T, ...]} for what M.ask says in lists at
 * `index`, or null for nil.
 * Raises nothing and runs nothing of the policy. NULL if it went well, else why not (static). */
const char *policy_print_rows(lua_State *L, int index, policy_bounds *b, buf *out);

#endif
