#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "prims/fs.h"

enum { SECOND = 1000000000, GRAIN_FINE = 10000000 };

static tree_file *add_file(tree *t, const char *name, const struct stat *st) {
  if (t->count == t->room) {
    size_t room = t->room ? 2 * t->room : 16;
    tree_file *files = realloc(t->files, room * sizeof *files);
    if (!files) return NULL;
    t->files = files;
    t->room = room;
  }
  tree_file *f = &t->files[t->count];
  *f = (tree_file){
      .name = strdup(name),
      .type = S_ISDIR(st->st_mode)   ? MANIFEST_DIR
              : S_ISLNK(st->st_mode) ? MANIFEST_LINK
                                     : MANIFEST_FILE,
      .mode = st->st_mode & 07777,
      .size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
      .inode = st->st_ino,
      .device = st->st_dev,
      .mtime_ns = io_time_ns(st->st_mtim),
      .ctime_ns = io_time_ns(st->st_ctim),
  };
  if (!f->name) return NULL;
  t->count++;
  return f;
}

struct scan {
  const io *io;
  tree *tree;
  const rules *rules;
  const char *unit; /* its path in the watched tree: excludes are matched against that */
  const char *stem; /* of a group: only names that begin with it and a dot; else NULL */
};

static void note_newest(tree *t, const tree_file *f) {
  int64_t newest = f->mtime_ns > f->ctime_ns ? f->mtime_ns : f->ctime_ns;
  if (newest > t->newest_ns) t->newest_ns = newest;
}

static int take_file(struct scan *s, const char *name, const struct stat *st, err *e) {
  tree *t = s->tree;
  if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode))
    return err_set(e, ERR_INVAL, "%s/%s is a socket, pipe or device: exclude it", t->base, name);
  tree_file *f = add_file(t, name, st);
  if (!f) return err_set(e, ERR_NOMEM, "list %s: out of memory", t->base);
  note_newest(t, f);
  if (f->type == MANIFEST_FILE) {
    t->bytes += f->size;
    t->regular++;
    if (t->kind != MATCH_DIR && f->mtime_ns > t->mtime_ns) t->mtime_ns = f->mtime_ns;
  }
  if (f->type != MANIFEST_LINK) return 0;
  char path[FS_PATH_MAX], target[FS_PATH_MAX];
  int rc = tree_path(t, f, path, e);
  if (rc < 0) return rc;
  ssize_t len = s->io->readlink(s->io, AT_FDCWD, path, target, sizeof target - 1);
  if (len < 0)
    return len == -ENOENT ? err_set(e, ERR_RETIRED, "%s vanished while it was listed", path)
                          : err_sys(e, (int)len, "read the link %s", path);
  target[len] = 0;
  f->target = strdup(target);
  return f->target ? 0 : err_set(e, ERR_NOMEM, "list %s: out of memory", t->base);
}

static int on_entry(void *ctx, const fs_entry *entry, err *e) {
  struct scan *s = ctx;
  bool is_dir = S_ISDIR(entry->st->st_mode);
  if (s->stem) {
    size_t len = strlen(s->stem);
    if (is_dir || strncmp(entry->name, s->stem, len) != 0 || entry->name[len] != '.') return 0;
  }
  char path[FS_PATH_MAX];
  int rc = fs_join(path, s->unit, entry->name, e);
  if (rc < 0) return rc;
  if (rules_excluded(s->rules, path, is_dir)) return is_dir ? FS_SKIP : 0;
  return take_file(s, entry->name, entry->st, e);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const tree_file *)a)->name, ((const tree_file *)b)->name);
}

/* An empty directory is a record of its own; one with something in it is implied by its children,
 * but its mode and mtime are worth keeping too, so all stay. */
static int scan_unit(struct scan *s, const char *full, const char *path, err *e) {
  tree *t = s->tree;
  struct stat st;
  char parent[FS_PATH_MAX];
  switch (t->kind) {
  case MATCH_DIR: {
    int rc = s->io->lstat(s->io, AT_FDCWD, full, &st);
    if (rc < 0) return err_sys(e, rc, "look at %s", full);
    if (!S_ISDIR(st.st_mode))
      return err_set(e, ERR_RETIRED, "%s is not a directory any more", full);
    t->mode = st.st_mode & 07777;
    t->mtime_ns = io_time_ns(st.st_mtim);
    t->base = strdup(full);
    s->unit = path;
    if (!t->base) return err_set(e, ERR_NOMEM, "list %s: out of memory", full);
    return fs_walk(s->io, full, on_entry, s, e);
  }
  case MATCH_FILE: {
    int rc = s->io->lstat(s->io, AT_FDCWD, full, &st);
    if (rc < 0) return err_sys(e, rc, "look at %s", full);
    if (!S_ISREG(st.st_mode)) return err_set(e, ERR_RETIRED, "%s is no file any more", full);
    fs_parent(full, parent);
    t->base = strdup(parent);
    if (!t->base) return err_set(e, ERR_NOMEM, "list %s: out of memory", full);
    return take_file(s, fs_base(full), &st, e);
  }
  case MATCH_GROUP:
    fs_parent(full, parent);
    t->base = strdup(parent);
    if (!t->base) return err_set(e, ERR_NOMEM, "list %s: out of memory", full);
    s->stem = fs_base(path);
    char above[FS_PATH_MAX];
    fs_parent(path, above);
    s->unit = strcmp(above, ".") == 0 ? "" : above;
    return fs_list(s->io, parent, on_entry, s, e);
  }
  return err_set(e, ERR_INTERNAL, "unknown kind of unit");
}

