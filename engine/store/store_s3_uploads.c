/* store_s3: lists and aborts uploads that were begun and neither completed nor aborted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "store_s3.h"
#include "store/aws/xml.h"

typedef struct uploads {
  s3_upload_fn *fn;
  void *ctx;
  const char *asked;        /* the prefix that the server is asked for */
  unsigned pages;           /* no more than so many; 0: all */
  s3_upload open;           /* the upload whose elements come just now */
  char *next_key, *next_id; /* where the next page begins */
  s3_upload *page;
  size_t count, room;
  bool encoded, truncated, failed;
} uploads;

static void take_text(uploads *u, char **to, const char *text) {
  free(*to);
  *to = strdup(text);
  u->failed |= !*to;
}

static void end_upload(uploads *u) {
  bool whole = u->open.path && u->open.id;
  if (!whole) return;
  u->failed |= !VEC_ROOM(u->page, u->count, u->room);
  if (u->failed) return;
  u->page[u->count++] = u->open;
  u->open = (s3_upload){0};
}

static int on_upload(void *ctx, const char *path, const char *text) {
  static const char root[] = "ListMultipartUploadsResult/";
  uploads *u = ctx;
  if (strncmp(path, root, sizeof root - 1) != 0) return 0;
  path += sizeof root - 1;
  if (!text) {
    if (strcmp(path, "Upload") == 0) end_upload(u);
  } else if (strcmp(path, "Upload/Key") == 0) {
    take_text(u, &u->open.path, text);
  } else if (strcmp(path, "Upload/UploadId") == 0) {
    take_text(u, &u->open.id, text);
  } else if (strcmp(path, "Upload/Initiated") == 0) {
    u->open.begun_ns = s3_time(text);
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
  for (size_t i = 0; i < u->count; i++) free(u->page[i].path), free(u->page[i].id);
  free(u->page);
  free(u->open.path);
  free(u->open.id);
  *u = (uploads){.fn = u->fn,
                 .ctx = u->ctx,
                 .asked = u->asked,
                 .pages = u->pages,
                 .next_key = u->next_key,
                 .next_id = u->next_id};
}

/* Asks for one page and hands it on. Some servers take the prefix for a directory, so uploads that
 * do not begin with it are left out here. */
static int one_page(s3_store *s, const char *start, atomic_int *cancel, uploads *u, err *e) {
  const char *query[] = {
      "uploads", "", "encoding-type", "url", "prefix", u->asked, NULL, NULL, NULL, NULL, NULL};
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
  if (u->encoded && u->next_key) s3_decode(u->next_key);
  for (size_t i = 0; rc == 0 && i < u->count; i++) {
    if (u->encoded) s3_decode(u->page[i].path);
    if (strncmp(u->page[i].path, start, strlen(start)) == 0) rc = u->fn(u->ctx, &u->page[i]);
  }
  return rc;
}

static bool is_same(const char *a, const char *b) {
  return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Reads one page, and fails if the server goes on from where this one began: that would never
 * end. */
static int next_page(s3_store *s, const char *start, atomic_int *cancel, uploads *u, err *e) {
  char *key = u->next_key ? strdup(u->next_key) : NULL;
  char *id = u->next_id ? strdup(u->next_id) : NULL;
  int rc = one_page(s, start, cancel, u, e);
  if (rc == 0 && u->truncated && key && is_same(key, u->next_key) && is_same(id, u->next_id))
    rc = s3_endless(s, e);
  free(key);
  free(id);
  return rc;
}

static int list_uploads(s3_store *s, const char *start, atomic_int *cancel, uploads *u, err *e) {
  int rc = 0;
  unsigned empty = 0, pages = 0;
  bool more = true;
  while (rc == 0 && more) {
    rc = next_page(s, start, cancel, u, e);
    more = u->truncated && u->next_key && *u->next_key && ++pages != u->pages;
    empty = u->count > 0 ? 0 : empty + 1;
    if (rc == 0 && more && empty > S3_EMPTY_MAX) rc = s3_endless(s, e);
    forget_page(u);
  }
  free(u->next_key);
  free(u->next_id);
  return rc;
}

int s3_uploads(s3_store *s, const char *start, atomic_int *cancel, s3_upload_fn *fn, void *ctx,
               err *e) {
  uploads u = {.fn = fn, .ctx = ctx, .asked = start};
  return list_uploads(s, start, cancel, &u, e);
}

/* ---- below a directory ---- */

typedef struct counting {
  s3_upload_fn *fn;
  void *ctx;
  bool any;
} counting;

static int count_one(void *ctx, const s3_upload *u) {
  counting *c = ctx;
  c->any = true;
  return c->fn(c->ctx, u);
}

/* MinIO answers with the uploads of one key, or with those of the whole bucket that the server at
 * hand has begun, but never with those below a prefix: it says that there are none. So a server
 * that has not shown yet that it knows prefixes is asked for the bucket's, of which others may have
 * very many. AWS knows them. */
int s3_uploads_below(s3_store *s, const char *start, s3_upload_fn *fn, void *ctx, err *e) {
  enum { PAGES = 20 };
  counting c = {.fn = fn, .ctx = ctx};
  uploads all = {.fn = fn, .ctx = ctx, .asked = "", .pages = PAGES};
  int rc = s3_uploads(s, start, NULL, count_one, &c, e);
  if (c.any) atomic_store(&s->lists_uploads, true);
  if (rc != 0 || !*start || !*s->who.endpoint || atomic_load(&s->lists_uploads)) return rc;
  return list_uploads(s, start, NULL, &all, e);
}

static int abort_path(s3_store *s, const s3_upload *u, err *e) {
  const char *query[] = {"uploadId", u->id, NULL};
  s3_call c;
  err why = {0};
  int rc =
      s3_do(&c, s,
            &(s3_request){
                .verb = "abort an upload of", .method = "DELETE", .path = u->path, .query = query},
            &why);
  bool gone = strcmp(c.code, "NoSuchUpload") == 0 || rc == ERR_NOENT;
  s3_end(&c);
  return rc == 0 || gone ? 0 : err_set(e, rc, "%s", why.text);
}

/* The request is sent once, whether or not we are cancelled: it must not wait for a server that is
 * gone. */
void s3_upload_drop(s3_store *s, const char *path, const char *id) {
  const char *query[] = {"uploadId", id, NULL};
  atomic_int never = 0;
  s3_call c;
  s3_start(&c, s,
           &(s3_request){.verb = "abort an upload of",
                         .method = "DELETE",
                         .path = path,
                         .query = query,
                         .cancel = &never});
  s3_once(&c, NULL);
  s3_end(&c);
}

typedef struct aborting {
  s3_store *s;
  long count;
  err *e;
} aborting;

static int abort_one(void *ctx, const s3_upload *u) {
  aborting *a = ctx;
  a->count++;
  return abort_path(a->s, u, a->e);
}

long s3_uploads_abort(s3_store *s, const char *path, err *e) {
  char start[S3_PATH_MAX + 1];
  err why = {0};
  aborting a = {.s = s, .e = &why};
  snprintf(start, sizeof start, "%s%s", path, *path ? "/" : "");
  int rc = s3_uploads_below(s, start, abort_one, &a, &why);
  if (rc == 0) return a.count;
  return err_set(e, rc, "%s", why.text);
}

/* ---- of the vtable ---- */

typedef struct telling {
  s3_store *s;
  store_unfinished_fn *fn;
  void *ctx;
} telling;

/* A key in the bucket that no key of ours could be is somebody else's, or of a directory of which
 * nobody said how it is spelt. */
static int tell_one(void *ctx, const s3_upload *u) {
  telling *t = ctx;
  char key[STORE_KEY_MAX + 1];
  bool raw = !s3_key_of(t->s, u->path, key);
  if (raw && !s3_raw_key(t->s, u->path, key)) return 0;
  return t->fn(t->ctx,
               &(store_unfinished){.key = key, .id = u->id, .begun_ns = u->begun_ns, .raw = raw});
}

int s3_unfinished(store *base, const char *prefix, store_unfinished_fn *fn, void *ctx, err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX], start[S3_PATH_MAX + 1];
  telling t = {s, fn, ctx};
  int rc = s3_path(s, prefix, path, e);
  if (rc < 0) return rc;
  snprintf(start, sizeof start, "%s%s", path, *path ? "/" : "");
  return s3_uploads_below(s, start, tell_one, &t, e);
}

int s3_discard(store *base, const store_unfinished *what, err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX];
  int rc = what->raw ? s3_raw_path(s, what->key, path, e) : s3_path(s, what->key, path, e);
  return rc < 0 ? rc : abort_path(s, &(s3_upload){.path = path, .id = (char *)what->id}, e);
}
