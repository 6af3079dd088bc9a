/* store_s3_write: the writer of a large object, which store_s3_write.c fills and
 * store_s3_write_end.c ends. */
#ifndef STORE_STORE_S3_WRITE_H
#define STORE_STORE_S3_WRITE_H

#include "store_s3.h"

enum { IN_FLIGHT = S3_BUFFERS };

/* A part under way. */
typedef struct flight {
  s3_call call;
  char *data;
  size_t number; /* from 0 */
  char text[16];
  const char *query[5];
} flight;

typedef struct s3_writer {
  store_writer base;
  atomic_int *cancel;
  char path[S3_PATH_MAX];
  char nonce[64], mark[STORE_MARK_MAX];
  uint64_t size, taken; /* announced; handed over so far */
  store_tally tally;
  uint64_t stored; /* of what was counted there: ours */
  size_t part;     /* bytes of each part but the last */
  size_t parts;
  int failure; /* sticky: after a failed write no object may be made */
  err why;
  char *filling; /* NULL: none */
  size_t filled;
  uint64_t crc;               /* of the part that is being filled... */
  size_t summed;              /* ...as far as it has been counted */
  flight *flights[IN_FLIGHT]; /* the oldest first */
  size_t flying;
  size_t sent;                /* parts that were sent, skipped or compared */
  char (*etags)[S3_ETAG_MAX]; /* of all parts, as the server gave them: so it wants them named */
  uint64_t *crcs;             /* of all parts, as they are here */
  hash_kind hash;
  digest whole; /* of the object, as the caller tells it; `len` 0: it does not */
  s3_left left; /* of an earlier try; its upload is the one that is used */
  bool begun;   /* there is an upload for the parts: `left` has its id... */
  bool resumed; /* ...which was found, so another may have begun it */
  bool sums;    /* the server keeps the sums of this upload */
  bool over;    /* it replaces the object that is there */
  bool compare; /* an object stands already: nothing is sent */
  s3_head there;
} s3_writer;

static inline s3_store *store_of(const s3_writer *w) {
  return (s3_store *)w->base.store;
}

/* Gives a part's buffer back. */
void s3_writer_give_back(const s3_writer *w, char *data);
/* Waits for the oldest part. *data gets its buffer. */
int s3_writer_land(s3_writer *w, char **data, err *e);
/* Counts the bytes of the part that is being filled which came by write(). */
void s3_writer_sum_up(s3_writer *w);
/* 0 if so many bytes more may come. */
int s3_writer_check(const s3_writer *w, size_t len, err *e);
/* Counts bytes of which the server has said that it has them. What was handed to write() may be in
 * our buffers, the kernel's, or a proxy's for long. */
void s3_writer_count(s3_writer *w, uint64_t bytes);
void s3_writer_uncount(s3_writer *w);
void s3_writer_free(s3_writer *w);

#endif
