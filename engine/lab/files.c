#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

typedef struct file file;
struct file {
  char *name, *target;
  file *parent, **at; /* those below it, by their names */
  size_t count, room;
  mode_t mode;
  uint64_t ino, size;
  int64_t mtime, ctime;
  bool whole;
};

typedef struct handle {
  const file *of; /* NULL: it is free */
  size_t listed;
} handle;

enum { HANDLES = 64 };

struct files {
  io io;
  file *root;
  uint64_t made;
  int64_t mono, wall;
  handle handles[HANDLES];
};

static int no_memory(const char *path, err *e) {
  return err_set(e, ERR_NOMEM, "%s: out of memory", path);
}

/* ---- the tree ---- */

/* A part of a path, which need not end there. */
typedef struct part {
  const char *text;
  size_t len;
} part;

static int by_name(const void *key, const void *item) {
  const part *p = key;
  const char *name = (*(const file *const *)item)->name;
  int order = strncmp(p->text, name, p->len);
  return order ? order : name[p->len] ? -1 : 0;
}

static size_t place(const file *dir, part name, bool *there) {
  return vec_place(&name, (const void *)dir->at, dir->count, sizeof(file *), by_name, there);
}

static file *child(const file *dir, part name) {
  bool there;
  size_t i = place(dir, name, &there);
  return there && dir->at ? dir->at[i] : NULL;
}

static part next_part(const char **path) {
  while (**path == '/') ++*path;
  const part p = {*path, strcspn(*path, "/")};
  *path += p.len;
  return p;
}

static file *find(const file *from, const char *path) {
  const file *at = from;
  for (part p; at && (p = next_part(&path)).len > 0;)
    if (!(p.len == 1 && *p.text == '.')) at = child(at, p);
  return (file *)at;
}

static void destroy(file *i) {
  for (size_t k = 0; k < i->count; k++) destroy(i->at[k]);
  free((void *)i->at);
  free(i->name);
  free(i->target);
  free(i);
}

static void stamp(const files *f, file *i) {
  i->mtime = i->ctime = f->wall;
}

/* Puts it below a directory in which nothing has its name. */
static bool hook(const files *f, file *dir, file *i) {
  const size_t at = place(dir, (part){i->name, strlen(i->name)}, NULL);
  if (!vec_grow((void *)&dir->at, dir->count, &dir->room, sizeof(file *))) return false;
  memmove((void *)&dir->at[at + 1], (void *)&dir->at[at], (dir->count - at) * sizeof(file *));
  dir->at[at] = i;
  dir->count++;
  i->parent = dir;
  stamp(f, dir);
  return true;
}

static void unhook(const files *f, file *i) {
  file *dir = i->parent;
  const size_t at = place(dir, (part){i->name, strlen(i->name)}, NULL);
  dir->count--;
  memmove((void *)&dir->at[at], (void *)&dir->at[at + 1], (dir->count - at) * sizeof(file *));
  stamp(f, dir);
}

static file *make(files *f, file *dir, part name, mode_t mode) {
  file *i = calloc(1, sizeof *i);
  if (!i) return NULL;
  *i = (file){.name = strndup(name.text, name.len), .mode = mode, .ino = ++f->made};
  stamp(f, i);
  if (i->name && (!dir || hook(f, dir, i))) return i;
  destroy(i);
  return NULL;
}

/* Makes the directories above the last name of a path; returns the one in which that is. */
static int above(files *f, const char *path, file **out, part *last, err *e) {
  const char *rest = path;
  file *dir = f->root;
  for (*last = next_part(&rest); *rest; *last = next_part(&rest)) {
    file *next = child(dir, *last);
    if (!next) next = make(f, dir, *last, S_IFDIR | 0755);
    if (!next) return no_memory(path, e);
    if (!S_ISDIR(next->mode))
      return err_set(e, ERR_INVAL, "%s: what is above it is no directory", path);
    dir = next;
  }
  *out = dir;
  return 0;
}

static int make_at(files *f, const char *path, mode_t mode, file **out, err *e) {
  part name;
  file *dir;
  int rc = above(f, path, &dir, &name, e);
  if (rc < 0) return rc;
  *out = child(dir, name);
  if (!*out) *out = make(f, dir, name, mode);
  if (!*out) return no_memory(path, e);
  if (((*out)->mode & S_IFMT) == (mode & S_IFMT)) return 0;
  return err_set(e, ERR_INVAL, "%s: it is there, and is no %s", path,
                 S_ISDIR(mode) ? "directory" : "file");
}

int files_make_dir(files *f, const char *path, err *e) {
  file *i;
  return make_at(f, path, S_IFDIR | 0755, &i, e);
}

int files_write(files *f, const char *path, uint64_t size, bool whole, err *e) {
  file *i;
  int rc = make_at(f, path, S_IFREG | 0644, &i, e);
  if (rc < 0) return rc;
  i->size = size;
  i->whole = whole;
  stamp(f, i);
  return 0;
}

