/* store_s3: what a server is and can do, seen by asking it. For those who want to know before they save
 * there; nothing that saves relies on it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_s3.h"

/* The object, with its checksums (big-endian, in base64), and a wrong one. */
static const char content[] = "it is tried out\n";
static const char crc64[] = "3AkK95Gr/H8=", crc32c[] = "qFTg0w==", wrong32[] = "qFTg0g==";

typedef struct look {
  s3_store *s;
  char path[S3_PATH_MAX];
  store_finding_fn *fn;
  void *ctx;
} look;

static void say(const look *l, const char *topic, store_word word, const char *advice,
                const char *format, ...) __attribute__((format(printf, 5, 6)));
static void say(const look *l, const char *topic, store_word word, const char *advice,
                const char *format, ...) {
  char text[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  l->fn(l->ctx, &(store_finding){.topic = topic, .word = word, .text = text, .advice = advice});
}

/* ---- who asks, and whom ---- */

static credentials who_now(s3_store *s) {
  pthread_mutex_lock(&s->mutex);
  credentials who = s->who;
  pthread_mutex_unlock(&s->mutex);
  return who;
}

static void tell_key(const look *l, const credentials *keys) {
  size_t len = strlen(keys->access);
  bool said = strcmp(keys->from, CREDENTIALS_VARIABLES) == 0;
  say(l, "credentials", STORE_FINE, "",
      "the access key that ends in %s%s, from %s%s; whether it may do what a save needs is tried "
      "below",
      len > 8 ? keys->access + len - 4 : "?", *keys->token ? ", temporary" : "", keys->from,
      said ? " (the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what the run has "
             "been given)"
           : "");
}

/* Where there are none just now, the first request tells why. */
static void tell_who(const look *l) {
  credentials who = who_now(l->s);
  if (who.anonymous) {
    say(l, "credentials", STORE_NOTE, "", "requests are not signed (AWS_NO_SIGN_REQUEST)");
    return;
  }
  const credentials *keys = credentials_take(l->s->keys, 0, NULL, NULL);
  if (keys) tell_key(l, keys);
  credentials_give(l->s->keys, keys);
}

static void tell_server(const look *l, const http_response *answer) {
  char server[128];
  credentials who = who_now(l->s);
  if (!http_header(answer, "server", server, sizeof server)) snprintf(server, sizeof server, "?");
  bool plain = strncmp(who.endpoint, "http://", 7) == 0;
  say(l, "server", STORE_FINE, "", "%s at %s, region %s, bucket %s by its %s%s", server,
      *who.endpoint ? who.endpoint : "AWS's own endpoint", who.region, l->s->bucket,
      who.path_style ? "path" : "host name", plain ? "; what is sent can be read on the way" : "");
}

static void tell_clock(const look *l, const http_response *answer, int64_t sent_ns) {
  enum { NOTED_S = 5, REFUSED_S = 900 };
  char text[64];
  int64_t now = l->s->base.io->now(l->s->base.io, IO_WALL), theirs = 0;
  if (http_header(answer, "date", text, sizeof text)) theirs = s3_time(text);
  if (theirs == 0) {
    say(l, "clock", STORE_NOTE, "", "the server does not tell its time");
    return;
  }
  int64_t middle = sent_ns + (now - sent_ns) / 2, off = (theirs - middle) / 1000000000;
  int64_t much = off < 0 ? -off : off;
  if (much <= NOTED_S) {
    say(l, "clock", STORE_FINE, "", "the server's clock and this machine's agree");
    return;
  }
  say(l, "clock", STORE_WARNING,
      "set this machine's clock (chronyc tracking, timedatectl); if it is right, tell who runs the "
      "server",
      "the server's clock is %" PRId64 " s %s this machine's: %sages of leases, pins and "
      "removals go by the server's",
      much, off < 0 ? "behind" : "ahead of",
      much > REFUSED_S ? "signatures are made for the server's time, or it would refuse them; "
                       : "");
}

/* ---- checksums ---- */

static int put_with(const look *l, s3_call *c, const char *checksum, err *e) {
  const char *headers[] = {checksum, NULL};
  return s3_do(c, l->s,
               &(s3_request){.verb = "put",
                             .method = "PUT",
                             .path = l->path,
                             .headers = headers,
                             .body = content,
                             .len = sizeof content - 1},
               e);
}

static bool tells(const look *l, const char *name, const char *value) {
  const char *headers[] = {"x-amz-checksum-mode: ENABLED", NULL};
  char text[64] = "";
  s3_call c;
  bool told =
      s3_do(&c, l->s,
            &(s3_request){.verb = "head", .method = "HEAD", .path = l->path, .headers = headers},
            NULL) == 0 &&
      http_header(&c.answer, name, text, sizeof text) && strcmp(text, value) == 0;
  s3_end(&c);
  return told;
}

static bool keeps(const look *l, const char *name, const char *value) {
  char line[96];
  s3_call c;
  snprintf(line, sizeof line, "%s: %s", name, value);
  bool put = put_with(l, &c, line, NULL) == 0;
  s3_end(&c);
  return put && tells(l, name, value);
}

/* Once: what comes damaged is sent again elsewhere. */
static bool refuses_wrong(const look *l) {
  char line[96];
  const char *headers[] = {line, NULL};
  s3_call c;
  snprintf(line, sizeof line, "x-amz-checksum-crc32c: %s", wrong32);
  s3_start(&c, l->s,
           &(s3_request){.verb = "put",
                         .method = "PUT",
                         .path = l->path,
                         .headers = headers,
                         .body = content,
                         .len = sizeof content - 1});
  s3_once(&c, NULL);
  bool refused = c.answer.status / 100 == 4;
  s3_end(&c);
  return refused;
}

static void tell_checksums(const look *l) {
  bool has64 = keeps(l, "x-amz-checksum-crc64nvme", crc64);
  bool has32 = keeps(l, "x-amz-checksum-crc32c", crc32c);
  bool checks = refuses_wrong(l);
  if (has64 && checks)
    say(l, "checksums", STORE_FINE, "", "the server checks what it gets, and keeps CRC64NVME%s",
        has32 ? " and CRC-32C" : "");
  else if (has32 && checks)
    say(l, "checksums", STORE_NOTE, "",
        "the server checks what it gets and keeps CRC-32C, but no CRC64NVME: what a save that was "
        "cut has sent is read back to compare it");
  else
    say(l, "checksums", STORE_WARNING,
        "nothing has to be done; a newer version of the server may have them",
        "the server %s: a damaged transfer is found by `verify` and at each restore, and what a "
        "save that was cut has sent is read back to compare it",
        checks ? "keeps no checksum" : "does not compare checksums");
}

/* ---- the bucket's own rules ---- */

/* Asks for a document of the bucket. 1: it has the word; 0: it has not; below 0: it is not told. */
static int bucket_has(const look *l, const char *what, const char *word) {
  const char *query[] = {what, "", NULL};
  s3_call c;
  int rc = s3_do(&c, l->s, &(s3_request){.verb = what, .method = "GET", .path = "", .query = query},
                 NULL);
  bool none = rc == ERR_NOENT || c.answer.status == 404;
  if (rc == 0)
    rc = c.answer.body.len && memmem(c.answer.body.data, c.answer.body.len, word, strlen(word));
  s3_end(&c);
  return none ? 0 : rc;
}

static void tell_bucket(const look *l) {
  int versions = bucket_has(l, "versioning", "<Status>Enabled</Status>");
  int locked = bucket_has(l, "object-lock", "<ObjectLockEnabled>Enabled</ObjectLockEnabled>");
  if (versions > 0)
    say(l, "versions", STORE_NOTE,
        "add a lifecycle rule that expires noncurrent versions (NoncurrentVersionExpiration)",
        "the bucket keeps old versions: what is deleted goes on costing until a rule removes it");
  else
    say(l, "versions", STORE_FINE, "", "%s",
        versions == 0 ? "the bucket keeps no old versions"
                      : "whether the bucket keeps old versions is not told to these credentials");
  if (locked > 0)
    say(l, "lock", STORE_NOTE, "",
        "the bucket has object lock: while a retention holds, deleted data stays as a version");
}

static void tell_encryption(const look *l, const http_response *answer) {
  char how[64] = "", key[256] = "";
  if (!http_header(answer, "x-amz-server-side-encryption", how, sizeof how)) {
    say(l, "encryption", STORE_FINE, "", "the server names no encryption of its own");
    return;
  }
  http_header(answer, "x-amz-server-side-encryption-aws-kms-key-id", key, sizeof key);
  say(l, "encryption", STORE_FINE, "", "the server encrypts with %s%s%s", how, *key ? ", key " : "",
      key);
}

int s3_examine(store *base, const char *key, store_finding_fn *fn, void *ctx, err *e) {
  look l = {.s = (s3_store *)base, .fn = fn, .ctx = ctx};
  s3_call c;
  int rc = s3_path(l.s, key, l.path, e);
  if (rc < 0) return rc;
  tell_who(&l);
  int64_t sent_ns = base->io->now(base->io, IO_WALL);
  rc = s3_do(&c, l.s,
             &(s3_request){.verb = "put",
                           .method = "PUT",
                           .path = l.path,
                           .body = content,
                           .len = sizeof content - 1},
             e);
  if (c.answer.status) tell_server(&l, &c.answer);
  if (c.answer.status) tell_clock(&l, &c.answer, sent_ns);
  if (rc == 0) tell_encryption(&l, &c.answer);
  s3_end(&c);
  if (rc < 0) return rc;
  tell_checksums(&l);
  tell_bucket(&l);
  return s3_remove(base, key, NULL), 0;
}
