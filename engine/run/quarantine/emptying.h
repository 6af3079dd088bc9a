/* emptying: removes from quarantine what a commit has, too, once it has been there long enough (holding.h).
 *
 * A copy goes if each of its files and links, read just before, is by its digest one of a commit of this
 * target that is live and not marked bad, and if the store's objects of these files, read whole, are so,
 * too. Of a rank's part, or of one that is torn, the commit may have more. All else stays for ever: what a
 * commit has not, what cannot be read, what this target does not know, what this tool has not put there.
 *
 * It is renamed to "<name>.removing" and then removed, so that half of one is never taken for a copy; the
 * next time finds what a crash has left of that. Nothing is looked up through a link, nor outside. */
#ifndef RUN_QUARANTINE_EMPTYING_H
#define RUN_QUARANTINE_EMPTYING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/names.h"
#include "store/store.h"

enum { EMPTYING_TESTS = 4, EMPTYING_TEXT = 400 };

typedef struct emptying {
  const io *io;
  const char *root;    /* the quarantine of a state directory whose lock is held */
  store *store;        /* where the commits are */
  const names *groups; /* paths of the groups there, "" for that of the top */
  atomic_int *cancel;  /* not 0: stop */

  /* What came of it. */
  uint32_t removed, stay; /* of `stay` nothing is said but that they are there */
  uint64_t bytes;         /* of the removed ones */
  bool more;              /* there was no time for all: another pass may find more */
  char of[EMPTYING_TEXT]; /* the commits that have them: "checkpoint-3 (commit 12), ..." */
} emptying;

/* Reads at most EMPTYING_TESTS of those that are due: a store asks money for each byte. Blocks; it is for a worker. A failure
 * of one leaves that one, and ends it; what was removed before is counted. ERR_CANCELED. */
int emptying_run(emptying *all, err *e);

#endif
