/* gs: turns a request of S3's kind into one of the JSON API of Google Cloud Storage, and what it
 * answers into what S3 would. The JSON API, not the one in XML: it is the one that takes the sum of an
 * object along with it, and that the stand-in for tests speaks.
 *
 * A put that may replace nothing has ifGenerationMatch=0, one that replaces a known content has the
 * generation of that; the generation is the tag. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gs.h"
#include "prims/crc/crc.h"

enum { HEADERS_OWN = 12 };

void gs_encode(const char *text, buf *out) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  for (; *text; text++) {
    size_t n = strspn(text, plain);
    buf_add(out, text, n);
    text += n;
    if (!*text) break;
    buf_fmt(out, "%%%02X", (unsigned char)*text);
  }
}

static gs_store *store_of(const s3_call *c) {
  return (gs_store *)c->s;
}

/* The value of a header that the caller gave; NULL: it gave none. */
static const char *given(const s3_call *c, const char *name) {
  size_t len = strlen(name);
  for (const char *const *h = c->r.headers; h && *h; h++)
    if (strncmp(*h, name, len) == 0 && strncmp(*h + len, ": ", 2) == 0) return *h + len + 2;
  return NULL;
}

static bool is(const s3_call *c, const char *method) {
  return strcmp(c->r.method, method) == 0;
}

static bool has(const s3_call *c, const char *name) {
  return c->r.query && c->r.query[0] && strcmp(c->r.query[0], name) == 0;
}

/* ---- the address ---- */

static void add_bucket(s3_call *c, const char *before) {
  buf_fmt(&c->url, "%s%s/storage/v1/b/%s/o", store_of(c)->endpoint, before, c->s->bucket);
}

static void add_object(s3_call *c, const char *query) {
  add_bucket(c, "");
  buf_str(&c->url, "/");
  gs_encode(c->r.path, &c->url);
  buf_str(&c->url, query);
}

static int add_condition(s3_call *c, err *e) {
  const char *match = given(c, "if-match");
  if (given(c, "if-none-match")) buf_str(&c->url, "&ifGenerationMatch=0");
  if (!match) return 0;
  size_t len = *match == '"' ? strspn(match + 1, "0123456789") : 0;
  if (len == 0 || strcmp(match + 1 + len, "\"") != 0)
    return err_set(e, ERR_INVAL, "this tag is none of %s", c->s->shown);
  buf_fmt(&c->url, "&ifGenerationMatch=%.*s", (int)len, match + 1);
  return 0;
}

static int add_upload(s3_call *c, const char *type, err *e) {
  add_bucket(c, "/upload");
  buf_fmt(&c->url, "?uploadType=%s&name=", type);
  gs_encode(c->r.path, &c->url);
  return add_condition(c, e);
}

static void add_listing(s3_call *c) {
  add_bucket(c, "");
  for (const char *const *q = c->r.query; q && *q; q += 2) {
    buf_fmt(&c->url, "%s%s=", q == c->r.query ? "?" : "&", q[0]);
    gs_encode(q[1], &c->url);
  }
}

/* ---- what goes along ---- */

static int add_resource(s3_call *c, const uint32_t *crc, err *e) {
  bool record = strncmp(c->r.path, ".ckpt/", 6) == 0 || strstr(c->r.path, "/.ckpt/");
  return gs_add_resource(given(c, S3_NONCE), given(c, S3_MARK),
                         record ? NULL : store_of(c)->storage_class, crc, &c->body, e);
}

static const char DASHES[] = "--", BOUNDARY[] = "ckpt-"; /* what they are joined to is no flag */

/* A small object goes with its metadata and its sum in one request: the server refuses other bytes
 * than the sum's. The boundary has the nonce, so no content has it. */
