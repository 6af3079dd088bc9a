/* pool: a fixed set of worker threads with one bounded queue.
 *
 * Workers do what would block the caller: disk, digests, transfers. A task is a plain function and memory of the
 * submitter's; once it has ended, the owner of the pool settles what it has found, on a thread of its own choice:
 * so what a task's `done` touches needs no lock. Signals are blocked in the workers, so that the host's handlers run
 * on the host's threads. */
#ifndef PRIMS_POOL_H
#define PRIMS_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct pool pool;
typedef void pool_fn(void *ctx);

/* `workers` is 1 to 64, `depth` the most tasks that may wait (1 to 2^20). */
int pool_open(pool **out, unsigned workers, size_t depth, err *e);

/* Puts a task in the queue: a worker calls work(ctx), and then the owner's pool_settle() calls done(ctx). With `done`
 * NULL nothing is settled. ERR_LIMIT at once if the queue is full (never blocks: the caller may be the host's event
 * loop). */
int pool_submit(pool *p, pool_fn *work, pool_fn *done, void *ctx, err *e);

/* Is readable while there is something to settle, for poll(); the pool's own. */
int pool_fd(const pool *p);

/* Calls `done` of each task that has ended, in the order in which they have, on the calling thread. With `wait` it
 * blocks until there is one, and pool_fd() stays readable: who polls it has to hear of what was settled meanwhile. One
 * thread at a time, which may do so inside of a `done`, too. Returns whether anything was settled since the last call
 * without `wait`, by whichever call: no poll before this one tells that. */
bool pool_settle(pool *p, bool wait);

/* Runs fn(ctx, 0) ... fn(ctx, n-1), each once, in any order, on the calling thread and on workers
 * that are free, at most `width` at a time, and returns when all are done. The caller works too, so
 * a task may call this without a deadlock when every worker does the same. A call that returns
 * negative stops the hand-out of further items; the first such value is returned, else 0. `width`
 * counts the caller; 0 is taken as 1. */
int pool_each(pool *p, size_t n, unsigned width, int (*fn)(void *ctx, size_t i), void *ctx);

unsigned pool_workers(const pool *p);

/* Waits for the running tasks, runs those that still wait, ends the threads. What was not settled is not: its memory
 * is the submitter's. Nobody but the tasks may use the pool by then, and no task may close it. NULL is fine. */
void pool_close(pool *p);

/* Does as pool_close(), and waits for nothing: a task may stand in a file system that does not answer. The
 * threads end when their tasks do, and the last one frees the pool, so what the tasks use has to outlive
 * them. NULL is fine. */
void pool_leave(pool *p);

#endif
