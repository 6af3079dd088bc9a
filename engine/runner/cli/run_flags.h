/* run_flags: the options of a run, each in one row: the help, the reading, and the member of
 * ckpt_run_options that the engine gets come from it. */
#ifndef RUNNER_CLI_RUN_FLAGS_H
#define RUNNER_CLI_RUN_FLAGS_H

#include "options.h"

/* The takers: the three verbs that save; `plan`, which says what they would delete; and those that
 * delete by themselves. */
enum {
  FLAGS_RUN = 1 << 0,
  FLAGS_WATCH = 1 << 1,
  FLAGS_SYNC = 1 << 2,
  FLAGS_PLAN = 1 << 3,
  FLAGS_REMOVAL = 1 << 4,
  FLAGS_CHECK = 1 << 5 /* `policy check`, which takes a policy as its word */
};

enum { RUN_FLAGS_MOST = 45 };

/* The rows, in the order of the help, ended by one without takers. */
extern const option_spec run_flags[RUN_FLAGS_MOST];

#endif
