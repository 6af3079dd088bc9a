#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/seconds.h"
#include "base/secret.h"
#include "program_reports.h"

enum { STEP_MS = 20, BLOCK = 64 * 1024 };
static const int64_t ms = 1000000;

/* An output of the program. It holds between `keep` and twice that, so that bytes are seldom
 * moved. */
typedef struct output {
  int fd; /* -1: at its end */
  char *data;
  size_t used, room, keep;
  uint64_t dropped;
  bool secret;
} output;

struct program {
  const io *io;
  pid_t pid;
  int pidfd; /* -1: this kernel has none */
  output outputs[2];
  reports *reports; /* NULL: none */
  bool ended;       /* it is a zombie of ours from then on, unless `lost` */
  bool drained;     /* the rest in the pipes and the socket is taken in */
  bool lost;        /* somebody else reaped it */
  siginfo_t last;
};

/* ---- start ---- */

static void shut(const io *io, int *fd) {
  if (*fd >= 0) io->close(io, *fd);
  *fd = -1;
}

/* ends[0] is ours, and never blocks. */
static int make_pipe(const io *io, int ends[2]) {
  if (pipe2(ends, O_CLOEXEC) != 0) {
    ends[0] = ends[1] = -1;
    return -errno;
  }
  int rc = 0;
  for (int i = 0; i < 2; i++) {
    ends[i] = io_move_up(io, ends[i]);
    if (ends[i] < 0) rc = ends[i];
  }
  if (rc == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) rc = -errno;
  return rc;
}

/* Offers the input as a file without a name: so nobody has to feed the program. */
static int make_input(const io *io, const program_plan *plan) {
  int fd = memfd_create("input", MFD_CLOEXEC);
  if (fd < 0) return -errno;
  fd = io_move_up(io, fd);
  if (fd < 0) return fd;
  int rc = 0;
  for (size_t at = 0; rc == 0 && at < plan->input_len;) {
    ssize_t n = io->write(io, fd, plan->input + at, plan->input_len - at);
    if (n < 0) rc = (int)n;
    if (n > 0) at += (size_t)n;
  }
  if (rc == 0 && lseek(fd, 0, SEEK_SET) != 0) rc = -errno;
  if (rc == 0) return fd;
  io->close(io, fd);
  return rc;
}

static int set_files(posix_spawn_file_actions_t *files, const char *dir, const int fds[3]) {
  int rc = dir ? posix_spawn_file_actions_addchdir_np(files, dir) : 0;
  if (rc == 0 && fds[0] < 0)
    rc = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  for (int i = fds[0] < 0; rc == 0 && i < 3; i++)
    rc = posix_spawn_file_actions_adddup2(files, fds[i], i);
  if (rc == 0) rc = posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
  return rc;
}

static int set_signals(posix_spawnattr_t *how) {
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  int rc = posix_spawnattr_setsigdefault(how, &all);
  if (rc == 0) rc = posix_spawnattr_setsigmask(how, &none);
  if (rc == 0) rc = posix_spawnattr_setpgroup(how, 0);
  if (rc == 0)
    rc = posix_spawnattr_setflags(how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                           POSIX_SPAWN_SETPGROUP);
  return rc;
}

static int spawn(const program_plan *plan, const int fds[3], pid_t *pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  int rc = posix_spawn_file_actions_init(&files);
  if (rc != 0) return -rc;
  rc = posix_spawnattr_init(&how);
  if (rc == 0) {
    rc = set_files(&files, plan->dir, fds);
    if (rc == 0) rc = set_signals(&how);
    if (rc == 0)
      rc = posix_spawnp(pid, plan->argv[0], &files, &how, plan->argv,
                        plan->envp ? plan->envp : environ);
    posix_spawnattr_destroy(&how);
  }
  posix_spawn_file_actions_destroy(&files);
  return -rc;
}

/* A missing directory makes the same error as a missing program; the text tells which it is. */
static int say_failure(const io *io, const program_plan *plan, int rc, err *e) {
  struct stat st;
  if (plan->dir) {
    int there = io->lstat(io, AT_FDCWD, plan->dir, &st);
    if (there < 0) return err_sys(e, there, "cannot run %s in %s", plan->argv[0], plan->dir);
  }
  return err_sys(e, rc, "cannot run %s", plan->argv[0]);
}

