#include "written.h"

#include <string.h>

#include "prims/fs.h"

struct open_file {
  const proc_writers *writers;
  const char *dir, *stem;
  bool found;
};

static int ask_member(void *ctx, const fs_entry *entry, err *e) {
  struct open_file *f = ctx;
  size_t len = strlen(f->stem);
  char path[FS_PATH_MAX];
  if (strncmp(entry->name, f->stem, len) != 0 || entry->name[len] != '.') return 0;
  int rc = fs_join(path, f->dir, entry->name, e);
  if (rc == 0) f->found = f->found || proc_writers_has(f->writers, path);
  return rc;
}

int written(proc_writers **writers, const io *io, const char *root, const char *path,
            match_kind kind, err *e) {
  char full[FS_PATH_MAX], dir[FS_PATH_MAX];
  int rc = fs_join(full, root, path, e);
  if (rc < 0) return rc;
  if (!*writers) *writers = proc_writers_take(root);
  if (!*writers) return err_set(e, ERR_NOMEM, "look who writes below %s: out of memory", root);
  if (kind != MATCH_GROUP) return proc_writers_has(*writers, full);
  fs_parent(full, dir); /* a group's own path names no file */
  struct open_file f = {.writers = *writers, .dir = dir, .stem = fs_base(full)};
  rc = fs_list(io, dir, ask_member, &f, e);
  return rc < 0 ? rc : f.found;
}
