/* plain: whole directories to and from a place in a store, outside of any run.
 *
 * Beside the files of a place lies a record of them (MANIFEST_NAME, a manifest): their digests,
 * modes and times, its links and its empty directories. An upload puts PLAIN_PART_NAME, a record of
 * what is there already, in its place before it sends what differs, and now and then meanwhile; a
 * new one comes last. So where a record is, the place is whole, and a download is held against it;
 * and an upload that was cut off goes on where it was. What another tool put there has neither, and
 * is fetched as it is listed.
 *
 * A place may lie within another one that was uploaded too. What a record says of a file holds if
 * no other record is nearer to the file; an upload that writes below a nearer one takes that away.
 *
 * One writer at a time to one place. All of these block; `dir` is a path. */
#ifndef CORE_PLAIN_H
#define CORE_PLAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "prims/pool.h"

#define PLAIN_PART_NAME ".ckpt-manifest.part.json"

typedef struct plain {
  const io *io;
  const log_sink *log;
  pool *pool;                  /* may be NULL */
  const char *const *excludes; /* match_excluded() patterns, ended by NULL; may be NULL */
  bool merge;                  /* a download or copy may go into a directory that is there */
  bool unfinished;             /* a download takes what an upload that was cut off has sent */
  atomic_int *cancel;
  _Atomic uint64_t *done, *total; /* bytes */
} plain;

typedef struct plain_moved {
  uint64_t files, bytes; /* that had to be */
} plain_moved;

/* Makes the place hold every file of `dir` as it is there. Nothing is removed at the place. A file
 * whose size and time are those of the record is not sent again. ERR_RETIRED if `dir` goes on
 * changing while it is read, ERR_NOENT if it is not there, ERR_UNSUPPORTED where a run's log is,
 * ERR_INVAL if a file lies below a directory ".ckpt", which stores keep for themselves. */
int plain_upload(const plain *p, const char *dir, const char *uri, plain_moved *out, err *e);

/* Brings all that is at the place into `dir`, which must be absent (ERR_EXISTS): it appears at
 * once, when all is there and agrees with the record (ERR_CORRUPT). With `merge` the files are
 * moved over what is in `dir` one by one, each at once; those of equal size and time are not
 * fetched. ERR_NOENT: there is nothing at the place. ERR_CONFLICT: an upload to it goes on, or was
 * cut off. A place within it of which that is so is left out, with a warning. */
int plain_download(const plain *p, const char *uri, const char *dir, plain_moved *out, err *e);

/* Removes all that is at the place. That there is nothing is no error. ERR_INVAL for a link. */
int plain_delete(const plain *p, const char *uri, err *e);

/* Copies a local directory as a download does; links stay links. */
int plain_copy(const plain *p, const char *from, const char *to, plain_moved *out, err *e);

#endif
