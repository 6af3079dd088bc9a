#include "pointer_files.h"

#include <fcntl.h>
#include <string.h>

#include "prims/fs.h"
#include "prims/match.h"

void pointer_file_drop(pointer_file *f) {
  buf_free(&f->text);
  names_free(&f->says);
}

/* ---- where it leads ---- */

static bool same_dir(const io *io, const char *a, const char *b) {
  char path[FS_PATH_MAX];
  struct stat x, y;
  if (strcmp(a, b) == 0) return true;
  if (fs_join(path, a, ".", NULL) < 0 || io->lstat(io, AT_FDCWD, path, &x) < 0) return false;
  return io->lstat(io, AT_FDCWD, b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool pointer_leads_out(const pointer_place *at, const char *spelt) {
  char parent[FS_PATH_MAX], dir[FS_PATH_MAX];
  if (*spelt != '/') return false;
  if (strlen(spelt) >= sizeof parent || fs_join(dir, at->root, at->group, NULL) < 0) return true;
  fs_parent(spelt, parent);
  return !same_dir(at->io, parent, dir);
}

bool pointer_unit(const pointer_place *at, const char *spelt, match_unit *out) {
  char base[FS_PATH_MAX], path[FS_PATH_MAX];
  return pointers_base(spelt, base, sizeof base) && fs_join(path, at->group, base, NULL) == 0 &&
         (rules_match(at->rules, path, true, out) || rules_match(at->rules, path, false, out));
}

bool pointer_names_unit(const pointer_place *at, const char *spelt) {
  match_unit ignored;
  return pointer_unit(at, spelt, &ignored);
}

/* A relative link leads to its own directory if it is a bare name. */
static bool link_leads_out(const pointer_place *at, const char *target) {
  while (target[0] == '.' && target[1] == '/') target += 2;
  return *target == '/' ? pointer_leads_out(at, target) : strchr(target, '/') != NULL;
}

/* ---- reading ---- */

static bool is_saved(const pointer_place *at, const char *name) {
  for (size_t i = 0; at->globs && at->globs[i]; i++)
    if (match_glob(at->globs[i], name)) return true;
  return false;
}

static int read_link(const pointer_place *at, const char *path, pointer_file *out, err *e) {
  char target[FS_PATH_MAX];
  ssize_t len = at->io->readlink(at->io, AT_FDCWD, path, target, sizeof target - 1);
  if (len <= 0) return 0;
  target[len] = 0;
  if (!pointer_names_unit(at, target) || link_leads_out(at, target)) return 0;
  out->link = true;
  out->row = pointers_link();
  buf_add(&out->text, target, (size_t)len);
  return pointers_read(out->row, target, (size_t)len, &out->says, e);
}

static int guess(const pointer_place *at, pointer_file *out, err *e) {
  const pointer_row *row = pointers_guess(out->text.data, out->text.len);
  int rc = row ? pointers_read(row, out->text.data, out->text.len, &out->says, e) : 0;
  if (rc == 0 && out->says.count && pointer_names_unit(at, out->says.at[0])) out->row = row;
  return rc;
}

int pointer_file_read(const pointer_place *at, const char *name, const char *path,
                      pointer_file *out, err *e) {
  enum { WORD_MAX = 4096 };
  const io *io = at->io;
  const pointer_row *row = pointers_row(name);
  *out = (pointer_file){0};
  buf_init(&out->text, POINTERS_BYTES_MAX + 1);
  if ((row && !pointers_lead(row)) || io->lstat(io, AT_FDCWD, path, &out->st) < 0) return 0;
  if (S_ISLNK(out->st.st_mode)) return read_link(at, path, out, e);
  off_t most = row ? POINTERS_BYTES_MAX : is_saved(at, name) ? WORD_MAX : -1;
  if (!S_ISREG(out->st.st_mode) || out->st.st_size > most ||
      fs_read(io, path, (size_t)most, &out->text, NULL) < 0)
    return 0;
  if (!row) return guess(at, out, e);
  out->row = row;
  return pointers_read(row, out->text.data, out->text.len, &out->says, e);
}
