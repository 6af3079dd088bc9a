#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "processes.h"

static const int taken[SUPERVISE_SIGNALS] = {SIGTERM, SIGINT,  SIGHUP, SIGUSR1,
                                             SIGCHLD, SIGPIPE, SIGXFSZ};

static void end_at_once(int signo) {
  _exit(128 + signo);
}

/* ---- the witness ---- */

static const char step_daemon[] = "slurmstepd";

static bool is_named(pid_t pid, const char *name) {
  process found;
  return pid > 0 && process_read(pid, &found) == 0 && strcmp(found.name, name) == 0;
}

static void bear_witness(pid_t parent, int report) {
  sigset_t set;
  siginfo_t info;
  sigemptyset(&set);
  for (int i = 0; i < SUPERVISE_SIGNALS; i++)
    if (taken[i] != SIGCHLD && taken[i] != SIGPIPE && taken[i] != SIGXFSZ)
      sigaddset(&set, taken[i]);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != parent) _exit(1);
  prctl(PR_SET_NAME, "ckpt-witness", 0, 0, 0);
  for (int fd = 0; fd < 3; fd++) close(fd); /* nobody waits for us to close what it reads */
  while (sigwaitinfo(&set, &info) > 0) {
    char signo = (char)info.si_signo;
    if (is_named(info.si_pid, step_daemon) && write(report, &signo, 1) < 0) break;
  }
  _exit(0);
}

/* Where `exec` made us the batch script itself, slurmstepd may signal us alone (--signal=B:), or each
 * process below it (scancel), and the signal looks the same. A process of ours that does nothing else
 * tells which: it gets the latter alone. */
static void begin_witness(supervisor *s) {
  int ends[2];
  pid_t self = getpid();
  if (!getenv("SLURM_JOB_ID") || getenv("SLURM_STEP_ID") || !is_named(getppid(), step_daemon))
    return;
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before); /* it may be signalled before it waits */
  pid_t pid = fork();
  if (pid == 0) bear_witness(self, ends[1]);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  close(ends[1]);
  if (pid > 0) {
    s->witness = pid;
    s->witnessed = ends[0];
  } else {
    close(ends[0]);
  }
}

/* ---- all of it ---- */

void supervise_init(supervisor *s) {
  struct sigaction ignore = {.sa_handler = SIG_IGN}, by_default = {.sa_handler = SIG_DFL};
  *s = (supervisor){.signals = -1, .witnessed = -1};
  begin_witness(s);
  pthread_sigmask(SIG_BLOCK, NULL, &s->mask);
  for (int i = 0; i < SUPERVISE_SIGNALS; i++) sigaction(taken[i], NULL, &s->before[i]);
  /* Both would end us in the middle of a save, for a reader of our messages that went away or for a
   * limit on the size of files. The calls fail instead. */
  sigaction(SIGPIPE, &ignore, NULL);
  sigaction(SIGXFSZ, &ignore, NULL);
  /* Whoever starts us may ignore it: then the kernel reaps, and the child's code is lost. */
  sigaction(SIGCHLD, &by_default, NULL);
  if (getpid() == 1) {
    struct sigaction end = {.sa_handler = end_at_once};
    for (int i = 0; i < 3; i++)
      if (s->before[i].sa_handler != SIG_IGN) sigaction(taken[i], &end, NULL);
  }
}

int supervise_begin(supervisor *s) {
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < SUPERVISE_SIGNALS; i++) {
    if (taken[i] == SIGPIPE || taken[i] == SIGXFSZ) continue;
    /* A blocked signal reaches a signalfd although it is ignored: so it is left out here. */
    if (taken[i] != SIGCHLD && s->before[i].sa_handler == SIG_IGN) continue;
    sigaddset(&set, taken[i]);
  }
  int rc = pthread_sigmask(SIG_BLOCK, &set, NULL);
  if (rc != 0) return -rc;
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return -errno;
  s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  return s->signals < 0 ? -errno : 0;
}

/* Runs in the child, between fork and exec. The engine has threads, so a lock may be held for ever
 * here: only calls are made that are safe in a signal handler. */
