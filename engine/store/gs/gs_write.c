/* gs: writes large objects. What fits into one buffer is one put. What does not is a resumable upload:
 * a session, that is begun with the condition that nothing stands there, then one buffer after the
 * other; the last one makes the object. Its sum, which the server tells, is compared with ours.
 *
 * A session is known to nobody else, and the server forgets it after a week: a later try begins anew,
 * and compares what stands there byte by byte. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gs.h"
#include "prims/crc/crc.h"

enum { SESSION_MAX = 4096, STEP = 1 << 20, STEPS_MAX = 64, INCOMPLETE = 308 };

static const uint64_t LARGEST = UINT64_C(5) << 40;

typedef struct gs_writer {
  store_writer base;
  atomic_int *cancel;
  char key[STORE_KEY_MAX + 1], path[S3_PATH_MAX];
  char nonce[64], mark[STORE_MARK_MAX], session[SESSION_MAX];
  uint64_t size, taken, stored; /* announced; handed over; the server has them */
  store_tally tally;
  char *data;
  size_t room, filled;
  uint32_t crc;
  bool over, compare; /* it replaces what is there; an object stands already, nothing is sent */
  int failure;        /* sticky */
  err why;
} gs_writer;

static s3_store *store_of(const gs_writer *w) {
  return (s3_store *)w->base.store;
}

static void free_writer(gs_writer *w) {
  if (w->data) s3_buffer_give(w->data, w->room);
  free(w);
  s3_buffers_leave();
}

/* ---- opening ---- */

static int look_back(gs_writer *w, err *e) {
  s3_head head;
  err why = {0};
  int rc = s3_look(store_of(w), w->path, w->cancel, &head, &why);
  if (rc == ERR_NOENT) return 0;
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  w->compare = true;
  if (head.object.size == w->size) return 0;
  return err_set(e, ERR_EXISTS, "%s/%.400s is there already, with another size", store_of(w)->shown,
                 w->path);
}

int gs_write_open(store *base, const char *key, uint64_t size, unsigned how, atomic_int *cancel,
                  store_writer **out, err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX];
  *out = NULL;
  int rc = s3_may_open(s, key, size, LARGEST, how, path, e);
  if (rc < 0) return rc;
  gs_writer *w = calloc(1, sizeof *w);
  if (!w) return err_set(e, ERR_NOMEM, "no memory to write \"%.200s\"", key);
  s3_buffers_join();
  w->base.store = base;
  w->cancel = cancel;
  w->over = how & STORE_OVER;
  w->size = size;
  w->room = size < S3_PART ? (size_t)size + (size == 0) : S3_PART;
  snprintf(w->key, sizeof w->key, "%s", key);
  memcpy(w->path, path, sizeof path);
  rc = s3_nonce_header(s, w->nonce, e);
  if (rc == 0 && how & STORE_RESUME) rc = look_back(w, e);
  if (rc == 0 && !(w->data = s3_buffer_take(w->room, true)))
    rc = err_set(e, ERR_NOMEM, "no memory to write \"%.200s\"", key);
  if (rc < 0)
    free_writer(w);
  else
    *out = &w->base;
  return rc;
}

void gs_write_mark(store_writer *writer, const char *mark) {
  gs_writer *w = (gs_writer *)writer;
  snprintf(w->mark, sizeof w->mark, "%s", mark);
}

void gs_write_tally(store_writer *writer, const store_tally *tally) {
  ((gs_writer *)writer)->tally = *tally;
}

static void count_stored(gs_writer *w, uint64_t to) {
  if (w->tally.stored && to > w->stored) atomic_fetch_add(w->tally.stored, to - w->stored);
  if (to > w->stored) w->stored = to;
}

/* ---- what stands there is compared ---- */

static int compare(gs_writer *w, err *e) {
  uint64_t from = w->taken - w->filled;
  char *there = malloc(STEP);
  int rc = there ? 0 : err_set(e, ERR_NOMEM, "no memory to compare \"%.200s\"", w->key);
  for (size_t at = 0; rc == 0 && at < w->filled;) {
    size_t want = w->filled - at < STEP ? w->filled - at : STEP;
    ssize_t got = s3_read(w->base.store, w->key, from + at, there, want, e);
    if (got < 0)
      rc = (int)got;
    else if ((size_t)got != want || memcmp(there, w->data + at, want) != 0)
      rc = err_set(e, ERR_EXISTS, "%s/%.400s is there already, with other bytes",
                   store_of(w)->shown, w->path);
    at += want;
  }
  free(there);
  if (rc == 0) count_stored(w, w->taken);
  w->filled = 0;
  return rc;
}

