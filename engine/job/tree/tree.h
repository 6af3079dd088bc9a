/* tree: whole directories to and from a place in a store, outside of any run.
 *
 * Beside the files of a place lies a record of them (MANIFEST_NAME, a manifest): their digests,
 * modes and times, its links and its empty directories. Before an upload sends the files that
 * differ, it replaces the record by a partial one (TREE_PART_NAME) of the files that are there
 * already, renews that now and then, and puts a new record last. So where a record is, the place is
 * whole, and a download is held against it; and an upload that was cut off goes on where it was.
 * Files that another tool put there have neither, and are fetched as they are listed.
 *
 * A place may lie within another one that was uploaded too. A record counts for a file if no other
 * record is nearer to the file; an upload that writes below a nearer record takes that one away.
 *
 * One writer at a time may write to one place. All of these block; `dir` is a path. */
#ifndef JOB_TREE_TREE_H
#define JOB_TREE_TREE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "prims/pool.h"

#define TREE_PART_NAME ".ckpt-manifest.part.json"

typedef struct tree_job {
  const io *io;
  const log_sink *log;
  pool *pool;                  /* may be NULL */
  const char *const *excludes; /* match_excluded() patterns, ended by NULL; may be NULL */
  bool merge;                  /* a download or copy may go into a directory that is there */
  bool unfinished;             /* a download takes what an upload that was cut off has sent */
  atomic_int *cancel;
  _Atomic uint64_t *done, *total; /* bytes */
} tree_job;

typedef struct tree_moved {
  uint64_t files, bytes; /* that had to be moved */
} tree_moved;

/* Makes the place hold every file of `dir` as it is there. Nothing is removed at the place. A file
 * whose size and time are those of the record is not sent again. Programs may be writing to `dir`:
 * of a file that only grows meanwhile is sent what it had when it was opened; one that is rewritten
 * is read anew, and ERR_RETIRED if that goes on. ERR_NOENT if `dir` is not there, ERR_UNSUPPORTED
 * where a run's log is, ERR_INVAL if a file lies below a directory ".ckpt", which stores keep for
 * themselves. */
int tree_upload(const tree_job *p, const char *dir, const char *uri, tree_moved *out, err *e);

/* Brings all files of the place into `dir`, which must be absent (ERR_EXISTS): it appears at once,
 * when all files are there and agree with the record (ERR_CORRUPT). With `merge` the files are
 * moved over those in `dir` one by one, each at once; those of equal size and time are not fetched.
 * ERR_NOENT: there is nothing at the place. ERR_CONFLICT: an upload to it goes on, or was cut off.
 * If that is so for a place within it, that one is left out, with a warning. */
int tree_download(const tree_job *p, const char *uri, const char *dir, tree_moved *out, err *e);

/* Does the same for a place that another tool wrote, of which no record tells, in the file system
 * too: links stay links there. With `dir` NULL it is only counted. ERR_NOENT if it has a record or
 * a run's log. */
int tree_fetch_foreign(const tree_job *p, const char *uri, const char *dir, tree_moved *out,
                       err *e);

/* Removes all files of the place. If there is nothing, that is no error. ERR_INVAL for a link. */
int tree_delete(const tree_job *p, const char *uri, err *e);

/* Copies a local directory as a download does, and files that are written meanwhile as an upload
 * does. Here and in an upload, a link that leads out of it to a file is that file (unit_files.h);
 * other links stay links. */
int tree_copy(const tree_job *p, const char *from, const char *to, tree_moved *out, err *e);

#endif
