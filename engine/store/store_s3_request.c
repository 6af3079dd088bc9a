/* One request to S3: where it goes, who signs it, and when it is sent once more. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "prims/hash.h"
#include "store/aws/sigv4.h"
#include "store_s3.h"
#include "store/aws/xml.h"

enum {
  TRIES = 6,
  PATIENCE_S = 60,   /* after this no other try begins */
  FIRST_PAUSE = 200, /* ms; each further one is twice as long, */
  DOUBLED = 4,       /* so many times at most */
  NAP_MS = 50,       /* how soon a pause sees that it is cancelled */
  LINES_MAX = 32 << 10,
  URL_MAX = 128 << 10,
  BODY_MAX = S3_PART + (64 << 10),
};

static const int64_t SECOND = 1000000000;

/* ---- where it goes ---- */

typedef struct target {
  bool https;
  char host[512]; /* with the port, unless it is the default one */
  buf path;       /* not encoded */
} target;

/* Splits the endpoint, AWS's own or the user's: scheme, host and the path that goes before all
 * others. */
static int split_endpoint(const credentials *who, target *t, err *e) {
  const char *at = who->endpoint;
  if (!*at) {
    t->https = true;
    snprintf(t->host, sizeof t->host, "s3.%s.amazonaws.com%s", who->region,
             strncmp(who->region, "cn-", 3) == 0 ? ".cn" : "");
    return 0;
  }
  t->https = strncmp(at, "https://", 8) == 0;
  if (!t->https && strncmp(at, "http://", 7) != 0)
    return err_set(e, ERR_INVAL,
                   "the S3 endpoint has to begin with http:// or https:// (AWS_ENDPOINT_URL)");
  at += t->https ? 8 : 7;
  size_t len = strcspn(at, "/?#"), rest = strlen(at + len);
  if (len == 0 || len > 255 || memchr(at, '@', len))
    return err_set(e, ERR_INVAL, "the S3 endpoint names no host (AWS_ENDPOINT_URL)");
  memcpy(t->host, at, len);
  t->host[len] = 0;
  while (rest && at[len + rest - 1] == '/') rest--;
  buf_add(&t->path, at + len, rest);
  return 0;
}

/* A bucket with a dot has no certificate for its host name. */
static int find_target(const s3_store *s, const credentials *who, const char *path, target *t,
                       err *e) {
  int rc = split_endpoint(who, t, e);
  if (rc < 0) return rc;
  if (who->path_style || strchr(s->bucket, '.')) {
    buf_fmt(&t->path, "/%s", s->bucket);
  } else {
    size_t len = strlen(s->bucket);
    memmove(t->host + len + 1, t->host, strlen(t->host) + 1);
    memcpy(t->host, s->bucket, len);
    t->host[len] = '.';
  }
  if (*path || t->path.len == 0) buf_fmt(&t->path, "/%s", path);
  rc = buf_failed(&t->path);
  return rc < 0 ? err_set(e, rc, "the address of the request is too long") : 0;
}

/* ---- signing ---- */

/* Over TLS nobody can change the body on its way, and hashing it would cost more than everything
 * else. Without TLS it is the user's word that nobody does. */
static int digest_body(s3_call *c, bool https, err *e) {
  if (https || c->s->options.body_unsigned) {
    snprintf(c->payload, sizeof c->payload, "%s", SIGV4_UNSIGNED);
    return 0;
  }
  if (*c->payload && strcmp(c->payload, SIGV4_UNSIGNED) != 0) return 0;
  return hash_sha256_hex(c->r.body, c->r.len, c->payload, e);
}

/* Gathers the headers that are signed beside those of the signature itself, then its lines, cut
 * apart. */
static int gather(s3_call *c, bool https, size_t *count, err *e) {
  size_t n = 0;
  for (size_t i = 0; c->r.headers && c->r.headers[i] && n < HTTP_HEADERS_MAX - 2 - S3_SUM_LINES;
       i++)
    c->headers[n++] = c->r.headers[i];
  for (size_t i = 0; i < S3_SUM_LINES && *c->sums[i]; i++) c->headers[n++] = c->sums[i];
  if (n >= HTTP_HEADERS_MAX - 24) return err_set(e, ERR_INTERNAL, "too many headers");
  int rc = s3_options_headers(c->s, &c->r, https, c->headers, &n, e);
  c->headers[n] = NULL;
  *count = n;
  return rc;
}

