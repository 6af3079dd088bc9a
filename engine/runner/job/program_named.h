/* program_named: what a command runs: the script or module, not its interpreter, its launcher or
 * its flags. */
#ifndef RUNNER_JOB_PROGRAM_NAMED_H
#define RUNNER_JOB_PROGRAM_NAMED_H

/* Returns a name of what the words (ended by NULL, at least one) run: "file:/abs/train.py",
 * "module:pkg.train", "name:train" for a program of the PATH, "code:..." for `sh -c`. It stays the
 * same when flags change, or the launcher. Where the words are not understood, the first of them
 * that is an existing file is taken for it, else the word that stands where it should. Malloced;
 * NULL when out of memory. */
char *program_named(char *const *words);

#endif
