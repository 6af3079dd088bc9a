/* ckpt_run: the part of the public API about runs: opening and closing them, events, status. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/err.h"
#include "base/seconds.h"
#include "ckpt_state.h"
#include "plan/standing.h"
#include "run/begin/begin.h"
#include "watchers/watchers.h"

/* Takes the times. The core has marks of its own: quiet_ns and grace_delete_ns below 0 are not
 * given, rank_wait_ns 0 neither. */
static int take_times(const ckpt_run_options *o, run_options *out, err *e) {
  const int64_t stall = 60 * SECOND_NS, every = 60 * SECOND_NS;
  int rc = seconds_or_none(o->quiet_s, -1, "quiet", &out->quiet_ns, e);
  if (rc == 0)
    rc = seconds_or_none(o->grace_delete_s, -1, "grace_delete", &out->grace_delete_ns, e);
  if (rc == 0) rc = seconds_or(o->rank_wait_s, 0, "rank_wait", &out->rank_wait_ns, e);
  if (rc == 0) rc = seconds_or(o->stall_s, stall, "stall", &out->stall_ns, e);
  if (rc == 0)
    rc = seconds_or_none(o->in_place_every_s, every, "in_place_every", &out->in_place_every_ns, e);
  if (rc == 0) rc = seconds_or(o->wait_lease_s, 0, "wait_lease", &out->wait_lease_ns, e);
  if (rc < 0 || o->start_wait_s == 0) return rc;
  rc = seconds_or_none(o->start_wait_s, 0, "start_wait", &out->start_wait_ns, e);
  if (rc == 0 && out->start_wait_ns == 0) out->start_wait_ns = -1;
  return rc;
}

/* Slurm says it in seconds since 1970; one without a limit ends in a year. Another text, a sign too, is
 * no time. */
static int64_t slurm_end(void) {
  const char *end = getenv("SLURM_JOB_END_TIME");
  if (!getenv("SLURM_JOB_ID") || !end || end[strspn(end, "0123456789")]) return 0;
  const long long at = strtoll(end, NULL, 10); /* what is too large becomes the largest */
  return at < INT64_MAX / SECOND_NS ? at * SECOND_NS : 0;
}

static int take_deadline(const io *io, const ckpt_run_options *o, run_options *out, err *e) {
  int64_t left;
  if (o->deadline_s == 0) out->deadline_ns = slurm_end();
  if (o->deadline_s == 0 || o->deadline_s < 0) return 0;
  int rc = seconds_to_ns(o->deadline_s, "deadline", &left, e);
  if (rc == 0 && left < SECONDS_FOREVER)
    out->deadline_ns = seconds_later(io->now(io, IO_WALL), left);
  return rc;
}

static int take_parts(const char *which, run_options *out, err *e) {
  out->own_parts = which && strcmp(which, "own") == 0;
  if (!which || out->own_parts || strcmp(which, "all") == 0) return 0;
  return err_set(e, ERR_INVAL, "`restore_parts` is \"own\" or \"all\", not \"%.100s\"", which);
}

static int take_options(const io *io, const ckpt_run_options *o, run_options *out, err *e) {
  *out = (run_options){
      .places = {.dir = o->dir,
                 .to = o->to,
                 .state = o->state,
                 .run_id = o->run_id,
                 .command = o->command,
                 .program = o->program},
      .launch = o->launch,
      .environment = o->environment,
      .units = o->units,
      .excludes = o->excludes,
      .markers = o->markers,
      .poll = o->flags & CKPT_POLL,
      .continue_run = o->flags & CKPT_CONTINUE_RUN,
      .take_over = o->flags & CKPT_TAKE_OVER,
      .tries = o->tries,
      .no_delete = o->flags & CKPT_NO_DELETE,
      .single_writer = o->flags & CKPT_SINGLE_WRITER,
      .keep_all = o->flags & CKPT_KEEP_ALL,
      .start_anyway = o->flags & CKPT_START_ANYWAY,
      .trust = o->flags & CKPT_TRUST,
      .beside = o->flags & CKPT_BESIDE,
      .owns_dir = o->flags & CKPT_OWNS_DIR,
      .fresh = o->flags & CKPT_FRESH,
      .policies = o->policies,
      .settings = o->settings,
      .policy_dir = o->policy_dir,
      .rank = o->rank,
      .world = o->world,
      .task = o->task,
      .tasks = o->tasks,
      .bad_after = o->bad_after,
      .record = o->record,
  };
  for (const char *const *at = o->environment; at && *at; at++)
    if (**at == '=' || !strchr(*at, '='))
      return err_set(e, ERR_INVAL, "`environment`: number %zu is no NAME=VALUE",
                     (size_t)(at - o->environment) + 1);
  int rc = ckpt_share(o->max_delete, &out->max_delete, e);
  if (rc == 0) rc = take_deadline(io, o, out, e);
  if (rc == 0) rc = take_parts(o->restore_parts, out, e);
  return rc < 0 ? rc : take_times(o, out, e);
}

