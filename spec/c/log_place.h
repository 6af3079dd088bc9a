/* log_place: a log with a term, at the top of a store, for tests of what is written into it. The log is checked by
 * a second reader when the test is over. */
#ifndef SPEC_LOG_PLACE_H
#define SPEC_LOG_PLACE_H

#include "world.h"

typedef struct log_place {
  world *w;
  store *s;
  runlog *log; /* the world closes it */
} log_place;

/* The fixtures of a test whose state is such a place. */
int log_place_set_up(void **state);
int log_place_tear_down(void **state);
#define IN_BOTH_PLACES(test) IN_BOTH_WORLDS(test, log_place_set_up, log_place_tear_down)

/* Fails the test if the log at the top of a store is broken. */
void log_place_check(store *s);

#endif
