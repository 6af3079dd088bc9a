#include "manifest_make.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(bool ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "test helper: cannot make a manifest: %s\n", what);
  abort();
}

/* splitmix64 */
uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

manifest_entry *add_file(manifest *m, const char *name, uint64_t size, uint64_t seed) {
  manifest_entry *at = manifest_add(m, MANIFEST_FILE, name, NULL);
  size_t count = hash_block_count(size);
  must(at != NULL, "no memory");
  at->size = size;
  at->mode = 0644;
  at->blocks = calloc(count ? count : 1, sizeof *at->blocks);
  must(at->blocks != NULL, "no memory");
  for (size_t i = 0; i < count; i++) {
    uint64_t data = next_random(&seed);
    must(hash_block(m->hash, &data, sizeof data, &at->blocks[i], NULL, NULL) == 0, "hash");
  }
  must(hash_of_blocks(m->hash, at->blocks, count, &at->file, NULL) == 0, "hash");
  return at;
}

static char *copy(const char *text) {
  char *made = strdup(text);
  must(made != NULL, "no memory");
  return made;
}

static void seal(manifest *m) {
  err e = {0};
  must(manifest_seal(m, &e) == 0, e.text);
}

void make_small(manifest *m, const char *unit, uint64_t seed) {
  manifest_init(m);
  m->unit = copy(unit);
  m->mode = 0755;
  m->step = 7;
  add_file(m, "model.pt", 100, seed);
  seal(m);
}

void make_small_of(manifest *m, runlog *log, uint64_t attempt) {
  char id[RUNLOG_NONCE_MAX];
  must(runlog_attempt_id(log, attempt, id, NULL) == 0, "no id");
  make_small(m, runlog_find_attempt(runlog_view(log), attempt)->unit, attempt);
  m->attempt = copy(id);
}

void put_small_of(store *s, runlog *log, uint64_t attempt, const char *key) {
  char id[RUNLOG_NONCE_MAX], data[100] = "data";
  must(runlog_attempt_id(log, attempt, id, NULL) == 0, "no id");
  must(store_put_marked(s, key, data, sizeof data, STORE_REPLACE, id, NULL) == 0, "not put");
}

/* A component of any bytes; `serial` makes it unlike every other one. */
static void odd_name(uint64_t *state, size_t serial, char *out) {
  size_t len = next_random(state) % 12;
  for (size_t i = 0; i < len; i++) {
    char c = (char)(next_random(state) % 4 ? 32 + next_random(state) % 96 : next_random(state));
    out[i] = c == 0 || c == '/' ? '.' : c;
  }
  sprintf(out + len, "-%zu", serial);
}

static int64_t odd_time(uint64_t *state) {
  static const int64_t times[] = {0, -1, 1700000000000000001, INT64_MAX, INT64_MIN};
  return times[next_random(state) % 5];
}

static uint64_t odd_size(uint64_t *state) {
  static const uint64_t sizes[] = {0, 1, 4095, HASH_BLOCK, HASH_BLOCK + 1, 5 * HASH_BLOCK};
  return sizes[next_random(state) % 6];
}

static void add_odd(manifest *m, const char *name, uint64_t *state, unsigned types) {
  char target[64];
  manifest_type type = (manifest_type)(next_random(state) % types);
  if (types == 2 && type == MANIFEST_DIR) type = MANIFEST_LINK;
  odd_name(state, 0, target);
  manifest_entry *at = type == MANIFEST_FILE
                           ? add_file(m, name, odd_size(state), next_random(state))
                           : manifest_add(m, type, name, type == MANIFEST_LINK ? target : NULL);
  must(at != NULL, "no memory");
  at->mode = (mode_t)(next_random(state) & 07777);
  at->mtime_ns = odd_time(state);
  at->alone = m->world && next_random(state) % 2;
  if (at->alone) at->rank = (uint32_t)(next_random(state) % m->world);
}

static void add_tree(manifest *m, uint64_t *state, size_t entries) {
  char name[4096] = "", part[64];
  for (size_t i = 0; i < entries; i++) {
    odd_name(state, i, part);
    const manifest_entry *up = m->count ? &m->entries[next_random(state) % m->count] : NULL;
    if (up && up->type == MANIFEST_DIR)
      snprintf(name, sizeof name, "%.4000s/%s", up->name, part);
    else
      snprintf(name, sizeof name, "%s", part);
    add_odd(m, name, state, 3);
  }
}

void make_random(manifest *m, uint64_t seed, size_t entries) {
  uint64_t state = seed;
  char name[200];
  manifest_init(m);
  odd_name(&state, seed % 1000, name);
  m->unit = copy(name);
  m->kind = (match_kind)(next_random(&state) % 3);
  m->hash = next_random(&state) % 2 ? HASH_SHA256 : HASH_XXH3_128;
  m->step = next_random(&state) % 2 ? (int64_t)(next_random(&state) >> 1) : MATCH_NO_STEP;
  m->created_ns = odd_time(&state);
  m->mtime_ns = odd_time(&state);
  m->mode = (mode_t)(next_random(&state) & 07777);
  if (next_random(&state) % 2) m->world = 2 + (uint32_t)(next_random(&state) % 65535);
  if (next_random(&state) % 2)
    m->policy = copy("de\xff"
                     "fault%");
  if (next_random(&state) % 2) m->metrics = copy("{\"a\":[1,null,\"x\"],\"loss\":0.1}");
  if (m->kind == MATCH_FILE) add_odd(m, m->unit, &state, 2);
  size_t count = next_random(&state) % (entries + 1);
  if (m->kind == MATCH_DIR) add_tree(m, &state, count);
  for (size_t i = 0; m->kind == MATCH_GROUP && i < count; i++) {
    snprintf(name, sizeof name, "%.100s.%zu", m->unit, i);
    add_odd(m, name, &state, 2);
  }
  seal(m);
}
