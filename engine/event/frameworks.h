/* frameworks: what is known of the frameworks that write checkpoints: one table, one row each.
 *
 * A row is facts, measured on the real framework (docs/detection.md), and no decision: it never
 * touches sync, keep or queue. Whose a unit is, is judged for each unit by its own evidence, so a
 * directory may have those of several. The built-in rules are all rows put together, in their order:
 * the first pattern that fits a name counts. */
#ifndef EVENT_FRAMEWORKS_H
#define EVENT_FRAMEWORKS_H

#include <stdbool.h>
#include <stddef.h>

#include "prims/match.h"

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

/* HEAD: so many bytes tell how a file begins. */
enum { FRAMEWORK_HEAD = 64, FRAMEWORK_BEGINS = 2 };
enum { FRAMEWORK_NAMES = 12, FRAMEWORK_MARKERS = 3 };

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
  framework_marker markers[FRAMEWORK_MARKERS + 1]; /* a NULL name ends */
  /* Globs of base names at the top of a unit that only this framework writes; NULL in front: its
   * pattern alone tells. */
  const char *evidence[FRAMEWORK_NAMES + 1];
  /* Files beside its units that say which one is the newest. */
  const char *pointers[FRAMEWORK_NAMES + 1];
  /* Files, beside its units or at the top of one, that name units which a resume needs or wants. */
  const char *lists[FRAMEWORK_NAMES + 1];
  /* Its files are called by their content: the next unit has other names, and lacks nothing by it. */
  bool content_named;
  bool by_hand; /* no framework: names that tell nothing of who wrote it */
} framework;

/* True if a file of this path that begins with these bytes is one of those that a pattern of `proven`
 * asks for. */
bool framework_begins(const char *path, const void *head, size_t len);

/* The rows; one without a name ends. Static. */
const framework *frameworks(void);

/* Tells if a unit has a file at its top whose base name fits the glob. */
typedef bool framework_has_fn(void *ctx, const char *glob);

/* Finds whose a unit is: by evidence in it, else by its path, where one row alone has a pattern for it
 * and needs no evidence in a directory. NULL: nothing tells. `has` NULL: nothing is known of what is
 * in it, and the path alone is asked. */
const framework *framework_of(const char *path, bool is_dir, framework_has_fn *has, void *ctx);

#endif
