/* fs_find: finds our helpers and the shipped policies: in the tree that they were built in, or
 * installed. */
#ifndef PRIMS_FS_FIND_H
#define PRIMS_FS_FIND_H

#include "base/err.h"
#include "base/io.h"
#include "fs.h"

/* Everything is installed below it. */
#ifndef CKPT_PREFIX
#define CKPT_PREFIX "/usr/local"
#endif

typedef struct fs_find_place {
  const char *given;     /* by the caller: taken as it is; may be NULL */
  const char *variable;  /* of the environment; not empty: taken as it is */
  const char *file;      /* a directory has to hold it, to be one of these: */
  const char *beside[5]; /* relative to the program's directory, or the library's; NULL ends */
  const char *installed; /* if none of them does */
} fs_find_place;

/* Puts the directory into out[FS_PATH_MAX]. The only error is ERR_LIMIT: a path that is too
 * long. */
int fs_find(const io *io, const fs_find_place *place, char *out, err *e);

/* Puts the path of one of our helper programs (or modules) into out[FS_PATH_MAX]: in `given` (may
 * be NULL), else in $CKPT_LIBEXEC, else beside the program or library, else where it was installed.
 * It need not be there. */
int fs_find_helper(const io *io, const char *given, const char *file, char *out, err *e);

#endif
