/* runlog_ref: a name of a commit that tells logs apart.
 *
 * A note on this machine is about one target, and the next run may have another one: a second
 * target, one that was emptied, one restored from an older backup, a copy that was gone on with.
 * There the same number is another commit's, or nobody's. A copy shares entry 0, so the nonce of
 * the commit's own entry is compared, too. */
#ifndef COMMIT_LOG_RUNLOG_REF_H
#define COMMIT_LOG_RUNLOG_REF_H

#include "commit/log/runlog.h"

typedef struct runlog_ref {
  uint64_t n;                   /* RUNLOG_NONE: none */
  char log[RUNLOG_NONCE_MAX];   /* the nonce of entry 0; "": not known (older than 1.1) */
  char entry[RUNLOG_NONCE_MAX]; /* the nonce of the commit's own entry */
} runlog_ref;

/* Names commit `n` of this log. It may read an entry (see runlog_nonce); on failure *out has the
 * number alone, and matches no log. */
int runlog_ref_of(runlog *log, uint64_t n, runlog_ref *out, err *e);

/* Finds the commit that it names, if it is one of this log: else NULL. May read an entry, too. */
int runlog_ref_find(runlog *log, const runlog_ref *ref, const runlog_commit **out, err *e);

/* True if both name the same commit; false if one does not know its log. */
bool runlog_ref_same(const runlog_ref *a, const runlog_ref *b);

#endif
