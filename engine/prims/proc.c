#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/names.h"
#include "base/vec.h"

enum {
  STAT_MAX = 4096,
  ENV_CHUNK = 16 * 1024,
  ENV_MAX = 8 << 20, /* the kernel starts no process with more than 6 MiB; a process can point
                        /proc at anything afterwards */
  LINK_MAX_BYTES = 4096,
  ENTRY_MAX = 4096,
};

/* Processes end while they are looked at, and those of others do not open: neither is a failure of
 * the walk. Any other error (no descriptors, no memory) is: "nobody found" would be a lie. */
static bool is_out_of_reach(int errnum) {
  return errnum == ENOENT || errnum == ESRCH || errnum == EACCES || errnum == EPERM;
}

/* Reads the beginning of a file under /proc: at most room - 1 bytes, and a NUL behind them. Returns
 * the length or -errno. */
static ssize_t read_some(const char *path, char *to, size_t room) {
  const io *io = io_system();
  size_t len = 0;
  ssize_t rc = 1;
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY, 0);
  if (fd < 0) return fd;
  while (len < room - 1 && (rc = io->read(io, fd, to + len, room - 1 - len)) > 0) len += (size_t)rc;
  io->close(io, fd);
  to[len] = 0;
  return rc < 0 ? rc : (ssize_t)len;
}

int proc_boot_id(char out[PROC_BOOT_MAX], err *e) {
  static const char path[] = "/proc/sys/kernel/random/boot_id";
  ssize_t len = read_some(path, out, PROC_BOOT_MAX);
  if (len < 0) {
    out[0] = 0;
    return err_sys(e, (int)-len, "cannot read %s", path);
  }
  out[strcspn(out, "\n")] = 0;
  return out[0] ? 0 : err_set(e, ERR_FORMAT, "%s is empty", path);
}

/* "pid:[4026531836]"; "" where the kernel has no such namespaces. */
static int name_space(const char *path, char *out, size_t room) {
  ssize_t len = readlink(path, out, room - 1);
  if (len < 0 && errno != ENOENT) return 0;
  out[len < 0 ? 0 : len] = 0;
  return (size_t)(len + 1) < room;
}

int proc_space(char out[PROC_SPACE_MAX]) {
  char self[32], pids[PROC_SPACE_MAX / 2], times[PROC_SPACE_MAX / 2];
  out[0] = 0;
  ssize_t len = readlink("/proc/self", self, sizeof self - 1);
  self[len < 0 ? 0 : len] = 0;
  if (strtol(self, NULL, 10) != (long)getpid()) return 0;
  if (!name_space("/proc/self/ns/pid", pids, sizeof pids) || !pids[0]) return 0;
  if (!name_space("/proc/self/ns/time", times, sizeof times)) return 0;
  snprintf(out, PROC_SPACE_MAX, "%s %s", pids, times);
  return 1;
}

int proc_machine(char out[PROC_MACHINE_MAX]) {
  static const char *const paths[] = {"/etc/machine-id", "/var/lib/dbus/machine-id"};
  size_t len = 0;
  for (size_t i = 0; i < 2 && len == 0; i++) {
    ssize_t n = read_some(paths[i], out, PROC_MACHINE_MAX);
    len = n > 0 ? strcspn(out, "\n") : 0;
  }
  /* systemd writes "uninitialized" there before it has drawn one. */
  if (len < 32) len = 0;
  out[len] = 0;
  return len > 0;
}

/* One process, from /proc/PID/stat. */

typedef struct stat_line {
  pid_t ppid, sid;
  uint64_t start, argv_len; /* argv_len: 0 if we may not know */
} stat_line;

/* The text between the first '(' and the last ')' is the name, which may hold anything, also line
 * ends and ") R 1 2 3": nothing behind the last ')' can. False for a dead one, or nonsense. */
static bool parse_stat(const char *text, stat_line *out) {
  enum { STATE = 3, PPID = 4, SID = 6, THREADS = 20, START = 22, ARG_START = 48, ARG_END = 49 };
  uint64_t field[ARG_END + 1] = {0};
  const char *at = strrchr(text, ')');
  if (!at || at[1] != ' ' || !at[2]) return false;
  char state = at[2];
  at += 3;
  int n = PPID;
  for (; n <= ARG_END; n++) {
    char *end;
    field[n] = strtoull(at, &end, 10); /* a negative number wraps; the fields that we read are not
                                        * negative */
    if (end == at) break;
    at = end;
  }
  if (n <= START) return false;
  /* The first thread may end before the others: it is shown as a zombie, the process lives. */
  bool dead = state == 'X' || state == 'x' || (state == 'Z' && field[THREADS] <= 1);
  *out = (stat_line){.ppid = (pid_t)field[PPID],
                     .sid = (pid_t)field[SID],
                     .start = field[START],
                     .argv_len = field[ARG_END] - field[ARG_START]};
  return !dead;
}

