/* io: the vtable behind which the file system, the clocks and the random numbers stand.
 *
 * Everything that the engine does to a file goes through one of these, so that a test can fail call
 * N, run on a simulated tree, or replay a recording. Each call returns >= 0, or -errno (the
 * variable errno is never looked at). Paths are relative to `dirfd` (AT_FDCWD for the working
 * directory). A vtable is constant; `ctx` is its own. All calls may come from any thread. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef enum io_clock {
  IO_WALL, /* CLOCK_REALTIME: for what people read; no decision hangs on it alone */
  IO_MONO, /* CLOCK_BOOTTIME: durations; goes on while the machine sleeps */
} io_clock;

/* What another host has changed on a network file system is seen by open, lstat and getdents: that of
 * the system asks its server, and does not answer from memory. */
typedef struct io io;
struct io {
  void *ctx;
  int (*open)(const io *, int dirfd, const char *path, int flags, mode_t mode);
  /* Opens a path of which no part may be a symbolic link, and which may not lead out of the
   * directory: -ELOOP, -EXDEV; -ENOSYS where the kernel cannot. It is NULL where this io cannot.
   * Call fs_open_beneath() instead, which then walks the path itself. */
  int (*open_beneath)(const io *, int dirfd, const char *path, int flags, mode_t mode);
  int (*close)(const io *, int fd);
  ssize_t (*read)(const io *, int fd, void *to, size_t len);
  ssize_t (*pread)(const io *, int fd, void *to, size_t len, off_t at);
  ssize_t (*write)(const io *, int fd, const void *from, size_t len);
  int (*fsync)(const io *, int fd);
  int (*fdatasync)(const io *, int fd);
  int (*syncfs)(const io *, int fd); /* flushes the whole file system that the file is on */
  int (*ftruncate)(const io *, int fd, off_t size);
  int (*fstat)(const io *, int fd, struct stat *out);
  int (*lstat)(const io *, int dirfd, const char *path, struct stat *out);
  /* Tells when the open file was made; -ENODATA where its file system does not say. It is NULL
   * where this io cannot tell. */
  int (*birth)(const io *, int fd, int64_t *ns);
  int (*mkdir)(const io *, int dirfd, const char *path, mode_t mode);
  int (*rename)(const io *, int fromdir, const char *from, int todir, const char *to,
                unsigned flags); /* renameat2 */
  int (*link)(const io *, int fromdir, const char *from, int todir, const char *to);
  int (*unlink)(const io *, int dirfd, const char *path, int flags);
  int (*symlink)(const io *, const char *target, int dirfd, const char *path);
  ssize_t (*readlink)(const io *, int dirfd, const char *path, char *to, size_t len);
  int (*chmod)(const io *, int fd, mode_t mode);
  int (*utimens)(const io *, int dirfd, const char *path, const struct timespec times[2],
                 int flags);
  /* Reads the next chunk of raw struct linux_dirent64 records of an open directory; 0 at the
   * end. */
  ssize_t (*getdents)(const io *, int fd, void *to, size_t len);
  /* Makes the empty file `to` share the blocks of `from` (FICLONE); -EOPNOTSUPP and its kind where
   * the file system cannot. */
  int (*clone)(const io *, int from, int to);
  ssize_t (*copy_range)(const io *, int from, int to, size_t len);
  int64_t (*now)(const io *, io_clock clock); /* nanoseconds */
  void (*sleep)(const io *, int64_t ns);
  int (*random)(const io *, void *to, size_t len);
  /* "NAME=VALUE", ended by NULL: laid over the environment of the process for what is opened with
   * this io. NULL: nothing is. */
  const char *const *environment;
};

/* The io of the running system. It repeats calls that a signal interrupts, but not close. */
const io *io_system(void);

/* Returns the value of a variable, in what is laid over the environment or else in that; NULL: it is
 * not set. */
const char *io_variable(const io *io, const char *name);
/* Makes a copy of an io with this laid over the environment, in memory for secrets; give it back with
 * io_lay_free(). -EINVAL: one has no "NAME="; -ENOMEM. */
int io_lay(const io *base, const char *const *environment, io *out);
void io_lay_free(io *laid); /* also of one that is all zeros */
/* The same of what is laid over it alone. */
const char *io_variable_laid(const io *io, const char *name);

/* Gives a descriptor another number if it has 0, 1 or 2. A host may have closed its standard
 * streams: a file that got such a number would receive what everybody prints, or be in the way of a
 * program that we start. Returns the new number, or -errno (then `fd` is closed); a negative `fd`
 * comes back as it is. */
int io_move_up(const io *io, int fd);

/* Returns how far the clocks on this host's walls are ahead of UTC at a time (in ns since 1970), in
 * seconds: by TZ, else by /etc/localtime. Summer time is in it. */
int32_t io_utc_offset(int64_t wall_ns);

/* A fresh random identifier: 32 lower-case hex digits and a NUL. Returns 0 or -errno. */
int io_nonce(const io *io, char out[33]);

/* Converts to nanoseconds since 1970. File systems know years that do not fit (from 2262 on, before
 * 1677): those become the largest or smallest number. */
static inline int64_t io_time_ns(struct timespec t) {
  int64_t ns;
  if (!__builtin_mul_overflow((int64_t)t.tv_sec, 1000000000, &ns) &&
      !__builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
    return ns;
  return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
}

#endif
