/* thinning: may files of an older commit go, since newer ones are there? Pure. It is asked before the log
 * lets them go, and again each time before any is removed, on the log as it is then: a newer one may have
 * been marked bad, or dropped, in between. */
#ifndef PLAN_THINNING_H
#define PLAN_THINNING_H

#include "plan/retention.h"

/* Commits that have such files themselves, by their numbers. */
typedef struct thinning_have {
  const uint64_t *at;
  size_t count;
} thinning_have;

/* Returns why the files of this commit stay (static text); NULL: they may go. `newest`: so many good ones of
 * its kind must be there behind it, of those of `have` (NULL: nobody has looked yet, each counts); where that is one, a run must have gone on from one of those, or each of its
 * bytes must have been read (`guard->resumed`, `guard->verified`): the newest may not load, and then this one is
 * what is gone on from. */
const char *thinning_guarded(const runlog_state *state, const runlog_commit *c,
                             const retention_guard *guard, uint64_t newest,
                             const thinning_have *have);

typedef enum thinning_verdict {
  THINNING_STAYS, /* it keeps all that it has (why) */
  THINNING_WAIT,  /* enough newer ones are there, and not yet for the grace period */
  THINNING_GOES,  /* append `thin`, if it has such files */
} thinning_verdict;

typedef struct thinning {
  thinning_verdict verdict;
  const char *why; /* static; with THINNING_STAYS */
  uint64_t after;  /* with the others: since this commit enough newer ones are there */
  int64_t wait_ns; /* with THINNING_WAIT */
} thinning;

/* Judges a commit of this state by the times in the log; who removes anything asks the store for that of the
 * entry `after`. The grace period is before the entry: until it is over all files can be read. */
thinning thinning_judge(const runlog_state *state, const runlog_commit *c,
                        const retention_guard *guard, const retention_limits *limits,
                        uint64_t newest, const thinning_have *have);

/* The verdict by time alone, where enough newer ones are there since `after`. */
thinning thinning_since(const runlog_commit *after, const retention_limits *limits);

/* True of a good one of this unit's kind, which counts if it has such files. */
bool thinning_counts(const char *unit, const runlog_commit *newer);

/* Returns how many commits a pass that has dropped so many may take files of: the share is one for both. */
size_t thinning_most(const runlog_state *state, const retention_limits *limits, size_t dropped);

#endif
