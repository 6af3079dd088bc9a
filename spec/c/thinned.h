/* thinned: takes files of a commit as the log and the note beside them say it, for tests of who reads
 * such a commit. Fails the test when it fails. */
#ifndef SPEC_THINNED_H
#define SPEC_THINNED_H

#include "world.h"

/* Appends `thin` for one glob: what it means of the commit is gone from here on. */
void thin_commit(store *s, runlog *log, uint64_t n, const char *glob);
/* Puts the note of it into the commit's directory. */
void thin_note(store *s, runlog *log, uint64_t n);
/* Removes the objects that are gone by it. How many there were. */
int thin_remove(store *s, runlog *log, uint64_t n);
/* All of these. */
void thin_whole(store *s, runlog *log, uint64_t n, const char *glob);

#endif
