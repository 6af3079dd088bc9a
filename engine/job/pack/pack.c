#include "pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/uri.h"
#include "base/vec.h"
#include "job/pack/archive_pipe.h"
#include "job/pack/leftover.h"
#include "prims/fs.h"
#include "prims/lock.h"

enum { NAMES_MAX = 4 << 20, PIECE = 256 << 10 };

typedef struct item {
  char *name; /* "" is the directory itself */
  bundle_kind kind;
  mode_t mode;
  int64_t mtime_ns;
  uint64_t size;
} item;

/* The stream of entries is made as the helper asks for it: the next entry, and a piece of bytes
 * that waits to be handed over. */
typedef struct packing {
  const pack_options *o;
  const io *io;
  item *items;
  size_t count, room, next;
  int fd;             /* of the file that is being read; -1: none */
  uint64_t at;        /* in it */
  struct stat before; /* of it */
  bool ended;
  buf waiting;
  size_t sent; /* of the bytes that wait */
  char tmp[FS_PATH_MAX];
  unsigned char piece[PIECE], out[PIECE];
} packing;

/* ---- the list ---- */

static int add(packing *p, const char *name, const struct stat *st, bundle_kind kind, err *e) {
  if (p->count == NAMES_MAX)
    return err_set(e, ERR_LIMIT, "%s has more than %d names", p->o->dir, NAMES_MAX);
  char *copy = VEC_ROOM(p->items, p->count, p->room) ? strdup(name) : NULL;
  if (!copy) return err_set(e, ERR_NOMEM, "no memory to pack %s", p->o->dir);
  p->items[p->count++] = (item){.name = copy,
                                .kind = kind,
                                .mode = st->st_mode & 0777,
                                .mtime_ns = io_time_ns(st->st_mtim),
                                .size = kind == BUNDLE_FILE ? (uint64_t)st->st_size : 0};
  return 0;
}

static int take_name(void *ctx, const fs_entry *entry, err *e) {
  packing *p = ctx;
  const struct stat *st = entry->st;
  int rc = fs_beneath_check(entry->name, e);
  if (rc < 0) return err_wrap(e, "%s/%s", p->o->dir, entry->name);
  if (S_ISDIR(st->st_mode)) return add(p, entry->name, st, BUNDLE_DIR, e);
  if (S_ISREG(st->st_mode)) return add(p, entry->name, st, BUNDLE_FILE, e);
  if (S_ISLNK(st->st_mode)) return add(p, entry->name, st, BUNDLE_LINK, e);
  return err_set(e, ERR_INVAL, "%s/%s is no file, no directory and no link", p->o->dir,
                 entry->name);
}

/* Lists in the order of a walk: directories before their content. */
static int list(packing *p, err *e) {
  struct stat st;
  int rc = p->io->lstat(p->io, AT_FDCWD, p->o->dir, &st);
  if (rc < 0) return err_sys(e, rc, "cannot pack %s", p->o->dir);
  if (!S_ISDIR(st.st_mode)) return err_set(e, ERR_INVAL, "%s is no directory", p->o->dir);
  rc = add(p, "", &st, BUNDLE_DIR, e);
  return rc < 0 ? rc : fs_walk(p->io, p->o->dir, take_name, p, e);
}

/* ---- the entries ---- */

static int changed(const packing *p, const item *i, err *e) {
  return err_set(e, ERR_RETIRED, "%s/%s changed while it was packed", p->o->dir, i->name);
}

static int path_of(const packing *p, const item *i, char out[FS_PATH_MAX], err *e) {
  return fs_join(out, p->o->dir, i->name, e);
}

static int read_target(const packing *p, const item *i, char out[FS_PATH_MAX], err *e) {
  char path[FS_PATH_MAX];
  int rc = path_of(p, i, path, e);
  if (rc < 0) return rc;
  ssize_t n = p->io->readlink(p->io, AT_FDCWD, path, out, FS_PATH_MAX - 1);
  if (n == -ENOENT || n == -EINVAL) return changed(p, i, e);
  if (n < 0) return err_sys(e, (int)n, "cannot read the link %s", path);
  out[n] = 0;
  rc = fs_beneath_check_link(i->name, out, e);
  return rc < 0 ? err_wrap(e, "%s, which no archive of ours has in it", path) : 0;
}

static bool is_same(const struct stat *a, const struct stat *b) {
  return a->st_size == b->st_size && a->st_ino == b->st_ino &&
         io_time_ns(a->st_mtim) == io_time_ns(b->st_mtim);
}

