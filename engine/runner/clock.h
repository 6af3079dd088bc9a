/* clock: the one by which the runner waits. */
#ifndef RUNNER_CLOCK_H
#define RUNNER_CLOCK_H

/* Seconds on the monotonic clock: nobody sets it. */
double clock_s(void);

#endif
