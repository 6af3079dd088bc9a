/* origin: what a chain of policies was made of, and what a later one is made of that is not said otherwise. */
#ifndef RUN_POLICIES_ORIGIN_H
#define RUN_POLICIES_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/names.h"
#include "decision/policy.h"
#include "decision/policy_files.h"

/* Zero-initialise it. */
typedef struct origin {
  policy_files files;
  names paths, settings, units, excludes, markers;
  bool says_units, says_excludes, says_markers; /* an empty list is not none */
  char *dir;
  int64_t quiet_ns;
} origin;

/* Reads the files of `said`, by its io, names and dir, and copies what else of it comes from the command line. Blocks.
 * As of policy_files_read(), and ERR_NOMEM; *o is to be freed all the same. */
int origin_read(origin *o, const policy_options *said, err *e);
void origin_free(origin *o);

/* What a chain of these files and settings is opened with, all borrowed; the caller adds io, log, link and id. */
policy_options origin_options(const origin *o, const policy_files *files, const names *settings);

/* Appends where the files were found to `out`, which is empty. False: out of memory, and it is so again. */
bool origin_paths(const policy_files *files, names *out);
/* From here on these are what is read again. Takes all three over. */
void origin_take(origin *o, policy_files *files, names *paths, names *settings);

#endif
