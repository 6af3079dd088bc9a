/* detect_tree: the conditions of completeness that a policy wrote, looked at with the facts of one
 * unit: do they hold, what is nearest to it, and how far is that? Private to detect. */
#ifndef CORE_DETECT_TREE_H
#define CORE_DETECT_TREE_H

#include "core/detect_rule.h"

typedef enum tree_holds {
  TREE_REFUTED = -2, /* what must not be is proven */
  TREE_NO,
  TREE_UNKNOWN, /* nobody saw what would tell */
  TREE_YES,     /* nothing speaks against it: a quiet time is over, no file is missing */
  TREE_PROVEN,  /* something speaks for it: a marker, a rename, closes, the structure */
} tree_holds;

typedef struct tree_finding {
  tree_holds holds, at_last; /* at_last: once nobody writes any more and the time is over */
  unsigned missing;          /* parts that only more writing can mend */
  int64_t wait;              /* ns until it may hold by itself; RULE_NEVER; 0 if it holds */
  const char *cause;         /* of what fails: see detect_unit; NULL if it holds */
  char text[RULE_TEXT_MAX];  /* what proves it, or the nearest part that fails and how far it is */
} tree_finding;

/* `f->sound` has to be known where the rules ask for it. */
void tree_look(const rules *r, const rule_facts *f, tree_finding *out);

#endif
