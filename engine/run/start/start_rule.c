#include "start_rule.h"

#include <string.h>

#include "base/seconds.h"

int64_t start_patience(int64_t wanted_ns, bool committed_before) {
  enum { KNOWN_S = 120, NEW_S = 15 };
  if (wanted_ns < 0) return SECOND_NS; /* a call that fails for once is no outage */
  if (wanted_ns > 0) return wanted_ns;
  return (committed_before ? KNOWN_S : NEW_S) * SECOND_NS;
}

const char *start_refusal(const start_facts *f) {
  if (!f->wished) return "";
  if (!f->outage) return "`start_anyway` is for a store that does not answer";
  if (f->ranks)
    return "`start_anyway` is for a job that saves alone: ranks agree in the store on what they "
           "go on from";
  if (f->never) return NULL;
  if (f->named) return "`start_anyway` cannot restore the checkpoint that was named";
  if (!f->tied)
    return "`start_anyway` begins only where the newest commit that is known of this target stands "
           "whole in the directory, or where nothing is to be restored";
  return NULL;
}

const char *start_end(const start_answer *a) {
  bool knew = a->came_from.n != RUNLOG_NONE;
  if (a->other_run) return "the target is another run's";
  if (a->held) return "another writer is alive there";
  if (!a->has_log) return knew ? "the log that this directory knew is not there any more" : NULL;
  if (knew && strcmp(a->newest.log, a->came_from.log) != 0)
    return "the log there is another one than this directory knew";
  if (!knew && a->newest.n == RUNLOG_NONE) return NULL;
  if (!knew) return "there are checkpoints of which this directory knew nothing";
  if (!runlog_ref_same(&a->newest, &a->came_from))
    return "the newest checkpoint there is not the one that this job came from";
  return NULL;
}

bool start_may_move(const start_strangers *s) {
  return s->count == 0 || !s->restores || s->fresh || s->committed || s->used;
}
