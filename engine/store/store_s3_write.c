/* store_s3: writes large objects. The bytes of write() go into a part buffer, a full one is sent in
 * the background while the next is filled, and the last request makes the object. An object that
 * fits into one part is one put.
 *
 * An upload is never aborted here: a later try goes on with it (STORE_RESUME), or a removal of the
 * prefix takes it away. Only one with STORE_OVER is, since no resume looks for it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prims/hash.h"
#include "store_s3.h"
#include "xml.h"

enum { PARTS_MAX = 10000, SMALL = 1 << 20, IN_FLIGHT = S3_BUFFERS };

/* A part under way. */
typedef struct flight {
  s3_call call;
  char *data;
  size_t number; /* from 0 */
  char text[16];
  const char *query[5];
} flight;

typedef struct s3_writer {
  store_writer base;
  atomic_int *cancel;
  char path[S3_PATH_MAX];
  char nonce[64], mark[STORE_MARK_MAX];
  uint64_t size, taken; /* announced; handed over so far */
  store_tally tally;
  uint64_t stored; /* of what was counted there: ours */
  size_t part;     /* bytes of each part but the last */
  size_t parts;
  int failure; /* sticky: after a failed write no object may be made */
  err why;
  char *filling; /* NULL: none */
  size_t filled;
  flight *flights[IN_FLIGHT]; /* the oldest first */
  size_t flying;
  size_t sent;                /* parts that were sent, skipped or compared */
  char (*etags)[S3_ETAG_MAX]; /* of all parts, as the server gave them */
  unsigned char (*md5s)[16];  /* of all parts, as they are here */
  s3_left left;               /* of an earlier try; its upload is the one that is used */
  bool over;                  /* it replaces the object that is there */
  bool compare;               /* an object stands already: nothing is sent */
  char there[S3_ETAG_MAX];    /* its ETag */
} s3_writer;

static s3_store *store_of(const s3_writer *w) {
  return (s3_store *)w->base.store;
}

static int fail(s3_writer *w, int rc, err *e) {
  w->failure = rc;
  if (e) w->why = *e;
  return rc;
}

/* ---- buffers ---- */

static size_t room_of(const s3_writer *w) {
  return w->size < w->part ? (size_t)w->size : w->part;
}

static void give_back(const s3_writer *w, char *data) {
  if (room_of(w) <= SMALL)
    free(data);
  else
    s3_buffer_give(data, room_of(w));
}

static char *take(const s3_writer *w, bool need) {
  size_t room = room_of(w);
  return room <= SMALL ? malloc(room ? room : 1) : s3_buffer_take(room, need);
}

/* ---- opening ---- */

static size_t part_size(uint64_t size) {
  uint64_t blocks = (size + S3_PART - 1) / S3_PART;
  return (size_t)((blocks + PARTS_MAX - 1) / PARTS_MAX + (blocks == 0)) * S3_PART;
}

static void set_part_size(s3_writer *w, size_t part) {
  w->part = part;
  w->parts = w->size ? (size_t)((w->size + part - 1) / part) : 1;
}

/* Goes on with the earlier try's part size: another version of this program may have cut the object
 * into other parts. */
static void take_part_size(s3_writer *w) {
  size_t part = s3_left_part_size(&w->left, w->size);
  if (part) set_part_size(w, part);
}

/* Looks for an object that is there already, or the parts of one. */
static int look_back(s3_writer *w, err *e) {
  s3_head head;
  err why = {0};
  s3_store *s = store_of(w);
  int rc = s3_look(s, w->path, w->cancel, &head, &why);
  if (rc == 0 && head.object.size != w->size)
    return err_set(e, ERR_EXISTS, "s3://%s/%.400s is there already, with another size", s->bucket,
                   w->path);
  if (rc == 0) {
    w->compare = true;
    memcpy(w->there, head.etag, sizeof w->there);
    return 0;
  }
  if (rc != ERR_NOENT) return err_set(e, rc, "%s", why.text);
  rc = w->parts > 1 ? s3_left_find(s, w->path, w->cancel, &w->left, e) : 0;
  if (rc == 0 && w->left.count) take_part_size(w);
  return rc;
}

