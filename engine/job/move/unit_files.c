#include "unit_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "event/stamp.h"
#include "job/move/unit_kept.h"
#include "job/move/unit_links.h"
#include "prims/fs.h"

/* The kernel stamps files with the time of its last tick, which is at most 10 ms old. Twice that,
 * for a tick may come late. */
enum { SECOND = 1000000000, GRAIN_FINE = 20000000 };

bool unit_files_gone(int rc) {
  return rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP || rc == -ESTALE;
}

static void set_stat(unit_file *f, const struct stat *st) {
  f->type = S_ISDIR(st->st_mode)   ? MANIFEST_DIR
            : S_ISLNK(st->st_mode) ? MANIFEST_LINK
                                   : MANIFEST_FILE;
  f->mode = st->st_mode & 07777;
  f->size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
  f->inode = st->st_ino;
  f->device = st->st_dev;
  f->mtime_ns = io_time_ns(st->st_mtim);
  f->ctime_ns = io_time_ns(st->st_ctim);
}

static unit_file *add_file(unit_files *t, const char *name, const struct stat *st) {
  if (!VEC_ROOM(t->files, t->count, t->room)) return NULL;
  unit_file *f = &t->files[t->count];
  *f = (unit_file){.name = strdup(name)};
  if (!f->name) return NULL;
  set_stat(f, st);
  t->count++;
  return f;
}

struct scan {
  const io *io;
  unit_files *tree;
  const rules *rules;
  const char *unit; /* the path of the unit in the watched tree: excludes are matched against it */
  char above[FS_PATH_MAX];
  const char *stem; /* of a group: only names are listed that begin with it and a dot; else NULL */
  const char *root, *dir; /* the names stand below `dir`, which is relative to `root` */
};

static void note_newest(unit_files *t, const unit_file *f) {
  int64_t newest = f->mtime_ns > f->ctime_ns ? f->mtime_ns : f->ctime_ns;
  if (newest > t->newest_ns) t->newest_ns = newest;
}

static int read_target(const struct scan *s, unit_file *f, err *e) {
  char path[FS_PATH_MAX], target[FS_PATH_MAX];
  int rc = unit_files_path(s->tree, f, path, e);
  if (rc < 0) return rc;
  ssize_t len = s->io->readlink(s->io, AT_FDCWD, path, target, sizeof target - 1);
  if (unit_files_gone((int)len) || len == -EINVAL) /* EINVAL: it is no link any more */
    return err_set(e, ERR_RETIRED, "%s vanished while it was listed", path);
  if (len < 0) return err_sys(e, (int)len, "read the link %s", path);
  target[len] = 0;
  f->target = strdup(target);
  return f->target ? 0 : err_set(e, ERR_NOMEM, "list %s: out of memory", path);
}

static bool has_stem(const char *stem, const char *name) {
  size_t len = strlen(stem);
  return strncmp(name, stem, len) == 0 && name[len] == '.';
}

/* True if a name that a link leads to is in the unit: no directory on the way is excluded. */
static bool is_ours(void *ctx, const char *name) {
  const struct scan *s = ctx;
  char part[FS_PATH_MAX], path[FS_PATH_MAX];
  if (s->stem && (strchr(name, '/') || !has_stem(s->stem, name))) return false;
  for (size_t len = 0;; len++) {
    if (name[len] && name[len] != '/') continue;
    memcpy(part, name, len);
    part[len] = 0;
    if (fs_join(path, s->unit, part, NULL) < 0 || rules_excluded(s->rules, path, name[len] == '/'))
      return false;
    if (!name[len]) return true;
  }
}

/* Returns 1 if the link leads to a file or directory of the unit that stands beside it, as most do:
 * that takes one look. */
