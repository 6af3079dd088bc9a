/* frameworks: what is known of the frameworks that write checkpoints: one table, one row each.
 *
 * A row is facts, measured on the real framework (docs/detection.md), and no decision: it never
 * touches sync, keep or queue. What has to be in a unit is judged for each by what it holds (a marker's
 * `signature`), so a directory may have those of several. The built-in rules (rules.h) are all rows put
 * together, in their order: the first pattern that fits a name counts. The files that name checkpoints
 * (pointers.h) are read from here, too. */
#ifndef EVENT_FRAMEWORKS_H
#define EVENT_FRAMEWORKS_H

#include <stdbool.h>
#include <stddef.h>

/* A file that a framework writes when all the others are there. */
typedef struct framework_marker {
  const char *name;      /* exact base name, at the top of the unit */
  const char *signature; /* glob of a base name at the top that only this framework writes: where
                     one is found, the marker is required; NULL: the marker helps, nothing more */
  bool newest;           /* an old one may be left over from the save before: it counts only if no
                     data file is newer */
  bool final;            /* it is written when every rank has written all that it has: then files
                     that the unit before had prove nothing against this one */
} framework_marker;

/* Bytes that stand at a place of a file. */
typedef struct framework_begin {
  size_t at;
  const char *text;
} framework_begin;

/* What stands in a file that names checkpoints. */
typedef enum pointer_form {
  POINTER_TEXT,  /* the whole text is a name, or a path that ends in it; so is a link's target */
  POINTER_STEP,  /* the whole text is a step */
  POINTER_PROTO, /* model_checkpoint_path: "NAME" */
  POINTER_LIST,  /* JSON, in which each member called `key` is a name */
  POINTER_STATE, /* names nothing, and belongs to the checkpoint as it was at one moment */
  POINTER_LOG,   /* tells of many, and nobody loads what it names */
} pointer_form;

/* A file beside checkpoints. */
typedef struct framework_pointer {
  const char *name; /* glob of a base name */
  pointer_form form;
  const char *key; /* of a list; of a state, the name of the unit that it belongs to */
  bool last;       /* it is written when all of what it names is there */
} framework_pointer;

/* A JSON file at the top of a checkpoint in which the member `key` names another one, which the
 * framework may want to find and lives without. */
typedef struct framework_wish {
  const char *name, *key;
} framework_wish;

/* HEAD: so many bytes tell how a file begins. */
enum { FRAMEWORK_HEAD = 64, FRAMEWORK_BEGINS = 2 };
enum { FRAMEWORK_NAMES = 12, FRAMEWORK_MARKERS = 3, FRAMEWORK_POINTERS = 6 };

/* Lists end with NULL. */
typedef struct framework {
  const char *name;
  /* Patterns of its units (match_unit_path). {step} is where its step stands; where a pattern has
   * none, the words of the name tell (match_step). */
  const char *units[FRAMEWORK_NAMES + 1];
  /* Those of them that other things are called, too: a directory is a unit by such a name once it
   * was renamed into place or holds a marker, a file if it begins as this framework's do. */
  const char *proven[FRAMEWORK_NAMES + 1];
  /* Files above its checkpoints, in the directory of a whole experiment, that going on takes. */
  const char *above[FRAMEWORK_NAMES + 1];
  /* Of those: the first alone makes the framework fail, which would begin anew without it. */
  const char *together[FRAMEWORK_NAMES + 1];
  /* How its files begin; all of them must be there. A NULL text ends. */
  framework_begin begins[FRAMEWORK_BEGINS + 1];
  const char *temporary[FRAMEWORK_NAMES + 1]; /* names that are no part of a unit (match_exclude) */
  framework_marker markers[FRAMEWORK_MARKERS + 1];    /* a NULL name ends */
  framework_pointer pointers[FRAMEWORK_POINTERS + 1]; /* a NULL name ends */
  framework_wish wish;                                /* a NULL name: none */
} framework;

/* True if a file of this path that begins with these bytes is one of those that a pattern of `proven`
 * asks for. */
bool framework_begins(const char *path, const void *head, size_t len);

/* The rows; one without a name ends. Static. */
const framework *frameworks(void);

#endif
