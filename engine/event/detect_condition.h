/* detect_condition: evaluates the conditions of completeness that a policy wrote, with the facts of one
 * unit: whether they hold, which part is nearest to it, and how far that is. Private to detect. */
#ifndef EVENT_DETECT_CONDITION_H
#define EVENT_DETECT_CONDITION_H

#include "event/detect_rule.h"

typedef enum condition_holds {
  CONDITION_REFUTED = -2, /* a forbidden condition is proven */
  CONDITION_NO,
  CONDITION_UNKNOWN, /* nobody saw the fact that would tell */
  CONDITION_YES,     /* nothing speaks against it: a quiet time is over, no file is missing */
  CONDITION_PROVEN,  /* something speaks for it: a marker, a rename, closes, the structure */
} condition_holds;

typedef struct condition_finding {
  condition_holds holds,
      at_last;              /* `at_last`: the value once nobody writes any more and the time is
                              * over */
  unsigned missing;         /* parts that only more writing can mend */
  int64_t wait;             /* ns until it may hold by itself; RULE_NEVER; 0 if it holds */
  const char *cause;        /* of the part that fails: see detect_unit; NULL if it holds */
  char text[RULE_TEXT_MAX]; /* the proof, or the nearest part that fails and how far it is */
} condition_finding;

/* Evaluates the conditions. `f->sound` has to be known where the rules ask for it. */
void condition_look(const rules *r, const rule_facts *f, condition_finding *out);

#endif
