#include "bundle.h"

static void put(unsigned char *to, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(number >> (8 * i));
}

static uint64_t get(const unsigned char *from, int bytes) {
  uint64_t number = 0;
  for (int i = 0; i < bytes; i++) number |= (uint64_t)from[i] << (8 * i);
  return number;
}

void bundle_put_count(unsigned char to[BUNDLE_COUNT], uint32_t count) {
  put(to, count, 4);
}

uint32_t bundle_get_count(const unsigned char from[BUNDLE_COUNT]) {
  return (uint32_t)get(from, 4);
}

void bundle_put_head(unsigned char to[BUNDLE_HEAD], const bundle_head *head) {
  put(to, head->kind, 1);
  put(to + 1, head->mode, 4);
  put(to + 5, (uint64_t)head->mtime_ns, 8);
  put(to + 13, head->size, 8);
  put(to + 21, head->name, 4);
  put(to + 25, head->target, 4);
}

int bundle_get_head(const unsigned char from[BUNDLE_HEAD], bundle_head *out, err *e) {
  if (from[0] > BUNDLE_END) return err_set(e, ERR_FORMAT, "an entry of an unknown kind");
  *out = (bundle_head){.kind = (bundle_kind)from[0],
                       .mode = (uint32_t)get(from + 1, 4) & 0777,
                       .mtime_ns = (int64_t)get(from + 5, 8),
                       .size = get(from + 13, 8),
                       .name = (uint32_t)get(from + 21, 4),
                       .target = (uint32_t)get(from + 25, 4)};
  if (out->name > BUNDLE_NAME_MAX || out->target > BUNDLE_NAME_MAX)
    return err_set(e, ERR_FORMAT, "a name of more than %d bytes", BUNDLE_NAME_MAX);
  return 0;
}

void bundle_put_piece(unsigned char to[BUNDLE_PIECE], bundle_piece piece) {
  put(to, piece.at, 8);
  put(to + 8, piece.len, 4);
}

bundle_piece bundle_get_piece(const unsigned char from[BUNDLE_PIECE]) {
  return (bundle_piece){.at = get(from, 8), .len = (uint32_t)get(from + 8, 4)};
}
