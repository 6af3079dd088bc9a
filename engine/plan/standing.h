/* standing: the one word for how a run stands towards its target: what would be lost with this
 * machine. Pure: the units of the watched directory and what the target has go in, the word and the
 * units at fault come out. All that say it (the last line, `status`, `why`, exit.json, ckpt.h) take
 * it from here. */
#ifndef PLAN_STANDING_H
#define PLAN_STANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are those of ckpt.h; 0 is for nobody knows. */
typedef enum standing_word {
  STANDING_UNKNOWN,
  STANDING_DURABLE,         /* the newest complete one that the policy wanted is in this target */
  STANDING_NOTHING_TO_SAVE, /* no complete one was seen */
  STANDING_NOT_WANTED,      /* complete ones, and the policy wanted none of them */
  STANDING_NOT_PROVEN,      /* nothing proves that the newest one is whole */
  STANDING_NOT_DURABLE      /* something wanted is not in this target, or may not be all of it */
} standing_word;

/* Returns it as in JSON: "not_durable"; NULL for STANDING_UNKNOWN and any other number. */
const char *standing_name(standing_word word);

/* What is known of one unit. */
typedef enum standing_is {
  STANDING_IS_STORED,   /* its content is committed to this target */
  STANDING_IS_COMING,   /* wanted, and not there yet */
  STANDING_IS_OPEN,     /* being written, or not yet known to be complete */
  STANDING_IS_FAILED,   /* wanted, and given up */
  STANDING_IS_UNWANTED, /* complete, and the policy said no */
  STANDING_IS_UNPROVEN, /* nothing proves it whole, or it is torn */
  STANDING_IS_ASIDE     /* let go for a newer one, or about to be told anew: it decides nothing */
} standing_is;

typedef struct standing_unit {
  standing_is is;
  const void *group; /* units of one kind have the same group and an equal series */
  const char *series;
  int64_t made_ns, step; /* the newest of a kind is what counts; the step breaks a tie */
} standing_unit;

typedef struct standing_facts {
  const standing_unit *units; /* in any order; quick where those of a kind stand together */
  size_t count;
  bool stored; /* the target has a commit, of this run or an earlier one */
  bool seen;   /* a complete one was seen that need not be here any more */
  bool lost;   /* the data of the newest commit of a kind is gone, and nothing whole is here */
  bool fenced; /* a newer writer is there */
} standing_facts;

enum { STANDING_NONE = -1 };

typedef struct standing_answer {
  standing_word word;
  /* Each is a place in `units`, or STANDING_NONE. */
  ptrdiff_t late; /* the newest of its kind, wanted and not in the target; the newest such one */
  ptrdiff_t unproven; /* newer than all of its kind that is whole */
  ptrdiff_t unwanted; /* newer than all of its kind that was wanted; the newest such one */
} standing_answer;

standing_answer standing_decide(const standing_facts *facts);

bool standing_is_alike(const standing_unit *a, const standing_unit *b); /* of one kind */
bool standing_is_newer(const standing_unit *a, const standing_unit *b);

#endif
