#include "io_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Descriptors beyond this many are logged without a path; lines beyond this many are not logged. */
enum { FDS = 1024, LINES = 4096 };

static int look_at(const io *io, int fd) {
  (void)io;
  struct stat st;
  return io_system()->fstat(io_system(), fd, &st);
}

static pthread_once_t unflushed_once = PTHREAD_ONCE_INIT;
static io unflushed;

static void make_unflushed(void) {
  unflushed = *io_system();
  unflushed.fsync = look_at;
  unflushed.fdatasync = look_at;
  unflushed.syncfs = look_at;
}

const io *io_unflushed(void) {
  pthread_once(&unflushed_once, make_unflushed);
  return &unflushed;
}

struct io_fault {
  io io;
  const struct io *inner;
  pthread_mutex_t mutex; /* over all below */
  io_fault_plan plan;
  long counts[CALLS];
  long failed[CALLS];
  size_t most;
  char *paths[FDS];
  char *lines[LINES];
  int line_count;
};

/* Says what is done with one call. */
typedef struct verdict {
  int rc;    /* 0, or what to answer */
  bool done; /* carry it out, then answer so */
  size_t most;
} verdict;

static io_fault *of(const io *io) {
  return io->ctx;
}

static verdict judge(io_fault *f, io_call kind) {
  verdict v = {0};
  pthread_mutex_lock(&f->mutex);
  f->counts[kind]++;
  if (kind != CALL_NOW) f->counts[CALL_ANY]++;
  const io_fault_plan *p = &f->plan;
  if (p->nth > 0 && (p->kind == kind || (p->kind == CALL_ANY && kind != CALL_NOW))) {
    long n = f->counts[p->kind];
    if (n == p->nth || (p->for_good && n > p->nth))
      v = (verdict){.rc = -p->errnum, .done = p->done};
  }
  if (v.rc < 0) {
    f->failed[kind]++;
    f->failed[CALL_ANY]++;
  }
  v.most = f->most;
  pthread_mutex_unlock(&f->mutex);
  return v;
}

