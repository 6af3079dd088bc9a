/* tree_local: the local side of these jobs: the files of a directory that they take. */
#ifndef JOB_TREE_TREE_LOCAL_H
#define JOB_TREE_TREE_LOCAL_H

#include "job/tree/tree.h"
#include "job/move/unit_files.h"

/* ERR_NOENT, ERR_INVAL if there is no directory. A link to one is fine. */
int tree_local_check(const tree_job *p, const char *dir, err *e);
/* ERR_INVAL if the file that will be made, at `to`, lies in the directory, and so would be taken
 * the next time; it is fine if it is excluded. */
int tree_local_apart(const tree_job *p, const char *dir, const char *to, err *e);
/* Lists everything in it except excluded files and records. */
int tree_local_scan(const tree_job *p, const char *dir, unit_files *out, err *e);

/* True if the patterns exclude it. */
bool tree_excluded(const tree_job *p, const char *name);

#endif
