/* snapshot: a private copy of a unit that its framework writes again under the same name.
 *
 * It is a reflink where the file system can, else a copy. It is not flushed: it is read once, and
 * after a crash nobody asks for it. */
#ifndef JOB_MOVE_SNAPSHOT_H
#define JOB_MOVE_SNAPSHOT_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/io.h"
#include "event/rules.h"
#include "job/move/unit_files.h"

/* Copies the files that `from` lists (the unit at `path`, relative to `root`) to <to>/<path>, and
 * makes *out the tree of that copy, with the names, modes and times of the original. Excludes are
 * matched against paths, so the path is kept. `twice`: the bytes are compared afterwards, because
 * the times prove nothing. ERR_RETIRED if the unit is not as `from` says, before, while or after it
 * was copied; ERR_CANCELED. *alive grows meanwhile. On failure *out is empty. The caller removes
 * the files below `to`. */
int snapshot_take(const io *io, const char *root, const char *path, const rules *rules,
                  const unit_files *from, const char *to, bool twice, const atomic_int *cancel,
                  _Atomic uint64_t *alive, unit_files *out, err *e);

#endif