static int prepare_put(s3_call *c, err *e) {
  const char *nonce = given(c, S3_NONCE);
  uint32_t crc = crc32c(0, c->r.body, c->r.len);
  int rc = add_upload(c, "multipart", e);
  if (rc < 0) return rc;
  nonce = nonce ? nonce : "";
  buf_fmt(&c->lines, "content-type: multipart/related; boundary=ckpt-%s\n", nonce);
  buf_fmt(&c->body, "%s%s%s\r\ncontent-type: application/json; charset=UTF-8\r\n\r\n", DASHES,
          BOUNDARY, nonce);
  rc = add_resource(c, &crc, e);
  buf_fmt(&c->body, "\r\n%s%s%s\r\ncontent-type: application/octet-stream\r\n\r\n", DASHES,
          BOUNDARY, nonce);
  if (c->r.len) buf_add(&c->body, c->r.body, c->r.len);
  buf_fmt(&c->body, "\r\n%s%s%s--\r\n", DASHES, BOUNDARY, nonce);
  c->sent.method = "POST";
  return rc;
}

static int prepare_begin(s3_call *c, err *e) {
  int rc = add_upload(c, "resumable", e);
  buf_fmt(&c->lines, "content-type: application/json; charset=UTF-8\nx-upload-content-length: %s\n",
          c->r.query[1]);
  return rc == 0 ? add_resource(c, NULL, e) : rc;
}

static int prepare_kind(s3_call *c, err *e) {
  c->sent.body = c->r.body;
  c->sent.len = c->r.len;
  if (has(c, GS_SESSION)) {
    buf_str(&c->url, c->r.query[1]);
    return 0;
  }
  if (has(c, GS_BEGIN)) return prepare_begin(c, e);
  if (is(c, "PUT")) return prepare_put(c, e);
  c->sent.method = is(c, "HEAD") ? "GET" : c->r.method;
  if (!*c->r.path)
    add_listing(c);
  else
    add_object(c, is(c, "GET") ? "?alt=media" : "");
  return 0;
}

/* Cuts the lines apart. What is for S3 alone has been translated by now. */
static void gather(s3_call *c) {
  size_t n = 0;
  for (const char *const *h = c->r.headers; h && *h && n < HTTP_HEADERS_MAX - HEADERS_OWN; h++)
    if (strncmp(*h, "x-amz-", 6) != 0 && strncmp(*h, "if-", 3) != 0) c->headers[n++] = *h;
  for (char *line = c->lines.data; line && *line && n < HTTP_HEADERS_MAX - 2;) {
    char *end = strchr(line, '\n');
    c->headers[n++] = line;
    if (!end) break;
    *end = 0;
    line = end + 1;
  }
  if (*store_of(c)->project) c->headers[n++] = store_of(c)->project;
  c->headers[n] = NULL;
}

static int prepare(s3_call *c, err *e) {
  buf_clear(&c->url);
  buf_clear(&c->lines);
  buf_clear(&c->body);
  int rc = prepare_kind(c, e);
  if (rc == 0) rc = gs_token_line(store_of(c)->token, (atomic_int *)c->sent.cancel, &c->lines, e);
  if (rc == 0 && (buf_failed(&c->url) || buf_failed(&c->lines) || buf_failed(&c->body)))
    rc = err_set(e, ERR_LIMIT, "the request is too long");
  if (rc < 0) return rc;
  gather(c);
  c->sent.url = c->url.data;
  if (c->body.len) {
    c->sent.body = c->body.data;
    c->sent.len = c->body.len;
  }
  return 0;
}

/* ---- the answer ---- */

/* Puts lines before the headers that came: the first of a name counts. */
static void say_first(s3_call *c, const buf *lines) {
  buf all;
  buf_init(&all, c->answer.headers.max);
  buf_add(&all, lines->data ? lines->data : "", lines->len);
  buf_add(&all, c->answer.headers.data ? c->answer.headers.data : "", c->answer.headers.len);
  if (buf_failed(&all)) snprintf(c->code, sizeof c->code, "InternalError");
  buf_free(&c->answer.headers);
  c->answer.headers = all;
}

static void spoilt(s3_call *c, const char *code) {
  snprintf(c->code, sizeof c->code, "%s", code);
}

static void answer_head(s3_call *c) {
  gs_resource r;
  buf lines;
  const buf *body = &c->answer.body;
  if (gs_read_resource(body->data ? body->data : "", body->len, &r, NULL) < 0) {
    spoilt(c, "InternalError"); /* it was cut off */
    return;
  }
  buf_init(&lines, 4096);
  buf_fmt(&lines, "content-length: %" PRIu64 "\nlast-modified: %s\netag: \"%s\"\n", r.size,
          r.created, r.generation);
  if (*r.nonce) buf_fmt(&lines, "%s: %s\n", S3_NONCE, r.nonce);
  if (*r.mark) buf_fmt(&lines, "%s: %s\n", S3_MARK, r.mark);
  say_first(c, &lines);
  buf_free(&lines);
}

