/* match: globs for names, and unit patterns with {step}.
 *
 * In a glob `*` is any run of bytes without a slash, `?` one byte that is no slash, `[a-z]` and
 * `[!a-z]` a set, `**` (as a whole component) any number of components, none too. There is no
 * escape: `[*]` is a star. Matching is bytewise and takes at most pattern * name steps: no pattern
 * can hang it. A '[' that is not closed in its component is an ordinary byte here; the checks
 * refuse it. */
#ifndef PRIMS_MATCH_H
#define PRIMS_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "prims/numbers/match_step.h"

/* Matches a plain glob against a whole string (both with or without slashes). */
bool match_glob(const char *glob, const char *text);

/* Matches an exclude pattern against a path relative to the watched root. A pattern without a slash
 * matches the base name at any depth, "./x" is x at the top, "a/b" is that path from the root, a
 * trailing slash matches directories only. */
bool match_exclude(const char *pattern, const char *path, bool is_dir);

/* 0, or ERR_INVAL naming what is wrong (empty, absolute, unclosed bracket, any "{", over 255
 * bytes). */
int match_exclude_check(const char *pattern, err *e);
/* The same of a pattern that has no slash but at its end: it means names at any depth, whatever the
 * path is taken from. */
int match_anywhere_check(const char *pattern, err *e);

/* Matches by the other kind of pattern, which Python's fnmatchcase() made usual: a shell wildcard
 * over the whole text, in which `*` is any run of characters, slashes too, `?` any character,
 * `[a-z]` and `[!a-z]` a set. There is no escape and no `**`; a '[' that is not closed is a plain
 * character; a range that runs backwards is empty. A character is a code point of UTF-8, and each
 * byte that belongs to none is one. Takes at most pattern * text steps. */
bool match_shell(const char *pattern, const char *text);

/* This is the one rule for the files that the object library leaves out of its copies. `path` is
 * relative to the root of the tree. It is left out if it, or a directory above it, fits one of the
 * patterns (a list that ends in NULL; NULL: none) by match_shell, spelled with or without a leading
 * "./": "./x*" is only at the top. */
bool match_excluded(const char *const *patterns, const char *path);

/* A unit pattern: a glob in which {step} (once at most) is a whole run of digits and {*} is any
 * text without a slash. A trailing slash: the unit is a directory. An ending in ".*" after {step}
 * or {*}: the unit is the group of files with that stem (`ckpt-{step}.*`; a stem that ends in {*}
 * is the shortest one: up to the first dot that fits). Else: one file. No slash before the last
 * component: at any depth, else anchored at the root; "./x" is x at the top. */
typedef enum match_kind { MATCH_DIR, MATCH_FILE, MATCH_GROUP } match_kind;

typedef struct match_unit {
  match_kind kind;
  int64_t step;  /* the {step}; otherwise what match_step() finds in the part of the name that the
                    * pattern leaves open ("*.h5" is not always step 5); otherwise MATCH_NO_STEP */
  bool numbered; /* a number stands in that part, be it a metric or a time of day: the next save has
                    * another name */
  bool called;   /* ... unless that never changes: match_called_between() */
  size_t name_len; /* bytes of `path` that are the unit's own path: all of it, or up to the stem's
                      end for a group */
} match_unit;

/* Checks as match_exclude_check does, but {step} and {*} are known and only another "{stp}" is
 * refused. *kind (may be NULL) is set on success. */
int match_unit_check(const char *pattern, match_kind *kind, err *e);

/* True if `path` (relative to the root) is a unit by this pattern, which has passed the check. *out
 * is written only then. A step that does not fit 63 bits is MATCH_NO_STEP. */
bool match_unit_path(const char *pattern, const char *path, bool is_dir, match_unit *out);

#endif
