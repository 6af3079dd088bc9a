/* policy_guard: looks at the arguments of string functions before they run. Each is one call in C,
 * inside of which no hook fires: ("x"):rep(2^30) and a pattern with twenty wildcards have to be
 * refused, they cannot be stopped. */
#ifndef LUA_POLICY_POLICY_GUARD_H
#define LUA_POLICY_POLICY_GUARD_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

enum { GUARD_REP_MAX = 64 << 10 };

/* Returns an upper bound for the steps that a pattern needs on a subject of `len` bytes; 0 if it is
 * too much. `anywhere`: it is tried from each place even if it begins with ^. For tests. */
double guard_pattern_cost(const char *pattern, size_t pattern_len, size_t len, bool anywhere);

/* Leaves a table of functions on the stack that return nothing, or raise an error that names
 * the policy's line:
 *   rep(s, n)           the result would be longer than GUARD_REP_MAX
 *   pattern(s, p)       matching p against s may take too long
 *   gmatch(s, p)        the same where ^ is no anchor
 *   plain(s, p)         looking for the text p in s may */
void guard_push(lua_State *L);

#endif
