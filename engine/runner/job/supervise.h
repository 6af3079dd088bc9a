/* supervise: the job's process: starts it, passes signals on, reaps it and the processes that it
 * leaves behind.
 *
 * The job stays in our process group and session: the terminal's job control, ^C and ^Z work as if
 * we were not there. We are its subreaper: whatever it starts becomes our child when its own parent
 * is gone, so nothing that it left running can go on writing unseen. */
#ifndef RUNNER_JOB_SUPERVISE_H
#define RUNNER_JOB_SUPERVISE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

/* We take so many signals, and the job gets their handling back as we found it. */
enum { SUPERVISE_SIGNALS = 7 };

typedef struct supervisor {
  pid_t child;   /* 0: none was started */
  bool ended;    /* the child was reaped: */
  int status;    /* its wait status */
  sigset_t mask; /* what we inherited */
  struct sigaction before[SUPERVISE_SIGNALS];
  int signals; /* reads what came: signalfd_siginfo; -1: none */
  pid_t
      witness; /* gets what is sent to each process of our batch script; 0: we are not the script */
  int witnessed; /* reads the number of each signal that it got; -1: none */
} supervisor;

/* Must be called first of all: remembers what was inherited, and makes a broken pipe an error
 * instead of our end. As process 1, where the kernel drops signals that nobody handles, TERM, INT
 * and HUP end us until supervise_begin(). */
void supervise_init(supervisor *s);

/* From here on TERM, INT, HUP, USR1 and CHLD are read from s->signals; those that were ignored when
 * we were started stay so (nohup, a shell's `&`). Makes us the subreaper. 0 or -errno. */
int supervise_begin(supervisor *s);

/* Starts argv[0] (looked up in PATH) with the environment `envp`, and returns once it runs: 0, or
 * the exit code that shells have for it: 127 (there is no such command), 126 (it cannot be run),
 * 125 (we could not start anything); then *why is an errno. It must be called on the main thread:
 * the kernel tells the job about the death of the thread that started it. */
int supervise_start(supervisor *s, char *const *argv, char *const *envp, int *why);

/* Reaps children that ended, of the main thread, on which it must be called. True if the job is among them: then s->ended and s->status are set. */
bool supervise_reap(supervisor *s);

/* Sends the child a signal; -ESRCH if it is over. */
int supervise_signal(supervisor *s, int signo);

/* True if the sender of this signal gave it to the child as well, so that it must not get it from
 * us: see supervise.c. Blocks for half a second at most. */
bool supervise_has_it(const supervisor *s, const struct signalfd_siginfo *info);

void supervise_close(supervisor *s);

#endif
