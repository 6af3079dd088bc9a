/* fs: files and directory trees: read, write durably, copy, publish, remove.
 *
 * "Durable" here means: the file was flushed (fsync), and so was every directory whose entry makes
 * it reachable. After a failed fsync a descriptor is never flushed again: the kernel may have
 * dropped the pages and report success; the file is written anew by whoever asked.
 * All paths are absolute or relative to the working directory. All calls are thread-safe. */
#ifndef PRIMS_FS_H
#define PRIMS_FS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"

enum { FS_PATH_MAX = 4096, FS_NAME_MAX = 256 };

/* Puts dir + "/" + name into `out` (room FS_PATH_MAX); an empty `dir` or `name` gives the other
 * one. ERR_LIMIT if it does not fit. */
int fs_join(char *out, const char *dir, const char *name, err *e);
/* Puts the parent of a path ("." for a bare name, "/" for the root's children) into `out` (room
 * FS_PATH_MAX). */
void fs_parent(const char *path, char *out);
/* Returns the part after the last slash; it points into `path`. */
const char *fs_base(const char *path);
/* Takes the first component off a path, with the slashes around it. "": it had none. False: it is too
 * long to be one. */
bool fs_take_name(char *path, char name[FS_NAME_MAX]);

/* Reads a whole file of at most `max` bytes into `out` (appended). ERR_LIMIT if it is larger. */
int fs_read(const io *io, const char *path, size_t max, buf *out, err *e);

/* Opens a regular file for reading, not through a link: a descriptor, or -errno (-EINVAL: it is
 * something else). */
int fs_open_regular(const io *io, const char *path);

/* Fills `to` from a descriptor: the number of bytes, short only at the end of the file, or -errno.
 */
ssize_t fs_fill(const io *io, int fd, void *to, size_t len);

/* Writes all bytes to a descriptor (short writes go on). */
int fs_write_all(const io *io, int fd, const void *data, size_t len, const char *path, err *e);

/* Makes the file `path` with this content, which must not exist (O_EXCL), and flushes it. The
 * directory is not flushed. Nothing is left behind on failure. */
int fs_write_new(const io *io, const char *path, const void *data, size_t len, mode_t mode, err *e);

/* Cleans up after a failure: removes what we made at `path`, file or tree. When that fails too, it
 * adds "PATH stays behind" and the reason to the story in `e`, whose code stays. */
void fs_discard(const io *io, const char *path, err *e);

/* Replaces `path` in one step (temporary sibling "<path>.<nonce>.tmp", flush, rename, flush the
 * directory): a reader, and a crash, see the old content or the new. */
int fs_replace(const io *io, const char *path, const void *data, size_t len, mode_t mode, err *e);

/* Put-if-absent for a finished, flushed file: gives `from` the name `to` by link(2), which exactly
 * one of many racers wins, removes `from`, flushes the directory of `to`. ERR_EXISTS if the name is
 * taken (then `from` is removed too). A lost NFS reply is recognised by the link count.
 * ERR_UNSUPPORTED where the file system has no link(2) (FUSE, FAT). After any other error `from`
 * may be left, and the name may have been made (the flush failed): who tries again finds it taken,
 * and compares. `from` must be on the same file system and known to nobody else. */
int fs_link_new(const io *io, const char *from, const char *to, err *e);
/* Does as fs_link_new without flushing the directory: a caller that links many files flushes it
 * once, later. */
int fs_link(const io *io, const char *from, const char *to, err *e);

/* Renames `from` (file or directory) to `to`, which must not exist, in one step, and flushes both
 * parents. It uses RENAME_NOREPLACE; where the file system does not know it (NFS, FUSE: EINVAL), a
 * check and a plain rename, which for a directory still fails on a non-empty target. ERR_EXISTS if
 * taken; ERR_UNSUPPORTED (sys EXDEV) across file systems. */
int fs_publish(const io *io, const char *from, const char *to, err *e);

