#include "thinning.h"

#include "base/seconds.h"
#include "prims/match_series.h"

static bool is_good(const runlog_commit *c) {
  return c->life == RUNLOG_LIVE && !c->bad;
}

bool thinning_counts(const char *unit, const runlog_commit *newer) {
  return is_good(newer) && match_same_series(newer->unit, unit);
}

static bool has_such(const thinning_have *have, uint64_t n) {
  for (size_t i = 0; have && i < have->count; i++)
    if (have->at[i] == n) return true;
  return !have;
}

/* True if so many good ones of its kind that have such files are behind it; `proven`: that one of these is what the run goes on
 * from, or the last that verified. */
static bool are_newer(const runlog_state *state, const runlog_commit *c,
                      const retention_guard *guard, uint64_t newest, const thinning_have *have,
                      bool *proven) {
  uint64_t newer = 0;
  const bool needs_proof = newest <= 1;
  *proven = !needs_proof;
  for (size_t i = state->commit_count; i-- > 0 && state->commits[i].n > c->n;) {
    const runlog_commit *other = &state->commits[i];
    const bool proves = other->n == guard->resumed || other->n == guard->verified;
    if (newer >= newest && newer > 0 && !proves) continue;
    if (!thinning_counts(c->unit, other)) continue;
    newer += has_such(have, other->n);
    *proven |= proves && has_such(have, other->n);
    if (newer >= newest && newer > 0 && *proven) return true;
  }
  return newer > 0 && newer >= newest;
}

const char *thinning_guarded(const runlog_state *state, const runlog_commit *c,
                             const retention_guard *guard, uint64_t newest,
                             const thinning_have *have) {
  bool proven;
  if (c->life != RUNLOG_LIVE) return "it is not kept any more";
  if (c->bad) return "it is marked bad";
  if (c->above) return "it is no checkpoint";
  const char *why = retention_guarded(state, c, guard, RETENTION_POLICY);
  if (why) return why;
  if (!are_newer(state, c, guard, newest, have, &proven))
    return "it is among the newest of its kind";
  return proven ? NULL : "of the newer ones none has been gone on from, or verified";
}

/* The commit since which so many good ones of its kind are behind it. */
static const runlog_commit *since(const runlog_state *state, const runlog_commit *c,
                                  uint64_t newest) {
  uint64_t newer = 0;
  for (size_t i = (size_t)(c - state->commits) + 1; i < state->commit_count; i++) {
    const runlog_commit *other = &state->commits[i];
    if (thinning_counts(c->unit, other) && ++newer >= newest) return other;
  }
  return NULL;
}

thinning thinning_judge(const runlog_state *state, const runlog_commit *c,
                        const retention_guard *guard, const retention_limits *limits,
                        uint64_t newest, const thinning_have *have) {
  const char *why = c->thin.globs.count ? "files of it are gone already"
                    : limits->no_delete ? "nothing is deleted here"
                                        : thinning_guarded(state, c, guard, newest, have);
  if (why) return (thinning){.why = why};
  const runlog_commit *after = since(state, c, newest);
  if (!after) return (thinning){.why = "it is among the newest of its kind"};
  return thinning_since(after, limits);
}

thinning thinning_since(const runlog_commit *after, const retention_limits *limits) {
  const int64_t rest =
      limits->grace_ns > 0 ? seconds_left(after->time_ns, limits->grace_ns, limits->now_ns) : 0;
  return (thinning){
      .verdict = rest > 0 ? THINNING_WAIT : THINNING_GOES, .after = after->n, .wait_ns = rest};
}

size_t thinning_most(const runlog_state *state, const retention_limits *limits, size_t dropped) {
  size_t live = 0;
  for (size_t i = 0; i < state->commit_count; i++) live += state->commits[i].life == RUNLOG_LIVE;
  /* What this pass has dropped is live no more. */
  const size_t most = retention_allowed(live + dropped, limits);
  return most > dropped ? most - dropped : 0;
}
