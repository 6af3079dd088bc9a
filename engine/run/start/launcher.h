/* launcher: how long the launcher of this task waits from its SIGTERM to its SIGKILL, as far as the
 * environment tells. */
#ifndef RUN_LAUNCHER_H
#define RUN_LAUNCHER_H

#include <stddef.h>

typedef const char *launcher_getenv(void *ctx, const char *name);

/* Returns the seconds, by way of `get` (getenv); negative: no launcher is known that kills. Of launchers within
 * launchers the most impatient one counts. `who` gets its name, and what gives a task more, for the user; "":
 * there is none. Pure. */
double launcher_patience(launcher_getenv *get, void *ctx, char *who, size_t room);

#endif
