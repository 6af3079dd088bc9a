#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/vec.h"
#include "job/pack/archive_pipe.h"
#include "job/pack/leftover.h"
#include "prims/fs.h"
#include "prims/fs_held.h"
#include "prims/lock.h"

enum { PIECE = 256 << 10, RATIO_MAX = 1000 };
static const uint64_t default_bytes = (uint64_t)1 << 40, default_entries = 4 << 20;
static const size_t names_max = 256 << 20; /* of directories, which are kept until the end */

/* Modes and times of directories are set when nothing more is made in them. */
typedef struct later {
  char *name;
  mode_t mode;
  int64_t mtime_ns;
} later;

typedef struct unpacking {
  const unpack_options *o;
  const io *io;
  archive_pipe *pipe;
  fs_held *where; /* the directory in which the result will stand, and the staging; io's own */
  int in, root;   /* descriptors */
  lock held;      /* on the staging */
  char staging[FS_PATH_MAX];
  char name[BUNDLE_NAME_MAX + 1], target[BUNDLE_NAME_MAX + 1]; /* of the entry at hand */
  bundle_head head;
  uint64_t entries, bytes, entries_max, bytes_max;
  later *dirs;
  size_t dir_count, dir_room, names;
  char parent[FS_PATH_MAX]; /* the directory that `open` is; entries mostly come in its order */
  int open;                 /* -1: none */
  unsigned char piece[PIECE];
} unpacking;

/* ---- errors ---- */

/* The entry's name comes from a stranger and goes to a terminal. */
static int refuse(const unpacking *u, int code, const char *why, err *e) {
  buf name;
  buf_init(&name, 1024);
  js_plain(u->name, 400, &name);
  int rc = err_set(e, code == ERR_LIMIT ? code : ERR_FORMAT, "%s: \"%s\": %s", u->o->file,
                   name.data ? name.data : "", why);
  buf_free(&name);
  return rc;
}

/* Refuses an entry for an error of the file system: if something stands where it should go, that is
 * the archive's fault. */
static int refuse_sys(const unpacking *u, int rc, err *e) {
  if (rc == -EEXIST) return refuse(u, ERR_FORMAT, "it is there twice", e);
  if (rc == -ELOOP || rc == -ENOTDIR || rc == -EXDEV)
    return refuse(u, ERR_FORMAT, "it lies below something that is no directory", e);
  err why = {0};
  err_sys(&why, rc, "cannot be made");
  refuse(u, ERR_FORMAT, why.text, e);
  if (e) e->code = why.code;
  return why.code;
}

/* ---- directories ---- */

static int open_dir(const unpacking *u, const char *name) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  return *name ? fs_open_beneath(u->io, u->root, name, flags, 0)
               : u->io->open(u->io, AT_FDCWD, u->staging, flags, 0);
}

static void forget_parent(unpacking *u) {
  if (u->open >= 0) u->io->close(u->io, u->open);
  u->open = -1;
}

/* Makes a directory. One that is there already is fine: archives name directories before and after
 * their content. */
