/* survey: judges the units of the directory while nobody writes there. */
#ifndef RUN_BEGIN_SURVEY_H
#define RUN_BEGIN_SURVEY_H

#include "run/run_state.h"

/* Blocks. */
int run_survey(run *r, survey *out, err *e);
void run_survey_free(survey *s);

#endif
