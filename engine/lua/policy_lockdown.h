/* policy_lockdown: what the helper process gives up for good before it reads its first request. */
#ifndef LUA_POLICY_LOCKDOWN_H
#define LUA_POLICY_LOCKDOWN_H

#include <stddef.h>

/* Has no files but 0, 1 and 2 and no capabilities, cannot open, start or grow anything, and makes
 * only the system calls that Lua and two pipes need; any other kills it. Returns NULL, or what
 * could not be had here, as a sentence (static); the rest holds then all the same. */
const char *lockdown(void);

/* Room for the next request: the limits of address space and CPU time grow with what it needs.
 * `frame`: its length; `states`: how many Lua states stand. */
void lockdown_allow(size_t frame, unsigned states);

#endif
