/* verified: <prefix>/.ckpt/verified names the newest commit of a log whose bytes were all read and
 * found right.
 *
 * No policy ever drops it: of several checkpoints it may be the only one that can still be read. */
#ifndef COMMIT_VERIFIED_H
#define COMMIT_VERIFIED_H

#include "commit/log/runlog.h"

/* Remembers the commit, unless a newer one is remembered. A user who may only read gets
 * ERR_ACCESS. */
int verified_note(store *s, const char *prefix, uint64_t commit, err *e);
/* Reads the commit; RUNLOG_NONE if none was ever verified. ERR_FORMAT, with the key: it cannot be
 * read, so any commit may be the verified one. */
int verified_read(store *s, const char *prefix, uint64_t *out, err *e);

#endif
