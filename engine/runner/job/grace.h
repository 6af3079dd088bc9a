/* grace: how long the job may take to end when it is told to. */
#ifndef RUNNER_GRACE_H
#define RUNNER_GRACE_H

#include <stdbool.h>

#include "ckpt.h"
#include "runner/cli/options.h"

typedef struct grace {
  double s;         /* from a signal to the end */
  char killer[128]; /* the launcher that leaves no more, for the user; "": it is not a launcher's */
} grace;

/* Asks who ends us how long it waits, where the user did not say it: to be called at each signal. `ends`: it is
 * SIGTERM or its like, and no warning. Blocks, 2 s at most. */
void grace_find(grace *g, ckpt *engine, const options *o, bool ends);

/* Returns how long the end may take, in seconds. Whoever signals us sends SIGKILL when the grace is over: its
 * rest is for ending the term and for the last line. */
double grace_patience(const grace *g);

#endif
