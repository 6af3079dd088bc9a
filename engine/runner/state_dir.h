/* state_dir: a run's state directory, for what the runner keeps there itself. */
#ifndef RUNNER_STATE_DIR_H
#define RUNNER_STATE_DIR_H

/* A descriptor for the directory itself, or -errno. The engine tells its path without links: one
 * that is on the way by now was put there by somebody else, and is not followed. */
int state_dir_open(const char *path);

#endif
