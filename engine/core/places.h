/* places: the paths and names of one run: the watched directory, the state directory, the target,
 * the socket, the run's id. All that can be wrong with them is found here, before the child starts
 * and, but for what only a mkdir can tell, before anything is made. */
#ifndef CORE_PLACES_H
#define CORE_PLACES_H

#include <stdbool.h>

#include "base/err.h"
#include "base/io.h"
#include "base/uri.h"
#include "core/identity.h"
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
  char socket[IDENTITY_SOCKET_MAX]; /* "": none; see places_socket() */
  char state_id[IDENTITY_ID_MAX];   /* what this run's processes carry; "": not known */
  char launch[IDENTITY_NAME_MAX];   /* of places_find(): of its newest start; "": not known */
  bool held;                        /* of places_find(): some run has the state directory */
  /* Of places_find(): where the newest start was, if not here on this boot; else "". */
  char host[IDENTITY_NAME_MAX], boot[IDENTITY_NAME_MAX];
  char waits[IDENTITY_TEXT_MAX]; /* of places_find(): what the run that has it waits for; or "" */
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

/* Makes the watched and the state directory if they are absent. ERR_INVAL if target, state and
 * watched directory lie in one another, whatever links lead there, or if no state directory can be
 * beside `dir` (a mount point, a parent that cannot be written) and none was named. ERR_ACCESS if
 * everybody may write in the state directory. The socket is still to be placed. */
int places_open(const io *io, const places_options *options, places *out, err *e);
/* May some other user write in the state directory, or is it another's? */
bool places_shared(const io *io, const places *p);

/* The same, and makes nothing: only directory, state, target and run id are filled in. */
int places_look(const io *io, const places_options *options, places *out, err *e);

/* Where this run, which is known as `id`, is to listen: `socket`, where nobody else does. In order:
 * $XDG_RUNTIME_DIR/ckpt-lua, /tmp/ckpt-lua-UID, the state directory; the first that is private, can
 * be written and leads to a path that an address has room for. Where it listened before is kept if
 * that can be used. ERR_ACCESS and "" if there is none, with the reasons. */
int places_socket(const io *io, const identity *id, places *p, err *e);

/* Fills only `state`, and where its run listens, what it is known by, and its launch ("" if none
 * was there on this boot), else where that was, and whether any run has that state just now. `dir`
 * may be NULL if `state` is not; `state` NULL: "<dir>.ckpt". Makes nothing. ERR_ACCESS if it is
 * another user's. */
int places_find(const io *io, const char *dir, const char *state, places *out, err *e);

/* Who we are, for a term. `launch` NULL: a fresh nonce. By what the machine and the state directory
 * are known is still to be added, when `state_id` is. */
int places_writer(const io *io, const places *p, const char *launch, runlog_writer *out, err *e);
int places_name_writer(const places *p, runlog_writer *out, err *e);

#endif
