/* changes: the commits of which two chains of policies say otherwise whether they are kept, to be told. */
#ifndef RUN_POLICIES_CHANGES_H
#define RUN_POLICIES_CHANGES_H

#include "decision/policy.h"

typedef struct change {
  const char *group; /* borrowed: a group lives as long as its run */
  char *name;
  uint64_t commit;
  int64_t step;
  policy_kept before, after;
} change;

/* Zero-initialise it. Out of memory it is shorter: it is told, no more. */
typedef struct changes {
  change *at;
  size_t count, room;
} changes;

void changes_add(changes *c, const char *group, const policy_item *item, const policy_kept *before,
                 const policy_kept *after);
/* Adds the items that are kept in one answer, and not in the other. */
void changes_compare(changes *c, const char *group, const policy_item *items, size_t count,
                     const policy_kept *before, const policy_kept *after);
void changes_clear(changes *c, const char *group); /* NULL: of all groups */
void changes_free(changes *c);

#endif
