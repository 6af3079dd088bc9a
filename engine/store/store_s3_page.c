/* Listings of a bucket, page by page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_s3.h"
#include "xml.h"

void s3_page_free(s3_page *p) {
  for (size_t i = 0; i < p->count; i++) free(p->entries[i].path);
  free(p->entries);
  free(p->next);
  *p = (s3_page){0};
}

/* What is known of the page while its XML is walked. The encoding may be told behind the keys. */
typedef struct reading {
  s3_page *page;
  s3_entry open; /* the entry whose elements come just now */
  bool seen, encoded, truncated, failed;
  char *next;
} reading;

static void keep(reading *r, char **to, const char *text) {
  free(*to);
  *to = strdup(text);
  r->failed |= !*to;
}

/* The elements of an entry may come in any order, and one may be missing. */
static int end_entry(reading *r, bool is_prefix) {
  s3_entry *made =
      r->open.path ? realloc(r->page->entries, (r->page->count + 1) * sizeof *made) : NULL;
  if (!made) {
    r->failed |= r->open.path != NULL;
    free(r->open.path);
  } else {
    r->open.is_prefix = is_prefix;
    r->page->entries = made;
    made[r->page->count++] = r->open;
  }
  r->open = (s3_entry){0};
  return r->failed ? ERR_NOMEM : 0;
}

static int on_element(void *ctx, const char *path, const char *text) {
  reading *r = ctx;
  if (strncmp(path, "ListBucketResult", 16) != 0) return 0;
  r->seen = true;
  path += 16;
  if (!text) {
    if (strcmp(path, "/Contents") == 0) return end_entry(r, false);
    if (strcmp(path, "/CommonPrefixes") == 0) return end_entry(r, true);
  } else if (strcmp(path, "/Contents/Key") == 0 || strcmp(path, "/CommonPrefixes/Prefix") == 0) {
    keep(r, &r->open.path, text);
  } else if (strcmp(path, "/Contents/Size") == 0) {
    r->open.object.size = strtoull(text, NULL, 10);
  } else if (strcmp(path, "/Contents/LastModified") == 0) {
    r->open.object.mtime_ns = s3_time(text);
  } else if (strcmp(path, "/EncodingType") == 0) {
    r->encoded = strcmp(text, "url") == 0;
  } else if (strcmp(path, "/IsTruncated") == 0) {
    r->truncated = strcmp(text, "true") == 0;
  } else if (strcmp(path, "/NextContinuationToken") == 0) {
    keep(r, &r->next, text);
  }
  return r->failed ? ERR_NOMEM : 0;
}

