/* memory: the table that the policies of a group remember, as a document in the store. */
#ifndef RUN_POLICIES_MEMORY_H
#define RUN_POLICIES_MEMORY_H

#include "base/err.h"
#include "base/log.h"
#include "store/store.h"

/* What the policies remembered of earlier runs: while it is not known nothing is dropped, or freed, by
 * what they remember now. */
typedef enum memory_state {
  MEMORY_KNOWN,
  MEMORY_UNREAD, /* the store has not been asked yet: written is only where it has none */
  MEMORY_BROKEN, /* what is there cannot be read: it is not written over */
} memory_state;

/* Reads what the policies remembered of earlier runs, for the caller to free; NULL: nothing. Blocks on
 * the store, and may run on a worker. A text that is not ours is no failure, since asking again would not
 * help: it is warned of, and MEMORY_BROKEN. */
int memory_read(store *s, const log_sink *log, const char *prefix, char **memory,
                memory_state *state, err *e);
int memory_write(store *s, const char *prefix, const char *memory, err *e);

#endif
