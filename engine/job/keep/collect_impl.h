/* collect_impl: declarations that collect.c and collect_*.c share. */
#ifndef JOB_KEEP_COLLECT_IMPL_H
#define JOB_KEEP_COLLECT_IMPL_H

#include "collect.h"
#include "commit/lease.h"
#include "commit/pins.h"

enum { COLLECT_DAY_S = 24 * 3600 };
#define WRITER_LIFE_NS ((int64_t)LEASE_LIFE_S * 1000000000)

typedef struct collecting {
  const collect *c;
  int64_t now; /* by the store's clock */
  pins pins;
  bool pins_known; /* otherwise any checkpoint may have one */
  int stopped;     /* the value that `told` returned */
  size_t failures;
  int status; /* of the first failure */
  err first;
} collecting;

/* Reads the store's clock, and the pins. Free it, on failure too. */
int collect_begin(collecting *g, const collect *c, err *e);
void collect_free(collecting *g);
/* Returns the value of told(), or the first failure in `e`, or 0. */
int collect_result(const collecting *g, err *e);

/* Tells that something is removed, or with a status that it stays and why. */
void collect_tell(collecting *g, const collected *what);
/* Tells that a step as a whole failed. */
void collect_failed(collecting *g, const char *what, int status, const char *why);

/* Times for which nothing has happened, as far as lease and log tell. */
typedef struct quiet {
  int64_t term_ns;  /* since the newest term was opened */
  int64_t log_ns;   /* since the last entry */
  int64_t lease_ns; /* since the lease was renewed; INT64_MAX: there is none */
  bool leased;      /* there is a lease */
  bool released;    /* it says that the newest term's writer has ended well */
  bool gone;        /* the newest term's writer is gone */
} quiet;
int collect_look_for_writer(const collecting *g, quiet *q, err *e);

/* Sums up the bytes of the objects at or below a key. A listing that fails counts as 0. */
uint64_t collect_measure(const collecting *g, const char *key);

bool collect_is_pinned(const collecting *g, uint64_t commit);

/* ---- the steps ---- */

/* collect_litter.c: collects the leftovers of saves and checkpoints that the log has let go. */
void collect_litter(collecting *g);
/* collect_thin.c: collects files that the log lets go of commits that stay. */
void collect_thin(collecting *g);
/* Collects the marks at this key of such files that went, of checkpoints that the log has no more. */
void collect_thin_marks(collecting *g, const char *key);
/* collect_unfinished.c: collects uploads and temporary files. */
void collect_unfinished(collecting *g);

/* Finds the live commit whose manifest stands in that directory; NULL: none. */
const runlog_commit *collect_live_there(const collecting *g, const char *dir);

/* True if an attempt is not wanted any more: swept, or its commit deleted and not pinned. */
bool collect_is_gone(const collecting *g, const runlog_attempt *a);

#endif
