/* store_s3: ends the writing of a large object: the last request makes it, and then it is looked at. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prims/crc/crc.h"
#include "store_s3_write.h"
#include "store/aws/xml.h"

static size_t size_of(const s3_writer *w, size_t number) {
  uint64_t left = w->size - (uint64_t)number * w->part;
  return left < w->part ? (size_t)left : w->part;
}

static int is_same(s3_writer *w, const s3_head *head, err *e) {
  uint64_t crc = 0;
  for (size_t i = 0; i < w->parts; i++) crc = crc64nvme_join(crc, w->crcs[i], size_of(w, i));
  return s3_is_same(store_of(w),
                    &(s3_wanted){.path = w->path,
                                 .mark = w->mark,
                                 .size = w->size,
                                 .crc = crc,
                                 .one_put = w->parts == 1,
                                 .hash = w->hash,
                                 .of = &w->whole,
                                 .cancel = w->cancel},
                    head, e);
}

static int compare(s3_writer *w, const s3_head *head, err *e) {
  int same = is_same(w, head, e);
  if (same != 0) return same < 0 ? same : 0;
  return err_set(e, ERR_EXISTS,
                 "s3://%s/%.400s is there already, with other bytes or of another save",
                 store_of(w)->bucket, w->path);
}

static int put_small(s3_writer *w, err *e) {
  char digest[S3_DIGEST_LINE], hex[HASH_HEX_MAX];
  digest_hex(&w->whole, hex);
  snprintf(digest, sizeof digest, "%s: %s:%s", S3_DIGEST, hash_name(w->hash), hex);
  s3_object o = {.path = w->path,
                 .data = w->filling ? w->filling : "",
                 .len = w->filled,
                 .if_absent = !w->over,
                 .mark = w->mark,
                 .digest = w->whole.len ? digest : NULL,
                 .crc = &w->crcs[0],
                 .cancel = w->cancel,
                 .sent = w->tally.sent};
  return s3_put_object(store_of(w), &o, e);
}

/* True if the refused request did make the object: a try whose answer was lost has made it, or the
 * upload is gone because the run that began it was only paused, and has completed it. */
static bool made_after_all(s3_writer *w, const s3_call *c) {
  s3_head head;
  bool gone = strcmp(c->code, "NoSuchUpload") == 0;
  if ((!c->doubtful && !gone) || s3_look_sum(store_of(w), w->path, w->cancel, &head, NULL) < 0)
    return false;
  if (strcmp(head.nonce, s3_nonce_of(w->nonce)) == 0) return true;
  /* The upload of an earlier try carries that try's nonce. */
  return w->resumed && is_same(w, &head, NULL) == 1;
}

static int on_whole(void *ctx, const char *path, const char *text) {
  s3_head *told = ctx;
  if (text && strcmp(path, "CompleteMultipartUploadResult/ChecksumCRC64NVME") == 0)
    told->summed = s3_crc_parse(text, &told->crc);
  return 0;
}

/* Sees that the object which came of the parts is the one. Each part of an upload of ours was taken
 * from us; one that was found may be another's, and then so is the object. */
static int check_made(s3_writer *w, const s3_call *c, err *e) {
  s3_head head = {.object.size = w->size};
  const buf *body = &c->answer.body;
  if (!w->sums) return 0;
  if (body->len) xml_walk(body->data, body->len, "an answer", on_whole, &head, NULL);
  int rc = 0;
  if (w->resumed || !head.summed) rc = s3_look_sum(store_of(w), w->path, w->cancel, &head, e);
  return rc < 0 ? rc : compare(w, &head, e);
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
  if (rc == 0)
    rc = check_made(w, &c, &why);
  else if (rc != ERR_CANCELED && c.s && made_after_all(w, &c))
    rc = 0;
  bool made = c.s && c.answer.status / 100 == 2 && !*c.code;
  s3_end(&c);
  if (rc == ERR_EXISTS && made) return err_set(e, rc, "%s", why.text);
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
  char crc[S3_CRC_TEXT];
  int rc = 0;
  while (rc == 0 && w->flying) {
    char *data = NULL;
    rc = s3_writer_land(w, &data, e);
    s3_writer_give_back(w, data);
  }
  if (rc < 0) return rc;
  buf_init(&body, w->parts * (S3_ETAG_MAX + 200) + 100);
  buf_str(&body, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
  for (size_t i = 0; i < w->parts; i++) {
    buf_fmt(&body, "<Part><PartNumber>%zu</PartNumber><ETag>&quot;", i + 1);
    xml_escape(w->etags[i], &body);
    buf_str(&body, "&quot;</ETag>");
    s3_crc_print(w->crcs[i], crc);
    if (w->sums) buf_fmt(&body, "<ChecksumCRC64NVME>%s</ChecksumCRC64NVME>", crc);
    buf_str(&body, "</Part>");
  }
  buf_str(&body, "</CompleteMultipartUpload>");
  rc = buf_failed(&body) < 0 ? err_set(e, buf_failed(&body), "too many parts")
                             : send_complete(w, &body, e);
  buf_free(&body);
  return rc;
}

/* Stops the parts that are under way. */
static void leave(s3_writer *w, bool made) {
  if (made) s3_writer_count(w, w->size - w->stored); /* an object of one part is counted here */
  if (!made) s3_writer_uncount(w);
  for (size_t i = 0; i < w->flying; i++) atomic_store(&w->flights[i]->call.stop, 1);
  for (size_t i = 0; i < w->flying; i++) {
    s3_end(&w->flights[i]->call);
    s3_writer_give_back(w, w->flights[i]->data);
    free(w->flights[i]);
  }
  /* No resume will look for these parts, or could tell what they are: the bucket would keep them,
   * and charge for them. */
  if (!made && w->begun && (w->over || !w->sums))
    s3_upload_drop(store_of(w), w->path, w->left.upload);
  s3_writer_free(w);
}

void s3_write_abort(store_writer *writer) {
  leave((s3_writer *)writer, false);
}

int s3_write_close(store_writer *writer, err *e) {
  s3_writer *w = (s3_writer *)writer;
  int rc = s3_writer_check(w, 0, e);
  if (rc == 0) rc = s3_may_close(w->path, w->size, w->taken, e);
  if (rc == 0 && w->parts == 1) {
    if (w->filled) s3_writer_sum_up(w);
    w->crcs[0] = w->crc;
  }
  if (rc == 0 && w->compare)
    rc = compare(w, &w->there, e);
  else if (rc == 0)
    rc = w->parts > 1 ? complete(w, e) : put_small(w, e);
  leave(w, rc == 0);
  return rc;
}
