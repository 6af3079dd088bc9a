/* reading: reads the files of policies, or looks whether they were edited, on a thread of its own that nobody
 * waits for. The file system below them may not answer for hours: neither the owner of a run, nor its end, is to
 * stand there with it. */
#ifndef RUN_POLICIES_READING_H
#define RUN_POLICIES_READING_H

#include <stdbool.h>

#include "base/err.h"
#include "base/io.h"
#include "decision/policy_files.h"

typedef struct reading reading;

/* Begins to read these, as policy_files_read() takes them; the names are copied. What they are relative to is the working
 * directory of now, and with `dir` the thread needs no environment, which others may change. `io` outlives the process's
 * threads. */
int reading_begin(const io *io, const char *dir, const char *const *names, reading **out, err *e);
/* Begins to look at files that were read; what it needs of them is copied. */
int reading_look(const io *io, const policy_files *files, reading **out, err *e);

bool reading_is_over(const reading *r);
/* These may be called once it is over. The files are the reading's, and may be taken away (with zeros left
 * behind). Of a look they have no texts, and reading_edited() says which ones were edited. */
int reading_status(const reading *r, err *e);
policy_files *reading_files(reading *r);
bool reading_edited(const reading *r, size_t i);

void reading_drop(reading *r); /* whether it is over or not; NULL is fine */

#endif
