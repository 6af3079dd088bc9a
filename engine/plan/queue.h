/* queue: the rules by which the saves of a group wait for each other: which one has its turn, which is
 * let go for a newer one, which comes too late. Pure: the units of one group go in as they are now, a
 * word about one of them comes out. A run obeys it, and so does a simulated one. */
#ifndef PLAN_QUEUE_H
#define PLAN_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decision/policy.h"
#include "plan/deadline.h"

/* A place in the line of a group: when it was complete; of those that became known together, when its
 * files were written. Zero: none. */
typedef struct queue_place {
  int64_t at_ns, made_ns;
} queue_place;

typedef enum queue_stage {
  QUEUE_AWAY,   /* not in the queue, and not in the store */
  QUEUE_WAITS,  /* wanted, and not begun */
  QUEUE_RUNS,   /* is sent */
  QUEUE_STORED, /* its content is in the store */
} queue_stage;

/* One unit of the group; the texts are borrowed. */
typedef struct queue_unit {
  void *of; /* the caller's own; not looked at */
  const char *series;
  int64_t step, made_ns; /* as in detect_unit */
  queue_place place;
  queue_stage stage;
  bool sure;        /* known to be whole: stored, or on its way there */
  bool judged;      /* whole, and refused by a policy, or given up */
  bool kept;        /* `keep` wants it, as far as it knows what comes behind it */
  bool early;       /* it stood there when the run began */
  bool above;       /* a file above the checkpoints */
  bool rests;       /* its turn has not come by the pace that its kind is saved at */
  int64_t next_try; /* not begun before */
  uint64_t bytes;   /* yet to be sent */
} queue_unit;

typedef struct queue {
  const queue_unit *units;
  size_t count;
  bool keep_all;  /* none is let go for a newer one */
  bool preempted; /* time is short; `rest` says what is still saved */
  bool over;      /* the job has ended */
  bool ranks;     /* several ranks save together; */
  bool follows;   /* and this is not the first, which decides for it */
  policy_rest rest;
  /* Looked at when time is short: the pace of the saves, what all takes that is sent or waits (in all
   * groups; negative: nobody knows), and how much time is left. */
  deadline_pace pace;
  double takes_s;
  int64_t left_ns;
} queue;

enum { QUEUE_NONE = -1 };

/* True if `newer` would serve a restart better in every way. Time alone does not tell: an older step
 * that was restored by name just now has the newest times. Both are of one group. */
bool queue_supersedes(const queue_unit *newer, const queue_unit *u);

/* True if `a` is to be a commit before `b`. */
bool queue_before(const queue_unit *a, const queue_unit *b);
bool queue_is_later(queue_place a, queue_place b);

/* True if all that waits fits into the time that is left. Ranks must all choose alike, and each has a
 * pace of its own: the newest is first there. */
bool queue_fits(const queue *q);

/* True if a unit has its turn though a newer one of its kind waits behind it. */
bool queue_stays(const queue *q, const queue_unit *u);

/* True if a newer one comes first. A restore takes the last commit of the log for the newest: an older
 * one never follows a newer one. */
bool queue_too_late(const queue *q, const queue_unit *u);

/* True if `u`, which waits, is let go for this newer one, which is known to be whole; `all`: also if it
 * could stay. */
bool queue_goes(const queue *q, const queue_unit *newer, const queue_unit *u, bool all);
const char *queue_why_it_goes(const queue *q); /* as the user is told it */

/* True if nobody is asked about `u`, which is held back, any more: a newer one of its kind is whole. */
bool queue_is_outdone(const queue *q, const queue_unit *u);

/* True if it is no commit any more: what is committed last, at this place, was complete after it, or a
 * newer one of its kind is in the store already. */
bool queue_is_late(const queue *q, const queue_unit *u, queue_place newest);
bool queue_is_before(const queue_unit *u, queue_place newest); /* the first of the two alone */

/* What becomes of a unit that comes to the queue. */
typedef enum queue_word {
  QUEUE_ENTERS,
  QUEUE_PUSHES,  /* and older ones go for it, as queue_goes() says */
  QUEUE_REFUSED, /* the policy wants no queue, and another one runs or waits */
  QUEUE_PASSED,  /* a newer one is saved or waits already */
} queue_word;
/* `u` waits, is among q->units, and is not late; `how` is the policy's word. */
queue_word queue_enter(const queue *q, const queue_unit *u, policy_queue how);
/* Why it does not enter, as the user is told it; NULL: it does. */
const char *queue_why_not(queue_word word);

/* Returns the place in q->units of the one whose turn it is, now or at its next try; QUEUE_NONE: all
 * wait for long. `now` is of the clock of `next_try`. */
ptrdiff_t queue_next(const queue *q, int64_t now);

#endif
