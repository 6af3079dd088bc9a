/* files: the tree of a trace in memory, behind `io`, for the detector to list. Files have a size and no
 * bytes: what is read of them is made up from the format that their name tells, torn until their writer
 * has closed them. Reading alone goes through `io`. Not for threads. */
#ifndef LAB_FILES_H
#define LAB_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"

/* Where it begins, for who reads it. */
#define FILES_ROOT "/trace"

typedef struct files files;

/* NULL: out of memory. */
files *files_new(void);
void files_free(files *f);          /* NULL is fine */
const io *files_io(const files *f); /* good until files_free() */

/* Its clocks. */
void files_clock(files *f, int64_t mono_ns, int64_t wall_ns);

/* Paths are relative to the root, and have been checked (fs_beneath_check). Directories above them are
 * made where they are missing. ERR_INVAL: something else is in the way. */
int files_make_dir(files *f, const char *path, err *e); /* it may be there already */
/* Makes it if it is not there, gives it this size, and stamps it as written; `whole`: it is closed. */
int files_write(files *f, const char *path, uint64_t size, bool whole, err *e);
/* Its writer has closed it: no time changes. */
void files_close(files *f, const char *path);
/* A symbolic link, in place of what was there. */
int files_link(files *f, const char *path, const char *target, err *e);
int files_rename(files *f, const char *from, const char *to, err *e); /* replaces `to` */
void files_remove(files *f, const char *path); /* with all below it; it need not be there */
bool files_has(const files *f, const char *path);
/* 0 where it is not there. */
uint64_t files_size(const files *f, const char *path);

#endif