/* The sum is that of the whole object; a header may have another digest beside it. */
static void check_sum(s3_call *c) {
  char hash[256], sum[16];
  if (c->r.into || c->answer.status != 200 || given(c, "range")) return;
  if (!http_header(&c->answer, "x-goog-hash", hash, sizeof hash)) return;
  const char *crc = strstr(hash, "crc32c=");
  gs_crc_text(crc32c(0, c->answer.body.data, c->answer.body.len), sum);
  if (crc && strncmp(crc + 7, sum, strlen(sum)) != 0) spoilt(c, "BadDigest");
}

static void answer_get(s3_call *c) {
  char generation[64];
  buf lines;
  if (!*c->r.path) return; /* a listing */
  check_sum(c);
  if (!http_header(&c->answer, "x-goog-generation", generation, sizeof generation)) return;
  buf_init(&lines, 100);
  buf_fmt(&lines, "etag: \"%s\"\n", generation);
  say_first(c, &lines);
  buf_free(&lines);
}

static void answer_put(s3_call *c) {
  gs_resource r;
  char sum[16];
  const buf *body = &c->answer.body;
  gs_crc_text(crc32c(0, c->r.body, c->r.len), sum);
  if (gs_read_resource(body->data ? body->data : "", body->len, &r, NULL) < 0)
    spoilt(c, "InternalError");
  else if (*r.crc32c && strcmp(r.crc32c, sum) != 0)
    spoilt(c, "InvalidDigest");
}

static void answer_error(s3_call *c) {
  bool about_bucket = !*c->r.path || is(c, "PUT") || has(c, GS_BEGIN);
  const buf *body = &c->answer.body;
  gs_read_error(body->data ? body->data : "", body->len, c->code);
  if (c->answer.status == 404 && about_bucket && !has(c, GS_SESSION)) spoilt(c, "NoSuchBucket");
  if (strcasestr(c->code, "rateLimitExceeded")) spoilt(c, "SlowDown");
}

static void answered(s3_call *c) {
  if (c->answer.status / 100 != 2)
    answer_error(c);
  else if (has(c, GS_SESSION) || has(c, GS_BEGIN))
    return;
  else if (is(c, "HEAD"))
    answer_head(c);
  else if (is(c, "GET"))
    answer_get(c);
  else if (is(c, "PUT"))
    answer_put(c);
}

static bool renew(s3_call *c) {
  if (c->renewed || c->trouble.code || c->answer.status != 401) return false;
  c->renewed = true;
  for (const char **h = c->headers; *h; h++)
    if (strncmp(*h, "authorization: ", 15) == 0) return gs_token_refused(store_of(c)->token, *h);
  return false;
}

/* ---- listings ---- */

static int page(s3_store *s, const char *start, bool delimited, unsigned max, const char *next,
                const char *what, s3_page *out, err *e) {
  char most[16];
  const char *query[12];
  size_t n = 0;
  snprintf(most, sizeof most, "%u", max);
  query[n++] = "prefix", query[n++] = start;
  query[n++] = "maxResults", query[n++] = most;
  query[n++] = "fields", query[n++] = "items(name,size,timeCreated),prefixes,nextPageToken";
  if (delimited) query[n++] = "delimiter", query[n++] = "/";
  if (next) query[n++] = "pageToken", query[n++] = next;
  query[n] = NULL;
  s3_call c;
  int rc =
      s3_do(&c, s,
            &(s3_request){
                .verb = "list", .method = "GET", .path = "", .query = query, .room = S3_ANSWER_MAX},
            e);
  const buf *body = &c.answer.body;
  if (rc == 0) rc = gs_read_page(body->data ? body->data : "", body->len, what, out, e);
  s3_end(&c);
  return rc;
}

const s3_dialect gs_dialect = {
    .prepare = prepare, .answered = answered, .renew = renew, .page = page};
