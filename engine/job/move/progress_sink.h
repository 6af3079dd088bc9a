/* progress_sink: hears how far the transfers of a call that blocks are, one checkpoint after the
 * other. */
#ifndef JOB_MOVE_PROGRESS_SINK_H
#define JOB_MOVE_PROGRESS_SINK_H

#include <stdint.h>

#include "commit/manifest/manifest.h"

typedef struct progress_sink {
  /* Both are called on the thread that asked for the transfer, around the calls of `moved`; each
   * begin has its end, also after a failure. `what` is a static text: "restore", "verify", "check"
   * (ckpt_progress). `m` stays until the end. */
  void (*begin)(void *ctx, const char *what, const manifest *m);
  void (*end)(void *ctx);
  /* May be called on any thread, by several at once. A transfer waits for it. */
  void (*moved)(void *ctx, uint64_t bytes);
  void *ctx;
} progress_sink;

#endif
