/* failn: plays a scenario with a failure in it, at call 1, 2, 3, ... until it passes, and looks at
 * what stands after each.
 *
 * Each system call fails with each errno that fits it, once and for good, and with its answer lost
 * after the work was done; each request to the store with each status that fits. After each: every
 * commit that is listed can be restored byte for byte (else it is torn), every commit that was
 * reported is listed (else it is lost), no descriptor and no memory is left (leaks). Then the
 * scenario is played again without a failure, as by the next process, and must succeed. */
#ifndef SPEC_FAILN_H
#define SPEC_FAILN_H

#include "world.h"

/* A file of each directory that make_unit() makes. */
#define FAILN_SHARD "sub/shard\xff"

enum { FAILN_ACKS = 16 };

typedef struct failn_scene {
  world *w;      /* its env.store and env.io are those that fail */
  runlog *log;   /* of `before`; may be NULL */
  unsigned play; /* 0 in `before`, 1 while calls fail, 2 the second time */
  struct {
    uint64_t commit;
    bool may_go; /* a retention of the scenario's own is about to remove it */
  } acks[FAILN_ACKS];
  size_t ack_count;
} failn_scene;

typedef struct failn_scenario {
  const char *name;
  const char *scheme; /* of the store */
  /* Makes what was there before; nothing fails. */
  void (*before)(failn_scene *s);
  /* Does the work of one process, from its start to its end. It is an error if it reports success
   * and did not do it, which `after` can tell. */
  int (*act)(failn_scene *s, err *e);
  /* Looks at what only this scenario knows; NULL: all is well, else what is wrong (static). Called
   * after each act, `done` if that said 0. `s->w` has a store that works. May be NULL. */
  const char *(*after)(failn_scene *s, bool done);
  /* An `open` that says ENOENT is no failure here but another world: the log ends where its next
   * entry is not there, and no reader can tell a file that is denied from one that was never made.
   */
  bool only_reads;
} failn_scenario;

typedef struct failn_sum {
  long points, torn, lost, leaks, wrong;
} failn_sum;

/* Every `stride`th point of a scenario. Prints what it finds. Adds to `sum`. */
void failn_walk(const failn_scenario *what, long stride, failn_sum *sum);

/* Two days pass: nobody holds a lease any more, and no grace is left. */
void failn_two_days(failn_scene *s);

/* For `act`: a commit was reported as durable. */
void failn_ack(failn_scene *s, uint64_t commit);

#endif
