/* mark: marks a checkpoint as one that does not load, or takes that back. It works as a guest: no
 * run is opened, and nobody is fenced. */
#ifndef CATALOG_MARK_H
#define CATALOG_MARK_H

#include "asked.h"

typedef struct mark_wish {
  const char *reason; /* NULL: none; shorter than RUNLOG_REASON_MAX */
  bool good;          /* takes the mark back */
  bool dry;           /* nothing is written */
  uint64_t only;      /* only the commit of this number; 0: any */
} mark_wish;

/* Marks the newest live checkpoint that is meant and that the mark would change; if a name is
 * given, also one that has the mark already. ERR_INVAL if several groups have the name. `told` (may
 * be NULL) is called for it. */
int mark_checkpoint(const asked *a, const mark_wish *wish, catalog_fn *told, void *ctx, err *e);

#endif
