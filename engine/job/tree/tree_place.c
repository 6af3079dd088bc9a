#include "tree_place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "commit/manifest_read.h"
#include "prims/fs.h"

int tree_place_open(const tree_job *p, const char *where, tree_place *out, err *e) {
  *out = (tree_place){.io = p->io};
  manifest_init(&out->record);
  int rc = uri_parse(where, &out->where, e);
  if (rc == 0) rc = store_open(&out->where, p->io, p->log, &out->store, e);
  if (rc == 0) out->store->cancel = p->cancel;
  return rc;
}

void tree_place_tidy(const tree_place *at) {
  static const char *const own[] = {".ckpt/tmp", ".ckpt"};
  char path[FS_PATH_MAX];
  const io *io = at->store->io; /* it holds the place */
  if (!uri_dir(&at->where)) return;
  for (int i = 0; i < 2; i++)
    if (fs_join(path, uri_dir(&at->where), own[i], NULL) == 0)
      io->unlink(io, AT_FDCWD, path, AT_REMOVEDIR);
}

static void forget_list(tree_place *at) {
  for (size_t i = 0; i < at->count; i++) free(at->objects[i].key);
  for (size_t i = 0; i < at->record_count; i++) free(at->records[i].dir);
  free(at->objects);
  free(at->records);
  manifest_free(&at->record);
  *at = (tree_place){.store = at->store, .io = at->io, .where = at->where};
  manifest_init(&at->record);
}

void tree_place_close(tree_place *at) {
  if (at->store) tree_place_tidy(at);
  store_close(at->store);
  forget_list(at);
  *at = (tree_place){0};
}

const char *tree_place_name(const tree_place *at) {
  const char *name = fs_base(at->where.path);
  return *name && strcmp(name, MANIFEST_NAME) != 0 ? name : "tree";
}

int tree_record_key(const char *dir, bool part, char out[STORE_KEY_MAX + 1], err *e) {
  char path[FS_PATH_MAX];
  int rc = fs_join(path, dir, part ? TREE_PART_NAME : MANIFEST_NAME, e);
  if (rc == 0 && strlen(path) > STORE_KEY_MAX)
    rc = err_set(e, ERR_LIMIT, "%.200s: the name is too long", dir);
  if (rc == 0) memcpy(out, path, strlen(path) + 1);
  return rc;
}

/* ---- listing ---- */

static place_record *record_of(tree_place *at, const char *key, size_t len) {
  for (size_t i = at->record_count; i-- > 0;)
    if (strlen(at->records[i].dir) == len && strncmp(at->records[i].dir, key, len) == 0)
      return &at->records[i];
  char *dir = VEC_ROOM(at->records, at->record_count, at->record_room) ? strndup(key, len) : NULL;
  if (!dir) return NULL;
  at->records[at->record_count] = (place_record){.dir = dir};
  return &at->records[at->record_count++];
}

static bool note_record(tree_place *at, const char *key, bool part) {
  const char *base = fs_base(key);
  place_record *record = record_of(at, key, base == key ? 0 : (size_t)(base - key) - 1);
  if (!record) return false;
  if (part)
    record->is_part = true;
  else
    record->is_whole = true;
  return true;
}

static bool note_object(tree_place *at, const char *key, const store_object *object) {
  char *copy = VEC_ROOM(at->objects, at->count, at->room) ? strdup(key) : NULL;
  if (!copy) return false;
  at->objects[at->count++] =
      (place_object){.key = copy, .size = object->size, .mtime_ns = object->mtime_ns};
  return true;
}

bool tree_is_own(const char *key, bool *log) {
  for (const char *at = key; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
    if (strncmp(at, ".ckpt/", 6) != 0) continue;
    if (strncmp(at + 6, "log/", 4) == 0) *log = true;
    return true;
  }
  return false;
}

static int on_object(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  tree_place *at = ctx;
  if (is_prefix) return 0;
  if (tree_is_own(key, &at->has_log)) {
    if (!*at->own) snprintf(at->own, sizeof at->own, "%s", key);
    return 0;
  }
  bool part = strcmp(fs_base(key), TREE_PART_NAME) == 0;
  bool record = part || strcmp(fs_base(key), MANIFEST_NAME) == 0;
  bool noted = record ? note_record(at, key, part) : note_object(at, key, object);
  return noted ? 0 : ERR_NOMEM;
}

static int by_key(const void *key, const void *object) {
  return store_key_order(key, ((const place_object *)object)->key);
}

const place_object *tree_place_find(const tree_place *at, const char *key) {
  return vec_find(key, at->objects, at->count, sizeof *at->objects, by_key);
}

/* ---- records ---- */

bool tree_is_below(const char *dir, const char *name) {
  size_t len = strlen(dir);
  return len == 0 || (strncmp(name, dir, len) == 0 && name[len] == '/');
}

const char *tree_place_cut(const tree_place *at, const char *name) {
  for (size_t i = 0; i < at->record_count; i++) {
    const place_record *record = &at->records[i];
    if (!record->is_whole && *record->dir && tree_is_below(record->dir, name)) return record->dir;
  }
  return NULL;
}

