/* ticker: calls a function now and then on a thread of its own, while the owner's blocks. */
#ifndef RUN_WAIT_TICKER_H
#define RUN_WAIT_TICKER_H

#include <stdint.h>

#include "base/err.h"

typedef struct ticker ticker;

/* Calls fn(ctx, n) every `every_ns` (at least 1 ms), with n = 1, 2, ... */
int ticker_begin(int64_t every_ns, void (*fn)(void *ctx, uint64_t n), void *ctx, ticker **out,
                 err *e);
/* Waits for a call that is under way; there is none after it. NULL is fine. */
void ticker_end(ticker *t);

#endif
