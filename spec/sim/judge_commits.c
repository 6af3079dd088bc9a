/* judge_commits: what a commit promises: all of its bytes, as they were saved. */
#include "judge_impl.h"
#include "ranks.h"

static void check_digest(const judge_attempt *a, const object *o, const json_t *entry) {
  char hex[HASH_HEX_MAX];
  digest block, whole;
  const char *said = json_string_value(json_object_get(entry, "digest"));
  hash_bytes(HASH_XXH3_128, o->data, o->len, &block, NULL);
  hash_of_blocks(HASH_XXH3_128, &block, 1, &whole, NULL);
  digest_hex(&whole, hex);
  if (!said || strcmp(said, hex) != 0)
    sim_violation("%s of commit %s has other bytes than its manifest says", o->key, a->dir);
}

/* Version of the bytes at <dir>/<file>; the manifest must name it, with their digest. */
unsigned judge_check_file(const judge_attempt *a, const char *file, const json_t *table) {
  char key[256], expected[256];
  const json_t *entry;
  size_t i;
  snprintf(key, sizeof key, "%s/%s", a->dir, file);
  const object *o = space_find(key);
  if (!o) sim_violation("%s is missing, and its commit stands", key);
  json_array_foreach(table, i, entry) {
    const char *name = json_string_value(json_object_get(entry, "name"));
    if (!name || strcmp(name, file) != 0) continue;
    check_digest(a, o, entry);
    for (unsigned v = 1; v <= VERSIONS; v++) {
      size_t len = units_content(a->unit, v, file, expected, sizeof expected);
      if (len == o->len && memcmp(expected, o->data, len) == 0) return v;
    }
    sim_violation("%s has bytes that nobody saved: %.80s", key, o->data);
  }
  sim_violation("%s is in no manifest", key);
}

json_t *judge_manifest(const judge_attempt *a) {
  char key[256];
  snprintf(key, sizeof key, "%s/%s", a->dir, MANIFEST_NAME);
  const object *o = space_find(key);
  if (!o) sim_violation("%s is missing, and its commit stands", key);
  json_t *top = json_loadb(o->data, o->len, 0, NULL);
  if (!top) sim_violation("%s cannot be read", key);
  return top;
}

/* What was saved beside it. */
static void check_with(const judge_commit *c) {
  char key[256], expected[256];
  snprintf(key, sizeof key, ".ckpt/with/%lld/%lld/train.log", c->attempt, c->with_term);
  const object *o = space_find(key);
  if (!o) sim_violation("%s is missing, and its commit stands", key);
  for (unsigned v = 1; v <= VERSIONS; v++) {
    size_t len = units_content("train.log", v, "train.log", expected, sizeof expected);
    if (len == o->len && memcmp(expected, o->data, len) == 0) return;
  }
  sim_violation("%s has other bytes", key);
}

void judge_check_commit(judge_commit *c) {
  const judge_attempt *a = c->of;
  json_t *top = judge_manifest(a), *table = json_object_get(top, "files"), *entry;
  const char *root = json_string_value(json_object_get(top, "root"));
  const char *unit = json_string_value(json_object_get(top, "unit"));
  int files = 0;
  size_t k;
  unsigned version = 0;
  if (!root || strcmp(root, c->root) != 0) sim_violation("%s: another manifest is there", a->dir);
  if (!unit || strcmp(unit, a->unit) != 0) sim_violation("%s: a manifest of %s", a->dir, unit);
  for (unsigned i = 0; units_file(a->unit, a->world, i); i++) {
    unsigned v = judge_check_file(a, units_file(a->unit, a->world, i), table);
    if (version && v != version)
      sim_violation("%s is mixed of versions %u and %u", a->dir, version, v);
    version = v;
  }
  json_array_foreach(table, k, entry) {
    const char *type = json_string_value(json_object_get(entry, "type"));
    files += type && strcmp(type, "file") == 0;
  }
  if (files != units_file_count(a->unit, a->world))
    sim_violation("%s: its manifest has %d files of %d", a->dir, files,
                  units_file_count(a->unit, a->world));
  c->version = version;
  if (a->world > 1) judge_owners(a, table);
  json_decref(top);
  if (c->with_term >= 0) check_with(c);
}

/* Each rank of one and the same term has said that its part is there. */
void judge_check_parts(const judge_attempt *a) {
  char key[256];
  for (long long term = 0; a->world > 1 && term <= known.newest_term; term++) {
    unsigned there = 0;
    for (unsigned r = 0; r < a->world; r++) {
      snprintf(key, sizeof key, ".ckpt/parts/%lld/%lld/%u", a->n, term, r);
      there += space_find(key) != NULL;
    }
    for (unsigned r = 0; there == a->world && r < a->world; r++) judge_part(a, term, r);
    if (there == a->world) return;
  }
  if (a->world > 1) sim_violation("%s: no term has the part records of all ranks", a->dir);
}

/* Is it not let go? Then all of it is there. */
bool judge_stands(uint64_t commit) {
  judge_commit *c = judge_commit_at((long long)commit);
  if (!c || c->deleted) return false;
  judge_check_commit(c);
  return true;
}

void judge_all(void) {
  judge_check_visitors();
  for (size_t i = 0; i < known.commit_count; i++)
    if (!known.commits[i].deleted) judge_check_commit(&known.commits[i]);
}