static void add_lines(s3_call *c, size_t n) {
  for (char *line = c->lines.data; line && *line && n < HTTP_HEADERS_MAX - 2;) {
    char *end = strchr(line, '\n');
    c->headers[n++] = line;
    if (!end) break;
    *end = 0;
    line = end + 1;
  }
  if (c->r.body) c->headers[n++] = "content-type: application/octet-stream";
  c->headers[n] = NULL;
}

static int sign(s3_call *c, const credentials *who, const credentials *keys, err *e) {
  target t = {0};
  size_t own = 0;
  buf_init(&t.path, URL_MAX);
  buf_clear(&c->lines);
  buf_clear(&c->url);
  int rc = find_target(c->s, who, c->r.path, &t, e);
  if (rc == 0) rc = digest_body(c, t.https, e);
  if (rc == 0) rc = s3_sum_lines(c, e);
  if (rc == 0) rc = gather(c, t.https, &own, e);
  if (rc == 0) {
    sigv4_key key = {.access = keys->anonymous ? "" : keys->access,
                     .secret = keys->secret,
                     .token = keys->token,
                     .region = who->region};
    sigv4_request r = {.method = c->r.method,
                       .host = t.host,
                       .path = t.path.data,
                       .query = c->r.query,
                       .headers = c->headers,
                       .payload = c->payload,
                       .time_ns = c->s->base.io->now(c->s->base.io, IO_WALL) + c->ahead_ns};
    buf_fmt(&c->url, "http%s://%s", t.https ? "s" : "", t.host);
    rc = sigv4_sign(&key, &r, &c->url, &c->lines, e);
  }
  if (rc == 0 && (buf_failed(&c->url) || buf_failed(&c->lines)))
    rc = err_set(e, ERR_LIMIT, "the request is too long");
  if (rc == 0) add_lines(c, own);
  buf_free(&t.path);
  return rc;
}

/* ---- sending ---- */

static const atomic_int *flag_of(const s3_call *c) {
  return c->r.cancel ? c->r.cancel : c->s->base.cancel;
}

static bool canceled(const s3_call *c) {
  const atomic_int *flag = flag_of(c);
  return flag && atomic_load(flag);
}

static void prepare_answer(s3_call *c) {
  size_t most = c->r.into || c->r.room < S3_ERROR_MAX ? S3_ERROR_MAX : c->r.room;
  buf_free(&c->answer.headers);
  buf_free(&c->answer.body);
  c->answer = (http_response){.into = c->r.into, .room = c->r.into ? c->r.room : 0};
  buf_init(&c->answer.headers, LINES_MAX);
  buf_init(&c->answer.body, most);
}

/* How much longer silence is borne; INT64_MAX: by the call's own limits. */
static int64_t patience_left(const s3_call *c) {
  const store *s = &c->s->base;
  int64_t patience = atomic_load(&s->patience_ns), since = atomic_load(&s->silent_ns);
  if (patience == 0) return INT64_MAX;
  return since ? patience - (s->io->now(s->io, IO_MONO) - since) : patience;
}

/* A request that is never answered must leave time for another one. */
static unsigned stall_of(const s3_call *c) {
  int64_t half = patience_left(c) / 2;
  if (half >= HTTP_STALL_S * SECOND) return 0;
  return half < SECOND ? 1 : (unsigned)(half / SECOND);
}

/* Signs with keys that are good now: it may take a while to get some. */
static int sign_with(s3_call *c, const credentials *who, err *e) {
  credentials_source *source = c->s->keys;
  const credentials *keys = credentials_take(source, c->ahead_ns, (atomic_int *)flag_of(c), e);
  if (!keys) return c->trouble.code;
  c->print = credentials_print(keys);
  int rc = sign(c, who, keys, e);
  credentials_give(source, keys);
  return rc;
}

