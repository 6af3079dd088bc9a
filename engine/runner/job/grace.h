/* grace: how long the job may take to end when it is told to. */
#ifndef RUNNER_GRACE_H
#define RUNNER_GRACE_H

#include "ckpt.h"
#include "runner/cli/options.h"

typedef struct grace {
  double s; /* from a signal to the end */
} grace;

/* Asks who ends us how long it waits, where the user did not say it: to be called at each signal. Blocks, 2 s at
 * most. */
void grace_find(grace *g, ckpt *engine, const options *o);

/* Returns how long the end may take, in seconds. Whoever signals us sends SIGKILL when the grace is over: its
 * rest is for ending the term and for the last line. */
double grace_patience(const grace *g);

#endif
