#include "snapshot.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "prims/fs.h"

enum { COMPARE_BYTES = 256 << 10 };

static int copy_file(const io *io, const unit_file *f, const char *source, const char *to,
                     const atomic_int *cancel, _Atomic uint64_t *alive, err *e) {
  if (!f->followed) return fs_copy_file(io, source, to, false, cancel, alive, e);
  int fd = unit_files_open(io, f, source, e);
  if (fd < 0) return fd;
  int rc = fs_copy_open(io, fd, source, to, false, cancel, alive, e);
  io->close(io, fd); /* only read */
  return rc;
}

static int copy_entry(const io *io, const unit_files *from, const unit_file *f, const char *base,
                      const atomic_int *cancel, _Atomic uint64_t *alive, err *e) {
  char source[FS_PATH_MAX], to[FS_PATH_MAX];
  int rc = unit_files_path(from, f, source, e);
  if (rc == 0) rc = fs_join(to, base, f->name, e);
  if (rc < 0) return rc;
  switch (f->type) {
  case MANIFEST_FILE: return copy_file(io, f, source, to, cancel, alive, e);
  case MANIFEST_DIR: rc = io->mkdir(io, AT_FDCWD, to, 0700); break;
  case MANIFEST_LINK: rc = io->symlink(io, f->target, AT_FDCWD, to); break;
  }
  return rc < 0 ? err_sys(e, rc, "cannot make %s", to) : 0;
}

static int same_content(const io *io, int a, int b, const char *path, char *bytes,
                        _Atomic uint64_t *alive, err *e) {
  for (;;) {
    ssize_t got = fs_fill(io, a, bytes, COMPARE_BYTES);
    ssize_t other = got < 0 ? got : fs_fill(io, b, bytes + COMPARE_BYTES, COMPARE_BYTES);
    if (other < 0) return err_sys(e, (int)other, "cannot compare %s with its copy", path);
    if (got != other || memcmp(bytes, bytes + COMPARE_BYTES, (size_t)got) != 0)
      return err_set(e, ERR_RETIRED, "%s was written while it was copied", path);
    if (got == 0) return 0;
    atomic_fetch_add(alive, (uint64_t)got);
  }
}

static int compare_file(const io *io, const unit_files *from, const unit_files *copy, size_t i,
                        char *bytes, _Atomic uint64_t *alive, err *e) {
  char source[FS_PATH_MAX], to[FS_PATH_MAX];
  int b = -1, rc = unit_files_path(from, &from->files[i], source, e);
  if (rc == 0) rc = unit_files_path(copy, &copy->files[i], to, e);
  if (rc < 0) return rc;
  int a = rc = unit_files_open(io, &from->files[i], source, e);
  if (rc >= 0) b = rc = unit_files_open(io, &copy->files[i], to, e);
  if (rc >= 0) rc = same_content(io, a, b, source, bytes, alive, e);
  if (a >= 0) io->close(io, a); /* only read */
  if (b >= 0) io->close(io, b);
  return rc;
}

static int compare(const io *io, const unit_files *from, const unit_files *copy,
                   _Atomic uint64_t *alive, err *e) {
  char *bytes = malloc((size_t)2 * COMPARE_BYTES);
  int rc = bytes ? 0 : err_set(e, ERR_NOMEM, "no memory to compare %s", from->base);
  for (size_t i = 0; rc == 0 && i < from->count; i++)
    if (from->files[i].type == MANIFEST_FILE) rc = compare_file(io, from, copy, i, bytes, alive, e);
  free(bytes);
  return rc;
}

/* Lists the copy. Its links lead elsewhere from there, and none is followed. Modes of directories
 * (ours stay writable, they are removed later) and times of directories and links are taken from
 * the original, since the copy does not keep them; so is what excludes left out of it, since the
 * copy has none of that. */
static int list_copy(const io *io, const char *to, const char *path, const rules *rules,
                     const unit_files *from, unit_files *out, err *e) {
  int rc = unit_files_scan_as(io, to, path, from->kind, rules, UNIT_FILES_PLAIN, out, e);
  if (rc < 0) return rc;
  if (out->count != from->count)
    return err_set(e, ERR_RETIRED, "the copy of %s in %s was changed", path, to);
  for (size_t i = 0; i < out->count; i++) {
    if (out->files[i].type == MANIFEST_FILE) continue;
    out->files[i].mode = from->files[i].mode;
    out->files[i].mtime_ns = from->files[i].mtime_ns;
  }
  out->mode = from->mode;
  out->mtime_ns = from->mtime_ns;
  out->left_out = from->left_out;
  out->left_here = from->left_here;
  return manifest_left_add(&out->left_names, &from->left_names)
             ? 0
             : err_set(e, ERR_NOMEM, "list the copy of %s: out of memory", path);
}

static int copy_all(const io *io, const char *path, const unit_files *from, const char *to,
                    const atomic_int *cancel, _Atomic uint64_t *alive, err *e) {
  char unit[FS_PATH_MAX], parent[FS_PATH_MAX];
  int rc = fs_join(unit, to, path, e);
  if (rc < 0) return rc;
  fs_parent(unit, parent);
  const char *base = from->kind == MATCH_DIR ? unit : parent;
  rc = fs_mkdirs(io, base, 0700, e);
  for (size_t i = 0; rc == 0 && i < from->count; i++) {
    if (cancel && atomic_load(cancel))
      rc = err_set(e, ERR_CANCELED, "copying %s was cancelled", path);
    else
      rc = copy_entry(io, from, &from->files[i], base, cancel, alive, e);
  }
  return rc;
}

int snapshot_take(const io *io, const char *root, const char *path, const rules *rules,
                  const unit_files *from, const char *to, bool twice, const atomic_int *cancel,
                  _Atomic uint64_t *alive, unit_files *out, err *e) {
  err why = {0};
  *out = (unit_files){0};
  int rc = copy_all(io, path, from, to, cancel, alive, &why);
  if (rc == 0) rc = list_copy(io, to, path, rules, from, out, &why);
  if (rc == 0 && twice) rc = compare(io, from, out, alive, &why);
  /* A change of the unit explains every other failure, and is no failure of ours. */
  if (rc != ERR_CANCELED) {
    err changed = {0};
    int same = unit_files_unchanged(io, root, path, rules, from, &changed);
    if (same < 0 && (rc == 0 || same == ERR_RETIRED)) {
      rc = same;
      why = changed;
    }
  }
  if (rc < 0) {
    unit_files_free(out);
    if (e) *e = why;
  }
  return rc;
}