int tree_scan(const io *io, const char *root, const char *path, match_kind kind, const rules *rules,
              tree *out, err *e) {
  *out = (tree){.kind = kind, .mode = 0755};
  struct scan s = {.io = io, .tree = out, .rules = rules};
  char full[FS_PATH_MAX];
  int rc = fs_join(full, root, path, e);
  if (rc == 0) rc = scan_unit(&s, full, path, e);
  if (rc == ERR_NOENT) rc = err_set(e, ERR_RETIRED, "%s vanished", full);
  if (rc >= 0 && kind == MATCH_GROUP && out->count == 0)
    rc = err_set(e, ERR_RETIRED, "%s.* vanished", full);
  if (rc < 0) {
    tree_free(out);
    return rc;
  }
  if (out->count) qsort(out->files, out->count, sizeof *out->files, by_name);
  return 0;
}

void tree_free(tree *t) {
  for (size_t i = 0; i < t->count; i++) {
    free(t->files[i].name);
    free(t->files[i].target);
    free(t->files[i].blocks);
  }
  free(t->files);
  free(t->base);
  *t = (tree){0};
}

static const char *difference(const tree_file *a, const tree_file *b) {
  if (a->type != b->type || a->inode != b->inode || a->device != b->device) return "was replaced";
  if (a->size != b->size) return "changed its size";
  /* A directory's times move when a name in it does; the names themselves are compared. */
  if (a->type == MANIFEST_DIR) return NULL;
  if (a->mtime_ns != b->mtime_ns || a->ctime_ns != b->ctime_ns) return "was written";
  if (a->type == MANIFEST_LINK && strcmp(a->target, b->target) != 0) return "points elsewhere";
  return NULL;
}

int tree_same(const tree *before, const tree *after, err *e) {
  size_t i = 0, j = 0;
  while (i < before->count || j < after->count) {
    int order = i == before->count  ? 1
                : j == after->count ? -1
                                    : strcmp(before->files[i].name, after->files[j].name);
    if (order < 0)
      return err_set(e, ERR_RETIRED, "%s/%s vanished while the unit was read", before->base,
                     before->files[i].name);
    if (order > 0)
      return err_set(e, ERR_RETIRED, "%s/%s appeared while the unit was read", after->base,
                     after->files[j].name);
    const char *what = difference(&before->files[i], &after->files[j]);
    if (what)
      return err_set(e, ERR_RETIRED, "%s/%s %s while the unit was read", before->base,
                     before->files[i].name, what);
    i++;
    j++;
  }
  return 0;
}

/* Times that are all whole seconds come from a file system that keeps no finer ones. */
static int64_t grain_of(const tree *t) {
  for (size_t i = 0; i < t->count; i++)
    if (t->files[i].mtime_ns % SECOND || t->files[i].ctime_ns % SECOND) return GRAIN_FINE;
  return t->count ? (int64_t)2 * SECOND : GRAIN_FINE;
}

int64_t tree_racy_ns(const tree *t, int64_t now_ns) {
  int64_t grain = grain_of(t), until = t->newest_ns + grain;
  if (until <= now_ns) return 0;
  int64_t wait = until - now_ns;
  return wait < (int64_t)2 * SECOND ? wait : (int64_t)2 * SECOND;
}

bool tree_from_future(const tree *t, int64_t now_ns) {
  return t->newest_ns > now_ns;
}

int tree_path(const tree *t, const tree_file *f, char *out, err *e) {
  return fs_join(out, t->base, f->name, e);
}

int tree_manifest(const tree *t, const char *unit, int64_t step, hash_kind hash, manifest *out,
                  err *e) {
  manifest_init(out);
  out->kind = t->kind;
  out->step = step;
  out->mtime_ns = t->mtime_ns;
  out->mode = t->mode;
  out->hash = hash;
  out->unit = strdup(unit);
  int rc = out->unit ? 0 : ERR_NOMEM;
  for (size_t i = 0; rc == 0 && i < t->count; i++) {
    const tree_file *f = &t->files[i];
    manifest_entry *entry = manifest_add(out, f->type, f->name, f->target);
    if (!entry) {
      rc = ERR_NOMEM;
      break;
    }
    entry->mode = f->mode;
    entry->mtime_ns = f->mtime_ns;
    entry->size = f->size;
    entry->file = f->file;
    size_t blocks = f->type == MANIFEST_FILE ? hash_block_count(f->size) : 0;
    if (blocks == 0) continue;
    entry->blocks = malloc(blocks * sizeof *entry->blocks);
    if (!entry->blocks)
      rc = ERR_NOMEM;
    else
      memcpy(entry->blocks, f->blocks, blocks * sizeof *entry->blocks);
  }
  if (rc < 0)
    err_set(e, rc, "manifest of %s: out of memory", unit);
  else
    rc = manifest_seal(out, e);
  if (rc < 0) manifest_free(out);
  return rc;
}

int tree_matches(const tree *t, const manifest *m) {
  if (t->count != m->count || t->kind != m->kind) return 0;
  for (size_t i = 0; i < t->count; i++) {
    const tree_file *f = &t->files[i];
    const manifest_entry *entry = &m->entries[i];
    if (strcmp(f->name, entry->name) != 0 || f->type != entry->type) return 0;
    if (f->type == MANIFEST_FILE && (f->size != entry->size || f->mtime_ns != entry->mtime_ns))
      return 0;
    if (f->type == MANIFEST_LINK && strcmp(f->target, entry->target) != 0) return 0;
  }
  return 1;
}
