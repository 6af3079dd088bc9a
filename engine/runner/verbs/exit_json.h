/* exit_json: reads the outcome that a run has left. */
#ifndef RUNNER_VERBS_EXIT_JSON_H
#define RUNNER_VERBS_EXIT_JSON_H

/* Returns the whole of a file of ours, for the caller to free; NULL with errno. */
char *exit_json_read(const char *path);

#endif