int ckpt_run_open(ckpt *c, ckpt_run **out, const ckpt_run_options *options) {
  ckpt_run_options taken;
  run_options o = {0};
  if (out) *out = NULL;
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, out, "out");
  if (rc == 0) rc = ckpt_take(&taken, sizeof taken, options, "ckpt_run_options", &c->error);
  if (rc == 0) rc = take_options(c->env.io, &taken, &o, &c->error);
  if (rc == 0) rc = ckpt_need_pool(c);
  if (rc == 0 && taken.policies) rc = ckpt_need_policies(c);
  if (rc != 0 || !out) return rc;
  ckpt_run *h = calloc(1, sizeof *h);
  if (!h) return err_set(&c->error, ERR_NOMEM, "open a run: out of memory");
  h->engine = c;
  h->fd = -1;
  h->due = INT64_MAX;
  rc = run_open(&c->env, &o, &h->run, &c->error);
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
  run_options o;
  struct foresight f = {fn, ctx};
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, (const void *)(uintptr_t)fn, "fn");
  if (rc == 0) rc = ckpt_take(&taken, sizeof taken, options, "ckpt_run_options", &c->error);
  if (rc == 0) rc = take_options(c->env.io, &taken, &o, &c->error);
  if (rc == 0) rc = ckpt_need_pool(c);
  if (rc == 0 && taken.policies) rc = ckpt_need_policies(c);
  if (rc < 0) return rc;
  return run_foresee(&c->env, &o, on_foreseen, &f, &c->error);
}

void ckpt_run_close(ckpt_run *h) {
  if (!h) return;
  if (ckpt_enter_run(h) < 0) {
    run_abandon(h->run);
    return;
  }
  ckpt *c = h->engine;
  if (h->fd >= 0) epoll_ctl(c->epoll, EPOLL_CTL_DEL, h->fd, NULL);
  run_close(h->run);
  ckpt_forget(c, h);
  ckpt_run **at = &c->runs;
  while (*at != h) at = &(*at)->next;
  *at = h->next;
  free(h);
}

const char *ckpt_run_socket(const ckpt_run *h) {
  return h ? run_places(h->run)->socket : "";
}
const char *ckpt_run_state_id(const ckpt_run *h) {
  return h ? run_places(h->run)->state_id : "";
}
const char *ckpt_run_dir(const ckpt_run *h) {
  return h ? run_places(h->run)->dir : "";
}
const char *ckpt_run_state(const ckpt_run *h) {
  return h ? run_places(h->run)->state : "";
}
const char *ckpt_run_target(const ckpt_run *h) {
  return h ? run_places(h->run)->target_text : "";
}
const char *ckpt_run_id(const ckpt_run *h) {
  return h ? run_places(h->run)->run_id : "";
}

