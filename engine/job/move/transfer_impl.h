/* transfer_impl: what the files of a transfer share: transfer.c, which sends, and transfer_down.c,
 * which brings and verifies. For these only. */
#ifndef JOB_MOVE_TRANSFER_IMPL_H
#define JOB_MOVE_TRANSFER_IMPL_H

#include <pthread.h>

#include "transfer.h"

/* One block's worth of memory, straight from the kernel: malloc would keep it after free(). */
typedef struct transfer_block {
  char *data;
  size_t room;
} transfer_block;

int transfer_block_open(transfer_block *b, uint64_t size, err *e); /* for a file of this size */
void transfer_block_close(transfer_block *b);                      /* a zeroed one is fine */

/* The state of one parallel run over the files of a unit. The first error wins, code and text:
 * pool_each may return another one. */
struct transfer_batch {
  const transfer *t;
  unit_files *tree;
  const manifest *m;
  const char *prefix, *dir;
  unsigned how; /* STORE_STAGED, STORE_RESUME, TRANSFER_ANEW, TRANSFER_LIVE */
  bool twice;
  transfer_finding *finding;
  void *ctx;
  pthread_mutex_t mutex;
  err first;
  atomic_int failed; /* one has: none waits for other tasks any more */
  int findings;
};

/* Calls `each` with the batch and the number of each file, on the workers of the pool. */
int transfer_run(struct transfer_batch *b, size_t count, int (*each)(void *, size_t), err *e);
int transfer_note_error(struct transfer_batch *b, const err *e, int rc); /* returns rc */

/* A manifest that was sealed or parsed has been checked: no name in it leaves the directory, each
 * file has its digests, nothing lies below a link. Any other manifest is refused. */
int transfer_checked(const manifest *m, err *e);
int transfer_key(const struct transfer_batch *b, const char *name, char *key, err *e);
int transfer_canceled(const transfer *t, err *e);

/* These tell the one who listens (progress_sink.h), and count. */
void transfer_begin(const transfer *t, const char *what, const manifest *m);
void transfer_moved(const transfer *t, size_t bytes);
void transfer_end(const transfer *t);

#endif
