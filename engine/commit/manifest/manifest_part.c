/* manifest_part: a manifest of a part of another one, such as what one of the ranks that saved a checkpoint
 * together had of it. */
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

int manifest_choose(const manifest *whole, const bool *wanted, manifest *out, err *e) {
  *out = *whole;
  out->count = 0;
  out->room = whole->count ? whole->count : 1;
  out->entries = calloc(out->room, sizeof *out->entries);
  if (!out->entries) return err_set(e, ERR_NOMEM, "no memory for a part of %s", whole->unit);
  for (size_t i = 0; i < whole->count; i++)
    if (wanted[i]) out->entries[out->count++] = whole->entries[i];
  return 0;
}

int manifest_part(const manifest *whole, uint32_t rank, manifest *out, err *e) {
  const bool all = !is_told(whole, rank);
  bool *wanted = calloc(whole->count + 1, sizeof *wanted);
  if (!wanted) return err_set(e, ERR_NOMEM, "no memory for a part of %s", whole->unit);
  for (size_t i = 0; i < whole->count; i++) wanted[i] = all || has(&whole->entries[i], rank);
  int rc = manifest_choose(whole, wanted, out, e);
  free(wanted);
  return rc;
}