/* ---- sessions ---- */

/* Takes the session's address: only path and query of it, since a token goes there. */
static int take_session(gs_writer *w, const s3_call *c, err *e) {
  char where[SESSION_MAX];
  const gs_store *s = (const gs_store *)c->s;
  bool told = http_header(&c->answer, "location", where, sizeof where);
  const char *sep = told ? strstr(where, "://") : NULL;
  const char *path = sep ? strchr(sep + 3, '/') : NULL;
  int len = path ? snprintf(w->session, sizeof w->session, "%s%s", s->endpoint, path) : -1;
  if (len > 0 && len < (int)sizeof w->session) return 0;
  w->session[0] = 0;
  return err_set(e, ERR_FORMAT, "%s/%.400s: the server began an upload and does not say where",
                 c->s->shown, w->path);
}

static int look_first(gs_writer *w, err *e) {
  s3_head head;
  err why = {0};
  int rc = s3_look(store_of(w), w->path, w->cancel, &head, &why);
  if (rc == ERR_NOENT) return 0;
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  return err_set(e, ERR_EXISTS, "%s/%.400s is there already", store_of(w)->shown, w->path);
}

static int begin(gs_writer *w, err *e) {
  s3_store *s = store_of(w);
  char size[24], mark[S3_MARK_LINE];
  const char *query[] = {GS_BEGIN, size, NULL}, *headers[4];
  size_t n = 0;
  s3_call c;
  snprintf(size, sizeof size, "%" PRIu64, w->size);
  headers[n++] = w->nonce;
  if (s3_mark_header(w->mark, mark)) headers[n++] = mark;
  if (!w->over && !s->base.single_writer) headers[n++] = "if-none-match: *";
  headers[n] = NULL;
  int rc = s->base.single_writer && !w->over ? look_first(w, e) : 0;
  if (rc < 0) return rc;
  rc = s3_do(&c, s,
             &(s3_request){.verb = "begin",
                           .method = "POST",
                           .path = w->path,
                           .query = query,
                           .headers = headers,
                           .body = "",
                           .cancel = w->cancel},
             e);
  if (rc == 0) rc = take_session(w, &c, e);
  s3_end(&c);
  return rc;
}

/* Returns up to where the server has the bytes, from its "range: bytes=0-N". */
static uint64_t persisted(const s3_call *c) {
  char text[64];
  if (!http_header(&c->answer, "range", text, sizeof text)) return 0;
  const char *dash = strchr(text, '-');
  return dash ? strtoull(dash + 1, NULL, 10) + 1 : 0;
}

/* The object of ours that stands there has to have our bytes. */
static int check_made(gs_writer *w, const gs_resource *r, err *e) {
  char sum[16];
  gs_crc_text(w->crc, sum);
  if (r->size == w->size && (!*r->crc32c || strcmp(r->crc32c, sum) == 0)) return 0;
  return err_set(e, ERR_IO,
                 "%s/%.400s: the server made another object than what was sent: its size or sum is "
                 "another",
                 store_of(w)->shown, w->path);
}

/* True if the object was made by a request whose answer was lost. */
static bool made_after_all(gs_writer *w) {
  s3_head head;
  return s3_look(store_of(w), w->path, w->cancel, &head, NULL) == 0 &&
         strcmp(head.nonce, s3_nonce_of(w->nonce)) == 0 && head.object.size == w->size;
}

