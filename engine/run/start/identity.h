/* identity: the name of a run on its machine: a random id in its state directory.
 *
 * A path does not identify it: containers have the same ones, and a copy or an image of a directory
 * has all its files. So <state>/identity says for which directory (device, inode, birth) and on
 * which boot its id was drawn. Where one of them differs, the id is somebody else's, and a new one
 * is drawn. Processes of the run carry the id (CKPT_STATE_ID), and the run's socket is found
 * through this file. */
#ifndef RUN_START_IDENTITY_H
#define RUN_START_IDENTITY_H

#include "base/err.h"
#include "base/io.h"
#include "prims/lock.h"

enum {
  IDENTITY_ID_MAX = 33,
  IDENTITY_SOCKET_MAX = 108,
  IDENTITY_NAME_MAX = 128,
  IDENTITY_TEXT_MAX = 256
};

typedef struct identity {
  char id[IDENTITY_ID_MAX];
  char former[IDENTITY_ID_MAX];     /* the id that was there and is not ours; "": none was */
  char socket[IDENTITY_SOCKET_MAX]; /* the socket on which it listens; "": none */
  char launch[IDENTITY_NAME_MAX];   /* the launch of its newest start; "": not known */
  char host[IDENTITY_NAME_MAX];     /* the host of that start */
  char boot[IDENTITY_NAME_MAX];     /* set by identity_find() */
  char waits[IDENTITY_TEXT_MAX];    /* the reason why that start waits, if it is alive; "": it does
                                     * not */
} identity;

/* For the holder of `state`'s lock: gives the identity that is there if it was drawn for this very
 * directory on this boot, else a new one. Writes nothing. ERR_CONFLICT if the lock that is held is
 * not that of the directory which stands there now. */
int identity_take(const io *io, const char *state, const lock *held, const char *boot,
                  identity *out, err *e);
int identity_write(const io *io, const char *state, const char *boot, const identity *id, err *e);

/* For others that look for the run. ERR_NOENT if there was none on this boot, or the state is a
 * copy. If there was one on another boot, which may be another machine's, `out` has its host and
 * boot. */
int identity_find(const io *io, const char *state, const char *boot, identity *out, err *e);

#endif