static void send_it(s3_call *c) {
  s3_store *s = c->s;
  credentials who;
  c->doubtful = c->tries++ > 0;
  c->code[0] = 0;
  c->trouble = (err){0};
  prepare_answer(c);
  pthread_mutex_lock(&s->mutex);
  who = s->who;
  c->changes = s->changes;
  c->ahead_ns = s->ahead_ns;
  pthread_mutex_unlock(&s->mutex);
  c->sent_ns = s->base.io->now(s->base.io, IO_MONO);
  int64_t answered = 0;
  atomic_compare_exchange_strong(&s->base.silent_ns, &answered, c->sent_ns);
  int rc = s->dialect ? 0 : sign_with(c, &who, &c->trouble);
  c->sent = (http_request){.method = c->r.method,
                           .url = c->url.data,
                           .headers = c->headers,
                           .body = c->r.body,
                           .len = c->r.len,
                           .ca_file = *s->who.ca_file ? s->who.ca_file : NULL,
                           .cancel = (atomic_int *)flag_of(c),
                           .stop = &c->stop,
                           .stall_s = stall_of(c),
                           .moved = c->r.sent};
  if (s->dialect) rc = s->dialect->prepare(c, &c->trouble);
  if (rc == 0) http_start(s->net, &c->sent, &c->answer, &c->running, &c->trouble);
}

void s3_start(s3_call *c, s3_store *s, const s3_request *r) {
  *c = (s3_call){.s = s, .r = *r, .begun = s->base.io->now(s->base.io, IO_MONO)};
  buf_init(&c->url, URL_MAX);
  buf_init_secret(&c->lines, LINES_MAX); /* the token is in it */
  buf_init(&c->body, BODY_MAX);
  send_it(c);
}

void s3_end(s3_call *c) {
  if (!c->s) return;
  atomic_store(&c->stop, 1);
  if (c->running) http_wait(c->running, NULL);
  c->running = NULL;
  buf_free(&c->answer.headers);
  buf_free(&c->answer.body);
  buf_free(&c->url);
  buf_free(&c->lines);
  buf_free(&c->body);
}

static bool passes(const s3_call *c);

/* An answer of any other kind than "not now" says that the server is there. */
static void note_answer(s3_call *c) {
  store *s = &c->s->base;
  int64_t none = 0;
  if (c->trouble.code == ERR_CANCELED) return;
  if (!passes(c))
    atomic_store(&s->silent_ns, 0);
  else /* another call was answered meanwhile */
    atomic_compare_exchange_strong(&s->silent_ns, &none, c->sent_ns);
}

/* Remembers who answered. What passes may come from a gateway on the way. */
static void note_server(s3_call *c) {
  s3_store *s = c->s;
  const char *url = c->url.data, *authority = strstr(url, "://");
  char word[128], server[STORE_SERVER_MAX];
  if (!authority || passes(c)) return;
  int len = (int)(authority + 3 - url) + (int)strcspn(authority + 3, "/");
  http_header(&c->answer, "server", word, sizeof word);
  snprintf(server, sizeof server, "%.*s %s", len < 380 ? len : 380, url, word);
  for (char *at = server; *at; at++)
    if (*at < ' ' || *at > '~') *at = '?';
  pthread_mutex_lock(&s->mutex);
  memcpy(s->server, server, sizeof server);
  pthread_mutex_unlock(&s->mutex);
}

void s3_server(store *base, char out[STORE_SERVER_MAX]) {
  s3_store *s = (s3_store *)base;
  pthread_mutex_lock(&s->mutex);
  memcpy(out, s->server, STORE_SERVER_MAX);
  pthread_mutex_unlock(&s->mutex);
}

int s3_once(s3_call *c, err *e) {
  int rc = c->trouble.code;
  if (c->running) {
    rc = http_wait(c->running, &c->trouble);
    c->running = NULL;
    c->doubtful |= c->answer.resent;
    if (rc == 0 && c->s->dialect)
      c->s->dialect->answered(c);
    else if (rc == 0)
      s3_read_code(c);
    if (rc == 0) note_server(c);
    note_answer(c);
  }
  if (rc == 0 && c->answer.status / 100 == 2 && !*c->code) {
    s3_sums_settled(c);
    return 0;
  }
  return s3_refused(c, e);
}

/* ---- once more? ---- */

static bool one_of(const char *code, const char *const *codes) {
  for (; *codes; codes++)
    if (strcmp(code, *codes) == 0) return true;
  return false;
}

/* True if the server or the way to it was the cause, not the request. versitygw says that a key is
 * a directory also where another request removed the directory that it was putting into. */
