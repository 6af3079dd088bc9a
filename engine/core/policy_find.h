/* policy_find: where the helper of policies and the shipped policies stand: in the tree that they
 * were built in, or installed. */
#ifndef CORE_POLICY_FIND_H
#define CORE_POLICY_FIND_H

#include "base/err.h"
#include "base/io.h"
#include "prims/fs.h"

/* Below it all is installed. */
#ifndef CKPT_PREFIX
#define CKPT_PREFIX "/usr/local"
#endif

typedef struct policy_place {
  const char *given;     /* by the caller: taken as it is; may be NULL */
  const char *variable;  /* of the environment; not empty: taken as it is */
  const char *file;      /* what a directory has to hold, for these: */
  const char *beside[4]; /* relative to the program's directory, or the library's; NULL ends */
  const char *installed; /* if none of them does */
} policy_place;

/* The directory, into out[FS_PATH_MAX]. Only ERR_LIMIT: a path that is too long. */
int policy_find(const io *io, const policy_place *place, char *out, err *e);

/* The path of one of our helper programs (or modules), into out[FS_PATH_MAX]: in `given` (may be
 * NULL), else in $CKPT_LIBEXEC, else beside the program or library, else where it was installed. It
 * need not be there. */
int policy_find_helper(const io *io, const char *given, const char *file, char *out, err *e);

#endif