/* Gives `from` (file or directory, flushed before by whoever made it) the name `to`; what was there
 * is removed. Both parents are flushed. *how says how (a static text): "published" if nothing was
 * there; "exchanged" in one step, so that a reader, and a crash, see the old or the new;
 * "stepped aside" where the file system cannot exchange: for a moment nothing is at `to`, and a
 * crash then leaves the old one beside it, as "<to>.<nonce>.old". When `to` is replaced, but the
 * old one cannot be removed, the error says where it is. ERR_UNSUPPORTED (sys EXDEV) across file
 * systems. */
int fs_replace_tree(const io *io, const char *from, const char *to, const char **how, err *e);

/* Makes a directory and its missing parents (mkdir -p). Each directory that is made is flushed into
 * its parent (and goes away again if that fails); those that are there already are not flushed. */
int fs_mkdirs(const io *io, const char *path, mode_t mode, err *e);

int fs_sync_dir(const io *io, const char *path, err *e);

/* Finds out which owner and mode the file system gives to a file (0600) that we make in the
 * directory: most keep who made it and its mode, but a network's may squash users, and FUSE and
 * CIFS give all files one owner and one mode. `dir` may be "" for the descriptor's own directory.
 * Nothing is left there. */
int fs_probe_owner(const io *io, int dirfd, const char *dir, struct stat *out, err *e);
/* True if we may have made a file with this owner. Asks the directory `dir` only if the owner is
 * not our own user. */
bool fs_is_ours(const io *io, const char *dir, uid_t owner);
/* True if the kernel shows users outside our user namespace as this owner. Root of a namespace has
 * no rights over files that such users may write and the namespace's maker may not. */
bool fs_is_outsider(const io *io, uid_t owner);

/* One entry of a listing. `name` is relative to the root of the walk. */
typedef struct fs_entry {
  const char *name;
  const struct stat *st; /* lstat */
} fs_entry;

/* Called before the children of a directory. Returns 0 to go on, FS_SKIP to leave out what is below
 * this directory, a negative ERR_* (with *e filled) to stop. */
enum { FS_SKIP = 1 };
typedef int fs_visit(void *ctx, const fs_entry *entry, err *e);

/* Visits everything below `root` (not the root itself), the names of each directory in byte order.
 * Entries that vanish in between are left out without an error; a root that is missing is
 * ERR_NOENT. Symbolic links are not followed, and a root that is one is ERR_INVAL: resolve it
 * before. ERR_LIMIT beyond 64 directories of depth or 64 MiB of names at a time. */
int fs_walk(const io *io, const char *root, fs_visit *visit, void *ctx, err *e);

/* Visits the children of one directory, as fs_walk does, and nothing below them. */
int fs_list(const io *io, const char *dir, fs_visit *visit, void *ctx, err *e);

/* The same for those that it `wants` (NULL: all) by their name and kind (a DT_* of readdir(3), which
 * may be DT_UNKNOWN for each). The others cost no system call. */
typedef bool fs_wants(void *ctx, const char *name, unsigned char kind);
int fs_list_some(const io *io, const char *dir, fs_wants *wants, fs_visit *visit, void *ctx,
                 err *e);

/* Flushes every directory below and including `root`, deepest first. */
int fs_sync_tree(const io *io, const char *root, err *e);

/* Copies one regular file (not through a link): reflink, else copy_file_range, else read and write;
 * holes need not survive. A source that is written meanwhile gives a mixture: compare it before and
 * after. `to` must not exist. Keeps mode and mtime. `flush`: fsync it. *cancel (may be NULL) is
 * looked at between chunks of 8 MiB (ERR_CANCELED), and *copied (may be NULL) grows by each. A
 * partial copy is removed on failure. */
int fs_copy_file(const io *io, const char *from, const char *to, bool flush,
                 const atomic_int *cancel, _Atomic uint64_t *copied, err *e);

/* Does as fs_copy_file from a descriptor that is open for reading at its beginning, and stays open;
 * `from` names it in texts. */
