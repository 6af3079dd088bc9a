/* owner_rights: lets root's thread look at files with the rights of another user. */
#ifndef JOB_MOVE_OWNER_RIGHTS_H
#define JOB_MOVE_OWNER_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { OWNER_GROUPS_MAX = 256 };

/* A user, with the groups that the system's user database gives him. One whom it does not know is
 * in no group, and so may do less than he might. */
typedef struct owner_rights {
  uid_t uid;
  gid_t gid;
  int count;
  gid_t groups[OWNER_GROUPS_MAX];
} owner_rights;

/* What the thread had. */
typedef struct owner_rights_before {
  long count;
  gid_t *groups;
  int dumpable;
} owner_rights_before;

void owner_rights_of(uid_t uid, owner_rights *out);

/* Gives this thread the user's rights to files, and no others, until owner_rights_back(): one thread of
 * the process at a time, the others wait here. Returns 0, or -errno (then nothing has changed)
 * where that cannot be, as without CAP_SETUID. Other threads keep their rights. */
int owner_rights_take(const owner_rights *r, owner_rights_before *before);
void owner_rights_back(owner_rights_before *before);

#endif
