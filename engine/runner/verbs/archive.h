/* archive: `pack`, `unpack`: a directory as one file, and back. */
#ifndef RUNNER_VERBS_ARCHIVE_H
#define RUNNER_VERBS_ARCHIVE_H

#include "runner/cli/options.h"

/* Makes the archive or directory by `work`; `made` is there then. Returns the exit code. */
int archive_make(const options *o, int (*work)(ckpt *, const ckpt_archive_options *),
                 const char *made);

#endif
