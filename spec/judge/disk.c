/* Loaded before a client (LD_PRELOAD), it makes a disk of which nobody can be sure: below the system
 * call, where the engine's own tests of failing calls do not reach. JUDGE_DISK says what happens to
 * calls on files below JUDGE_ROOT, by lot of a seed, as "seed=1 slow=50 fail=10 lost=10 short=20
 * kill=0 stop=0 power=0":
 *
 *   slow, fail, lost, short   of a thousand calls: so many come late; fail (EIO, ENOSPC, EINTR where
 *                             POSIX has it); are carried out, and say EIO; read or write less
 *   kill=N                    the process is killed before its N-th call
 *   stop=N                    it is stopped (SIGSTOP) before its N-th call
 *   die=N, halt=N             the same, of the calls that make, change or remove a name alone
 *   place=P hold=N, fell=N    the same, before it gives something the N-th name that has P in its path
 *   deaf=N                    each call from the N-th on fails
 *   power=1                   what it has written and not flushed is gone with the kill
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <dlfcn.h>

enum { DIRTY_MAX = 128, DUP_FROM = 600 };
enum { READS = 1, WRITES = 2, MAY_INTR = 4, LOSES = 8 };

static struct {
  bool on, ready;
  unsigned long seed, slow, fail, lost, cut, kill, stop, die, halt, power, hold, fell, deaf;
  char root[PATH_MAX], place[64];
  size_t len;
} world;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static unsigned long calls, changes, places;
static _Thread_local bool in_place; /* this thread is about to give a name in world.place */
static uint64_t lots;

/* Files that were written to and not flushed since, each by a descriptor of our own. */
static struct dirty {
  dev_t dev;
  ino_t ino;
  int fd;
} dirty[DIRTY_MAX];
static int dirty_count;

static unsigned long word(const char *text, const char *name) {
  const char *at = strstr(text, name);
  return at ? strtoul(at + strlen(name), NULL, 10) : 0;
}

static void begin(void) {
  const char *text = getenv("JUDGE_DISK"), *root = getenv("JUDGE_ROOT");
  world.ready = true;
  if (!text || !root || strcmp(program_invocation_short_name, "ckpt-lua") != 0) return;
  world.seed = word(text, "seed="), world.slow = word(text, "slow=");
  world.fail = word(text, "fail="), world.lost = word(text, "lost=");
  world.cut = word(text, "short="), world.kill = word(text, "kill=");
  world.stop = word(text, "stop="), world.power = word(text, "power=");
  world.die = word(text, "die="), world.halt = word(text, "halt=");
  world.hold = word(text, "hold="), world.fell = word(text, "fell=");
  world.deaf = word(text, "deaf=");
  const char *place = strstr(text, "place=");
  if (place) sscanf(place, "place=%63[^ ]", world.place);
  snprintf(world.root, sizeof world.root, "%s", root);
  world.len = strlen(world.root);
  lots = world.seed * 0x9E3779B97F4A7C15u + 1;
  world.on = true;
}

static unsigned lot(unsigned of) {
  lots ^= lots << 13, lots ^= lots >> 7, lots ^= lots << 17;
  return (unsigned)((lots >> 11) % of);
}

static bool below(const char *path) {
  return strncmp(path, world.root, world.len) == 0;
}

static bool fd_below(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t len = readlink(link, path, sizeof path - 1);
  if (len <= 0) return false;
  path[len] = 0;
  return below(path);
}

static bool at_below(int dir, const char *path) {
  if (*path == '/') return below(path);
  char cwd[PATH_MAX];
  if (dir != AT_FDCWD) return fd_below(dir);
  return getcwd(cwd, sizeof cwd) && below(cwd);
}

/* Notes whether the name that is given now is in the place that is waited for. */
static bool named_below(int dir, const char *name) {
  char link[64], path[PATH_MAX + NAME_MAX + 2];
  ssize_t len = 0;
  if (!at_below(dir, name)) return false;
  if (!*world.place) return true;
  if (*name != '/' && dir != AT_FDCWD) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    len = readlink(link, path, PATH_MAX - 1);
    if (len < 0) len = 0;
  }
  snprintf(path + len, sizeof path - (size_t)len, "/%s", name);
  in_place = strstr(path, world.place) != NULL;
  return true;
}

