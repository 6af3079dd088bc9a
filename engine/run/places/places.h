/* places: the paths and names of one run: the watched directory, the state directory, the target,
 * the socket, the run's id.
 *
 * Every fault in them is found here, before the child starts and, except for faults that only a
 * mkdir can show, before anything is made. */
#ifndef RUN_PLACES_H
#define RUN_PLACES_H

#include <stdbool.h>

#include "base/err.h"
#include "base/io.h"
#include "base/uri.h"
#include "run/start/identity.h"
#include "commit/log/runlog.h"
#include "prims/fs.h"
#include "prims/fs_held.h"

typedef struct places {
  char dir[FS_PATH_MAX]; /* absolute, without links */
  char state[FS_PATH_MAX];
  char staging[FS_PATH_MAX];    /* <state>/staging */
  char quarantine[FS_PATH_MAX]; /* <state>/quarantine */
  char journal[FS_PATH_MAX];
  char lock[FS_PATH_MAX];
  char socket[IDENTITY_SOCKET_MAX]; /* "": none; see places_socket() */
  char state_id[IDENTITY_ID_MAX];   /* carried by this run's processes; "": not known */
  char launch[IDENTITY_NAME_MAX];   /* set by places_find(): of its newest start; "": not known */
  bool held;                        /* set by places_find(): some run has the state directory */
  /* These are set by places_find(): the host and boot of the newest start, if not here on this
   * boot; else "". */
  char host[IDENTITY_NAME_MAX], boot[IDENTITY_NAME_MAX];
  char waits[IDENTITY_TEXT_MAX]; /* set by places_find(): why the run that has it waits; or "" */
  char run_id[RUNLOG_ID_MAX];
  char former[RUNLOG_ID_MAX];    /* the run's id as 1.0 made it, with the flags; "": it is that */
  char flags[RUNLOG_DIGEST_MAX]; /* digest of the command; "": the id says as much */
  uri target;
  char target_text[URI_MAX + 300];                /* the place: what is compared */
  char target_way[URI_MAX + URI_QUERY_MAX + 300]; /* with its query: what opens it */
} places;

typedef struct places_options {
  const char *dir, *to;
  const char *state;   /* NULL: "<dir>.ckpt" */
  const char *run_id;  /* NULL: made from program and dir */
  const char *command; /* with its flags; NULL: none */
  const char *program; /* what the command runs, without flags; NULL: the command stands for it */
} places_options;

/* Makes the watched and the state directory if they are absent. ERR_INVAL if target, state and
 * watched directory lie in one another, whatever links lead there, or if no state directory can be
 * beside `dir` (a mount point, a parent that cannot be written) and none was named. ERR_ACCESS if
 * everybody may write in the state directory. The socket is still to be placed. */
int places_open(const io *io, const places_options *options, places *out, err *e);
/* True if some other user may write in the state directory, or it is another's. */
bool places_shared(const io *io, const places *p);

/* Does the same, and makes nothing: only directory, state, target and run id are filled in. */
int places_look(const io *io, const places_options *options, places *out, err *e);

/* Finds the `socket` on which this run, which is known as `id`, is to listen and nobody else does.
 * It tries $XDG_RUNTIME_DIR/ckpt-lua, /tmp/ckpt-lua-UID, the state directory, and takes the first
 * that is private, can be written and leads to a path that an address has room for. Its former
 * socket is kept if that can be used. ERR_ACCESS and "" if there is none, with the reasons. */
int places_socket(const io *io, const identity *id, places *p, err *e);

/* Fills in only `state`, and the socket, id and launch of its run ("" if there was none on this
 * boot), else where that was, and whether any run has that state just now. `dir` may be NULL if
 * `state` is not; `state` NULL: "<dir>.ckpt". Makes nothing. ERR_ACCESS if it is another user's. */
int places_find(const io *io, const char *dir, const char *state, places *out, err *e);

/* Describes this process as the writer of a term. `launch` NULL: a fresh nonce.
 * places_name_writer() adds the digests of the machine's and the state directory's ids, when
 * `state_id` is set. */
int places_writer(const io *io, const places *p, const char *launch, runlog_writer *out, err *e);
int places_name_writer(const places *p, runlog_writer *out, err *e);

#endif
