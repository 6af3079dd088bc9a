#include "io_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct item item;
struct item {
  item *parent, *first, *next;
  char *name, *target;
  mode_t mode;
  uint64_t ino, size;
  int64_t mtime, ctime;
  unsigned char *data;
};

typedef struct handle {
  item *at;
  item *listed; /* the next child to hand out */
  bool used;
} handle;

enum { HANDLES = 128, INODES = 1 << 16 };

struct io_tree {
  io io;
  item *root;
  int64_t mono, wall, grain;
  handle handles[HANDLES];
  unsigned char taken[INODES];
  long calls;
};

static void die(const char *what, const char *path) {
  fprintf(stderr, "io_tree: %s: %s\n", what, path);
  abort();
}

static io_tree *self(const io *io) {
  io_tree *t = io->ctx;
  t->calls++;
  return t;
}

static int64_t stamp(const io_tree *t) {
  return t->wall - t->wall % t->grain;
}

static item *child_of(const item *dir, const char *name, size_t len) {
  for (item *i = dir->first; i; i = i->next)
    if (strlen(i->name) == len && memcmp(i->name, name, len) == 0) return i;
  return NULL;
}

/* Walks from `at`; NULL if a component is missing. */
static item *walk(item *at, const char *path) {
  while (at && *path) {
    size_t len = strcspn(path, "/");
    if (len > 0 && !(len == 1 && *path == '.')) at = child_of(at, path, len);
    path += len + (path[len] == '/');
  }
  return at;
}

static item *parent_of(io_tree *t, const char *path, const char **base) {
  const char *slash = strrchr(path, '/');
  *base = slash ? slash + 1 : path;
  char *dir = strndup(path, slash ? (size_t)(slash - path) : 0);
  item *at = walk(t->root, dir);
  free(dir);
  if (!at || !S_ISDIR(at->mode)) die("no such directory", path);
  return at;
}

/* The lowest number that is free: a number comes back as soon as it can. */
static uint64_t new_ino(io_tree *t) {
  for (uint64_t i = 2; i < INODES; i++)
    if (!t->taken[i]) {
      t->taken[i] = 1;
      return i;
    }
  die("too many files", "");
  return 0;
}

static item *add(io_tree *t, const char *path, mode_t mode) {
  const char *base;
  item *dir = parent_of(t, path, &base);
  item *i = calloc(1, sizeof *i), **end = &dir->first;
  i->name = strdup(base);
  i->mode = mode;
  i->ino = new_ino(t);
  i->parent = dir;
  while (*end) end = &(*end)->next;
  *end = i;
  i->mtime = i->ctime = dir->mtime = dir->ctime = stamp(t);
  return i;
}

static void unhook(io_tree *t, item *i) {
  item **at = &i->parent->first;
  while (*at != i) at = &(*at)->next;
  *at = i->next;
  i->next = NULL;
  i->parent->mtime = i->parent->ctime = stamp(t);
}

static void destroy(io_tree *t, item *i) {
  while (i->first) {
    item *next = i->first->next;
    destroy(t, i->first);
    i->first = next;
  }
  t->taken[i->ino] = 0;
  free(i->name);
  free(i->target);
  free(i->data);
  free(i);
}

static item *must(io_tree *t, const char *path) {
  item *i = walk(t->root, path);
  if (!i) die("no such entry", path);
  return i;
}

/* --- what the test does --- */

void io_tree_clock(io_tree *t, int64_t mono_ns) {
  t->wall += mono_ns - t->mono;
  t->mono = mono_ns;
}

void io_tree_grain(io_tree *t, int64_t grain_ns) {
  t->grain = grain_ns;
}

void io_tree_skew(io_tree *t, int64_t ns) {
  t->wall += ns;
}

void io_tree_mkdir(io_tree *t, const char *path) {
  if (!walk(t->root, path)) add(t, path, S_IFDIR | 0755);
}

void io_tree_write(io_tree *t, const char *path, uint64_t size) {
  item *i = walk(t->root, path);
  if (!i) i = add(t, path, S_IFREG | 0644);
  i->size = size;
  i->mtime = i->ctime = stamp(t);
}

