#include "ticker.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "prims/pool.h"

struct ticker {
  pool *thread;
  int over; /* an eventfd: readable when it is to end */
  int pause_ms;
  void (*fn)(void *ctx, uint64_t n);
  void *ctx;
};

static void tick_on_thread(void *arg) {
  ticker *t = arg;
  struct pollfd end = {.fd = t->over, .events = POLLIN};
  for (uint64_t n = 1;; n++) {
    int rc = poll(&end, 1, t->pause_ms);
    if (rc > 0 || (rc < 0 && errno != EINTR)) return;
    if (rc == 0) t->fn(t->ctx, n);
  }
}

static void discard(ticker *t) {
  pool_close(t->thread);
  if (t->over >= 0) close(t->over);
  free(t);
}

int ticker_begin(int64_t every_ns, void (*fn)(void *ctx, uint64_t n), void *ctx, ticker **out,
                 err *e) {
  int64_t ms = every_ns / 1000000;
  ticker *t = *out = calloc(1, sizeof *t);
  if (!t) return err_set(e, ERR_NOMEM, "start a thread: out of memory");
  *t = (ticker){.over = eventfd(0, EFD_CLOEXEC),
                .pause_ms = ms < 1         ? 1
                            : ms > INT_MAX ? INT_MAX
                                           : (int)ms,
                .fn = fn,
                .ctx = ctx};
  int rc = t->over < 0 ? err_sys(e, -errno, "start a thread: eventfd") : 0;
  if (rc == 0) rc = pool_open(&t->thread, 1, 1, e);
  if (rc == 0) rc = pool_submit(t->thread, tick_on_thread, NULL, t, e);
  if (rc == 0) return 0;
  discard(t);
  *out = NULL;
  return rc;
}

void ticker_end(ticker *t) {
  static const uint64_t one = 1;
  if (!t) return;
  /* A counter of 1 always fits: the write cannot fail, and the thread cannot miss it. */
  (void)!write(t->over, &one, sizeof one);
  discard(t);
}
