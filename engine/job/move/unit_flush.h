/* unit_flush: makes the files of a unit durable where they stand: frameworks do not flush. */
#ifndef JOB_MOVE_UNIT_FLUSH_H
#define JOB_MOVE_UNIT_FLUSH_H

#include "base/err.h"
#include "base/io.h"
#include "event/rules.h"

/* Flushes each file of unit `path` (relative to `root`) and the directories that name them, up to the
 * root. ERR_UNSUPPORTED if one is on another file system, since what is true of the root's need not be
 * true there. Blocks. */
int unit_flush(const io *io, const char *root, const char *path, match_kind kind,
               const rules *rules, err *e);

#endif
