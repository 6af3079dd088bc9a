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

#include "prims/crc/crc.h"
#include "store_s3_write.h"
#include "store/aws/xml.h"

enum { PARTS_MAX = 10000, SMALL = 1 << 20 };

static int fail(s3_writer *w, int rc, err *e) {
  w->failure = rc;
  if (e) w->why = *e;
  return rc;
}

/* ---- buffers ---- */

static size_t room_of(const s3_writer *w) {
  return w->size < w->part ? (size_t)w->size : w->part;
}

void s3_writer_give_back(const s3_writer *w, char *data) {
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
  int rc = s3_look_sum(s, w->path, w->cancel, &head, &why);
  if (rc == 0 && head.object.size != w->size)
    return err_set(e, ERR_EXISTS, "s3://%s/%.400s is there already, with another size", s->bucket,
                   w->path);
  if (rc == 0) {
    w->compare = true;
    w->there = head;
    return 0;
  }
  if (rc != ERR_NOENT) return err_set(e, rc, "%s", why.text);
  rc = w->parts > 1 ? s3_left_find(s, w->path, w->cancel, &w->left, e) : 0;
  if (rc == 0 && w->left.summed) take_part_size(w);
  return rc;
}

void s3_writer_free(s3_writer *w) {
  s3_left_free(&w->left);
  if (w->filling) s3_writer_give_back(w, w->filling);
  free(w->etags);
  free(w->crcs);
  free(w);
  s3_buffers_leave();
}

int s3_may_open(s3_store *s, const char *key, uint64_t size, uint64_t most, unsigned how,
                char path[S3_PATH_MAX], err *e) {
  int rc = *key ? s3_path(s, key, path, e) : store_key_check(key, e);
  if (rc < 0) return rc;
  if (how & STORE_STAGED)
    return err_set(e, ERR_UNSUPPORTED, "a bucket cannot publish, so nothing can be staged there");
  if (size > most)
    return err_set(e, ERR_LIMIT, "\"%.200s\": no bucket takes an object of %" PRIu64 " bytes", key,
                   size);
  return 0;
}

int s3_write_open(store *base, const char *key, uint64_t size, unsigned how, atomic_int *cancel,
                  store_writer **out, err *e) {
  *out = NULL;
  char path[S3_PATH_MAX];
  int rc = s3_may_open((s3_store *)base, key, size, (uint64_t)PARTS_MAX << 40, how, path, e);
  if (rc < 0) return rc;
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
    w->crcs = calloc(w->parts, sizeof *w->crcs);
    if (!w->etags || !w->crcs) rc = err_set(e, ERR_NOMEM, "no memory to write \"%.200s\"", key);
  }
  if (rc < 0)
    s3_writer_free(w);
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

void s3_write_digest(store_writer *writer, hash_kind kind, const digest *of) {
  s3_writer *w = (s3_writer *)writer;
  w->hash = kind;
  w->whole = *of;
}

void s3_write_tally(store_writer *writer, const store_tally *tally) {
  ((s3_writer *)writer)->tally = *tally;
}

void s3_writer_count(s3_writer *w, uint64_t bytes) {
  w->stored += bytes;
  if (w->tally.stored) atomic_fetch_add(w->tally.stored, bytes);
}

void s3_writer_uncount(s3_writer *w) {
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
                               .sum = S3_SUM_BEGIN,
                               .cancel = w->cancel},
                 e);
  char sums[32];
  w->sums = rc == 0 && http_header(&c.answer, "x-amz-checksum-algorithm", sums, sizeof sums) &&
            strcmp(sums, "CRC64NVME") == 0;
  if (rc == 0)
    rc = xml_walk(c.answer.body.data ? c.answer.body.data : "", c.answer.body.len,
                  "the answer to an upload's begin", on_upload_id, w, e);
  if (rc == 0 && !*w->left.upload)
    rc = err_set(e, ERR_FORMAT, "s3://%s/%.400s: the server began an upload without an id",
                 s->bucket, w->path);
  s3_end(&c);
  return rc;
}

/* Goes on with the upload that an earlier try has left, or begins one. What the parts hold of one
 * without sums, as 1.0 began it, nobody can tell: it is left to a clean-up, since another rank may be
 * at work on it. */
static int find_upload(s3_writer *w, err *e) {
  if (w->begun) return 0;
  w->resumed = w->sums = *w->left.upload && w->left.summed;
  if (!w->resumed) s3_left_free(&w->left);
  int rc = w->resumed ? 0 : begin_upload(w, e);
  w->begun = rc == 0;
  return rc;
}

/* True if an earlier try sent this very part. */
static bool sent_before(const s3_writer *w, size_t number) {
  if (!w->resumed || number >= w->left.count) return false;
  const s3_part *part = &w->left.parts[number];
  return part->summed && part->size == w->filled && part->crc == w->crcs[number];
}

