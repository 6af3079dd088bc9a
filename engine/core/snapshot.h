/* snapshot: a private copy of a unit that its framework writes again under the same name.
 *
 * A reflink where the file system can, else a copy. It is not flushed: it is read once, and after a
 * crash nobody asks for it. */
#ifndef CORE_SNAPSHOT_H
#define CORE_SNAPSHOT_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/io.h"
#include "core/rules.h"
#include "core/tree.h"

/* Copies what `from` lists (the unit at `path`, relative to `root`) to <to>/<path>, and makes *out
 * the tree of that copy, with the names, modes and times of the original. Excludes are matched
 * against paths, so the path is kept. `twice`: the bytes are compared afterwards, because the times
 * prove nothing. ERR_RETIRED if the unit is not what `from` says, before, while or after it was
 * copied; ERR_CANCELED. *alive grows meanwhile. On failure *out is empty. What was made below `to`
 * is left to the caller. */
int snapshot_take(const io *io, const char *root, const char *path, const rules *rules,
                  const tree *from, const char *to, bool twice, const atomic_int *cancel,
                  _Atomic uint64_t *alive, tree *out, err *e);

#endif
