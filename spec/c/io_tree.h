/* io_tree: a file system in memory behind `io`, with clocks that the test sets, for replays in
 * virtual time. Reading only goes through `io`; the test itself changes the tree by the calls
 * below, and no events come of it: the test feeds those. Files have a size and no bytes; what is
 * read from them is made up from their names, as a whole file of that format would look
 * (.safetensors, .json; else filler), unless io_tree_content() gave them some.
 *
 * It behaves as ext4 does where that matters: a free inode's number is used again at once, a rename
 * sets the ctime, a write both times, and a directory's mtime changes with its entries. Misuse
 * aborts. Not for threads. */
#ifndef SPEC_IO_TREE_H
#define SPEC_IO_TREE_H

#include <stdbool.h>

#include "base/io.h"

#define IO_TREE_ROOT "/tree"

typedef struct io_tree io_tree;

io_tree *io_tree_new(void);
void io_tree_free(io_tree *t);
const io *io_tree_io(io_tree *t); /* good until io_tree_free */

/* Both clocks; the wall clock begins at IO_TREE_EPOCH. Stamps are cut to `grain`
 * ns (1 at first). */
#define IO_TREE_EPOCH 1700000000000000000
void io_tree_clock(io_tree *t, int64_t mono_ns);
void io_tree_grain(io_tree *t, int64_t grain_ns);
/* Moves the wall clock alone. */
void io_tree_skew(io_tree *t, int64_t ns);

/* Paths are relative to the root. Parents must be there. */
void io_tree_mkdir(io_tree *t, const char *path); /* it may be there already */
/* Makes the file if it is absent, gives it this size, and stamps it as written. */
void io_tree_write(io_tree *t, const char *path, uint64_t size);
void io_tree_content(io_tree *t, const char *path, const void *data, size_t len);
void io_tree_link(io_tree *t, const char *path, const char *target); /* symbolic */
void io_tree_rename(io_tree *t, const char *from, const char *to);   /* replaces `to` */
void io_tree_remove(io_tree *t, const char *path);                   /* with all below */
void io_tree_touch(io_tree *t, const char *path, int64_t mtime_wall_ns);
bool io_tree_has(io_tree *t, const char *path);
bool io_tree_is_dir(io_tree *t, const char *path);
/* Returns the number of calls through io since this was last asked, `now` left out. */
long io_tree_calls(io_tree *t);

#endif
