/* agree: whether all tasks of a launch agree that a unit is complete, and which of them have ended.
 * Pure functions of their records. */
#ifndef LAUNCH_RULE_AGREE_H
#define LAUNCH_RULE_AGREE_H

#include <stddef.h>

#include "launch/rule/launch_record.h"

/* The tasks that write into one directory. */
typedef struct agree_facts {
  const launch_answer *const *answers; /* by index; NULL: that task has left none, or is `self` */
  uint32_t count;                      /* of all, with the one that asks */
  uint32_t self;                       /* the index of the one that asks, which has no answer */
} agree_facts;

typedef struct agree_unit {
  const char *path;
  uint64_t stamp;  /* as the one that asks sees it */
  uint64_t number; /* of the question with this stamp */
} agree_unit;

/* The worse, the greater. */
typedef enum agree_word {
  AGREE_YES,     /* each has ended, or sees these files, and nobody there has one open */
  AGREE_ASKED,   /* one has not answered yet */
  AGREE_DIFFERS, /* one sees other files */
  AGREE_OPEN,    /* on its host somebody has a file of it open */
  AGREE_UNKNOWN, /* one has never said anything: it is unknown, and not gone */
} agree_word;

typedef struct agree_finding {
  agree_word word;
  uint32_t index;   /* of the first task that it is about; of no account with AGREE_YES */
  uint32_t missing; /* how many do not agree */
} agree_finding;

agree_finding agree_about(const agree_facts *f, const agree_unit *unit);

/* The others of the one that asks. */
typedef struct agree_ends {
  uint32_t ended, unclean; /* unclean: of those that ended */
  uint32_t living;         /* that have said something, and not that they ended */
  uint32_t unknown;        /* that have said nothing */
} agree_ends;

agree_ends agree_ends_of(const agree_facts *f);

#endif
