/* compare: what would stay of the commits by the chains that rule now, and by a new one alone. */
#ifndef RUN_POLICIES_COMPARE_H
#define RUN_POLICIES_COMPARE_H

#include "run/policies/changes.h"
#include "run/policies/ruling.h"

/* The commits of a group, and what is remembered of it; all borrowed. */
typedef struct compare_list {
  const char *group, *memory;
  const policy_item *items;
  size_t count;
} compare_list;

/* Zero-initialise it. */
typedef struct compared {
  changes all, go; /* all differences, and those that the new one would let go */
  uint64_t left;   /* commits that there was no time for */
} compared;

/* Adds what differs of these. ERR_POLICY: `keep` of the new one fails for them. */
int compare_add(compared *c, ruling *replaced, policy *newest, policy *fresh,
                const compare_list *list, err *e);
void compared_free(compared *c);

#endif