static int leads_beside(struct scan *s, const unit_file *f, err *e) {
  char parent[FS_PATH_MAX], name[FS_PATH_MAX], path[FS_PATH_MAX];
  struct stat st;
  fs_parent(f->name, parent);
  if (strchr(f->target, '/') || strcmp(f->target, ".") == 0 || strcmp(f->target, "..") == 0 ||
      fs_join(name, strcmp(parent, ".") == 0 ? "" : parent, f->target, NULL) < 0 ||
      fs_join(path, s->tree->base, name, NULL) < 0 || !is_ours(s, name))
    return 0;
  int rc = s->io->lstat(s->io, AT_FDCWD, path, &st);
  if (rc < 0) return unit_files_gone(rc) || rc == -EACCES ? 0 : err_sys(e, rc, "look at %s", path);
  return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

/* Looks where the link leads, and makes it the file that is there, if it is followed. */
static int follow(struct scan *s, unit_file *f, const struct stat *st, err *e) {
  unit_files *t = s->tree;
  link_followed there;
  int rc = t->how & UNIT_FILES_PLAIN ? 1 : leads_beside(s, f, e);
  if (rc != 0) return rc < 0 ? rc : 0;
  rc = unit_links_hold(s->io, t, s->root, s->dir, e);
  if (rc == 0 && !t->links) f->end = LINK_END_DENIED;
  if (rc < 0 || !t->links) return rc;
  rc = link_follow(t->links, f->name, st, is_ours, s, &there, e);
  f->end = (uint8_t)there.end;
  if (rc < 0 || there.end != LINK_END_FILE) return rc;
  s->io->close(s->io, there.fd);
  set_stat(f, &there.st);
  f->followed = t->links;
  note_newest(t, f);
  unit_kept_note(t, &there.st);
  return 0;
}

static int take_file(struct scan *s, const char *name, const struct stat *st, err *e) {
  unit_files *t = s->tree;
  if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode))
    return err_set(e, ERR_INVAL, "%s/%s is a socket, pipe or device: exclude it", t->base, name);
  unit_file *f = add_file(t, name, st);
  if (!f) return err_set(e, ERR_NOMEM, "list %s: out of memory", t->base);
  note_newest(t, f);
  unit_kept_note(t, st);
  if (f->type == MANIFEST_LINK) {
    int rc = read_target(s, f, e);
    if (rc == 0) rc = follow(s, f, st, e);
    if (rc < 0) return rc;
  }
  if (f->type != MANIFEST_FILE) return 0;
  /* Times before 1970 are negative, so 0 is no start. */
  if (t->kind != MATCH_DIR && (t->regular == 0 || f->mtime_ns > t->mtime_ns))
    t->mtime_ns = f->mtime_ns;
  t->bytes += f->size;
  t->regular++;
  return 0;
}

/* Counts what the user's or a policy's words leave out. `path`: of the entry in the watched tree. */
static int leave_out(struct scan *s, const char *name, const char *path, bool is_dir, err *e) {
  char shown[FS_PATH_MAX];
  if (!rules_excluded_by_wish(s->rules, path, is_dir)) return 0;
  s->tree->left_out++;
  if (rules_excluded_here(s->rules, path, is_dir)) s->tree->left_here++;
  if (snprintf(shown, sizeof shown, "%s%s", name, is_dir ? "/" : "") >= (int)sizeof shown) return 0;
  return manifest_left_note(&s->tree->left_names, shown)
             ? 0
             : err_set(e, ERR_NOMEM, "list %s: out of memory", s->tree->base);
}

static int on_entry(void *ctx, const fs_entry *entry, err *e) {
  struct scan *s = ctx;
  bool is_dir = S_ISDIR(entry->st->st_mode);
  if (s->stem) {
    if (is_dir || !has_stem(s->stem, entry->name)) return 0;
  } else if (rules_is_contents(entry->name)) {
    s->tree->has_table |= !is_dir && strcmp(entry->name, MANIFEST_NAME) == 0;
    return is_dir ? FS_SKIP : 0; /* it was copied out of a store: not the framework's, never data */
  }
  char path[FS_PATH_MAX];
  int rc = fs_join(path, s->unit, entry->name, e);
  if (rc < 0) return rc;
  if (rules_excluded(s->rules, path, is_dir)) {
    rc = leave_out(s, entry->name, path, is_dir, e);
    return rc == 0 && is_dir ? FS_SKIP : rc;
  }
  return take_file(s, entry->name, entry->st, e);
}

static int look(const struct scan *s, const char *path, struct stat *st, err *e) {
  int rc = s->io->lstat(s->io, AT_FDCWD, path, st);
  if (unit_files_gone(rc)) return err_set(e, ERR_RETIRED, "%s vanished", path);
  return rc < 0 ? err_sys(e, rc, "look at %s", path) : 0;
}

static int set_base(struct scan *s, const char *path, err *e) {
  s->tree->base = strdup(path);
  return s->tree->base ? 0 : err_set(e, ERR_NOMEM, "list %s: out of memory", path);
}

/* Maps the result of a listing of `dir`: if another kind of file is there now, the directory has
 * vanished. */
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
  s->unit = s->dir = path;
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
  s->unit = s->dir = strcmp(s->above, ".") == 0 ? "" : s->above;
  int rc = set_base(s, parent, e);
  if (rc == 0) rc = listed(s, parent, fs_list(s->io, parent, on_entry, s, e), e);
  const bool all_left = s->tree->left_here > 0;
  if (rc == 0 && s->tree->count == 0 && !all_left)
    rc = err_set(e, ERR_RETIRED, "%s.* vanished", full);
  return rc;
}

