#include "live_file.h"

#include <sys/mman.h>

#include "prims/fs_live.h"

static bool is_as_listed(const unit_file *f, const struct stat *st) {
  return st->st_ino == f->inode && st->st_dev == f->device && (uint64_t)st->st_size == f->size &&
         io_time_ns(st->st_mtim) == f->mtime_ns && io_time_ns(st->st_ctim) == f->ctime_ns;
}

int live_file_open(const io *io, unit_file *f, const char *path, bool *changed, err *e) {
  struct stat st;
  bool young; /* who listed the tree has waited until a file that is as listed is not */
  int fd = unit_files_open(io, f, path, e);
  if (fd >= 0) fd = fs_live_look(io, fd, path, &st, &young, e);
  if (fd < 0) return fd;
  *changed = !is_as_listed(f, &st);
  f->mode = st.st_mode & 07777;
  f->size = (uint64_t)st.st_size;
  f->inode = st.st_ino;
  f->device = st.st_dev;
  f->mtime_ns = io_time_ns(st.st_mtim);
  f->ctime_ns = io_time_ns(st.st_ctim);
  return fd;
}

static int check_block(const io *io, const unit_file *f, hash_kind hash, int fd, const char *path,
                       size_t i, char *bytes, err *e) {
  uint64_t at = (uint64_t)i * HASH_BLOCK, left = f->size - at;
  size_t want = left < HASH_BLOCK ? (size_t)left : HASH_BLOCK;
  digest found;
  ssize_t got = fs_live_read(io, fd, bytes, want, at);
  if (unit_files_gone((int)got))
    return err_set(e, ERR_RETIRED, "%s vanished while it was read", path);
  if (got < 0) return err_sys(e, (int)got, "read %s", path);
  int rc = (size_t)got < want ? ERR_RETIRED : hash_bytes(hash, bytes, want, &found, e);
  if (rc == ERR_RETIRED || (rc == 0 && !digest_equal(&found, &f->blocks[i])))
    return err_set(e, ERR_RETIRED, "%s was rewritten while it was read", path);
  return rc;
}

static int read_again(const io *io, const unit_file *f, hash_kind hash, int fd, const char *path,
                      const atomic_int *cancel, err *e) {
  size_t room = f->size < HASH_BLOCK ? (size_t)f->size : HASH_BLOCK;
  if (room == 0) return 0;
  char *bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return err_set(e, ERR_NOMEM, "compare %s: out of memory", path);
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < hash_block_count(f->size); i++) {
    rc = check_block(io, f, hash, fd, path, i, bytes, e);
    if (rc == 0 && cancel && atomic_load(cancel)) rc = err_set(e, ERR_CANCELED, "cancelled");
  }
  munmap(bytes, room);
  return rc;
}

int live_file_prove(const io *io, const unit_file *f, hash_kind hash, int fd, const char *path,
                    bool again, const atomic_int *cancel, err *e) {
  const struct stat before = {
      .st_size = (off_t)f->size,
      .st_mtim = {f->mtime_ns / 1000000000, f->mtime_ns % 1000000000},
      .st_ctim = {f->ctime_ns / 1000000000, f->ctime_ns % 1000000000},
  };
  int changed = fs_live_changed(io, fd, &before, path, e);
  if (changed < 0) return changed;
  return changed || again ? read_again(io, f, hash, fd, path, cancel, e) : 0;
}
