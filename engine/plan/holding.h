/* holding: which copies in quarantine have been there long enough. Pure: what is there goes in, which of
 * it may go comes out. That one may go is no word on its content: whoever removes it proves first that
 * a commit has it, so that a clock which was set costs no more than a look too early.
 *
 * A copy may go when it is older than a day, or when two later ones of its kind are there. Which of two is
 * later is told by their names, which have a time of the wall clock; of one with a time to come nobody
 * knows how old it is, and it counts as new. */
#ifndef PLAN_HOLDING_H
#define PLAN_HOLDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HOLDING_GENERATIONS = 2, HOLDING_AGE_S = 86400 };

typedef struct holding {
  const char *kind; /* the group and the series of the unit */
  const char *name; /* "<seconds since 1970>-<8 hex digits>" */
  int64_t time_s;   /* of the name */
  bool due;         /* out: it may go */
} holding;

/* True if it is the name of one; *time_s is its time. Whatever else stands in quarantine is nobody's
 * to remove. */
bool holding_name(const char *name, int64_t *time_s);

/* Sorts them, those of a kind side by side, the latest first, and says which are due. */
void holdings_judge(holding *all, size_t count, int64_t now_s);

#endif
