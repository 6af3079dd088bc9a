/* rules_differ: tells in what two rule sets differ, whatever way each is written. */
#ifndef EVENT_RULES_DIFFER_H
#define EVENT_RULES_DIFFER_H

#include "event/rules.h"

/* Returns the first of "unit", "above", "exclude" and "complete" in which they say otherwise what a
 * checkpoint is and when it is complete; NULL: they say the same. Static. */
const char *rules_differ(const rules *a, const rules *b);

#endif
