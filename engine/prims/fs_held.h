/* fs_held: an io for directories that others may write to.
 *
 * It holds directories open. A path below one of them (as text; of several that fit, the innermost)
 * is looked up from that descriptor on, and no part of it, not even the last, is followed if it is
 * a symbolic link, nor if a link takes a directory's place meanwhile. So a file that is made,
 * changed or removed through it is in the directory that was held, and nowhere else. A link in the
 * way is -ELOOP or -ENOTDIR, a ".." -EXDEV.
 *
 * All other paths are the caller's own, and go to the io behind it as they are (but root makes a
 * directory only where fs_hold would go). So do calls with a descriptor: a file that was opened
 * through it is safe to work on by its descriptor. */
#ifndef PRIMS_FS_HELD_H
#define PRIMS_FS_HELD_H

#include "base/err.h"
#include "base/io.h"
#include "fs.h"

enum { FS_HELD_MAX = 4 };

typedef struct fs_held fs_held;

/* Makes one that holds nothing yet. `inner` outlives it. */
int fs_held_new(const io *inner, fs_held **out, err *e);
void fs_held_free(fs_held *h); /* NULL is fine */
const io *fs_held_io(const fs_held *h);

/* Holds the directory `path`. Links on the way to it are the user's own word; but root follows none
 * that somebody else of its user namespace made (ERR_ACCESS): its owner would say where root
 * writes. */
int fs_hold(fs_held *h, const char *path, err *e);
/* Makes the directory `path`, for us alone (0700), and holds it. ERR_EXISTS if the name is taken,
 * ERR_ACCESS if what stands there a moment later is not what was made. */
int fs_hold_new(fs_held *h, const char *path, err *e);
/* Lets go of a directory. Its path is looked up like any other then. */
void fs_let_go(fs_held *h, const char *path);
/* Does as fs_hold for a directory that may come and go: it is opened for each call, by its path,
 * and is not looked at now. */
int fs_hold_by_name(fs_held *h, const char *path, err *e);

/* The path of the directory `path` without links, as fs_hold finds it: nobody can lead root
 * elsewhere while it is looked up. ERR_NOENT if it is not there. */
int fs_resolve_way(const io *io, const char *path, char out[FS_PATH_MAX], err *e);

/* Checks whether our user may follow a path to its end: 0, or an error as of fs_hold. A part that
 * does not exist yet is no hindrance. */
int fs_check_way(const io *io, const char *path, err *e);

#endif
