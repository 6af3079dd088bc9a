/* drain: whether what was complete when somebody asked for it is durable by now. A drain is a deadline that
 * is taken back: the job goes on. Pure: what became of each checkpoint goes in, one word comes out. */
#ifndef PLAN_DRAIN_H
#define PLAN_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are those of ckpt.h. */
typedef enum drain_is {
  DRAIN_WAITS = 1, /* wanted, and not in the target yet */
  DRAIN_STORED,    /* it, or a newer one of its kind, is */
  DRAIN_UNWANTED,  /* the policy said no, at this event, too */
  DRAIN_OPEN,      /* not known to be complete, so nobody was asked about it */
  DRAIN_LEFT,      /* a newer one was committed, and this one is too late */
  DRAIN_FAILED,    /* given up */
  DRAIN_GONE,      /* removed, or written again, before it was saved */
} drain_is;

typedef struct drain_unit {
  drain_is is;
  int status;        /* of DRAIN_FAILED: its last error */
  const void *group; /* those of one kind have the same group and an equal series */
  const char *series;
  int64_t made_ns, step; /* the newest of a kind is what counts; the step breaks a tie */
} drain_unit;

enum { DRAIN_NONE = -1 };

typedef struct drain_answer {
  bool over;
  int status;     /* once it is over: 0, or why the newest of some kind is not durable */
  ptrdiff_t late; /* that one: the newest of them; DRAIN_NONE */
} drain_answer;

/* `end`: nothing more is waited for, since time is up (0: it is not), or for another error. */
drain_answer drain_judge(const drain_unit *units, size_t count, int end);

/* True if it is the newest of its kind, of those that have to be durable. */
bool drain_counts(const drain_unit *units, size_t count, size_t at);

#endif
