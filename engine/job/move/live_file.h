/* live_file: a file of a tree that others may be writing to (TRANSFER_LIVE). */
#ifndef JOB_MOVE_LIVE_FILE_H
#define JOB_MOVE_LIVE_FILE_H

#include <stdatomic.h>

#include "job/move/unit_files.h"

/* Opens the file, and makes `f` say what it is now. *changed: it is not as `f` said, so its times
 * may be as young as the clock's grain. Returns the descriptor; ERR_RETIRED if no file is there. */
int live_file_open(const io *io, unit_file *f, const char *path, bool *changed, err *e);

/* Returns 0 if the bytes with the digests f->blocks are those that the open file has had at one
 * moment. With `again`, or if the file was written since it was opened, they are read once more.
 * ERR_RETIRED if they are not. */
int live_file_prove(const io *io, const unit_file *f, hash_kind hash, int fd, const char *path,
                    bool again, const atomic_int *cancel, err *e);

#endif
