/* tar: reads and writes tar archives, plain or compressed, with libarchive.
 *
 * libarchive ends the process when memory runs out, and reads what a stranger wrote: this file is
 * linked into the helper libexec/ckpt-archive alone, and touches no file; bytes come and go by
 * functions. Names are bytes. One thread. */
#ifndef PRIMS_TAR_H
#define PRIMS_TAR_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

typedef enum tar_kind { TAR_FILE, TAR_DIR, TAR_LINK } tar_kind;

typedef struct tar_entry {
  tar_kind kind;
  const char *name;   /* as it stands in the archive; when read: valid until the next call */
  const char *target; /* of a symbolic link */
  mode_t mode;        /* permission bits alone: no set-id bit is ever told or written */
  int64_t mtime_ns;
  uint64_t size; /* of a file */
} tar_entry;

typedef enum tar_filter { TAR_PLAIN, TAR_GZIP, TAR_ZSTD } tar_filter;

/* ---- reading ---- */

/* Gives the next bytes of the archive: *block stays valid until the next call; 0 at the end, or a
 * negative ERR_*. */
typedef ssize_t tar_source(void *ctx, const void **block, err *e);

typedef struct tar_reader tar_reader;
int tar_read_open(tar_source *source, void *ctx, tar_reader **out, err *e);
/* Reads the next head: 1, 0 at the end, ERR_FORMAT if it is no tar, is cut off or damaged, or has
 * something else in it than files, directories and symbolic links. */
int tar_read_next(tar_reader *r, tar_entry *out, err *e);
/* Reads the next piece of the file: 1, or 0 at its end. Pieces come in order; a gap between two is
 * a hole. */
int tar_read_data(tar_reader *r, const void **data, size_t *len, uint64_t *at, err *e);
/* Counts the bytes of the archive so far, and of what was compressed in it. */
void tar_read_bytes(const tar_reader *r, uint64_t *packed, uint64_t *plain);
void tar_read_close(tar_reader *r); /* NULL is fine */

/* ---- writing ---- */

typedef int tar_sink(void *ctx, const void *data, size_t len, err *e);

/* Equal entries in equal order give equal bytes: no owner, no time of its own. */
typedef struct tar_writer tar_writer;
int tar_write_open(tar_filter filter, tar_sink *sink, void *ctx, tar_writer **out, err *e);
int tar_write_next(tar_writer *w, const tar_entry *entry, err *e);
/* Adds bytes of the file, `size` in all; the next call fails if they are fewer or more. */
int tar_write_data(tar_writer *w, const void *data, size_t len, err *e);
int tar_write_end(tar_writer *w, err *e); /* it is whole now */
void tar_write_close(tar_writer *w);      /* NULL is fine */

#endif
