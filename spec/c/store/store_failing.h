/* store_failing: a store around another one whose request number N fails, once or for good, before
 * the work was done or after it. For tests; many threads may use it. */
#ifndef SPEC_STORE_FAILING_H
#define SPEC_STORE_FAILING_H

#include <stdbool.h>

#include "store/store.h"

/* Says which requests fail. Zero: none. */
typedef struct store_failing_plan {
  long nth;      /* the first request that fails, counted from 1; 0: none */
  int code;      /* an ERR_*: what it answers */
  bool for_good; /* it and all later ones; else only this one */
  bool done;     /* it is carried out, and only its answer is lost. A removal of a prefix is half
                    carried out: one object of it is gone */
} store_failing_plan;

typedef struct store_failing store_failing;

/* `inner` is borrowed. Never NULL: aborts. */
store_failing *store_failing_new(store *inner);
void store_failing_free(store_failing *f);
store *store_failing_store(store_failing *f); /* good until store_failing_free */

/* Sets the plan, and counts from 1 again. */
void store_failing_set(store_failing *f, store_failing_plan plan);
long store_failing_failed(store_failing *f); /* how many were failed since then */

#endif