void io_tree_content(io_tree *t, const char *path, const void *data, size_t len) {
  io_tree_write(t, path, len);
  item *i = must(t, path);
  free(i->data);
  i->data = malloc(len + 1);
  memcpy(i->data, data, len);
}

void io_tree_link(io_tree *t, const char *path, const char *target) {
  if (walk(t->root, path)) die("exists", path);
  item *i = add(t, path, S_IFLNK | 0777);
  i->target = strdup(target);
  i->size = strlen(target);
}

void io_tree_rename(io_tree *t, const char *from, const char *to) {
  const char *base;
  item *i = must(t, from), *dir = parent_of(t, to, &base), *old = walk(t->root, to);
  if (old == i) return;
  if (old) {
    unhook(t, old);
    destroy(t, old);
  }
  unhook(t, i);
  free(i->name);
  i->name = strdup(base);
  i->parent = dir;
  item **end = &dir->first;
  while (*end) end = &(*end)->next;
  *end = i;
  i->ctime = dir->mtime = dir->ctime = stamp(t);
}

void io_tree_remove(io_tree *t, const char *path) {
  item *i = must(t, path);
  unhook(t, i);
  destroy(t, i);
}

void io_tree_touch(io_tree *t, const char *path, int64_t mtime_wall_ns) {
  item *i = must(t, path);
  i->mtime = mtime_wall_ns;
  i->ctime = stamp(t);
}

bool io_tree_has(io_tree *t, const char *path) {
  return walk(t->root, path) != NULL;
}

bool io_tree_is_dir(io_tree *t, const char *path) {
  const item *i = walk(t->root, path);
  return i && S_ISDIR(i->mode);
}

long io_tree_calls(io_tree *t) {
  long n = t->calls;
  t->calls = 0;
  return n;
}

/* --- the vtable --- */

static item *resolve(io_tree *t, int dirfd, const char *path) {
  size_t len = strlen(IO_TREE_ROOT);
  if (*path != '/') {
    if (dirfd < 0 || dirfd >= HANDLES || !t->handles[dirfd].used) die("bad directory", path);
    return walk(t->handles[dirfd].at, path);
  }
  if (strncmp(path, IO_TREE_ROOT, len) != 0 || (path[len] && path[len] != '/')) return NULL;
  return walk(t->root, path + len);
}

static int tree_open(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  io_tree *t = self(io);
  item *i = resolve(t, dirfd, path);
  (void)mode;
  if (!i) return -ENOENT;
  if (flags & (O_CREAT | O_WRONLY | O_RDWR)) return -EROFS;
  if (S_ISLNK(i->mode)) return flags & O_DIRECTORY ? -ENOTDIR : -ELOOP;
  if ((flags & O_DIRECTORY) && !S_ISDIR(i->mode)) return -ENOTDIR;
  for (int fd = 0; fd < HANDLES; fd++) {
    if (t->handles[fd].used) continue;
    t->handles[fd] = (handle){.at = i, .listed = i->first, .used = true};
    return fd;
  }
  return -EMFILE;
}

static handle *held(io_tree *t, int fd) {
  if (fd < 0 || fd >= HANDLES || !t->handles[fd].used) die("bad descriptor", "");
  return &t->handles[fd];
}

static int tree_close(const io *io, int fd) {
  held(self(io), fd)->used = false;
  return 0;
}

static bool has_ending(const char *name, const char *ending) {
  size_t n = strlen(name), m = strlen(ending);
  return n >= m && strcmp(name + n - m, ending) == 0;
}

/* The byte at `at` of a file that nobody gave a content. */
static unsigned char made_up(const item *i, uint64_t at) {
  char head[128] = {0};
  if (has_ending(i->name, ".json")) return at == 0 ? '{' : at + 1 == i->size ? '}' : ' ';
  if (!has_ending(i->name, ".safetensors") || i->size < 120) return 'x';
  memset(head, ' ', 120);
  memset(head, 0, 8);
  head[0] = 112;
  int n = snprintf(head + 8, 112, "{\"t\":{\"data_offsets\":[0,%llu]}}",
                   (unsigned long long)(i->size - 120));
  head[8 + n] = ' ';
  return at < 120 ? (unsigned char)head[at] : 'x';
}

