/* structure_format: one check for each file format that can tell whether a file is whole.
 *
 * Private to structure.c. A check reads the ends of the file and gives its verdict by
 * format_says(): SOUND only where no shorter beginning of a file could look the same. */
#ifndef EVENT_STRUCTURE_FORMAT_H
#define EVENT_STRUCTURE_FORMAT_H

#include "event/structure.h"

typedef struct format_file {
  const io *io;
  int fd;
  uint64_t size;
  int64_t mtime_ns;
  const char *path; /* for errors */
  structure verdict;
  structure_proof proof;
  bool shard;      /* of a tensor bundle: its index tells of it */
  uint64_t shards; /* of the bundle whose index it is; all of them are there */
  const char *why; /* static */
  err *e;
} format_file;

/* Sets the verdict; returns 0. */
int format_says(format_file *f, structure verdict, const char *why);
/* Says that it is sound, and what that proves. */
int format_proves(format_file *f, structure_proof proof, const char *why);
/* Reads all of `len` bytes from `at`; ERR_RETIRED if the file is shorter by now. */
int format_read(format_file *f, uint64_t at, void *to, size_t len);

/* The number that stands in so many bytes, the least first. */
uint64_t format_le(const uint8_t *p, int bytes);

/* A file that is read from its front, and of which most is jumped over. */
typedef struct format_window {
  format_file *f;
  uint64_t at, have_at, read; /* position; where the window begins; bytes read so far */
  size_t have;
  uint8_t bytes[65536];
} format_window;

/* Reads the next byte, or jumps over `n`: 1; 0 if the file ends before; or an error. */
int format_byte(format_window *w, uint8_t *out);
int format_skip(format_window *w, uint64_t n);

int format_zip(format_file *f);         /* torch.save, npz, keras */
int format_safetensors(format_file *f); /* the header's offsets against the size */
int format_hdf5(format_file *f);        /* the superblock's end of file */
int format_json(format_file *f);        /* brackets and strings are closed; NaN is fine */
int format_lightgbm(format_file *f);    /* ends with the line that Python adds last */
int format_ubjson(format_file *f);      /* XGBoost: its outermost brace is the last byte */
int format_pickle(format_file *f);      /* ends with STOP */
int format_bundle(format_file *f); /* TensorFlow: the index, its sums, the size of its shards */

/* True if a file of this name that begins so may be the index of a tensor bundle. */
bool format_bundle_index(const char *name, const uint8_t *head, size_t len);

#endif
