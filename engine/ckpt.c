/* The public API: marshals between ckpt.h and the core, and carries finished tasks from the workers
 * to the owner's thread. */
#include "ckpt_state.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/err.h"
#include "core/catalog.h"
#include "core/policy_find.h"
#include "core/run.h"
#include "core/waiting.h"

#define CKPT_VERSION_TEXT "0.1.0"

#define X(name, number, class, text)                                                               \
  _Static_assert((int)CKPT_E##name == (int)ERR_##name, "ckpt.h and err.h disagree");
ERR_MAP(X)
#undef X
_Static_assert((int)CKPT_LIVE == (int)RUNLOG_LIVE &&
                   (int)CKPT_LIFE_DROPPED == (int)RUNLOG_DROPPED &&
                   (int)CKPT_LIFE_DELETED == (int)RUNLOG_DELETED,
               "ckpt.h and runlog.h disagree");

/* Errors of calls that have no engine, and of failed opens. */
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

void ckpt_wake(ckpt *c) {
  uint64_t one = 1;
  ssize_t ignored = write(c->event, &one, sizeof one); /* full: it is readable already */
  (void)ignored;
}

static void on_finished(void *ctx, run_task *task) {
  ckpt *c = ctx;
  pthread_mutex_lock(&c->mutex);
  task->next = c->finished;
  c->finished = task;
  pthread_cond_signal(&c->arrived);
  pthread_mutex_unlock(&c->mutex);
  ckpt_wake(c);
}

static run_task *take_finished(ckpt *c, bool block) {
  pthread_mutex_lock(&c->mutex);
  while (block && !c->finished) pthread_cond_wait(&c->arrived, &c->mutex);
  run_task *list = c->finished, *in_order = NULL;
  c->finished = NULL;
  pthread_mutex_unlock(&c->mutex);
  while (list) {
    run_task *next = list->next;
    list->next = in_order;
    in_order = list;
    list = next;
  }
  return in_order;
}

static void settle(run_task *list) {
  while (list) {
    run_task *next = list->next;
    run_finished(list);
    list = next;
  }
}

static void on_wait(void *ctx, run *r) {
  (void)r;
  settle(take_finished(ctx, true));
}

static uint64_t on_next_job(void *ctx) {
  return ++((ckpt *)ctx)->last_job;
}

static ckpt_run *handle_of(const ckpt *c, const run *r) {
  ckpt_run *h = c->runs;
  while (h && h->run != r) h = h->next;
  return h;
}

/* Out of memory here would lose a message, never a checkpoint: the counters have it all the same.
 */
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
  ckpt_wake(c); /* told in the middle of a ckpt_notify, it has to show at ckpt_fd() too */
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
                          .seconds = n->seconds};
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
  ckpt *c = *out = calloc(1, sizeof *c);
  if (!c) return err_set(&open_error, ERR_NOMEM, "open the engine: out of memory");
  int taken = ckpt_take(&c->options, sizeof c->options, options, "ckpt_options", &c->error);
  c->log = (log_sink){.fn = c->options.log ? on_log : NULL,
                      .ctx = &c->options,
                      .min = (log_level)c->options.log_level};
  c->workers = c->options.workers ? c->options.workers : 4;
  c->told_last = &c->told_first;
  c->epoll = c->event = c->timer = -1;
  pthread_mutex_init(&c->mutex, NULL);
  pthread_cond_init(&c->arrived, NULL);
  c->env = (run_env){.io = io_system(),
                     .log = &c->log,
                     .ctx = c,
                     .finished = on_finished,
                     .wait = on_wait,
                     .tell = on_tell,
                     .next_job = on_next_job};
  ckpt_teller_open(&c->teller, c->env.io, c->options.progress, c->options.progress_ctx);
  c->env.progress = ckpt_teller_sink(&c->teller);
  if (taken < 0) return taken;
  if (c->workers > 64) return err_set(&c->error, ERR_INVAL, "at most 64 workers");
  return open_descriptors(c, &c->error);
}

