#include "changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void changes_add(changes *c, const char *group, const policy_item *item, const policy_kept *before,
                 const policy_kept *after) {
  char *name = strdup(item->name ? item->name : "");
  if (!name || !VEC_ROOM(c->at, c->count, c->room)) {
    free(name);
    return;
  }
  c->at[c->count++] = (change){.group = group,
                               .name = name,
                               .commit = item->number,
                               .step = item->step,
                               .before = *before,
                               .after = *after};
}

void changes_compare(changes *c, const char *group, const policy_item *items, size_t count,
                     const policy_kept *before, const policy_kept *after) {
  for (size_t i = 0; i < count; i++)
    if (before[i].keep != after[i].keep) changes_add(c, group, &items[i], &before[i], &after[i]);
}

void changes_clear(changes *c, const char *group) {
  size_t left = 0;
  for (size_t i = 0; i < c->count; i++) {
    if (!group || strcmp(c->at[i].group, group) == 0)
      free(c->at[i].name);
    else
      c->at[left++] = c->at[i];
  }
  c->count = left;
}

void changes_free(changes *c) {
  changes_clear(c, NULL);
  free(c->at);
  *c = (changes){0};
}
