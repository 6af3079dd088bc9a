/* proc: tells what /proc says about processes: who they are, what they carry, what they have open.
 *
 * A pid alone names nobody: it is used again. A process is (boot id, pid, start time). Processes of
 * other users cannot be looked into; they are passed over, and the functions say so where it
 * matters. */
#ifndef PRIMS_PROC_H
#define PRIMS_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum { PROC_BOOT_MAX = 64, PROC_MACHINE_MAX = 64, PROC_NAME_MAX = 256, PROC_SPACE_MAX = 128 };

/* Reads the id of this boot of the machine (/proc/sys/kernel/random/boot_id). */
int proc_boot_id(char out[PROC_BOOT_MAX], err *e);

/* Tells the start time in clock ticks since boot, and the session id (either may be NULL).
 * ERR_NOENT if there is no such process; a zombie counts as none, unless threads of it still
 * run. */
int proc_identity(pid_t pid, uint64_t *start, pid_t *sid, err *e);

/* Returns 1 if this very process (same start time) lives, else 0. It is 1 also when it cannot be
 * looked up (no descriptor left, no /proc). */
int proc_alive(pid_t pid, uint64_t start);

/* Returns true only if that process is surely gone: no process has its number, or another one, or it is a zombie.
 * One that is hidden from us is not. Both must be of one space (below): else the number is another one's. */
bool proc_gone(pid_t pid, uint64_t start);

/* Names the space in which our pids and start times hold on this boot, by its namespaces: 1; 0 and "" if
 * that is not known: there is no /proc, or it is that of another namespace. A namespace that is gone may leave its name to a new
 * one; then all its processes are gone, too. */
int proc_space(char out[PROC_SPACE_MAX]);

/* Reads the id of this machine (/etc/machine-id), not to be shown to others as it is: 1; 0 and ""
 * if it has none, as many containers. */
int proc_machine(char out[PROC_MACHINE_MAX]);

/* Calls `found` for each live process but our own whose environment has `name` with this value. The
 * callback returns 0 to go on, else the walk stops with that value. Returns the number found or a
 * negative ERR_*. Looks at the environment as it was at exec: a process that has written its title
 * over it (setproctitle) is missed. So is one that is started during the walk. */
typedef struct proc_info {
  pid_t pid, ppid, sid;
  uid_t uid; /* who started it (the real one); (uid_t)-1: not known */
  uint64_t start;
  char command[PROC_NAME_MAX]; /* its argv, blanks between, cut; never its environment */
} proc_info;
typedef int proc_found(void *ctx, const proc_info *info);
int proc_find_env(const char *name, const char *value, proc_found *found, void *ctx, err *e);

/* Does as the walk above for all descendants of `root` (children, their children, ...), parents
 * first. A process whose parent has ended belongs to the parent's subreaper, or to nobody here. */
int proc_descendants(pid_t root, proc_found *found, void *ctx, err *e);

/* Lists the files at or below `top` that the processes which we may look into, our own excepted,
 * have open for writing now: one walk over /proc, for as many questions as there are. Paths are
 * absolute and without links. A removed file does not count, nor does a file that is only mapped.
 * NULL: no memory. */
typedef struct proc_writers proc_writers;
proc_writers *proc_writers_take(const char *top);
void proc_writers_free(proc_writers *w); /* NULL is fine */

/* True if `path`, or something below it, was open for writing then. True also if no descriptor or
 * memory was left to look. */
bool proc_writers_has(const proc_writers *w, const char *path);

#endif
