/* ckpt: the public API: marshals between ckpt.h and the core, and carries finished tasks from the
 * workers to the owner's thread. */
#include "ckpt_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/err.h"
#include "prims/fs_find.h"
#include "run/run.h"

#define CKPT_VERSION_TEXT "0.1.0"

#define X(name, number, class, text)                                                               \
  _Static_assert((int)CKPT_E##name == (int)ERR_##name, "ckpt.h and err.h disagree");
ERR_MAP(X)
#undef X

/* Keeps errors of calls that have no engine, and of failed opens. */
static _Thread_local err open_error;

const char *ckpt_version(void) {
  return CKPT_VERSION_TEXT;
}
const char *ckpt_status_name(int code) {
  return err_name(code);
}
int ckpt_class(int code) {
  return (int)err_class_of(code);
}

int ckpt_enter(ckpt *c) {
  if (!c) return err_set(&open_error, ERR_INVAL, "the engine is NULL");
  if (c->process == getpid()) return 0;
  return err_set(&c->error, ERR_UNSUPPORTED,
                 "this engine is that of process %ld: a forked child has none of its threads, and "
                 "opens its own (or calls exec)",
                 (long)c->process);
}

int ckpt_enter_run(ckpt_run *h) {
  if (!h) return err_set(&open_error, ERR_INVAL, "the run is NULL");
  int rc = ckpt_enter(h->engine);
  if (rc == 0) h->ready = true; /* whatever the call does to it */
  return rc;
}

int ckpt_need(ckpt *c, const void *given, const char *what) {
  return given ? 0 : err_set(&c->error, ERR_INVAL, "%s is NULL", what);
}

const char *ckpt_error(const ckpt *c) {
  return c ? c->error.text : open_error.text;
}

int ckpt_take(void *to, size_t room, const void *from, const char *what, err *e) {
  size_t size;
  memset(to, 0, room);
  if (!from) return 0;
  memcpy(&size, from, sizeof size);
  if (size < sizeof size) return err_set(e, ERR_INVAL, "%s: its `size` is not set", what);
  memcpy(to, from, size < room ? size : room);
  return 0;
}

void ckpt_give(void *to, size_t size, void *from, size_t room) {
  size_t *head = from;
  *head = size;
  memcpy(to, from, size < room ? size : room);
}

/* ---- between workers and owner ---- */

static void wake(ckpt *c) {
  uint64_t one = 1;
  ssize_t ignored = write(c->event, &one, sizeof one); /* full: it is readable already */
  (void)ignored;
}

static uint64_t on_next_job(void *ctx) {
  return ++((ckpt *)ctx)->last_job;
}

static ckpt_run *handle_of(const ckpt *c, const run *r) {
  ckpt_run *h = c->runs;
  while (h && h->run != r) h = h->next;
  return h;
}

/* Out of memory a message is lost here, never a checkpoint: the counters have it all the same. */
void ckpt_tell(ckpt *c, const ckpt_completion *what, const char *unit, const char *reason) {
  told *t = calloc(1, sizeof *t);
  if (!t) return;
  t->unit = strdup(unit ? unit : "");
  t->reason = strdup(reason ? reason : "");
  if (!t->unit || !t->reason) {
    free(t->unit);
    free(t->reason);
    free(t);
    return;
  }
  t->what = *what;
  t->what.unit = t->unit;
  t->what.reason = t->reason;
  *c->told_last = t;
  c->told_last = &t->next;
  c->told_count++;
  wake(c); /* a completion told in the middle of a ckpt_notify has to show at ckpt_fd(), too */
}

static void on_tell(void *ctx, run *r, const run_news *n) {
  ckpt *c = ctx;
  ckpt_completion what = {.run = handle_of(c, r),
                          .job = n->job,
                          .kind = (uint32_t)n->kind,
                          .status = n->status,
                          .class_ = (uint32_t)err_class_of(n->status),
                          .step = n->step,
                          .files = n->files,
                          .bytes = n->bytes,
                          .seconds = n->seconds,
                          .is_copy = n->is_copy};
  ckpt_tell(c, &what, n->unit, n->reason);
}

static void told_free(told *t) {
  if (!t) return;
  free(t->unit);
  free(t->reason);
  free(t);
}

/* ---- the engine ---- */

static int watch_fd_of(ckpt *c, int fd, void *tag, err *e) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = tag};
  if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &event) == 0) return 0;
  return err_sys(e, errno, "watch a descriptor");
}

static int open_descriptors(ckpt *c, err *e) {
  c->epoll = epoll_create1(EPOLL_CLOEXEC);
  c->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  c->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (c->epoll < 0 || c->event < 0 || c->timer < 0)
    return err_sys(e, errno, "open the engine's descriptors");
  int rc = watch_fd_of(c, c->event, &c->event, e);
  return rc < 0 ? rc : watch_fd_of(c, c->timer, &c->timer, e);
}

