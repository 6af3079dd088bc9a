/* policy_files: the files of a chain, as they were read: their texts, and by what an edit of one is
 * seen. Everything here blocks, and may run on any thread. */
#ifndef DECISION_POLICY_FILES_H
#define DECISION_POLICY_FILES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"

enum { POLICY_CHAIN_MAX = 16 };

typedef struct policy_file {
  char *name, *path; /* path: absolute, as it was found */
  buf text;
  /* As it was when it was read, or when an edit was last told. */
  uint64_t device, inode;
  int64_t size, changed_ns;
} policy_file;

/* Zero-initialise it. */
typedef struct policy_files {
  policy_file *at;
  size_t count;
  char *dir; /* where names were looked up; NULL: there are none */
} policy_files;

/* Reads the files of these policies, as `names` and `dir` of policy_options have them. ERR_INVAL: there is none
 * of a name, or it is too long; they are more than POLICY_CHAIN_MAX. */
int policy_files_read(const io *io, const char *dir, const char *const *names, policy_files *out,
                      err *e);
struct names;
/* Appends these names, with each path from the root: who reads them later, or on another thread, finds the same
 * files whatever the working directory is then. */
int policy_files_place(const char *const *given, struct names *out, err *e);
void policy_files_free(policy_files *f);

/* True if another file stands there than the one that was read, or that was seen here the last time. One that is
 * not there, as for a moment while an editor writes it, is none. */
bool policy_file_edited(const io *io, policy_file *f);

#endif