static int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = (char)(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place. A space comes as a plus. */
static void decode(char *text) {
  char *to = text;
  for (const char *at = text; *at; at++) {
    int high = *at == '%' ? digit(at[1]) : -1, low = high < 0 ? -1 : digit(at[2]);
    if (low >= 0) at += 2;
    *to++ = low >= 0 ? (char)(high << 4 | low) : *at == '+' ? ' ' : *at;
  }
  *to = 0;
}

static int read_page(reading *r, const buf *body, const char *what, err *e) {
  int rc = xml_walk(body->data ? body->data : "", body->len, what, on_element, r, e);
  if (rc == ERR_NOMEM) return err_set(e, rc, "%s: no memory for a listing", what);
  if (rc < 0) return rc;
  /* What a gateway says in good XML is no empty bucket. */
  if (!r->seen) return err_set(e, ERR_FORMAT, "%s: the answer is no listing", what);
  for (size_t i = 0; r->encoded && i < r->page->count; i++) decode(r->page->entries[i].path);
  if (r->truncated && (!r->next || !*r->next))
    return err_set(e, ERR_FORMAT, "%s: there is more, and the server does not say from where",
                   what);
  if (r->truncated) {
    r->page->next = r->next;
    r->next = NULL;
  }
  return 0;
}

int s3_page_get(s3_store *s, const char *path, bool delimited, unsigned max, const char *next,
                s3_page *out, err *e) {
  char start[S3_PATH_MAX + 1], most[16], what[S3_PATH_MAX];
  const char *query[16];
  size_t n = 0;
  *out = (s3_page){0};
  snprintf(start, sizeof start, "%s%s", path, *path ? "/" : "");
  snprintf(most, sizeof most, "%u", max);
  snprintf(what, sizeof what, "the listing of s3://%s/%.400s", s->bucket, path);
  query[n++] = "list-type", query[n++] = "2";
  query[n++] = "encoding-type", query[n++] = "url";
  query[n++] = "max-keys", query[n++] = most;
  query[n++] = "prefix", query[n++] = start;
  if (delimited) query[n++] = "delimiter", query[n++] = "/";
  if (next) query[n++] = "continuation-token", query[n++] = next;
  query[n] = NULL;
  s3_call c;
  int rc =
      s3_do(&c, s,
            &(s3_request){
                .verb = "list", .method = "GET", .path = "", .query = query, .room = S3_ANSWER_MAX},
            e);
  reading r = {.page = out};
  if (rc == 0) rc = read_page(&r, &c.answer.body, what, e);
  if (rc == 0 && next && out->next && strcmp(out->next, next) == 0)
    rc = err_set(e, ERR_FORMAT, "%s: the server goes on from the same place again", what);
  free(r.open.path);
  free(r.next);
  s3_end(&c);
  return rc;
}

/* ---- unfinished uploads ---- */

typedef struct uploads {
  s3_upload_fn *fn;
  void *ctx;
  char *key, *id;           /* of the upload whose elements come just now */
  char *next_key, *next_id; /* where the next page begins */
  char *(*pairs)[2];        /* what the page holds */
  size_t count;
  bool encoded, truncated, failed;
} uploads;

static void take_text(uploads *u, char **to, const char *text) {
  free(*to);
  *to = strdup(text);
  u->failed |= !*to;
}

static void end_upload(uploads *u) {
  char *(*made)[2] = u->key && u->id ? realloc(u->pairs, (u->count + 1) * sizeof *made) : NULL;
  u->failed |= !made && u->key && u->id;
  if (!made) return;
  u->pairs = made;
  made[u->count][0] = u->key, made[u->count++][1] = u->id;
  u->key = u->id = NULL;
}

static int on_upload(void *ctx, const char *path, const char *text) {
  static const char root[] = "ListMultipartUploadsResult/";
  uploads *u = ctx;
  if (strncmp(path, root, sizeof root - 1) != 0) return 0;
  path += sizeof root - 1;
  if (!text) {
    if (strcmp(path, "Upload") == 0) end_upload(u);
  } else if (strcmp(path, "Upload/Key") == 0) {
    take_text(u, &u->key, text);
  } else if (strcmp(path, "Upload/UploadId") == 0) {
    take_text(u, &u->id, text);
  } else if (strcmp(path, "NextKeyMarker") == 0) {
    take_text(u, &u->next_key, text);
  } else if (strcmp(path, "NextUploadIdMarker") == 0) {
    take_text(u, &u->next_id, text);
  } else if (strcmp(path, "IsTruncated") == 0) {
    u->truncated = strcmp(text, "true") == 0;
  } else if (strcmp(path, "EncodingType") == 0) {
    u->encoded = strcmp(text, "url") == 0;
  }
  return u->failed ? ERR_NOMEM : 0;
}

static void forget_page(uploads *u) {
  for (size_t i = 0; i < u->count; i++) free(u->pairs[i][0]), free(u->pairs[i][1]);
  free(u->pairs);
  free(u->key);
  free(u->id);
  *u = (uploads){.fn = u->fn, .ctx = u->ctx, .next_key = u->next_key, .next_id = u->next_id};
}

/* Asks for one page and hands it on. Some servers take the prefix for a directory, so what does not
 * begin with it is left out here. */
static int one_page(s3_store *s, const char *start, atomic_int *cancel, uploads *u, err *e) {
  const char *query[] = {"uploads", "",  "encoding-type", "url", "prefix", start, NULL, NULL, NULL,
                         NULL,      NULL};
  char what[300];
  if (u->next_key && *u->next_key) query[6] = "key-marker", query[7] = u->next_key;
  if (query[6] && u->next_id && *u->next_id) query[8] = "upload-id-marker", query[9] = u->next_id;
  snprintf(what, sizeof what, "the unfinished uploads of s3://%s", s->bucket);
  s3_call c;
  int rc = s3_do(&c, s,
                 &(s3_request){.verb = "list the uploads of",
                               .method = "GET",
                               .path = "",
                               .query = query,
                               .room = S3_ANSWER_MAX,
                               .cancel = cancel},
                 e);
  if (rc == 0)
    rc = xml_walk(c.answer.body.data ? c.answer.body.data : "", c.answer.body.len, what, on_upload,
                  u, e);
  if (u->failed) rc = err_set(e, ERR_NOMEM, "%s: no memory", what);
  s3_end(&c);
  if (u->encoded && u->next_key) decode(u->next_key);
  for (size_t i = 0; rc == 0 && i < u->count; i++) {
    if (u->encoded) decode(u->pairs[i][0]);
    if (strncmp(u->pairs[i][0], start, strlen(start)) == 0)
      rc = u->fn(u->ctx, u->pairs[i][0], u->pairs[i][1]);
  }
  return rc;
}

int s3_uploads(s3_store *s, const char *start, atomic_int *cancel, s3_upload_fn *fn, void *ctx,
               err *e) {
  uploads u = {.fn = fn, .ctx = ctx};
  int rc = 0;
  bool more = true;
  while (rc == 0 && more) {
    rc = one_page(s, start, cancel, &u, e);
    more = u.truncated && u.next_key && *u.next_key;
    forget_page(&u);
  }
  free(u.next_key);
  free(u.next_id);
  return rc;
}
