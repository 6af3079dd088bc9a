/* io_fault: an `io` around another one that counts, logs, and fails calls on request.
 *
 * The usual test: run an operation with call 1 failing, then call 2, ... until a run in which
 * nothing was left to fail. Threads may use it at the same time. */
#ifndef SPEC_IO_FAULT_H
#define SPEC_IO_FAULT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/io.h"

/* The system's, but fsync and fdatasync only look at the descriptor. A loop of a thousand failures
 * on a real disk would wait for it most of its time. */
const io *io_unflushed(void);

typedef enum io_call {
  CALL_ANY, /* every kind but `now`, which cannot fail */
  CALL_OPEN,
  CALL_LOOK_UP, /* an open that only names what is there: O_PATH */
  CALL_CLOSE,
  CALL_READ,
  CALL_PREAD,
  CALL_WRITE,
  CALL_FSYNC,
  CALL_FDATASYNC,
  CALL_FTRUNCATE,
  CALL_FSTAT,
  CALL_LSTAT,
  CALL_BIRTH,
  CALL_MKDIR,
  CALL_RENAME,
  CALL_LINK,
  CALL_UNLINK,
  CALL_SYMLINK,
  CALL_READLINK,
  CALL_CHMOD,
  CALL_UTIMENS,
  CALL_GETDENTS,
  CALL_CLONE,
  CALL_COPY_RANGE,
  CALL_RANDOM,
  CALL_NOW,
  CALLS,
} io_call;

/* Says which calls fail. Zero: none. */
typedef struct io_fault_plan {
  io_call kind;
  long nth;      /* the first call of this kind that fails, counted from 1; 0: none */
  int errnum;    /* an errno, positive */
  bool for_good; /* it and all later ones of the kind; else only this one */
  bool done;     /* the call is carried out, and only its reply is lost */
} io_fault_plan;

typedef struct io_fault io_fault;

io_fault *io_fault_new(const io *inner); /* never NULL: aborts */
void io_fault_free(io_fault *f);
const io *io_fault_io(io_fault *f); /* good until io_fault_free */

/* Sets the plan and starts all counters and the log anew. A failing close does close. */
void io_fault_set(io_fault *f, io_fault_plan plan);
/* Sets the plan of the usual case: one call fails, and is not carried out. */
void io_fault_once(io_fault *f, io_call kind, long nth, int errnum);
/* Return the number of calls of this kind since then, and of those that were failed. */
long io_fault_count(io_fault *f, io_call kind);
long io_fault_failed(io_fault *f, io_call kind);
/* write() takes at most this many bytes at a time; 0: all. */
void io_fault_short_writes(io_fault *f, size_t most);

/* The log has a line for each call but read, fstat, lstat and now: "fsync PATH", "rename FROM >
 * TO", with the path that a descriptor was opened with, and " = -ERRNO" for a failure. Gives the
 * number of the first line from `from` on that starts with `what`, or -1. */
int io_fault_find(io_fault *f, int from, const char *what);
/* The whole log, for people. The caller frees it. */
char *io_fault_log(io_fault *f);

#endif
