/* places: the paths and names of one run: the watched directory, the state directory, the target,
 * the socket, the run's id. All that can be wrong with them is found here, before the child starts
 * and, but for what only a mkdir can tell, before anything is made. */
#ifndef CORE_PLACES_H
#define CORE_PLACES_H

#include <stdbool.h>

#include "base/err.h"
#include "base/io.h"
#include "base/uri.h"
#include "core/runlog.h"
#include "prims/fs.h"
#include "prims/fs_held.h"

typedef struct places {
  char dir[FS_PATH_MAX]; /* absolute, without links */
  char state[FS_PATH_MAX];
  char staging[FS_PATH_MAX];    /* <state>/staging */
  char quarantine[FS_PATH_MAX]; /* <state>/quarantine */
  char journal[FS_PATH_MAX];
  char lock[FS_PATH_MAX];
  char socket[FS_PATH_MAX];
  char run_id[RUNLOG_ID_MAX];
  uri target;
  char target_text[URI_MAX + 300];
} places;

typedef struct places_options {
  const char *dir, *to;
  const char *state;   /* NULL: "<dir>.ckpt" */
  const char *run_id;  /* NULL: from command and dir */
  const char *command; /* NULL: dir alone */
} places_options;

/* Makes the watched and the state directory if they are absent, and the private directory of the
 * socket. ERR_INVAL if target, state and watched directory lie in one another, whatever links lead
 * there, or if no state directory can be beside `dir` (a mount point, a parent that cannot be
 * written) and none was named. ERR_ACCESS if the socket's directory is open to others, or everybody
 * may write in the state directory. */
int places_open(const io *io, const places_options *options, places *out, err *e);
/* May some other user write in the state directory, or is it another's? */
bool places_shared(const io *io, const places *p);

/* The same, and makes nothing: only directory, state, target and run id are filled in. */
int places_look(const io *io, const places_options *options, places *out, err *e);

/* Fills only `state` and `socket`: where the run that watches `dir` keeps its state and listens.
 * `dir` may be NULL if `state` is not; `state` NULL: "<dir>.ckpt". Makes nothing but the private
 * directory of the sockets. */
int places_find(const io *io, const char *dir, const char *state, places *out, err *e);

/* Who we are, for a term. `launch` NULL: a fresh nonce. */
int places_writer(const io *io, const places *p, const char *launch, runlog_writer *out, err *e);

#endif
