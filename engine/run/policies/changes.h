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

/* Of so many it is noted what they are; more are counted. */
enum { CHANGES_MOST = 300 };

typedef struct changes_more {
  const char *group; /* as above */
  size_t count;
} changes_more;

/* Zero-initialise it. Out of memory it is shorter: it is told, no more. */
typedef struct changes {
  change *at;
  size_t count, room;
  changes_more *more;
  size_t more_count, more_room;
} changes;

void changes_add(changes *c, const char *group, const policy_item *item, const policy_kept *before,
                 const policy_kept *after);
size_t changes_all(const changes *c);              /* with those that are counted alone */
void changes_clear(changes *c, const char *group); /* NULL: of all groups */
void changes_free(changes *c);

#endif
