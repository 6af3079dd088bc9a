/* copy: one copy in quarantine, as the files that it has, and the commit that has them all. */
#ifndef RUN_QUARANTINE_COPY_H
#define RUN_QUARANTINE_COPY_H

#include "commit/log/runlog.h"
#include "job/move/transfer.h"
#include "job/move/unit_files.h"

/* Lists all that is in it: no rule leaves anything out, no link is followed. Directories are not told,
 * and are removed with what was in them. ERR_INVAL: it has what no commit can have. */
int copy_list(const io *io, const char *path, unit_files *out, err *e);

/* Makes the kind of what is in it: the path of its group, which is the longest of `groups` above it, and
 * the series of the unit. False: it is empty. */
bool copy_kind(const unit_files *copy, const names *groups, char group[FS_PATH_MAX],
               char kind[2 * FS_PATH_MAX]);

/* Looks for a live commit in the log of its group that has each of its files, and proves it: reads the copy,
 * then the store's objects. Returns 1, with the commit; 0 if there is none; or why it cannot be
 * told. *read becomes true if the log alone did not tell. */
int copy_is_kept(const transfer *t, const unit_files *copy, const char *group, runlog *log,
                 const runlog_commit **by, bool *read, err *e);

#endif