int ckpt_locate(ckpt *c, const char *dir, const char *state, ckpt_place *out) {
  places p;
  ckpt_place found = {0};
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, out, "out");
  if (rc == 0) rc = places_find(c->env.io, dir, state, &p, &c->error);
  if (rc != 0) return rc;
  if (strlen(p.state) >= sizeof found.state)
    return err_set(&c->error, ERR_LIMIT, "%s: the path is too long", p.state);
  memcpy(found.state, p.state, strlen(p.state) + 1);
  memcpy(found.socket, p.socket, strlen(p.socket) + 1);
  memcpy(found.state_id, p.state_id, strlen(p.state_id) + 1);
  memcpy(found.launch, p.launch, strlen(p.launch) + 1);
  memcpy(found.host, p.host, strlen(p.host) + 1);
  memcpy(found.boot, p.boot, strlen(p.boot) + 1);
  memcpy(found.waits, p.waits, strlen(p.waits) + 1);
  found.held = p.held;
  ckpt_give(out, out->size, &found, sizeof found);
  return 0;
}

struct watching {
  ckpt_watcher_fn *fn;
  void *ctx;
};

static void on_watcher(void *ctx, const struct watcher_seen *w) {
  struct watching *all = ctx;
  ckpt_watcher watcher = {.size = sizeof watcher,
                          .state = w->state,
                          .target = w->target,
                          .run_id = w->run,
                          .host = w->host,
                          .pid = w->pid,
                          .alive = w->alive,
                          .file = w->file};
  all->fn(all->ctx, &watcher);
}

int ckpt_watchers(ckpt *c, const char *dir, ckpt_watcher_fn *fn, void *ctx) {
  struct watching all = {fn, ctx};
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, dir, "the directory");
  if (rc == 0) rc = ckpt_need(c, (const void *)fn, "the callback");
  return rc < 0 ? rc : run_watchers_of(c->env.io, dir, on_watcher, &all, &c->error);
}

struct trainers {
  ckpt_trainer_fn *fn;
  void *ctx;
};

static int on_trainer(void *ctx, const proc_info *info, const char *left) {
  struct trainers *t = ctx;
  ckpt_trainer trainer = {.size = sizeof trainer,
                          .pid = info->pid,
                          .sid = info->sid,
                          .start = info->start,
                          .command = info->command,
                          .left = left,
                          .unproven = left && strcmp(left, RUN_LEFT_UNPROVEN) == 0};
  if (t->fn) t->fn(t->ctx, &trainer);
  return 0;
}

int ckpt_run_trainers(ckpt_run *h, ckpt_trainer_fn *fn, void *ctx) {
  struct trainers t = {fn, ctx};
  int rc = ckpt_enter_run(h);
  if (rc < 0) return rc;
  return run_trainers(h->run, on_trainer, &t, &h->engine->error);
}

int ckpt_run_prepare(ckpt_run *h, const ckpt_prepare_options *options, ckpt_prepared *out) {
  ckpt_prepare_options taken;
  run_prepared p = {0};
  int rc = ckpt_enter_run(h);
  if (rc == 0) rc = ckpt_need(h->engine, out, "out");
  if (rc < 0) return rc;
  err *e = &h->engine->error;
  rc = ckpt_take(&taken, sizeof taken, options, "ckpt_prepare_options", e);
  if (rc == 0 && taken.restore > CKPT_RESTORE_NAMED)
    rc = err_set(e, ERR_INVAL, "restore %u is unknown", taken.restore);
  if (rc == 0) rc = run_prepare(h->run, (run_restore)taken.restore, taken.named, &p, e);
  ckpt_prepared result = {.resume = p.resume,
                          .restored_from = p.restored_from,
                          .restored = p.restored,
                          .quarantined = p.quarantined,
                          .found = p.found,
                          .incomplete = p.incomplete};
  ckpt_give(out, out->size, &result, sizeof result);
  return rc;
}

int ckpt_run_start(ckpt_run *h) {
  int rc = ckpt_enter_run(h);
  if (rc < 0) return rc;
  ckpt *c = h->engine;
  rc = run_start(h->run, &c->error);
  return rc < 0 ? rc : ckpt_step(c, h);
}

static int child_exit(run *r, const ckpt_event *event, err *e) {
  int counted = run_start_over(
      r, &(run_end){.clean = event->clean, .outside = event->outside, .lines = event->lines}, e);
  int rc = run_child_exit(r, event->clean, e);
  return rc < 0 ? rc : counted;
}

