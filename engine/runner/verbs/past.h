/* past: asks a question of a time that is over: what does a policy say of a checkpoint, by what a target's
 * log had in it then? */
#ifndef RUNNER_VERBS_PAST_H
#define RUNNER_VERBS_PAST_H

#include "runner/cli/options.h"

/* Answers for o->name behind entry o->at of the logs at o->to. Returns the exit code. */
int past_answer(const options *o);

#endif