static int make_dir_at(const unpacking *u, int parent, const char *base) {
  int rc = u->io->mkdir(u->io, parent, base, 0700);
  if (rc != -EEXIST) return rc;
  int fd = u->io->open(u->io, parent, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
  if (fd >= 0) u->io->close(u->io, fd);
  return fd < 0 ? -EEXIST : 0;
}

/* Opens a directory, and makes its missing parts, one component after the other. */
static int need_dir(const unpacking *u, const char *name) {
  char part[FS_PATH_MAX];
  int fd = open_dir(u, name);
  if (fd != -ENOENT) return fd;
  snprintf(part, sizeof part, "%s", name);
  char *slash = strrchr(part, '/');
  const char *base = slash ? slash + 1 : part;
  if (slash) *slash = 0;
  int parent = need_dir(u, slash ? part : "");
  if (parent < 0) return parent;
  int rc = make_dir_at(u, parent, base);
  u->io->close(u->io, parent);
  return rc < 0 ? rc : open_dir(u, name);
}

/* Opens the directory in which the entry at hand belongs, into u->open, and gives its name
 * there. */
static int enter(unpacking *u, const char **base, err *e) {
  char parent[FS_PATH_MAX] = "";
  const char *slash = strrchr(u->name, '/');
  if (slash) memcpy(parent, u->name, (size_t)(slash - u->name)), parent[slash - u->name] = 0;
  *base = slash ? slash + 1 : u->name;
  if (u->open >= 0 && strcmp(parent, u->parent) == 0) return 0;
  forget_parent(u);
  int fd = need_dir(u, parent);
  if (fd < 0) return refuse_sys(u, fd, e);
  u->open = fd;
  memcpy(u->parent, parent, strlen(parent) + 1);
  return 0;
}

static int set_later(unpacking *u, err *e) {
  u->names += strlen(u->name) + 1;
  if (u->names > names_max) return refuse(u, ERR_LIMIT, "there are too many directories", e);
  char *name = VEC_ROOM(u->dirs, u->dir_count, u->dir_room) ? strdup(u->name) : NULL;
  if (!name) return err_set(e, ERR_NOMEM, "no memory to unpack %s", u->o->file);
  u->dirs[u->dir_count++] = (later){name, u->head.mode, u->head.mtime_ns};
  return 0;
}

static int take_dir(unpacking *u, err *e) {
  const char *base;
  if (!*u->name) return set_later(u, e); /* the root itself: "./" */
  int rc = enter(u, &base, e);
  if (rc < 0) return rc;
  rc = make_dir_at(u, u->open, base);
  return rc < 0 ? refuse_sys(u, rc, e) : set_later(u, e);
}

/* ---- files and links ---- */

static struct timespec time_of(int64_t ns) {
  int64_t s = ns / 1000000000, rest = ns % 1000000000;
  if (rest < 0) s--, rest += 1000000000;
  return (struct timespec){.tv_sec = (time_t)s, .tv_nsec = (long)rest};
}

/* The file is open for appending: where there is a hole, its end is moved to the next piece. */
static int take_piece(unpacking *u, int fd, uint64_t *at, bundle_piece piece, err *e) {
  if (piece.at < *at || piece.at > u->head.size || piece.len > u->head.size - piece.at)
    return refuse(u, ERR_FORMAT, "it has more bytes than it says", e);
  int rc = piece.at > *at ? u->io->ftruncate(u->io, fd, (off_t)piece.at) : 0;
  if (rc < 0) return refuse_sys(u, rc, e);
  for (uint64_t left = piece.len; left > 0;) {
    size_t n = left < PIECE ? (size_t)left : PIECE;
    rc = archive_pipe_need(u->pipe, u->piece, n, e);
    if (rc == 0) rc = fs_write_all(u->io, fd, u->piece, n, u->name, e);
    if (rc < 0) return rc;
    left -= n;
  }
  *at = piece.at + piece.len;
  return 0;
}

static int take_bytes(unpacking *u, int fd, err *e) {
  unsigned char bytes[BUNDLE_PIECE];
  uint64_t at = 0;
  bundle_piece piece;
  int rc;
  do {
    rc = archive_pipe_need(u->pipe, bytes, sizeof bytes, e);
    if (rc < 0) return rc;
    piece = bundle_get_piece(bytes);
    rc = take_piece(u, fd, &at, piece, e);
  } while (rc == 0 && piece.len > 0);
  if (rc == 0 && at != u->head.size)
    rc = refuse(u, ERR_FORMAT, "it has fewer bytes than it says", e);
  return rc;
}

static int finish_file(unpacking *u, int fd, const char *base, err *e) {
  const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, time_of(u->head.mtime_ns)};
  int rc = u->io->chmod(u->io, fd, u->head.mode & 0777);
  if (rc == 0) rc = u->io->utimens(u->io, u->open, base, times, AT_SYMLINK_NOFOLLOW);
  return rc < 0 ? refuse_sys(u, rc, e) : 0;
}

