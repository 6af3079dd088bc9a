/* processes: finds processes below us, and ends some for certain.
 *
 * A pid alone names nobody, since it is used again. A process is its pid and its start time; it is
 * signalled through a pidfd that was taken before the start time was compared, so that no stranger
 * can be hit. */
#ifndef RUNNER_JOB_PROCESSES_H
#define RUNNER_JOB_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct process {
  pid_t pid, parent;
  uint64_t start; /* clock ticks since boot */
  bool zombie;
  char name[32]; /* its name in the kernel: of its file, cut */
} process;

typedef struct process_list {
  process *items;
  size_t count;
} process_list;

/* Reads what /proc says of `pid`: 0 or -errno. */
int process_read(pid_t pid, process *out);

/* Finds live descendants of `root`: children, their children and so on; zombies are none. Replaces
 * the content of `out`. 0 or -errno. */
int processes_below(pid_t root, process_list *out);
void processes_free(process_list *list);

/* True if `pid` is an ancestor of ours, or ourselves. */
bool process_is_ancestor(pid_t pid);

/* True if the process was started with name=value in its environment, as far as we may see that. */
bool process_carries(pid_t pid, const char *name, const char *value);

/* Sends `signo` to this very process. 0, -ESRCH if it is gone, -EPERM, ... */
int process_signal(pid_t pid, uint64_t start, int signo);

/* Asks each to end with SIGTERM, waits up to `grace_s` seconds for all, then ends those that are
 * left with SIGKILL. 0 when all are gone; else the -errno of the first that could not be ended
 * (-EPERM: another user's; -EBUSY: it does not go), which *left (may be NULL) gets. Blocks. */
int processes_end(const process_list *list, double grace_s, process *left);

#endif
