/* state_dir: makes files in a run's state directory, for the runner. */
#ifndef RUNNER_JOB_STATE_DIR_H
#define RUNNER_JOB_STATE_DIR_H

#include <stdio.h>
#include <sys/types.h>

/* Returns a descriptor for the directory itself, or -errno. The engine tells its path without
 * links: a link that is on the way by now was put there by somebody else, and is not followed. */
int state_dir_open(const char *path);

/* Makes a new file in it to write to; an old file of that name goes. 0 or -errno. */
int state_dir_create(int dir, const char *name, mode_t mode, FILE **out);
/* Closes it when it is on the disk. 0 or -errno. */
int state_dir_finish(FILE *f);

/* Takes a file out of the state directory at `path`, if it is there. What hinders that is a warning. */
void state_dir_forget(const char *path, const char *name);

#endif
