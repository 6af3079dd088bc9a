/* shared: schedules of tasks that write into one directory. */
#ifndef SPEC_SIM_SHARED_H
#define SPEC_SIM_SHARED_H

#include "sim.h"

void shared_make(void); /* a place for all schedules, once */
void shared_run(uint64_t seed);
void shared_end(void);

#endif
