/* companions_restore: puts back the companions of a checkpoint, the files that were saved beside
 * it. */
#ifndef JOB_RESTORE_COMPANIONS_RESTORE_H
#define JOB_RESTORE_COMPANIONS_RESTORE_H

#include "base/log.h"
#include "commit/manifest/manifest.h"
#include "job/restore/restore.h"

/* ERR_EXISTS if one of them stands in `dir` already with another content, or would lie below a link
 * or a file. `io` holds `dir` (fs_held), here and below. */
int companions_check_free(const io *io, const manifest *m, const char *dir, err *e);

/* Keeps a copy elsewhere of a file that stands in the directory with another content: it is replaced
 * then, in one step. */
typedef int companions_clear_fn(void *ctx, const char *name, err *e);
/* Tells of a file of this name, which stands at `path`, that it names a checkpoint that is not
 * there. */
typedef bool companions_lies_fn(void *ctx, const char *name, const char *path);

/* Tells whether the one of this name is to be put back. */
typedef bool companions_wants_fn(void *ctx, const char *name, bool link);

typedef struct companions_target {
  const char *dir; /* the group's directory; it exists */
  const log_sink *log;
  bool only_missing;          /* a file that is there stays, whatever its content, unless it lies */
  companions_clear_fn *clear; /* called before one is replaced. NULL: another content is
                               * ERR_EXISTS */
  companions_lies_fn *lies;   /* what was saved and lies is not put there; NULL: nothing does */
  companions_wants_fn *wants; /* NULL: all of them */
  void *ctx;
} companions_target;

/* Puts those companions into the directory that are not there as they were saved: fetched into the
 * staging, every block checked, flushed, then renamed, those that may name a checkpoint last.
 * Returns how many, or an error. Nothing is written through a link: a companion that would lie
 * below one, or below a file, is ERR_EXISTS, or logged and left out where `clear` or `only_missing`
 * is set. Absolute paths in them that lead nowhere are logged. `r` and `key` as for
 * restore_unit. */
int companions_restore(const restore *r, const manifest *m, const char *key,
                       const companions_target *to, err *e);

#endif