static bool passes(const s3_call *c) {
  static const char *const codes[] = {"RequestTimeout",
                                      "SlowDown",
                                      "InternalError",
                                      "BadDigest",
                                      "XAmzContentSHA256Mismatch",
                                      "XAmzContentChecksumMismatch",
                                      "Throttling",
                                      "ServiceUnavailable",
                                      "ConditionalRequestConflict",
                                      "OperationAborted",
                                      "ExistingObjectIsDirectory",
                                      NULL};
  if (c->trouble.code) return c->trouble.code == ERR_IO || c->trouble.code == ERR_TIMEOUT;
  switch (c->answer.status) {
  case 408:
  case 429:
  case 500:
  case 502:
  case 503:
  case 504: return true;
  default: return one_of(c->code, codes);
  }
}

static int find_region(void *ctx, const char *path, const char *text) {
  char *out = ctx;
  if (text && strcmp(path, "Error/Region") == 0) snprintf(out, 64, "%s", text);
  return 0;
}

static bool good_region(const char *name) {
  size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
  return len > 0 && name[len] == 0;
}

/* The answer to the HEAD of an object has no room for a region, and its headers may lack it. That to
 * the HEAD of the bucket has it, whoever asks. */
static void ask_region(const s3_call *c, char *region, size_t room) {
  s3_call asked;
  if (strcmp(c->r.method, "HEAD") != 0 || !*c->r.path) return;
  s3_start(&asked, c->s,
           &(s3_request){.verb = "head", .method = "HEAD", .path = "", .cancel = c->r.cancel});
  s3_once(&asked, NULL);
  http_header(&asked.answer, "x-amz-bucket-region", region, room);
  s3_end(&asked);
}

/* Goes to the other region, if the bucket lives in one and the answer names it. */
static bool other_region(s3_call *c) {
  char region[64] = "";
  int status = c->answer.status;
  if (c->trouble.code || c->moved || (status != 301 && status != 307 && status != 400))
    return false;
  if (!http_header(&c->answer, "x-amz-bucket-region", region, sizeof region) && c->answer.body.len)
    xml_walk(c->answer.body.data, c->answer.body.len, "an answer", find_region, region, NULL);
  if (!*region) ask_region(c, region, sizeof region);
  if (!good_region(region)) return false;
  s3_store *s = c->s;
  pthread_mutex_lock(&s->mutex);
  bool other = strcmp(s->who.region, region) != 0;
  /* Of many requests that were under way the first one corrects the region, and all are sent
   * again. */
  c->moved = other || s->changes != c->changes;
  s->changes += other;
  memcpy(s->who.region, region, sizeof region);
  pthread_mutex_unlock(&s->mutex);
  return c->moved;
}

/* The answer to a HEAD has no body, so no word in it: an expired token is a bare 400 there. */
static bool says_nothing(const s3_call *c) {
  int status = c->answer.status;
  return strcmp(c->r.method, "HEAD") == 0 && (status == 400 || status == 403);
}

/* Looks for other keys, once, where the server refuses these. */
static bool fresh_keys(s3_call *c) {
  static const char *const codes[] = {
      "ExpiredToken",       "ExpiredTokenException", "TokenRefreshRequired",  "InvalidToken",
      "InvalidAccessKeyId", "InvalidSecurity",       "SignatureDoesNotMatch", NULL};
  bool refused = one_of(c->code, codes) || c->answer.status == 401 || says_nothing(c);
  if (c->renewed || c->trouble.code || !refused) return false;
  c->renewed = true;
  return credentials_renew(c->s->keys, c->print, (atomic_int *)flag_of(c), &c->unrenewed);
}

/* Signs by the server's clock from here on, where the server refuses ours: its answer says what time
 * it is. Only signatures go by that; all else goes by the times that the store gives its objects, or
 * by our own clock. */
