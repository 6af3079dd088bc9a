/* Random moves, exchanges, links, modes and rewrites on a real tree that a detector watches, also
 * in the middle of its own calls. Whatever happens: nothing breaks (a sanitizer sees more of that),
 * and once it is quiet the detector knows what a new one finds, and has told so.
 *
 * SEED=n runs that seed alone and says what happens in it; with COUNT=m, m from there on. The clock
 * is our own, so no time is waited for. Inode numbers and stamps are the kernel's. */
#include "with_cmocka.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/detect.h"
#include "detect_same.h"
#include "tmpdir.h"

#define MS INT64_C(1000000)

enum { BY_DEFAULT = 25, STEPS = 60, HELD = 4, PLACES = 8, TOLD = 4096 };

typedef struct told {
  char path[256];
  detect_state state;
} told;

typedef struct world {
  unsigned seed;
  uint64_t random;
  bool loud, polling, busy; /* busy: one of our own calls is going on */
  unsigned meddle;          /* one call in so many of the detector is met by a change; 0: none */
  char *dir, *out;
  io io;
  int64_t skipped; /* our clock is so far ahead */
  rules *rules;
  detect *d;
  int held[HELD];
  told told[TOLD];
  size_t told_count;
} world;

static world *here; /* the io of the detector has no other way to it */

static uint64_t dice(world *w, uint64_t n) {
  w->random ^= w->random << 13;
  w->random ^= w->random >> 7;
  w->random ^= w->random << 17;
  return (w->random >> 11) % n;
}

/* --- what happens to the tree --- */

static void some_path(world *w, char *out, size_t len) {
  static const char *const names[] = {
      "checkpoint-0", "checkpoint-1", "checkpoint-2", "run1", "run2", "last.pt", "a.safetensors",
      "m.index",      "m.data",       "x.tmp",        "DONE", "f0",   "f1",      "o\xff\nd"};
  size_t at = (size_t)snprintf(out, len, "%s", w->out);
  for (uint64_t parts = 1 + dice(w, 3); parts-- > 0;)
    at += (size_t)snprintf(out + at, len - at, "/%s", names[dice(w, sizeof names / sizeof *names)]);
}

static void some_place(world *w, char *out, size_t len) {
  snprintf(out, len, "%s/away/%d", w->dir, (int)dice(w, PLACES));
}

static void make_above(const world *w, const char *path) {
  char above[1024];
  for (const char *c = path + strlen(w->out) + 1; (c = strchr(c, '/')); c++) {
    snprintf(above, sizeof above, "%.*s", (int)(c - path), path);
    mkdir(above, 0755);
  }
}

static void put(world *w, const char *path, bool keep_open) {
  static const size_t sizes[] = {0, 1, 10, 4096};
  char bytes[4096] = {0};
  make_above(w, path);
  int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (fd < 0) return;
  if (write(fd, bytes, sizes[dice(w, 4)]) < 0 && w->loud) fprintf(stderr, "  not written\n");
  size_t at = dice(w, HELD);
  if (keep_open && w->held[at] < 0)
    w->held[at] = fd;
  else
    close(fd);
}

static void remove_tree(const char *path) {
  char below[1024];
  DIR *dir = unlink(path) == 0 ? NULL : opendir(path);
  if (!dir) return;
  for (const struct dirent *e; (e = readdir(dir));) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    snprintf(below, sizeof below, "%.700s/%s", path, e->d_name);
    remove_tree(below);
  }
  closedir(dir);
  rmdir(path);
}

static void let_go(world *w, size_t at) {
  if (w->held[at] >= 0) close(w->held[at]);
  w->held[at] = -1;
}

static void restamp(world *w, const char *path) {
  static const time_t times[] = {0, 1000000000, 4000000000};
  struct timespec t = {.tv_sec = times[dice(w, 3)]};
  utimensat(AT_FDCWD, path, (struct timespec[]){t, t}, AT_SYMLINK_NOFOLLOW);
}

static void rewrite(world *w, const char *path) {
  struct stat st;
  if (lstat(path, &st) < 0 || S_ISLNK(st.st_mode)) return;
  bool file = S_ISREG(st.st_mode);
  /* Not truncate(): of that the kernel tells a write, but never a close. */
  int fd = file ? open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK) : -1;
  bool written = fd >= 0 && ftruncate(fd, (off_t)dice(w, 9000)) == 0;
  if (fd >= 0) close(fd);
  if (file && !written) return;
  if (dice(w, 2)) chmod(path, file ? (mode_t)dice(w, 2) * 0644 : 0755);
}

/* The watched directory itself is moved away, and comes back or is made anew. */
static void move_root(world *w) {
  char place[512];
  snprintf(place, sizeof place, "%s/away/root", w->dir);
  if (rename(w->out, place) != 0) return;
  if (dice(w, 2)) rename(place, w->out);
  mkdir(w->out, 0755);
}

