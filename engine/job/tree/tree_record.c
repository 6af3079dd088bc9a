#include "tree_record.h"

#include <stdlib.h>
#include <string.h>

#include "prims/fs.h"

/* True if an entry that the record has, and the directory here does not, may stay in it. */
static bool stays(const tree_place *at, const unit_files *local, const manifest_entry *entry) {
  char up[FS_PATH_MAX], name[FS_PATH_MAX];
  if (strlen(entry->name) >= sizeof name) return false;
  if (unit_files_find(local, entry->name)) return false;
  if (entry->type == MANIFEST_FILE) {
    const place_object *object = tree_place_find(at, entry->name);
    if (!object || object->size != entry->size) return false;
  }
  memcpy(name, entry->name, strlen(entry->name) + 1);
  while (strchr(name, '/')) {
    fs_parent(name, up);
    memcpy(name, up, sizeof name);
    const unit_file *f = unit_files_find(local, name);
    if (f && f->type != MANIFEST_DIR) return false;
  }
  return true;
}

/* Makes a manifest of the files of `local` that are at the place, and of those that were there
 * before. */
static int make(const tree_place *at, const unit_files *local, manifest *out, err *e) {
  unit_files there = *local;
  there.count = 0;
  there.files = calloc(local->count + 1, sizeof *there.files);
  if (!there.files) return err_set(e, ERR_NOMEM, "the record: out of memory");
  for (size_t i = 0; i < local->count; i++)
    if (local->files[i].type != MANIFEST_FILE || local->files[i].blocks)
      there.files[there.count++] = local->files[i];
  int rc = unit_files_manifest(&there, tree_place_name(at), MATCH_NO_STEP, at->record.hash, out, e);
  free(there.files);
  if (rc < 0) return rc;
  out->created_ns = at->io->now(at->io, IO_WALL);
  out->plain_keys = !at->old_keys;
  out->in_bucket = at->store->ops->spell != NULL;
  for (size_t i = 0; rc == 0 && i < at->record.count; i++) {
    const manifest_entry *entry = &at->record.entries[i];
    if (stays(at, local, entry)) rc = tree_copy_entry(out, entry, e);
  }
  if (rc == 0) rc = manifest_seal(out, e);
  if (rc < 0) manifest_free(out);
  return rc;
}

static int put(const tree_place *at, const unit_files *local, const char *key, err *e) {
  store *s = at->store;
  manifest m;
  buf text;
  int rc = make(at, local, &m, e);
  if (rc < 0) return rc;
  buf_init(&text, MANIFEST_BYTES_MAX);
  rc = manifest_print(&m, &text, e);
  if (rc == 0) rc = s->ops->put(s, key, text.data, text.len, STORE_REPLACE, e);
  buf_free(&text);
  manifest_free(&m);
  return rc;
}

static int remove_one(const tree_place *at, const char *dir, bool part, err *e) {
  char key[STORE_KEY_MAX + 1];
  int rc = tree_record_key(dir, part, key, e);
  return rc == 0 ? at->store->ops->remove(at->store, key, e) : rc;
}

/* Makes a place within this one a part of it: it gets a partial record that says nothing. */
static int cut(const tree_place *at, place_record *record, err *e) {
  static const char nothing[] = "{}\n";
  char key[STORE_KEY_MAX + 1];
  store *s = at->store;
  int rc = tree_record_key(record->dir, true, key, e);
  if (rc == 0) rc = s->ops->put(s, key, nothing, sizeof nothing - 1, STORE_REPLACE, e);
  if (rc < 0) return rc;
  record->is_part = true;
  if (record->is_whole) rc = remove_one(at, record->dir, false, e);
  if (rc == 0) record->is_whole = false;
  return rc;
}

void tree_record_touch(tree_place *at, const char *name) {
  for (size_t i = 0; i < at->record_count; i++) {
    place_record *record = &at->records[i];
    if (*record->dir && tree_is_below(record->dir, name)) record->is_ours = true;
  }
}

int tree_record_begin(tree_place *at, const unit_files *local, err *e) {
  int rc = tree_record_part(at, local, e);
  if (rc == 0) at->has_part = true;
  if (rc == 0 && at->has_record) rc = remove_one(at, "", false, e);
  if (rc == 0) at->has_record = false;
  for (size_t i = 0; rc == 0 && i < at->record_count; i++)
    if (at->records[i].is_ours) rc = cut(at, &at->records[i], e);
  return rc;
}

int tree_record_part(const tree_place *at, const unit_files *local, err *e) {
  return put(at, local, TREE_PART_NAME, e);
}

/* The partial records within it go first: one that outlived the record would keep its directory out
 * of a download of the whole. */
int tree_record_end(tree_place *at, const unit_files *local, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < at->record_count; i++)
    if (at->records[i].is_ours) rc = remove_one(at, at->records[i].dir, true, e);
  if (rc == 0) rc = put(at, local, MANIFEST_NAME, e);
  if (rc == 0) at->has_record = true;
  if (rc == 0) rc = remove_one(at, "", true, e);
  if (rc == 0) at->has_part = false;
  return rc;
}