/* Sends `len` bytes from `at` on. *upto: how far the server has all; the size, once it is made. */
static int send_piece(gs_writer *w, const char *data, size_t len, uint64_t at, uint64_t *upto,
                      err *e) {
  char range[96];
  const char *query[] = {GS_SESSION, w->session, NULL}, *headers[] = {range, NULL};
  gs_resource made;
  err why = {0};
  s3_call c;
  bool last = at + len == w->size;
  snprintf(range, sizeof range, "content-range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, at,
           at + len - 1, w->size);
  int rc = s3_do(&c, store_of(w),
                 &(s3_request){.verb = "upload a part of",
                               .method = "PUT",
                               .path = w->path,
                               .query = query,
                               .headers = headers,
                               .body = data,
                               .len = len,
                               .cancel = w->cancel,
                               .sent = w->tally.sent},
                 &why);
  const buf *body = &c.answer.body;
  if (c.answer.status == INCOMPLETE) {
    *upto = persisted(&c);
    rc = 0;
  } else if (rc == 0) {
    *upto = w->size;
    rc = gs_read_resource(body->data ? body->data : "", body->len, &made, &why);
    if (rc == 0) rc = check_made(w, &made, &why);
  } else if (rc != ERR_CANCELED && last && made_after_all(w)) {
    *upto = w->size;
    rc = 0;
  }
  s3_end(&c);
  if (rc == ERR_EXISTS)
    return err_set(e, rc, "%s/%.400s is there already", store_of(w)->shown, w->path);
  return rc < 0 ? err_set(e, rc, "%s", why.text) : 0;
}

/* The server may keep a part of what it got: then the rest is sent again. */
static int flush(gs_writer *w, err *e) {
  uint64_t from = w->taken - w->filled, upto = from;
  if (w->compare) return compare(w, e);
  w->crc = crc32c(w->crc, w->data, w->filled);
  int rc = *w->session ? 0 : begin(w, e);
  for (int i = 0; rc == 0 && upto < w->taken; i++) {
    uint64_t before = upto;
    rc = send_piece(w, w->data + (upto - from), (size_t)(w->taken - upto), upto, &upto, e);
    bool backward = upto < before || upto > w->taken;
    if (rc == 0 && (backward || i == STEPS_MAX))
      rc = err_set(e, ERR_CONFLICT, "%s/%.400s: the server lost what it had of an upload",
                   store_of(w)->shown, w->path);
    if (rc == 0) count_stored(w, upto);
  }
  w->filled = 0;
  return rc;
}

/* ---- writing ---- */

static int check_room(const gs_writer *w, size_t len, err *e) {
  if (w->failure) return s3_failed_before(w->failure, &w->why, e);
  return s3_may_write(w->path, w->size, w->taken, len, w->cancel, e);
}

int gs_write(store_writer *writer, const void *data, size_t len, err *e) {
  gs_writer *w = (gs_writer *)writer;
  const char *from = data;
  err why = {0};
  int rc = check_room(w, len, &why);
  while (rc == 0 && len > 0) {
    /* The last buffer is kept for the close, which makes the object. */
    if (w->filled == w->room) rc = flush(w, &why);
    if (rc < 0) break;
    size_t room = w->room - w->filled, n = len < room ? len : room;
    memcpy(w->data + w->filled, from, n);
    w->filled += n, w->taken += n;
    from += n, len -= n;
  }
  if (rc == 0) return 0;
  w->failure = rc;
  w->why = why;
  return err_set(e, rc, "%s", why.text);
}

static int put_small(gs_writer *w, err *e) {
  s3_object o = {.path = w->path,
                 .data = w->data,
                 .len = w->filled,
                 .if_absent = !w->over,
                 .mark = w->mark,
                 .cancel = w->cancel,
                 .sent = w->tally.sent};
  return s3_put_object(store_of(w), &o, e);
}

static void leave(gs_writer *w, bool made) {
  if (made) count_stored(w, w->size);
  if (!made && w->tally.stored) atomic_fetch_sub(w->tally.stored, w->stored);
  free_writer(w);
}

void gs_write_abort(store_writer *writer) {
  leave((gs_writer *)writer, false);
}

int gs_write_close(store_writer *writer, err *e) {
  gs_writer *w = (gs_writer *)writer;
  int rc = check_room(w, 0, e);
  if (rc == 0) rc = s3_may_close(w->path, w->size, w->taken, e);
  if (rc == 0) rc = w->compare || w->size > S3_PART ? flush(w, e) : put_small(w, e);
  leave(w, rc == 0);
  return rc;
}
