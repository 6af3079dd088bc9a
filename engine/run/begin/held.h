/* held: groups that another writer holds when a start finds them. */
#ifndef RUN_BEGIN_HELD_H
#define RUN_BEGIN_HELD_H

#include "run/run_state.h"

/* Settles which of them the job has to have before it begins: they are waited for, as the user allows
 * it, or it is ERR_HELD. `leave`: the user wants none of them. Then begins what may be begun. */
int run_held_settle(run *r, bool leave, err *e);

#endif
