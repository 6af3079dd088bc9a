/* The objects of the simulated store, in the order of their keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static object *objects;
static size_t count, room;

void space_clear(void) {
  for (size_t i = 0; i < count; i++) {
    free(objects[i].key);
    free(objects[i].data);
  }
  count = 0;
}

size_t space_from(const char *key) {
  size_t from = 0, to = count;
  while (from < to) {
    size_t mid = from + (to - from) / 2;
    if (store_key_order(objects[mid].key, key) < 0)
      from = mid + 1;
    else
      to = mid;
  }
  return from;
}

object *space_find(const char *key) {
  size_t at = space_from(key);
  return at < count && strcmp(objects[at].key, key) == 0 ? &objects[at] : NULL;
}

size_t space_count(void) {
  return count;
}

object *space_at(size_t i) {
  return i < count ? &objects[i] : NULL;
}

bool space_below(const char *key, const char *prefix) {
  size_t len = strlen(prefix);
  return len == 0 || (strncmp(key, prefix, len) == 0 && key[len] == '/');
}

static void *copy_of(const void *data, size_t len) {
  char *made = malloc(len + 1);
  if (!made) abort();
  if (len) memcpy(made, data, len);
  made[len] = 0;
  return made;
}

void space_put(const char *key, const void *data, size_t len, const char *mark) {
  char *copy = copy_of(data, len);
  object *old = space_find(key);
  if (old) {
    free(old->data);
    *old = (object){.key = old->key, .data = copy, .len = len, .made = sim_now};
    snprintf(old->mark, sizeof old->mark, "%s", mark);
    return;
  }
  if (count == room) {
    room = room ? 2 * room : 256;
    objects = realloc(objects, room * sizeof *objects);
    if (!objects) abort();
  }
  size_t at = space_from(key);
  memmove(objects + at + 1, objects + at, (count - at) * sizeof *objects);
  objects[at] =
      (object){.key = copy_of(key, strlen(key)), .data = copy, .len = len, .made = sim_now};
  snprintf(objects[at].mark, sizeof objects[at].mark, "%s", mark);
  count++;
}

void space_remove(const char *key) {
  object *o = space_find(key);
  if (!o) return;
  size_t at = (size_t)(o - objects);
  free(o->key);
  free(o->data);
  memmove(objects + at, objects + at + 1, (count - at - 1) * sizeof *objects);
  count--;
}

/* Everything below `from`; it keeps its times. */
void space_rename(const char *from, const char *to) {
  char key[2 * STORE_KEY_MAX];
  size_t len = strlen(from);
  for (size_t i = space_from(from); i < count;) {
    if (!space_below(objects[i].key, from)) {
      if (strcmp(objects[i].key, from) == 0) {
        i++;
        continue;
      }
      break;
    }
    object moved = objects[i];
    moved.data = copy_of(objects[i].data, objects[i].len);
    snprintf(key, sizeof key, "%s%s", to, objects[i].key + len);
    space_remove(objects[i].key);
    space_put(key, moved.data, moved.len, moved.mark);
    space_find(key)->made = moved.made;
    free(moved.data);
    i = space_from(from);
  }
}