int unit_files_scan_as(const io *io, const char *root, const char *path, match_kind kind,
                       const rules *rules, unsigned how, unit_files *out, err *e) {
  *out = (unit_files){.kind = kind, .mode = 0755, .how = how};
  struct scan s = {.io = io, .tree = out, .rules = rules, .root = root};
  char full[FS_PATH_MAX];
  int rc = fs_join(full, root, path, e);
  if (rc == 0) {
    switch (kind) {
    case MATCH_DIR: rc = scan_dir(&s, full, path, e); break;
    case MATCH_FILE: rc = scan_file(&s, full, e); break;
    case MATCH_GROUP: rc = scan_group(&s, full, path, e); break;
    }
  }
  if (rc == 0 && out->count) {
    qsort(out->files, out->count, sizeof *out->files, vec_texts);
    rc = unit_links_unite(out, e);
  }
  if (rc < 0) unit_files_free(out);
  return rc;
}

int unit_files_scan(const io *io, const char *root, const char *path, match_kind kind,
                    const rules *rules, unit_files *out, err *e) {
  return unit_files_scan_as(io, root, path, kind, rules, 0, out, e);
}

void unit_files_free(unit_files *t) {
  for (size_t i = 0; i < t->count; i++) {
    free(t->files[i].name);
    free(t->files[i].target);
    free(t->files[i].blocks);
  }
  free(t->files);
  free(t->base);
  manifest_left_free(&t->left_names);
  link_follower_free(t->links);
  *t = (unit_files){0};
}

static const char *difference(const unit_file *a, const unit_file *b) {
  if (a->type != b->type || !a->followed != !b->followed || a->inode != b->inode ||
      a->device != b->device)
    return "was replaced";
  if (a->size != b->size) return "changed its size";
  /* A directory's times move when a name in it does; the names themselves are compared. */
  if (a->type == MANIFEST_DIR) return NULL;
  if (a->mtime_ns != b->mtime_ns || a->ctime_ns != b->ctime_ns) return "was written";
  if (a->type == MANIFEST_LINK && strcmp(a->target, b->target) != 0) return "points elsewhere";
  return NULL;
}

const unit_file *unit_files_find(const unit_files *t, const char *name) {
  return vec_find(name, t->files, t->count, sizeof *t->files, vec_by_text);
}

