/* pointer_files: reads the files beside checkpoints that name them (event/pointers.h). */
#ifndef JOB_MOVE_POINTER_FILES_H
#define JOB_MOVE_POINTER_FILES_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "event/pointers.h"
#include "event/rules.h"

/* The directory in which they stand: <root>/<group>. */
typedef struct pointer_place {
  const io *io;
  const rules *rules;
  const char *const *globs; /* the policy's `with`; NULL: none */
  const char *root, *group; /* group "": the root itself */
} pointer_place;

typedef struct pointer_file {
  const pointer_row *row; /* NULL: it is none, or cannot be read */
  bool link;              /* `text` is its target */
  struct stat st;
  buf text;
  names says; /* what it names, as it is spelt there */
} pointer_file;

/* True if it may be the name of a unit of the directory: a path to one there, or its bare name. *out
 * is what its name tells. */
bool pointer_unit(const pointer_place *at, const char *spelt, match_unit *out);
bool pointer_names_unit(const pointer_place *at, const char *spelt);
/* True if this path leads to another directory than the one in which the pointer stands. */
bool pointer_leads_out(const pointer_place *at, const char *spelt);

/* Reads what stands at `path` as the file of this name in the directory. A file that the table does not
 * know is a pointer if the policy saves it and it is one word that may be a unit's name; a link, if it
 * leads to what may be a unit. *out is to be dropped whatever it returns. ERR_NOMEM. */
int pointer_file_read(const pointer_place *at, const char *name, const char *path,
                      pointer_file *out, err *e);
void pointer_file_drop(pointer_file *f);

#endif