static bool other_clock(s3_call *c) {
  enum { OFF_S = 240 }; /* servers take 5 to 15 minutes for the same time */
  static const char *const codes[] = {"RequestTimeTooSkewed", "RequestExpired",
                                      "RequestInTheFuture", NULL};
  char text[64];
  s3_store *s = c->s;
  if (c->clocked || c->trouble.code || (!one_of(c->code, codes) && !says_nothing(c))) return false;
  if (!http_header(&c->answer, "date", text, sizeof text)) return false;
  int64_t theirs = s3_time(text), ours = s->base.io->now(s->base.io, IO_WALL);
  if (theirs == 0) return false;
  int64_t ahead = theirs - ours, off = ahead - c->ahead_ns;
  if (off > -OFF_S * SECOND && off < OFF_S * SECOND) return false;
  c->clocked = true;
  pthread_mutex_lock(&s->mutex);
  bool first = s->ahead_ns == c->ahead_ns; /* of many that were under way */
  s->ahead_ns = ahead;
  pthread_mutex_unlock(&s->mutex);
  if (first)
    log_say(&s->base.log, LOG_WARN,
            "the clock of this machine is %" PRId64 " s %s that of %s: requests are signed by "
            "the server's; set this machine's",
            (ahead < 0 ? -ahead : ahead) / SECOND, ahead < 0 ? "ahead of" : "behind", s->shown);
  return true;
}

/* Sleeps 0.2 s, 0.4 s, ... less a random part of up to a half, so that many who failed at once do
 * not come back at once. False: it was cancelled meanwhile. */
static bool pause_before(const s3_call *c) {
  const io *io = c->s->base.io;
  uint32_t lot = 0;
  if (io->random(io, &lot, sizeof lot) < 0) lot = 0;
  int64_t whole = (int64_t)FIRST_PAUSE << (c->tries <= DOUBLED ? c->tries - 1 : DOUBLED);
  for (int64_t left = whole - (int64_t)(lot % (uint32_t)whole) / 2; left > 0; left -= NAP_MS) {
    if (canceled(c)) return false;
    io->sleep(io, (left < NAP_MS ? left : NAP_MS) * 1000000);
  }
  return !canceled(c);
}

/* Where an outage is waited out, the user sees at once what is wrong. */
static void say_silence(const s3_call *c, const err *e) {
  enum { SECOND_TIME = 2 };
  const store *s = &c->s->base;
  if (c->tries == SECOND_TIME)
    log_say(&s->log, LOG_WARN, "%s; trying again for up to %" PRId64 " s", e->text,
            patience_left(c) / SECOND + 1);
}

static bool again(s3_call *c, const err *e) {
  const io *io = c->s->base.io;
  if (c->s->dialect ? c->s->dialect->renew(c)
                    : other_region(c) || other_clock(c) || fresh_keys(c) || s3_without_sums(c))
    return true;
  if (!passes(c)) return false;
  int64_t left = patience_left(c);
  if (left != INT64_MAX) {
    if (left <= 0) return false;
    say_silence(c, e);
    return pause_before(c);
  }
  if (c->tries >= TRIES || io->now(io, IO_MONO) - c->begun > PATIENCE_S * SECOND) return false;
  return pause_before(c);
}

/* While a run begins, a name that nobody knows is the user's mistake, and no outage. */
static bool is_no_host(const s3_call *c) {
  return c->trouble.sys == HTTP_UNRESOLVED && atomic_load(&c->s->base.patience_ns) &&
         http_no_such_host(c->url.data);
}

/* The server's word says what became of the keys; why there are no others is the user's to mend. */
static int say_unrenewed(const s3_call *c, err *why) {
  err said = *why;
  err_set(why, said.code, "%.500s; other keys: %.450s", said.text, c->unrenewed.text);
  why->sys = said.sys;
  return said.code;
}

int s3_finish(s3_call *c, err *e) {
  err why = {0};
  bool unknown = false;
  int rc;
  while ((rc = s3_once(c, &why)) < 0 && !(unknown = is_no_host(c)) && again(c, &why)) send_it(c);
  if (unknown)
    rc = err_set(&why, ERR_INVAL, "%s %s: %.600s; nobody knows a host of this name", c->r.verb,
                 c->s->shown, c->trouble.text);
  else if (rc < 0 && c->unrenewed.code && !canceled(c) && c->unrenewed.code != ERR_CANCELED)
    rc = say_unrenewed(c, &why);
  else if (rc < 0 && canceled(c))
    rc = err_set(&why, ERR_CANCELED, "%s: cancelled", c->r.verb);
  if (rc < 0 && e) *e = why;
  return rc;
}

int s3_do(s3_call *c, s3_store *s, const s3_request *r, err *e) {
  s3_start(c, s, r);
  return s3_finish(c, e);
}
