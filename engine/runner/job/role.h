/* role: decides our part, if a launcher (srun, torchrun, mpirun) has started many of us: who
 * watches and saves a directory, and who does not.
 *
 * Of the tasks that see one directory, one watches it. The others are by-standers: each starts its
 * job when the directory is ready, and ends with it. Where every node has a directory of its own,
 * the watchers of all nodes save together, as ranks of one world. */
#ifndef RUNNER_JOB_ROLE_H
#define RUNNER_JOB_ROLE_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt.h"
#include "runner/cli/options.h"

typedef struct role {
  bool watches;          /* else it is a by-stander */
  bool awaited;          /* by-standers wait for this one */
  uint32_t rank, world;  /* of those that save together; world 1: alone */
  uint32_t task, tasks;  /* of all that the launcher started */
  uint32_t index, count; /* of those that write into the directory; count 0: not known, 1: alone */
  char launch[128];      /* "": none is needed */
  char source[32];       /* which launcher */
  bool shared;           /* the directory is one that all hosts see */
} role;

/* Decides our part by the options and the facts. Pure. `found` may have world 0; `shared`: of the
 * directory, asked only if it matters (negative: not known, an error is then said). 0, or -1 with a
 * line for the user. */
enum { ROLE_ERROR_MAX = 512 };
int role_decide(const options *o, const ckpt_ranks *found, int shared, role *out,
                char error[ROLE_ERROR_MAX]);
/* Does the same, with the facts of this process. Says an error on stderr and returns the exit code,
 * or 0. */
int role_look(const options *o, role *out);

#endif
