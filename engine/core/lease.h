/* lease: a hint in the store, <prefix>/.ckpt/lease, that says a writer is alive.
 *
 * It saves double work and asks before somebody is pushed aside. Safety never hangs on it: that is
 * the term's work. It is renewed every LEASE_RENEW and believed for LEASE_LIFE after its last
 * renewal, both by the store's own clock (the lease's age is the time of a fresh probe object less
 * its own), so hosts whose clocks differ agree. */
#ifndef CORE_LEASE_H
#define CORE_LEASE_H

#include "core/runlog.h"

enum { LEASE_RENEW_S = 300, LEASE_LIFE_S = 900 };

/* Told, on the calling thread, that the end of a lease is waited for: so many seconds at most. */
typedef struct lease_wait {
  void (*begins)(void *ctx, int64_t seconds);
  void *ctx;
} lease_wait;

/* May `who` open a term on a log whose newest term is `term`? Yes (0) if there is no term; if the
 * job or the launch is the same, or machine, boot and state directory are (its local lock is ours
 * then; a host's name and a path are nobody's own); if no lease stands, it is released, or it was
 * not renewed for its life; or if `take_over`. If that writer ran on this machine before it was
 * started anew, the lease is waited for (`wait` is told, NULL: nobody): 0 when it is over,
 * ERR_CANCELED. Else, and when it is renewed meanwhile, ERR_HELD, with a text that names the
 * holder, the lease's age, when to come back, and --take-over. */
int lease_check(store *s, const char *prefix, const runlog_term *term, const runlog_writer *who,
                bool take_over, const lease_wait *wait, err *e);

/* The time by the store's own clock: that of an object made just now below <prefix>/.ckpt/. */
int lease_store_now(store *s, const char *prefix, int64_t *out, err *e);

typedef struct lease_seen {
  bool present;
  bool released;      /* that term's writer has ended well */
  int64_t renewed_ns; /* or released, by the store's own clock */
} lease_seen;

/* What the lease says of term `term`, which is the newest. */
int lease_look(store *s, const char *prefix, uint64_t term, lease_seen *out, err *e);

/* Writes or renews the lease of term `n`. */
int lease_renew(store *s, const char *prefix, uint64_t n, const runlog_writer *who, err *e);
/* Says in it that `who` has ended well, if it is still that of term `n`. */
int lease_release(store *s, const char *prefix, uint64_t n, const runlog_writer *who, err *e);

#endif
