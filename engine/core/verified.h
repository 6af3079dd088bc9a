/* verified: <prefix>/.ckpt/verified names the newest commit of a log whose bytes were all read and
 * found right. It is never dropped by a policy: of several checkpoints it may be the only one that
 * can still be read. */
#ifndef CORE_VERIFIED_H
#define CORE_VERIFIED_H

#include "core/runlog.h"

/* Remembers it, unless a newer one is remembered. Who may only read gets ERR_ACCESS. */
int verified_note(store *s, const char *prefix, uint64_t commit, err *e);
/* RUNLOG_NONE if none was ever verified. ERR_FORMAT, with the key: it cannot be read, and so may be
 * any of them. */
int verified_read(store *s, const char *prefix, uint64_t *out, err *e);

#endif