static int take_file(unpacking *u, err *e) {
  const char *base;
  if (u->head.size > u->bytes_max - u->bytes)
    return refuse(u, ERR_LIMIT, "the archive is over the limit of its bytes", e);
  u->bytes += u->head.size;
  int rc = enter(u, &base, e);
  if (rc < 0) return rc;
  int fd =
      u->io->open(u->io, u->open, base, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return refuse_sys(u, fd, e);
  rc = take_bytes(u, fd, e);
  if (rc == 0) rc = finish_file(u, fd, base, e);
  int closed = u->io->close(u->io, fd);
  return rc == 0 && closed < 0 ? refuse_sys(u, closed, e) : rc;
}

static int take_link(unpacking *u, err *e) {
  const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, time_of(u->head.mtime_ns)};
  const char *base;
  err why = {0};
  int rc = fs_beneath_check_link(u->name, u->target, &why);
  if (rc < 0) return refuse(u, rc, why.text, e);
  rc = enter(u, &base, e);
  if (rc < 0) return rc;
  rc = u->io->symlink(u->io, u->target, u->open, base);
  if (rc == 0) rc = u->io->utimens(u->io, u->open, base, times, AT_SYMLINK_NOFOLLOW);
  return rc < 0 ? refuse_sys(u, rc, e) : 0;
}

/* ---- entries ---- */

static int take_text(unpacking *u, char *to, size_t len, err *e) {
  int rc = archive_pipe_need(u->pipe, to, len, e);
  to[rc == 0 ? len : 0] = 0;
  if (rc == 0 && memchr(to, 0, len)) rc = refuse(u, ERR_FORMAT, "its name has a NUL in it", e);
  return rc;
}

/* Turns "./a/", as archives write it, into "a". Each name that is left has one spelling. */
static int judge_name(unpacking *u, err *e) {
  err why = {0};
  char *at = u->name;
  while (at[0] == '.' && at[1] == '/')
    for (at++; *at == '/'; at++) continue;
  if (strcmp(at, ".") == 0) at++;
  if (at != u->name && *at == 0 && u->head.kind == BUNDLE_DIR) {
    *u->name = 0;
    return 0;
  }
  size_t len = strlen(at);
  if (u->head.kind == BUNDLE_DIR && len > 1 && at[len - 1] == '/') at[--len] = 0;
  int rc = fs_beneath_check(at, &why);
  if (rc < 0) return refuse(u, rc, why.text, e);
  memmove(u->name, at, len + 1);
  return 0;
}

/* Takes an entry. Returns 1 if there may be another one. */
static int take_entry(unpacking *u, err *e) {
  unsigned char bytes[BUNDLE_HEAD];
  int rc = archive_pipe_need(u->pipe, bytes, sizeof bytes, e);
  if (rc == 0) rc = bundle_get_head(bytes, &u->head, e);
  if (rc < 0 || u->head.kind == BUNDLE_END) return rc;
  *u->name = 0;
  rc = take_text(u, u->name, u->head.name, e);
  if (rc == 0) rc = take_text(u, u->target, u->head.target, e);
  if (rc == 0 && ++u->entries > u->entries_max)
    rc = refuse(u, ERR_LIMIT, "the archive has more entries than the limit", e);
  if (rc == 0) rc = judge_name(u, e);
  if (rc < 0) return rc;
  if (u->head.kind == BUNDLE_DIR)
    rc = take_dir(u, e);
  else
    rc = u->head.kind == BUNDLE_FILE ? take_file(u, e) : take_link(u, e);
  return rc < 0 ? rc : 1;
}

static ssize_t feed(void *ctx, void *to, size_t room, err *e) {
  const unpacking *u = ctx;
  ssize_t n = fs_fill(u->io, u->in, to, room);
  return n < 0 ? err_sys(e, (int)n, "cannot read %s", u->o->file) : n;
}

