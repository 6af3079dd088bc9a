#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 20 };
static const int64_t ms = 1000000;

struct child {
  const io *io;
  pid_t pid;
  int pidfd; /* -1: this kernel has none */
  int sock;
  clockid_t clock; /* of its CPU time */
  bool timed;      /* there is one */
  bool gone;       /* it has ended, and is reaped */
  siginfo_t last;  /* how it ended; si_pid 0: somebody else reaped it */
};

/* ---- start ---- */

static int make_socket(const io *io, int ends[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -errno;
  ends[0] = io_move_up(io, ends[0]);
  ends[1] = io_move_up(io, ends[1]);
  int rc = ends[0] < 0 ? ends[0] : ends[1] < 0 ? ends[1] : 0;
  for (int i = 0; rc < 0 && i < 2; i++)
    if (ends[i] >= 0) io->close(io, ends[i]);
  return rc;
}

static int set_files(posix_spawn_file_actions_t *files, int end) {
  int rc = posix_spawn_file_actions_adddup2(files, end, STDIN_FILENO);
  if (rc == 0) rc = posix_spawn_file_actions_adddup2(files, end, STDOUT_FILENO);
  if (rc == 0)
    rc = posix_spawn_file_actions_addopen(files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  /* Closes all that the host opened without close-on-exec: a pipe whose end somebody waits for, a
   * device. */
  if (rc == 0) rc = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
  return rc;
}

static int set_signals(posix_spawnattr_t *how) {
  static const int jobs[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP};
  sigset_t all, held;
  sigfillset(&all);
  sigemptyset(&held);
  for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) sigaddset(&held, jobs[i]);
  int rc = posix_spawnattr_setsigdefault(how, &all);
  if (rc == 0) rc = posix_spawnattr_setsigmask(how, &held);
  if (rc == 0) rc = posix_spawnattr_setpgroup(how, 0);
  if (rc == 0)
    rc = posix_spawnattr_setflags(how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                           POSIX_SPAWN_SETPGROUP);
  return rc;
}

static int spawn(const char *path, char *const argv[], char *const envp[], int end, pid_t *pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  int rc = posix_spawn_file_actions_init(&files);
  if (rc != 0) return -rc;
  rc = posix_spawnattr_init(&how);
  if (rc == 0) {
    rc = set_files(&files, end);
    if (rc == 0) rc = set_signals(&how);
    if (rc == 0) rc = posix_spawn(pid, path, &files, &how, argv, envp);
    posix_spawnattr_destroy(&how);
  }
  posix_spawn_file_actions_destroy(&files);
  return -rc;
}

bool child_env(const char *const *kept, names *env) {
  bool whole = true;
  for (; whole && *kept; kept++) {
    const char *value = getenv(*kept);
    size_t room = strlen(*kept) + (value ? strlen(value) : 0) + 2;
    char *entry = value ? malloc(room) : NULL;
    if (entry) snprintf(entry, room, "%s=%s", *kept, value);
    whole = !value || (entry && names_add(env, entry));
    free(entry);
  }
  return whole;
}

int child_start(const io *io, const char *path, char *const argv[], char *const envp[], child **out,
                err *e) {
  int ends[2];
  *out = NULL;
  child *c = calloc(1, sizeof *c);
  if (!c) return err_set(e, ERR_NOMEM, "cannot start %s: out of memory", path);
  int rc = make_socket(io, ends);
  if (rc == 0) {
    rc = spawn(path, argv, envp, ends[1], &c->pid);
    io->close(io, ends[1]);
    if (rc < 0) io->close(io, ends[0]);
  }
  if (rc < 0) {
    free(c);
    return err_sys(e, rc, "cannot start %s", path);
  }
  c->io = io;
  c->sock = ends[0];
  /* The child cannot have ended and its number been used again before this: it lives until the
   * socket is closed, or until it breaks down by itself. */
  c->pidfd = pidfd_open(c->pid, 0);
  c->timed = clock_getcpuclockid(c->pid, &c->clock) == 0;
  *out = c;
  return 0;
}

pid_t child_pid(const child *c) {
  return c->pid;
}

/* ---- transfers ---- */

int64_t child_cpu_ns(const child *c) {
  struct timespec t;
  if (!c->timed || clock_gettime(c->clock, &t) != 0) return 0;
  return io_time_ns(t);
}

/* Waits until the socket can take or give something, or is closed by the child. */
static int wait_ready(const child *c, short what, const child_limit *limit, err *e) {
  for (;;) {
    int64_t rest = limit->wall_ns - c->io->now(c->io, IO_MONO);
    if (rest <= 0) return err_set(e, ERR_TIMEOUT, "it did not answer in time");
    if (child_cpu_ns(c) > limit->cpu_ns) return err_set(e, ERR_TIMEOUT, "it used up its CPU time");
    struct pollfd p = {.fd = c->sock, .events = what};
    int n = poll(&p, 1, rest < STEP_MS * ms ? (int)(rest / ms) + 1 : STEP_MS);
    if (n > 0) return 0;
    if (n < 0 && errno != EINTR) return err_sys(e, errno, "cannot wait for it");
  }
}

int child_send(child *c, const void *bytes, size_t len, const child_limit *limit, err *e) {
  for (const char *at = bytes; len > 0;) {
    ssize_t n = send(c->sock, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      at += n;
      len -= (size_t)n;
    } else if (errno == EAGAIN) {
      int rc = wait_ready(c, POLLOUT, limit, e);
      if (rc < 0) return rc;
    } else if (errno != EINTR) {
      return err_sys(e, errno, "cannot write to it");
    }
  }
  return 0;
}

int child_recv(child *c, void *to, size_t len, const child_limit *limit, err *e) {
  for (char *at = to; len > 0;) {
    ssize_t n = recv(c->sock, at, len, MSG_DONTWAIT);
    if (n > 0) {
      at += n;
      len -= (size_t)n;
    } else if (n == 0) {
      return err_set(e, ERR_IO, "it closed its end");
    } else if (errno == EAGAIN) {
      int rc = wait_ready(c, POLLIN, limit, e);
      if (rc < 0) return rc;
    } else if (errno != EINTR) {
      return err_sys(e, errno, "cannot read from it");
    }
  }
  return 0;
}

bool child_idle(const child *c) {
  char byte;
  ssize_t n;
  do n = recv(c->sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  return n < 0 && errno == EAGAIN;
}

/* ---- end ---- */

/* Looks once whether it has ended. A child that somebody else reaped counts as gone, or that the
 * kernel reaped, because SIGCHLD is ignored. */
static bool reap(child *c) {
  if (c->gone) return true;
  siginfo_t info = {0};
  int rc = -1;
  errno = EINVAL;
  if (c->pidfd >= 0) rc = waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | WNOHANG);
  /* Linux 5.3 has pidfds, but cannot wait for them. */
  if (rc < 0 && errno == EINVAL) rc = waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG);
  c->gone = rc < 0 ? errno == ECHILD : info.si_pid != 0;
  if (c->gone && rc == 0) c->last = info;
  return c->gone;
}

