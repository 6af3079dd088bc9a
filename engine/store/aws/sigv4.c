#include "sigv4.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/secret.h"
#include "prims/hash.h"

enum { ITEMS_MAX = 64, TEXT_MAX = 64 << 10, DATE = 8, SECRET_KEY_MAX = 256 };

/* Names with values, sorted by the bytes of the names, then of the values. */
typedef struct items {
  buf text; /* each name and each value, ended by NUL */
  struct item {
    size_t name, value; /* where they begin in `text` */
  } at[ITEMS_MAX];
  size_t count;
} items;

static const char *name_of(const items *s, size_t i) {
  return s->text.data + s->at[i].name;
}

static const char *value_of(const items *s, size_t i) {
  return s->text.data + s->at[i].value;
}

static int compare(const items *s, size_t a, size_t b) {
  int order = strcmp(name_of(s, a), name_of(s, b));
  return order ? order : strcmp(value_of(s, a), value_of(s, b));
}

/* Begins the next item; its name follows. */
static void item_begin(items *s) {
  if (s->count == ITEMS_MAX) s->text.failure = ERR_LIMIT;
  if (!buf_failed(&s->text)) s->at[s->count].name = s->text.len;
}

static void item_value(items *s) {
  buf_add(&s->text, "", 1);
  if (!buf_failed(&s->text)) s->at[s->count].value = s->text.len;
}

static void item_end(items *s) {
  buf_add(&s->text, "", 1);
  if (buf_failed(&s->text)) return;
  size_t i = s->count++;
  /* The pair "a=" and "a-b=" shows why whole lines cannot be compared: '-' comes before '='. */
  for (; i > 0 && compare(s, i - 1, i) > 0; i--) {
    struct item swap = s->at[i];
    s->at[i] = s->at[i - 1];
    s->at[i - 1] = swap;
  }
}

void sigv4_encode(const char *text, int slash, buf *out) {
  static const char digits[] = "0123456789ABCDEF";
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    /* isalnum() is not used: the locale has no say in it. */
    bool plain = (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') ||
                 strchr("-_.~", *c) || (*c == '/' && !slash);
    if (plain)
      buf_add(out, c, 1);
    else
      buf_add(out, (char[]){'%', digits[*c >> 4], digits[*c & 15]}, 3);
  }
}

static void add_query(items *s, const char *const *query) {
  for (; query && query[0]; query += 2) {
    item_begin(s);
    sigv4_encode(query[0], 1, &s->text);
    item_value(s);
    sigv4_encode(query[1], 1, &s->text);
    item_end(s);
  }
}

/* Adds a header to the signature: without spaces around the value, and with one where there are
 * more. */
static void add_header(items *s, const char *name, size_t name_len, const char *value) {
  item_begin(s);
  buf_add(&s->text, name, name_len);
  item_value(s);
  bool gap = false, begun = false;
  for (; *value; value++) {
    if (*value == ' ' || *value == '\t') {
      gap = begun;
      continue;
    }
    if (gap) buf_str(&s->text, " ");
    buf_add(&s->text, value, 1);
    gap = false;
    begun = true;
  }
  item_end(s);
}

/* Adds a header of our own: to the signature, and to be sent. */
static void send_header(items *s, const char *name, const char *value, buf *headers) {
  add_header(s, name, strlen(name), value);
  /* Not buf_fmt(): what prints would leave a piece of the token on the stack. */
  const char *const pieces[] = {name, ": ", value, "\n"};
  for (int i = 0; i < 4; i++) buf_str(headers, pieces[i]);
}

static void print_query(const items *query, buf *out) {
  for (size_t i = 0; i < query->count; i++)
    buf_fmt(out, "%s%s=%s", i ? "&" : "", name_of(query, i), value_of(query, i));
}

static void print_names(const items *headers, buf *out) {
  for (size_t i = 0; i < headers->count; i++)
    buf_fmt(out, "%s%s", i ? ";" : "", name_of(headers, i));
}

/* Makes the hex SHA-256 of the request in its canonical form. */
static int digest_request(const sigv4_request *r, const items *query, const items *headers,
                          char out[HASH_HEX_MAX], err *e) {
  buf text;
  buf_init_secret(&text, 2 * TEXT_MAX); /* the token is in it */
  buf_fmt(&text, "%s\n", r->method);
  sigv4_encode(r->path, 0, &text);
  buf_str(&text, "\n");
  print_query(query, &text);
  buf_str(&text, "\n");
  for (size_t i = 0; i < headers->count; i++) {
    const char *const pieces[] = {name_of(headers, i), ":", value_of(headers, i), "\n"};
    for (int k = 0; k < 4; k++) buf_str(&text, pieces[k]);
  }
  buf_str(&text, "\n");
  print_names(headers, &text);
  buf_fmt(&text, "\n%s", r->payload);
  int rc = buf_failed(&text);
  if (rc < 0)
    err_set(e, rc, "the request is too long to be signed, or memory ran out");
  else
    rc = hash_sha256_hex(text.data, text.len, out, e);
  buf_free(&text);
  return rc;
}