int s3_writer_land(s3_writer *w, char **data, err *e) {
  flight *f = w->flights[0];
  char etag[S3_ETAG_MAX + 2] = "";
  int rc = s3_finish(&f->call, e);
  if (rc == 0 && !http_header(&f->call.answer, "etag", etag, sizeof etag))
    rc = err_set(e, ERR_FORMAT, "s3://%s/%.400s: the server gave a part no ETag",
                 store_of(w)->bucket, w->path);
  if (rc == 0) s3_etag(etag, w->etags[f->number]);
  if (rc == 0) s3_writer_count(w, f->call.r.len);
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
                         .sum = w->sums ? S3_SUM_BODY : S3_SUM_NONE,
                         .crc = &w->crcs[number],
                         .cancel = w->cancel,
                         .sent = w->tally.sent});
  return 0;
}

void s3_writer_sum_up(s3_writer *w) {
  w->crc = crc64nvme(w->crc, w->filling + w->summed, w->filled - w->summed);
  w->summed = w->filled;
}

static void next_part(s3_writer *w) {
  w->filled = w->summed = 0;
  w->crc = 0;
}

/* The buffer is full, or holds the object's end. */
static int part_done(s3_writer *w, err *e) {
  size_t number = w->sent++;
  s3_writer_sum_up(w);
  w->crcs[number] = w->crc;
  int rc = w->compare ? 0 : find_upload(w, e);
  if (rc < 0) return rc;
  bool there = w->compare || sent_before(w, number);
  if (there && !w->compare) memcpy(w->etags[number], w->left.parts[number].etag, S3_ETAG_MAX);
  if (there)
    s3_writer_count(w, w->filled);
  else
    rc = launch(w, number, e);
  next_part(w);
  return rc;
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
    if (!w->filling) rc = s3_writer_land(w, &w->filling, e);
  }
  return rc;
}

int s3_failed_before(int failure, const err *why, err *e) {
  return err_set(e, failure, "%s",
                 *why->text ? why->text : "a write failed before, so nothing was made");
}

int s3_may_write(const char *path, uint64_t size, uint64_t taken, size_t len,
                 const atomic_int *cancel, err *e) {
  if (len > size - taken)
    return err_set(e, ERR_INVAL, "\"%.200s\": more than the announced %" PRIu64 " bytes", path,
                   size);
  if (cancel && atomic_load(cancel)) return err_set(e, ERR_CANCELED, "\"%.200s\": cancelled", path);
  return 0;
}

int s3_may_close(const char *path, uint64_t size, uint64_t taken, err *e) {
  if (taken == size) return 0;
  return err_set(e, ERR_INVAL,
                 "\"%.200s\": %" PRIu64 " bytes were written, %" PRIu64 " were announced", path,
                 taken, size);
}

int s3_writer_check(const s3_writer *w, size_t len, err *e) {
  if (w->failure) return s3_failed_before(w->failure, &w->why, e);
  return s3_may_write(w->path, w->size, w->taken, len, w->cancel, e);
}

static int have_more(s3_writer *w, size_t len, err *e) {
  w->filled += len, w->taken += len;
  bool full = w->filled == w->part || w->taken == w->size;
  return w->parts > 1 && full ? part_done(w, e) : 0;
}

int s3_write(store_writer *writer, const void *data, size_t len, err *e) {
  s3_writer *w = (s3_writer *)writer;
  const char *from = data;
  err why = {0};
  int rc = s3_writer_check(w, len, &why);
  while (rc == 0 && len > 0) {
    rc = find_buffer(w, &why);
    if (rc < 0) break;
    size_t room = room_of(w) - w->filled, n = len < room ? len : room;
    memcpy(w->filling + w->filled, from, n);
    from += n, len -= n;
    rc = have_more(w, n, &why);
  }
  return rc < 0 ? err_set(e, fail(w, rc, &why), "%s", why.text) : 0;
}

void *s3_write_lend(store_writer *writer, size_t len) {
  s3_writer *w = (s3_writer *)writer;
  err why = {0};
  if (s3_writer_check(w, len, NULL) < 0) return NULL;
  int rc = find_buffer(w, &why);
  if (rc < 0) fail(w, rc, &why);
  return rc == 0 && len <= room_of(w) - w->filled ? w->filling + w->filled : NULL;
}

int s3_write_lent(store_writer *writer, size_t len, uint64_t crc64, err *e) {
  s3_writer *w = (s3_writer *)writer;
  err why = {0};
  s3_writer_sum_up(w);
  w->crc = crc64nvme_join(w->crc, crc64, len);
  w->summed += len;
  int rc = have_more(w, len, &why);
  return rc < 0 ? err_set(e, fail(w, rc, &why), "%s", why.text) : 0;
}
