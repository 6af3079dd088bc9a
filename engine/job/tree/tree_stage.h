/* tree_stage: a directory beside the target, in which the target's new content is made. (If the
 * target is another file system, to merge into, the stage is inside it.)
 *
 * Its name is ".<base>.ckpt-<nonce>". It is locked while somebody is at work in it, so one without
 * a lock was left by a process that died: the next one on its way to the same directory removes it.
 *
 * Other users may be able to write to the directories above: they are held (fs_held), and no link
 * that is put into them is followed. */
#ifndef JOB_TREE_TREE_STAGE_H
#define JOB_TREE_TREE_STAGE_H

#include "base/err.h"
#include "base/io.h"
#include "prims/fs.h"
#include "prims/fs_held.h"
#include "prims/lock.h"

typedef struct tree_stage {
  const io *io;   /* goes through `where`: for all work in the stage */
  fs_held *where; /* the nearest directory above the target that was there, and the target */
  char target[FS_PATH_MAX];
  char top[FS_PATH_MAX];  /* the held one above it; "": none yet */
  char dir[FS_PATH_MAX];  /* in which it is made */
  char path[FS_PATH_MAX]; /* "": not open */
  char made[FS_PATH_MAX]; /* the topmost directory that had to be made for it; "": none */
  lock held;
  bool merge, into; /* `into`: the target is there, and held */
} tree_stage;

/* Opens the stage. ERR_EXISTS if `target` is there and `merge` is false. */
int tree_stage_open(tree_stage *s, const io *io, const char *target, bool merge, err *e);
/* Gives the stage the name of the target, or moves its files over those that are there. ERR_EXISTS
 * if the target is there by now, or if one of both is a directory where the other one is not. It is
 * closed when this returns. */
int tree_stage_show(tree_stage *s, err *e);
/* Removes it, and the directories that were made for it; it is fine on one that is not open. */
void tree_stage_drop(tree_stage *s, err *e);

#endif
