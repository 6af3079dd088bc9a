#include "failn.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <malloc.h>
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "io_fault.h"
#include "log_check.h"
#include "prims/fs.h"
#include "store_failing.h"
#include "tmpdir.h"

enum { ERRNUMS = 8, COMPLAINTS = 20 };

/* ---- clocks ---- */

/* The wall clock jumps; the other one runs faster, for whoever waits for a deadline. */
enum { FASTER = 20, NAP_NS = 200000 };
static int64_t ahead;
static io clocked;

static int64_t clocked_now(const io *io, io_clock clock) {
  int64_t now = world_io()->now(world_io(), clock);
  return clock == IO_WALL ? now + ahead : now * FASTER;
}

static void clocked_sleep(const io *io, int64_t ns) {
  struct timespec nap = {.tv_nsec = ns / FASTER < NAP_NS ? ns / FASTER : NAP_NS};
  nanosleep(&nap, NULL);
}

static const io *clocked_io(void) {
  ahead = 0;
  clocked = *world_io();
  clocked.now = clocked_now;
  clocked.sleep = clocked_sleep;
  return &clocked;
}

static int make_older(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  struct timespec when[2] = {st->st_mtim, st->st_mtim};
  when[0].tv_sec = when[1].tv_sec -= 48L * 3600;
  return utimensat(AT_FDCWD, path, when, AT_SYMLINK_NOFOLLOW);
}

/* A store in memory stamps its objects by our clock, one on a disk by the kernel's. */
void failn_two_days(failn_scene *s) {
  const char *root = s->w->place.where.path;
  if (strcmp(s->w->place.where.scheme, "file") != 0)
    ahead += INT64_C(48) * 3600 * 1000000000;
  else if (nftw(root, make_older, 16, FTW_PHYS) != 0)
    abort();
}

/* ---- what fails ---- */

/* The errors that each call may answer on some file system. ENOENT, which says that something is
 * not there, is for calls that follow a look: the thing seen may be gone by then. */
static const struct {
  io_call kind;
  const char *name;
  bool changes; /* so that its answer can be lost after the work was done */
  int errnums[ERRNUMS];
} calls[] = {
    {CALL_OPEN, "open", true, {EIO, EACCES, EMFILE, ENOSPC, EDQUOT, EROFS, ESTALE, ENOENT}},
    {CALL_LOOK_UP, "look-up", false, {EIO, EACCES, EMFILE, ESTALE}},
    {CALL_CLOSE, "close", true, {EIO, ENOSPC, EDQUOT}},
    {CALL_READ, "read", false, {EIO, ESTALE}},
    {CALL_PREAD, "pread", false, {EIO, ESTALE}},
    {CALL_WRITE, "write", true, {EIO, ENOSPC, EDQUOT, EFBIG}},
    {CALL_FSYNC, "fsync", true, {EIO, ENOSPC, EDQUOT}},
    {CALL_FDATASYNC, "fdatasync", true, {EIO, ENOSPC, EDQUOT}},
    {CALL_FTRUNCATE, "ftruncate", true, {EIO, ENOSPC}},
    {CALL_FSTAT, "fstat", false, {EIO, ESTALE}},
    {CALL_LSTAT, "lstat", false, {EIO, EACCES, ESTALE}},
    {CALL_BIRTH, "birth", false, {EIO, ESTALE}},
    {CALL_MKDIR, "mkdir", true, {EIO, ENOSPC, EDQUOT, EROFS, EACCES}},
    {CALL_RENAME, "rename", true, {EIO, ENOSPC, EDQUOT, EROFS, EACCES, EINVAL, ENOENT}},
    {CALL_LINK, "link", true, {EIO, ENOSPC, EDQUOT, EROFS, EPERM, EEXIST}},
    {CALL_UNLINK, "unlink", true, {EIO, EROFS, EACCES, EBUSY, ENOENT}},
    {CALL_SYMLINK, "symlink", true, {EIO, ENOSPC, EDQUOT, EROFS}},
    {CALL_READLINK, "readlink", false, {EIO, EACCES, ESTALE}},
    {CALL_CHMOD, "chmod", true, {EIO, EROFS, EPERM}},
    {CALL_UTIMENS, "utimens", true, {EIO, EROFS, EPERM}},
    {CALL_GETDENTS, "getdents", false, {EIO, ESTALE}},
    {CALL_CLONE, "clone", true, {EIO, ENOSPC, EOPNOTSUPP}},
    {CALL_COPY_RANGE, "copy_range", true, {EIO, ENOSPC, EDQUOT, EXDEV}},
    {CALL_RANDOM, "random", false, {EIO}},
    {CALL_ANY, "any call", true, {EIO}},
};

static const int codes[] = {ERR_IO, ERR_TIMEOUT, ERR_ACCESS, ERR_NOSPACE};

