#include "run_host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalog/catalog.h"
#include "io_fault.h"
#include "run/run_state.h"
#include "tmpdir.h"

enum { NEWS_MAX = 1024, LOG_MAX = 256 << 10 };

struct run_host {
  io io;
  run_env env;
  run_options options;
  log_sink log;
  char *top, *own;
  char dir[512], to[540], state[512], store[512], policy[540];
  const char *policies[2];
  run *run;
  pthread_t owner;
  pthread_mutex_t mutex;
  pthread_cond_t released;
  bool hold;
  unsigned held;
  atomic_int broken;    /* errno of each write to the store */
  atomic_int unread;    /* the same of each file of it that is opened to be read */
  atomic_int unflushed; /* the same of each flush of a watched file */
  atomic_int slow;      /* milliseconds that a worker waits for a file of checkpoint-1 there */
  bool silent;          /* nobody answers the owner who asks for a lease, until it asks no more */
  _Atomic int64_t skip, ahead; /* of the clock that nobody sets, and of the day's */
  int64_t due;
  uint64_t jobs;
  run_seen news[NEWS_MAX];
  size_t told;
  char *logged;
};

static void must(bool ok, run_host *h, const char *what) {
  if (ok) return;
  fprintf(stderr, "run_host: %s; told: %s\n%s\n", what, h ? run_host_story(h) : "",
          h && h->logged ? h->logged : "");
  abort();
}

/* ---- io ---- */

static int64_t host_now(const io *self, io_clock clock) {
  run_host *h = self->ctx;
  int64_t now = io_system()->now(io_system(), clock);
  return now + atomic_load(clock == IO_MONO ? &h->skip : &h->ahead);
}

static bool in_store(const run_host *h, const char *path) {
  return strncmp(path, h->store, strlen(h->store)) == 0;
}

static void wait_to_read(run_host *h, const char *path) {
  bool worker = !pthread_equal(pthread_self(), h->owner) && strstr(path, "/checkpoint-1");
  if (worker && !strstr(path, "/.ckpt"))
    io_system()->sleep(io_system(), (int64_t)atomic_load(&h->slow) * 1000000);
}

static void wait_for_nobody(const run_host *h, const char *path) {
  enum { NAP_NS = 20000000, TURNS = 3000 };
  if (!pthread_equal(pthread_self(), h->owner) || !h->silent || !strstr(path, "/.ckpt/lease"))
    return;
  for (int i = 0; i < TURNS && h->run && !atomic_load(&h->run->stop); i++)
    io_system()->sleep(io_system(), NAP_NS);
}

/* Before a file of the store is opened or made: waits, or fails, as the test wants it. 0 or -errno. */
static int at_the_door(run_host *h, const char *path, int flags) {
  if (!in_store(h, path)) return 0;
  wait_for_nobody(h, path);
  if (!(flags & O_CREAT)) {
    wait_to_read(h, path);
    return -atomic_load(&h->unread);
  }
  pthread_mutex_lock(&h->mutex);
  bool worker = !pthread_equal(pthread_self(), h->owner) && strstr(path, "/.ckpt/staging/");
  h->held += worker;
  while (worker && h->hold) pthread_cond_wait(&h->released, &h->mutex);
  h->held -= worker;
  pthread_mutex_unlock(&h->mutex);
  return -atomic_load(&h->broken);
}

static int host_open(const io *self, int dirfd, const char *path, int flags, mode_t mode) {
  int rc = at_the_door(self->ctx, path, flags);
  return rc < 0 ? rc : io_system()->open(io_system(), dirfd, path, flags, mode);
}

