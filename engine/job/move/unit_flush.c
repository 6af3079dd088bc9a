#include "unit_flush.h"

#include <fcntl.h>
#include <string.h>

#include "job/move/unit_files.h"
#include "prims/fs.h"

static int flush_file(const io *io, const unit_files *t, const unit_file *f, dev_t device, err *e) {
  char path[FS_PATH_MAX];
  struct stat st;
  int rc = unit_files_path(t, f, path, e);
  if (rc < 0) return rc;
  int fd = unit_files_open(io, f, path, e);
  if (fd < 0) return fd;
  rc = io->fstat(io, fd, &st);
  if (rc < 0)
    rc = err_sys(e, rc, "look at %s", path);
  else if (st.st_dev != device)
    rc = err_set(e, ERR_UNSUPPORTED, "%s is on another file system", path);
  else if ((rc = io->fsync(io, fd)) < 0)
    rc = err_sys(e, rc, "flush %s", path);
  io->close(io, fd); /* nothing was written by it */
  return rc;
}

/* A name is there after a crash if its directory was flushed, and so on upwards. */
static int flush_names(const io *io, const char *root, const char *path, match_kind kind, err *e) {
  char at[FS_PATH_MAX], full[FS_PATH_MAX];
  int rc = fs_join(full, root, path, e);
  if (rc == 0 && kind == MATCH_DIR) rc = fs_sync_tree(io, full, e);
  for (fs_parent(path, at); rc == 0 && strcmp(at, ".") != 0; fs_parent(full, at)) {
    memcpy(full, at, sizeof full);
    char dir[FS_PATH_MAX];
    rc = fs_join(dir, root, full, e);
    if (rc == 0) rc = fs_sync_dir(io, dir, e);
  }
  return rc < 0 ? rc : fs_sync_dir(io, root, e);
}

int unit_flush(const io *io, const char *root, const char *path, match_kind kind,
               const rules *rules, err *e) {
  unit_files t = {0};
  struct stat top;
  int rc = io->lstat(io, AT_FDCWD, root, &top);
  if (rc < 0) return err_sys(e, rc, "look at %s", root);
  rc = unit_files_scan(io, root, path, kind, rules, &t, e);
  for (size_t i = 0; rc == 0 && i < t.count; i++)
    if (t.files[i].type == MANIFEST_FILE) rc = flush_file(io, &t, &t.files[i], top.st_dev, e);
  unit_files_free(&t);
  return rc < 0 ? rc : flush_names(io, root, path, kind, e);
}
