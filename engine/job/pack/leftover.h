/* leftover: removes the leftovers of killed processes, beside the result that they were making.
 *
 * A leftover is named <begin><32 hex digits><end>, and a process that is at work on it holds a lock
 * on it: lock_take() on a file, lock_take_dir() on a directory. */
#ifndef JOB_PACK_LEFTOVER_H
#define JOB_PACK_LEFTOVER_H

#include "base/io.h"

/* Removes those of this user in `dir` that nobody holds, and that are older than a minute: one that
 * was made just now is not locked yet. If one cannot be locked or removed, it stays, and that is no
 * error. */
void leftover_remove(const io *io, const char *dir, const char *begin, const char *end);

#endif