/* Moves all that the entry owns into a new one of that name. */
static int take_entry(manifest *to, manifest_entry *from, const char *name, err *e) {
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

int tree_copy_entry(manifest *to, const manifest_entry *from, err *e) {
  manifest_entry copy = *from;
  size_t count = from->blocks ? hash_block_count(from->size) : 0;
  copy.blocks = NULL; /* an empty file has room for none: it must not be shared */
  if (count) {
    copy.blocks = malloc(count * sizeof *copy.blocks);
    if (!copy.blocks) return err_set(e, ERR_NOMEM, "the record: out of memory");
    memcpy(copy.blocks, from->blocks, count * sizeof *copy.blocks);
  }
  int rc = take_entry(to, &copy, from->name, e);
  if (rc < 0 && count) free(copy.blocks);
  return rc;
}

/* True if `dir` is nearer to `name` than `than` is. Each is above it or not. */
static bool is_nearer(const char *dir, const char *than, const char *name) {
  size_t len = strlen(dir);
  return len > strlen(than) && strncmp(name, dir, len) == 0 && name[len] == '/';
}

static bool has_nearer(const tree_place *at, const char *than, const char *name) {
  for (size_t i = 0; i < at->record_count; i++)
    if (is_nearer(at->records[i].dir, than, name)) return true;
  return false;
}

/* Takes the entries of `dir`'s record for all names that have no nearer one. */
static int join_record(tree_place *at, const char *dir, manifest *m, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < m->count; i++) {
    manifest_entry *from = &m->entries[i];
    char name[FS_PATH_MAX];
    rc = fs_join(name, dir, from->name, e);
    if (rc < 0 || has_nearer(at, dir, name)) continue;
    /* The metadata may be replaced at any time, and that is allowed for only at the top of a
     * place. */
    if (from->outside && *dir) continue;
    rc = take_entry(&at->record, from, name, e);
  }
  return rc;
}

/* A partial record of a place within this one tells nothing that could be relied on. */
static bool is_worth_reading(const place_record *record) {
  return record->is_whole || !*record->dir;
}

int tree_place_busy(const tree_place *at, err *e) {
  return err_set(e, ERR_CONFLICT, "%s://%s%s%s is being written to or removed: try again later",
                 at->where.scheme, at->where.host, *at->where.host ? "/" : "", at->where.path);
}

/* The directory of a checkpoint of which files are gone says so beside its record. */
static int take_note(const tree_place *at, const char *dir, manifest *m, err *e) {
  char key[STORE_KEY_MAX];
  int rc = manifest_note_key(dir, key, e);
  if (rc < 0 || !tree_place_find(at, key)) return rc;
  rc = manifest_take_note(at->store, dir, m, e);
  return rc < 0 ? rc : 0;
}

static int read_record(const tree_job *p, tree_place *at, const place_record *record, bool lenient,
                       err *e) {
  char key[STORE_KEY_MAX + 1];
  const char *dir = record->dir;
  manifest m = {0};
  err why = {0};
  int rc = tree_record_key(dir, !record->is_whole, key, e);
  if (rc < 0) return rc;
  rc = manifest_read_at(at->store, key, &m, &why);
  /* The record was taken away meanwhile: the place is being replaced or removed, and a download
   * would get a mixture. */
  if (rc == ERR_NOENT && !lenient) return tree_place_busy(at, e);
  if (rc == ERR_NOENT) return 0;
  if (rc == 0 && at->record.count > 0 && m.hash != at->record.hash)
    rc = err_set(&why, ERR_UNSUPPORTED, "its digests are of another kind");
  if (rc == 0) rc = take_note(at, dir, &m, &why);
  bool broken = rc == ERR_CORRUPT || rc == ERR_FORMAT || rc == ERR_LIMIT || rc == ERR_VERSION;
  if (broken && !record->is_whole) return 0; /* it only says that an upload began */
  if ((broken && (lenient || *dir)) || rc == ERR_UNSUPPORTED) {
    log_say(p->log, LOG_WARN, "the record of \"%s\" is passed over: %s", dir, why.text);
    if (!*dir) at->has_record = at->damaged = true;
    manifest_free(&m);
    return 0;
  }
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  bool odd = manifest_is_odd(&m);
  at->odd |= odd;
  if (!*dir && odd && at->store->ops->spell) at->old_keys = !m.plain_keys;
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

static int list_and_read(const tree_job *p, tree_place *at, bool lenient, err *e) {
  int rc = at->store->ops->list(at->store, "", false, on_object, at, e);
  if (rc == ERR_NOSTORE) rc = 0;
  if (rc == ERR_NOMEM) return err_set(e, rc, "list %s: out of memory", at->where.path);
  at->record.mode = 0755;
  at->record.mtime_ns = at->io->now(at->io, IO_WALL);
  at->record.unit = strdup(tree_place_name(at));
  if (!at->record.unit) return err_set(e, ERR_NOMEM, "the record: out of memory");
  for (size_t i = 0; rc == 0 && i < at->record_count; i++) {
    const place_record *record = &at->records[i];
    if (!*record->dir) at->has_part = record->is_part;
    if (is_worth_reading(record)) rc = read_record(p, at, record, lenient, e);
  }
  return rc == 0 ? manifest_seal(&at->record, e) : rc;
}

/* How names are spelt is known when the records are read, which said so to the store: then the
 * listing is made once more. */
int tree_place_read(const tree_job *p, tree_place *at, bool lenient, err *e) {
  int rc = store_spell(at->store, "", lenient ? STORE_SPELT_PLAIN : STORE_SPELT_RAW, e);
  if (rc == 0) rc = list_and_read(p, at, lenient, e);
  if (rc < 0 || !at->odd || !at->store->ops->spell) return rc;
  forget_list(at);
  return list_and_read(p, at, lenient, e);
}
