/* lock: one advisory lock file, held by an open file description (OFD).
 *
 * The kernel drops it when the last descriptor is closed, so a dead holder needs no clean-up, and
 * another close in the same process does not lose it (as POSIX locks would). The file is never
 * unlinked: somebody may be waiting on its inode. Arbitrates one host only. */
#ifndef PRIMS_LOCK_H
#define PRIMS_LOCK_H

#include <stdbool.h>

#include "base/err.h"

typedef struct lock {
  int fd; /* -1: not held */
} lock;

/* Opens (mode 0600, made if absent) and locks the file without waiting. ERR_HELD if somebody has
 * it; ERR_UNSUPPORTED where the file system has no locks (ENOLCK: NFS without a lock daemon). The
 * descriptor is close-on-exec: a child never inherits the lock. */
int lock_take(const char *path, bool exclusive, lock *out, err *e);

/* Does as lock_take for a file that is open for reading and writing; the descriptor is the lock's,
 * and closed on failure. `path` is for texts. */
int lock_take_open(int fd, const char *path, lock *out, err *e);

/* True if somebody has the file locked exclusively just now. Makes nothing; false where it cannot
 * be told. */
bool lock_is_held(const char *path);

/* Locks a directory itself (flock), exclusively and without waiting, so that two that disagree
 * about where their lock files are still meet. ERR_HELD if somebody has it. Where the file system
 * cannot (NFS wants a writable descriptor, which no directory has), nothing is held and that is no
 * error: the lock files have to do. */
int lock_take_dir(const char *path, lock *out, err *e);
/* Does as lock_take_dir for a directory that is open for reading; the descriptor is the lock's, and
 * closed if nothing is held. */
int lock_take_open_dir(int fd, const char *path, lock *out, err *e);

void lock_drop(lock *l); /* fine on one that is not held */

#endif