static int host_open_beneath(const io *self, int dirfd, const char *path, int flags, mode_t mode) {
  char link[64], whole[2 * FS_PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
  ssize_t len = readlink(link, whole, FS_PATH_MAX);
  must(len > 0 && len < FS_PATH_MAX, NULL, "cannot name a held directory");
  snprintf(whole + len, FS_PATH_MAX, "/%s", path);
  int rc = at_the_door(self->ctx, whole, flags);
  return rc < 0 ? rc : io_system()->open_beneath(io_system(), dirfd, path, flags, mode);
}

/* Nothing is flushed in tests: what counts is that it was asked for. */
static int host_fsync(const io *self, int fd) {
  run_host *h = self->ctx;
  char link[64], path[FS_PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t len = readlink(link, path, sizeof path - 1);
  path[len > 0 ? len : 0] = 0;
  return strncmp(path, h->dir, strlen(h->dir)) == 0 ? -atomic_load(&h->unflushed) : 0;
}

/* ---- the environment of a run ---- */

static void on_tell(void *ctx, run *r, const run_news *n) {
  run_host *h = ctx;
  (void)r;
  must(h->told < NEWS_MAX, h, "too much was told");
  run_seen *s = &h->news[h->told++];
  *s = (run_seen){.kind = n->kind,
                  .status = n->status,
                  .job = n->job,
                  .step = n->step,
                  .files = n->files,
                  .bytes = n->bytes,
                  .seconds = n->seconds};
  snprintf(s->unit, sizeof s->unit, "%.255s", n->unit);
  snprintf(s->reason, sizeof s->reason, "%.511s", n->reason ? n->reason : "");
}

static uint64_t on_next_job(void *ctx) {
  return ++((run_host *)ctx)->jobs;
}

static void on_log(void *ctx, log_level level, const char *text) {
  run_host *h = ctx;
  (void)level;
  pthread_mutex_lock(&h->mutex);
  size_t len = strlen(h->logged);
  snprintf(h->logged + len, LOG_MAX - len, "%s\n", text);
  pthread_mutex_unlock(&h->mutex);
}

/* ---- open and close ---- */

run_host *run_host_new(const char *top) {
  run_host *h = calloc(1, sizeof *h);
  must(h && (h->logged = calloc(1, LOG_MAX)), NULL, "out of memory");
  h->own = top ? NULL : tmpdir_new();
  h->top = strdup(top ? top : h->own);
  snprintf(h->dir, sizeof h->dir, "%s/dir", h->top);
  snprintf(h->state, sizeof h->state, "%s/state", h->top);
  snprintf(h->store, sizeof h->store, "%s/store", h->top);
  snprintf(h->to, sizeof h->to, "file://%s", h->store);
  if (!top) {
    make_dir(h->dir);
    make_dir(h->store);
  }
  pthread_mutex_init(&h->mutex, NULL);
  pthread_cond_init(&h->released, NULL);
  h->owner = pthread_self();
  h->io = *io_unflushed();
  h->io.ctx = h;
  h->io.now = host_now;
  h->io.open = host_open;
  h->io.fsync = host_fsync;
  h->io.open_beneath = host_open_beneath;
  h->log = (log_sink){.fn = on_log, .ctx = h};
  h->env =
      (run_env){.io = &h->io, .log = &h->log, .ctx = h, .tell = on_tell, .next_job = on_next_job};
  must(pool_open(&h->env.pool, 4, 64, NULL) == 0, h, "no pool");
  h->options =
      (run_options){.places = {.dir = h->dir, .to = h->to, .state = h->state, .run_id = "test"}};
  return h;
}

void run_host_policy(run_host *h, const char *text) {
  char libexec[600];
  const char *build = getenv("CKPT_BUILD");
  snprintf(libexec, sizeof libexec, "%s/libexec", build ? build : "build");
  policy_link_options o = {.io = &h->io, .log = &h->log, .libexec = libexec};
  must(policy_link_open(&o, &h->env.policies, NULL) == 0, h, "no policy link");
  snprintf(h->policy, sizeof h->policy, "%s/p.lua", h->top);
  write_file(h->policy, text);
  h->policies[0] = h->policy;
  h->options.policies = h->policies;
}

void run_host_close(run_host *h) {
  run_host_hold(h, false); /* or it would wait for ever */
  run_close(h->run);
  h->run = NULL;
}

void run_host_free(run_host *h) {
  run_host_close(h);
  policy_link_close(h->env.policies);
  pool_close(h->env.pool);
  pthread_cond_destroy(&h->released);
  pthread_mutex_destroy(&h->mutex);
  tmpdir_remove(h->own);
  free(h->top);
  free(h->logged);
  free(h);
}

run_host *run_host_elsewhere(run_host *h) {
  run_host *other = run_host_new(h->top);
  snprintf(other->dir, sizeof other->dir, "%s/dir2", h->top);
  snprintf(other->state, sizeof other->state, "%s/state2", h->top);
  return other;
}

int run_host_set_up(void **state) {
  *state = run_host_new(NULL);
  return 0;
}

int run_host_set_up_run(void **state) {
  run_host_set_up(state);
  run_host_begin(*state);
  return 0;
}

int run_host_tear_down(void **state) {
  run_host_free(*state);
  return 0;
}

const char *run_host_top(run_host *h) {
  return h->top;
}
run_options *run_host_options(run_host *h) {
  return &h->options;
}
run *run_host_run(run_host *h) {
  return h->run;
}
const run_env *run_host_env(run_host *h) {
  return &h->env;
}

int run_host_open(run_host *h, err *e) {
  return run_open(&h->env, &h->options, &h->run, e);
}

run_prepared run_host_begin(run_host *h) {
  err e = {0};
  run_prepared p = {0};
  int rc = run_host_open(h, &e);
  if (rc == 0) rc = run_prepare(h->run, RUN_AUTO, NULL, &p, &e);
  if (rc == 0) rc = run_start(h->run, &e);
  must(rc == 0, h, e.text);
  return p;
}

void run_host_begin_with(run_host *h, const char *policy) {
  run_host_policy(h, policy);
  run_host_begin(h);
}

const char *run_host_dir(run_host *h, const char *name) {
  return tmpdir_path(h->dir, name);
}
const char *run_host_state(run_host *h, const char *name) {
  return tmpdir_path(h->state, name);
}
const char *run_host_store(run_host *h, const char *name) {
  return tmpdir_path(h->store, name);
}

/* ---- driving ---- */

static int64_t real_now(void) {
  return io_system()->now(io_system(), IO_MONO);
}

int run_host_step(run_host *h, err *e) {
  pool_settle(h->env.pool, false);
  return run_step(h->run, &h->due, e);
}

int64_t run_host_due(run_host *h) {
  return h->due == INT64_MAX ? INT64_MAX : h->due - host_now(&h->io, IO_MONO);
}

static void step_and_wait(run_host *h, int most_ms) {
  err e = {0};
  if (!h->run) {
    poll(NULL, 0, most_ms);
    return;
  }
  must(run_host_step(h, &e) == 0, h, e.text);
  struct pollfd fds[] = {{.fd = pool_fd(h->env.pool), .events = POLLIN},
                         {.fd = run_fd(h->run), .events = POLLIN}};
  int64_t left = run_host_due(h) / 1000000 + 1;
  poll(fds, 2, left < 0 ? 0 : left < most_ms ? (int)left : most_ms);
  run_host_skip(h, 0.05); /* quiet times pass quickly */
}

static bool drive(run_host *h, bool (*done)(run_host *, const void *), const void *ctx) {
  int64_t end = real_now() + (int64_t)10 * 1000000000;
  while (real_now() < end) {
    step_and_wait(h, 10);
    if (done(h, ctx)) return true;
  }
  return false;
}

typedef struct waiting {
  run_kind kind;
  const char *unit;
  unsigned count;
} waiting;

static bool was_told(run_host *h, const void *ctx) {
  const waiting *w = ctx;
  return run_host_count(h, w->kind, w->unit) > w->count;
}

void run_host_until(run_host *h, run_kind kind, const char *unit) {
  waiting w = {kind, unit, run_host_count(h, kind, unit)};
  char what[300];
  snprintf(what, sizeof what, "waited in vain for kind %d of %s", (int)kind, unit);
  must(drive(h, was_told, &w), h, what);
}

void run_host_write(run_host *h, const char *name, const char *text, run_kind until) {
  write_file(run_host_dir(h, name), text);
  run_host_until(h, until, name);
}

/* Times of files are as fine as the kernel's tick. */
void run_host_tick(run_host *h) {
  run_host_for(h, 0.012);
}

void run_host_put(run_host *h, const char *name) {
  run_host_tick(h);
  write_file(run_host_dir(h, name), name);
}

void run_host_save(run_host *h, const char *name, run_kind until) {
  run_host_put(h, name);
  run_host_until(h, until, name);
}

static uint32_t taken_in(run_host *h) {
  run_status s = run_host_status(h);
  return s.pending + s.dropped;
}

void run_host_let_wait(run_host *h, const char *name) {
  uint32_t before = taken_in(h);
  run_host_put(h, name);
  for (int i = 0; taken_in(h) == before && i < 200; i++) run_host_tick(h);
  must(taken_in(h) != before, h, "it is not taken in");
}

static bool is_idle(run_host *h, const void *ctx) {
  (void)ctx;
  run_status s = run_host_status(h);
  return s.pending == 0 && s.settling == 0;
}

void run_host_idle(run_host *h) {
  run_host_for(h, 0.03); /* what was written just now has its events by then */
  must(drive(h, is_idle, NULL), h, "it does not become idle");
}

static bool is_at_rest(run_host *h, const void *ctx) {
  return is_idle(h, ctx) && h->run->tasks == 0;
}

void run_host_rest(run_host *h) {
  run_host_for(h, 0.03);
  must(drive(h, is_at_rest, NULL), h, "its workers are always busy");
}

static bool is_held(run_host *h, const void *ctx) {
  (void)ctx;
  pthread_mutex_lock(&h->mutex);
  bool held = h->held > 0;
  pthread_mutex_unlock(&h->mutex);
  return held;
}

void run_host_held(run_host *h) {
  must(h->hold, h, "nothing is to be held");
  must(drive(h, is_held, NULL), h, "no worker came to the store");
}

void run_host_hold_save(run_host *h, const char *name, const char *text) {
  run_host_hold(h, true);
  write_file(run_host_dir(h, name), text);
  run_host_held(h);
}

void run_host_for(run_host *h, double seconds) {
  int64_t end = real_now() + (int64_t)(seconds * 1e9);
  while (real_now() < end) step_and_wait(h, 5);
}

/* ---- what was told ---- */

const run_seen *run_host_last(run_host *h, run_kind kind, const char *unit) {
  for (size_t i = h->told; i-- > 0;)
    if (h->news[i].kind == kind && (!unit || strcmp(h->news[i].unit, unit) == 0))
      return &h->news[i];
  return NULL;
}

const char *run_host_reason(run_host *h, run_kind kind, const char *unit) {
  const run_seen *seen = run_host_last(h, kind, unit);
  return seen ? seen->reason : "";
}

struct asked {
  const char *unit, *reason;
  bool found;
};

static void on_pending(void *ctx, const char *unit, const char *reason, uint64_t bytes,
                       uint64_t left, bool begun) {
  struct asked *a = ctx;
  (void)bytes, (void)left, (void)begun;
  if (strcmp(unit, a->unit) == 0 && strncmp(reason, a->reason, strlen(a->reason)) == 0)
    a->found = true;
}

bool run_host_names(run_host *h, const char *unit, const char *reason) {
  struct asked a = {.unit = unit, .reason = reason};
  run_pending(h->run, on_pending, &a);
  return a.found;
}

unsigned run_host_count(run_host *h, run_kind kind, const char *unit) {
  unsigned count = 0;
  for (size_t i = 0; i < h->told; i++)
    count += h->news[i].kind == kind && (!unit || strcmp(h->news[i].unit, unit) == 0);
  return count;
}

const char *run_host_story(run_host *h) {
  static const char *const names[] = {"?",        "COMMITTED", "DROPPED",  "RETIRED", "FAILED",
                                      "RETRYING", "FENCED",    "UNPROVEN", "SKIPPED", "EXPIRED",
                                      "DELETED",  "-",         "DRAINED"};
  static char text[16384];
  size_t len = 0;
  *text = 0;
  for (size_t i = 0; i < h->told && len < sizeof text - 300; i++)
    len += (size_t)snprintf(text + len, sizeof text - len, "%s%s %s", i ? "," : "",
                            names[h->news[i].kind], h->news[i].unit);
  return text;
}

run_status run_host_status(run_host *h) {
  run_status s;
  run_get_status(h->run, &s);
  return s;
}

static int on_item(void *ctx, store *s, const catalog_item *item, err *e) {
  char *text = ctx;
  (void)s, (void)e;
  snprintf(text + strlen(text), 4096 - strlen(text), "%s%s%s%s", *text ? " " : "", item->group,
           *item->group ? "/" : "", item->commit->dir);
  return 0;
}

const char *run_host_commits(run_host *h) {
  static char text[4096];
  *text = 0;
  err e = {0};
  int rc = catalog_each(io_system(), NULL, h->to, on_item, text, &e);
  must(rc == 0 || rc == ERR_NOENT, h, e.text);
  return text;
}

bool run_host_holds(run_host *h, const char *dir, const char *text) {
  char uri[1024];
  char *out = tmpdir_new();
  err e = {0};
  snprintf(uri, sizeof uri, "%s/%s", h->to, dir);
  int rc = catalog_restore(io_system(), NULL, NULL, NULL, &(catalog_wish){.where = uri, .dir = out},
                           NULL, NULL, &e);
  must(rc >= 0, h, e.text);
  char name[256];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(dir, "~") - (strchr(dir, '~') ? 1 : 0), dir);
  const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
  bool same = file_is(tmpdir_path(out, base), text) || file_is(tmpdir_path(out, name), text);
  tmpdir_remove(out);
  return same;
}

bool run_host_newest_holds(run_host *h, const char *text) {
  const char *dirs = run_host_commits(h), *last = strrchr(dirs, ' ');
  return run_host_holds(h, last ? last + 1 : dirs, text);
}

/* ---- what the test does to it ---- */

void run_host_skip(run_host *h, double seconds) {
  atomic_fetch_add(&h->skip, (int64_t)(seconds * 1e9));
}

void run_host_reboot(run_host *h) {
  size_t len;
  char *journal = read_file(run_host_state(h, "journal.jsonl"), &len);
  char *boot = strstr(journal, "\"boot\":");
  if (!boot) abort();
  boot = strchr(boot + 7, '"') + 1;
  boot[0] = boot[0] == '0' ? '1' : '0';
  write_bytes(run_host_state(h, "journal.jsonl"), journal, len);
  free(journal);
}

void run_host_next_day(run_host *h) {
  atomic_fetch_add(&h->ahead, INT64_C(24) * 3600 * 1000000000);
}

void run_host_fail_store(run_host *h, int errnum) {
  atomic_store(&h->broken, errnum);
}

void run_host_fail_reads(run_host *h, int errnum) {
  atomic_store(&h->unread, errnum);
}

void run_host_fail_flush(run_host *h, int errnum) {
  atomic_store(&h->unflushed, errnum);
}

void run_host_slow_reads(run_host *h, double seconds) {
  atomic_store(&h->slow, (int)(seconds * 1e3));
}

void run_host_silence(run_host *h) {
  h->silent = true;
}

void run_host_hold(run_host *h, bool hold) {
  pthread_mutex_lock(&h->mutex);
  h->hold = hold;
  pthread_cond_broadcast(&h->released);
  pthread_mutex_unlock(&h->mutex);
}

unsigned run_host_logs(run_host *h, const char *text) {
  unsigned count = 0;
  pthread_mutex_lock(&h->mutex);
  for (const char *at = h->logged; (at = strstr(at, text)); at++) count++;
  pthread_mutex_unlock(&h->mutex);
  return count;
}

bool run_host_logged(run_host *h, const char *text) {
  return run_host_logs(h, text) > 0;
}
