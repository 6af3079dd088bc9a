#include "owner_rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* "nogroup": the group of who has none. */
enum { NO_GROUP = 65534 };

/* The kernel has rights for each thread; the C library would set them for all. On some machines the
 * old calls have groups of 16 bits. */
#ifdef SYS_setgroups32
enum { GET_GROUPS = SYS_getgroups32, SET_GROUPS = SYS_setgroups32 };
#else
enum { GET_GROUPS = SYS_getgroups, SET_GROUPS = SYS_setgroups };
#endif

/* A change of rights makes the process undumpable, which is put right afterwards: two threads that
 * do so would take each other's state for the one before. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

void owner_rights_of(uid_t uid, owner_rights *out) {
  char text[4096];
  struct passwd entry, *found = NULL;
  *out = (owner_rights){.uid = uid, .gid = NO_GROUP};
  if (getpwuid_r(uid, &entry, text, sizeof text, &found) != 0 || !found) return;
  out->gid = entry.pw_gid;
  out->count = OWNER_GROUPS_MAX;
  /* Of too many groups the first are taken: with fewer he may do less. */
  if (getgrouplist(entry.pw_name, entry.pw_gid, out->groups, &out->count) < 0)
    out->count = OWNER_GROUPS_MAX;
}

static int set_groups(long count, const gid_t *groups) {
  return syscall(SET_GROUPS, count, groups) < 0 ? -errno : 0;
}

static int save_groups(owner_rights_before *b) {
  b->count = syscall(GET_GROUPS, 0, NULL);
  if (b->count < 0) return -errno;
  b->groups = calloc((size_t)b->count + 1, sizeof *b->groups);
  if (!b->groups) return -ENOMEM;
  b->count = syscall(GET_GROUPS, b->count, b->groups);
  return b->count < 0 ? -errno : 0;
}

/* Neither call says whether it worked; asked with an id that is none, it says what is. */
static bool set_ids(uid_t uid, gid_t gid) {
  setfsgid(gid);
  if ((gid_t)setfsgid((gid_t)-1) != gid) return false;
  setfsuid(uid);
  return (uid_t)setfsuid((uid_t)-1) == uid;
}

static void put_back(owner_rights_before *b, bool groups) {
  set_ids(geteuid(), getegid());
  if (groups) set_groups(b->count, b->groups);
  free(b->groups);
  b->groups = NULL;
  if (b->dumpable == 1) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  pthread_mutex_unlock(&one_at_a_time);
}

int owner_rights_take(const owner_rights *r, owner_rights_before *before) {
  *before = (owner_rights_before){0};
  pthread_mutex_lock(&one_at_a_time);
  before->dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  /* With this bit root's power over files stays when the user changes. */
  int bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
  int rc = bits < 0 || bits & SECBIT_NO_SETUID_FIXUP ? -EPERM : save_groups(before);
  bool groups = rc == 0 && (rc = set_groups(r->count, r->groups)) == 0;
  if (rc == 0 && !set_ids(r->uid, r->gid)) rc = -EPERM;
  if (rc < 0) put_back(before, groups);
  return rc;
}

void owner_rights_back(owner_rights_before *before) {
  put_back(before, true);
}
