/* deadline: whether all that is wanted is saved before time is over, by the pace of the saves before.
 * Pure: it decides who is first, the oldest where all fit, else the newest. */
#ifndef PLAN_DEADLINE_H
#define PLAN_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

/* How quick saves were; zero: none was seen. */
typedef struct deadline_pace {
  double bytes, seconds; /* of the last saves, the newest counting most */
  double least_s;        /* the shortest save: what is small takes that long, too */
} deadline_pace;

/* Takes in a save that was committed. */
void deadline_note(deadline_pace *pace, uint64_t bytes, int64_t took_ns);

/* Returns how long a save of so many bytes takes, in seconds; negative: nobody knows. */
double deadline_takes(const deadline_pace *pace, uint64_t bytes);

/* True if saves that take so long altogether (negative: not known) are over in time, with something
 * to spare. */
bool deadline_fits(double takes_s, int64_t left_ns);

#endif