static bool wait_end(child *c, int64_t ns) {
  int64_t until = c->io->now(c->io, IO_MONO) + ns;
  while (!reap(c)) {
    int64_t rest = until - c->io->now(c->io, IO_MONO);
    if (rest <= 0) return false;
    struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
    poll(&p, 1, c->pidfd >= 0 && rest > 10 * ms ? 10 : 1);
  }
  return true;
}

/* The number alone is that of our child only as long as nobody has reaped it. */
static void kill_it(child *c) {
  if (c->pidfd >= 0)
    pidfd_send_signal(c->pidfd, SIGKILL, NULL, 0);
  else if (!reap(c))
    kill(c->pid, SIGKILL);
}

static void tell_how(const child *c, char how[CHILD_HOW_MAX]) {
  if (!c->gone)
    snprintf(how, CHILD_HOW_MAX, "it does not die");
  else if (c->last.si_pid == 0)
    snprintf(how, CHILD_HOW_MAX, "it ended");
  else if (c->last.si_code == CLD_EXITED)
    snprintf(how, CHILD_HOW_MAX, "it ended with exit code %d", c->last.si_status);
  else
    snprintf(how, CHILD_HOW_MAX, "signal %s killed it", sigabbrev_np(c->last.si_status));
}

void child_end(child *c, int64_t patience_ns, char how[CHILD_HOW_MAX]) {
  if (!c) return;
  c->io->close(c->io, c->sock);
  if (!wait_end(c, patience_ns)) {
    kill_it(c);
    /* We wait no longer: a process can hang in the kernel. It stays a zombie then. */
    wait_end(c, 1000 * ms);
  }
  if (how) tell_how(c, how);
  if (c->pidfd >= 0) c->io->close(c->io, c->pidfd);
  free(c);
}