static const char *service_of(const sigv4_key *key) {
  return key->service ? key->service : "s3";
}

/* Derives the signature: secret -> day -> region -> service -> signature. */
static int derive(const sigv4_key *key, const char *stamp, const char *text, digest *out, err *e) {
  size_t len = strlen(key->secret);
  if (len > SECRET_KEY_MAX) return err_set(e, ERR_LIMIT, "the secret key is too long");
  char *first = secret_alloc(len + 4);
  if (!first) return err_set(e, ERR_NOMEM, "no memory for a signature");
  memcpy(first, "AWS4", 4);
  memcpy(first + 4, key->secret, len);
  const char *steps[] = {stamp, key->region, service_of(key), "aws4_request", text};
  const void *with = first;
  size_t with_len = len + 4;
  int rc = 0;
  uint8_t next[HASH_BYTES_MAX];
  for (size_t i = 0; i < sizeof steps / sizeof steps[0] && rc == 0; i++) {
    rc = hash_hmac_sha256(with, with_len, steps[i], i == 0 ? DATE : strlen(steps[i]), next, e);
    memcpy(out->bytes, next, sizeof next);
    with = out->bytes;
    with_len = out->len = sizeof next;
  }
  explicit_bzero(next, sizeof next);
  secret_free(first);
  return rc;
}

static int authorize(const sigv4_key *key, const sigv4_request *r, const char *stamp,
                     const items *query, const items *signed_headers, buf *headers, err *e) {
  char request[HASH_HEX_MAX], signature[HASH_HEX_MAX];
  digest d = {0};
  buf text;
  buf_init(&text, 4096);
  int rc = digest_request(r, query, signed_headers, request, e);
  if (rc < 0) goto out;
  buf_fmt(&text, "AWS4-HMAC-SHA256\n%s\n%.8s/%s/%s/aws4_request\n%s", stamp, stamp, key->region,
          service_of(key), request);
  rc = buf_failed(&text);
  if (rc < 0) {
    err_set(e, rc, "the name of the region is too long, or memory ran out");
    goto out;
  }
  rc = derive(key, stamp, text.data, &d, e);
  if (rc < 0) goto out;
  digest_hex(&d, signature);
  buf_fmt(headers,
          "authorization: AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request,"
          "SignedHeaders=",
          key->access, stamp, key->region, service_of(key));
  print_names(signed_headers, headers);
  buf_fmt(headers, ",Signature=%s\n", signature);
out:
  buf_free(&text);
  return rc;
}

/* Prints a time as "20130524T000000Z". */
static void print_stamp(int64_t time_ns, char out[17]) {
  time_t seconds = (time_t)(time_ns / 1000000000);
  struct tm t;
  gmtime_r(&seconds, &t);
  strftime(out, 17, "%Y%m%dT%H%M%SZ", &t);
}

int sigv4_sign(const sigv4_key *key, const sigv4_request *r, buf *target, buf *headers, err *e) {
  items query = {.count = 0}, names = {.count = 0};
  buf_init(&query.text, TEXT_MAX);
  buf_init_secret(&names.text, TEXT_MAX);
  int rc = 0;
  bool anonymous = !key->access || !*key->access;
  char stamp[17];
  print_stamp(r->time_ns, stamp);

  add_query(&query, r->query);
  for (const char *const *h = r->headers; h && *h; h++) {
    size_t name = strcspn(*h, ":");
    add_header(&names, *h, name, (*h)[name] ? *h + name + 1 : "");
  }
  send_header(&names, "host", r->host, headers);
  if (!anonymous) {
    send_header(&names, "x-amz-content-sha256", r->payload, headers);
    send_header(&names, "x-amz-date", stamp, headers);
    if (key->token && *key->token) send_header(&names, "x-amz-security-token", key->token, headers);
  }
  rc = buf_failed(&query.text) ? buf_failed(&query.text) : buf_failed(&names.text);
  if (rc < 0) goto too_long;
  sigv4_encode(r->path, 0, target);
  if (query.count) buf_str(target, "?");
  print_query(&query, target);
  if (!anonymous) rc = authorize(key, r, stamp, &query, &names, headers, e);
  if (rc < 0) goto out;
  rc = buf_failed(target) ? buf_failed(target) : buf_failed(headers);
too_long:
  if (rc < 0) err_set(e, rc, "the request is too long to be signed, or memory ran out");
out:
  buf_free(&query.text);
  buf_free(&names.text);
  return rc;
}
