/* remove_by_hand: removes checkpoints of a target by hand. It works as a guest: no run is opened,
 * and nobody is fenced. A checkpoint that a rule of retention.h keeps is refused before anything is
 * written. Blocks. */
#ifndef JOB_KEEP_REMOVE_BY_HAND_H
#define JOB_KEEP_REMOVE_BY_HAND_H

#include "catalog/asked.h"

typedef struct remove_wish {
  bool everything; /* the newest of a kind, too; without a name everything that is live */
  bool dry; /* nothing is written; `told` hears what would be done, by this machine's clock */
  int64_t grace_ns; /* the grace period, from drop to delete */
} remove_wish;

/* Drops the newest live checkpoint of the name, or everything, and deletes those of the name that
 * were dropped longer than the grace period ago. Without a name and `everything` nothing is
 * dropped. ERR_HELD: a rule keeps it. ERR_INVAL: several groups have the name. `told` (may be NULL)
 * hears of each drop and delete; if it returns other than 0, that is returned. */
int remove_by_hand(const asked *a, const remove_wish *wish, catalog_fn *told, void *ctx, err *e);

#endif
