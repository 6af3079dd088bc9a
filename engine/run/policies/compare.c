#include "compare.h"

#include <stdlib.h>

/* A `keep` that answers about made-up facts may fail for the commits that there are. */
static int ask_fresh(policy *fresh, const compare_list *l, policy_kept *after, err *e) {
  const uint64_t faults = policy_fallbacks(fresh);
  ruling_opinion(fresh, POLICY_KEEP, l->group, l->items, l->count, l->memory, after);
  if (policy_fallbacks(fresh) == faults) return 0;
  return err_set(e, ERR_POLICY, "policy %s fails for the commits that there are%s%s: %s",
                 policy_names(fresh), *l->group ? " of " : "", l->group, policy_fault(fresh));
}

static void add(compared *c, const compare_list *l, const policy_kept *before,
                const policy_kept *after) {
  for (size_t i = 0; i < l->count; i++) {
    if (before[i].keep == after[i].keep) continue;
    changes_add(&c->all, l->group, &l->items[i], &before[i], &after[i]);
    if (before[i].keep) changes_add(&c->go, l->group, &l->items[i], &before[i], &after[i]);
  }
}

int compare_add(compared *c, ruling *replaced, policy *newest, policy *fresh, const compare_list *l,
                err *e) {
  int rc = 0;
  if (l->count == 0) return 0;
  policy_kept *before = calloc(l->count, sizeof *before), *after = calloc(l->count, sizeof *after);
  if (before && after)
    rc = ask_fresh(fresh, l, after, e);
  else
    rc = err_set(e, ERR_NOMEM, "compare policies: out of memory");
  if (before && after && rc == 0) {
    ruling_opinions(replaced, newest, l->memory, POLICY_KEEP, l->group, l->items, l->count, false,
                    before);
    add(c, l, before, after);
  }
  free(before);
  free(after);
  return rc;
}

void compared_free(compared *c) {
  changes_free(&c->all);
  changes_free(&c->go);
}
