/* pointers: the files with which frameworks name checkpoints, as data, and what such a file names.
 *
 * A pointer ("latest") names the one that a job loads; a list names several, all of which its
 * framework wants to find. Megatron's and T5X's rows are by their description alone. Pure. */
#ifndef EVENT_POINTERS_H
#define EVENT_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/names.h"

enum { POINTERS_BYTES_MAX = 8 << 20 }; /* a larger file is not read for what it names */

typedef enum pointer_form {
  POINTER_TEXT,  /* the whole text is a name, or a path that ends in it; so is a link's target */
  POINTER_STEP,  /* the whole text is a step */
  POINTER_PROTO, /* model_checkpoint_path: "NAME" */
  POINTER_LIST,  /* JSON, in which each member called `key` is a name */
  POINTER_STATE, /* names nothing, and belongs to the checkpoint as it was at one moment */
  POINTER_LOG,   /* tells of many, and nobody loads what it names */
} pointer_form;

typedef struct pointer_row {
  const char *name; /* glob of a base name, beside checkpoints */
  const char *framework;
  pointer_form form;
  const char *key; /* of a list */
} pointer_row;

/* Returns the row of a file of this base name; NULL: it is not known. */
const pointer_row *pointers_row(const char *name);
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

/* The member of a JSON file inside a checkpoint that names another one, which its framework may want
 * to find and lives without; NULL: a file of this base name has none. */
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