static void note(io_fault *f, long rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void note(io_fault *f, long rc, const char *fmt, ...) {
  char text[9000];
  va_list args;
  va_start(args, fmt);
  int len = vsnprintf(text, sizeof text - 32, fmt, args);
  va_end(args);
  if (rc < 0 && len >= 0 && len < (int)sizeof text - 32) snprintf(text + len, 32, " = %ld", rc);
  pthread_mutex_lock(&f->mutex);
  if (f->line_count < LINES) f->lines[f->line_count++] = strdup(text);
  pthread_mutex_unlock(&f->mutex);
}

static void remember(io_fault *f, int fd, const char *path) {
  if (fd < 0 || fd >= FDS) return;
  pthread_mutex_lock(&f->mutex);
  free(f->paths[fd]);
  f->paths[fd] = path ? strdup(path) : NULL;
  pthread_mutex_unlock(&f->mutex);
}

/* The path behind a descriptor, into `out` (4096). */
static const char *path_of(io_fault *f, int fd, char *out) {
  pthread_mutex_lock(&f->mutex);
  const char *path = fd >= 0 && fd < FDS && f->paths[fd] ? f->paths[fd] : "?";
  snprintf(out, 4096, "%s", path);
  pthread_mutex_unlock(&f->mutex);
  return out;
}

static const char *path_at(io_fault *f, int dirfd, const char *path, char *out) {
  if (dirfd == AT_FDCWD || path[0] == '/') return path;
  path_of(f, dirfd, out);
  size_t len = strlen(out);
  snprintf(out + len, 4096 - len, "/%s", path);
  return out;
}

/* The three shapes of every call below: judge, carry out unless it fails before, answer. */
#define BEGIN(kind)                                                                                \
  io_fault *f = of(io);                                                                            \
  verdict v = judge(f, kind);
#define CARRY_OUT(type, call)                                                                      \
  type rc = v.rc < 0 && !v.done ? (type)v.rc : (type)(call);                                       \
  if (v.rc < 0) rc = v.rc;

static int fault_open(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  BEGIN(flags & O_PATH ? CALL_LOOK_UP : CALL_OPEN)
  char at[4096];
  int rc = v.rc < 0 && !v.done ? v.rc : f->inner->open(f->inner, dirfd, path, flags, mode);
  if (v.rc < 0 && rc >= 0) {
    f->inner->close(f->inner, rc); /* the file stays, its descriptor is lost */
    rc = v.rc;
  }
  path = path_at(f, dirfd, path, at);
  remember(f, rc, path);
  note(f, rc, "open %s", path);
  return rc;
}

static int fault_close(const io *io, int fd) {
  BEGIN(CALL_CLOSE)
  char at[4096];
  path_of(f, fd, at);
  remember(f, fd, NULL); /* before it is free for another thread */
  int rc = f->inner->close(f->inner, fd);
  if (v.rc < 0) rc = v.rc;
  note(f, rc, "close %s", at);
  return rc;
}

static ssize_t fault_read(const io *io, int fd, void *to, size_t len) {
  BEGIN(CALL_READ)
  CARRY_OUT(ssize_t, f->inner->read(f->inner, fd, to, len))
  return rc;
}

static ssize_t fault_pread(const io *io, int fd, void *to, size_t len, off_t offset) {
  BEGIN(CALL_PREAD)
  CARRY_OUT(ssize_t, f->inner->pread(f->inner, fd, to, len, offset))
  return rc;
}

static ssize_t fault_write(const io *io, int fd, const void *from, size_t len) {
  BEGIN(CALL_WRITE)
  char at[4096];
  if (v.most && len > v.most) len = v.most;
  CARRY_OUT(ssize_t, f->inner->write(f->inner, fd, from, len))
  note(f, rc, "write %s", path_of(f, fd, at));
  return rc;
}

static int fault_fsync(const io *io, int fd) {
  BEGIN(CALL_FSYNC)
  char at[4096];
  CARRY_OUT(int, f->inner->fsync(f->inner, fd))
  note(f, rc, "fsync %s", path_of(f, fd, at));
  return rc;
}

static int fault_fdatasync(const io *io, int fd) {
  BEGIN(CALL_FDATASYNC)
  char at[4096];
  CARRY_OUT(int, f->inner->fdatasync(f->inner, fd))
  note(f, rc, "fdatasync %s", path_of(f, fd, at));
  return rc;
}

/* Counts as an fsync: it fails as one does. */
static int fault_syncfs(const io *io, int fd) {
  BEGIN(CALL_FSYNC)
  char at[4096];
  CARRY_OUT(int, f->inner->syncfs(f->inner, fd))
  note(f, rc, "syncfs %s", path_of(f, fd, at));
  return rc;
}

static int fault_ftruncate(const io *io, int fd, off_t size) {
  BEGIN(CALL_FTRUNCATE)
  char at[4096];
  CARRY_OUT(int, f->inner->ftruncate(f->inner, fd, size))
  note(f, rc, "ftruncate %s", path_of(f, fd, at));
  return rc;
}

static int fault_fstat(const io *io, int fd, struct stat *out) {
  BEGIN(CALL_FSTAT)
  CARRY_OUT(int, f->inner->fstat(f->inner, fd, out))
  return rc;
}

static int fault_lstat(const io *io, int dirfd, const char *path, struct stat *out) {
  BEGIN(CALL_LSTAT)
  CARRY_OUT(int, f->inner->lstat(f->inner, dirfd, path, out))
  return rc;
}

static int fault_birth(const io *io, int fd, int64_t *ns) {
  BEGIN(CALL_BIRTH)
  CARRY_OUT(int, f->inner->birth ? f->inner->birth(f->inner, fd, ns) : -ENODATA)
  return rc;
}

static int fault_mkdir(const io *io, int dirfd, const char *path, mode_t mode) {
  BEGIN(CALL_MKDIR)
  char at[4096];
  CARRY_OUT(int, f->inner->mkdir(f->inner, dirfd, path, mode))
  note(f, rc, "mkdir %s", path_at(f, dirfd, path, at));
  return rc;
}

static int fault_rename(const io *io, int fromdir, const char *from, int todir, const char *to,
                        unsigned flags) {
  BEGIN(CALL_RENAME)
  char at[4096], at_to[4096];
  CARRY_OUT(int, f->inner->rename(f->inner, fromdir, from, todir, to, flags))
  note(f, rc, "rename %s > %s", path_at(f, fromdir, from, at), path_at(f, todir, to, at_to));
  return rc;
}

static int fault_link(const io *io, int fromdir, const char *from, int todir, const char *to) {
  BEGIN(CALL_LINK)
  char at[4096], at_to[4096];
  CARRY_OUT(int, f->inner->link(f->inner, fromdir, from, todir, to))
  note(f, rc, "link %s > %s", path_at(f, fromdir, from, at), path_at(f, todir, to, at_to));
  return rc;
}

static int fault_unlink(const io *io, int dirfd, const char *path, int flags) {
  BEGIN(CALL_UNLINK)
  char at[4096];
  CARRY_OUT(int, f->inner->unlink(f->inner, dirfd, path, flags))
  note(f, rc, "unlink %s", path_at(f, dirfd, path, at));
  return rc;
}

static int fault_symlink(const io *io, const char *target, int dirfd, const char *path) {
  BEGIN(CALL_SYMLINK)
  char at[4096];
  CARRY_OUT(int, f->inner->symlink(f->inner, target, dirfd, path))
  note(f, rc, "symlink %s > %s", target, path_at(f, dirfd, path, at));
  return rc;
}

static ssize_t fault_readlink(const io *io, int dirfd, const char *path, char *to, size_t len) {
  BEGIN(CALL_READLINK)
  char at[4096];
  CARRY_OUT(ssize_t, f->inner->readlink(f->inner, dirfd, path, to, len))
  note(f, rc, "readlink %s", path_at(f, dirfd, path, at));
  return rc;
}

static int fault_chmod(const io *io, int fd, mode_t mode) {
  BEGIN(CALL_CHMOD)
  char at[4096];
  CARRY_OUT(int, f->inner->chmod(f->inner, fd, mode))
  note(f, rc, "chmod %s", path_of(f, fd, at));
  return rc;
}

static int fault_utimens(const io *io, int dirfd, const char *path, const struct timespec times[2],
                         int flags) {
  BEGIN(CALL_UTIMENS)
  char at[4096];
  CARRY_OUT(int, f->inner->utimens(f->inner, dirfd, path, times, flags))
  note(f, rc, "utimens %s", path_at(f, dirfd, path, at));
  return rc;
}

static ssize_t fault_getdents(const io *io, int fd, void *to, size_t len) {
  BEGIN(CALL_GETDENTS)
  char at[4096];
  CARRY_OUT(ssize_t, f->inner->getdents(f->inner, fd, to, len))
  note(f, rc, "getdents %s", path_of(f, fd, at));
  return rc;
}

static int fault_clone(const io *io, int from, int to) {
  BEGIN(CALL_CLONE)
  char at[4096];
  CARRY_OUT(int, f->inner->clone(f->inner, from, to))
  note(f, rc, "clone %s", path_of(f, to, at));
  return rc;
}

static ssize_t fault_copy_range(const io *io, int from, int to, size_t len) {
  BEGIN(CALL_COPY_RANGE)
  char at[4096];
  CARRY_OUT(ssize_t, f->inner->copy_range(f->inner, from, to, len))
  note(f, rc, "copy_range %s", path_of(f, to, at));
  return rc;
}

static int64_t fault_now(const io *io, io_clock clock) {
  io_fault *f = of(io);
  judge(f, CALL_NOW);
  return f->inner->now(f->inner, clock);
}

static void fault_sleep(const io *io, int64_t ns) {
  const io_fault *f = of(io);
  f->inner->sleep(f->inner, ns);
}

static int fault_random(const io *io, void *to, size_t len) {
  BEGIN(CALL_RANDOM)
  CARRY_OUT(int, f->inner->random(f->inner, to, len))
  note(f, rc, "random");
  return rc;
}

static const io calls = {
    .open = fault_open,
    .close = fault_close,
    .read = fault_read,
    .pread = fault_pread,
    .write = fault_write,
    .fsync = fault_fsync,
    .fdatasync = fault_fdatasync,
    .syncfs = fault_syncfs,
    .ftruncate = fault_ftruncate,
    .fstat = fault_fstat,
    .lstat = fault_lstat,
    .birth = fault_birth,
    .mkdir = fault_mkdir,
    .rename = fault_rename,
    .link = fault_link,
    .unlink = fault_unlink,
    .symlink = fault_symlink,
    .readlink = fault_readlink,
    .chmod = fault_chmod,
    .utimens = fault_utimens,
    .getdents = fault_getdents,
    .clone = fault_clone,
    .copy_range = fault_copy_range,
    .now = fault_now,
    .sleep = fault_sleep,
    .random = fault_random,
};

io_fault *io_fault_new(const io *inner) {
  io_fault *f = calloc(1, sizeof *f);
  if (!f) abort();
  f->inner = inner;
  f->io = calls;
  f->io.ctx = f;
  pthread_mutex_init(&f->mutex, NULL);
  return f;
}

static void clear_log(io_fault *f) {
  for (int i = 0; i < f->line_count; i++) free(f->lines[i]);
  f->line_count = 0;
}

void io_fault_free(io_fault *f) {
  if (!f) return;
  clear_log(f);
  for (int i = 0; i < FDS; i++) free(f->paths[i]);
  pthread_mutex_destroy(&f->mutex);
  free(f);
}

const io *io_fault_io(io_fault *f) {
  return &f->io;
}

void io_fault_set(io_fault *f, io_fault_plan plan) {
  pthread_mutex_lock(&f->mutex);
  f->plan = plan;
  memset(f->failed, 0, sizeof f->failed);
  memset(f->counts, 0, sizeof f->counts);
  clear_log(f);
  pthread_mutex_unlock(&f->mutex);
}

void io_fault_once(io_fault *f, io_call kind, long nth, int errnum) {
  io_fault_set(f, (io_fault_plan){.kind = kind, .nth = nth, .errnum = errnum});
}

long io_fault_count(io_fault *f, io_call kind) {
  pthread_mutex_lock(&f->mutex);
  long count = f->counts[kind];
  pthread_mutex_unlock(&f->mutex);
  return count;
}

long io_fault_failed(io_fault *f, io_call kind) {
  pthread_mutex_lock(&f->mutex);
  long failed = f->failed[kind];
  pthread_mutex_unlock(&f->mutex);
  return failed;
}

void io_fault_short_writes(io_fault *f, size_t most) {
  pthread_mutex_lock(&f->mutex);
  f->most = most;
  pthread_mutex_unlock(&f->mutex);
}

int io_fault_find(io_fault *f, int from, const char *what) {
  int found = -1;
  pthread_mutex_lock(&f->mutex);
  for (int i = from; i >= 0 && i < f->line_count && found < 0; i++)
    if (strncmp(f->lines[i], what, strlen(what)) == 0) found = i;
  pthread_mutex_unlock(&f->mutex);
  return found;
}

char *io_fault_log(io_fault *f) {
  char *text = NULL;
  size_t len = 0;
  pthread_mutex_lock(&f->mutex);
  FILE *out = open_memstream(&text, &len);
  if (!out) abort();
  for (int i = 0; i < f->line_count; i++) fprintf(out, "%s\n", f->lines[i]);
  fclose(out);
  pthread_mutex_unlock(&f->mutex);
  return text;
}
