#include "plain_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "prims/fs.h"

int plain_place_open(const plain *p, const char *where, plain_place *out, err *e) {
  *out = (plain_place){.io = p->io};
  manifest_init(&out->record);
  int rc = uri_parse(where, &out->where, e);
  if (rc == 0) rc = store_open(&out->where, p->io, p->log, &out->store, e);
  if (rc == 0) out->store->cancel = p->cancel;
  return rc;
}

void plain_place_tidy(const plain_place *at) {
  static const char *const own[] = {".ckpt/tmp", ".ckpt"};
  char path[FS_PATH_MAX];
  const io *io = at->store->io; /* it holds the place */
  if (strcmp(at->where.scheme, "file") != 0) return;
  for (int i = 0; i < 2; i++)
    if (fs_join(path, at->where.path, own[i], NULL) == 0)
      io->unlink(io, AT_FDCWD, path, AT_REMOVEDIR);
}

void plain_place_close(plain_place *at) {
  if (at->store) plain_place_tidy(at);
  store_close(at->store);
  for (size_t i = 0; i < at->count; i++) free(at->objects[i].key);
  for (size_t i = 0; i < at->record_count; i++) free(at->records[i].dir);
  free(at->objects);
  free(at->records);
  manifest_free(&at->record);
  *at = (plain_place){0};
}

const char *plain_place_name(const plain_place *at) {
  const char *name = fs_base(at->where.path);
  return *name && strcmp(name, MANIFEST_NAME) != 0 ? name : "tree";
}

int plain_record_key(const char *dir, bool part, char out[STORE_KEY_MAX + 1], err *e) {
  char path[FS_PATH_MAX];
  int rc = fs_join(path, dir, part ? PLAIN_PART_NAME : MANIFEST_NAME, e);
  if (rc == 0 && strlen(path) > STORE_KEY_MAX)
    rc = err_set(e, ERR_LIMIT, "%.200s: the name is too long", dir);
  if (rc == 0) memcpy(out, path, strlen(path) + 1);
  return rc;
}

/* ---- listing ---- */

static void *grow(void *items, size_t count, size_t *room, size_t size) {
  if (count < *room) return items;
  *room = *room ? 2 * *room : 64;
  return realloc(items, *room * size);
}

static place_record *record_of(plain_place *at, const char *key, size_t len) {
  for (size_t i = at->record_count; i-- > 0;)
    if (strlen(at->records[i].dir) == len && strncmp(at->records[i].dir, key, len) == 0)
      return &at->records[i];
  place_record *records = grow(at->records, at->record_count, &at->record_room, sizeof *records);
  if (!records) return NULL;
  at->records = records;
  records[at->record_count] = (place_record){.dir = strndup(key, len)};
  return records[at->record_count].dir ? &records[at->record_count++] : NULL;
}

static bool note_record(plain_place *at, const char *key, bool part) {
  const char *base = fs_base(key);
  place_record *record = record_of(at, key, base == key ? 0 : (size_t)(base - key) - 1);
  if (!record) return false;
  if (part)
    record->is_part = true;
  else
    record->is_whole = true;
  return true;
}

static bool note_object(plain_place *at, const char *key, const store_object *object) {
  place_object *objects = grow(at->objects, at->count, &at->room, sizeof *objects);
  if (!objects) return false;
  at->objects = objects;
  objects[at->count] =
      (place_object){.key = strdup(key), .size = object->size, .mtime_ns = object->mtime_ns};
  return objects[at->count].key && ++at->count;
}

bool plain_is_own(const char *key, bool *log) {
  for (const char *at = key; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
    if (strncmp(at, ".ckpt/", 6) != 0) continue;
    if (strncmp(at + 6, "log/", 4) == 0) *log = true;
    return true;
  }
  return false;
}

static int on_object(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  plain_place *at = ctx;
  if (is_prefix || plain_is_own(key, &at->has_log)) return 0;
  bool part = strcmp(fs_base(key), PLAIN_PART_NAME) == 0;
  bool record = part || strcmp(fs_base(key), MANIFEST_NAME) == 0;
  bool noted = record ? note_record(at, key, part) : note_object(at, key, object);
  return noted ? 0 : ERR_NOMEM;
}

static int by_key(const void *a, const void *b) {
  return store_key_order(((const place_object *)a)->key, ((const place_object *)b)->key);
}

const place_object *plain_place_find(const plain_place *at, const char *key) {
  place_object wanted = {.key = (char *)key};
  return at->count ? bsearch(&wanted, at->objects, at->count, sizeof wanted, by_key) : NULL;
}

/* ---- records ---- */

bool plain_is_below(const char *dir, const char *name) {
  size_t len = strlen(dir);
  return len == 0 || (strncmp(name, dir, len) == 0 && name[len] == '/');
}

const char *plain_place_cut(const plain_place *at, const char *name) {
  for (size_t i = 0; i < at->record_count; i++) {
    const place_record *record = &at->records[i];
    if (!record->is_whole && *record->dir && plain_is_below(record->dir, name)) return record->dir;
  }
  return NULL;
}

int plain_take_entry(manifest *to, manifest_entry *from, const char *name, err *e) {
  manifest_entry *entry = manifest_add(to, from->type, name, from->target);
  if (!entry) return err_set(e, ERR_NOMEM, "the record: out of memory");
  entry->mode = from->mode;
  entry->mtime_ns = from->mtime_ns;
  entry->size = from->size;
  entry->file = from->file;
  entry->blocks = from->blocks;
  from->blocks = NULL;
  return 0;
}

