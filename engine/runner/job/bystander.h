/* bystander: a task whose directory another task watches. It has no run, no lock and no lease; it
 * waits until the directory is ready, runs its command, and ends with it. Meanwhile it tells the one
 * that watches what it sees there. */
#ifndef RUNNER_JOB_BYSTANDER_H
#define RUNNER_JOB_BYSTANDER_H

#include "runner/cli/options.h"
#include "role.h"

/* Lives the whole life of one; returns the exit code. */
int bystander_run(const options *o, const role *role);

#endif