int unit_files_same(const unit_files *before, const unit_files *after, err *e) {
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

/* True if the words for this one alone leave the file out, or a directory that it is in. */
static bool is_left_out(const rules *rules, const char *unit, const unit_file *f) {
  char part[FS_PATH_MAX], path[FS_PATH_MAX];
  for (size_t len = 0;; len++) {
    const bool end = f->name[len] == 0;
    if (!end && f->name[len] != '/') continue;
    memcpy(part, f->name, len);
    part[len] = 0;
    if (fs_join(path, unit, part, NULL) == 0 &&
        rules_excluded(rules, path, !end || f->type == MANIFEST_DIR))
      return true;
    if (end) return false;
  }
}

/* Returns the directory, in the watched tree, below which the names of the unit at `path` stand. */
static const char *names_below(const unit_files *t, const char *path, char above[FS_PATH_MAX]) {
  if (t->kind == MATCH_DIR) return path;
  fs_parent(path, above);
  return strcmp(above, ".") == 0 ? "" : above;
}

int unit_files_within(const unit_files *part, const unit_files *whole, const char *path,
                      const rules *rules, err *e) {
  char above[FS_PATH_MAX];
  const char *unit = names_below(whole, path, above);
  for (size_t i = 0; i < whole->count; i++) {
    const unit_file *f = &whole->files[i];
    if (!unit_files_find(part, f->name) && !is_left_out(rules, unit, f))
      return err_set(e, ERR_RETIRED, "%s/%s vanished while the unit was listed", whole->base,
                     f->name);
  }
  for (size_t i = 0; i < part->count; i++) {
    const unit_file *f = &part->files[i];
    if (f->type != MANIFEST_FILE || f->followed) continue;
    const unit_file *then = unit_files_find(whole, f->name);
    const char *what = then ? difference(then, f) : "appeared";
    if (what)
      return err_set(e, ERR_RETIRED, "%s/%s %s while the unit was listed", part->base, f->name,
                     what);
  }
  return 0;
}

int unit_files_unchanged(const io *io, const char *root, const char *path, const rules *rules,
                         const unit_files *before, err *e) {
  unit_files now;
  int rc = unit_files_scan_as(io, root, path, before->kind, rules, before->how, &now, e);
  /* A pipe where there was a file, say, is refused the first time, and is a change the second. */
  if (rc == ERR_INVAL) return err_set(e, ERR_RETIRED, "%s was replaced while it was read", path);
  if (rc < 0) return rc;
  rc = unit_files_same(before, &now, e);
  unit_files_free(&now);
  return rc;
}

/* Times that are all whole seconds come from a file system that keeps no finer ones. */
static int64_t grain_of(const unit_files *t) {
  for (size_t i = 0; i < t->count; i++)
    if (t->files[i].mtime_ns % SECOND || t->files[i].ctime_ns % SECOND) return GRAIN_FINE;
  return t->count ? (int64_t)2 * SECOND : GRAIN_FINE;
}

uint64_t unit_files_stamp(const unit_files *t) {
  uint64_t sum = 0;
  for (size_t i = 0; i < t->count; i++)
    if (t->files[i].type == MANIFEST_FILE && !t->files[i].followed)
      sum += stamp_of_file(t->files[i].size, t->files[i].mtime_ns, t->files[i].inode);
  return sum;
}

int64_t unit_files_racy_ns(const unit_files *t, int64_t now_ns) {
  const int64_t grain = grain_of(t), most = (int64_t)2 * SECOND;
  int64_t age = now_ns - t->newest_ns; /* neither is negative */
  if (age >= grain) return 0;
  return age < grain - most ? most : grain - age;
}

bool unit_files_from_future(const unit_files *t, int64_t now_ns) {
  return t->newest_ns > now_ns;
}

int unit_files_path(const unit_files *t, const unit_file *f, char *out, err *e) {
  return fs_join(out, t->base, f->name, e);
}

int unit_files_open(const io *io, const unit_file *f, const char *path, err *e) {
  if (f->followed) return unit_links_open(f, path, e);
  /* O_NONBLOCK: a pipe that has taken the file's place would wait for its writer for ever. A socket
   * answers ENXIO. */
  int fd = io->open(io, AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  if (unit_files_gone(fd) || fd == -ENXIO)
    return err_set(e, ERR_RETIRED, "%s vanished before it was read", path);
  return fd < 0 ? err_sys(e, fd, "open %s", path) : fd;
}

int unit_files_manifest(const unit_files *t, const char *unit, int64_t step, hash_kind hash,
                        manifest *out, err *e) {
  manifest_init(out);
  out->kind = t->kind;
  out->step = step;
  out->mtime_ns = t->mtime_ns;
  out->mode = t->mode;
  out->hash = hash;
  out->left_out = t->left_out;
  out->left_here = t->left_here;
  out->unit = strdup(unit);
  int rc = out->unit && manifest_left_add(&out->left_names, &t->left_names) ? 0 : ERR_NOMEM;
  for (size_t i = 0; rc == 0 && i < t->count; i++) {
    const unit_file *f = &t->files[i];
    manifest_entry *entry =
        manifest_add(out, f->type, f->name, f->type == MANIFEST_LINK ? f->target : NULL);
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

bool unit_files_was_link(const unit_file *f, const manifest_entry *entry) {
  return f->followed && entry->type == MANIFEST_LINK && strcmp(f->target, entry->target) == 0;
}

/* True for the user's metadata, which may be set after the save: it is no part of what was saved. */
static bool came_later(const unit_file *f, const manifest *m) {
  return m->kind == MATCH_DIR && !m->old && f->type == MANIFEST_FILE &&
         f->size <= MANIFEST_METADATA_MAX && strcmp(f->name, MANIFEST_METADATA) == 0 &&
         !manifest_find(m, MANIFEST_METADATA);
}

static int match(const unit_files *t, const manifest *m, bool times) {
  size_t at = 0;
  if (t->kind != m->kind) return 0;
  for (size_t i = 0; i < t->count; i++) {
    const unit_file *f = &t->files[i];
    if (came_later(f, m)) continue;
    if (at == m->count) return 0;
    const manifest_entry *entry = &m->entries[at++];
    if (strcmp(f->name, entry->name) != 0) return 0;
    if (unit_files_was_link(f, entry)) continue;
    if (f->type != entry->type) return 0;
    if (f->type == MANIFEST_FILE && !entry->outside &&
        (f->size != entry->size || (times && f->mtime_ns != entry->mtime_ns)))
      return 0;
    if (f->type == MANIFEST_LINK && strcmp(f->target, entry->target) != 0) return 0;
  }
  return at == m->count;
}

int unit_files_matches(const unit_files *t, const manifest *m) {
  return match(t, m, true);
}

int unit_files_alike(const unit_files *t, const manifest *m) {
  return match(t, m, false);
}
