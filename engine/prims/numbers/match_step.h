/* match_step: reads the numbers in a checkpoint's name: which one is its step, and which tell
 * something else (a metric, a time of day, a part).
 *
 * By the words that frameworks use: a number at `step` is the step, else one at `iter`, else one at
 * `epoch`, else the last one that nothing speaks against. Of words that are met twice the last
 * counts. */
#ifndef PRIMS_MATCH_STEP_H
#define PRIMS_MATCH_STEP_H

#include <stdbool.h>
#include <stdint.h>

enum { MATCH_NO_STEP = -1 };

typedef enum match_number_kind {
  MATCH_NUMBER_STEP,
  MATCH_NUMBER_ITER,
  MATCH_NUMBER_EPOCH,
  MATCH_NUMBER_PLAIN, /* nothing is said of it: "model_12" */
  MATCH_NUMBER_GLUED, /* it may be a part of a word: "resnet50", "s040" */
  MATCH_NUMBER_PART,  /* one of several parts of the same thing: "rank0", "00001-of-00004" */
  MATCH_NUMBER_OTHER, /* no step: "loss=0.21", "2026-11-22_10-22-58.642753", "seed42" */
  /* Which of several that are called so: "last-v1", which Lightning writes again and again while
   * another job's "last" stands there. */
  MATCH_NUMBER_VERSION,
} match_number_kind;

/* A number with all that belongs to it: a sign behind "=", decimals, an exponent, a whole date. */
typedef struct match_number {
  const char *begin, *end;
  match_number_kind kind;
} match_number;

/* Finds the first number in `name` that begins at `from` or later and is over by `end`; false: there
 * is none. `name` is where the base name begins: a word may stand before `from`. */
bool match_number_next(const char *name, const char *from, const char *end, match_number *out);

/* Returns the step that stands between `from` and `end` of `name`, or MATCH_NO_STEP. */
int64_t match_step_between(const char *name, const char *from, const char *end);
/* Returns the step in the base name of `path`, or MATCH_NO_STEP. */
int64_t match_step(const char *path);
/* True if there is a number between `from` and `end` of `name` that is none of a part, nor a version. */
bool match_numbered_between(const char *name, const char *from, const char *end);
/* True if each of those may belong to what the thing is called ("resnet50", "vit_b_16"): nothing says that
 * it counts or measures. */
bool match_called_between(const char *name, const char *from, const char *end);

#endif
