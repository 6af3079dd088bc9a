/* folder: where the tasks of one launch that write into one directory meet: "launch/<digest of the
 * launch id>" in the home of the directory (watchers/home.h), or in the state directory where there
 * is no home. Each file in it has one writer, and is replaced in one step. Nothing is flushed: what
 * it says is void when the launch is over, and so when the machine has failed.
 *
 *   question    of the task that watches
 *   0, 1, ...   answers of the others, by their index among those that write there */
#ifndef LAUNCH_FOLDER_H
#define LAUNCH_FOLDER_H

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "prims/fs.h"

/* Makes its path from that of the home or state directory. */
int folder_path(const char *home, const char *launch, char out[FS_PATH_MAX], err *e);
/* Makes it empty, and removes those of other launches: whoever does so has the directory. */
int folder_make(const io *io, const char *home, const char *launch, char out[FS_PATH_MAX], err *e);

/* Replaces a file of it. */
int folder_put(const io *io, const char *folder, const char *name, const buf *text, err *e);
/* Reads one, by opening it anew: on a network file system that makes sure of its content. ERR_NOENT
 * if it is not there. */
int folder_get(const io *io, const char *folder, const char *name, buf *out, err *e);

#endif
