#include "detect_node.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/vec.h"
#include "prims/fs.h"

node_type node_type_of(mode_t mode) {
  if (S_ISREG(mode)) return NODE_FILE;
  if (S_ISDIR(mode)) return NODE_DIR;
  return S_ISLNK(mode) ? NODE_LINK : NODE_OTHER;
}

node *node_new(const char *name, size_t len, node_type type) {
  node *n = calloc(1, sizeof *n);
  if (!n) return NULL;
  n->type = (uint8_t)type;
  n->name = strndup(name, len);
  if (n->name) return n;
  free(n);
  return NULL;
}

void node_free(node *n) {
  if (!n) return;
  for (size_t i = 0; i < n->count; i++) node_free(n->children[i]);
  free(n->children);
  free(n->name);
  free(n->home);
  free(n);
}

void node_set(node *n, const struct stat *st) {
  n->dev = st->st_dev;
  n->ino = st->st_ino;
  n->size = (uint64_t)st->st_size;
  n->mtime_ns = io_time_ns(st->st_mtim);
  n->ctime_ns = io_time_ns(st->st_ctim);
  n->known = true;
}

bool node_is(const node *n, const struct stat *st) {
  return n->ino == st->st_ino && n->dev == st->st_dev;
}

bool node_same(const node *n, const struct stat *st) {
  return n->known && node_is(n, st) && n->size == (uint64_t)st->st_size &&
         n->mtime_ns == io_time_ns(st->st_mtim);
}

typedef struct part { /* of a path */
  const char *at;
  size_t len;
} part;

static int compare(const void *key, const void *item) {
  const part *a = key;
  const char *b = (*(node *const *)item)->name;
  size_t n = strlen(b);
  int c = memcmp(a->at, b, a->len < n ? a->len : n);
  return c ? c : (a->len > n) - (a->len < n);
}

/* Finds the place of `name` among the children, or the place where it would be. */
static size_t place_of(const node *dir, const char *name, size_t len, bool *found) {
  return vec_place(&(part){name, len}, (const void *)dir->children, dir->count, sizeof(node *),
                   compare, found);
}

node *node_child(const node *dir, const char *name, size_t len) {
  bool found;
  size_t at = place_of(dir, name, len, &found);
  return found ? dir->children[at] : NULL;
}

int node_attach(node *dir, node *n, err *e) {
  bool found;
  if (!vec_grow((void *)&dir->children, dir->count, &dir->room, sizeof(void *)))
    return err_set(e, ERR_NOMEM, "watch: out of memory");
  size_t at = place_of(dir, n->name, strlen(n->name), &found);
  memmove(dir->children + at + 1, dir->children + at, (dir->count - at) * sizeof(void *));
  dir->children[at] = n;
  dir->count++;
  n->parent = dir;
  return 0;
}

void node_detach(node *n) {
  node *dir = n->parent;
  bool found;
  if (!dir) return;
  size_t at = place_of(dir, n->name, strlen(n->name), &found);
  dir->count--;
  memmove(dir->children + at, dir->children + at + 1, (dir->count - at) * sizeof(void *));
  n->parent = NULL;
}

int node_rename(node *n, const char *name, err *e) {
  char *copy = strdup(name);
  if (!copy) return err_set(e, ERR_NOMEM, "watch: out of memory");
  free(n->name);
  n->name = copy;
  return 0;
}

bool node_within(const node *top, const node *n) {
  while (n && n != top) n = n->parent;
  return n != NULL;
}

node *node_find(node *top, const char *path, node **parent, const char **name) {
  node *dir = top;
  for (const char *slash; dir && (slash = strchr(path, '/')); path = slash + 1) {
    dir = node_child(dir, path, (size_t)(slash - path));
    if (dir && (dir->type != NODE_DIR || dir->excluded)) dir = NULL;
  }
  *parent = dir;
  *name = path;
  return dir ? node_child(dir, path, strlen(path)) : NULL;
}

int node_path(const node *n, char *out, err *e) {
  size_t at = FS_PATH_MAX - 1;
  char *p = out + at;
  *p = '\0';
  for (; n->parent; n = n->parent) {
    size_t len = strlen(n->name), need = len + (*p != '\0');
    if ((size_t)(p - out) < need) return err_set(e, ERR_LIMIT, "path too long: .../%s", n->name);
    if (*p != '\0') *--p = '/';
    p -= len;
    memcpy(p, n->name, len);
  }
  memmove(out, p, strlen(p) + 1);
  return 0;
}

void node_walk(node *n, node_fn *fn, void *ctx) {
  fn(ctx, n);
  for (size_t i = 0; i < n->count; i++) node_walk(n->children[i], fn, ctx);
}
