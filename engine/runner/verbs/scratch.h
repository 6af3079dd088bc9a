/* scratch: a directory of our own into which `drill` and `bisect` restore checkpoints. */
#ifndef RUNNER_VERBS_SCRATCH_H
#define RUNNER_VERBS_SCRATCH_H

#include <stddef.h>

/* Makes one for this verb below `parent`, or, without that, below $TMPDIR or /tmp, and tells its path.
 * Returns 0, or the exit code, with the fault reported. */
int scratch_make(const char *verb, const char *parent, char *out, size_t room);
/* Removes what was restored to this path. */
void scratch_clear(const char *path);
/* Removes it all; warns if that fails. */
void scratch_remove(const char *path);

#endif
