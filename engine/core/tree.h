/* tree: the files of one unit as they stand in the watched tree at one moment.
 *
 * A save takes one, reads the files, and takes another: whatever differs means that the framework
 * went on writing or removed the unit, and the save is given up. "The same" is size, mtime, ctime
 * and inode; as in git, that says nothing about a file whose newest time is as young as the clock's
 * grain, so tree_racy_ns() says how long to wait before the files are read. */
#ifndef CORE_TREE_H
#define CORE_TREE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/io.h"
#include "core/manifest.h"
#include "core/rules.h"

typedef struct tree_file {
  char *name; /* relative to the unit: as it will stand in the manifest */
  manifest_type type;
  mode_t mode;
  uint64_t size, inode, device;
  int64_t mtime_ns, ctime_ns;
  char *target; /* of a link */
  /* Filled by a transfer. */
  digest file;
  digest *blocks;
} tree_file;

typedef struct tree {
  char *base; /* the path below which the names stand: the unit's directory, or its parent */
  match_kind kind;
  tree_file *files; /* sorted by name */
  size_t count, room;
  uint64_t bytes;    /* of regular files */
  size_t regular;    /* how many there are */
  int64_t mtime_ns;  /* of the unit: its directory's, or the newest file's */
  mode_t mode;       /* of the unit's directory */
  int64_t newest_ns; /* the newest mtime or ctime in it */
} tree;

/* Lists unit `path` (relative to `root`). Excluded names are left out, and so is a manifest of ours
 * at the top of a directory; sockets, pipes and devices are ERR_INVAL. ERR_RETIRED if the unit is
 * not there (any more) as what it was. A name in it that vanishes meanwhile is ERR_RETIRED or left
 * out, as if the listing had come a moment later: a second one, after the files were read, tells.
 */
int tree_scan(const io *io, const char *root, const char *path, match_kind kind, const rules *rules,
              tree *out, err *e);
void tree_free(tree *t); /* a zeroed one is fine */

/* 0 if both are the same, else ERR_RETIRED with the first difference. */
int tree_same(const tree *before, const tree *after, err *e);

/* Lists the unit again, and compares: 0, ERR_RETIRED, or why it could not be listed. */
int tree_unchanged(const io *io, const char *root, const char *path, const rules *rules,
                   const tree *before, err *e);

/* The sum of its files' stamps (stamp.h), as the detector makes it. */
uint64_t tree_stamp(const tree *t);

/* How many nanoseconds to wait from `now_ns` (IO_WALL) until a write that follows could not carry
 * the same times; 0: none. Never more than 2 s, whatever the clocks say. */
int64_t tree_racy_ns(const tree *t, int64_t now_ns);

/* Does this -errno, from a call on a file that was listed, say that it has been removed or
 * replaced?
 */
bool tree_gone(int rc);

/* True if a time of it lies in the future: clocks differ and times prove nothing, so the content
 * has to be read twice. */
bool tree_from_future(const tree *t, int64_t now_ns);

/* The absolute path of a file of it. */
int tree_path(const tree *t, const tree_file *f, char *out, err *e);

/* The sealed manifest of a tree whose digests a transfer has filled in. */
int tree_manifest(const tree *t, const char *unit, int64_t step, hash_kind hash, manifest *out,
                  err *e);

/* 1 if the tree has exactly the names, types, sizes, mtimes and link targets of the manifest. Of
 * what is outside of its root digest only the name counts: it may have been replaced since. */
int tree_matches(const tree *t, const manifest *m);

#endif
