/* verbs: one function for each verb of the command line; it returns the exit code. */
#ifndef RUNNER_VERBS_H
#define RUNNER_VERBS_H

#include "options.h"

int verb_run(const options *o); /* also `watch`: the same without a child */
int verb_restore(const options *o);
int verb_ls(const options *o);
int verb_verify(const options *o);
int verb_version(const options *o);

#endif
