/* ranks_said: what rank 0 says to the others of its launch: a small object in the target,
 * <target>/.ckpt/ranks/<digest of the launch id>. */
#ifndef COMMIT_RANKS_SAID_H
#define COMMIT_RANKS_SAID_H

#include <stdbool.h>

#include "commit/ranks.h"
#include "prims/fs.h"
#include "store/store.h"

#define RANKS_SAID ".ckpt/ranks"

enum { RANKS_SAID_TEXT_MAX = 1024 };

typedef struct ranks_said {
  bool ready;
  bool over;                       /* it has ended */
  char why[RANKS_SAID_TEXT_MAX];   /* why it has ended; "": it has ended well */
  char resume[FS_PATH_MAX];        /* below the watched directory; "": from nothing */
  char waits[RANKS_SAID_TEXT_MAX]; /* the reason why it waits before it begins; "": it does not */
} ranks_said;

int ranks_said_key(const ranks *r, char out[STORE_KEY_MAX], err *e);
int ranks_said_put(store *s, const ranks *r, const ranks_said *said, err *e);
/* ERR_NOENT: the record is not there yet. ERR_INVAL: it is of another world. */
int ranks_said_get(store *s, const ranks *r, ranks_said *out, err *e);

#endif
