/* shipped: one of the policies that come with us, by its name. */
#ifndef RUNNER_POLICY_SHIPPED_H
#define RUNNER_POLICY_SHIPPED_H

#include "ckpt.h"
#include "runner/cli/options.h"

/* Calls `fn` with the policy of this name, and returns the exit code: what `fn` returned, or that of a
 * failure, which was said then. */
int shipped_with(const options *o, ckpt_policy_fn *fn, void *ctx);

#endif
