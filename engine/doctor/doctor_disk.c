/* doctor_disk: what a directory needs of its file system: links, renames, flushes, locks, room. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "doctor_impl.h"
#include "prims/fs.h"
#include "prims/lock.h"

typedef struct trial {
  doctor *d;
  char top[FS_PATH_MAX];
} trial;

static bool path_of(const trial *t, const char *name, char out[FS_PATH_MAX]) {
  return fs_join(out, t->top, name, NULL) == 0;
}

/* ---- the calls ---- */

static void try_links(const trial *t) {
  char from[FS_PATH_MAX], to[FS_PATH_MAX];
  struct stat st = {0};
  const io *io = t->d->io;
  err why = {0};
  if (!path_of(t, "linked", from) || !path_of(t, "link", to)) return;
  int rc = fs_write_new(io, from, "x", 1, 0600, &why);
  if (rc == 0) rc = io->link(io, AT_FDCWD, from, AT_FDCWD, to);
  int again = rc == 0 ? io->link(io, AT_FDCWD, from, AT_FDCWD, to) : 0;
  if (rc == 0 && io->lstat(io, AT_FDCWD, from, &st) == 0 && again == -EEXIST) {
    doctor_say(t->d, "links", STORE_FINE, "",
               "hard links work, and a second one is refused: of two writers one wins%s",
               st.st_nlink == 2 ? "" : " (their count is hidden, which does no harm)");
    return;
  }
  doctor_say(t->d, "links", STORE_FAULT,
             "where nobody else ever writes to this target, give `single_writer`; else take a file "
             "system with hard links",
             "hard links do not work here (%s): of two writers both could win",
             rc < 0 ? strerror(-rc) : "a second one of that name was made");
}

static void try_renames(const trial *t) {
  char from[FS_PATH_MAX], to[FS_PATH_MAX];
  const io *io = t->d->io;
  err why = {0};
  if (!path_of(t, "renamed", from) || !path_of(t, "shown", to)) return;
  int rc = fs_mkdirs(io, from, 0700, &why);
  if (rc == 0) rc = fs_publish(io, from, to, &why);
  if (rc == 0) rc = fs_sync_tree(io, to, &why);
  if (rc == 0) rc = fs_sync_dir(io, t->top, &why);
  if (rc == 0)
    doctor_say(t->d, "rename", STORE_FINE, "",
               "a directory is renamed in one step and flushed: a checkpoint shows whole or not at "
               "all");
  else
    doctor_fault(t->d, "rename", &why, "a directory cannot be shown in one step",
                 "take another file system");
}

static void try_locks(const trial *t, bool remote) {
  char path[FS_PATH_MAX];
  lock first = {-1}, second = {-1};
  err why = {0};
  if (!path_of(t, "lock", path)) return;
  int rc = lock_take(path, true, &first, &why);
  int other = rc == 0 ? lock_take(path, true, &second, NULL) : 0;
  lock_drop(&second);
  lock_drop(&first);
  if (rc == 0 && other == ERR_HELD)
    doctor_say(t->d, "locks", STORE_FINE, "", "locks of open files hold%s",
               remote ? "; whether they hold between hosts is not shown by this: across hosts the "
                        "log decides"
                      : "");
  else
    doctor_say(t->d, "locks", STORE_WARNING,
               "a target needs none; put state directories (`state`) on another file system",
               "locks do not work here: %s", rc < 0 ? why.text : "a second one was given, too");
}

static void try_room(doctor *d) {
  enum { LITTLE = 10 };
  struct statvfs v;
  if (statvfs(d->dir, &v) < 0) return;
  double free_gb = (double)v.f_bavail * (double)v.f_frsize / 1e9;
  double whole_gb = (double)v.f_blocks * (double)v.f_frsize / 1e9;
  bool little = v.f_blocks && v.f_bavail * LITTLE < v.f_blocks;
  bool names = v.f_files == 0 || v.f_favail * 100 > v.f_files;
  doctor_say(d, "space", little || !names ? STORE_WARNING : STORE_FINE,
             little || !names ? "make room, or keep less by a policy" : "",
             "%.1f of %.1f GB are free%s; a save stands beside the older ones until these go",
             free_gb, whole_gb, names ? "" : ", but hardly any names (inodes)");
}

void doctor_try_disk(doctor *d) {
  trial t = {.d = d};
  fs_kind kind = {.name = "unknown", .remote_writers = true};
  err why = {0};
  fs_kind_of(d->dir, &kind, NULL);
  doctor_say(d, "disk", kind.remote_writers ? STORE_NOTE : STORE_FINE, "", "%s is on %s%s", d->dir,
             kind.name,
             kind.remote_writers
                 ? ", which may be another host's: its own caches decide when others see "
                   "what is written"
                 : "");
  if (strcmp(kind.name, "tmpfs") == 0 || strcmp(kind.name, "ramfs") == 0)
    doctor_say(d, "disk", STORE_WARNING, "take a disk or a bucket for what has to stay",
               "that is memory: all of it is gone when this machine restarts");
  int rc = fs_join(t.top, d->dir, d->base, &why);
  if (rc == 0) rc = fs_mkdirs(d->io, t.top, 0700, &why);
  if (rc == 0) {
    try_links(&t);
    try_renames(&t);
    try_locks(&t, kind.remote_writers);
  }
  try_room(d);
}

/* ---- what it made ---- */

static bool is_there(const doctor *d, const char *path) {
  struct stat st;
  return d->io->lstat(d->io, AT_FDCWD, path, &st) == 0;
}

void doctor_note_dirs(const doctor *d, names *made) {
  char path[FS_PATH_MAX];
  if (!d->dir || fs_join(path, d->dir, ".ckpt/tmp", NULL) < 0) return;
  while (*path && !is_there(d, path) && names_add(made, path)) fs_parent(path, path);
}

void doctor_drop_dirs(const doctor *d, const names *made) {
  for (size_t i = 0; i < made->count; i++)
    d->io->unlink(d->io, AT_FDCWD, made->at[i], AT_REMOVEDIR);
}
