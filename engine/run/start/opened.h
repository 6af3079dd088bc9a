/* opened: tells whether anybody has opened a file of a checkpoint since the job was started. A job that
 * fails before it has read its checkpoint says nothing about it. */
#ifndef RUN_START_OPENED_H
#define RUN_START_OPENED_H

#include "base/err.h"
#include "base/io.h"

typedef enum opened_word {
  OPENED_UNSEEN, /* it cannot be known: the watches are used up, or other hosts may read here */
  OPENED_NEVER,
  OPENED_YES
} opened_word;

typedef struct opened opened;

/* Begins to look at the files at `path`: a file, or a directory with all below it; where there is
 * neither, at the files beside it whose names begin with its last component and a dot. NULL: it cannot be
 * seen. Listing a directory is not opening a file. Who calls this must not open the files itself. */
opened *opened_begin(const io *io, const char *path);
/* Says what happened so far. NULL: OPENED_UNSEEN. */
opened_word opened_say(opened *o);
void opened_free(opened *o); /* NULL is fine */

#endif
