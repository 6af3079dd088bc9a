#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "vec.h"

bool names_insert(names *n, size_t at, const char *name) {
  char *copy = VEC_ROOM(n->at, n->count + 1, n->room) ? strdup(name) : NULL;
  if (!copy) return false;
  memmove((void *)(n->at + at + 1), (void *)(n->at + at), (n->count - at) * sizeof(char *));
  n->at[at] = copy;
  n->at[++n->count] = NULL;
  return true;
}

const char *const *names_list(const names *n) {
  static const char *const none[] = {NULL};
  return n->count > 0 ? (const char *const *)n->at : none;
}

bool names_add_all(names *n, const char *const *list) {
  while (list && *list && names_add(n, *list)) list++;
  return !list || !*list;
}

bool names_add(names *n, const char *name) {
  return names_insert(n, n->count, name);
}

void names_sort(names *n) {
  if (n->count > 1) qsort((void *)n->at, n->count, sizeof(char *), vec_texts);
}

void names_sort_unique(names *n) {
  size_t kept = 0;
  names_sort(n);
  for (size_t i = 0; i < n->count; i++) {
    if (kept > 0 && strcmp(n->at[kept - 1], n->at[i]) == 0)
      free(n->at[i]);
    else
      n->at[kept++] = n->at[i];
  }
  n->count = kept;
  if (n->at) n->at[kept] = NULL;
}

bool names_has(const names *n, const char *name) {
  return vec_find(name, (const void *)n->at, n->count, sizeof(char *), vec_by_text);
}

void names_free(names *n) {
  for (size_t i = 0; i < n->count; i++) free(n->at[i]);
  free((void *)n->at);
  *n = (names){0};
}

size_t names_index(const char *const *table, const char *name) {
  size_t i = 0;
  while (table[i] && strcmp(table[i], name) != 0) i++;
  return i;
}

static bool is_part(const char *const *part, const char *const *of) {
  for (; part && *part; part++)
    if (!of || !of[names_index(of, *part)]) return false;
  return true;
}

bool names_same(const char *const *a, const char *const *b) {
  return is_part(a, b) && is_part(b, a);
}