static void on_log(void *ctx, log_level level, const char *text) {
  const ckpt_options *o = ctx;
  o->log(o->log_ctx, (int)level, text);
}

int ckpt_open(ckpt **out, const ckpt_options *options) {
  if (!out) return err_set(&open_error, ERR_INVAL, "out is NULL");
  ckpt *c = *out = calloc(1, sizeof *c);
  if (!c) return err_set(&open_error, ERR_NOMEM, "open the engine: out of memory");
  c->process = getpid();
  int taken = ckpt_take(&c->options, sizeof c->options, options, "ckpt_options", &c->error);
  c->log = (log_sink){.fn = c->options.log ? on_log : NULL,
                      .ctx = &c->options,
                      .min = (log_level)c->options.log_level,
                      .counts = &c->log_counts};
  log_counts_init(&c->log_counts, io_system());
  c->workers = c->options.workers ? c->options.workers : 4;
  c->told_last = &c->told_first;
  c->epoll = c->event = c->timer = -1;
  c->env = (run_env){
      .io = io_system(), .log = &c->log, .ctx = c, .tell = on_tell, .next_job = on_next_job};
  ckpt_teller_open(&c->teller, c->env.io, c->options.progress, c->options.progress_ctx);
  c->env.progress = ckpt_teller_sink(&c->teller);
  if (taken < 0) return taken;
  if (c->workers > 64) return err_set(&c->error, ERR_INVAL, "at most 64 workers");
  return open_descriptors(c, &c->error);
}

int ckpt_pool_open(ckpt *c, unsigned workers, size_t depth, pool **out) {
  int rc = pool_open(out, workers, depth, &c->error);
  if (rc == 0) rc = watch_fd_of(c, pool_fd(*out), NULL, &c->error);
  if (rc == 0) return 0;
  pool_close(*out);
  *out = NULL;
  return rc;
}

/* Threads start with the first work: an engine that only lists has none. */
int ckpt_need_pool(ckpt *c) {
  enum { QUEUE = 1024 };
  if (c->pool) return 0;
  int rc = ckpt_pool_open(c, c->workers, QUEUE, &c->pool);
  c->env.pool = c->pool;
  return rc;
}

/* Starts nothing yet either: the helper comes with the first policy. */
int ckpt_need_policies(ckpt *c) {
  policy_link_options o = {.log = &c->log,
                           .libexec = c->options.libexec,
                           .in_process = c->options.flags & CKPT_POLICY_IN_PROCESS};
  if (c->policies) return 0;
  int rc = policy_link_open(&o, &c->policies, &c->error);
  c->env.policies = c->policies;
  return rc;
}

/* In a forked child nothing can be ended, and a lock may be another thread's for ever: only what
 * the child shares with its parent goes, the locks of the runs too. */
static void abandon(ckpt *c) {
  for (ckpt_run *h = c->runs; h; h = h->next) run_abandon(h->run);
  if (c->epoll >= 0) close(c->epoll);
  if (c->event >= 0) close(c->event);
  if (c->timer >= 0) close(c->timer);
  c->epoll = c->event = c->timer = -1;
}

void ckpt_close(ckpt *c) {
  if (!c) return;
  if (ckpt_enter(c) < 0) {
    abandon(c);
    return;
  }
  for (ckpt_run *h = c->runs, *next; h; h = next) {
    next = h->next;
    ckpt_run_close(h);
  }
  ckpt_trees_stop(c);
  ckpt_comment_close(c);
  pool_close(c->pool);
  ckpt_trees_free(c);
  free(c->text);
  policy_link_close(c->policies);
  told_free(c->handed);
  while (c->told_first) {
    told *next = c->told_first->next;
    told_free(c->told_first);
    c->told_first = next;
  }
  if (c->epoll >= 0) close(c->epoll);
  if (c->event >= 0) close(c->event);
  if (c->timer >= 0) close(c->timer);
  ckpt_teller_close(&c->teller);
  log_counts_say(&c->log);
  log_counts_free(&c->log_counts);
  free(c);
}

void ckpt_log_counted(ckpt *c) {
  if (ckpt_enter(c) == 0) log_counts_say(&c->log);
}

int ckpt_fd(const ckpt *c) {
  if (!c) return err_set(&open_error, ERR_INVAL, "the engine is NULL");
  return c->process == getpid() ? c->epoll : ERR_UNSUPPORTED;
}

/* The timer stands at the first time that any run waits for. */
static int arm(ckpt *c, err *e) {
  struct itimerspec when = {0};
  int64_t due = INT64_MAX;
  for (ckpt_run *h = c->runs; h; h = h->next)
    if (h->due < due) due = h->due;
  if (due != INT64_MAX) {
    if (due < 1) due = 1; /* zero would disarm it */
    when.it_value.tv_sec = due / 1000000000;
    when.it_value.tv_nsec = due % 1000000000;
  }
  if (timerfd_settime(c->timer, TFD_TIMER_ABSTIME, &when, NULL) == 0) return 0;
  return err_sys(e, errno, "set the engine's timer");
}