static ssize_t tree_pread(const io *io, int fd, void *to, size_t len, off_t at) {
  const item *i = held(self(io), fd)->at;
  unsigned char *out = to;
  size_t n = 0;
  if (!S_ISREG(i->mode)) return -EISDIR;
  for (; n < len && (uint64_t)at + n < i->size; n++)
    out[n] = i->data ? i->data[(size_t)at + n] : made_up(i, (uint64_t)at + n);
  return (ssize_t)n;
}

static int fill(const item *i, struct stat *st) {
  memset(st, 0, sizeof *st);
  st->st_dev = 1;
  st->st_ino = i->ino;
  st->st_mode = i->mode;
  st->st_nlink = 1;
  st->st_size = (off_t)i->size;
  st->st_blocks = (blkcnt_t)((i->size + 511) / 512);
  st->st_mtim = (struct timespec){i->mtime / 1000000000, i->mtime % 1000000000};
  st->st_ctim = (struct timespec){i->ctime / 1000000000, i->ctime % 1000000000};
  return 0;
}

static int tree_fstat(const io *io, int fd, struct stat *out) {
  return fill(held(self(io), fd)->at, out);
}

static int tree_lstat(const io *io, int dirfd, const char *path, struct stat *out) {
  const item *i = resolve(self(io), dirfd, path);
  return i ? fill(i, out) : -ENOENT;
}

static ssize_t tree_readlink(const io *io, int dirfd, const char *path, char *to, size_t len) {
  const item *i = resolve(self(io), dirfd, path);
  if (!i) return -ENOENT;
  if (!i->target) return -EINVAL;
  size_t n = i->size < len ? i->size : len;
  memcpy(to, i->target, n);
  return (ssize_t)n;
}

static ssize_t tree_getdents(const io *io, int fd, void *to, size_t len) {
  handle *h = held(self(io), fd);
  size_t at = 0;
  for (; h->listed; h->listed = h->listed->next) {
    size_t name = strlen(h->listed->name) + 1;
    size_t need = (offsetof(struct dirent64, d_name) + name + 7) / 8 * 8;
    if (at + need > len) break;
    struct dirent64 *d = (void *)((char *)to + at);
    memset(d, 0, need);
    d->d_ino = h->listed->ino;
    d->d_reclen = (unsigned short)need;
    d->d_type = S_ISDIR(h->listed->mode) ? DT_DIR : S_ISLNK(h->listed->mode) ? DT_LNK : DT_REG;
    memcpy(d->d_name, h->listed->name, name);
    at += need;
  }
  return (ssize_t)at;
}

static int64_t tree_now(const io *io, io_clock clock) {
  const io_tree *t = io->ctx;
  return clock == IO_WALL ? t->wall : t->mono;
}

io_tree *io_tree_new(void) {
  io_tree *t = calloc(1, sizeof *t);
  t->grain = 1;
  t->wall = IO_TREE_EPOCH;
  t->root = calloc(1, sizeof *t->root);
  t->root->name = strdup("");
  t->root->mode = S_IFDIR | 0755;
  t->root->ino = new_ino(t);
  t->root->mtime = t->root->ctime = t->wall;
  /* The calls that write are NULL on purpose: whoever makes one while watching crashes here. */
  t->io = (io){.ctx = t,
               .open = tree_open,
               .close = tree_close,
               .pread = tree_pread,
               .fstat = tree_fstat,
               .lstat = tree_lstat,
               .readlink = tree_readlink,
               .getdents = tree_getdents,
               .now = tree_now};
  return t;
}

const io *io_tree_io(io_tree *t) {
  return &t->io;
}

void io_tree_free(io_tree *t) {
  if (!t) return;
  destroy(t, t->root);
  free(t);
}
