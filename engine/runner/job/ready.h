/* ready: the file by which the task that watches a directory tells the by-standers that they may start, and
 * from which checkpoint. It is beside the directory ("<dir>.ckpt"), where all of them find it, and in the state
 * directory, where nothing can be beside it. */
#ifndef RUNNER_JOB_READY_H
#define RUNNER_JOB_READY_H

#include <limits.h>
#include <stdbool.h>

typedef struct ready {
  char *resume, *restored_from; /* NULL: none */
  char *state;                  /* of the task that watches; NULL where it failed */
  int failed;                   /* not 0: it ended with this code before it could be made ready */
  char *dir, *place; /* what it watches, and where that is (ready_place); NULL: not known */
  bool asks;         /* it asks the other tasks what they have written */
} ready;

/* The place beside `dir`; false: there is none, and `state` is the only one, or it is that. `out` has
 * PATH_MAX bytes. */
bool ready_beside(const char *dir, const char *state, char *out);

/* Finds the directory's path without links, and its place: the boot, the file system and the number there. */
enum { READY_PLACE_MAX = 160 };
bool ready_place(const char *dir, char real[PATH_MAX], char place[READY_PLACE_MAX]);
/* True if `dir` is another directory than the one that is watched, for sure: it has another path, and another
 * number on the same file system of the same host. One that was made anew has its path, and what is bound into
 * containers its number; what other hosts see cannot be told. */
bool ready_is_of_another(const ready *r, const char *dir);

/* Leaves <at>/ready.<launch>, for by-standers, in one step; those of earlier launches go. 0 or
 * -errno. */
int ready_say(const char *at, const char *launch, const ready *says);
/* Leaves word at the same place that it will not come to that. The place has to be there. */
int ready_fail(const char *at, const char *launch, int code);
/* Removes the file of an earlier launch of the same name, for a task that is about to take the
 * directory. */
void ready_forget(const char *at, const char *launch);
/* Reads the file: 1 and its content, 0 if it is not there yet, or -errno. */
int ready_read(const char *at, const char *launch, ready *out);
void ready_free(ready *r);

#endif
