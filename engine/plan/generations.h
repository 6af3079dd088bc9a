/* generations: tells what the core lets go by itself, without a policy's word: older generations of
 * what is saved again and again under one name. Pure.
 *
 *   - of a file above the checkpoints the last ABOVE_KEPT of its kind stay;
 *   - of a name without a number, as `last.pt`, or with one that never changed, as `resnet50.pt`, the
 *     last GENERATIONS_KEPT, the last one of each day (UTC) and the last one of each writer (term)
 *     stay, unless a policy says otherwise. Only what was committed after a generation, is good and
 *     has the very same name takes its place; a bad one takes none, and stays. Nor does a suspect
 *     one, and the one before that stays: it is what a start may have to go back to.
 *
 * All else is kept. What the guards of retention.h keep stays whatever is said here. */
#ifndef PLAN_GENERATIONS_H
#define PLAN_GENERATIONS_H

#include <stdbool.h>

#include "commit/log/runlog.h"

enum { GENERATIONS_KEPT = 3 };

/* Commits that are suspect; RUNLOG_NONE: none. */
typedef struct generations_doubt {
  uint64_t commits[2];
} generations_doubt;

/* True if no commit differs from it in the numbers of its name alone. Quickly told where they change. */
bool generations_is_fixed(const runlog_state *state, const runlog_commit *c);
/* True if it depends on its name whether this commit may go at all. Quickly told. */
bool generations_has_name(const runlog_state *state, const runlog_commit *c);

/* Returns why this commit of the state goes (static text); NULL: it stays. `reused`: its name is
 * written again and again; of a file above the checkpoints it is not looked at. `doubt` may be NULL. */
const char *generations_passed(const runlog_state *state, const runlog_commit *c, bool reused,
                               const generations_doubt *doubt);

#endif
