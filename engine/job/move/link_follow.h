/* link_follow: opens what a symbolic link leads to, if the link's owner may read it.
 *
 * The tree in which the link stands may belong to another user, who makes links to whatever he
 * likes and changes them while they are followed. So:
 *
 * - The way is walked from one open directory to the next, and what is at its end is looked at
 *   before it is opened: a pipe, a socket or a device is never opened, and nothing waits.
 * - Nothing is followed through or into what the kernel makes up (/proc, /sys, /dev and their like),
 *   by the kind of its file system and by its path.
 * - Our own links go wherever we may go. The links of others go only to files of the same owner:
 *   what somebody may read himself he gains nothing by. Root walks their links with the rights of
 *   the owner, follows on the way no link of a third user, and not even its own links lead it to
 *   another user's file. */
#ifndef JOB_MOVE_LINK_FOLLOW_H
#define JOB_MOVE_LINK_FOLLOW_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/io.h"

typedef enum link_end {
  LINK_END_WITHIN, /* it leads to something below its own directory, and nowhere else on the way */
  LINK_END_FILE,   /* a regular file outside, which may be read */
  LINK_END_DIR,    /* a directory outside */
  LINK_END_NOWHERE,
  LINK_END_DENIED,  /* its owner may not read that, or it is not the owner's */
  LINK_END_SPECIAL, /* a pipe, a socket or a device */
  LINK_END_KERNEL,  /* below /proc, /sys or /dev */
} link_end;

typedef struct link_followed {
  link_end end;
  int fd;         /* LINK_END_FILE: open for reading, the caller's to close; else -1 */
  struct stat st; /* LINK_END_FILE: of that file */
} link_followed;

/* True if a name below the directory belongs to what is saved. */
typedef bool link_has(void *ctx, const char *name);

/* A directory of which links are followed. It holds one descriptor. */
typedef struct link_follower link_follower;

/* Opens the directory `path` below `root`; no part of `path` may be a link, and for root none on
 * the way to `root` may be another user's (ERR_ACCESS). ERR_NOENT. */
int link_follower_new(const io *io, const char *root, const char *path, link_follower **out,
                      err *e);
void link_follower_free(link_follower *f); /* NULL is fine */

/* Follows the link `name` below the directory, which is the inode that `is` says, or it is
 * ERR_RETIRED. `has` (NULL: everything) says what counts as within: a link that leads to a name
 * without leaving the directory is LINK_END_WITHIN if the name, or a link on the way that it ends at,
 * belongs to it. A file server's failure is an error. May be called from several threads at
 * once, once the first call is over. */
int link_follow(link_follower *f, const char *name, const struct stat *is, link_has *has, void *ctx,
                link_followed *out, err *e);

/* Follows the link again that was a file, whichever link has the name by now: what is there is for
 * the caller to compare. */
int link_follow_again(link_follower *f, const char *name, link_followed *out, err *e);

#endif
