/* member: a task whose directory another one watches: it answers what that one asks, about the files
 * as they are seen from here. One thread. */
#ifndef LAUNCH_MEMBER_H
#define LAUNCH_MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"

typedef struct member member;

typedef struct member_options {
  const io *io;
  const char *dir;          /* the watched directory, absolute and without links */
  const char *home, *state; /* where the folder is: in the first of them that has it */
  const char *launch;       /* its id */
  uint32_t task, index;     /* of the launch; and among those that write into `dir` */
} member_options;

/* Says that we are here, which has to be known before our job begins to write. ERR_NOENT: the one that
 * watches asks nobody. */
int member_join(const member_options *o, member **out, err *e);
/* Answers if there is a new question. *quiet_ns: for how long there was none; *over: the one that asks
 * has ended in order. */
int member_step(member *m, int64_t *quiet_ns, bool *over, err *e);
/* How often it is to be called. */
int64_t member_pause_ns(const member *m);
/* Says that no process of our job writes any more. */
int member_end(member *m, bool clean, err *e);
void member_close(member *m); /* NULL is fine */

#endif
