/* store_s3: a bucket of AWS or of any server that speaks its protocol. s3://bucket/prefix */
#include "store_s3.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the handle ---- */

static int check_bucket(const uri *where, err *e) {
  const char *name = where->host;
  size_t len = strlen(name);
  bool good = len >= 3 && len <= 63 && isalnum((unsigned char)name[0]) &&
              isalnum((unsigned char)name[len - 1]);
  for (size_t i = 0; i < len; i++)
    good &= isalnum((unsigned char)name[i]) || strchr("-._", name[i]) != NULL;
  if (good) return 0;
  return err_set(e, ERR_INVAL,
                 "%s://%.100s: a bucket's name has 3 to 63 letters, digits, dots and hyphens",
                 where->scheme, name);
}

int s3_set_up(s3_store *s, const uri *where, const io *io, const log_sink *log, err *e) {
  s->base.io = io;
  if (log) s->base.log = *log;
  pthread_mutex_init(&s->mutex, NULL);
  pthread_mutex_init(&s->spelling, NULL);
  int rc = check_bucket(where, e);
  if (rc < 0) return rc;
  memcpy(s->bucket, where->host, strlen(where->host) + 1);
  memcpy(s->prefix, where->path, strlen(where->path) + 1);
  snprintf(s->shown, sizeof s->shown, "%s://%s", where->scheme, s->bucket);
  return http_open(&s->net, e);
}

void s3_take_down(s3_store *s) {
  http_close(s->net);
  s3_options_forget(&s->options);
  s3_forget_spelling(s);
  pthread_mutex_destroy(&s->mutex);
  pthread_mutex_destroy(&s->spelling);
}

static void s3_close(store *base) {
  s3_store *s = (s3_store *)base;
  credentials_close(s->keys);
  s3_take_down(s);
  free(s);
}

static int s3_open(const uri *where, const io *io, const log_sink *log, store **out, err *e) {
  *out = NULL;
  s3_store *s = calloc(1, sizeof *s);
  if (!s) return err_set(e, ERR_NOMEM, "no memory for a store");
  s->base.ops = &store_s3_ops;
  int rc = s3_set_up(s, where, io, log, e);
  /* What is written wrong is told before anybody is asked for keys. */
  if (rc == 0) rc = s3_options_open(s, where, e);
  if (rc == 0) rc = credentials_open(io, log, &s->who, &s->keys, e);
  if (rc == 0) rc = s3_options_way(s, where, e);
  if (rc < 0)
    s3_close(&s->base);
  else
    *out = &s->base;
  return rc;
}

/* ---- reading ---- */

static int days_before(int year, int month) {
  static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  int last = year - (month < 2); /* the leap day of this year counts from March on */
  return 365 * (year - 1970) + before[month] + (last / 4 - last / 100 + last / 400) - 477;
}

static bool within(int value, int most) {
  return value >= 0 && value <= most;
}

int64_t s3_time(const char *text) {
  static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
  int year, month, day, hour, minute, second;
  char name[4] = "";
  if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &year, &month, &day, &hour, &minute, &second) == 6) {
    month--;
  } else if (sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d", &day, name, &year, &hour, &minute,
                    &second) == 6) {
    const char *at = strstr(months, name);
    month = strlen(name) == 3 && at ? (int)(at - months) / 3 : -1;
  } else {
    return 0;
  }
  if (!within(month, 11) || year < 1970 || year > 2200 || day < 1 || !within(day, 31) ||
      !within(hour, 24) || !within(minute, 59) || !within(second, 60))
    return 0;
  int64_t days = days_before(year, month) + day - 1;
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000000000;
}

void s3_etag(const char *text, char out[S3_ETAG_MAX]) {
  size_t len = strlen(text);
  if (len >= 2 && text[0] == '"' && text[len - 1] == '"') text++, len -= 2;
  if (len >= S3_ETAG_MAX) len = 0;
  memcpy(out, text, len);
  out[len] = 0;
}

static void read_head(const http_response *answer, s3_head *out) {
  char text[S3_ETAG_MAX] = "";
  if (http_header(answer, "last-modified", text, sizeof text)) out->object.mtime_ns = s3_time(text);
  if (!http_header(answer, S3_NONCE, out->nonce, sizeof out->nonce)) out->nonce[0] = 0;
  if (!http_header(answer, S3_DIGEST, out->digest, sizeof out->digest)) out->digest[0] = 0;
  char *mark = out->object.mark;
  if (!http_header(answer, S3_MARK, mark, sizeof out->object.mark)) mark[0] = 0;
  out->summed = http_header(answer, "x-amz-checksum-crc64nvme", text, sizeof text) &&
                s3_crc_parse(text, &out->crc);
}

static int look(s3_store *s, const char *path, s3_sum sum, atomic_int *cancel, s3_head *out,
                err *e) {
  s3_call c;
  char text[64] = "";
  const s3_request r = {
      .verb = "head", .method = "HEAD", .path = path, .sum = sum, .cancel = cancel};
  int rc = s3_do(&c, s, &r, e);
  *out = (s3_head){0};
  if (rc == 0 && !http_header(&c.answer, "content-length", text, sizeof text))
    rc = err_set(e, ERR_IO, "head %s/%.400s: the server tells no size", s->shown, path);
  if (rc == 0) {
    out->object.size = strtoull(text, NULL, 10);
    read_head(&c.answer, out);
  }
  s3_end(&c);
  return rc;
}

