/* unit_kept: what a checkpoint has that no save keeps: said once for each that has such. */
#ifndef JOB_MOVE_UNIT_KEPT_H
#define JOB_MOVE_UNIT_KEPT_H

#include "base/io.h"
#include "base/log.h"
#include "job/move/unit_files.h"

enum {
  UNIT_OWNERS = 1,         /* files of another user than us */
  UNIT_SET_ID = 2,         /* files with a set-user-id or set-group-id bit */
  UNIT_HARD_LINKS = 4,     /* two names of it are one file */
  UNIT_ATTRIBUTES = 8,     /* extended attributes, access lists, capabilities */
  UNIT_HOLES = 16,         /* files with less on the disk than their size */
  UNIT_SEVERAL_NAMES = 32, /* a file has another name somewhere: no loss by itself */
  UNIT_MAYBE_HOLES = 64    /* a file takes less room than its size, as compressed ones do */
};

/* Notes what an entry's state shows. */
void unit_kept_note(unit_files *t, const struct stat *st);

/* Looks at the files for what a listing does not show: at the first few hundred, which are as the
 * others. Returns all that is known. */
unsigned unit_kept_look(const io *io, const unit_files *t);

/* Says it in one warning. */
void unit_kept_tell(unsigned lacks, const log_sink *log, const char *unit);

#endif
