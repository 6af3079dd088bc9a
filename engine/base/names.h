/* names: a list of strings of its own. Zero-initialise it (`names n = {0}`). */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct names {
  char **at;
  size_t count, room;
} names;

/* Copies `name` to the end; false: out of memory, and the list is as before. */
bool names_add(names *n, const char *name);

/* Copies each name of a list that ends with NULL; NULL: there are none. */
bool names_add_all(names *n, const char *const *list);

/* Returns the names as a list that ends with NULL; it is valid until the next change. */
const char *const *names_list(const names *n);

/* Copies `name` to this place; the names there and behind it move up. */
bool names_insert(names *n, size_t at, const char *name);

void names_sort(names *n);                        /* in byte order */
void names_sort_unique(names *n);                 /* sorts, and drops repeated names */
bool names_has(const names *n, const char *name); /* the list must be sorted */

void names_free(names *n); /* it is empty afterwards */

/* Returns the index of `name` in a table that ends with NULL; its length if it is not there. */
size_t names_index(const char *const *table, const char *name);

/* True if two such tables have the same names, in whatever order and however often; NULL: none. */
bool names_same(const char *const *a, const char *const *b);

#endif
