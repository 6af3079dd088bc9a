/* clock: the clock by which the runner waits. */
#ifndef RUNNER_CLI_CLOCK_H
#define RUNNER_CLI_CLOCK_H

/* Seconds on the monotonic clock: nobody sets it. */
double clock_s(void);

/* Sleeps so long, or until a signal is handled. */
void clock_pause(double seconds);

#endif
