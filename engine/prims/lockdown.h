/* lockdown: makes a helper process give its rights up for good before it reads its first request. */
#ifndef PRIMS_LOCKDOWN_H
#define PRIMS_LOCKDOWN_H

#include <stddef.h>

/* Leaves the process no files but 0, 1 and 2 and no capabilities; it cannot open, start or grow
 * anything, and makes only the system calls that Lua and two pipes need; any other kills it.
 * Returns NULL, or which part could not be had here, as a sentence (static); the rest holds then
 * all the same. */
const char *lockdown(void);

/* Makes room for the next request: the limits of address space and CPU time grow with its needs.
 * `frame`: its length; `states`: how many Lua states stand. */
void lockdown_allow(size_t frame, unsigned states);

#endif
