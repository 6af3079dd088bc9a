#include "thinning.h"

#include "prims/match_series.h"

const char *thinning_guarded(const runlog_state *state, const runlog_commit *c,
                             const retention_guard *guard, uint64_t newest) {
  uint64_t newer = 0;
  bool proven = false;
  if (c->life != RUNLOG_LIVE) return "it is not kept any more";
  if (c->bad) return "it is marked bad";
  if (c->above) return "it is no checkpoint";
  const char *why = retention_guarded(state, c, guard, RETENTION_POLICY);
  if (why) return why;
  for (size_t i = state->commit_count; i-- > 0 && state->commits[i].n > c->n;) {
    const runlog_commit *other = &state->commits[i];
    if (other->life != RUNLOG_LIVE || other->bad || !match_same_series(other->unit, c->unit))
      continue;
    newer++;
    proven |= other->n == guard->resumed || other->n == guard->verified;
  }
  if (newer < newest || newer == 0) return "it is among the newest of its kind";
  if (newest <= 1 && !proven) return "of the newer ones none has been gone on from, or verified";
  return NULL;
}
