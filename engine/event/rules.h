/* rules: the rule of completeness, as data: the names of checkpoints, temporary names, the files that
 * prove that a save is over. The built-in one is what frameworks.h knows; it holds until a policy says
 * more. */
#ifndef EVENT_RULES_H
#define EVENT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "event/frameworks.h"
#include "prims/match.h"

/* The signature of a marker that the user named: required in each directory unit, and may be empty.
 */
#define RULES_ALWAYS "*"

typedef framework_marker rules_marker;

/* A condition of completeness, as a policy writes it (`complete = all { ... }`). */
typedef enum rules_op {
  RULES_ALL,
  RULES_ANY,
  RULES_NONE,     /* over the `count` tests from `first` on */
  RULES_RENAMED,  /* it got its name by a rename */
  RULES_CLOSED,   /* all that was written was closed */
  RULES_SUPERSET, /* it has every file that the unit of its kind before it had */
  RULES_SOUND,    /* the files' own structure is whole */
  RULES_QUIET,    /* `ns` without a change */
  RULES_MARKER,   /* `name` is there; `newer`: and no data file is newer */
  RULES_PARTS,    /* `count` files, or more, whose name below the unit `name`, a glob, fits */
  RULES_KNOWN,    /* the built-in conditions hold, with `markers` and the times of the rules */
} rules_op;

typedef struct rules_test {
  rules_op op;
  unsigned first, count; /* in rules.tests; RULES_PARTS: count alone */
  const char *name;
  bool newer;
  int64_t ns;
} rules_test;

enum { RULES_TESTS_MAX = 64 };

typedef struct rules {
  const char *const *units; /* match_unit patterns, first match wins; NULL ends */
  /* Those patterns of `units` by which a name is a unit only once it was renamed into place or
   * holds a marker ("{step}/": any directory may be a number). */
  const char *const *proven;
  /* Files above the checkpoints: patterns of what a framework keeps beside the directories in which
   * they are (a tuner's state). Each such file is a unit of kind MATCH_FILE, with a log of its own
   * directory, and is no checkpoint. NULL ends. */
  const char *const *above;
  const char *const *excludes; /* match_exclude patterns; NULL ends */
  const char *const *shell;    /* match_excluded patterns, of plain trees; NULL: none */
  /* match_exclude patterns of what one checkpoint alone is saved without, in a copy of the rules for
   * that one; NULL: none. */
  const char *const *left;
  const rules_marker *markers;
  size_t marker_count;
  int64_t quiet_ns;   /* closed files: this long without a change */
  int64_t marked_ns;  /* the marker is there: this long without a change */
  int64_t sound_ns;   /* a closed file or group that its structure proves: this long */
  int64_t settled_ns; /* renamed into place: this long, so that trailing events are in */
  /* These conditions have to hold before a unit may be called complete, in place of the built-in
   * ones; evidence against it (open files, a dead writer, files removed) still counts. tests[0] is
   * the whole; count 0: the built-in conditions. */
  const rules_test *tests;
  size_t test_count;
} rules;

/* Returns the table for the known frameworks. Static. */
const rules *rules_builtin(void);
bool rules_excludes_builtin(const char *pattern); /* is it one of the built-in excludes? */

/* Makes a rule set of the user's: `units`, `excludes` (added to the built-in ones), `markers` (each
 * then required in every directory unit) are arrays ended by NULL, or NULL for the built-in ones;
 * quiet_ns < 0 for the built-in time. The strings are copied. ERR_INVAL names a pattern at
 * fault. */
int rules_custom(const char *const *units, const char *const *excludes, const char *const *markers,
                 int64_t quiet_ns, rules **out, err *e);

/* Makes a rule set with everything that a policy can say. Lists end with NULL; NULL, 0 and < 0
 * stand for the built-in value (a time of 0 is RULES_NO_TIME). Everything is copied and checked:
 * ERR_INVAL or ERR_LIMIT tells the fault. A part of the tests stands behind the branch that it is
 * in, and in one branch only. */
#define RULES_NO_TIME 1
typedef struct rules_spec {
  const char *const *units, *const *proven; /* proven: of `units` */
  const char *const *above;
  const char *const *excludes; /* added to the built-in ones */
  const rules_marker *known;   /* in place of the built-in markers */
  size_t known_count;
  const char *const *markers; /* each required in every directory unit, in place of `known` */
  int64_t quiet_ns, marked_ns, sound_ns, settled_ns;
  const rules_test *tests;
  size_t test_count;
} rules_spec;
int rules_make(const rules_spec *spec, rules **out, err *e);
void rules_free(rules *r);

/* Finds the pattern of `r->units`, or of `r->above`, by which this path is a unit, and fills in *out;
 * NULL: none. A file above the checkpoints has no step. */
const char *rules_match(const rules *r, const char *path, bool is_dir, match_unit *out);
/* True of a pattern that rules_match() gave if it is one of `r->above`. */
bool rules_is_above(const rules *r, const char *pattern);
bool rules_needs_proof(const rules *r, const char *pattern);
bool rules_excluded(const rules *r, const char *path, bool is_dir);
/* True if it is so by an exclude of the user's or of a policy: a trainer may miss the file. */
bool rules_excluded_by_wish(const rules *r, const char *path, bool is_dir);
/* True if it is so of the one checkpoint alone (`r->left`), and by no exclude of all. */
bool rules_excluded_here(const rules *r, const char *path, bool is_dir);
/* Finds the marker of this name, or NULL. */
const rules_marker *rules_marker_named(const rules *r, const char *name);
bool rules_marker_by_user(const rules_marker *m);
/* True if a file of this name at the top of a unit is a marker, and no data. */
bool rules_is_marker(const rules *r, const char *name);
/* True of the name of the table of contents that a store keeps beside a checkpoint's files. At the
 * top of a directory it came along with a copy, and is no part of the unit. */
bool rules_is_contents(const char *name);
/* True if the tests cannot hold where a part of this kind (a marker: of this name, else NULL) does
 * not. */
bool rules_needs(const rules *r, rules_op op, const char *name);

#endif
