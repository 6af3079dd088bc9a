/* pool: a fixed set of worker threads with one bounded queue.
 *
 * Workers do what would block the caller: disk, digests, transfers. Tasks are plain functions; they
 * hand results back through memory that the submitter owns. Signals are blocked in the workers, so
 * that the host's handlers run on the host's threads. */
#ifndef PRIMS_POOL_H
#define PRIMS_POOL_H

#include <stddef.h>

#include "base/err.h"

typedef struct pool pool;
typedef void pool_fn(void *arg);

/* `workers` is 1 to 64, `depth` the most tasks that may wait (1 to 2^20). */
int pool_open(pool **out, unsigned workers, size_t depth, err *e);

/* Puts a task in the queue. ERR_LIMIT at once if it is full (never blocks: the caller may be the
 * host's event loop). */
int pool_submit(pool *p, pool_fn *fn, void *arg, err *e);

/* Runs fn(ctx, 0) ... fn(ctx, n-1), each once, in any order, on the calling thread and on workers
 * that are free, at most `width` at a time, and returns when all are done. The caller works too, so
 * a task may call this without a deadlock when every worker does the same. A call that returns
 * negative stops the hand-out of further items; the first such value is returned, else 0. `width`
 * counts the caller; 0 is taken as 1. */
int pool_each(pool *p, size_t n, unsigned width, int (*fn)(void *ctx, size_t i), void *ctx);

unsigned pool_workers(const pool *p);

/* Waits for the running tasks, runs those that still wait, ends the threads. Nobody but the tasks
 * may use the pool by then, and no task may close it. NULL is fine. */
void pool_close(pool *p);

/* Does as pool_close(), and waits for nothing: a task may stand in a file system that does not answer. The
 * threads end when their tasks do, and the last one frees the pool, so what the tasks use has to outlive
 * them. NULL is fine. */
void pool_leave(pool *p);

#endif