static int open_file(packing *p, const item *i, err *e) {
  char path[FS_PATH_MAX];
  int rc = path_of(p, i, path, e);
  if (rc < 0) return rc;
  p->at = 0;
  p->fd = p->io->open(p->io, AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  if (p->fd == -ENOENT || p->fd == -ELOOP) return changed(p, i, e);
  if (p->fd < 0) return err_sys(e, p->fd, "cannot open %s", path);
  rc = p->io->fstat(p->io, p->fd, &p->before);
  if (rc < 0) return err_sys(e, rc, "cannot look at %s", path);
  bool same = S_ISREG(p->before.st_mode) && (uint64_t)p->before.st_size == i->size &&
              io_time_ns(p->before.st_mtim) == i->mtime_ns;
  return same ? 0 : changed(p, i, e);
}

static void put_piece(packing *p, size_t len) {
  unsigned char head[BUNDLE_PIECE];
  bundle_put_piece(head, (bundle_piece){.at = p->at, .len = (uint32_t)len});
  buf_add(&p->waiting, head, sizeof head);
  buf_add(&p->waiting, p->piece, len);
  p->at += len;
}

/* Hands over the next piece of the open file, or its end. */
static int go_on(packing *p, err *e) {
  const item *i = &p->items[p->next - 1];
  struct stat after;
  if (p->at < i->size) {
    size_t most = i->size - p->at < PIECE ? (size_t)(i->size - p->at) : PIECE;
    ssize_t n = fs_fill(p->io, p->fd, p->piece, most);
    if (n < 0) return err_sys(e, (int)n, "cannot read %s/%s", p->o->dir, i->name);
    if ((size_t)n < most) return changed(p, i, e);
    put_piece(p, (size_t)n);
    return 0;
  }
  int rc = p->io->fstat(p->io, p->fd, &after);
  p->io->close(p->io, p->fd);
  p->fd = -1;
  if (rc < 0) return err_sys(e, rc, "cannot look at %s/%s", p->o->dir, i->name);
  if (!is_same(&p->before, &after)) return changed(p, i, e);
  put_piece(p, 0);
  return 0;
}

static int begin_next(packing *p, err *e) {
  unsigned char bytes[BUNDLE_HEAD];
  char target[FS_PATH_MAX] = "";
  bundle_head head = {.kind = BUNDLE_END};
  if (p->next == p->count) {
    p->ended = true;
    bundle_put_head(bytes, &head);
    buf_add(&p->waiting, bytes, sizeof bytes);
    return 0;
  }
  const item *i = &p->items[p->next++];
  int rc = i->kind == BUNDLE_LINK   ? read_target(p, i, target, e)
           : i->kind == BUNDLE_FILE ? open_file(p, i, e)
                                    : 0;
  if (rc < 0) return rc;
  const char *name = *i->name ? i->name : "./";
  head = (bundle_head){.kind = i->kind,
                       .mode = i->mode,
                       .mtime_ns = i->mtime_ns,
                       .size = i->size,
                       .name = (uint32_t)strlen(name),
                       .target = (uint32_t)strlen(target)};
  bundle_put_head(bytes, &head);
  buf_add(&p->waiting, bytes, sizeof bytes);
  buf_str(&p->waiting, name);
  buf_str(&p->waiting, target);
  return 0;
}

static ssize_t feed(void *ctx, void *to, size_t room, err *e) {
  packing *p = ctx;
  size_t done = 0;
  while (done < room) {
    if (p->sent == p->waiting.len) {
      if (p->ended) break;
      buf_clear(&p->waiting);
      p->sent = 0;
      int rc = p->fd >= 0 ? go_on(p, e) : begin_next(p, e);
      if (rc == 0 && buf_failed(&p->waiting))
        rc = err_set(e, ERR_NOMEM, "no memory to pack %s", p->o->dir);
      if (rc < 0) return rc;
    }
    size_t left = p->waiting.len - p->sent, n = room - done < left ? room - done : left;
    memcpy((char *)to + done, p->waiting.data + p->sent, n);
    p->sent += n;
    done += n;
  }
  return (ssize_t)done;
}

/* ---- the file ---- */

static bool ends_in(const char *name, const char *end) {
  size_t a = strlen(name), b = strlen(end);
  return a > b && strcmp(name + a - b, end) == 0;
}

static const char *filter_of(const char *file) {
  static const char *const known[][2] = {{".tar", "plain"},
                                         {".tar.gz", "gzip"},
                                         {".tgz", "gzip"},
                                         {".tar.zst", "zstd"},
                                         {".tzst", "zstd"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (ends_in(file, known[i][0])) return known[i][1];
  return NULL;
}

static int copy_out(packing *p, archive_pipe *pipe, int fd, err *e) {
  ssize_t n;
  do {
    n = archive_pipe_take(pipe, p->out, PIECE, e);
    if (n < 0) return (int)n;
    int rc = fs_write_all(p->io, fd, p->out, (size_t)n, p->tmp, e);
    if (rc < 0) return rc;
  } while (n == PIECE);
  int rc = p->io->fsync(p->io, fd);
  return rc < 0 ? err_sys(e, rc, "cannot write %s", p->tmp) : 0;
}

/* Removes the leftovers of this archive alone: others in that directory are not our business. */
static void remove_leftovers(const packing *p) {
  char dir[FS_PATH_MAX], begin[FS_PATH_MAX];
  fs_parent(p->o->file, dir);
  if (snprintf(begin, sizeof begin, "%s.", fs_base(p->o->file)) < (int)sizeof begin)
    leftover_remove(p->io, dir, begin, ".tmp");
}

static int write_out(packing *p, archive_pipe *pipe, err *e) {
  lock held = {.fd = -1};
  remove_leftovers(p);
  int fd = p->io->open(p->io, AT_FDCWD, p->tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (fd < 0) return err_sys(e, fd, "cannot make %s", p->tmp);
  lock_take(p->tmp, true, &held, NULL); /* where there are no locks, leftovers stay */
  int rc = copy_out(p, pipe, fd, e);
  int closed = p->io->close(p->io, fd);
  if (rc == 0 && closed < 0) rc = err_sys(e, closed, "cannot write %s", p->tmp);
  if (rc == 0) rc = fs_publish(p->io, p->tmp, p->o->file, e);
  if (rc < 0) fs_discard(p->io, p->tmp, e);
  lock_drop(&held);
  return rc;
}

static int check_places(packing *p, const char **filter, err *e) {
  struct stat st;
  uri dir, file;
  char nonce[33];
  *filter = filter_of(p->o->file);
  if (!*filter)
    return err_set(e, ERR_INVAL,
                   "%s: an archive's name ends in .tar, .tar.gz, .tgz, .tar.zst or .tzst",
                   p->o->file);
  int rc = uri_parse(p->o->dir, &dir, e);
  if (rc == 0) rc = uri_parse(p->o->file, &file, e);
  if (rc < 0) return rc;
  if (fs_within(p->io, dir.path, file.path))
    return err_set(e, ERR_INVAL, "%s lies in %s: it would pack itself", p->o->file, p->o->dir);
  rc = p->io->lstat(p->io, AT_FDCWD, p->o->file, &st);
  if (rc == 0)
    return err_set(e, ERR_EXISTS, "%s exists already, and nothing is replaced", p->o->file);
  if (rc != -ENOENT) return err_sys(e, rc, "cannot look at %s", p->o->file);
  rc = io_nonce(p->io, nonce);
  if (rc < 0) return err_sys(e, rc, "cannot pack %s: random numbers", p->o->dir);
  rc = snprintf(p->tmp, sizeof p->tmp, "%s.%s.tmp", p->o->file, nonce);
  return rc < FS_PATH_MAX ? 0 : err_set(e, ERR_LIMIT, "%s: the name is too long", p->o->file);
}

static int pack_all(packing *p, err *e) {
  archive_pipe *pipe = NULL;
  archive_pipe_options options = {.io = p->io,
                                  .libexec = p->o->libexec,
                                  .verb = "pack",
                                  .what = p->o->file,
                                  .feed = feed,
                                  .ctx = p};
  int rc = check_places(p, &options.argument, e);
  if (rc == 0) rc = list(p, e);
  if (rc == 0) rc = archive_pipe_open(&options, &pipe, e);
  if (rc == 0) rc = write_out(p, pipe, e);
  archive_pipe_close(pipe);
  return rc;
}

int pack_archive(const pack_options *o, err *e) {
  packing *p = calloc(1, sizeof *p);
  if (!p) return err_set(e, ERR_NOMEM, "no memory to pack %s", o->dir);
  p->o = o;
  p->io = o->io;
  p->fd = -1;
  buf_init(&p->waiting, 2 * PIECE);
  int rc = pack_all(p, e);
  if (p->fd >= 0) o->io->close(o->io, p->fd);
  for (size_t i = 0; i < p->count; i++) free(p->items[i].name);
  free(p->items);
  buf_free(&p->waiting);
  free(p);
  return rc;
}
