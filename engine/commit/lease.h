/* lease: a hint in the store, <prefix>/.ckpt/lease, that says a writer is alive.
 *
 * It saves double work and asks before somebody is pushed aside. Safety never hangs on it: the
 * fencing token of the term provides that. It is renewed every LEASE_RENEW and believed for
 * LEASE_LIFE after its last renewal, both by the store's own clock (the lease's age is the time of
 * a fresh probe object less its own), so hosts whose clocks differ agree. */
#ifndef COMMIT_LEASE_H
#define COMMIT_LEASE_H

#include "commit/log/runlog.h"

enum { LEASE_RENEW_S = 300, LEASE_LIFE_S = 900 };

/* How the end of a lease is waited for. */
typedef struct lease_wait {
  /* Told, on the calling thread: for so many seconds at most, and whose it is: of a writer
   * with this machine's id and another boot, or (`other`) of one that may be alive. */
  void (*begins)(void *ctx, int64_t seconds, bool other);
  /* True if the scheduler says that this job of the holder (runlog_writer.job) is over; false if
   * nobody can tell. May be NULL. */
  bool (*over)(void *ctx, const char *job);
  void *ctx;
  int64_t until_ns; /* IO_MONO: a writer that may be alive is waited for until then; 0: it is not */
} lease_wait;

/* Checks that `who` may open a term on a log whose newest term is `term`. It may (0) if
 *
 *   - there is no term;
 *   - the job or the launch is the same, or machine, boot and state directory are (then we hold
 *     that writer's local lock; a host's name and a path are nobody's own);
 *   - no lease stands, it is released, or it was not renewed for its life; or
 *   - `take_over` is set.
 *
 * If that writer ran on this machine before the last boot, or on one with a copy of its id, the end of
 * the lease is waited for (`wait` is told, NULL: nobody): 0 when it is over, ERR_CANCELED. So is that of
 * any other writer until `wait->until_ns`, or until `wait->over` says that its job is over. Otherwise
 * ERR_HELD, with a text that names the holder, the lease's age, when to come back, and what else can be
 * done. Of a writer that is surely gone it says so, and holds all the same: what it had not saved is in its own
 * directory, and who begins elsewhere goes on without it. */
int lease_check(store *s, const char *prefix, const runlog_term *term, const runlog_writer *who,
                bool take_over, const lease_wait *wait, err *e);

/* True if the newest term's writer says that it is the same job, started again. */
bool lease_is_ours(const runlog_writer *old, const runlog_writer *who);

/* True if the writer of the newest term is surely gone: it ran on this boot, among the very processes that we see
 * (a container on this host has numbers of its own), and no process is it. False: nobody knows. */
bool lease_writer_gone(const runlog_writer *old, const runlog_writer *who);

/* Tells the time by the store's own clock: that of an object made just now below
 * <prefix>/.ckpt/. */
int lease_store_now(store *s, const char *prefix, int64_t *out, err *e);

typedef struct lease_seen {
  bool present;
  bool released;      /* the writer of that term has ended well */
  int64_t renewed_ns; /* or released, by the store's own clock */
  uint64_t term;      /* that it names; RUNLOG_NONE: it cannot be read */
  bool says_over;     /* it is released, of whichever term it is */
  bool epochs;        /* its writer asks for later epochs of the log */
} lease_seen;

/* Tells what the lease says of term `term`, which is the newest. */
int lease_look(store *s, const char *prefix, uint64_t term, lease_seen *out, err *e);

/* Writes or renews the lease of term `n`. */
int lease_renew(store *s, const char *prefix, uint64_t n, const runlog_writer *who, err *e);
/* Writes into the lease that `who` has ended well, if it is still that of term `n`. */
int lease_release(store *s, const char *prefix, uint64_t n, const runlog_writer *who, err *e);

#endif
