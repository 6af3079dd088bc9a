/* drain: whether what was complete when somebody asked for it is durable by now. A drain is a deadline that
 * is taken back: the job goes on. Pure: what became of each checkpoint goes in, one word comes out, and it is
 * standing.h that says it: so a drain never calls durable what the run would not. */
#ifndef PLAN_DRAIN_H
#define PLAN_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/standing.h"

/* The numbers are those of ckpt.h. */
typedef enum drain_is {
  DRAIN_WAITS = 1, /* wanted, and not in the target yet */
  DRAIN_STORED,    /* it, or a newer one of its kind, is */
  DRAIN_UNWANTED,  /* the policy said no, at this event, too */
  DRAIN_OPEN,      /* not known to be complete, so nobody was asked about it */
  DRAIN_LEFT,      /* a newer one was committed, and this one is too late */
  DRAIN_FAILED,    /* given up */
  DRAIN_GONE,      /* removed, or written again, before it was saved */
  DRAIN_UNPROVEN,  /* nothing proves it whole, or it is torn */
} drain_is;

typedef struct drain_unit {
  drain_is is;
  int status;       /* of DRAIN_FAILED: its last error */
  bool aside;       /* it is told of, and decides nothing */
  standing_unit as; /* its kind and its age */
} drain_unit;

typedef struct drain_facts {
  const drain_unit *units;
  size_t count;
  standing_unit *room; /* the caller's, for as many */
  standing_facts run;  /* of the run itself, without its units */
  int unseen;          /* if these alone are why it is not durable, that is why */
  bool unmet;          /* the target may still answer for the first time */
  int end;             /* nothing more is waited for, since time is up, or for another error; 0 */
} drain_facts;

typedef struct drain_answer {
  bool over;
  standing_word word;
  int status;     /* once it is over: 0, or why the newest of some kind is not durable */
  ptrdiff_t late; /* that one: the newest of them; STANDING_NONE */
} drain_answer;

drain_answer drain_judge(const drain_facts *facts);

/* True if it is the newest of its kind, of those that have to be durable. */
bool drain_counts(const drain_unit *units, size_t count, size_t at);

#endif
