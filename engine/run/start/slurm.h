/* slurm: the job of a writer, by its name in a lease, and what Slurm says of it; the end of our own job.
 *
 * A job's number is of its cluster: another cluster, which may share the target, has one of the same
 * number. So the name has both, and only our own cluster is asked. */
#ifndef RUN_SLURM_H
#define RUN_SLURM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
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

/* Names our own job as Slurm's commands take it, by SLURM_JOB_ID, SLURM_ARRAY_JOB_ID and
 * SLURM_ARRAY_TASK_ID (NULL or "": not set). False: we are in none. The last task of an array has the
 * number of the array, which would mean all of its tasks; what a job has inherited of an array that
 * submitted it has another number. */
enum { SLURM_OWN_MAX = 64 };
bool slurm_own(const char *number, const char *array, const char *task, char out[SLURM_OWN_MAX]);

/* Reads KillWait, in seconds, from what `scontrol show config` prints; negative: it is not there. */
double slurm_kill_wait(const char *config);

/* The time that a job has left; negative: not known. */
typedef struct slurm_time_left {
  double ends_s; /* until Slurm ends it, or 0 where it does so already */
  double kill_s; /* until SIGKILL */
} slurm_time_left;
/* Judges the end that squeue prints, in seconds since 1970 ("N/A", "NONE": none). Slurm brings it
 * forward when it preempts or cancels a job; one that is over an hour away is nobody's plan yet. */
void slurm_judge_end(const char *end, double now_s, double kill_wait_s, slurm_time_left *out);

/* Asks squeue and scontrol about the job of that number, 2 s at most. `end`: what SLURM_JOB_END_TIME
 * says, where squeue does not answer; may be NULL. Blocks. */
void slurm_time(const io *io, const char *number, const char *end, slurm_time_left *out);

/* Has a job that runs end and wait for its next start. ERR_CONFLICT: it does not run any more. A job
 * that was cancelled would come back, while the last of it ends. ERR_IO: Slurm does not say, or does
 * not do it. Blocks, 20 s at most. */
int slurm_requeue(const io *io, const char *number, err *e);

/* What we write into a comment begins so, and what does not is somebody else's. */
#define SLURM_OURS "ckpt-lua "
/* Reads a comment from what `scontrol show job` prints; false, and "": there is none. */
bool slurm_comment_of(const char *shown, bool admin, char *out, size_t room);
/* Writes a comment (`admin`: AdminComment, which is an operator's) of a job. ERR_HELD: there is one that is
 * not ours. ERR_ACCESS: Slurm refuses it. ERR_IO: it does not answer. Blocks, 20 s at most, or until `stop`
 * is set. */
int slurm_comment(const io *io, const char *number, bool admin, const char *text,
                  const atomic_int *stop, err *e);

#endif