static int take_all(unpacking *u, err *e) {
  char ratio[16];
  unsigned char more;
  snprintf(ratio, sizeof ratio, "%d", u->o->bytes_max ? 0 : RATIO_MAX);
  const archive_pipe_options options = {.io = u->io,
                                        .libexec = u->o->libexec,
                                        .verb = "unpack",
                                        .argument = ratio,
                                        .what = u->o->file,
                                        .feed = feed,
                                        .ctx = u};
  int rc = archive_pipe_open(&options, &u->pipe, e);
  if (rc < 0) return rc;
  do rc = take_entry(u, e);
  while (rc == 1);
  ssize_t n = rc == 0 ? archive_pipe_take(u->pipe, &more, 1, e) : 0;
  if (n < 0) rc = (int)n;
  if (n > 0) rc = err_set(e, ERR_FORMAT, "%s: something stands behind its end", u->o->file);
  return rc;
}

/* ---- the whole ---- */

/* Goes deepest first, so that a mode that lets nobody in does not keep us out. */
static int settle_dirs(unpacking *u, err *e) {
  int rc = 0;
  for (size_t i = u->dir_count; rc == 0 && i-- > 0;) {
    const later *d = &u->dirs[i];
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, time_of(d->mtime_ns)};
    memcpy(u->name, d->name, strlen(d->name) + 1);
    int fd = open_dir(u, d->name);
    rc = fd;
    if (fd < 0) return refuse_sys(u, rc, e);
    rc = u->io->utimens(u->io, fd, ".", times, 0);
    if (rc == 0) rc = u->io->chmod(u->io, fd, d->mode & 0777);
    u->io->close(u->io, fd);
    if (rc < 0) rc = refuse_sys(u, rc, e);
  }
  return rc;
}

static int order(const void *x, const void *y) {
  return strcmp(((const later *)x)->name, ((const later *)y)->name);
}

static int count_one(void *ctx, const fs_entry *entry, err *e) {
  (void)entry, (void)e;
  *(bool *)ctx = true;
  return FS_SKIP;
}

/* Returns 1 if the directory is there, and empty. */
static int look_at_target(const unpack_options *o, err *e) {
  struct stat st;
  bool filled = false;
  int rc = o->io->lstat(o->io, AT_FDCWD, o->dir, &st);
  if (rc == -ENOENT) return 0;
  if (rc < 0) return err_sys(e, rc, "cannot look at %s", o->dir);
  rc = S_ISDIR(st.st_mode) ? fs_list(o->io, o->dir, count_one, &filled, e) : 0;
  if (rc < 0) return rc;
  if (S_ISDIR(st.st_mode) && !filled) return 1;
  return err_set(e, ERR_EXISTS,
                 "%s exists already, and nothing is replaced: move it away, or unpack elsewhere",
                 o->dir);
}

static int begin(unpacking *u, err *e) {
  char parent[FS_PATH_MAX], nonce[33], begins[256], name[300];
  fs_parent(u->o->dir, parent);
  int rc = fs_check_way(u->o->io, parent, e);
  if (rc == 0) rc = fs_mkdirs(u->io, parent, 0777, e);
  if (rc == 0) rc = fs_hold(u->where, parent, e);
  if (rc < 0) return rc;
  rc = io_nonce(u->io, nonce);
  if (rc < 0) return err_sys(e, rc, "cannot unpack %s: random numbers", u->o->file);
  if (snprintf(begins, sizeof begins, ".%.200s.", fs_base(u->o->dir)) >= (int)sizeof begins ||
      snprintf(name, sizeof name, "%s%s.unpack", begins, nonce) >= (int)sizeof name)
    return err_set(e, ERR_LIMIT, "%s: the name is too long", u->o->dir);
  leftover_remove(u->io, parent, begins, ".unpack");
  rc = fs_join(u->staging, parent, name, e);
  if (rc < 0) return rc;
  rc = fs_hold_new(u->where, u->staging, e);
  if (rc < 0) {
    *u->staging = 0;
    return rc;
  }
  int fd = open_dir(u, "");
  if (fd >= 0) lock_take_open_dir(fd, u->staging, &u->held, NULL); /* no locks: leftovers stay */
  u->root = open_dir(u, "");
  return u->root < 0 ? err_sys(e, u->root, "cannot open %s", u->staging) : 0;
}