/* A policy is told the seconds as they are. */
static int preempt(ckpt_run *h, double grace_s, err *e) {
  int64_t ns;
  int rc = seconds_to_ns(grace_s, "grace", &ns, e);
  return rc < 0 ? rc : run_preempt(h->run, grace_s, e);
}

static int drain(ckpt_run *h, double for_s, uint64_t *job, err *e) {
  uint64_t id = 0;
  int rc = run_drain(h->run, for_s, &id, e);
  if (job) *job = id;
  return rc;
}

int ckpt_notify(ckpt_run *h, const ckpt_event *event, uint64_t *job) {
  ckpt_event taken;
  if (job) *job = 0;
  int rc = ckpt_enter_run(h);
  if (rc == 0) rc = ckpt_need(h->engine, event, "the event");
  if (rc < 0) return rc;
  ckpt *c = h->engine;
  rc = ckpt_take(&taken, sizeof taken, event, "ckpt_event", &c->error);
  if (rc < 0) return rc;
  switch (taken.kind) {
  case CKPT_EVENT_CHILD: rc = run_child(h->run, taken.pid, &c->error); break;
  case CKPT_EVENT_EXIT: rc = child_exit(h->run, &taken, &c->error); break;
  case CKPT_EVENT_RESULT: rc = run_result(h->run, taken.json ? taken.json : "", &c->error); break;
  case CKPT_EVENT_PREEMPT: rc = preempt(h, taken.grace_s, &c->error); break;
  case CKPT_EVENT_LIST: rc = run_list(h->run, &c->error); break;
  case CKPT_EVENT_DRAIN: rc = drain(h, taken.grace_s, job, &c->error); break;
  default: rc = err_set(&c->error, ERR_INVAL, "event kind %u is unknown", taken.kind);
  }
  return rc < 0 ? rc : ckpt_step(c, h);
}

int ckpt_run_get_status(ckpt_run *h, ckpt_run_status *out) {
  run_status s;
  int rc = ckpt_enter_run(h);
  if (rc == 0) rc = ckpt_need(h->engine, out, "out");
  if (rc < 0) return rc;
  run_get_status(h->run, &s);
  const io *io = h->engine->env.io;
  ckpt_run_status result = {
      .committed = s.committed,
      .dropped = s.dropped,
      .retired = s.retired,
      .failed = s.failed,
      .pending = s.pending + s.settling,
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
      .unmatched_example = s.unmatched_example,
      .standing = (uint32_t)s.standing,
      .saw_file = s.saw_file,
      .unproven_unit = s.unproven_unit,
      .unproven_reason = s.unproven_reason,
      .unwanted_unit = s.unwanted_unit,
      .unwanted_policy = s.unwanted_policy,
      .unwanted_reason = s.unwanted_reason,
      .tasks = s.tasks};
  ckpt_give(out, out->size, &result, sizeof result);
  return 0;
}

int ckpt_run_prove(ckpt_run *h) {
  int rc = ckpt_enter_run(h);
  return rc < 0 ? rc : run_prove(h->run, &h->engine->error);
}

const char *ckpt_standing_name(uint32_t standing) {
  return standing_name((standing_word)standing);
}

_Static_assert(CKPT_DURABLE == (int)STANDING_DURABLE &&
                   CKPT_NOTHING_TO_SAVE == (int)STANDING_NOTHING_TO_SAVE &&
                   CKPT_NOT_WANTED == (int)STANDING_NOT_WANTED &&
                   CKPT_NOT_PROVEN == (int)STANDING_NOT_PROVEN &&
                   CKPT_NOT_DURABLE == (int)STANDING_NOT_DURABLE,
               "the header's numbers are those of standing.h");

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
  int rc = ckpt_enter_run(h);
  if (rc == 0) rc = ckpt_need(h->engine, (const void *)(uintptr_t)fn, "fn");
  if (rc < 0) return rc;
  return run_pending(h->run, on_pending, &p);
}
