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
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEP_MS = 20, TO_IT = 1 << 20 /* bytes that wait for it: a long text wakes it up once */ };
static const int64_t ms = 1000000;

struct child {
  const io *io;
  pid_t pid;
  int pidfd;  /* -1: this kernel has none */
  int to[2];  /* its input; nobody reads at to[0], which is open so that no write raises SIGPIPE */
  int from;   /* its output */
  bool ended; /* it has closed that */
  char ahead[4096]; /* what was read and not asked for yet: most answers come in one read */
  size_t at, end;
  clockid_t clock; /* of its CPU time */
  bool timed;      /* there is one */
  bool gone;       /* it has ended, and is reaped */
  siginfo_t last;  /* how it ended; si_pid 0: somebody else reaped it */
};

/* ---- start ---- */

static void close_ends(const io *io, const int ends[2]) {
  for (int i = 0; i < 2; i++)
    if (ends[i] >= 0) io->close(io, ends[i]);
}

/* A pipe, of whose ends `ours` never blocks. */
static int make_pipe(const io *io, int ours, int ends[2]) {
  if (pipe2(ends, O_CLOEXEC) != 0) return -errno;
  ends[0] = io_move_up(io, ends[0]);
  ends[1] = io_move_up(io, ends[1]);
  int rc = ends[0] < 0 ? ends[0] : ends[1] < 0 ? ends[1] : 0;
  if (rc == 0 && fcntl(ends[ours], F_SETFL, O_NONBLOCK) != 0) rc = -errno;
  if (rc < 0) close_ends(io, ends);
  return rc;
}

/* Two pipes, and no socket: an exchange over them takes half of the processor time. */
static int make_pipes(const io *io, int to[2], int from[2]) {
  int rc = make_pipe(io, 1, to);
  if (rc < 0) return rc;
  rc = make_pipe(io, 0, from);
  if (rc < 0) close_ends(io, to);
  return rc;
}

static int set_files(posix_spawn_file_actions_t *files, int input, int output) {
  int rc = posix_spawn_file_actions_adddup2(files, input, STDIN_FILENO);
  if (rc == 0) rc = posix_spawn_file_actions_adddup2(files, output, STDOUT_FILENO);
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

static int spawn(const char *path, char *const argv[], char *const envp[], int input, int output,
                 pid_t *pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  int rc = posix_spawn_file_actions_init(&files);
  if (rc != 0) return -rc;
  rc = posix_spawnattr_init(&how);
  if (rc == 0) {
    rc = set_files(&files, input, output);
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
  int from[2];
  *out = NULL;
  child *c = calloc(1, sizeof *c);
  if (!c) return err_set(e, ERR_NOMEM, "cannot start %s: out of memory", path);
  int rc = make_pipes(io, c->to, from);
  if (rc == 0) {
    rc = spawn(path, argv, envp, c->to[0], from[1], &c->pid);
    io->close(io, from[1]);
    if (rc < 0) io->close(io, from[0]);
    if (rc < 0) close_ends(io, c->to);
  }
  if (rc < 0) {
    free(c);
    return err_sys(e, rc, "cannot start %s", path);
  }
  fcntl(c->to[1], F_SETPIPE_SZ, TO_IT); /* a user may have too many pipes for that */
  c->io = io;
  c->from = from[0];
  /* The child cannot have ended and its number been used again before this: it lives until the
   * pipes are closed, or until it breaks down by itself. */
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

static int closed(err *e) {
  return err_set(e, ERR_IO, "it closed its end");
}

/* What comes at once is not looked at: that takes as long as to read it. */
static int check_limit(const child *c, child_limit *limit, int64_t rest, err *e) {
  bool waited = limit->waited;
  limit->waited = true;
  if (rest <= 0) return err_set(e, ERR_TIMEOUT, "it did not answer in time");
  if (waited && child_cpu_ns(c) > limit->cpu_ns)
    return err_set(e, ERR_TIMEOUT, "it used up its CPU time");
  return 0;
}

/* Waits until it takes (POLLOUT) or gives (POLLIN) something, or has closed its output. */
static int wait_ready(const child *c, short what, child_limit *limit, err *e) {
  for (;;) {
    int64_t rest = limit->wall_ns - c->io->now(c->io, IO_MONO);
    int rc = check_limit(c, limit, rest, e);
    if (rc < 0) return rc;
    struct pollfd p[] = {{.fd = c->from, .events = what & POLLIN},
                         {.fd = c->to[1], .events = what}};
    int n = poll(p, what == POLLIN ? 1 : 2, rest < STEP_MS * ms ? (int)(rest / ms) + 1 : STEP_MS);
    if (n > 0) return what == POLLOUT && p[0].revents ? closed(e) : 0;
    if (n < 0 && errno != EINTR) return err_sys(e, errno, "cannot wait for it");
  }
}

int child_send(child *c, const void *bytes, size_t len, child_limit *limit, err *e) {
  if (c->ended) return closed(e);
  for (const char *at = bytes; len > 0;) {
    ssize_t n = write(c->to[1], at, len);
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

/* Takes at least a byte of what it gives next; what comes beyond `room` is kept. */
static ssize_t receive(child *c, char *to, size_t room, child_limit *limit, err *e) {
  struct iovec parts[] = {{to, room}, {c->ahead, sizeof c->ahead}};
  for (;;) {
    int rc = wait_ready(c, POLLIN, limit, e);
    if (rc < 0) return rc;
    ssize_t n = readv(c->from, parts, 2);
    c->ended = n == 0;
    if (n == 0) return closed(e);
    c->at = 0;
    c->end = n > (ssize_t)room ? (size_t)n - room : 0;
    if (n > 0) return n - (ssize_t)c->end;
    if (errno != EAGAIN && errno != EINTR) return err_sys(e, errno, "cannot read from it");
  }
}

int child_recv(child *c, void *to, size_t len, child_limit *limit, err *e) {
  char *at = to;
  size_t left = c->end - c->at, n = left < len ? left : len;
  memcpy(at, c->ahead + c->at, n);
  c->at += n;
  while (n < len) {
    ssize_t more = receive(c, at + n, len - n, limit, e);
    if (more < 0) return (int)more;
    n += (size_t)more;
  }
  return 0;
}

bool child_idle(const child *c) {
  struct pollfd p = {.fd = c->from, .events = POLLIN};
  int n;
  do n = poll(&p, 1, 0);
  while (n < 0 && errno == EINTR);
  return n == 0 && c->at == c->end;
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
  close_ends(c->io, c->to);
  c->io->close(c->io, c->from);
  if (!wait_end(c, patience_ns)) {
    kill_it(c);
    /* We wait no longer: a process can hang in the kernel. It stays a zombie then. */
    wait_end(c, 1000 * ms);
  }
  if (how) tell_how(c, how);
  if (c->pidfd >= 0) c->io->close(c->io, c->pidfd);
  free(c);
}
