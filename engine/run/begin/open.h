/* open: a run that holds nothing yet, for what only looks. */
#ifndef RUN_BEGIN_OPEN_H
#define RUN_BEGIN_OPEN_H

#include "run/run_state.h"

/* NULL: no memory. run_close() frees it. */
run *run_new(const run_env *given, const run_options *o);

#endif
