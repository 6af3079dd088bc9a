#include "io_hook.h"

#include "io_fault.h"

static io hooked;
static io_hook_fn *hook;
static void *hook_ctx;
static atomic_long count;

static const io *inner(void) {
  long call = atomic_fetch_add(&count, 1) + 1;
  if (hook) hook(hook_ctx, call);
  return io_unflushed();
}

static int hook_open(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  (void)io;
  return inner()->open(io_unflushed(), dirfd, path, flags, mode);
}

static ssize_t hook_read(const io *io, int fd, void *to, size_t len) {
  (void)io;
  return inner()->read(io_unflushed(), fd, to, len);
}

static ssize_t hook_pread(const io *io, int fd, void *to, size_t len, off_t at) {
  (void)io;
  return inner()->pread(io_unflushed(), fd, to, len, at);
}

static int hook_fstat(const io *io, int fd, struct stat *out) {
  (void)io;
  return inner()->fstat(io_unflushed(), fd, out);
}

static int hook_lstat(const io *io, int dirfd, const char *path, struct stat *out) {
  (void)io;
  return inner()->lstat(io_unflushed(), dirfd, path, out);
}

static ssize_t hook_readlink(const io *io, int dirfd, const char *path, char *to, size_t len) {
  (void)io;
  return inner()->readlink(io_unflushed(), dirfd, path, to, len);
}

static ssize_t hook_getdents(const io *io, int fd, void *to, size_t len) {
  (void)io;
  return inner()->getdents(io_unflushed(), fd, to, len);
}

const io *io_hook_set(io_hook_fn *fn, void *ctx) {
  hook = fn;
  hook_ctx = ctx;
  atomic_store(&count, 0);
  hooked = *io_unflushed();
  hooked.open = hook_open;
  hooked.read = hook_read;
  hooked.pread = hook_pread;
  hooked.fstat = hook_fstat;
  hooked.lstat = hook_lstat;
  hooked.readlink = hook_readlink;
  hooked.getdents = hook_getdents;
  return &hooked;
}

long io_hook_count(void) {
  return atomic_load(&count);
}