static int look(pid_t pid, stat_line *out, err *e) {
  char path[64], text[STAT_MAX];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  ssize_t len = read_some(path, text, sizeof text);
  /* Without /proc every process would seem dead. */
  if (len == -ENOENT && access("/proc/self/stat", F_OK) != 0)
    return err_set(e, ERR_UNSUPPORTED, "/proc is not mounted: nothing is known of process %d",
                   (int)pid);
  if (len == -ENOENT || len == -ESRCH)
    return err_set(e, ERR_NOENT, "there is no process %d", (int)pid);
  if (len < 0) return err_sys(e, (int)-len, "cannot read %s", path);
  if (!parse_stat(text, out)) return err_set(e, ERR_NOENT, "process %d has ended", (int)pid);
  return 0;
}

/* Looks as a walk over all processes does: 1 if it lives, 0 if it has ended or is out of reach, or
 * ERR_*. */
static int glance(pid_t pid, stat_line *out, err *e) {
  err own = {0};
  int rc = look(pid, out, &own);
  if (rc == 0) return 1;
  if (rc == ERR_NOENT || rc == ERR_ACCESS) return 0;
  if (e) *e = own;
  return rc;
}

int proc_identity(pid_t pid, uint64_t *start, pid_t *sid, err *e) {
  stat_line line;
  int rc = look(pid, &line, e);
  if (rc < 0) return rc;
  if (start) *start = line.start;
  if (sid) *sid = line.sid;
  return 0;
}

int proc_alive(pid_t pid, uint64_t start) {
  uint64_t now = 0;
  int rc = proc_identity(pid, &now, NULL, NULL);
  if (rc == ERR_NOENT) return 0;
  /* A process that we cannot look at counts as alive: taking what a live process holds does more
   * harm than waiting. */
  return rc < 0 || now == start;
}

bool proc_gone(pid_t pid, uint64_t start) {
  char path[64], text[STAT_MAX];
  stat_line now = {0};
  if (pid <= 0) return false;
  if (kill(pid, 0) < 0 && errno == ESRCH) return true;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (read_some(path, text, sizeof text) <= 0) return false;
  return !parse_stat(text, &now) || now.start != start;
}

/* Reads its argv. If a process wrote over the end of it, the kernel goes on into the environment,
 * where the secrets are: so no more is read than the argv it was started with. */
static void read_command(pid_t pid, const stat_line *line, char out[PROC_NAME_MAX]) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
  size_t room = line->argv_len < PROC_NAME_MAX ? (size_t)line->argv_len + 1 : PROC_NAME_MAX;
  ssize_t len = read_some(path, out, room);
  if (len < 0) len = 0; /* it has just ended: it goes without a name */
  while (len > 0 && out[len - 1] == 0) len--;
  for (ssize_t i = 0; i < len; i++)
    if (out[i] == 0) out[i] = ' ';
  out[len] = 0;
}

/* The owner of /proc/PID tells it for most; for a process that may not be looked into (setuid,
 * setcap) that is root. */
static uid_t uid_of(pid_t pid) {
  char path[64], text[STAT_MAX];
  unsigned long uid;
  snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  const char *line = read_some(path, text, sizeof text) > 0 ? strstr(text, "\nUid:") : NULL;
  return line && sscanf(line, "\nUid: %lu", &uid) == 1 ? (uid_t)uid : (uid_t)-1;
}

/* Tells about a process if it is still the one that was looked at before, and counts it. Returns
 * what `found` returned (0 if it was not called), or ERR_*. */
static int tell(pid_t pid, uint64_t start, proc_found *found, void *ctx, int *count, err *e) {
  stat_line line;
  int rc = glance(pid, &line, e);
  if (rc <= 0 || line.start != start) return rc < 0 ? rc : 0;
  proc_info info = {
      .pid = pid, .ppid = line.ppid, .sid = line.sid, .uid = uid_of(pid), .start = start};
  read_command(pid, &line, info.command);
  ++*count;
  return found(ctx, &info);
}

/* Opens the list of all processes. */

static int open_proc(DIR **out, err *e) {
  *out = opendir("/proc");
  return *out ? 0 : err_sys(e, errno, "cannot list /proc");
}

/* Returns the next process but our own, 0 at the end, or -errno. */
static pid_t next_pid(DIR *proc) {
  for (;;) {
    errno = 0;
    const struct dirent *entry = readdir(proc);
    if (!entry) return -errno;
    char *end;
    long pid = strtol(entry->d_name, &end, 10);
    if (*end == 0 && pid > 0 && pid != getpid()) return (pid_t)pid;
  }
}

/* Looks for "name=value" as a whole entry in a stream of entries that end in NUL. It works byte by
 * byte and keeps its place between two reads. */
