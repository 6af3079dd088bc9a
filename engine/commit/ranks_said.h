/* ranks_said: what a rank says to the others of its launch: a small object in the target,
 * <target>/.ckpt/ranks/<digest of the launch id> of rank 0, which begins and ends for all; another
 * one's, <digest>.over/<rank>, is there once it has ended. */
#ifndef COMMIT_RANKS_SAID_H
#define COMMIT_RANKS_SAID_H

#include <stdbool.h>

#include "base/names.h"
#include "commit/ranks.h"
#include "prims/fs.h"
#include "store/store.h"

#define RANKS_SAID ".ckpt/ranks"

enum { RANKS_SAID_TEXT_MAX = 1024 };

typedef struct ranks_said {
  bool ready;
  bool over;                     /* it has ended */
  char why[RANKS_SAID_TEXT_MAX]; /* why it has ended; "": it has ended well */
  bool elsewhere;                /* since its target is not the job's (ERR_OTHER_RUN) */
  char resume[FS_PATH_MAX];      /* below the watched directory; "": from nothing */
  /* The commit that this is, for one name may have been saved twice; "": not known. */
  char commit[RANKS_SAID_TEXT_MAX];
  char waits[RANKS_SAID_TEXT_MAX]; /* the reason why it waits before it begins; "": it does not */
  names
      refused; /* of rank 0 that has ended: the newest units that its policies did not want, sorted */
} ranks_said;

/* The key of what we say. */
int ranks_said_key(const ranks *r, char out[STORE_KEY_MAX], err *e);
int ranks_said_put(store *s, const ranks *r, const ranks_said *said, err *e);
/* Takes back what an earlier process of this rank and launch said. */
int ranks_said_remove(store *s, const ranks *r, err *e);
/* What rank `rank` says. ERR_NOENT: nothing yet. ERR_INVAL: it is of another world. Free it. */
int ranks_said_get(store *s, const ranks *r, uint32_t rank, ranks_said *out, err *e);
void ranks_said_free(ranks_said *said); /* a zeroed one is fine */

/* Looks for a rank but the first that has ended, and is not among those that are `there` (one for
 * each rank). Returns 1 with its number, and why it has ended; 0 if there is none. */
int ranks_said_over(store *s, const ranks *r, const bool *there, uint32_t *rank,
                    char why[RANKS_SAID_TEXT_MAX], err *e);

#endif
