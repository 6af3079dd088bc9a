/* unit_files: the files of one unit as they stand in the watched tree at one moment.
 *
 * A save takes one, reads the files, and takes another: any difference means that the framework
 * went on writing or removed the unit, and the save is given up. "The same" is size, mtime, ctime
 * and inode; as in git, that says nothing about a file whose newest time is as young as the clock's
 * grain, so unit_files_racy_ns() says how long to wait before the files are read. */
#ifndef JOB_MOVE_UNIT_FILES_H
#define JOB_MOVE_UNIT_FILES_H

#include <stdbool.h>

#include "base/err.h"
#include "base/io.h"
#include "commit/manifest/manifest.h"
#include "event/rules.h"

typedef struct unit_file {
  char *name; /* relative to the unit: as it will stand in the manifest */
  manifest_type type;
  mode_t mode;
  uint64_t size, inode, device;
  int64_t mtime_ns, ctime_ns;
  char *target; /* of a link */
  /* Of a file that a link of this name leads to, out of the unit: all else is that file's, but
   * `target`, which is the link's text. The tree's own; NULL: no link is followed. */
  struct link_follower *followed;
  uint8_t end; /* of a link: the link_end at which it stays one */
  /* A transfer fills these in. */
  digest file;
  digest *blocks;
} unit_file;

typedef struct unit_files {
  char *base; /* the path below which the names stand: the unit's directory, or its parent */
  match_kind kind;
  unit_file *files; /* sorted by name */
  size_t count, room;
  uint64_t bytes;              /* of regular files */
  size_t regular;              /* how many there are */
  int64_t mtime_ns;            /* of the unit: its directory's, or the newest file's */
  mode_t mode;                 /* of the unit's directory */
  bool has_table;              /* a manifest of ours lies at its top, which is none of its files */
  int64_t newest_ns;           /* the newest mtime or ctime in it */
  unsigned how;                /* UNIT_FILES_*, as it was listed */
  struct link_follower *links; /* NULL: there is no link in it that was followed */
  unsigned lacks;     /* unit_kept.h: what of it no save keeps, as far as a listing shows */
  uint64_t left_out;  /* files, and directories, that an exclude of the user's or a policy's leaves
                      * out, */
  uint64_t left_here; /* of these, what the words for this one alone leave out */
  manifest_left left_names; /* and the first of their names */
} unit_files;

/* How links are taken. A link that leads out of the unit to a regular file that its owner may read
 * (link_follow.h) is that file: its bytes are saved. If it is in the unit already, under another
 * name or by another link, it is a link to the first of these names. Every other link is one. */
enum {
  UNIT_FILES_PLAIN = 1, /* links are links */
  UNIT_FILES_EACH = 2 /* each link that is followed is a file: ranks do not know what others have */
};

/* Lists unit `path` (relative to `root`). Excluded names are left out, and so is a manifest of ours
 * at the top of a directory; sockets, pipes and devices are ERR_INVAL. ERR_RETIRED if the unit is
 * not there (any more), or is of another kind. A name in it that vanishes meanwhile is ERR_RETIRED
 * or left out, as if the listing had come a moment later: a second listing, after the files were
 * read, tells. */
int unit_files_scan(const io *io, const char *root, const char *path, match_kind kind,
                    const rules *rules, unit_files *out, err *e);
int unit_files_scan_as(const io *io, const char *root, const char *path, match_kind kind,
                       const rules *rules, unsigned how, unit_files *out, err *e);
void unit_files_free(unit_files *t); /* a zeroed one is fine */

/* Opens a file of it for reading, where it stands or where its link leads: ERR_RETIRED if it is
 * gone. Returns the descriptor; whether it is the file that was listed is for the caller to see.
 * `path`: unit_files_path(). */
int unit_files_open(const io *io, const unit_file *f, const char *path, err *e);

/* Returns the file of that name, or NULL. */
const unit_file *unit_files_find(const unit_files *t, const char *name);

/* Returns 0 if both are the same, else ERR_RETIRED with the first difference. */
int unit_files_same(const unit_files *before, const unit_files *after, err *e);

/* Returns 0 if each file of `part`, which was listed later by `rules` with more left out, stands in
 * `whole` as it is, and `part` lacks only what these leave out; else ERR_RETIRED. What links lead to
 * is not compared. `path`: of the unit, as it was listed. */
int unit_files_within(const unit_files *part, const unit_files *whole, const char *path,
                      const rules *rules, err *e);

/* Lists the unit again, and compares: 0, ERR_RETIRED, or why it could not be listed. */
int unit_files_unchanged(const io *io, const char *root, const char *path, const rules *rules,
                         const unit_files *before, err *e);

/* True if the file is followed, and the manifest has the link. */
bool unit_files_was_link(const unit_file *f, const manifest_entry *entry);

/* Makes the sum of its files' stamps (stamp.h), as the detector does: it follows no link. */
uint64_t unit_files_stamp(const unit_files *t);

/* Returns how many nanoseconds to wait from `now_ns` (IO_WALL) until a write that follows could not
 * carry the same times; 0: none. It is never more than 2 s, whatever the clocks say. */
int64_t unit_files_racy_ns(const unit_files *t, int64_t now_ns);

/* True if this -errno, from a call on a file that was listed, says that it has been removed or
 * replaced. */
bool unit_files_gone(int rc);

/* True if a time of it lies in the future: clocks differ and times prove nothing, so the content
 * has to be read twice. */
bool unit_files_from_future(const unit_files *t, int64_t now_ns);

/* Makes the absolute path of a file of it. */
int unit_files_path(const unit_files *t, const unit_file *f, char *out, err *e);

/* Makes the sealed manifest of a tree whose digests a transfer has filled in. */
int unit_files_manifest(const unit_files *t, const char *unit, int64_t step, hash_kind hash,
                        manifest *out, err *e);

/* Returns 1 if the tree has exactly the names, types, sizes, mtimes and link targets of the
 * manifest. Of a file outside of the root digest only the name counts: it may have been replaced
 * since, or be there though the manifest has none: MANIFEST_METADATA may have been set since. A link
 * that is followed now may have been saved as a link, by an older version or when it led
 * elsewhere. */
int unit_files_matches(const unit_files *t, const manifest *m);
/* The same, whatever the mtimes are: a copy has its own. */
int unit_files_alike(const unit_files *t, const manifest *m);

#endif
