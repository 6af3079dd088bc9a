/* policy_once: what was asked about a checkpoint, and answered. A policy is asked about each content once
 * for each event; whoever looks at it again without news gets the answer that was given. */
#ifndef DECISION_POLICY_ONCE_H
#define DECISION_POLICY_ONCE_H

#include "decision/policy.h"
#include "prims/hash.h"

typedef struct policy_once {
  policy_asked asked[POLICY_DECIDING];
  decision answer;
  digest of;      /* the content */
  uint64_t event; /* number of the event; two are never the same */
  bool answered;
} policy_once;

/* Forgets all; another content begins like that. */
void policy_once_clear(policy_once *o);

/* True if this content was asked about at this event: *want, which has the built-in answer, is the
 * policy's then. Else it is to be asked, and policy_once_note() takes the answer. */
bool policy_once_stands(policy_once *o, const digest *content, uint64_t event, decision *want);
/* Has it as if each hook had been asked with this memory (NULL: empty): what it remembers now stays as it is. Out of
 * memory a hook counts as not asked. */
void policy_once_preset(policy_once *o, const char *memory);
void policy_once_note(policy_once *o, const digest *content, uint64_t event, const decision *want);

#endif
