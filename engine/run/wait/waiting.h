/* waiting: names a call that blocks, when it takes long.
 *
 * It is for calls on the owner's thread (reading the logs, bringing a checkpoint back): a file
 * system that hangs cannot be interrupted, but it can be named. */
#ifndef RUN_WAIT_WAITING_H
#define RUN_WAIT_WAITING_H

#include <stdint.h>

#include "base/log.h"

typedef struct waiting waiting;

/* From now on, every `every_ns`, a warning says how long `what` ("reading the logs at s3://b") has
 * taken. Starts a thread. NULL if that fails: nothing is said then. `sink` is borrowed. */
waiting *waiting_begin(const log_sink *sink, int64_t every_ns, const char *what);
void waiting_end(waiting *w); /* NULL is fine */

#endif
