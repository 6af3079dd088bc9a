/* pinned: a store for reading one commit, which keeps a pin on it as long as it is open. */
#ifndef JOB_RESTORE_PINNED_H
#define JOB_RESTORE_PINNED_H

#include "commit/pins.h"

/* Puts a pin on commit `n` (its directory is `dir`) of the log at `prefix`, then reads the log: a
 * commit that is no longer kept, or of which files are gone by now and the caller does not know (`thin`
 * false), is ERR_CONFLICT, and the pin is gone again. *out reads the objects
 * of `inner`; its reads renew the pin when it is due, look at the log each time, and fail in the
 * same way once it says so. It can be used by many threads. Where no pin can be put (a reader may
 * have no right to write) it goes on without one, and says so in the log lines of `inner`.
 * store_close(*out) removes the pin; `inner` is borrowed. */
int pinned_open(store *inner, const char *prefix, const char *dir, uint64_t n, bool thin,
                const char *by, store **out, err *e);
/* Does the same of a log that was read: what was appended since is read alone. */
int pinned_open_read(store *inner, const runlog *log, const runlog_commit *c, const char *by,
                     store **out, err *e);

#endif