/* Flushes everything at once: a flush for each of many small files takes longer than all else. */
static int flush(unpacking *u, err *e) {
  int rc = u->io->syncfs(u->io, u->root);
  return rc < 0 ? err_sys(e, rc, "cannot flush the file system of %s", u->staging) : 0;
}

static int publish(unpacking *u, bool empty, err *e) {
  int rc = 0;
  if (empty) rc = u->io->unlink(u->io, AT_FDCWD, u->o->dir, AT_REMOVEDIR);
  if (rc < 0) return err_sys(e, rc, "cannot put anything in the place of %s", u->o->dir);
  return fs_publish(u->io, u->staging, u->o->dir, e);
}

static int unpack_all(unpacking *u, bool empty, err *e) {
  int rc = begin(u, e);
  if (rc == 0) rc = take_all(u, e);
  forget_parent(u);
  if (rc == 0 && u->dir_count) qsort(u->dirs, u->dir_count, sizeof *u->dirs, order);
  if (rc == 0) rc = settle_dirs(u, e);
  if (rc == 0) rc = flush(u, e);
  if (rc == 0) rc = publish(u, empty, e);
  if (rc < 0 && *u->staging) fs_discard(u->io, u->staging, e);
  return rc;
}

static bool is_stdin(const unpack_options *o) {
  return strcmp(o->file, "-") == 0;
}

/* The archive is opened without waiting: a FIFO that nobody writes to, or a terminal, would never
 * answer. */
static int open_archive(unpacking *u, err *e) {
  const char *file = u->o->file;
  struct stat st;
  u->in = STDIN_FILENO;
  if (is_stdin(u->o)) return 0;
  u->in = u->io->open(u->io, AT_FDCWD, file, O_RDONLY | O_NONBLOCK, 0);
  if (u->in < 0) return err_sys(e, u->in, "cannot open %s", file);
  int rc = u->io->fstat(u->io, u->in, &st);
  if (rc < 0) return err_sys(e, rc, "cannot look at %s", file);
  return S_ISREG(st.st_mode) ? 0
                             : err_set(e, ERR_INVAL,
                                       "%s is not a regular file; what comes through a pipe is "
                                       "read from standard input: unpack -",
                                       file);
}

int unpack_archive(const unpack_options *o, err *e) {
  int empty = look_at_target(o, e);
  if (empty < 0) return empty;
  unpacking *u = calloc(1, sizeof *u);
  if (!u) return err_set(e, ERR_NOMEM, "no memory to unpack %s", o->file);
  u->o = o;
  u->io = o->io; /* until the directory is held */
  u->root = u->open = u->held.fd = -1;
  u->entries_max = o->entries_max ? o->entries_max : default_entries;
  u->bytes_max = o->bytes_max ? o->bytes_max : default_bytes;
  int rc = open_archive(u, e);
  if (rc == 0) rc = fs_held_new(o->io, &u->where, e);
  if (rc == 0) {
    u->io = fs_held_io(u->where);
    rc = unpack_all(u, empty, e);
  }
  archive_pipe_close(u->pipe);
  if (u->in >= 0 && !is_stdin(o)) o->io->close(o->io, u->in);
  lock_drop(&u->held);
  if (u->root >= 0) o->io->close(o->io, u->root);
  fs_held_free(u->where);
  for (size_t i = 0; i < u->dir_count; i++) free(u->dirs[i].name);
  free(u->dirs);
  free(u);
  return rc;
}
