/* fs_live: reads files that somebody may be writing to, as the log of a program that runs.
 *
 * What is taken is the bytes that a file had when it was opened. That it grew since is no matter:
 * the rest is left. A file whose first bytes may be others by now is read a second time and
 * compared, so what was taken is what stood there at one moment; if it is not, ERR_RETIRED. */
#ifndef PRIMS_FS_LIVE_H
#define PRIMS_FS_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "prims/fs.h"

/* Tells what the open file is now. *young: its times are as young as the clock's grain, so they
 * cannot show that it is written from now on. ERR_RETIRED if it is no regular file. Closes it if it
 * fails, else returns `fd`. */
int fs_live_look(const io *io, int fd, const char *path, struct stat *st, bool *young, err *e);

/* Opens a regular file, not through a link, and looks at it. ERR_RETIRED if no file is there.
 * Returns the descriptor. */
int fs_live_open(const io *io, const char *path, struct stat *st, bool *young, err *e);

/* Tells what became of the file since: 0: it is the same; 1: it grew, or its times moved, so its
 * first before->st_size bytes have to be compared; ERR_RETIRED: it is shorter. */
int fs_live_changed(const io *io, int fd, const struct stat *before, const char *path, err *e);

/* Reads from there on as much as there is, and no more than `len`. Returns how much, or -errno. */
ssize_t fs_live_read(const io *io, int fd, void *to, size_t len, uint64_t at);

/* Copies the open file to `to`, which must not exist: its first st->st_size bytes, with the mode and
 * the time of *st. `young`: as fs_live_open told. Of `how` count `flush`, `cancel` and `copied`.
 * ERR_RETIRED if the bytes were not those of one moment. After a failure nothing is there, and
 * *copied is as before. */
int fs_live_copy(const io *io, int in, const struct stat *st, bool young, const char *from,
                 const char *to, const fs_copy_how *how, err *e);

#endif
