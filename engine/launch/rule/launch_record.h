/* launch_record: what the tasks of one launch that write into one directory tell each other: the question of
 * the one that watches it, and the answer of each other.
 *
 * A question has a number, which an answer repeats: so it is known, without anybody's clock, what
 * was looked at after what. */
#ifndef LAUNCH_RULE_LAUNCH_RECORD_H
#define LAUNCH_RULE_LAUNCH_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/names.h"
#include "prims/match.h"

enum { LAUNCH_UNITS_MAX = 64, LAUNCH_EXCLUDES_MAX = 256, LAUNCH_BYTES_MAX = 1 << 20 };
enum { LAUNCH_TEXT_MAX = 256 };

/* A unit, with the stamp (event/stamp.h) of its files as whoever wrote the record saw them. */
typedef struct launch_unit {
  char *path; /* below the watched directory */
  match_kind kind;
  uint64_t stamp; /* 0: it is not there */
  bool open;      /* somebody on the writer's host has a file of it open for writing; of answers */
} launch_unit;

typedef struct launch_units {
  launch_unit at[LAUNCH_UNITS_MAX];
  size_t count;
} launch_units;

typedef struct launch_question {
  uint64_t number;
  bool over;      /* the one that asks has ended in order */
  names excludes; /* with which the stamps are made, beside the built-in ones */
  launch_units units;
} launch_question;

typedef struct launch_answer {
  uint32_t task;   /* of the launch, as its launcher counts */
  uint64_t number; /* of the question that it answers; 0: of none yet */
  bool ended;      /* no process of the task writes any more */
  bool clean;      /* ... and it ended with 0 */
  char host[LAUNCH_TEXT_MAX];
  launch_units units;
} launch_answer;

/* Adds a unit; false: there is no room for it, or no memory. */
bool launch_add(launch_units *units, const launch_unit *unit);
const launch_unit *launch_find(const launch_units *units, const char *path); /* or NULL */

/* Append the record as text. */
int launch_print_question(const launch_question *q, buf *out, err *e);
int launch_print_answer(const launch_answer *a, buf *out, err *e);
/* Read one; on failure (ERR_FORMAT, ERR_VERSION, ERR_LIMIT, ERR_NOMEM) nothing is to be freed. */
int launch_parse_question(const buf *text, launch_question *out, err *e);
int launch_parse_answer(const buf *text, launch_answer *out, err *e);

/* Fine on zeroed ones, which they are afterwards. */
void launch_free_question(launch_question *q);
void launch_free_answer(launch_answer *a);

#endif