/* A detector that falls back to polling closes its descriptor; epoll forgets it by itself. */
static int follow_fd(ckpt *c, ckpt_run *h, err *e) {
  int fd = run_fd(h->run);
  if (fd == h->fd) return 0;
  if (h->fd >= 0) epoll_ctl(c->epoll, EPOLL_CTL_DEL, h->fd, NULL);
  h->fd = fd;
  return fd >= 0 ? watch_fd_of(c, fd, h, e) : 0;
}

static int step(ckpt *c, ckpt_run *h, err *e) {
  h->ready = false;
  h->steps++;
  int rc = run_step(h->run, &h->due, e);
  int followed = follow_fd(c, h, rc < 0 ? NULL : e);
  return rc < 0 ? rc : followed;
}

/* Steps one run, and reports only that one's errors. */
int ckpt_step(ckpt *c, ckpt_run *h) {
  int rc = step(c, h, &c->error);
  int armed = arm(c, rc < 0 ? NULL : &c->error);
  return rc < 0 ? rc : armed;
}

/* A run for which nothing has come is left alone: of 400 that are idle each is stepped when it is due. Whose the
 * jobs are that have ended is not known here: after those all are asked. */
static int step_those(ckpt *c, bool all) {
  int first = 0;
  int64_t now = c->env.io->now(c->env.io, IO_MONO);
  for (ckpt_run *h = c->runs; h; h = h->next) {
    if (!all && !h->ready && h->due > now) continue;
    int rc = step(c, h, first < 0 ? NULL : &c->error); /* the other runs go on */
    if (first == 0) first = rc;
  }
  int armed = arm(c, first < 0 ? NULL : &c->error);
  return first < 0 ? first : armed;
}

static void drain(int fd) {
  uint64_t ignored;
  ssize_t n = read(fd, &ignored, sizeof ignored); /* non-blocking: nothing there is fine */
  (void)n;
}

static void take_event(ckpt *c, void *tag) {
  if (tag == &c->event)
    drain(c->event);
  else if (tag == &c->timer)
    drain(c->timer);
  else if (tag) /* none: the pool's, which is asked whatever comes */
    ((ckpt_run *)tag)->ready = true;
}

int ckpt_dispatch(ckpt *c, int timeout_ms) {
  struct epoll_event events[16];
  int entered = ckpt_enter(c);
  if (entered < 0) return entered;
  if (c->told_count) timeout_ms = 0;
  int n = epoll_wait(c->epoll, events, 16, timeout_ms);
  if (n < 0 && errno != EINTR) return err_sys(&c->error, errno, "wait for events");
  for (int i = 0; i < n; i++) take_event(c, events[i].data.ptr);
  bool settled = c->pool && pool_settle(c->pool, false);
  ckpt_comment_settle(c);
  int rc = step_those(c, settled);
  return rc < 0 ? rc : (int)c->told_count;
}

int ckpt_next(ckpt *c, ckpt_completion *out) {
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, out, "out");
  if (rc < 0) return rc;
  told_free(c->handed);
  c->handed = c->told_first;
  if (!c->handed) return 0;
  c->told_first = c->handed->next;
  if (!c->told_first) c->told_last = &c->told_first;
  c->told_count--;
  ckpt_give(out, out->size, &c->handed->what, sizeof c->handed->what);
  return 1;
}

/* Forgets completions that nobody pulled: the handle is gone. */
void ckpt_forget(ckpt *c, const ckpt_run *h) {
  told **at = &c->told_first;
  while (*at) {
    told *t = *at;
    if (t->what.run != h) {
      at = &t->next;
      continue;
    }
    *at = t->next;
    told_free(t);
    c->told_count--;
  }
  c->told_last = at;
}

int ckpt_cancel(ckpt *c, uint64_t job) {
  int rc = ckpt_enter(c);
  if (rc < 0) return rc;
  for (ckpt_run *h = c->runs; h; h = h->next)
    if (run_cancel(h->run, job)) {
      h->ready = true;
      return 0;
    }
  if (ckpt_trees_cancel(c, job)) return 0;
  return err_set(&c->error, ERR_NOENT, "no job %llu is running", (unsigned long long)job);
}

int ckpt_helper(ckpt *c, const char *name, char *path, size_t room) {
  char found[FS_PATH_MAX];
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, name, "the helper's name");
  if (rc == 0) rc = ckpt_need(c, path, "path");
  if (rc == 0) rc = fs_find_helper(c->env.io, c->options.libexec, name, found, &c->error);
  if (rc < 0) return rc;
  if (strlen(found) >= room)
    return err_set(&c->error, ERR_LIMIT, "%s: the path is too long", found);
  memcpy(path, found, strlen(found) + 1);
  return 0;
}

int ckpt_helper_pid(const ckpt *c) {
  return c && c->policies ? (int)policy_link_pid(c->policies) : 0;
}