void files_close(files *f, const char *path) {
  file *i = find(f->root, path);
  if (i) i->whole = true;
}

int files_link(files *f, const char *path, const char *target, err *e) {
  file *i;
  files_remove(f, path);
  int rc = make_at(f, path, S_IFLNK | 0777, &i, e);
  if (rc < 0) return rc;
  i->target = strdup(target);
  i->size = strlen(target);
  return i->target ? 0 : no_memory(path, e);
}

static bool is_within(const file *i, const file *dir) {
  while (i && i != dir) i = i->parent;
  return i != NULL;
}

int files_rename(files *f, const char *from, const char *to, err *e) {
  part name;
  file *i = find(f->root, from), *dir;
  int rc = i ? above(f, to, &dir, &name, e) : err_set(e, ERR_INVAL, "%s: it is not there", from);
  if (rc < 0) return rc;
  file *old = child(dir, name);
  if (old == i) return 0;
  if (i == f->root || is_within(dir, i) || (old && is_within(i, old)))
    return err_set(e, ERR_INVAL, "%s: it cannot be moved into itself", from);
  char *called = strndup(name.text, name.len);
  if (!called) return no_memory(to, e);
  if (old) files_remove(f, to);
  unhook(f, i);
  free(i->name);
  i->name = called;
  i->ctime = f->wall;
  if (hook(f, dir, i)) return 0;
  destroy(i);
  return no_memory(to, e);
}

void files_remove(files *f, const char *path) {
  file *i = find(f->root, path);
  if (!i || i == f->root) return;
  unhook(f, i);
  destroy(i);
}

bool files_has(const files *f, const char *path) {
  return find(f->root, path) != NULL;
}

uint64_t files_size(const files *f, const char *path) {
  const file *i = find(f->root, path);
  return i ? i->size : 0;
}

/* ---- bytes that are made up ---- */

static bool ends_in(const char *name, const char *const *endings) {
  for (; *endings; endings++) {
    size_t n = strlen(name), m = strlen(*endings);
    if (n >= m && strcmp(name + n - m, *endings) == 0) return true;
  }
  return false;
}

static void little_endian(unsigned char *to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> (8 * i));
}

/* Two pieces of a file whose other bytes prove nothing. */
typedef struct content {
  unsigned char head[128], tail[22], other;
  size_t head_len, tail_len;
} content;

static void make_zip(const file *i, content *c) {
  if (i->size < 26) return;
  memcpy(c->head, "PK\3\4", c->head_len = 4);
  if (!i->whole) return;
  memcpy(c->tail, "PK\5\6", 4);
  little_endian(c->tail + 16, i->size - 22, 4);
  c->tail_len = sizeof c->tail;
}

static void make_hdf5(const file *i, content *c) {
  if (i->size < 2048) return;
  memcpy(c->head, "\x89HDF\r\n\x1a\n", 8);
  c->head[13] = 8;
  little_endian(c->head + 40, i->whole ? i->size : 2 * i->size, 8);
  c->head_len = 48;
}

static void make_safetensors(const file *i, content *c) {
  if (i->size < 120) return;
  memset(c->head, ' ', c->head_len = 120);
  little_endian(c->head, 112, 8);
  int n = snprintf((char *)c->head + 8, 112, "{\"t\":{\"data_offsets\":[0,%" PRIu64 "]}}",
                   i->size - 120);
  c->head[8 + n] = ' ';
}

static content content_of(const file *i) {
  static const char *const zip[] = {".pt", ".pth", ".ckpt", ".keras", ".npz", NULL};
  static const char *const hdf5[] = {".h5", ".hdf5", NULL};
  static const char *const safetensors[] = {".safetensors", NULL}, *const json[] = {".json", NULL};
  content c = {.other = 'x'};
  if (ends_in(i->name, zip)) make_zip(i, &c);
  if (ends_in(i->name, hdf5)) make_hdf5(i, &c);
  if (ends_in(i->name, safetensors)) make_safetensors(i, &c);
  if (!ends_in(i->name, json)) return c;
  c.other = ' ';
  c.head[0] = '{';
  c.tail[0] = '}';
  c.head_len = 1;
  c.tail_len = i->size > 1;
  return c;
}

static unsigned char byte_at(const file *i, const content *c, uint64_t at) {
  if (at < c->head_len) return c->head[at];
  const uint64_t tail = i->size - c->tail_len;
  return at >= tail ? c->tail[at - tail] : c->other;
}

/* ---- what reads it ---- */

static files *self(const io *io) {
  return io->ctx;
}

static handle *held(const io *io, int fd) {
  files *f = self(io);
  return fd >= 0 && fd < HANDLES && f->handles[fd].of ? &f->handles[fd] : NULL;
}

