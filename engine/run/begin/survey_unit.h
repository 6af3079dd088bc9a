/* survey_unit: what one unit of the directory is. */
#ifndef RUN_BEGIN_SURVEY_UNIT_H
#define RUN_BEGIN_SURVEY_UNIT_H

#include "run/evidence/vouched.h"
#include "run/run_state.h"

/* What is looked at once for all units. */
typedef struct surroundings {
  proc_writers *writers; /* NULL: not yet */
  vouchers vouchers;
} surroundings;

/* Sets u->seen, u->standing and what belongs to that, of one that is filled in from `facts` otherwise. Blocks. */
int survey_unit_judge(run *r, survey_unit *u, const detect_unit *facts, surroundings *around,
                      err *e);

#endif
