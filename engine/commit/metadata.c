#include "metadata.h"

/* Tells whether the text is the saved one. It fits in one block. */
static int is_saved(hash_kind hash, const manifest_entry *record, const buf *text, bool *out,
                    err *e) {
  digest block, sum = {0};
  int rc = hash_bytes(hash, text->data ? text->data : "", text->len, &block, e);
  if (rc == 0) rc = hash_of_blocks(hash, &block, text->len ? 1 : 0, &sum, e);
  *out = rc == 0 && digest_equal(&sum, &record->file);
  return rc;
}

int metadata_read(store *s, const char *key, hash_kind hash, const manifest_entry *record, buf *out,
                  int64_t *mtime_ns, err *e) {
  store_object object;
  err why = {0};
  bool saved = false;
  buf text;
  buf_init(&text, MANIFEST_METADATA_MAX);
  int rc = s->ops->get(s, key, &text, &why);
  if (rc == ERR_NOENT)
    rc = err_set(e, ERR_CORRUPT, "%s is missing", key);
  else if (rc == ERR_LIMIT)
    rc = err_set(e, ERR_CORRUPT, "%s is larger than %d bytes", key, MANIFEST_METADATA_MAX);
  else if (rc < 0)
    rc = err_set(e, rc, "%s", why.text);
  if (rc == 0) rc = is_saved(hash, record, &text, &saved, e);
  *mtime_ns = record->mtime_ns;
  if (rc == 0 && !saved) {
    rc = s->ops->head(s, key, &object, e);
    if (rc == 0) *mtime_ns = object.mtime_ns;
  }
  if (rc == 0) buf_add(out, text.data, text.len);
  if (rc == 0 && buf_failed(out)) rc = err_set(e, buf_failed(out), "%s: out of memory", key);
  buf_free(&text);
  return rc;
}

int metadata_read_later(store *s, const char *key, buf *out, int64_t *mtime_ns, err *e) {
  store_object object;
  err why = {0};
  int rc = s->ops->head(s, key, &object, &why);
  if (rc == 0) rc = s->ops->get(s, key, out, &why);
  if (rc == ERR_NOENT) return 0;
  if (rc == ERR_LIMIT || rc == ERR_CORRUPT || rc == ERR_INVAL) {
    log_say(&s->log, LOG_WARN, "%s was put there later, and is passed over: %s", key, why.text);
    return 0;
  }
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  *mtime_ns = object.mtime_ns;
  return 1;
}
