/* shared: schedules of tasks that write into one directory. */
#ifndef SPEC_SIM_SHARED_H
#define SPEC_SIM_SHARED_H

#include "sim.h"

void shared_run(uint64_t seed);
void shared_end(void); /* what it made is removed */

#endif