static void free_writer(s3_writer *w) {
  s3_left_free(&w->left);
  if (w->filling) give_back(w, w->filling);
  free(w->etags);
  free(w->md5s);
  free(w);
  s3_buffers_leave();
}

int s3_write_open(store *base, const char *key, uint64_t size, unsigned how, atomic_int *cancel,
                  store_writer **out, err *e) {
  *out = NULL;
  char path[S3_PATH_MAX];
  int rc = *key ? s3_path((s3_store *)base, key, path, e) : store_key_check(key, e);
  if (rc < 0) return rc;
  if (how & STORE_STAGED)
    return err_set(e, ERR_UNSUPPORTED, "a bucket cannot publish, so nothing can be staged there");
  if (size > (uint64_t)PARTS_MAX << 40)
    return err_set(e, ERR_LIMIT, "\"%.200s\": no bucket takes an object of %" PRIu64 " bytes", key,
                   size);
  s3_writer *w = calloc(1, sizeof *w);
  if (!w) return err_set(e, ERR_NOMEM, "no memory to write \"%.200s\"", key);
  s3_buffers_join();
  w->base.store = base;
  w->cancel = cancel;
  w->over = how & STORE_OVER;
  w->size = size;
  set_part_size(w, part_size(size));
  memcpy(w->path, path, sizeof path);
  rc = s3_nonce_header((s3_store *)base, w->nonce, e);
  if (rc == 0 && how & STORE_RESUME) rc = look_back(w, e);
  if (rc == 0) {
    w->etags = calloc(w->parts, sizeof *w->etags);
    w->md5s = calloc(w->parts, sizeof *w->md5s);
    if (!w->etags || !w->md5s) rc = err_set(e, ERR_NOMEM, "no memory to write \"%.200s\"", key);
  }
  if (rc < 0)
    free_writer(w);
  else
    *out = &w->base;
  return rc;
}

void s3_write_mark(store_writer *writer, const char *mark) {
  s3_writer *w = (s3_writer *)writer;
  snprintf(w->mark, sizeof w->mark, "%s", mark);
}

/* An upload does not tell its metadata, so its time has to tell whose it is. It was the newest:
 * there is no other one to go on with. The size of its parts stays in use, which does no harm. */
void s3_write_since(store_writer *writer, int64_t ns) {
  s3_writer *w = (s3_writer *)writer;
  if (w->left.begun_ns < ns) s3_left_free(&w->left);
}

void s3_write_tally(store_writer *writer, const store_tally *tally) {
  ((s3_writer *)writer)->tally = *tally;
}

/* Counts bytes of which the server has said that it has them. What was handed to write() may be in
 * our buffers, the kernel's, or a proxy's for long. */
static void count_stored(s3_writer *w, uint64_t bytes) {
  w->stored += bytes;
  if (w->tally.stored) atomic_fetch_add(w->tally.stored, bytes);
}

static void uncount_stored(s3_writer *w) {
  if (w->tally.stored) atomic_fetch_sub(w->tally.stored, w->stored);
  w->stored = 0;
}

/* ---- parts ---- */

static int on_upload_id(void *ctx, const char *path, const char *text) {
  s3_writer *w = ctx;
  if (text && strcmp(path, "InitiateMultipartUploadResult/UploadId") == 0 &&
      strlen(text) < sizeof w->left.upload)
    memcpy(w->left.upload, text, strlen(text) + 1);
  return 0;
}

static int begin_upload(s3_writer *w, err *e) {
  s3_store *s = store_of(w);
  char mark[S3_MARK_LINE];
  const char *query[] = {"uploads", "", NULL};
  const char *headers[] = {w->nonce, s3_mark_header(w->mark, mark), NULL};
  s3_call c;
  int rc = s3_do(&c, s,
                 &(s3_request){.verb = "begin the upload of",
                               .method = "POST",
                               .path = w->path,
                               .query = query,
                               .headers = headers,
                               .cancel = w->cancel},
                 e);
  if (rc == 0)
    rc = xml_walk(c.answer.body.data ? c.answer.body.data : "", c.answer.body.len,
                  "the answer to an upload's begin", on_upload_id, w, e);
  if (rc == 0 && !*w->left.upload)
    rc = err_set(e, ERR_FORMAT, "s3://%s/%.400s: the server began an upload without an id",
                 s->bucket, w->path);
  s3_end(&c);
  return rc;
}