int program_start(const io *io, const program_plan *plan, program **out, err *e) {
  int fds[3] = {-1, -1, -1}, rc = 0;
  *out = NULL;
  program *c = calloc(1, sizeof *c);
  if (!c) return err_set(e, ERR_NOMEM, "cannot run %s: out of memory", plan->argv[0]);
  c->io = io;
  c->pidfd = -1;
  for (int i = 0; i < 2; i++)
    c->outputs[i] = (output){.fd = -1, .keep = plan->keep, .secret = plan->secret};
  if (plan->socket) rc = reports_open(io, plan->socket, &c->reports, e);
  if (rc < 0) goto failed;
  if (plan->input) rc = fds[0] = make_input(io, plan);
  for (int i = 0; rc >= 0 && i < 2; i++) {
    int ends[2];
    rc = make_pipe(io, ends);
    c->outputs[i].fd = ends[0];
    fds[i + 1] = ends[1];
  }
  if (rc >= 0) rc = spawn(plan, fds, &c->pid);
  for (int i = 0; i < 3; i++) shut(io, &fds[i]);
  if (rc >= 0) {
    c->pidfd = pidfd_open(c->pid, 0);
    *out = c;
    return 0;
  }
  rc = say_failure(io, plan, rc, e);
failed:
  for (int i = 0; i < 2; i++) shut(io, &c->outputs[i].fd);
  reports_close(c->reports);
  free(c);
  return rc;
}

pid_t program_pid(const program *c) {
  return c->pid;
}

/* ---- what it prints ---- */

static bool make_room(output *o) {
  if (o->used >= o->keep + BLOCK && o->used >= o->keep * 2) {
    size_t old = o->used - o->keep;
    memmove(o->data, o->data + old, o->keep);
    o->used = o->keep;
    o->dropped += old;
  }
  if (o->room - o->used >= BLOCK) return true;
  size_t room = o->used + 2 * (size_t)BLOCK;
  char *data = o->secret ? secret_resize(o->data, room) : realloc(o->data, room);
  if (!data) return false;
  o->data = data;
  o->room = room;
  return true;
}

/* Reads once. 1 if something came, its end too. */
static int take_output(const io *io, output *o, err *e) {
  if (o->fd < 0) return 0;
  if (!make_room(o)) return err_set(e, ERR_NOMEM, "no memory for what the program prints");
  ssize_t n = read(o->fd, o->data + o->used, BLOCK);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (n > 0)
    o->used += (size_t)n;
  else
    shut(io, &o->fd);
  return 1;
}

bool program_silent(const program *c) {
  return c->outputs[0].fd < 0 && c->outputs[1].fd < 0;
}

const char *program_output(const program *c, int which, size_t *len, uint64_t *dropped) {
  const output *o = &c->outputs[which == 2];
  size_t old = o->used > o->keep ? o->used - o->keep : 0;
  *len = o->used - old;
  *dropped = o->dropped + old;
  return o->data ? o->data + old : "";
}

/* ---- its end ---- */

/* Looks, and leaves it a zombie: its number must not be used again while we may signal it. */
static bool look_ended(program *c) {
  if (c->ended) return true;
  siginfo_t info = {0};
  int rc = -1;
  errno = EINVAL;
  if (c->pidfd >= 0) rc = waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | WNOHANG | WNOWAIT);
  /* Linux 5.3 has pidfds, but cannot wait for them. */
  if (rc < 0 && errno == EINVAL)
    rc = waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT);
  c->lost = rc < 0 && errno == ECHILD;
  c->ended = c->lost || (rc == 0 && info.si_pid != 0);
  if (c->ended && !c->lost) c->last = info;
  return c->ended;
}

bool program_ended(const program *c, int *code, int *signal) {
  bool known = c->ended && !c->lost, exited = known && c->last.si_code == CLD_EXITED;
  *code = exited ? c->last.si_status : -1;
  *signal = known && !exited ? c->last.si_status : 0;
  return c->drained;
}

/* Takes in what it left in the pipes and in the socket's queue. A pipe holds no more than this; the
 * output that others go on to print is not waited for. */
