#include "runlog_ref.h"

#include <stdio.h>
#include <string.h>

int runlog_ref_of(runlog *log, uint64_t n, runlog_ref *out, err *e) {
  const char *zero = NULL, *own = NULL;
  *out = (runlog_ref){.n = n};
  int rc = runlog_nonce(log, 0, &zero, e);
  if (rc == 0) rc = runlog_nonce(log, n, &own, e);
  if (rc < 0) return rc;
  snprintf(out->log, sizeof out->log, "%s", zero);
  snprintf(out->entry, sizeof out->entry, "%s", own);
  return 0;
}

bool runlog_ref_same(const runlog_ref *a, const runlog_ref *b) {
  return a->n == b->n && *a->log && *a->entry && strcmp(a->log, b->log) == 0 &&
         strcmp(a->entry, b->entry) == 0;
}

int runlog_ref_find(runlog *log, const runlog_ref *ref, const runlog_commit **out, err *e) {
  runlog_ref here;
  *out = NULL;
  if (!*ref->log || !*ref->entry || !runlog_find_commit(runlog_view(log), ref->n)) return 0;
  int rc = runlog_ref_of(log, ref->n, &here, e);
  if (rc == 0 && runlog_ref_same(&here, ref)) *out = runlog_find_commit(runlog_view(log), ref->n);
  return rc;
}
