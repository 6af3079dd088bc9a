#include "vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 8 };

#ifdef __SANITIZE_ADDRESS__
/* A short array moves with each item: who keeps the address of one over that is found. */
enum { MOVES_UP_TO = 64 };

static size_t room_behind(size_t count, size_t room) {
  return count < MOVES_UP_TO ? count + 1 : room;
}
#else
static size_t room_behind(size_t count, size_t room) {
  (void)count;
  return room;
}
#endif

bool vec_grow(void *items, size_t count, size_t *room, size_t size) {
  void *old;
  size_t more = ROOM_FIRST, bytes;
  if (count < *room) return true;
  if (*room && __builtin_mul_overflow(*room, 2, &more)) return false;
  more = room_behind(count, more);
  if (__builtin_mul_overflow(more, size, &bytes)) return false;
  memcpy(&old, items, sizeof old); /* through another pointer type it could not be read */
  void *grown = realloc(old, bytes);
  if (!grown) return false;
  memcpy(items, &grown, sizeof grown);
  *room = more;
  return true;
}

int vec_by_text(const void *key, const void *item) {
  return strcmp(key, *(const char *const *)item);
}

int vec_texts(const void *a, const void *b) {
  return vec_by_text(*(const char *const *)a, b);
}

int vec_by_number(const void *key, const void *item) {
  uint64_t a = *(const uint64_t *)key, b = *(const uint64_t *)item;
  return (a > b) - (a < b);
}

size_t vec_place(const void *key, const void *items, size_t count, size_t size, vec_order *order,
                 bool *there) {
  size_t low = 0, high = count;
  bool equal = false;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    int c = order(key, (const char *)items + mid * size);
    if (c > 0)
      low = mid + 1;
    else
      high = mid;
    equal = equal || c == 0;
  }
  if (there) *there = equal;
  return low;
}

void *vec_find(const void *key, const void *items, size_t count, size_t size, vec_order *order) {
  bool there;
  size_t at = vec_place(key, items, count, size, order, &there);
  return there ? (char *)items + at * size : NULL;
}