static void become_child(const supervisor *s, pid_t parent, char *const *argv, char *const *envp,
                         int report) {
  int error = 0;
  /* If we are killed, the job is told. TERM and not KILL: a trainer that saves on TERM gets to do
   * it, and torchrun ends its workers, which KILL would leave alone with the devices. A job that
   * ignores it lives on; the next run finds it by its CKPT_STATE_ID and ends it before it starts
   * another. */
  if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) != 0) error = errno;
  /* We may have been killed before that call: then nobody will tell. */
  if (getppid() != parent) _exit(125);
  for (int i = 0; i < SUPERVISE_SIGNALS; i++) sigaction(taken[i], &s->before[i], NULL);
  pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
  if (error == 0) {
    execvpe(argv[0], argv, envp);
    error = errno;
  } else {
    error = -error; /* not exec's fault */
  }
  while (write(report, &error, sizeof error) < 0 && errno == EINTR) continue;
  _exit(127);
}

int supervise_start(supervisor *s, char *const *argv, char *const *envp, int *why) {
  int ends[2], error = 0;
  pid_t self = getpid();
  if (pipe2(ends, O_CLOEXEC) != 0) {
    *why = errno;
    return 125;
  }
  pid_t pid = fork();
  if (pid == 0) become_child(s, self, argv, envp, ends[1]);
  *why = errno;
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return 125;
  }
  ssize_t n;
  /* A successful exec closes the other end: nothing comes. */
  while ((n = read(ends[0], &error, sizeof error)) < 0 && errno == EINTR) continue;
  close(ends[0]);
  if (n == sizeof error) {
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    *why = abs(error);
    return error < 0 ? 125 : error == ENOENT || error == ENOTDIR ? 127 : 126;
  }
  s->child = pid;
  return 0;
}

/* Of our own thread alone, to which orphans come, too: the engine's threads wait for the programs that they
 * have started, and would never learn how one ended that was taken from them. */
bool supervise_reap(supervisor *s) {
  bool child = false;
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG | __WNOTHREAD);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return child;
    if (pid == s->witness) s->witness = 0;
    if (pid != s->child || s->ended) continue;
    child = s->ended = true;
    s->status = status;
  }
}

int supervise_signal(supervisor *s, int signo) {
  /* Nobody else reaps, so until we do the number is the child's, even if it is over. */
  if (s->child <= 0 || s->ended) return -ESRCH;
  return kill(s->child, signo) == 0 ? 0 : -errno;
}

/* The terminal sends ^C and a hang-up to its whole foreground group, and the child is in ours. The
 * kernel is then the sender. A hang-up may also come to the leader of the session alone; then the
 * terminal is gone, cannot be asked, and the child gets the signal from us, if need be twice. */
static bool from_our_terminal(const struct signalfd_siginfo *info) {
  if (info->ssi_code != SI_KERNEL) return false;
  int tty = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (tty < 0) return false;
  bool ours = tcgetpgrp(tty) == getpgrp();
  close(tty);
  return ours;
}

static bool was_witnessed(const supervisor *s, int signo) {
  enum { PATIENCE_MS = 500 };
  struct pollfd p = {.fd = s->witnessed, .events = POLLIN};
  char seen;
  while (poll(&p, 1, PATIENCE_MS) == 1 && read(s->witnessed, &seen, 1) == 1)
    if (seen == signo) return true;
  return false;
}

/* slurmstepd signals each process of a step by itself, and of a batch script, too: there, if we are
 * not the script's own process, it never signals us alone. Its name is compared because the variables
 * alone say where we are and not who sent: a user inside the step may signal us and mean the job. A
 * sender that we cannot see (another pid namespace) does not count: a signal that comes twice is less
 * bad than one that never comes. */
static bool from_step_daemon(const supervisor *s, const struct signalfd_siginfo *info) {
  bool in_step = getenv("SLURM_STEP_ID"), in_job = in_step || getenv("SLURM_JOB_ID");
  if (!in_job || info->ssi_code != SI_USER || !is_named((pid_t)info->ssi_pid, step_daemon))
    return false;
  return in_step || !is_named(getppid(), step_daemon) || was_witnessed(s, (int)info->ssi_signo);
}

bool supervise_has_it(const supervisor *s, const struct signalfd_siginfo *info) {
  return from_our_terminal(info) || from_step_daemon(s, info);
}

void supervise_close(supervisor *s) {
  if (s->signals >= 0) close(s->signals);
  if (s->witnessed >= 0) close(s->witnessed);
  if (s->witness > 0 && kill(s->witness, SIGKILL) == 0) waitpid(s->witness, NULL, 0);
  s->signals = s->witnessed = -1;
  s->witness = 0;
}
