/* store_s3: compare-and-swap, for objects that one of several replaces who all saw the same
 * content: the server compares the ETag. */
#include <stdio.h>
#include <string.h>

#include "store_s3.h"

int s3_get_tagged(store *base, const char *key, buf *out, char tag[STORE_TAG_MAX], err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX], etag[S3_ETAG_MAX + 2] = "";
  size_t room = out->max - out->len;
  int rc = *key ? s3_path(s, key, path, e) : store_key_check(key, e);
  if (rc < 0) return rc;
  s3_call c;
  rc = s3_do(&c, s, &(s3_request){.verb = "get", .method = "GET", .path = path, .room = room}, e);
  if (rc == 0 && (!http_header(&c.answer, "etag", etag, sizeof etag) || !*etag))
    rc = err_set(e, ERR_UNSUPPORTED, "%s/%.400s: the server gave no ETag", s->shown, path);
  if (rc == 0 && c.answer.body.len) buf_add(out, c.answer.body.data, c.answer.body.len);
  if (rc == 0 && buf_failed(out))
    rc = err_set(e, buf_failed(out), "%s/%.400s has %zu bytes: too many", s->shown, path,
                 c.answer.body.len);
  if (rc == 0) s3_etag(etag, tag);
  s3_end(&c);
  return rc;
}

int s3_replace_if(store *base, const char *key, const void *data, size_t len, const char *tag,
                  err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX], match[STORE_TAG_MAX + 16];
  int rc = *key ? s3_path(s, key, path, e) : store_key_check(key, e);
  if (rc < 0) return rc;
  if (strlen(tag) >= S3_ETAG_MAX || strpbrk(tag, "\"\r\n"))
    return err_set(e, ERR_INVAL, "\"%.200s\": this tag is none of a bucket's", key);
  snprintf(match, sizeof match, "if-match: \"%s\"", tag);
  return s3_put_object(s, &(s3_object){.path = path, .data = data, .len = len, .if_match = match},
                       e);
}