int fs_copy_open(const io *io, int in, const char *from, const char *to, bool flush,
                 const atomic_int *cancel, _Atomic uint64_t *copied, err *e);

/* Copies a tree (directories, regular files, symbolic links as links; anything else is ERR_INVAL)
 * to `to`, which must not exist. `from` may be a single file too. ERR_RETIRED if a part of it
 * vanishes meanwhile. Keeps modes and mtimes of all, directories too. `flush`: all
 * durable but the entry of `to` itself. A partial copy is removed on failure. */
int fs_copy_tree(const io *io, const char *from, const char *to, bool flush,
                 const atomic_int *cancel, err *e);

/* The choices of fs_copy_tree_as. A zeroed struct copies as fs_copy_tree does without flush and
 * cancel. */
typedef struct fs_copy_how {
  bool flush;
  /* Copies what links lead to, instead of the links. A link that leads nowhere is ERR_NOENT, one
   * that leads to a directory above itself ERR_INVAL. */
  bool follow;
  /* True for an entry that is not copied, nor anything below it; `path` is relative to `from`,
   * which itself is never asked about. NULL: everything is copied. */
  bool (*leave_out)(void *ctx, const char *path);
  void *ctx;
  const atomic_int *cancel; /* may be NULL */
  _Atomic uint64_t *copied; /* may be NULL: grows by the bytes of files */
} fs_copy_how;

int fs_copy_tree_as(const io *io, const char *from, const char *to, const fs_copy_how *how, err *e);

/* Moves a file or tree to `to`, which must not exist: by rename, or across file systems by a
 * flushed copy beside `to`, a rename, and a removal. Durable when it returns. */
int fs_move(const io *io, const char *from, const char *to, err *e);

/* Removes a file or tree; what is gone already is no error. Never follows links, never leaves the
 * tree: a mount point inside is ERR_INVAL, so is "/", "." or "..". ERR_CONFLICT if somebody adds to
 * it meanwhile. */
int fs_remove_tree(const io *io, const char *path, err *e);

/* Returns 0, or ERR_INVAL for a relative path that may lead out of where it is looked up, or that
 * has two spellings: empty, absolute, with an empty, "." or ".." component; ERR_LIMIT for one of
 * more than FS_PATH_MAX bytes, more than 64 components, or a component of more than 255 bytes.
 * Reads nothing. */
int fs_beneath_check(const char *path, err *e);
/* Checks the target of a symbolic link at `path`, both by name: ERR_INVAL unless it is relative,
 * has ".." only at its beginning, and no more of them than directories stand above the link. If all
 * links of a tree are so, none can lead out, whatever other links they lead through. */
int fs_beneath_check_link(const char *path, const char *target, err *e);

/* Opens `path` below the open directory `dirfd`; no part of the path may be a symbolic link, not
 * even the last. Returns the descriptor, or -errno (-ELOOP, -ENOTDIR where a link is). */
int fs_open_beneath(const io *io, int dirfd, const char *path, int flags, mode_t mode);

/* Facts that the kernel can tell us about a path's file system. */
typedef struct fs_kind {
  const char *name;    /* "ext4", "nfs", "fuse", ..., "unknown" (static) */
  bool remote_writers; /* another host may write without an event here: inotify must not be trusted
                        */
  bool keeps_flushed;  /* what was flushed is on a server's disk: no reboot of this host takes it */
} fs_kind;
/* A file system that we do not know counts as one with remote writers. */
int fs_kind_of(const char *path, fs_kind *out, err *e);

/* 1 if `path` (an existing directory) is a mount point or the root, 0 if not, or negative. */
int fs_is_mount_point(const char *path, err *e);

/* True if `inner` (which need not be there) is `outer` or lies below it, by whatever links and
 * mounts the two absolute paths lead there. A path that cannot be looked at is judged by its name
 * alone. */
bool fs_within(const io *io, const char *outer, const char *inner);

/* 1 if both (existing) paths are on one file system, so that a rename between them works. */
int fs_same_device(const io *io, const char *a, const char *b, err *e);

#endif
