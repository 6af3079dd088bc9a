/* vec: arrays that grow, and the search in sorted ones. An array is three members of its owner: the
 * items, their number, and how many there is room for. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for one more item behind the last; false: out of memory, and all is as before.
 * `items` is an array of any type, `room` its size_t. */
#define VEC_ROOM(items, count, room) vec_grow((void *)&(items), count, &(room), sizeof *(items))

/* What VEC_ROOM is made of: `items` is the address of the pointer. For arrays of pointers to structs
 * it is called by itself: clang-tidy takes the size of such a pointer for a slip. */
bool vec_grow(void *items, size_t count, size_t *room, size_t size);

/* Compares `key` with an item, as for bsearch(): below 0 if it comes before. */
typedef int vec_order(const void *key, const void *item);

/* Such orders: of items that begin with a `char *`, which are texts, or structs of which it is the
 * first member; and with a `uint64_t`. The key is the text, and the address of the number. */
vec_order vec_by_text, vec_by_number;

/* Compares, for qsort(), items that begin with a `char *`. */
int vec_texts(const void *a, const void *b);

/* Returns the place of the first item that does not come before `key`; `count` if there is none.
 * *there (may be NULL): whether it is equal. */
size_t vec_place(const void *key, const void *items, size_t count, size_t size, vec_order *order,
                 bool *there);

/* Returns an item that is equal to `key`, or NULL. Unlike bsearch(), it takes an empty array:
 * `items` may be NULL. */
void *vec_find(const void *key, const void *items, size_t count, size_t size, vec_order *order);

#endif
