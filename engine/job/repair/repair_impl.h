/* repair_impl: declarations that repair.c and repair_*.c share. */
#ifndef JOB_REPAIR_REPAIR_IMPL_H
#define JOB_REPAIR_REPAIR_IMPL_H

#include "base/names.h"
#include "commit/log/runlog_ruin.h"
#include "repair.h"

/* What stands at the log's place beside its entries. */
int repair_gather(runlog_ruin *r, runlog_evidence *out, err *e);
void repair_forget(runlog_evidence *v);
/* Returns 1 if each file that the commit has by the manifest in that directory stands there with its
 * size. */
int repair_is_whole(store *s, const char *dir_key, const runlog_commit *c, err *e);

#endif
