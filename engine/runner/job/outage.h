/* outage: what is said while saves fail again and again for a reason that may pass: the first failure
 * at once, then a line now and then, and one when saving works again. */
#ifndef RUNNER_JOB_OUTAGE_H
#define RUNNER_JOB_OUTAGE_H

#include <stdbool.h>

#include "ckpt.h"

typedef struct outage {
  bool on;
  double since, next_at; /* monotonic, in seconds; next_at INFINITY: no line is due */
  char reason[512];      /* of the last failure */
} outage;

void outage_init(outage *o);
/* Takes in a completion. Returns true if it is to be said as always; false if it is one more
 * failure of an outage that was told. *after (may be NULL) gets the seconds that an outage lasted
 * which is over now, else 0. */
bool outage_take(outage *o, const ckpt_completion *c, double now, double *after);
/* True if a line is due; the next one is, a while later. `pending`: how many checkpoints wait; where
 * none does, the outage is forgotten. */
bool outage_due(outage *o, double now, unsigned pending);
/* Says it. */
void outage_say(const outage *o, double now, unsigned pending);
void outage_say_over(double after);

#endif