static int take_rest(program *c, err *e) {
  enum { READS = 2 + (1 << 20) / BLOCK, ROUNDS = 2 * PROGRAM_CLIENTS };
  int rc = 1;
  for (int i = 0; i < 2; i++) {
    for (int k = 0; k < READS && rc == 1; k++) rc = take_output(c->io, &c->outputs[i], e);
    if (rc < 0) return rc;
    rc = 1;
  }
  for (int k = 0; c->reports && k < ROUNDS; k++) {
    struct pollfd fds[REPORTS_FDS];
    size_t count = reports_fds(c->reports, fds);
    if (poll(fds, count, 0) <= 0 || !reports_serve(c->reports, fds, count)) break;
  }
  return 1;
}

/* ---- turns ---- */

int program_turn(program *c, int timeout_ms, err *e) {
  struct pollfd fds[3 + REPORTS_FDS];
  size_t count = 0, heard = 0;
  for (int i = 0; i < 2; i++)
    if (c->outputs[i].fd >= 0)
      fds[count++] = (struct pollfd){.fd = c->outputs[i].fd, .events = POLLIN};
  if (!c->ended && c->pidfd >= 0) fds[count++] = (struct pollfd){.fd = c->pidfd, .events = POLLIN};
  size_t first = count;
  if (c->reports) heard = reports_fds(c->reports, fds + first);
  count += heard;
  /* Without a pidfd its end is seen only by looking. */
  bool blind = !c->ended && c->pidfd < 0;
  if (blind && (timeout_ms < 0 || timeout_ms > STEP_MS)) timeout_ms = STEP_MS;
  if (c->ended && (timeout_ms < 0 || !c->drained)) timeout_ms = 0;
  int n = poll(fds, count, timeout_ms);
  if (n < 0 && errno != EINTR) return err_sys(e, errno, "cannot wait for the program");
  int did = 0;
  for (int i = 0; n > 0 && i < 2; i++) {
    int rc = take_output(c->io, &c->outputs[i], e);
    if (rc < 0) return rc;
    did |= rc;
  }
  if (n > 0 && heard > 0) did |= reports_serve(c->reports, fds + first, heard);
  if (!c->drained && look_ended(c)) {
    c->drained = true;
    did = take_rest(c, e);
  }
  return did;
}

bool program_report(program *c, uint64_t *from, const char **line, size_t *len) {
  return c->reports && reports_next(c->reports, from, line, len);
}

int program_answer(program *c, uint64_t from, const char *line, err *e) {
  if (!c->reports) return err_set(e, ERR_INVAL, "this program has no socket");
  return reports_answer(c->reports, from, line, e);
}

/* ---- the end that we make ---- */

/* Sends a signal to its whole group; nothing happens if all of it is gone. */
static void send_signal(program *c, int signal) {
  /* What somebody else reaped has no number any more. */
  if (!look_ended(c) || !c->lost) kill(-c->pid, signal);
}

/* Waits until it has ended and, if `silent`, nobody has its outputs any more. They are taken in
 * meanwhile: it may have something to say before the end. */
static bool wait_end(program *c, int64_t ns, bool silent) {
  int64_t until = seconds_later(c->io->now(c->io, IO_MONO), ns);
  for (;;) {
    int64_t rest = (until - c->io->now(c->io, IO_MONO)) / ms;
    if (c->drained && (!silent || program_silent(c))) return true;
    if (rest < 0 && !(look_ended(c) && !c->drained)) return false;
    int wait_ms = rest < 0 ? 0 : rest < STEP_MS ? (int)rest : STEP_MS;
    if (program_turn(c, wait_ms, NULL) < 0) return c->drained;
  }
}

/* Waits for its children too: a shell ends at once, and the program that it started may still save
 * something. They are known by the outputs that they have from it. */
bool program_stop(program *c, int64_t patience_ns) {
  if (look_ended(c) && wait_end(c, 0, true)) return true;
  send_signal(c, SIGTERM);
  send_signal(c, SIGCONT); /* a stopped one would not hear it */
  if (wait_end(c, patience_ns, true)) return true;
  send_signal(c, SIGKILL);
  return wait_end(c, 1000 * ms, false);
}

void program_close(program *c) {
  if (!c) return;
  send_signal(c, SIGKILL);
  if (!c->lost && wait_end(c, 1000 * ms, false) && !c->lost) {
    siginfo_t info;
    waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG);
  }
  for (int i = 0; i < 2; i++) {
    shut(c->io, &c->outputs[i].fd);
    if (c->outputs[i].secret)
      secret_free(c->outputs[i].data);
    else
      free(c->outputs[i].data);
  }
  shut(c->io, &c->pidfd);
  reports_close(c->reports);
  free(c);
}