int s3_look(s3_store *s, const char *path, atomic_int *cancel, s3_head *out, err *e) {
  return look(s, path, S3_SUM_NONE, cancel, out, e);
}

int s3_look_sum(s3_store *s, const char *path, atomic_int *cancel, s3_head *out, err *e) {
  return look(s, path, S3_SUM_ASK, cancel, out, e);
}

int s3_head_key(store *base, const char *key, store_object *out, err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX];
  s3_head head;
  int rc = *key ? s3_path(s, key, path, e) : store_key_check(key, e);
  if (rc == 0) rc = s3_look(s, path, NULL, &head, e);
  if (rc == 0) *out = head.object;
  return rc;
}

/* The body of a large answer is handed over as it is, where it can be: it would be there twice. */
int s3_body(const s3_store *s, s3_call *c, buf *out, err *e) {
  buf *body = &c->answer.body;
  size_t room = out->max - out->len;
  if (body->len > room)
    return err_set(e, ERR_LIMIT, "%s/%.400s has %zu bytes, over the limit of %zu", s->shown,
                   c->r.path, body->len, room);
  if (!out->data && body->len) {
    out->len = body->len;
    out->room = body->room;
    out->data = buf_take(body);
  } else if (body->len) {
    buf_add(out, body->data, body->len);
  }
  return buf_failed(out) ? err_set(e, ERR_NOMEM, "no memory for %s/%.400s", s->shown, c->r.path)
                         : 0;
}

int s3_get(store *base, const char *key, buf *out, err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX];
  size_t room = out->max - out->len;
  int rc = *key ? s3_path(s, key, path, e) : store_key_check(key, e);
  if (rc < 0) return rc;
  s3_call c;
  rc = s3_do(&c, s, &(s3_request){.verb = "get", .method = "GET", .path = path, .room = room}, e);
  if (rc == 0) rc = s3_body(s, &c, out, e);
  s3_end(&c);
  return rc;
}

/* A server that does not know ranges sends the whole object, from its beginning. */
static int check_range(const s3_call *c, uint64_t at, err *e) {
  if (c->answer.status == 206 || at == 0) return 0;
  return err_set(e, ERR_UNSUPPORTED, "%s/%.400s: the server does not send parts of an object",
                 c->s->shown, c->r.path);
}

ssize_t s3_read_path(s3_store *s, const char *path, uint64_t at, void *to, size_t len,
                     atomic_int *cancel, err *e) {
  char range[64];
  snprintf(range, sizeof range, "range: bytes=%" PRIu64 "-%" PRIu64, at, at + len - 1);
  const char *headers[] = {range, NULL};
  err why = {0};
  s3_call c;
  int rc = s3_do(&c, s,
                 &(s3_request){.verb = "read",
                               .method = "GET",
                               .path = path,
                               .headers = headers,
                               .into = to,
                               .room = len,
                               .cancel = cancel},
                 &why);
  if (rc == 0) rc = check_range(&c, at, &why);
  ssize_t got = rc < 0 ? rc : (ssize_t)c.answer.got;
  if (rc < 0 && c.answer.status == 416) got = 0; /* it ends before that */
  s3_end(&c);
  return got < 0 ? err_set(e, rc, "%s", why.text) : got;
}

ssize_t s3_read(store *base, const char *key, uint64_t at, void *to, size_t len, err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX];
  int rc = *key ? s3_path(s, key, path, e) : store_key_check(key, e);
  if (rc < 0) return rc;
  s3_head head;
  if (len == 0 || at > INT64_MAX / 2) return s3_look(s, path, NULL, &head, e); /* is it there? */
  return s3_read_path(s, path, at, to, len, NULL, e);
}

const store_ops store_s3_ops = {
    .version = 1,
    .scheme = "s3",
    .caps = STORE_CAP_IF_ABSENT | STORE_CAP_RESUME,
    .open = s3_open,
    .close = s3_close,
    .exists = s3_exists,
    .get = s3_get,
    .get_many = s3_get_many,
    .read = s3_read,
    .head = s3_head_key,
    .put = s3_put,
    .put_marked = s3_put_marked,
    .write_mark = s3_write_mark,
    .write_since = s3_write_since,
    .write_tally = s3_write_tally,
    .list = s3_list,
    .remove = s3_remove,
    .remove_prefix = s3_remove_prefix,
    .remove_below = s3_remove_below,
    .write_open = s3_write_open,
    .write = s3_write,
    .write_close = s3_write_close,
    .write_abort = s3_write_abort,
    .publish = NULL,
    .race = s3_race,
    .server = s3_server,
    .unfinished = s3_unfinished,
    .discard = s3_discard,
    .get_tagged = s3_get_tagged,
    .replace_if = s3_replace_if,
    .spell = s3_spell,
    .write_digest = s3_write_digest,
    .write_lend = s3_write_lend,
    .write_lent = s3_write_lent,
    .examine = s3_examine,
};