static void lose_power(void) {
  for (int i = 0; i < dirty_count; i++)
    if (ftruncate(dirty[i].fd, 0) != 0) continue;
}

static void nap(void) {
  struct timespec t = {0, (long)lot(30) * 1000000};
  nanosleep(&t, NULL);
}

/* What happens to this call: 0 nothing, an errno, or -1: it is carried out and says EIO. */
static int fate(bool ours, int what) {
  if (!ours) return 0;
  int saved = errno, out = 0;
  pthread_mutex_lock(&guard);
  calls++;
  bool names = (what & LOSES) != 0;
  changes += names;
  places += in_place;
  bool stops =
      calls == world.stop || (names && changes == world.halt) || (in_place && places == world.hold);
  bool dies =
      calls == world.kill || (names && changes == world.die) || (in_place && places == world.fell);
  in_place = false;
  if (dies) {
    if (world.power) lose_power();
    kill(getpid(), SIGKILL);
    for (;;) pause();
  }
  bool slow = lot(1000) < world.slow;
  unsigned at = lot(1000);
  if (world.deaf && calls >= world.deaf) {
    out = EIO;
  } else if (at < world.fail) {
    unsigned kind = lot(3);
    out = kind == 0 && (what & MAY_INTR) ? EINTR : kind == 1 && (what & WRITES) ? ENOSPC : EIO;
  } else if (at < world.fail + world.lost && (what & LOSES)) {
    out = -1;
  }
  pthread_mutex_unlock(&guard);
  if (stops) kill(getpid(), SIGSTOP);
  if (slow) nap();
  errno = saved;
  return out;
}

static bool on(void) {
  if (!world.ready) begin();
  return world.on;
}

#define NEXT(type, name) type *next = (type *)dlsym(RTLD_NEXT, name)
#define MEET(ours, what)                                                                           \
  int met = on() ? fate(ours, what) : 0;                                                           \
  if (met > 0) {                                                                                   \
    errno = met;                                                                                   \
    return -1;                                                                                     \
  }
#define ANSWER(rc)                                                                                 \
  do {                                                                                             \
    int done = rc;                                                                                 \
    if (met < 0 && done == 0) {                                                                    \
      errno = EIO;                                                                                 \
      return -1;                                                                                   \
    }                                                                                              \
    return done;                                                                                   \
  } while (0)

/* ---- what was written, and not flushed ---- */

