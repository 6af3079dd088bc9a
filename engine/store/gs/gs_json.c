/* gs: what stands in the JSON of Google Cloud Storage. Its numbers of 64 bits are texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "gs.h"

static void text_of(const json_t *o, const char *name, char *out, size_t room) {
  const char *text = json_string_value(json_object_get(o, name));
  size_t len = text ? strlen(text) : 0;
  if (len >= room || (text && strpbrk(text, "\r\n"))) len = 0;
  memcpy(out, text ? text : "", len);
  out[len] = 0;
}

static bool size_of(const json_t *o, uint64_t *out) {
  const char *text = json_string_value(json_object_get(o, "size"));
  char *end = NULL;
  *out = text && *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
  return end && !*end;
}

int gs_read_resource(const char *text, size_t len, gs_resource *out, err *e) {
  json_t *doc = NULL;
  *out = (gs_resource){0};
  int rc = js_parse(text, len, "the answer of gs://", &doc, e);
  if (rc == 0 && (!json_is_object(doc) || !size_of(doc, &out->size)))
    rc = err_set(e, ERR_FORMAT, "the answer of gs:// is no object's resource");
  if (rc == 0) {
    const json_t *metadata = json_object_get(doc, "metadata");
    text_of(doc, "generation", out->generation, sizeof out->generation);
    text_of(doc, "timeCreated", out->created, sizeof out->created);
    text_of(doc, "crc32c", out->crc32c, sizeof out->crc32c);
    text_of(metadata, "ckpt-nonce", out->nonce, sizeof out->nonce);
    text_of(metadata, "ckpt-attempt", out->mark, sizeof out->mark);
  }
  json_decref(doc);
  return rc;
}

static int add_item(s3_page *out, const json_t *item, const char *what, err *e) {
  const char *name = json_string_value(json_object_get(item, "name"));
  store_object object = {0};
  char created[64];
  if (!name || !size_of(item, &object.size))
    return err_set(e, ERR_FORMAT, "%s: an item has no name or no size", what);
  text_of(item, "timeCreated", created, sizeof created);
  object.mtime_ns = s3_time(created);
  return s3_page_add(out, strdup(name), false, &object)
             ? 0
             : err_set(e, ERR_NOMEM, "%s: no memory for a listing", what);
}

int gs_read_page(const char *text, size_t len, const char *what, s3_page *out, err *e) {
  json_t *doc = NULL;
  const char *next = "";
  int rc = js_parse(text, len, what, &doc, e);
  const json_t *items = json_object_get(doc, "items"), *prefixes = json_object_get(doc, "prefixes");
  bool listing = json_is_object(doc) && !json_object_get(doc, "error") &&
                 (!items || json_is_array(items)) && (!prefixes || json_is_array(prefixes));
  if (rc == 0 && !listing) rc = err_set(e, ERR_FORMAT, "%s: the answer is no listing", what);
  for (size_t i = 0; rc == 0 && i < json_array_size(items); i++)
    rc = add_item(out, json_array_get(items, i), what, e);
  for (size_t i = 0; rc == 0 && i < json_array_size(prefixes); i++) {
    const char *name = json_string_value(json_array_get(prefixes, i));
    if (!name)
      rc = err_set(e, ERR_FORMAT, "%s: a prefix is no text", what);
    else if (!s3_page_add(out, strdup(name), true, &(store_object){0}))
      rc = err_set(e, ERR_NOMEM, "%s: no memory for a listing", what);
  }
  if (rc == 0) rc = js_opt_str(doc, "nextPageToken", what, "", &next, e);
  if (rc == 0 && *next && !(out->next = strdup(next)))
    rc = err_set(e, ERR_NOMEM, "%s: no memory for a listing", what);
  json_decref(doc);
  return rc;
}

void gs_read_error(const char *text, size_t len, char code[S3_CODE_MAX]) {
  json_t *doc = NULL;
  code[0] = 0;
  if (js_parse(text, len, "an answer", &doc, NULL) < 0) return;
  const json_t *error = json_object_get(doc, "error");
  const json_t *first = json_array_get(json_object_get(error, "errors"), 0);
  const char *message = json_string_value(json_object_get(error, "message"));
  text_of(first, "reason", code, S3_CODE_MAX);
  if (code[strspn(code, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")]) code[0] = 0;
  if (message && strcasestr(message, "bucket does not exist"))
    snprintf(code, S3_CODE_MAX, "NoSuchBucket");
  json_decref(doc);
}

void gs_crc_text(uint32_t crc, char out[16]) {
  uint8_t bytes[4] = {(uint8_t)(crc >> 24), (uint8_t)(crc >> 16), (uint8_t)(crc >> 8),
                      (uint8_t)crc};
  buf text;
  buf_init(&text, 15);
  base64_encode(bytes, sizeof bytes, false, &text);
  snprintf(out, 16, "%s", text.data ? text.data : "");
  buf_free(&text);
}

static void add_text(json_t *to, const char *name, const char *text, int *bad) {
  if (text && *text) js_set(to, name, json_string(text), bad);
}

int gs_add_resource(const char *nonce, const char *mark, const char *storage_class,
                    const uint32_t *crc, buf *out, err *e) {
  json_t *doc = json_object(), *metadata = json_object();
  char sum[16] = "";
  int bad = !doc || !metadata;
  if (crc) gs_crc_text(*crc, sum);
  add_text(metadata, "ckpt-nonce", nonce, &bad);
  add_text(metadata, "ckpt-attempt", mark, &bad);
  add_text(doc, "storageClass", storage_class, &bad);
  add_text(doc, "crc32c", sum, &bad);
  js_set(doc, "metadata", metadata, &bad);
  int rc =
      bad ? err_set(e, ERR_NOMEM, "no memory for an object's metadata") : js_print(doc, out, e);
  json_decref(doc);
  return rc;
}
