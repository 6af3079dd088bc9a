/* manifest_make: manifests for tests. Everything here aborts when it fails. */
#ifndef SPEC_MANIFEST_MAKE_H
#define SPEC_MANIFEST_MAKE_H

#include <stdint.h>

#include "commit/manifest/manifest.h"
#include "commit/log/runlog.h"

/* A number that follows from `state` alone, which moves on. */
uint64_t next_random(uint64_t *state);

/* Adds a file of `size` bytes whose blocks have digests that follow from `seed`. */
manifest_entry *add_file(manifest *m, const char *name, uint64_t size, uint64_t seed);

/* That of an attempt, with its id; and the bytes of its one file, put at `key` with its mark. */
void make_small_of(manifest *m, runlog *log, uint64_t attempt);
void put_small_of(store *s, runlog *log, uint64_t attempt, const char *key);
/* A sealed manifest with one file; `seed` decides its root. */
void make_small(manifest *m, const char *unit, uint64_t seed);

/* A sealed manifest of any kind, with up to `entries` entries, odd names and odd numbers. */
void make_random(manifest *m, uint64_t seed, size_t entries);

#endif
