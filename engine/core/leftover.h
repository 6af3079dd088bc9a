/* leftover: what processes that were killed have left beside the result that they were making.
 *
 * Such a thing is named <begin><32 hex digits><end>, and whoever is at work on it holds a lock on
 * it: lock_take() on a file, lock_take_dir() on a directory. */
#ifndef CORE_LEFTOVER_H
#define CORE_LEFTOVER_H

#include "base/io.h"

/* Removes those of this user in `dir` that nobody holds, and that are older than a minute: one that
 * was made just now is not locked yet. What cannot be locked or removed stays, and is no error. */
void leftover_remove(const io *io, const char *dir, const char *begin, const char *end);

#endif
