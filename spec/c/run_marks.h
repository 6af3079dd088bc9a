/* run_marks: what tests of restores do to a host's target. Everything here fails the test when it
 * fails. */
#ifndef SPEC_RUN_MARKS_H
#define SPEC_RUN_MARKS_H

#include "run_host.h"

/* Commits a file of that name and text with a run of its own. */
void commit_file(run_host *h, const char *name, const char *text);
/* `mark bad` or `mark good`, as a guest. */
void mark_commit(run_host *h, const char *unit, bool bad);
bool commit_is_bad(run_host *h, const char *unit); /* the newest of that name */
void lose_dir(const char *path);

/* Opens a run if there is none, prepares it, and expects this code; *p and the error's text (static
 * memory). */
const char *prepare_run(run_host *h, run_restore how, const char *named, int expect,
                        run_prepared *p);
void must_resume_from(run_host *h, const run_prepared *p, const char *name);

#endif
