/* io_hook: an `io` that lets somebody else in between: before each call that reads (open, read,
 * pread, fstat, lstat, readlink, getdents) it calls a function, which may change the tree by the
 * system's own calls. Nothing is flushed (io_unflushed). One at a time; the function may be called
 * by any thread that uses the io. */
#ifndef SPEC_IO_HOOK_H
#define SPEC_IO_HOOK_H

#include <stdatomic.h>

#include "base/io.h"

/* `call` counts from 1 since io_hook_set. */
typedef void io_hook_fn(void *ctx, long call);

/* The io, good until the process ends. NULL: calls nothing. */
const io *io_hook_set(io_hook_fn *fn, void *ctx);
/* Returns the number of calls since then. */
long io_hook_count(void);

#endif
