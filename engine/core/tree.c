#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "core/stamp.h"
#include "prims/fs.h"

/* The kernel stamps files with the time of its last tick, which is at most 10 ms old. Twice that,
 * for a tick may come late. */
enum { SECOND = 1000000000, GRAIN_FINE = 20000000 };

bool tree_gone(int rc) {
  return rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP || rc == -ESTALE;
}

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
  const char *unit; /* where the names stand in the watched tree: excludes are matched there */
  char above[FS_PATH_MAX];
  const char *stem; /* of a group: only names that begin with it and a dot; else NULL */
};

static void note_newest(tree *t, const tree_file *f) {
  int64_t newest = f->mtime_ns > f->ctime_ns ? f->mtime_ns : f->ctime_ns;
  if (newest > t->newest_ns) t->newest_ns = newest;
}

static int read_target(const struct scan *s, tree_file *f, err *e) {
  char path[FS_PATH_MAX], target[FS_PATH_MAX];
  int rc = tree_path(s->tree, f, path, e);
  if (rc < 0) return rc;
  ssize_t len = s->io->readlink(s->io, AT_FDCWD, path, target, sizeof target - 1);
  if (tree_gone((int)len) || len == -EINVAL) /* EINVAL: it is no link any more */
    return err_set(e, ERR_RETIRED, "%s vanished while it was listed", path);
  if (len < 0) return err_sys(e, (int)len, "read the link %s", path);
  target[len] = 0;
  f->target = strdup(target);
  return f->target ? 0 : err_set(e, ERR_NOMEM, "list %s: out of memory", path);
}

static int take_file(struct scan *s, const char *name, const struct stat *st, err *e) {
  tree *t = s->tree;
  if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode))
    return err_set(e, ERR_INVAL, "%s/%s is a socket, pipe or device: exclude it", t->base, name);
  tree_file *f = add_file(t, name, st);
  if (!f) return err_set(e, ERR_NOMEM, "list %s: out of memory", t->base);
  note_newest(t, f);
  if (f->type == MANIFEST_LINK) return read_target(s, f, e);
  if (f->type == MANIFEST_DIR) return 0;
  /* Times before 1970 are negative, so 0 is no start. */
  if (t->kind != MATCH_DIR && (t->regular == 0 || f->mtime_ns > t->mtime_ns))
    t->mtime_ns = f->mtime_ns;
  t->bytes += f->size;
  t->regular++;
  return 0;
}

