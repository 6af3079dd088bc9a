/* manifest_part: what one of the ranks that saved a checkpoint together had of it. */
#include <stdlib.h>

#include "manifest.h"

bool manifest_tells_parts(const manifest *m, uint32_t world) {
  return world > 1 && m->world == world;
}

static bool has(const manifest_entry *at, uint32_t rank) {
  return !at->alone || at->rank == rank;
}

/* Each rank had a file of it: where it is told of none, it is not told well. */
static bool is_told(const manifest *m, uint32_t rank) {
  size_t i = 0;
  while (i < m->count && (m->entries[i].type == MANIFEST_DIR || !has(&m->entries[i], rank))) i++;
  return i < m->count;
}

int manifest_part(const manifest *whole, uint32_t rank, manifest *out, err *e) {
  const bool all = !is_told(whole, rank);
  *out = *whole;
  out->count = 0;
  out->room = whole->count ? whole->count : 1;
  out->entries = calloc(out->room, sizeof *out->entries);
  if (!out->entries) return err_set(e, ERR_NOMEM, "no memory for a part of %s", whole->unit);
  for (size_t i = 0; i < whole->count; i++)
    if (all || has(&whole->entries[i], rank)) out->entries[out->count++] = whole->entries[i];
  return 0;
}
