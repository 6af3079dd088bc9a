/* policy_serve: answers the requests of decision/policy_link.h, with a state for each id. */
#ifndef LUA_POLICY_POLICY_SERVE_H
#define LUA_POLICY_POLICY_SERVE_H

#include "base/buf.h"

enum { POLICY_STATES_MAX = 64 }; /* beyond it the least recently used is dropped */

typedef struct policy_serve policy_serve;

/* `warning` (may be NULL; kept, not copied) goes into the answer to each load. NULL: out of
 * memory. */
policy_serve *policy_serve_new(const char *warning);
void policy_serve_free(policy_serve *p); /* NULL is fine */

/* Returns how many states stand: memory has to be there for one more. */
unsigned policy_serve_states(const policy_serve *p);

/* Answers any request: `answer` (initialised by this call, the caller's to free) gets one JSON
 * object: 0. ERR_NOMEM: nothing could be answered. */
int policy_serve_call(policy_serve *p, const char *request, size_t len, buf *answer);

#endif
