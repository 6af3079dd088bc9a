#include "changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

static void count_one(changes *c, const char *group) {
  size_t i = 0;
  while (i < c->more_count && strcmp(c->more[i].group, group) != 0) i++;
  if (i == c->more_count) {
    if (!VEC_ROOM(c->more, c->more_count, c->more_room)) return;
    c->more[c->more_count++] = (changes_more){.group = group};
  }
  c->more[i].count++;
}

void changes_add(changes *c, const char *group, const policy_item *item, const policy_kept *before,
                 const policy_kept *after) {
  if (c->count >= CHANGES_MOST) {
    count_one(c, group);
    return;
  }
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

void changes_clear(changes *c, const char *group) {
  size_t left = 0;
  for (size_t i = 0; i < c->count; i++) {
    if (!group || strcmp(c->at[i].group, group) == 0)
      free(c->at[i].name);
    else
      c->at[left++] = c->at[i];
  }
  c->count = left;
  left = 0;
  for (size_t i = 0; i < c->more_count; i++)
    if (group && strcmp(c->more[i].group, group) != 0) c->more[left++] = c->more[i];
  c->more_count = left;
}

size_t changes_all(const changes *c) {
  size_t all = c->count;
  for (size_t i = 0; i < c->more_count; i++) all += c->more[i].count;
  return all;
}

void changes_free(changes *c) {
  changes_clear(c, NULL);
  free(c->at);
  free(c->more);
  *c = (changes){0};
}
