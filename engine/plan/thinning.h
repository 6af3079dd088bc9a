/* thinning: may files of an older commit go, since newer ones are there? Pure. It is asked before the log
 * lets them go, and again each time before any is removed, on the log as it is then: a newer one may have
 * been marked bad, or dropped, in between. */
#ifndef PLAN_THINNING_H
#define PLAN_THINNING_H

#include "plan/retention.h"

/* Returns why the files of this commit stay (static text); NULL: they may go. `newest`: so many good ones of
 * its kind must be there behind it; where that is one, a run must have gone on from one of those, or each of its
 * bytes must have been read (`guard->resumed`, `guard->verified`): the newest may not load, and then this one is
 * what is gone on from. */
const char *thinning_guarded(const runlog_state *state, const runlog_commit *c,
                             const retention_guard *guard, uint64_t newest);

#endif
