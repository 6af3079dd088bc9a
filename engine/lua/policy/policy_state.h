/* policy_state: one bounded Lua state with the policies of one run.
 *
 * The policies can call nothing but the functions that lua/policy/sandbox.lua and the rule library
 * hand out, and have no way back to us but their answer. A state that raised or overran is dead: it
 * is closed and never entered again. One thread at a time. */
#ifndef LUA_POLICY_POLICY_STATE_H
#define LUA_POLICY_POLICY_STATE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/packed.h"

typedef struct policy_state policy_state;

/* The text of a failure is written as the answer; `dead` tells whether the state has to be
 * closed. */
enum { POLICY_INPUT_TIMES = 32, POLICY_ANSWER_MAX = 1 << 20, POLICY_TEXT_MAX = 256 << 10 };

/* Answers the request {"op":"load",...} of `size` bytes (decision/policy_link.h), `warning` (may be
 * NULL) among its warnings. *out is the new state, or NULL if the answer is a failure: 0, or
 * ERR_NOMEM if not even that could be written. */
int policy_state_load(const json_t *request, size_t size, const char *warning, policy_state **out,
                      buf *answer);

/* A request as it came. */
typedef struct policy_request {
  const json_t *json;
  packed behind; /* what stands packed behind it; `at` is NULL: nothing does */
  size_t size;   /* of all */
} policy_request;

/* Answers {"op":"ask",...}. *dead: close it. */
int policy_state_ask(policy_state *s, const policy_request *r, buf *answer, bool *dead);

/* Answers {"op":"check",...}. *dead: close it. */
int policy_state_check(policy_state *s, const policy_request *r, buf *answer, bool *dead);

void policy_state_close(policy_state *s); /* NULL is fine */

/* Writes {"ok":false,"kind":K,"text":T}, in place of the present content of `answer`. */
int policy_state_refuse(buf *answer, const char *kind, const char *text);

#endif
