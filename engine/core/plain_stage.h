/* plain_stage: a directory beside another one, in which that one's new content is made. (Where that
 * one is another file system, to merge into, it is in there.)
 *
 * Its name is ".<base>.ckpt-<nonce>". It is locked while it is at work, so one that is not was left
 * by a process that died: the next one on its way to the same directory removes it.
 *
 * Who may write to the directories that it is in may not be whom we are: they are held (fs_held),
 * and no link that is put into them is followed. */
#ifndef CORE_PLAIN_STAGE_H
#define CORE_PLAIN_STAGE_H

#include "base/err.h"
#include "base/io.h"
#include "prims/fs.h"
#include "prims/fs_held.h"
#include "prims/lock.h"

typedef struct plain_stage {
  const io *io;   /* through `where`: for all that is done in it */
  fs_held *where; /* the nearest directory above the target that was there, and the target */
  char target[FS_PATH_MAX];
  char top[FS_PATH_MAX];  /* the held one above it; "": none yet */
  char dir[FS_PATH_MAX];  /* in which it is made */
  char path[FS_PATH_MAX]; /* "": not open */
  char made[FS_PATH_MAX]; /* the topmost directory that had to be made for it; "": none */
  lock held;
  bool merge, into; /* into: the target is there, and held */
} plain_stage;

/* ERR_EXISTS if `target` is there and `merge` is false. */
int plain_stage_open(plain_stage *s, const io *io, const char *target, bool merge, err *e);
/* Gives it the name of the target, or moves what is in it over what is there. ERR_EXISTS if the
 * target is there by now, or if one of both is a directory where the other one is not. It is closed
 * when this returns. */
int plain_stage_show(plain_stage *s, err *e);
/* Removes it, and the directories that were made for it; fine on one that is not open. */
void plain_stage_drop(plain_stage *s, err *e);

#endif
