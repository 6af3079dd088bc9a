/* detect_live: runs a detector on real files in real time, as the runner does. */
#ifndef SPEC_DETECT_LIVE_H
#define SPEC_DETECT_LIVE_H

#include "event/detect.h"

int64_t live_now(void); /* monotonic */

/* Sleeps on the detector's descriptor until it is due, and runs it, for so long. */
void live_run_for(detect *d, int64_t ns);

detect_state live_state(detect *d, const char *path); /* DETECT_GONE: it is not known */

/* Runs it until the unit is in that state; fails after 4 s. */
void live_wait_for(detect *d, const char *path, detect_state want);

#endif