/* Threads start with the first work: an engine that only lists has none. */
int ckpt_need_pool(ckpt *c) {
  enum { QUEUE = 1024 };
  if (c->pool) return 0;
  int rc = pool_open(&c->pool, c->workers, QUEUE, &c->error);
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

void ckpt_close(ckpt *c) {
  if (!c) return;
  for (ckpt_run *h = c->runs, *next; h; h = next) {
    next = h->next;
    ckpt_run_close(h);
  }
  ckpt_trees_stop(c);
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
  pthread_cond_destroy(&c->arrived);
  pthread_mutex_destroy(&c->mutex);
  free(c);
}

int ckpt_fd(const ckpt *c) {
  return c->epoll;
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
  int rc = run_step(h->run, &h->due, e);
  int followed = follow_fd(c, h, rc < 0 ? NULL : e);
  return rc < 0 ? rc : followed;
}

/* What concerns one run, and only that one's errors. */
static int step_one(ckpt *c, ckpt_run *h) {
  int rc = step(c, h, &c->error);
  int armed = arm(c, rc < 0 ? NULL : &c->error);
  return rc < 0 ? rc : armed;
}

static int step_all(ckpt *c) {
  int first = 0;
  for (ckpt_run *h = c->runs; h; h = h->next) {
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

int ckpt_dispatch(ckpt *c, int timeout_ms) {
  struct epoll_event events[16];
  if (c->told_count) timeout_ms = 0;
  int n = epoll_wait(c->epoll, events, 16, timeout_ms);
  if (n < 0 && errno != EINTR) return err_sys(&c->error, errno, "wait for events");
  for (int i = 0; i < n; i++) {
    if (events[i].data.ptr == &c->event) drain(c->event);
    if (events[i].data.ptr == &c->timer) drain(c->timer);
  }
  settle(take_finished(c, false));
  ckpt_trees_settle(c);
  int rc = step_all(c);
  return rc < 0 ? rc : (int)c->told_count;
}

int ckpt_next(ckpt *c, ckpt_completion *out) {
  told_free(c->handed);
  c->handed = c->told_first;
  if (!c->handed) return 0;
  c->told_first = c->handed->next;
  if (!c->told_first) c->told_last = &c->told_first;
  c->told_count--;
  ckpt_give(out, out->size, &c->handed->what, sizeof c->handed->what);
  return 1;
}

/* ---- runs ---- */

static int64_t seconds_ns(double seconds) {
  return seconds > 0 && seconds < 9e9 ? (int64_t)(seconds * 1e9) : 0;
}

static int64_t stall_ns(const ckpt_run_options *o) {
  enum { STALL_S = 60 };
  int64_t asked = seconds_ns(o->stall_s);
  return asked ? asked : (int64_t)STALL_S * 1000000000;
}

static run_options options_of(const ckpt_run_options *o) {
  return (run_options){
      .places = {.dir = o->dir,
                 .to = o->to,
                 .state = o->state,
                 .run_id = o->run_id,
                 .command = o->command},
      .launch = o->launch,
      .units = o->units,
      .excludes = o->excludes,
      .markers = o->markers,
      .quiet_ns = o->quiet_s > 0   ? (int64_t)(o->quiet_s * 1e9)
                  : o->quiet_s < 0 ? 0
                                   : -1,
      .poll = o->flags & CKPT_POLL,
      .continue_run = o->flags & CKPT_CONTINUE_RUN,
      .take_over = o->flags & CKPT_TAKE_OVER,
      .tries = o->tries,
      .no_delete = o->flags & CKPT_NO_DELETE,
      .single_writer = o->flags & CKPT_SINGLE_WRITER,
      .keep_all = o->flags & CKPT_KEEP_ALL,
      .policies = o->policies,
      .settings = o->settings,
      .policy_dir = o->policy_dir,
      .max_delete = o->max_delete,
      .grace_delete_ns = o->grace_delete_s > 0   ? (int64_t)(o->grace_delete_s * 1e9)
                         : o->grace_delete_s < 0 ? 0
                                                 : -1,
      .rank = o->rank,
      .world = o->world,
      .rank_wait_ns = seconds_ns(o->rank_wait_s),
      .bad_after = o->bad_after,
      .stall_ns = stall_ns(o),
  };
}

int ckpt_run_open(ckpt *c, ckpt_run **out, const ckpt_run_options *options) {
  ckpt_run_options taken;
  *out = NULL;
  int rc = ckpt_take(&taken, sizeof taken, options, "ckpt_run_options", &c->error);
  if (rc == 0) rc = ckpt_need_pool(c);
  if (rc == 0 && taken.policies) rc = ckpt_need_policies(c);
  if (rc < 0) return rc;
  ckpt_run *h = calloc(1, sizeof *h);
  if (!h) return err_set(&c->error, ERR_NOMEM, "open a run: out of memory");
  run_options o = options_of(&taken);
  h->engine = c;
  h->fd = -1;
  h->due = INT64_MAX;
  h->stall_ns = o.stall_ns;
  waiting *slow = waiting_begin(&c->log, o.stall_ns, "locks, logs and leases of the run");
  rc = run_open(&c->env, &o, &h->run, &c->error);
  waiting_end(slow);
  if (rc < 0) {
    free(h);
    return rc;
  }
  h->next = c->runs;
  c->runs = h;
  *out = h;
  return 0;
}

struct foresight {
  ckpt_foreseen_fn *fn;
  void *ctx;
};

static int on_foreseen(void *ctx, const char *unit, int64_t step, run_foreseen what,
                       const char *reason) {
  const struct foresight *f = ctx;
  ckpt_foreseen foreseen = {.size = sizeof foreseen,
                            .unit = unit,
                            .step = step,
                            .what = (uint32_t)what,
                            .reason = reason};
  return f->fn(f->ctx, &foreseen);
}

int ckpt_foresee(ckpt *c, const ckpt_run_options *options, ckpt_foreseen_fn *fn, void *ctx) {
  ckpt_run_options taken;
  struct foresight f = {fn, ctx};
  int rc = ckpt_take(&taken, sizeof taken, options, "ckpt_run_options", &c->error);
  if (rc == 0) rc = ckpt_need_pool(c);
  if (rc == 0 && taken.policies) rc = ckpt_need_policies(c);
  if (rc < 0) return rc;
  run_options o = options_of(&taken);
  return run_foresee(&c->env, &o, on_foreseen, &f, &c->error);
}

/* What it told and nobody pulled is forgotten: the handle is gone. */
static void forget_told(ckpt *c, const ckpt_run *h) {
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

void ckpt_run_close(ckpt_run *h) {
  if (!h) return;
  ckpt *c = h->engine;
  if (h->fd >= 0) epoll_ctl(c->epoll, EPOLL_CTL_DEL, h->fd, NULL);
  run_close(h->run);
  forget_told(c, h);
  ckpt_run **at = &c->runs;
  while (*at != h) at = &(*at)->next;
  *at = h->next;
  free(h);
}

const char *ckpt_run_socket(const ckpt_run *h) {
  return run_places(h->run)->socket;
}
const char *ckpt_run_dir(const ckpt_run *h) {
  return run_places(h->run)->dir;
}
const char *ckpt_run_state(const ckpt_run *h) {
  return run_places(h->run)->state;
}
const char *ckpt_run_target(const ckpt_run *h) {
  return run_places(h->run)->target_text;
}
const char *ckpt_run_id(const ckpt_run *h) {
  return run_places(h->run)->run_id;
}

int ckpt_helper(ckpt *c, const char *name, char *path, size_t room) {
  char found[FS_PATH_MAX];
  int rc = policy_find_helper(c->env.io, c->options.libexec, name, found, &c->error);
  if (rc < 0) return rc;
  if (strlen(found) >= room)
    return err_set(&c->error, ERR_LIMIT, "%s: the path is too long", found);
  memcpy(path, found, strlen(found) + 1);
  return 0;
}

int ckpt_helper_pid(const ckpt *c) {
  return c->policies ? (int)policy_link_pid(c->policies) : 0;
}

int ckpt_locate(ckpt *c, const char *dir, const char *state, ckpt_place *out) {
  places p;
  ckpt_place found = {0};
  int rc = places_find(c->env.io, dir, state, &p, &c->error);
  if (rc < 0) return rc;
  if (strlen(p.state) >= sizeof found.state || strlen(p.socket) >= sizeof found.socket)
    return err_set(&c->error, ERR_LIMIT, "%s: the path is too long", p.state);
  memcpy(found.state, p.state, strlen(p.state) + 1);
  memcpy(found.socket, p.socket, strlen(p.socket) + 1);
  ckpt_give(out, out->size, &found, sizeof found);
  return 0;
}

struct trainers {
  ckpt_trainer_fn *fn;
  void *ctx;
};

static int on_trainer(void *ctx, const proc_info *info) {
  struct trainers *t = ctx;
  ckpt_trainer trainer = {.size = sizeof trainer,
                          .pid = info->pid,
                          .sid = info->sid,
                          .start = info->start,
                          .command = info->command};
  if (t->fn) t->fn(t->ctx, &trainer);
  return 0;
}

int ckpt_run_trainers(ckpt_run *h, ckpt_trainer_fn *fn, void *ctx) {
  struct trainers t = {fn, ctx};
  return run_trainers(h->run, on_trainer, &t, &h->engine->error);
}

int ckpt_run_prepare(ckpt_run *h, const ckpt_prepare_options *options, ckpt_prepared *out) {
  ckpt_prepare_options taken;
  run_prepared p = {0};
  err *e = &h->engine->error;
  int rc = ckpt_take(&taken, sizeof taken, options, "ckpt_prepare_options", e);
  if (rc == 0 && taken.restore > CKPT_RESTORE_NAMED)
    rc = err_set(e, ERR_INVAL, "restore %u is unknown", taken.restore);
  waiting *slow = waiting_begin(&h->engine->log, h->stall_ns, "the directory is made ready");
  if (rc == 0) rc = run_prepare(h->run, (run_restore)taken.restore, taken.named, &p, e);
  waiting_end(slow);
  ckpt_prepared result = {.resume = p.resume,
                          .restored_from = p.restored_from,
                          .restored = p.restored,
                          .quarantined = p.quarantined,
                          .found = p.found};
  ckpt_give(out, out->size, &result, sizeof result);
  return rc;
}

int ckpt_run_start(ckpt_run *h) {
  ckpt *c = h->engine;
  int rc = run_start(h->run, &c->error);
  return rc < 0 ? rc : step_one(c, h);
}

static int child_exit(run *r, const ckpt_event *event, err *e) {
  int counted = run_start_over(r, event->clean, event->outside, e);
  int rc = run_child_exit(r, event->clean, e);
  return rc < 0 ? rc : counted;
}

int ckpt_notify(ckpt_run *h, const ckpt_event *event, uint64_t *job) {
  ckpt_event taken;
  ckpt *c = h->engine;
  int rc = ckpt_take(&taken, sizeof taken, event, "ckpt_event", &c->error);
  if (job) *job = 0;
  if (rc < 0) return rc;
  switch (taken.kind) {
  case CKPT_EVENT_CHILD: rc = run_child(h->run, taken.pid, &c->error); break;
  case CKPT_EVENT_EXIT: rc = child_exit(h->run, &taken, &c->error); break;
  case CKPT_EVENT_RESULT: rc = run_result(h->run, taken.json ? taken.json : "", &c->error); break;
  case CKPT_EVENT_PREEMPT: rc = run_preempt(h->run, taken.grace_s, &c->error); break;
  case CKPT_EVENT_LIST: rc = run_list(h->run, &c->error); break;
  default: rc = err_set(&c->error, ERR_INVAL, "event kind %u is unknown", taken.kind);
  }
  return rc < 0 ? rc : step_one(c, h);
}

int ckpt_cancel(ckpt *c, uint64_t job) {
  for (ckpt_run *h = c->runs; h; h = h->next)
    if (run_cancel(h->run, job)) return 0;
  if (ckpt_trees_cancel(c, job)) return 0;
  return err_set(&c->error, ERR_NOENT, "no job %llu is running", (unsigned long long)job);
}

int ckpt_run_get_status(ckpt_run *h, ckpt_run_status *out) {
  run_status s;
  run_get_status(h->run, &s);
  const io *io = h->engine->env.io;
  ckpt_run_status result = {
      .committed = s.committed,
      .dropped = s.dropped,
      .retired = s.retired,
      .failed = s.failed,
      .pending = s.pending,
      .settling = s.settling,
      .unproven = s.unproven,
      .bytes_committed = s.bytes_committed,
      .bytes_left = s.bytes_left,
      .newest_step = s.newest_step,
      .newest_age_s =
          s.newest_time_ns ? (double)(io->now(io, IO_WALL) - s.newest_time_ns) / 1e9 : -1,
      .newest_unit = s.newest_unit,
      .newest_status = s.newest_status,
      .skipped = s.skipped,
      .policies = s.policies,
      .policy_fallbacks = s.fallbacks,
      .keeping = s.keeping,
      .fenced = s.fenced,
      .unmatched = s.unmatched,
      .unmatched_example = s.unmatched_example};
  ckpt_give(out, out->size, &result, sizeof result);
  return 0;
}

struct pendings {
  ckpt_pending_fn *fn;
  void *ctx;
};

static void on_pending(void *ctx, const char *unit, const char *reason, uint64_t bytes,
                       uint64_t left, bool begun) {
  struct pendings *p = ctx;
  ckpt_pending pending = {.size = sizeof pending,
                          .unit = unit,
                          .reason = reason,
                          .bytes = bytes,
                          .bytes_left = left,
                          .begun = begun};
  p->fn(p->ctx, &pending);
}

int ckpt_run_pending(ckpt_run *h, ckpt_pending_fn *fn, void *ctx) {
  struct pendings p = {fn, ctx};
  return run_pending(h->run, on_pending, &p);
}

/* ---- what a target holds ---- */

struct items {
  ckpt_item_fn *fn;
  ckpt_verified_fn *verified;
  void *ctx;
};

ckpt_item ckpt_item_of(const catalog_item *item, char root[HASH_HEX_MAX]) {
  const runlog_commit *c = item->commit;
  digest_hex(&c->root, root);
  return (ckpt_item){.size = sizeof(ckpt_item),
                     .group = item->group,
                     .name = c->unit,
                     .dir = c->dir,
                     .step = c->step,
                     .time_ns = c->time_ns,
                     .files = c->files,
                     .bytes = c->bytes,
                     .number = c->n,
                     .root = root,
                     .uri = item->uri,
                     .policy = c->policy ? c->policy : "",
                     .reason = c->reason ? c->reason : "",
                     .metrics = c->metrics ? c->metrics : "",
                     .life = (uint32_t)c->life,
                     .drop_policy = c->drop_policy ? c->drop_policy : "",
                     .drop_reason = c->drop_reason ? c->drop_reason : "",
                     .drop_ns = c->drop_ns,
                     .bad = c->bad,
                     .bad_reason = c->bad_reason ? c->bad_reason : ""};
}

static int on_item(void *ctx, store *s, const catalog_item *item, err *e) {
  (void)s;
  (void)e;
  struct items *i = ctx;
  char root[HASH_HEX_MAX];
  ckpt_item public = ckpt_item_of(item, root);
  return i->fn ? i->fn(i->ctx, &public) : 0;
}

int ckpt_list(ckpt *c, const char *uri, ckpt_item_fn *fn, void *ctx) {
  struct items i = {.fn = fn, .ctx = ctx};
  return catalog_each(c->env.io, &c->log, uri, on_item, &i, &c->error);
}

int ckpt_restore(ckpt *c, const ckpt_restore_options *options, ckpt_item_fn *fn, void *ctx) {
  ckpt_restore_options taken;
  struct items i = {.fn = fn, .ctx = ctx};
  int rc = ckpt_take(&taken, sizeof taken, options, "ckpt_restore_options", &c->error);
  if (rc == 0 && (!taken.uri || !taken.dir))
    rc = err_set(&c->error, ERR_INVAL, "a restore needs a target and a directory");
  if (rc == 0) rc = ckpt_need_pool(c);
  if (rc < 0) return rc;
  catalog_wish wish = {.where = taken.uri,
                       .name = taken.name,
                       .dir = taken.flags & CKPT_DRY_RUN ? NULL : taken.dir,
                       .alone = taken.flags & CKPT_RESTORE_ALONE};
  return catalog_restore(c->env.io, &c->log, c->pool, c->env.progress, &wish, on_item, &i,
                         &c->error);
}

static int on_verified(void *ctx, const catalog_item *item, int status, const char *reason,
                       unsigned findings) {
  struct items *i = ctx;
  char root[HASH_HEX_MAX];
  ckpt_item public = ckpt_item_of(item, root);
  ckpt_verified verified = {.size = sizeof verified,
                            .item = &public,
                            .status = status,
                            .reason = reason,
                            .findings = findings};
  return i->verified ? i->verified(i->ctx, &verified) : 0;
}

int ckpt_verify(ckpt *c, const char *uri, const char *name, ckpt_verified_fn *fn, void *ctx) {
  struct items i = {.verified = fn, .ctx = ctx};
  int rc = ckpt_need_pool(c);
  if (rc < 0) return rc;
  int bad = catalog_verify(c->env.io, &c->log, c->pool, c->env.progress, uri, name, on_verified, &i,
                           &c->error);
  if (bad <= 0) return bad;
  return err_set(&c->error, ERR_CORRUPT, "%d checkpoint%s of %s: the data is not what was saved",
                 bad, bad == 1 ? "" : "s", uri);
}
