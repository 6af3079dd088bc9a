/* child: a helper program of ours, with pipes between it and us as its standard input and output.
 *
 * The process that we live in may be somebody else's, with threads, signal handlers and habits of
 * its own. So: no fork(2), no handler is installed or relied on, nothing raises SIGPIPE here, only
 * this very process is ever waited for or killed (whatever became of its number), and a host that
 * reaps or ignores all children does no harm. One thread at a time. */
#ifndef PRIMS_CHILD_H
#define PRIMS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/io.h"
#include "base/names.h"

typedef struct child child;

/* The variables of our environment with these names (ended by NULL), for an environment of its own:
 * the secrets in ours are none of a helper's business. False: out of memory. */
bool child_env(const char *const *kept, names *env);

/* Starts `path` with this command line and environment (each ended by NULL). It gets the pipes as
 * descriptors 0 and 1, /dev/null as 2, and no other; a process group of its own, and the signals
 * that are sent to whole jobs (TERM, INT, HUP, QUIT, USR1, USR2, TSTP) blocked: only we are to end
 * it. It sees the end of its input when we close, or die. The io is for clocks. */
int child_start(const io *io, const char *path, char *const argv[], char *const envp[], child **out,
                err *e);

pid_t child_pid(const child *c);

/* CPU time that it has used so far, in ns; 0 if it cannot be told (it has ended). */
int64_t child_cpu_ns(const child *c);

/* Transfers may last until this moment of IO_MONO, or until child_cpu_ns() is this. */
typedef struct child_limit {
  int64_t wall_ns, cpu_ns;
  bool waited; /* false at first; its CPU time is looked at from the second wait on */
} child_limit;

/* Sends all `len` bytes, or fails: ERR_TIMEOUT (either limit; the text says which), or another
 * error when the child closed its end. The CPU limit is looked at every 20 ms at least. */
int child_send(child *c, const void *bytes, size_t len, child_limit *limit, err *e);
int child_recv(child *c, void *to, size_t len, child_limit *limit, err *e);

/* True while its output is open and nothing came that has not been received. */
bool child_idle(const child *c);

enum { CHILD_HOW_MAX = 96 };
/* Closes the pipes, gives it `patience_ns` to end by itself, kills it, reaps it, frees `c` (NULL
 * is fine). `how` (may be NULL) gets what became of it: "it ended with exit code 3", "signal SEGV
 * killed it". Blocks for a second more at most, if the kernel does not let it die. */
void child_end(child *c, int64_t patience_ns, char how[CHILD_HOW_MAX]);

#endif
