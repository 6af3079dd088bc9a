/* retry: whether a save that failed is tried again, and when. Pure. */
#ifndef PLAN_RETRY_H
#define PLAN_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "decision/policy.h"

typedef struct retry_facts {
  int status;           /* of the last try */
  unsigned tries;       /* that failed, this one included */
  unsigned most;        /* tries altogether */
  policy_remedy remedy; /* the policy's word, and its pause with POLICY_RETRY */
  double seconds;
  bool short_of_time;
} retry_facts;

/* Sets *pause_ns to how long it waits then. A policy may overrule the error's class, within the
 * bounds: nothing is tried for ever. */
bool retry_again(const retry_facts *f, int64_t *pause_ns);

#endif
