/* loop: the loop around one run, for `run`, `watch` and `sync`. It sleeps in poll() until a signal,
 * the engine, a client of the socket or a time that was set wakes it; with nothing due it has no
 * wake-ups of its own. */
#ifndef RUNNER_JOB_LOOP_H
#define RUNNER_JOB_LOOP_H

#include "start.h"

/* Returns the exit code. */
int loop_run(const options *o, session_kind kind);

#endif