static void hex_of(const unsigned char *bytes, char out[33]) {
  for (int i = 0; i < 16; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* True if an earlier try sent this very part. */
static bool sent_before(const s3_writer *w, size_t number) {
  char hex[33];
  if (number >= w->left.count || w->left.parts[number].size != w->filled) return false;
  hex_of(w->md5s[number], hex);
  return strcmp(w->left.parts[number].etag, hex) == 0;
}

/* Waits for the oldest part. *data gets its buffer. */
static int land(s3_writer *w, char **data, err *e) {
  flight *f = w->flights[0];
  char etag[S3_ETAG_MAX + 2] = "";
  int rc = s3_finish(&f->call, e);
  if (rc == 0 && !http_header(&f->call.answer, "etag", etag, sizeof etag))
    rc = err_set(e, ERR_FORMAT, "s3://%s/%.400s: the server gave a part no ETag",
                 store_of(w)->bucket, w->path);
  if (rc == 0) s3_etag(etag, w->etags[f->number]);
  if (rc == 0) count_stored(w, f->call.r.len);
  *data = f->data;
  s3_end(&f->call);
  free(f);
  w->flying--;
  memmove(w->flights, w->flights + 1, w->flying * sizeof(flight *));
  return rc;
}

static int launch(s3_writer *w, size_t number, err *e) {
  flight *f = calloc(1, sizeof *f);
  if (!f) return err_set(e, ERR_NOMEM, "no memory for a part of s3://%s", store_of(w)->bucket);
  f->data = w->filling;
  f->number = number;
  snprintf(f->text, sizeof f->text, "%zu", number + 1);
  f->query[0] = "partNumber", f->query[1] = f->text;
  f->query[2] = "uploadId", f->query[3] = w->left.upload;
  w->flights[w->flying++] = f;
  w->filling = NULL;
  s3_start(&f->call, store_of(w),
           &(s3_request){.verb = "upload a part of",
                         .method = "PUT",
                         .path = w->path,
                         .query = f->query,
                         .body = f->data,
                         .len = w->filled,
                         .md5 = true,
                         .cancel = w->cancel,
                         .sent = w->tally.sent});
  w->filled = 0;
  return 0;
}

/* The buffer is full, or holds the object's end. */
static int part_done(s3_writer *w, err *e) {
  size_t number = w->sent;
  int rc = hash_md5(w->filling, w->filled, w->md5s[number], e);
  if (rc < 0) return rc;
  w->sent++;
  if (w->compare) {
    count_stored(w, w->filled);
    w->filled = 0;
    return 0;
  }
  if (sent_before(w, number)) {
    memcpy(w->etags[number], w->left.parts[number].etag, S3_ETAG_MAX);
    count_stored(w, w->filled);
    w->filled = 0;
    return 0;
  }
  if (!*w->left.upload) rc = begin_upload(w, e);
  return rc < 0 ? rc : launch(w, number, e);
}

/* Finds a buffer to fill. While there is none, the oldest part that is under way is waited for: its
 * buffer is the next. Only a writer that has none at all may take one more than there are. */
static int find_buffer(s3_writer *w, err *e) {
  int rc = 0;
  while (!w->filling && rc == 0) {
    const http_call *oldest = w->flying ? w->flights[0]->call.running : NULL;
    bool landed = w->flying && (!oldest || http_done(oldest));
    if (!landed && w->flying < IN_FLIGHT) w->filling = take(w, w->flying == 0);
    if (!w->filling && w->flying == 0)
      return err_set(e, ERR_NOMEM, "no memory for a part of %zu bytes", room_of(w));
    if (!w->filling) rc = land(w, &w->filling, e);
  }
  return rc;
}

static int check_room(const s3_writer *w, size_t len, err *e) {
  if (w->failure)
    return err_set(e, w->failure, "%s",
                   *w->why.text ? w->why.text : "a write failed before, so nothing was made");
  if (len > w->size - w->taken)
    return err_set(e, ERR_INVAL, "\"%.200s\": more than the announced %" PRIu64 " bytes", w->path,
                   w->size);
  if (w->cancel && atomic_load(w->cancel))
    return err_set(e, ERR_CANCELED, "\"%.200s\": cancelled", w->path);
  return 0;
}

int s3_write(store_writer *writer, const void *data, size_t len, err *e) {
  s3_writer *w = (s3_writer *)writer;
  const char *from = data;
  err why = {0};
  int rc = check_room(w, len, &why);
  while (rc == 0 && len > 0) {
    rc = find_buffer(w, &why);
    if (rc < 0) break;
    size_t room = room_of(w) - w->filled, n = len < room ? len : room;
    memcpy(w->filling + w->filled, from, n);
    w->filled += n, w->taken += n;
    from += n, len -= n;
    bool full = w->filled == w->part || w->taken == w->size;
    if (w->parts > 1 && full) rc = part_done(w, &why);
  }
  return rc < 0 ? err_set(e, fail(w, rc, &why), "%s", why.text) : 0;
}

/* ---- the end ---- */

/* Makes the ETag that the whole object has where ETags are digests: of the one part, or of the
 * digests of all. */
static int whole_etag(const s3_writer *w, char out[S3_ETAG_MAX], err *e) {
  unsigned char md5[16];
  char hex[33];
  if (w->parts == 1) {
    hex_of(w->md5s[0], out);
    return 0;
  }
  int rc = hash_md5(w->md5s, w->parts * sizeof *w->md5s, md5, e);
  if (rc < 0) return rc;
  hex_of(md5, hex);
  snprintf(out, S3_ETAG_MAX, "%s-%zu", hex, w->parts);
  return 0;
}

static int compare(s3_writer *w, err *e) {
  char etag[S3_ETAG_MAX];
  int rc = w->parts == 1 ? hash_md5(w->filling ? w->filling : "", w->filled, w->md5s[0], e) : 0;
  if (rc == 0) rc = whole_etag(w, etag, e);
  if (rc < 0 || strcmp(etag, w->there) == 0) return rc;
  return err_set(e, ERR_EXISTS, "s3://%s/%.400s is there already, with other bytes",
                 store_of(w)->bucket, w->path);
}

static int put_small(s3_writer *w, err *e) {
  s3_object o = {.path = w->path,
                 .data = w->filling ? w->filling : "",
                 .len = w->filled,
                 .if_absent = !w->over,
                 .mark = w->mark,
                 .cancel = w->cancel,
                 .sent = w->tally.sent};
  return s3_put_object(store_of(w), &o, e);
}

/* True if the refused request did make the object: a try whose answer was lost has made it, or the
 * upload is gone because the run that began it was only paused, and has completed it. */
static bool made_after_all(s3_writer *w, const s3_call *c) {
  s3_head head;
  char etag[S3_ETAG_MAX];
  bool gone = strcmp(c->code, "NoSuchUpload") == 0;
  if ((!c->doubtful && !gone) || s3_look(store_of(w), w->path, w->cancel, &head, NULL) < 0)
    return false;
  if (strcmp(head.nonce, s3_nonce_of(w->nonce)) == 0) return true;
  /* The upload of an earlier try carries that try's nonce. */
  return w->left.count && whole_etag(w, etag, NULL) == 0 && strcmp(head.etag, etag) == 0;
}

static int look_first(s3_writer *w, err *e) {
  s3_head head;
  err why = {0};
  int rc = s3_look(store_of(w), w->path, w->cancel, &head, &why);
  if (rc == ERR_NOENT) return 0;
  return err_set(e, rc == 0 ? ERR_EXISTS : rc, "%s",
                 rc == 0 ? "the object is there already" : why.text);
}

static int complete_once(s3_writer *w, const buf *body, err *e) {
  s3_store *s = store_of(w);
  bool alone = s->base.single_writer;
  const char *query[] = {"uploadId", w->left.upload, NULL};
  const char *headers[] = {alone || w->over ? NULL : "if-none-match: *", NULL};
  err why = {0};
  s3_call c = {0};
  int rc = alone && !w->over ? look_first(w, &why) : 0;
  if (rc == 0)
    rc = s3_do(&c, s,
               &(s3_request){.verb = "complete",
                             .method = "POST",
                             .path = w->path,
                             .query = query,
                             .headers = headers,
                             .body = body->data,
                             .len = body->len,
                             .may_fail_late = true,
                             .cancel = w->cancel},
               &why);
  if (rc < 0 && rc != ERR_CANCELED && c.s && made_after_all(w, &c)) rc = 0;
  s3_end(&c);
  if (rc == ERR_EXISTS)
    return err_set(e, rc, "s3://%s/%.400s is there already", s->bucket, w->path);
  return rc < 0 ? err_set(e, rc, "%s", why.text) : 0;
}

/* As s3_put_object(): a refusal counts where something stands. */
static int send_complete(s3_writer *w, const buf *body, err *e) {
  s3_store *s = store_of(w);
  int rc = complete_once(w, body, e);
  for (int i = 0; i < S3_REFUSALS && rc == ERR_EXISTS && !w->over && !s->base.single_writer &&
                  s3_is_absent(s, w->path, w->cancel);
       i++)
    rc = complete_once(w, body, e);
  return rc;
}

static int complete(s3_writer *w, err *e) {
  buf body;
  int rc = 0;
  while (rc == 0 && w->flying) {
    char *data = NULL;
    rc = land(w, &data, e);
    give_back(w, data);
  }
  if (rc < 0) return rc;
  buf_init(&body, w->parts * (S3_ETAG_MAX + 100) + 100);
  buf_str(&body, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
  for (size_t i = 0; i < w->parts; i++) {
    buf_fmt(&body, "<Part><PartNumber>%zu</PartNumber><ETag>&quot;", i + 1);
    xml_escape(w->etags[i], &body);
    buf_str(&body, "&quot;</ETag></Part>");
  }
  buf_str(&body, "</CompleteMultipartUpload>");
  rc = buf_failed(&body) < 0 ? err_set(e, buf_failed(&body), "too many parts")
                             : send_complete(w, &body, e);
  buf_free(&body);
  return rc;
}

/* Stops the parts that are under way. */
static void leave(s3_writer *w, bool made) {
  if (made) count_stored(w, w->size - w->stored); /* an object of one part is counted here */
  if (!made) uncount_stored(w);
  for (size_t i = 0; i < w->flying; i++) atomic_store(&w->flights[i]->call.stop, 1);
  for (size_t i = 0; i < w->flying; i++) {
    s3_end(&w->flights[i]->call);
    give_back(w, w->flights[i]->data);
    free(w->flights[i]);
  }
  /* No resume will look for these parts, which the bucket would keep, and charge for. */
  if (!made && w->over && *w->left.upload) s3_upload_drop(store_of(w), w->path, w->left.upload);
  free_writer(w);
}

void s3_write_abort(store_writer *writer) {
  leave((s3_writer *)writer, false);
}

int s3_write_close(store_writer *writer, err *e) {
  s3_writer *w = (s3_writer *)writer;
  int rc = check_room(w, 0, e);
  if (rc == 0 && w->taken != w->size)
    rc = err_set(e, ERR_INVAL,
                 "\"%.200s\": %" PRIu64 " bytes were written, %" PRIu64 " were announced", w->path,
                 w->taken, w->size);
  if (rc == 0 && w->compare)
    rc = compare(w, e);
  else if (rc == 0)
    rc = w->parts > 1 ? complete(w, e) : put_small(w, e);
  leave(w, rc == 0);
  return rc;
}
