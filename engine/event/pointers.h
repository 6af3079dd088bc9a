/* pointers: the files with which frameworks name checkpoints (frameworks.c has them), and what such a
 * file names.
 *
 * A pointer ("latest") names the one that a job loads; a list names several, all of which its
 * framework wants to find. Pure. */
#ifndef EVENT_POINTERS_H
#define EVENT_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/names.h"
#include "event/frameworks.h"

enum { POINTERS_BYTES_MAX = 8 << 20 }; /* a larger file is not read for what it names */

typedef framework_pointer pointer_row;

/* Returns the row of a file of this base name; NULL: it is not known. */
const pointer_row *pointers_row(const char *name);
/* The framework that has this row; NULL: it is no row of one. */
const char *pointers_framework(const pointer_row *row);
/* The row of a symbolic link, whose target is its text. */
const pointer_row *pointers_link(void);
/* The row of a pointer whose name is not known, but of which the whole text is one word; NULL: it is
 * no such text. */
const pointer_row *pointers_guess(const char *text, size_t len);

/* True if a job loads what it names (a pointer), or wants all that it names (a list). */
bool pointers_lead(const pointer_row *row);
/* True of one by its name: it is moved with each checkpoint. A link of another name ("best.ckpt") need not
 * lead to the newest. */
bool pointers_follow_newest(const char *name, bool link);

/* Adds what this text names, as it is spelt there; nothing, if the text is not of its form.
 * ERR_NOMEM. */
int pointers_read(const pointer_row *row, const char *text, size_t len, names *out, err *e);

/* The key of the wish that a file of this base name holds; NULL: none. */
const char *pointers_wish(const char *name);
/* Adds the text of this member wherever it stands. What is no JSON names nothing. ERR_NOMEM. */
int pointers_read_json(const char *text, size_t len, const char *key, names *out, err *e);

/* The last part of a path, without slashes behind it; false: it has none, or it is too long. */
bool pointers_base(const char *spelt, char *out, size_t room);
/* True if it is spelt so that it means the unit: by its name, or by its step. */
bool pointers_mean(const pointer_row *row, const char *spelt, const char *unit, int64_t step);

/* Makes the text that names another unit in the place of `spelt`, as its framework would write it, into
 * `out`, of a row that is a pointer. Returns its length; 0: it cannot be done. */
size_t pointers_rewrite(const pointer_row *row, const char *text, size_t len, const char *spelt,
                        const char *unit, int64_t step, char *out, size_t room);

#endif
