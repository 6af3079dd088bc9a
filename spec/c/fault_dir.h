/* fault_dir: for each test a directory, and an io on it whose calls can be made to fail. The names
 * are short, for they stand on every line of such tests. */
#ifndef SPEC_FAULT_DIR_H
#define SPEC_FAULT_DIR_H

#include "io_fault.h"
#include "tmpdir.h"

extern char *dir;
extern io_fault *fault; /* around io_unflushed() */
extern const io *io_;   /* of `fault` */

/* A path in the directory; as tmpdir_path(). */
const char *in(const char *name);

/* The begin and the end of a fixture. `place` NULL: where tmpdir_new() makes it. */
void fault_dir_enter(const char *place);
int fault_dir_leave(void **state);
/* Memory, where that can be: a disk is waited for when a file is cut or replaced, and there are
 * tests that do so thousands of times. */
const char *fault_dir_memory(void);

#endif
