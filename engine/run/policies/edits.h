/* edits: sees that the files of policies were edited, and says so once for each edit. It takes nothing: an edited
 * file rules when somebody asks for it. */
#ifndef RUN_POLICIES_EDITS_H
#define RUN_POLICIES_EDITS_H

#include "base/log.h"
#include "run/policies/reading.h"

/* Zero-initialise it. */
typedef struct edits {
  reading *look; /* NULL: none is under way */
  int64_t at;    /* of the next one, IO_MONO */
} edits;

/* Looks every 10 s at the files that were read, unless all of them are shipped ones, and notes in them what was told. A look that does not come back
 * is not begun again. `io`: as of reading_look(); `dir`: the run's, for who is to ask. Returns when to call it
 * again. */
int64_t edits_step(edits *e, const io *io, policy_files *files, int64_t now, const log_sink *log,
                   const char *dir);
void edits_drop(edits *e); /* whether a look is under way or not */

#endif
