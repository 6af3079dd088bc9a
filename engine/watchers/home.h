/* home: the place beside a watched directory, "<dir>.ckpt", at which those that watch it meet,
 * wherever each of them has its state: the lock of its owner, and what each of them has saved.
 *
 *   <dir>.ckpt/dir.lock      owner.h
 *   <dir>.ckpt/watchers/     watchers.h
 *
 * It is the default state directory, too. */
#ifndef WATCHERS_HOME_H
#define WATCHERS_HOME_H

#include <stdbool.h>

#include "base/err.h"
#include "base/io.h"
#include "prims/fs.h"

typedef struct home {
  char path[FS_PATH_MAX]; /* "": there can be none, and */
  char why[400];          /* says why */
  bool others;            /* none for us: those of another user may meet there all the same */
} home;

/* Finds the home of `dir` (absolute, without links), and makes it if it is absent. `state` and
 * `target` are absolute paths, too; `target` may be NULL. There is none beside a mount point: who
 * sees `dir` elsewhere, sees another directory there. */
void home_find(const io *io, const char *dir, const char *state, const char *target, home *out);

/* Checks that a directory without a journal has only entries that we put there: ERR_INVAL, and
 * `stranger` (room 256) has the first other name. */
int home_check_entries(const io *io, const char *path, char *stranger, err *e);

#endif
