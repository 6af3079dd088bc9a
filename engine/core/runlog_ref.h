/* runlog_ref: a commit, named so that another log does not have it.
 *
 * What is remembered on this machine is of one target, and the next run may have another one: a
 * second target, one that was emptied, one restored from an older backup, a copy that was gone on
 * with. In those the same number is another commit's, or nobody's. A copy shares entry 0, so the
 * commit's own entry is asked, too. */
#ifndef CORE_RUNLOG_REF_H
#define CORE_RUNLOG_REF_H

#include "core/runlog.h"

typedef struct runlog_ref {
  uint64_t n;                   /* RUNLOG_NONE: none */
  char log[RUNLOG_NONCE_MAX];   /* the nonce of entry 0; "": not known (of before 1.1) */
  char entry[RUNLOG_NONCE_MAX]; /* and of the commit's own */
} runlog_ref;

/* Names commit `n` of this log. May read an entry (see runlog_nonce); on failure the number alone
 * is in *out, and no log is known by it. */
int runlog_ref_of(runlog *log, uint64_t n, runlog_ref *out, err *e);

/* The commit that it names, if it is one of this log: else NULL. May read, too. */
int runlog_ref_find(runlog *log, const runlog_ref *ref, const runlog_commit **out, err *e);

/* Do both name the same commit? Not if one does not know its log. */
bool runlog_ref_same(const runlog_ref *a, const runlog_ref *b);

#endif