int plain_copy_entry(manifest *to, const manifest_entry *from, err *e) {
  manifest_entry copy = *from;
  size_t count = from->blocks ? hash_block_count(from->size) : 0;
  copy.blocks = NULL; /* of an empty file there is room for none: not to be shared */
  if (count) {
    copy.blocks = malloc(count * sizeof *copy.blocks);
    if (!copy.blocks) return err_set(e, ERR_NOMEM, "the record: out of memory");
    memcpy(copy.blocks, from->blocks, count * sizeof *copy.blocks);
  }
  int rc = plain_take_entry(to, &copy, from->name, e);
  if (rc < 0 && count) free(copy.blocks);
  return rc;
}

/* Is `dir` nearer to `name` than `than` is? Both are above it or not. */
static bool is_nearer(const char *dir, const char *than, const char *name) {
  size_t len = strlen(dir);
  return len > strlen(than) && strncmp(name, dir, len) == 0 && name[len] == '/';
}

static bool has_nearer(const plain_place *at, const char *than, const char *name) {
  for (size_t i = 0; i < at->record_count; i++)
    if (is_nearer(at->records[i].dir, than, name)) return true;
  return false;
}

/* What the record of `dir` says, for all that has no nearer one. */
static int join_record(plain_place *at, const char *dir, manifest *m, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < m->count; i++) {
    manifest_entry *from = &m->entries[i];
    char name[FS_PATH_MAX];
    rc = fs_join(name, dir, from->name, e);
    if (rc < 0 || has_nearer(at, dir, name)) continue;
    /* It may be replaced at any time, and only at the top of a place is that allowed for. */
    if (from->outside && *dir) continue;
    rc = plain_take_entry(&at->record, from, name, e);
  }
  return rc;
}

static int read_manifest(store *s, const char *key, manifest *out, err *e) {
  buf text;
  buf_init(&text, MANIFEST_BYTES_MAX);
  int rc = s->ops->get(s, key, &text, e);
  if (rc == 0) rc = manifest_parse(text.data ? text.data : "", text.len, key, out, e);
  buf_free(&text);
  return rc;
}

/* Of a place within this one, a part tells nothing that could be relied on. */
static bool is_worth_reading(const place_record *record) {
  return record->is_whole || !*record->dir;
}

int plain_place_busy(const plain_place *at, err *e) {
  return err_set(e, ERR_CONFLICT, "%s://%s%s%s is being written to or removed: try again later",
                 at->where.scheme, at->where.host, *at->where.host ? "/" : "", at->where.path);
}

static int read_record(const plain *p, plain_place *at, const place_record *record, bool lenient,
                       err *e) {
  char key[STORE_KEY_MAX + 1];
  const char *dir = record->dir;
  manifest m = {0};
  err why = {0};
  int rc = plain_record_key(dir, !record->is_whole, key, e);
  if (rc < 0) return rc;
  rc = read_manifest(at->store, key, &m, &why);
  /* It was taken away meanwhile: of what is being replaced or removed a download would get a
   * mixture.
   */
  if (rc == ERR_NOENT && !lenient) return plain_place_busy(at, e);
  if (rc == ERR_NOENT) return 0;
  if (rc == 0 && at->record.count > 0 && m.hash != at->record.hash)
    rc = err_set(&why, ERR_UNSUPPORTED, "its digests are of another kind");
  bool broken = rc == ERR_CORRUPT || rc == ERR_FORMAT || rc == ERR_LIMIT || rc == ERR_VERSION;
  if (broken && !record->is_whole) return 0; /* it says no more than that an upload began */
  if ((broken && (lenient || *dir)) || rc == ERR_UNSUPPORTED) {
    log_say(p->log, LOG_WARN, "the record of \"%s\" is passed over: %s", dir, why.text);
    if (!*dir) at->has_record = at->damaged = true;
    manifest_free(&m);
    return 0;
  }
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  if (at->record.count == 0) at->record.hash = m.hash;
  if (!*dir) {
    at->has_record = record->is_whole;
    at->record.mode = m.mode;
    at->record.mtime_ns = m.mtime_ns;
    at->record.old = m.old;
  }
  rc = join_record(at, dir, &m, e);
  manifest_free(&m);
  return rc;
}

int plain_place_read(const plain *p, plain_place *at, bool lenient, err *e) {
  int rc = at->store->ops->list(at->store, "", false, on_object, at, e);
  if (rc == ERR_NOSTORE) rc = 0;
  if (rc == ERR_NOMEM) return err_set(e, rc, "list %s: out of memory", at->where.path);
  at->record.mode = 0755;
  at->record.mtime_ns = at->io->now(at->io, IO_WALL);
  at->record.unit = strdup(plain_place_name(at));
  if (!at->record.unit) return err_set(e, ERR_NOMEM, "the record: out of memory");
  for (size_t i = 0; rc == 0 && i < at->record_count; i++) {
    const place_record *record = &at->records[i];
    if (!*record->dir) at->has_part = record->is_part;
    if (is_worth_reading(record)) rc = read_record(p, at, record, lenient, e);
  }
  return rc == 0 ? manifest_seal(&at->record, e) : rc;
}