static const char *change(world *w, const char *p, const char *q, const char *place) {
  unsigned kind = (unsigned)dice(w, 100);
  if (kind < 24) return put(w, p, false), "put";
  if (kind < 30) return put(w, p, true), "hold";
  if (kind < 34) return let_go(w, dice(w, HELD)), "let go";
  if (kind < 40) return make_above(w, p), (void)mkdir(p, 0755), "mkdir";
  if (kind < 52) return make_above(w, q), (void)rename(p, q), "rename";
  if (kind < 60) return (void)renameat2(AT_FDCWD, p, AT_FDCWD, q, RENAME_EXCHANGE), "exchange";
  if (kind < 64)
    return (void)renameat2(AT_FDCWD, p, AT_FDCWD, place, RENAME_EXCHANGE), "exchange out";
  if (kind < 71) return remove_tree(place), (void)rename(p, place), "out";
  if (kind < 79) return (void)rename(place, p), "in";
  if (kind < 82) return (void)!symlink(dice(w, 2) ? "." : w->dir, p), "symlink";
  if (kind < 84) return (void)mkfifo(p, 0644), "fifo";
  if (kind < 87) return (void)(link(p, q) == 0 && unlink(p)), "link";
  if (kind < 90) return remove_tree(p), "remove";
  if (kind < 94) return rewrite(w, p), "rewrite";
  if (kind < 96) return restamp(w, p), "stamp";
  if (kind == 99 && w->seed % 8 == 0) return move_root(w), "move root";
  return (void)rename(p, place), (void)rename(place, p), "out and in";
}

static void one_change(world *w) {
  char p[512], q[512], place[512];
  some_path(w, p, sizeof p);
  some_path(w, q, sizeof q);
  some_place(w, place, sizeof place);
  w->busy = true;
  errno = 0;
  const char *what = change(w, p, q, place);
  if (w->loud) {
    size_t skip = strlen(w->dir);
    fprintf(stderr, "%s %s %s (%s): %s\n", what, p + skip, q + skip, place + skip, strerror(errno));
  }
  w->busy = false;
}

/* --- the detector's io: its clock is ours, and the tree changes under its hands --- */

static void meddle(void) {
  if (here->busy || here->meddle == 0 || dice(here, here->meddle) != 0) return;
  if (here->loud) fprintf(stderr, "  meanwhile: ");
  one_change(here);
}

static int64_t our_now(const io *io, io_clock clock) {
  return io_system()->now(io_system(), clock) + here->skipped;
}

static int our_lstat(const io *io, int dirfd, const char *path, struct stat *out) {
  meddle();
  return io_system()->lstat(io_system(), dirfd, path, out);
}

static int our_open(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  meddle();
  return io_system()->open(io_system(), dirfd, path, flags, mode);
}

static ssize_t our_getdents(const io *io, int fd, void *to, size_t len) {
  meddle();
  return io_system()->getdents(io_system(), fd, to, len);
}

static bool nobody(const char *path) {
  return false;
}

/* --- what must be so --- */

static told *told_of(world *w, const char *path) {
  for (size_t i = 0; i < w->told_count; i++)
    if (strcmp(w->told[i].path, path) == 0) return &w->told[i];
  return NULL;
}

static void take_news(world *w) {
  detect_unit u;
  while (detect_next(w->d, &u)) {
    told *t = told_of(w, u.path);
    if (!t) {
      assert_true(w->told_count < TOLD);
      t = &w->told[w->told_count++];
      snprintf(t->path, sizeof t->path, "%s", u.path);
    }
    t->state = u.state;
    if (w->loud) fprintf(stderr, "NEWS %s state %d: %s\n", u.path, (int)u.state, u.reason);
  }
}

static void run(world *w) {
  err e = {0};
  int rc = detect_run(w->d, &e);
  /* What changes while it is looked at may fail one look. */
  if (rc < 0 && w->loud) fprintf(stderr, "  run: %s\n", e.text);
  take_news(w);
}

static bool readable(const world *w) {
  struct pollfd p = {.fd = detect_fd(w->d), .events = POLLIN};
  return p.fd >= 0 && poll(&p, 1, 0) > 0;
}

static void settle(world *w) {
  int64_t end = our_now(NULL, IO_MONO) + 8000 * MS;
  for (int i = 0; i < 2000; i++) {
    int64_t now = our_now(NULL, IO_MONO), due = detect_due(w->d);
    if (!readable(w) && (due == INT64_MAX || (w->polling && now > end))) return;
    if (!readable(w) && due > now) w->skipped += due - now + 1;
    run(w);
  }
  fail_msg("SEED=%u: it does not come to rest", w->seed);
}

static int as_told(void *ctx, const detect_unit *u) {
  world *w = ctx;
  const told *t = told_of(w, u->path);
  const told *other = u->kind == MATCH_GROUP ? NULL : t; /* a directory may have its name */
  if (!t || (other && other->state == DETECT_GONE))
    fail_msg("SEED=%u: %s is there, and that was not told", w->seed, u->path);
  return 0;
}