static int on_entry(void *ctx, const fs_entry *entry, err *e) {
  struct scan *s = ctx;
  bool is_dir = S_ISDIR(entry->st->st_mode);
  if (s->stem) {
    size_t len = strlen(s->stem);
    if (is_dir || strncmp(entry->name, s->stem, len) != 0 || entry->name[len] != '.') return 0;
  } else if (strcmp(entry->name, MANIFEST_NAME) == 0) {
    return is_dir ? FS_SKIP : 0; /* it was copied out of a store: not the framework's, never data */
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

static int look(const struct scan *s, const char *path, struct stat *st, err *e) {
  int rc = s->io->lstat(s->io, AT_FDCWD, path, st);
  if (tree_gone(rc)) return err_set(e, ERR_RETIRED, "%s vanished", path);
  return rc < 0 ? err_sys(e, rc, "look at %s", path) : 0;
}

static int set_base(struct scan *s, const char *path, err *e) {
  s->tree->base = strdup(path);
  return s->tree->base ? 0 : err_set(e, ERR_NOMEM, "list %s: out of memory", path);
}

/* What a listing of `dir` returned, with "something else is there now" told from other errors. */
static int listed(const struct scan *s, const char *dir, int rc, err *e) {
  struct stat st;
  if (rc == ERR_INVAL && s->io->lstat(s->io, AT_FDCWD, dir, &st) == 0 && !S_ISDIR(st.st_mode))
    rc = ERR_NOENT;
  return rc == ERR_NOENT ? err_set(e, ERR_RETIRED, "%s vanished while it was listed", dir) : rc;
}

/* Directories are records too, the implied ones as well: their modes and mtimes are worth keeping.
 */
static int scan_dir(struct scan *s, const char *full, const char *path, err *e) {
  struct stat st;
  int rc = look(s, full, &st, e);
  if (rc < 0) return rc;
  if (!S_ISDIR(st.st_mode)) return err_set(e, ERR_RETIRED, "%s is not a directory any more", full);
  s->tree->mode = st.st_mode & 07777;
  s->tree->mtime_ns = io_time_ns(st.st_mtim);
  s->unit = path;
  rc = set_base(s, full, e);
  return rc < 0 ? rc : listed(s, full, fs_walk(s->io, full, on_entry, s, e), e);
}

static int scan_file(struct scan *s, const char *full, err *e) {
  struct stat st;
  char parent[FS_PATH_MAX];
  int rc = look(s, full, &st, e);
  if (rc < 0) return rc;
  if (!S_ISREG(st.st_mode)) return err_set(e, ERR_RETIRED, "%s is no file any more", full);
  fs_parent(full, parent);
  rc = set_base(s, parent, e);
  return rc < 0 ? rc : take_file(s, fs_base(full), &st, e);
}

static int scan_group(struct scan *s, const char *full, const char *path, err *e) {
  char parent[FS_PATH_MAX];
  fs_parent(full, parent);
  fs_parent(path, s->above);
  s->stem = fs_base(path);
  s->unit = strcmp(s->above, ".") == 0 ? "" : s->above;
  int rc = set_base(s, parent, e);
  if (rc == 0) rc = listed(s, parent, fs_list(s->io, parent, on_entry, s, e), e);
  if (rc == 0 && s->tree->count == 0) rc = err_set(e, ERR_RETIRED, "%s.* vanished", full);
  return rc;
}

int tree_scan(const io *io, const char *root, const char *path, match_kind kind, const rules *rules,
              tree *out, err *e) {
  *out = (tree){.kind = kind, .mode = 0755};
  struct scan s = {.io = io, .tree = out, .rules = rules};
  char full[FS_PATH_MAX];
  int rc = fs_join(full, root, path, e);
  if (rc == 0) {
    switch (kind) {
    case MATCH_DIR: rc = scan_dir(&s, full, path, e); break;
    case MATCH_FILE: rc = scan_file(&s, full, e); break;
    case MATCH_GROUP: rc = scan_group(&s, full, path, e); break;
    }
  }
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

int tree_unchanged(const io *io, const char *root, const char *path, const rules *rules,
                   const tree *before, err *e) {
  tree now;
  int rc = tree_scan(io, root, path, before->kind, rules, &now, e);
  /* A pipe where there was a file, say: refused the first time, a change the second. */
  if (rc == ERR_INVAL) return err_set(e, ERR_RETIRED, "%s was replaced while it was read", path);
  if (rc < 0) return rc;
  rc = tree_same(before, &now, e);
  tree_free(&now);
  return rc;
}

/* Times that are all whole seconds come from a file system that keeps no finer ones. */
static int64_t grain_of(const tree *t) {
  for (size_t i = 0; i < t->count; i++)
    if (t->files[i].mtime_ns % SECOND || t->files[i].ctime_ns % SECOND) return GRAIN_FINE;
  return t->count ? (int64_t)2 * SECOND : GRAIN_FINE;
}

uint64_t tree_stamp(const tree *t) {
  uint64_t sum = 0;
  for (size_t i = 0; i < t->count; i++)
    if (t->files[i].type == MANIFEST_FILE)
      sum += stamp_of_file(t->files[i].size, t->files[i].mtime_ns, t->files[i].inode);
  return sum;
}

int64_t tree_racy_ns(const tree *t, int64_t now_ns) {
  const int64_t grain = grain_of(t), most = (int64_t)2 * SECOND;
  int64_t age = now_ns - t->newest_ns; /* neither is negative */
  if (age >= grain) return 0;
  return age < grain - most ? most : grain - age;
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
    if (f->type == MANIFEST_FILE && !entry->outside &&
        (f->size != entry->size || f->mtime_ns != entry->mtime_ns))
      return 0;
    if (f->type == MANIFEST_LINK && strcmp(f->target, entry->target) != 0) return 0;
  }
  return 1;
}
