/* store_s3: reads listings of a bucket, page by page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "store_s3.h"
#include "store/aws/xml.h"

static void page_free(s3_page *p) {
  for (size_t i = 0; i < p->count; i++) free(p->entries[i].path);
  free(p->entries);
  free(p->next);
  *p = (s3_page){0};
}

/* The state while the XML of a page is walked. The encoding may be told behind the keys. */
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

bool s3_page_add(s3_page *page, char *path, bool is_prefix, const store_object *object) {
  bool room = path && VEC_ROOM(page->entries, page->count, page->room);
  if (!room) free(path);
  if (room)
    page->entries[page->count++] =
        (s3_entry){.path = path, .is_prefix = is_prefix, .object = *object};
  return room;
}

/* The elements of an entry may come in any order, and one may be missing. */
static int end_entry(reading *r, bool is_prefix) {
  if (r->open.path) r->failed |= !s3_page_add(r->page, r->open.path, is_prefix, &r->open.object);
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

void s3_decode(char *text) {
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
  /* The answer of a gateway may be good XML, and yet no listing: it must not pass for an empty
   * bucket. */
  if (!r->seen) return err_set(e, ERR_FORMAT, "%s: the answer is no listing", what);
  for (size_t i = 0; r->encoded && i < r->page->count; i++) s3_decode(r->page->entries[i].path);
  if (r->truncated && (!r->next || !*r->next))
    return err_set(e, ERR_FORMAT, "%s: there is more, and the server does not say from where",
                   what);
  if (r->truncated) {
    r->page->next = r->next;
    r->next = NULL;
  }
  return 0;
}

int s3_endless(const s3_store *s, err *e) {
  return err_set(e, ERR_FORMAT,
                 "a listing of %s does not end: the server goes on and on with "
                 "nothing new",
                 s->shown);
}

/* What lies elsewhere would be read, or removed, by a name that is not its own. */
static int check_below(const s3_store *s, const s3_page *page, const char *start, const char *what,
                       err *e) {
  size_t len = strlen(start);
  for (size_t i = 0; i < page->count; i++)
    if (strncmp(page->entries[i].path, start, len) != 0)
      return err_set(e, ERR_FORMAT, "%s: the server names %s/%.400s, which does not lie there",
                     what, s->shown, page->entries[i].path);
  return 0;
}

static int ask_page(s3_store *s, const char *start, bool delimited, unsigned max, const char *next,
                    const char *what, s3_page *out, err *e) {
  char most[16];
  const char *query[16];
  size_t n = 0;
  snprintf(most, sizeof most, "%u", max);
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
  free(r.open.path);
  free(r.next);
  s3_end(&c);
  return rc;
}

static int get_page(s3_store *s, const char *path, bool delimited, unsigned max, const char *next,
                    s3_page *out, err *e) {
  char start[S3_PATH_MAX + 1], what[S3_PATH_MAX];
  *out = (s3_page){0};
  snprintf(start, sizeof start, "%s%s", path, *path ? "/" : "");
  snprintf(what, sizeof what, "the listing of %s/%.400s", s->shown, path);
  int rc = s->dialect ? s->dialect->page(s, start, delimited, max, next, what, out, e)
                      : ask_page(s, start, delimited, max, next, what, out, e);
  if (rc == 0) rc = check_below(s, out, start, what, e);
  if (rc == 0 && next && out->next && strcmp(out->next, next) == 0)
    rc = err_set(e, ERR_FORMAT, "%s: the server goes on from the same place again", what);
  return rc;
}

int s3_pages(s3_store *s, const char *path, bool delimited, unsigned max, s3_page_fn *fn, void *ctx,
             err *e) {
  char *next = NULL;
  unsigned empty = 0;
  int rc;
  do { /* a page may be empty and not the last */
    s3_page page;
    rc = get_page(s, path, delimited, max, next, &page, e);
    if (rc == 0 && page.count > 0) rc = fn(ctx, &page, e);
    empty = page.count > 0 ? 0 : empty + 1;
    if (rc == 0 && page.next && empty > S3_EMPTY_MAX) rc = s3_endless(s, e);
    free(next);
    next = page.next;
    page.next = NULL;
    page_free(&page);
  } while (rc == 0 && next);
  free(next);
  return rc;
}