typedef struct env_search {
  const char *entry;
  size_t at; /* bytes of the present entry that agree so far */
  bool differs, found;
} env_search;

static void search_bytes(env_search *s, const char *bytes, size_t len) {
  for (size_t i = 0; i < len && !s->found; i++) {
    if (bytes[i] == 0) {
      s->found = !s->differs && s->entry[s->at] == 0;
      s->differs = false;
      s->at = 0;
    } else if (!s->differs) {
      s->differs = bytes[i] != s->entry[s->at];
      if (!s->differs) s->at++;
    }
  }
}

/* 1 if the process has the entry, 0 if not or if it is out of reach, or -errno. */
static int has_env(pid_t pid, env_search s) {
  const io *io = io_system();
  char path[64], chunk[ENV_CHUNK];
  snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY, 0);
  if (fd < 0) return is_out_of_reach(-fd) ? 0 : fd;
  ssize_t len = 0;
  for (size_t all = 0; all < ENV_MAX && !s.found; all += (size_t)len) {
    len = io->read(io, fd, chunk, sizeof chunk);
    if (len <= 0) break;
    search_bytes(&s, chunk, (size_t)len);
  }
  io->close(io, fd);
  if (len < 0) return is_out_of_reach((int)-len) ? 0 : (int)len;
  if (len == 0) search_bytes(&s, "", 1); /* the last entry may end without its NUL */
  return s.found;
}

int proc_find_env(const char *name, const char *value, proc_found *found, void *ctx, err *e) {
  char entry[ENTRY_MAX];
  env_search s = {.entry = entry};
  if (*name == 0 || strchr(name, '='))
    return err_set(e, ERR_INVAL, "\"%s\" is no name of an environment variable", name);
  if (snprintf(entry, sizeof entry, "%s=%s", name, value) >= (int)sizeof entry)
    return err_set(e, ERR_LIMIT, "%s=... is too long to be looked for", name);
  DIR *proc = NULL;
  int count = 0, rc = open_proc(&proc, e);
  if (rc < 0) return rc;
  pid_t pid;
  while (rc == 0 && (pid = next_pid(proc)) > 0) {
    stat_line line;
    rc = glance(pid, &line, e);
    if (rc <= 0) continue;
    rc = has_env(pid, s);
    if (rc < 0)
      rc = err_sys(e, rc, "cannot read the environment of process %d", (int)pid);
    else if (rc > 0)
      rc = tell(pid, line.start, found, ctx, &count, e);
  }
  if (rc == 0 && pid < 0) rc = err_sys(e, pid, "cannot list /proc");
  closedir(proc);
  return rc ? rc : count;
}

/* Descendants: one look at all processes, sorted by parent; then from the root downwards. */

typedef struct member {
  pid_t pid, ppid;
  uint64_t start;
} member;

typedef struct members {
  member *at;
  size_t len, room;
} members;

static int by_parent(const void *a, const void *b) {
  const member *x = a, *y = b;
  return (x->ppid > y->ppid) - (x->ppid < y->ppid);
}

static int add_member(members *m, member one, err *e) {
  if (m->len == m->room) {
    size_t room = m->room ? m->room * 2 : 256;
    member *more = realloc(m->at, room * sizeof *more);
    if (!more) return err_set(e, ERR_NOMEM, "no memory for a list of %zu processes", room);
    m->at = more;
    m->room = room;
  }
  m->at[m->len++] = one;
  return 0;
}

/* Lists all processes, our own too: the root may be our ancestor, and our children are its
 * descendants too. */
static int all_members(members *m, err *e) {
  DIR *proc = NULL;
  int rc = open_proc(&proc, e);
  if (rc < 0) return rc;
  pid_t pid = getpid();
  do {
    stat_line line;
    rc = glance(pid, &line, e);
    if (rc > 0) rc = add_member(m, (member){pid, line.ppid, line.start}, e);
  } while (rc == 0 && (pid = next_pid(proc)) > 0);
  if (rc == 0 && pid < 0) rc = err_sys(e, pid, "cannot list /proc");
  closedir(proc);
  if (m->len > 0) qsort(m->at, m->len, sizeof *m->at, by_parent);
  return rc;
}

/* Appends the children of `parent` to `family`. */
static int add_children(const members *all, pid_t parent, members *family, err *e) {
  size_t low = 0, high = all->len;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (all->at[mid].ppid < parent)
      low = mid + 1;
    else
      high = mid;
  }
  int rc = 0;
  for (; rc == 0 && low < all->len && all->at[low].ppid == parent; low++)
    rc = add_member(family, all->at[low], e);
  return rc;
}