static const file *resolve(const io *io, int dirfd, const char *path) {
  const size_t len = strlen(FILES_ROOT);
  if (*path != '/') {
    const handle *h = held(io, dirfd);
    return h ? find(h->of, path) : NULL;
  }
  if (strncmp(path, FILES_ROOT, len) != 0 || (path[len] && path[len] != '/')) return NULL;
  return find(self(io)->root, path + len);
}

static int tree_open(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  files *f = self(io);
  const file *i = resolve(io, dirfd, path);
  (void)mode;
  if (!i) return -ENOENT;
  if (flags & (O_CREAT | O_WRONLY | O_RDWR)) return -EROFS;
  if (S_ISLNK(i->mode)) return flags & O_DIRECTORY ? -ENOTDIR : -ELOOP;
  if ((flags & O_DIRECTORY) && !S_ISDIR(i->mode)) return -ENOTDIR;
  for (int fd = 0; fd < HANDLES; fd++) {
    if (f->handles[fd].of) continue;
    f->handles[fd] = (handle){.of = i};
    return fd;
  }
  return -EMFILE;
}

static int tree_close(const io *io, int fd) {
  handle *h = held(io, fd);
  if (!h) return -EBADF;
  h->of = NULL;
  return 0;
}

static ssize_t tree_pread(const io *io, int fd, void *to, size_t len, off_t at) {
  const handle *h = held(io, fd);
  unsigned char *out = to;
  size_t n = 0;
  if (!h) return -EBADF;
  if (!S_ISREG(h->of->mode)) return -EISDIR;
  const content c = content_of(h->of);
  for (; n < len && (uint64_t)at + n < h->of->size; n++)
    out[n] = byte_at(h->of, &c, (uint64_t)at + n);
  return (ssize_t)n;
}

static int fill(const file *i, struct stat *st) {
  const int64_t second = 1000000000;
  *st = (struct stat){.st_dev = 1,
                      .st_ino = i->ino,
                      .st_mode = i->mode,
                      .st_nlink = 1,
                      .st_size = (off_t)i->size,
                      .st_blocks = (blkcnt_t)(i->size / 512 + 1),
                      .st_mtim = {i->mtime / second, i->mtime % second},
                      .st_ctim = {i->ctime / second, i->ctime % second}};
  return 0;
}

static int tree_fstat(const io *io, int fd, struct stat *out) {
  const handle *h = held(io, fd);
  return h ? fill(h->of, out) : -EBADF;
}

static int tree_lstat(const io *io, int dirfd, const char *path, struct stat *out) {
  const file *i = resolve(io, dirfd, path);
  return i ? fill(i, out) : -ENOENT;
}

static ssize_t tree_readlink(const io *io, int dirfd, const char *path, char *to, size_t len) {
  const file *i = resolve(io, dirfd, path);
  if (!i) return -ENOENT;
  if (!i->target) return -EINVAL;
  const size_t n = i->size < len ? i->size : len;
  memcpy(to, i->target, n);
  return (ssize_t)n;
}

static ssize_t tree_getdents(const io *io, int fd, void *to, size_t len) {
  handle *h = held(io, fd);
  size_t at = 0;
  if (!h) return -EBADF;
  for (; h->listed < h->of->count; h->listed++) {
    const file *i = h->of->at[h->listed];
    const size_t name = strlen(i->name) + 1;
    const size_t need = (offsetof(struct dirent64, d_name) + name + 7) / 8 * 8;
    if (at + need > len) break;
    struct dirent64 *d = (void *)((char *)to + at);
    memset(d, 0, need);
    d->d_ino = i->ino;
    d->d_reclen = (unsigned short)need;
    d->d_type = S_ISDIR(i->mode) ? DT_DIR : S_ISLNK(i->mode) ? DT_LNK : DT_REG;
    memcpy(d->d_name, i->name, name);
    at += need;
  }
  return (ssize_t)at;
}

static int64_t tree_now(const io *io, io_clock clock) {
  const files *f = self(io);
  return clock == IO_WALL ? f->wall : f->mono;
}

void files_clock(files *f, int64_t mono_ns, int64_t wall_ns) {
  f->mono = mono_ns;
  f->wall = wall_ns;
}

files *files_new(void) {
  files *f = calloc(1, sizeof *f);
  if (!f) return NULL;
  /* What writes is NULL: the detector writes nothing, and what would is to be seen at once. */
  f->io = (io){.ctx = f,
               .open = tree_open,
               .close = tree_close,
               .pread = tree_pread,
               .fstat = tree_fstat,
               .lstat = tree_lstat,
               .readlink = tree_readlink,
               .getdents = tree_getdents,
               .now = tree_now};
  f->root = make(f, NULL, (part){"", 0}, S_IFDIR | 0755);
  if (f->root) return f;
  free(f);
  return NULL;
}

const io *files_io(const files *f) {
  return &f->io;
}

void files_free(files *f) {
  if (!f) return;
  destroy(f->root);
  free(f);
}