static void note_dirty(int fd) {
  struct stat st;
  if (!world.power || !fd_below(fd) || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return;
  pthread_mutex_lock(&guard);
  int i = 0;
  while (i < dirty_count && (dirty[i].dev != st.st_dev || dirty[i].ino != st.st_ino)) i++;
  if (i == dirty_count && i < DIRTY_MAX) {
    int mine = fcntl(fd, F_DUPFD_CLOEXEC, DUP_FROM);
    if (mine >= 0) dirty[dirty_count++] = (struct dirty){st.st_dev, st.st_ino, mine};
  }
  pthread_mutex_unlock(&guard);
}

static void note_flushed(int fd) {
  struct stat st;
  if (!world.power || fstat(fd, &st) != 0) return;
  pthread_mutex_lock(&guard);
  for (int i = 0; i < dirty_count; i++) {
    if (dirty[i].dev != st.st_dev || dirty[i].ino != st.st_ino) continue;
    close(dirty[i].fd);
    dirty[i] = dirty[--dirty_count];
    break;
  }
  pthread_mutex_unlock(&guard);
}

/* ---- the calls ---- */

typedef int openat_fn(int, const char *, int, mode_t);

int openat(int dir, const char *path, int flags, ...) {
  NEXT(openat_fn, "openat");
  va_list args;
  va_start(args, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(args, mode_t) : 0;
  va_end(args);
  MEET(at_below(dir, path), MAY_INTR | (flags & O_CREAT ? WRITES : READS))
  return next(dir, path, flags, mode);
}

typedef ssize_t read_fn(int, void *, size_t);
typedef ssize_t pread_fn(int, void *, size_t, off_t);
typedef ssize_t write_fn(int, const void *, size_t);
typedef ssize_t copy_fn(int, off_t *, int, off_t *, size_t, unsigned);

static size_t less(size_t len) {
  if (!world.on || len < 2 || lot(1000) >= world.cut) return len;
  return 1 + lot((unsigned)(len > 1 << 20 ? 1 << 20 : len) - 1);
}

ssize_t read(int fd, void *to, size_t len) {
  NEXT(read_fn, "read");
  bool ours = on() && fd_below(fd);
  MEET(ours, READS | MAY_INTR)
  return next(fd, to, ours ? less(len) : len);
}

ssize_t pread(int fd, void *to, size_t len, off_t at) {
  NEXT(pread_fn, "pread");
  bool ours = on() && fd_below(fd);
  MEET(ours, READS | MAY_INTR)
  return next(fd, to, ours ? less(len) : len, at);
}

ssize_t write(int fd, const void *from, size_t len) {
  NEXT(write_fn, "write");
  bool ours = on() && fd_below(fd);
  MEET(ours, WRITES | MAY_INTR)
  if (ours) note_dirty(fd);
  return next(fd, from, ours ? less(len) : len);
}

ssize_t copy_file_range(int from, off_t *at, int to, off_t *to_at, size_t len, unsigned flags) {
  NEXT(copy_fn, "copy_file_range");
  bool ours = on() && fd_below(to);
  MEET(ours, WRITES)
  if (ours) note_dirty(to);
  return next(from, at, to, to_at, ours ? less(len) : len, flags);
}

typedef int fd_fn(int);

int fsync(int fd) {
  NEXT(fd_fn, "fsync");
  MEET(fd_below(fd), WRITES)
  if (on()) note_flushed(fd);
  ANSWER(next(fd));
}

int fdatasync(int fd) {
  NEXT(fd_fn, "fdatasync");
  MEET(fd_below(fd), WRITES)
  if (on()) note_flushed(fd);
  ANSWER(next(fd));
}

typedef int linkat_fn(int, const char *, int, const char *, int);
typedef int renameat_fn(int, const char *, int, const char *);
typedef int unlinkat_fn(int, const char *, int);
typedef int mkdirat_fn(int, const char *, mode_t);

int linkat(int from, const char *path, int to, const char *name, int flags) {
  NEXT(linkat_fn, "linkat");
  MEET(on() && named_below(to, name), WRITES | LOSES)
  ANSWER(next(from, path, to, name, flags));
}

int renameat(int from, const char *path, int to, const char *name) {
  NEXT(renameat_fn, "renameat");
  MEET(on() && named_below(to, name), WRITES | LOSES)
  ANSWER(next(from, path, to, name));
}

int unlinkat(int dir, const char *path, int flags) {
  NEXT(unlinkat_fn, "unlinkat");
  MEET(at_below(dir, path), LOSES)
  ANSWER(next(dir, path, flags));
}

int mkdirat(int dir, const char *path, mode_t mode) {
  NEXT(mkdirat_fn, "mkdirat");
  MEET(at_below(dir, path), WRITES | LOSES)
  ANSWER(next(dir, path, mode));
}

typedef long syscall_fn(long, long, long, long, long, long, long);

/* The engine calls these by number: the C library has no functions for them, or had none. */
long syscall(long number, ...) {
  NEXT(syscall_fn, "syscall");
  long a[6];
  va_list args;
  va_start(args, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(args, long);
  va_end(args);
  bool ours = false;
  int what = READS;
  if (on() && number == SYS_renameat2) {
    ours = named_below((int)a[2], (const char *)a[3]) || at_below((int)a[0], (const char *)a[1]);
    what = WRITES | LOSES;
  } else if (on() && number == SYS_openat2) {
    ours = at_below((int)a[0], (const char *)a[1]);
    what = READS | MAY_INTR;
  } else if (on() && number == SYS_getdents64) {
    ours = fd_below((int)a[0]);
  }
  MEET(ours, what)
  long done = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (met < 0 && done == 0) {
    errno = EIO;
    return -1;
  }
  return done;
}