int proc_descendants(pid_t root, proc_found *found, void *ctx, err *e) {
  members all = {0}, family = {0};
  int count = 0, rc = all_members(&all, e);
  if (rc == 0) rc = add_children(&all, root, &family, e);
  /* A list that was not taken in one moment may show a circle, when pids are used again: the loop
   * ends, since nobody has more descendants than there are processes. */
  for (size_t i = 0; rc == 0 && i < family.len && family.len <= all.len; i++)
    rc = add_children(&all, family.at[i].pid, &family, e);
  for (size_t i = 0; rc == 0 && i < family.len; i++)
    if (family.at[i].pid != getpid() && family.at[i].pid != root)
      rc = tell(family.at[i].pid, family.at[i].start, found, ctx, &count, e);
  free(all.at);
  free(family.at);
  return rc ? rc : count;
}

/* Open files. */

static bool is_below(const char *path, const char *top, size_t top_len) {
  return strncmp(path, top, top_len) == 0 && (path[top_len] == 0 || path[top_len] == '/');
}

/* A removed file's link ends in " (deleted)"; but a file may also be called so. `fd_path` leads to
 * the open file itself. */
static bool is_deleted(const char *fd_path, const char *target) {
  static const char mark[] = " (deleted)";
  size_t len = strlen(target), mark_len = sizeof mark - 1;
  if (len < mark_len || strcmp(target + len - mark_len, mark) != 0) return false;
  struct stat open_one, named;
  return stat(fd_path, &open_one) != 0 || lstat(target, &named) != 0 ||
         open_one.st_ino != named.st_ino || open_one.st_dev != named.st_dev;
}

static bool is_for_writing(const char *info_path) {
  char text[1024];
  if (read_some(info_path, text, sizeof text) <= 0) return false; /* closed in between */
  const char *flags = strstr(text, "flags:");
  int mode = flags ? (int)(strtoul(flags + 6, NULL, 8) & O_ACCMODE) : O_RDONLY;
  return mode == O_WRONLY || mode == O_RDWR;
}

struct proc_writers {
  names paths;  /* sorted */
  bool unknown; /* no descriptor or memory was left: there may be any */
};

/* Adds what the process has open for writing at or below `top`; one that is out of reach has
 * nothing. */
static void add_writes(proc_writers *w, pid_t pid, const char *top, size_t top_len) {
  char dir_path[64], path[400], target[LINK_MAX_BYTES + 1];
  snprintf(dir_path, sizeof dir_path, "/proc/%d/fd", (int)pid);
  DIR *dir = opendir(dir_path);
  if (!dir) {
    w->unknown = w->unknown || !is_out_of_reach(errno);
    return;
  }
  const struct dirent *entry;
  while ((entry = readdir(dir))) { /* an error here: it has just ended */
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", dir_path, entry->d_name);
    ssize_t len = readlink(path, target, LINK_MAX_BYTES);
    if (len <= 0) continue;
    target[len] = 0;
    if (!is_below(target, top, top_len) || is_deleted(path, target)) continue;
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%s", (int)pid, entry->d_name);
    if (is_for_writing(path) && !names_add(&w->paths, target)) w->unknown = true;
  }
  closedir(dir);
}

/* Without the slash at its end; "/" becomes "": all absolute paths. */
static size_t length_of(const char *path) {
  size_t len = strlen(path);
  while (len > 0 && path[len - 1] == '/') len--;
  return len;
}

proc_writers *proc_writers_take(const char *top) {
  proc_writers *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  DIR *proc = opendir("/proc");
  /* Out of descriptors or memory, nobody can say that there is no writer; a later try may. A
   * machine without /proc never can, and its callers would wait for ever. */
  if (!proc) {
    w->unknown = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    return w;
  }
  pid_t pid = 0;
  while (!w->unknown && (pid = next_pid(proc)) > 0) add_writes(w, pid, top, length_of(top));
  w->unknown = w->unknown || pid < 0;
  closedir(proc);
  names_sort(&w->paths);
  return w;
}

void proc_writers_free(proc_writers *w) {
  if (!w) return;
  names_free(&w->paths);
  free(w);
}

/* A path's first bytes, and the one behind them. */
typedef struct beginning {
  const char *path;
  size_t len;
  char end;
} beginning;

static int against(const void *key, const void *item) {
  const beginning *b = key;
  const char *at = *(char *const *)item;
  int order = strncmp(b->path, at, b->len);
  return order ? order : (unsigned char)b->end - (unsigned char)at[b->len];
}

static bool has_path(const proc_writers *w, const char *path, size_t len, char end) {
  const beginning wanted = {path, len, end};
  return vec_find(&wanted, (const void *)w->paths.at, w->paths.count, sizeof(char *), against);
}

bool proc_writers_has(const proc_writers *w, const char *path) {
  size_t len = length_of(path);
  return w->unknown || has_path(w, path, len, 0) || has_path(w, path, len, '/');
}
