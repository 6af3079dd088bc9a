/* ready: the file in the state directory by which the task that watches a directory tells the
 * by-standers that they may start, and from which checkpoint. */
#ifndef RUNNER_JOB_READY_H
#define RUNNER_JOB_READY_H

typedef struct ready {
  char *resume, *restored_from; /* NULL: none */
  int failed;                   /* not 0: it ended with this code before it could be made ready */
} ready;

/* Leaves <state>/ready.<launch>, for by-standers, in one step; those of earlier launches go. 0 or
 * -errno. */
int ready_say(const char *state, const char *launch, const char *resume, const char *restored_from);
/* Leaves word at the same place that it will not come to that. An existing state directory is
 * needed. */
int ready_fail(const char *state, const char *launch, int code);
/* Removes the file of an earlier launch of the same name, for a task that is about to take the
 * directory. */
void ready_forget(const char *state, const char *launch);
/* Reads the file: 1 and its content, 0 if it is not there yet, or -errno. */
int ready_read(const char *state, const char *launch, ready *out);
void ready_free(ready *r);

#endif
