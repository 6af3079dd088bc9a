/* prune_impl: what the files of a pass of retention share. For prune*.c only. */
#ifndef JOB_KEEP_PRUNE_IMPL_H
#define JOB_KEEP_PRUNE_IMPL_H

#include "prune.h"

/* State of one pass: the guards with the pins that hold now. */
typedef struct prune_pass {
  const prune *p;
  pins pins;
  uint64_t *pinned;
  retention_guard guard;
  retention_item *items; /* the plan, for the commits of the log as it was */
} prune_pass;

/* Reads the pins. `now` is by the store's clock; INT64_MIN: it is not known, and no pin counts as
 * expired. ERR_FORMAT: one cannot be read. */
int prune_pass_pins(prune_pass *a, int64_t now, err *e);
void prune_pass_free(prune_pass *a);

bool prune_stopped(const prune *p);
void prune_wait_for(prune_rest *rest, int64_t ns);

#endif
