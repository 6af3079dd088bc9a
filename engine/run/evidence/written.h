/* written: whether somebody has a checkpoint open for writing just now. */
#ifndef RUN_EVIDENCE_WRITTEN_H
#define RUN_EVIDENCE_WRITTEN_H

#include "base/err.h"
#include "base/io.h"
#include "prims/match.h"
#include "prims/proc.h"

/* Returns 1 if a process has a file of the unit at `path` open for writing; `root` is absolute. The
 * processes are looked at once, for all units: *writers, NULL before, which proc_writers_free()
 * frees. */
int written(proc_writers **writers, const io *io, const char *root, const char *path,
            match_kind kind, err *e);

#endif
