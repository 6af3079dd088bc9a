/* store_s3: removes objects, one or a thousand in a request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_s3.h"
#include "store/aws/xml.h"

enum { S3_BULK = S3_PAGE, ROUNDS = 8, BODY_MAX = S3_PAGE * (5 * S3_PATH_MAX + 64) };

static int remove_path(s3_store *s, const char *path, err *e) {
  s3_call c;
  err why = {0};
  int rc = s3_do(&c, s, &(s3_request){.verb = "remove", .method = "DELETE", .path = path}, &why);
  s3_end(&c);
  return rc == 0 || rc == ERR_NOENT ? 0 : err_set(e, rc, "%s", why.text);
}

int s3_remove(store *base, const char *key, err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX];
  int rc = *key ? s3_path(s, key, path, e) : store_key_check(key, e);
  return rc < 0 ? rc : remove_path(s, path, e);
}

/* ---- many at once ---- */

/* The first key that could not be removed, and why. */
typedef struct refusal {
  char key[200], code[S3_CODE_MAX];
  char last_key[200], last_code[S3_CODE_MAX];
} refusal;

static int on_result(void *ctx, const char *path, const char *text) {
  refusal *r = ctx;
  if (text && strcmp(path, "DeleteResult/Error/Key") == 0)
    snprintf(r->last_key, sizeof r->last_key, "%s", text);
  else if (text && strcmp(path, "DeleteResult/Error/Code") == 0)
    snprintf(r->last_code, sizeof r->last_code, "%s", text);
  else if (!text && strcmp(path, "DeleteResult/Error") == 0) {
    bool gone = strcmp(r->last_code, "NoSuchKey") == 0;
    if (!gone && !*r->code) {
      memcpy(r->key, r->last_key, sizeof r->key);
      snprintf(r->code, sizeof r->code, "%s", *r->last_code ? r->last_code : "?");
    }
    r->last_key[0] = r->last_code[0] = 0;
  }
  return 0;
}

/* A bulk delete that was carried out in part is no success. */
static int read_result(const s3_call *c, err *e) {
  refusal r = {0};
  char what[200];
  if (c->answer.body.len == 0) return 0;
  snprintf(what, sizeof what, "the answer to a delete in s3://%s", c->s->bucket);
  int rc = xml_walk(c->answer.body.data, c->answer.body.len, what, on_result, &r, e);
  if (rc < 0 || !*r.code) return rc;
  rc = strcmp(r.code, "AccessDenied") == 0 ? ERR_ACCESS : ERR_IO;
  return err_set(e, rc, "remove s3://%s/%s: the server answered %s", c->s->bucket, r.key, r.code);
}

static int send_list(s3_store *s, const buf *body, err *e) {
  s3_call c;
  const char *query[] = {"delete", "", NULL};
  int rc = s3_do(&c, s,
                 &(s3_request){.verb = "remove many of",
                               .method = "POST",
                               .path = "",
                               .query = query,
                               .body = body->data,
                               .len = body->len,
                               .sum = S3_SUM_DEMAND,
                               .may_fail_late = true,
                               .room = S3_ANSWER_MAX},
                 e);
  if (rc == 0) rc = read_result(&c, e);
  s3_end(&c);
  return rc;
}

/* XML has no control characters. */
static bool fits_xml(const char *path) {
  for (; *path; path++)
    if ((unsigned char)*path < 0x20) return false;
  return true;
}

/* Removes at most a page of them. */
static int remove_paths(s3_store *s, const char *const *paths, size_t count, err *e) {
  buf body;
  size_t listed = 0;
  int rc = 0;
  buf_init(&body, BODY_MAX);
  buf_str(&body, "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>");
  for (size_t i = 0; rc == 0 && i < count; i++) {
    const char *path = paths[i];
    if (!fits_xml(path)) {
      rc = remove_path(s, path, e);
      continue;
    }
    buf_str(&body, "<Object><Key>");
    xml_escape(path, &body);
    buf_str(&body, "</Key></Object>");
    listed++;
  }
  buf_str(&body, "</Delete>");
  if (rc == 0)
    rc = buf_failed(&body) < 0 ? err_set(e, buf_failed(&body), "a delete is too long") : 0;
  if (rc == 0 && listed) rc = send_list(s, &body, e);
  buf_free(&body);
  return rc;
}

typedef struct removal {
  s3_store *s;
  long found;
} removal;

static int remove_page(void *ctx, const s3_page *page, err *e) {
  removal *r = ctx;
  const char **paths = calloc(page->count, sizeof(char *));
  if (!paths) return err_set(e, ERR_NOMEM, "no memory for a delete");
  for (size_t i = 0; i < page->count; i++) paths[i] = page->entries[i].path;
  int rc = remove_paths(r->s, paths, page->count, e);
  r->found += (long)page->count;
  free(paths);
  return rc;
}

int s3_remove_below(store *base, const char *prefix, const char *const *keys, size_t count,
                    err *e) {
  s3_store *s = (s3_store *)base;
  char(*room)[S3_PATH_MAX] = malloc(S3_BULK * sizeof *room);
  const char *paths[S3_BULK];
  int rc = room ? 0 : err_set(e, ERR_NOMEM, "no memory for a delete");
  (void)prefix;
  for (size_t at = 0; rc == 0 && at < count;) {
    size_t n = 0;
    for (; rc == 0 && n < S3_BULK && at < count; n++, at++) {
      rc = s3_path(s, keys[at], room[n], e);
      paths[n] = room[n];
    }
    if (rc == 0) rc = remove_paths(s, paths, n, e);
  }
  free(room);
  return rc;
}

/* Walks once over the objects below the path. Returns how many there were. */
static long remove_objects(s3_store *s, const char *path, err *e) {
  removal r = {.s = s};
  int rc = s3_pages(s, path, false, S3_PAGE, remove_page, &r, e);
  return rc < 0 ? rc : r.found;
}

/* Uploads go first: one that is completed meanwhile is an object, which the next walk finds. */
int s3_remove_prefix(store *base, const char *prefix, err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX] = "";
  int rc = *prefix ? s3_path(s, prefix, path, e) : store_key_check(prefix, e);
  if (rc < 0) return rc;
  for (int round = 0; round < ROUNDS; round++) {
    long uploads = s3_uploads_abort(s, path, e);
    long objects = uploads < 0 ? uploads : remove_objects(s, path, e);
    if (objects < 0) return (int)objects;
    if (uploads + objects == 0) return 0;
  }
  return err_set(e, ERR_CONFLICT,
                 "s3://%s/%.400s: somebody goes on making objects below it while it is removed",
                 s->bucket, path);
}