/* Nobody has anything open: that is waited for in vain if a close was not heard. */
static int is_not_waited_for(void *ctx, const detect_unit *u) {
  const world *w = ctx;
  if (u->state == DETECT_OPEN && u->cause && strcmp(u->cause, "open") == 0)
    fail_msg("SEED=%u: %s is waited for: %s", w->seed, u->path, u->reason);
  return 0;
}

static void nothing_is_told_in_vain(world *w) {
  detect_unit u;
  for (size_t i = 0; i < w->told_count; i++)
    if (w->told[i].state != DETECT_GONE && !detect_find(w->d, w->told[i].path, &u))
      fail_msg("SEED=%u: %s is gone, and that was not told", w->seed, w->told[i].path);
}

static void is_right(world *w, const char *when) {
  settle(w);
  const char *wrong = detect_same(w->d, w->out, w->rules);
  if (wrong) fail_msg("SEED=%u: %s %s", w->seed, when, wrong);
  detect_each(w->d, as_told, w);
  detect_each(w->d, is_not_waited_for, w);
  nothing_is_told_in_vain(w);
}

/* Something new in each directory: all are watched under the names that they have. */
static void probe(world *w, const char *dir, const char *name) {
  char below[1024];
  struct stat st;
  DIR *list = opendir(dir);
  if (!list) return;
  for (const struct dirent *e; (e = readdir(list));) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    snprintf(below, sizeof below, "%.700s/%s", dir, e->d_name);
    if (lstat(below, &st) == 0 && S_ISDIR(st.st_mode)) probe(w, below, name);
  }
  closedir(list);
  snprintf(below, sizeof below, "%.700s/%s", dir, name);
  write_file(below, "probe");
}

/* --- one seed --- */

static void open_world(world *w) {
  err e = {0};
  w->dir = tmpdir_new();
  w->out = strdup(tmpdir_path(w->dir, "out"));
  make_dir(w->out);
  make_dir(tmpdir_path(w->dir, "away"));
  for (int i = 0; i < HELD; i++) w->held[i] = -1;
  for (int i = 0; i < 10; i++) one_change(w);
  assert_int_equal(rules_custom(NULL, NULL, NULL, 400 * MS, &w->rules, NULL), 0);
  w->io = *io_system();
  w->io.now = our_now;
  w->io.lstat = our_lstat;
  w->io.open = our_open;
  w->io.getdents = our_getdents;
  w->polling = w->seed % 4 == 3;
  detect_options o = {.io = &w->io,
                      .root = w->out,
                      .rules = w->rules,
                      .mode = w->polling ? DETECT_POLL : DETECT_AUTO,
                      .poll_ns = 200 * MS,
                      .has_writer = nobody};
  if (detect_open(&o, &w->d, &e) < 0) fail_msg("SEED=%u: %s", w->seed, e.text);
  w->polling = detect_polling(w->d);
}

static void close_world(world *w) {
  detect_close(w->d);
  for (size_t i = 0; i < HELD; i++) let_go(w, i);
  rules_free(w->rules);
  tmpdir_remove(w->dir);
  free(w->out);
  free(w);
}

static void step(world *w) {
  static const int64_t waits[] = {0, 1, 20, 120, 1000}; /* ms */
  for (uint64_t n = dice(w, 6); n-- > 0;) one_change(w);
  w->skipped += waits[dice(w, 5)] * MS;
  if (dice(w, 30) == 0) detect_feed(w->d, &(watch_event){.kind = WATCH_OVERFLOW, .path = ""}, NULL);
  if (dice(w, 40) == 0) detect_writer_gone(w->d, dice(w, 2));
  if (dice(w, 20) == 0) detect_writer_new(w->d);
  if (dice(w, 3)) run(w);
}

static void run_seed(unsigned seed, bool loud) {
  static const unsigned meddling[] = {0, 3, 10, 40};
  world *w = calloc(1, sizeof *w);
  assert_non_null(w);
  here = w;
  w->seed = seed;
  w->loud = loud;
  w->random = seed * 0x9e3779b97f4a7c15u + 1;
  for (int i = 0; i < 8; i++) dice(w, 2);
  open_world(w);
  for (int half = 0; half < 2; half++) {
    w->meddle = meddling[dice(w, 4)];
    for (int i = 0; i < STEPS / 2; i++) step(w);
    for (size_t i = 0; i < HELD; i++) let_go(w, i);
    w->meddle = 0;
    is_right(w, "when all is quiet");
    probe(w, w->out, half ? "probe.pt" : "f2");
    is_right(w, "when each directory got a file");
  }
  close_world(w);
}

static void in_the_end_it_knows_what_is_there(void **state) {
  const char *from = getenv("SEED"), *many = getenv("COUNT");
  unsigned first = from ? (unsigned)atoi(from) : 1;
  unsigned count = many ? (unsigned)atoi(many) : from ? 1 : BY_DEFAULT;
  for (unsigned seed = first; seed < first + count; seed++) run_seed(seed, count == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(in_the_end_it_knows_what_is_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
