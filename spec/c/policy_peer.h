/* policy_peer: requests for the sandbox of policies, and what stands in its answers. For tests. */
#ifndef SPEC_POLICY_PEER_H
#define SPEC_POLICY_PEER_H

#include <stddef.h>

#include "base/json.h"

/* {"op":"load"} with one policy "p" of `len` bytes; bytes that are not UTF-8 are replaced. The
 * caller frees it. */
char *peer_load(const char *id, const char *text, size_t len);
/* {"op":"ask"} about an event that has something for each hook. The caller frees it. */
char *peer_ask(const char *id, const char *hook);

/* "ok", or the kind of failure, of an answer; "?" if it is none. Static memory. */
const char *peer_kind(const char *answer, size_t len);

/* One policy of spec/hostile. */
typedef struct hostile {
  char name[128];
  char *text; /* owned */
  size_t len;
  char hook[32];  /* "load", or what has to be asked */
  char kinds[64]; /* which ends are right: "budget memory" */
} hostile;

/* Returns all of them, in order; an item without a text ends them. */
hostile *hostile_all(void);
void hostile_free(hostile *all);
/* True if `kind` is one of its ends. */
int hostile_expects(const hostile *h, const char *kind);

#endif
