/* progress_sink: who hears how far the transfers of a call that blocks are, one checkpoint after
 * the other. */
#ifndef CORE_PROGRESS_SINK_H
#define CORE_PROGRESS_SINK_H

#include <stdint.h>

#include "core/manifest.h"

typedef struct progress_sink {
  /* On the thread that asked for the transfer, around the calls of `moved`; each begin has its end,
   * also after a failure. `what`: "restore", "verify", "check" (ckpt_progress); a static text. `m`
   * stays until the end. */
  void (*begin)(void *ctx, const char *what, const manifest *m);
  void (*end)(void *ctx);
  /* On any thread, several at once. A transfer waits for it. */
  void (*moved)(void *ctx, uint64_t bytes);
  void *ctx;
} progress_sink;

#endif