enum { CALL_KINDS = sizeof calls / sizeof calls[0], CODES = sizeof codes / sizeof codes[0] };

/* One failure: of a system call, or of a request. */
typedef struct point {
  io_fault_plan io;
  store_failing_plan store;
  const char *call; /* NULL: a request */
} point;

static const char *text_of(const point *p) {
  static char text[160];
  bool good = p->call ? p->io.for_good : p->store.for_good;
  bool done = p->call ? p->io.done : p->store.done;
  long nth = p->call ? p->io.nth : p->store.nth;
  snprintf(text, sizeof text, "%s %ld %s%s: %s", p->call ? p->call : "request", nth,
           good ? "and all later ones" : "once", done ? ", after the work" : "",
           p->call ? strerrorname_np(p->io.errnum) : err_name(p->store.code));
  return text;
}

/* ---- what stands ---- */

typedef struct findings {
  long torn, lost, wrong;
  char why[400]; /* the first one */
} findings;

static void find(findings *f, long *kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void find(findings *f, long *kind, const char *fmt, ...) {
  va_list args;
  ++*kind;
  if (*f->why) return;
  va_start(args, fmt);
  vsnprintf(f->why, sizeof f->why, fmt, args);
  va_end(args);
}

static void look_at_acks(const failn_scene *s, const runlog_state *st, findings *f) {
  for (size_t i = 0; i < s->ack_count; i++) {
    const runlog_commit *c = runlog_find_commit(st, s->acks[i].commit);
    if (!c || (c->life != RUNLOG_LIVE && !s->acks[i].may_go))
      find(f, &f->lost, "lost: commit %llu was reported and is not kept",
           (unsigned long long)s->acks[i].commit);
  }
}

/* What is gone of a commit goes here, too: what is restored has to be the rest. */
static void lose_here(const world *w, const runlog_commit *c) {
  char file[600], above[600];
  struct stat st;
  if (!c->thin.globs.count) return;
  snprintf(file, sizeof file, "%s/%s/" FAILN_SHARD, w->root, c->unit);
  snprintf(above, sizeof above, "%s/%s/sub", w->root, c->unit);
  if (stat(above, &st) < 0) abort();
  if (remove(file) < 0) return;
  const struct timespec as_made[2] = {st.st_mtim, st.st_mtim};
  if (utimensat(AT_FDCWD, above, as_made, 0) < 0) abort();
}

/* By a store and a log of its own, through which nothing fails. */
static void look(const failn_scene *s, findings *f) {
  store *st = world_store(s->w);
  runlog *log = NULL;
  size_t entries;
  const char *why = log_check(st, "", &entries);
  err e = {0};
  if (why) find(f, &f->torn, "torn: the log: %s", why);
  if (runlog_open(st, "", &log, &e) < 0) {
    find(f, &f->torn, "torn: the log: %s", e.text);
  } else {
    const runlog_state *state = runlog_view(log);
    for (size_t i = 0; i < state->commit_count; i++) {
      const runlog_commit *c = &state->commits[i];
      if (c->life != RUNLOG_LIVE) continue;
      lose_here(s->w, c);
      why = restored_differs(s->w, "", c, c->unit);
      if (why)
        find(f, &f->torn, "torn: commit %llu, %s: %s", (unsigned long long)c->n, c->unit, why);
    }
    look_at_acks(s, state, f);
  }
  runlog_close(log);
  store_close(st);
}

void failn_ack(failn_scene *s, uint64_t commit) {
  if (s->ack_count == FAILN_ACKS) abort();
  s->acks[s->ack_count++].commit = commit;
}

/* ---- one point ---- */

typedef struct stage {
  const failn_scenario *what;
  failn_scene scene;
  io_fault *fault;
  store_failing *failing;
  findings found;
} stage;

/* Plays it, and whether something failed on the way. `must`: it has to succeed. */
static bool play(stage *g, bool must) {
  failn_scene *s = &g->scene;
  findings *f = &g->found;
  err e = {0};
  s->play++;
  int rc = g->what->act(s, &e);
  bool failed = io_fault_failed(g->fault, CALL_ANY) + store_failing_failed(g->failing) > 0;
  io_fault_set(g->fault, (io_fault_plan){0});
  store_failing_set(g->failing, (store_failing_plan){0});
  if (rc < 0 && must) find(f, &f->wrong, "the second time: %s", e.text);
  if (rc < 0 && (e.code != rc || !*e.text))
    find(f, &f->wrong, "%s was returned, and the story is %s \"%s\"", err_name(rc),
         err_name(e.code), e.text);
  look(s, f);
  const char *why = g->what->after ? g->what->after(s, rc == 0) : NULL;
  if (why) find(f, &f->wrong, "%s%s", must ? "the second time: " : "", why);
  return failed;
}

/* Removes what the first process left on this machine, as the start of the next one does. */
static void start_anew(world *w) {
  char path[4096];
  snprintf(path, sizeof path, "%s", w->staging);
  if (fs_remove_tree(world_io(), path, NULL) < 0) abort();
  make_dir(path);
}

static void no_litter(stage *g) {
  store *st = world_store(g->scene.w);
  const char *litter = store_litter(st, "");
  if (litter) find(&g->found, &g->found.wrong, "litter: %s", litter);
  if (count_entries(g->scene.w->staging))
    find(&g->found, &g->found.wrong, "litter in this machine's staging");
  store_close(st);
}

/* Whether something failed. */
static bool play_point(const failn_scenario *what, const point *p, findings *out) {
  stage g = {.what = what, .fault = io_fault_new(clocked_io())};
  failn_scene *s = &g.scene;
  s->w = world_new(what->scheme, io_fault_io(g.fault));
  g.failing = store_failing_new(s->w->place.s);
  s->w->env.store = store_failing_store(g.failing);
  what->before(s);
  io_fault_set(g.fault, p->io);
  store_failing_set(g.failing, p->store);
  bool failed = play(&g, false);
  start_anew(s->w);
  play(&g, true);
  no_litter(&g);
  runlog_close(s->log);
  world_free(s->w);
  store_failing_free(g.failing);
  io_fault_free(g.fault);
  *out = g.found;
  return failed;
}

/* ---- the walk ---- */

/* Bytes that are allocated: to be compared before and after. Needs an allocator that keeps none of
 * what was freed aside (see main). */
static size_t allocated(void) {
  return mallinfo2().uordblks;
}

static bool measure(const failn_scenario *what, const point *p, failn_sum *sum) {
  findings f;
  bool leaks = false, failed = false;
  int fds = 0;
  size_t bytes = 0;
  /* Things made once for all, as libraries do, are there from the second round on. */
  for (int i = 0; i == 0 || (leaks && i < 3); i++) {
    fds = count_fds();
    bytes = allocated();
    failed = play_point(what, p, &f);
    fds = count_fds() - fds;
    bytes = allocated() - bytes;
    leaks = fds != 0 || bytes != 0;
  }
  if (!failed) return false;
  sum->points++;
  sum->torn += f.torn > 0;
  sum->lost += f.lost > 0;
  sum->wrong += f.wrong > 0;
  sum->leaks += leaks;
  if ((leaks || *f.why) && sum->torn + sum->lost + sum->wrong + sum->leaks <= COMPLAINTS) {
    print_message("# %s on %s, %s: %s\n", what->name, what->scheme, text_of(p), f.why);
    if (leaks) print_message("#   leaks: %d descriptors, %zd bytes\n", fds, (ssize_t)bytes);
  }
  return true;
}

/* Call 1, 2, 3, ... until it passes: each `stride`th, beginning at another one each time. */
static void walk_point(const failn_scenario *what, point p, long stride, failn_sum *sum) {
  static long walks;
  long *nth = p.call ? &p.io.nth : &p.store.nth;
  for (*nth = 1 + walks++ % stride; measure(what, &p, sum);) *nth += stride;
}

static void walk_calls(const failn_scenario *what, long stride, failn_sum *sum) {
  for (size_t k = 0; k < CALL_KINDS; k++)
    for (size_t i = 0; i < ERRNUMS && calls[k].errnums[i]; i++) {
      if (what->only_reads && calls[k].kind == CALL_OPEN && calls[k].errnums[i] == ENOENT) continue;
      point p = {.call = calls[k].name,
                 .io = {.kind = calls[k].kind, .errnum = calls[k].errnums[i]}};
      walk_point(what, p, stride, sum);
      p.io.for_good = true;
      walk_point(what, p, stride, sum);
      p.io.for_good = false;
      p.io.done = true;
      if (i == 0 && calls[k].changes) walk_point(what, p, stride, sum);
    }
}

static void walk_requests(const failn_scenario *what, long stride, failn_sum *sum) {
  for (size_t i = 0; i < CODES; i++)
    for (int how = 0; how < 4; how++) {
      point p = {.store = {.code = codes[i], .for_good = how & 1, .done = how & 2}};
      if (!p.store.done || err_class_of(codes[i]) == ERR_CLASS_RETRYABLE)
        walk_point(what, p, stride, sum);
    }
}

void failn_walk(const failn_scenario *what, long stride, failn_sum *sum) {
  failn_sum own = {0};
  walk_calls(what, stride, &own);
  walk_requests(what, stride, &own);
  print_message("# %s on %s: %ld points, %ld torn, %ld lost, %ld leaks, %ld wrong\n", what->name,
                what->scheme, own.points, own.torn, own.lost, own.leaks, own.wrong);
  sum->points += own.points;
  sum->torn += own.torn;
  sum->lost += own.lost;
  sum->leaks += own.leaks;
  sum->wrong += own.wrong;
}
