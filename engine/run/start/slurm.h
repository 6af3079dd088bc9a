/* slurm: the job of a writer, by its name in a lease, and what Slurm says of it.
 *
 * A job's number is of its cluster: another cluster, which may share the target, has one of the same
 * number. So the name has both, and only our own cluster is asked. */
#ifndef RUN_SLURM_H
#define RUN_SLURM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/io.h"

/* Names a job: "slurm:CLUSTER/NUMBER"; "slurm:NUMBER" if the cluster is not known (NULL or ""), and
 * "" if there is no number. */
void slurm_name_job(const char *cluster, const char *number, char *out, size_t room);

/* True if both are of one cluster whose name is known; `number` gets the other's, digits alone. */
enum { SLURM_NUMBER_MAX = 24 };
bool slurm_same_cluster(const char *ours, const char *job, char number[SLURM_NUMBER_MAX]);

/* Reads the state of a job as squeue, or sacct, prints it: true if it has ended, and nothing of it
 * runs. Anything else, the empty answer too, is not over. */
bool slurm_ended(const char *text);

/* Asks Slurm (squeue, then sacct; 10 s each) whether a job of our own cluster is over. False if it
 * is not, if it is another cluster's, if Slurm does not know it, or cannot be asked. Blocks. */
bool slurm_is_over(const io *io, const char *ours, const char *job);

#endif
