/* store_s3: what the environment and the query of the URI say of encryption, storage class, who
 * pays, and the way to the server. The names are those of other tools: of the query pyarrow's, the
 * others object_store's. What is said in the URI wins, since it is about this very bucket. */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/secret.h"
#include "prims/fs.h"
#include "prims/hash.h"
#include "store_s3.h"

enum { CUSTOMER_KEY = 32, VALUE_MAX = 2048, UNSAID = 2 };

/* All that was said, before it is judged; "": nothing. */
typedef struct said {
  char sse[VALUE_MAX], kms_key[VALUE_MAX], bucket_key[16], storage_class[64], payer[16], sign[16];
  char customer_key[VALUE_MAX], customer_file[VALUE_MAX];
  char region[64], endpoint[1000], scheme[8], force_virtual[16], ca_file[1000], verify[16];
  char passed[16];
} said;

#define OF(member) offsetof(said, member), sizeof(((said *)NULL)->member)

/* NULL: it cannot be said there. */
static const struct option {
  const char *variable, *key;
  size_t at, room;
} options[] = {
    {"AWS_SERVER_SIDE_ENCRYPTION", "server_side_encryption", OF(sse)},
    {"AWS_SSE_KMS_KEY_ID", "sse_kms_key_id", OF(kms_key)},
    {"AWS_SSE_BUCKET_KEY_ENABLED", "sse_bucket_key_enabled", OF(bucket_key)},
    {"AWS_SSE_CUSTOMER_KEY_BASE64", NULL, OF(customer_key)},
    {"AWS_SSE_CUSTOMER_KEY_FILE", NULL, OF(customer_file)},
    {"AWS_STORAGE_CLASS", "storage_class", OF(storage_class)},
    {"AWS_REQUEST_PAYER", "request_payer", OF(payer)},
    {"CKPT_S3_SIGN_BODY", "sign_body", OF(sign)},
    {NULL, "region", OF(region)},
    {NULL, "endpoint_override", OF(endpoint)},
    {NULL, "scheme", OF(scheme)},
    {NULL, "force_virtual_addressing", OF(force_virtual)},
    {NULL, "tls_ca_file_path", OF(ca_file)},
    {NULL, "tls_verify_certificates", OF(verify)},
    /* pyarrow knows these, and nothing here depends on them. */
    {NULL, "allow_bucket_creation", OF(passed)},
    {NULL, "allow_bucket_deletion", OF(passed)},
    {NULL, "allow_delayed_open", OF(passed)},
    {NULL, "background_writes", OF(passed)},
    {NULL, "check_directory_existence_before_creation", OF(passed)},
    {NULL, "smart_defaults", OF(passed)},
};

enum { OPTIONS = sizeof options / sizeof *options };

/* ---- gathering ---- */

static int take(said *to, const struct option *o, const char *value, const char *name, err *e) {
  size_t len = strlen(value);
  for (size_t i = 0; i < len; i++)
    if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
      return err_set(e, ERR_INVAL, "%s has a control character in it", name);
  if (len >= o->room)
    return err_set(e, ERR_INVAL, "%s is longer than %zu bytes", name, o->room - 1);
  memcpy((char *)to + o->at, value, len + 1);
  return 0;
}

static int of_environment(said *to, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < OPTIONS; i++) {
    const char *value = options[i].variable ? getenv(options[i].variable) : NULL;
    if (value && *value) rc = take(to, &options[i], value, options[i].variable, e);
  }
  return rc;
}

static int unknown_key(const char *name, err *e) {
  buf known;
  buf_init(&known, 1024);
  for (size_t i = 0; i < OPTIONS; i++)
    if (options[i].key && options[i].at != offsetof(said, passed))
      buf_fmt(&known, "%s%s", known.len ? ", " : "", options[i].key);
  int rc = err_set(e, ERR_INVAL,
                   "\"%s=...\" in the target is not known; there are %s. Keys are given by the "
                   "environment or a profile",
                   name, known.data ? known.data : "others");
  buf_free(&known);
  return rc;
}

static int of_query(said *to, const char *query, err *e) {
  char name[URI_NAME_MAX], value[URI_QUERY_MAX], shown[URI_NAME_MAX + 40];
  uint32_t seen = 0;
  int rc;
  while ((rc = uri_query_next(&query, name, value, e)) > 0) {
    size_t i = 0;
    while (i < OPTIONS && (!options[i].key || strcmp(options[i].key, name) != 0)) i++;
    if (i == OPTIONS) return unknown_key(name, e);
    if (seen >> i & 1) return err_set(e, ERR_INVAL, "the target has \"%s=\" twice", name);
    seen |= UINT32_C(1) << i;
    if (options[i].at == offsetof(said, passed)) continue;
    snprintf(shown, sizeof shown, "\"%s=\" in the target", name);
    if ((rc = take(to, &options[i], value, shown, e)) < 0) return rc;
  }
  return rc;
}

/* ---- judging ---- */

/* Returns 1, 0, or `otherwise` for "". */
static int flag(const char *value, int otherwise, const char *name, err *e) {
  static const char *const yes[] = {"1", "true", "yes", "on"};
  static const char *const no[] = {"0", "false", "no", "off"};
  if (!*value) return otherwise;
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
    if (strcasecmp(value, yes[i]) == 0) return 1;
    if (strcasecmp(value, no[i]) == 0) return 0;
  }
  return err_set(e, ERR_INVAL, "%s has to be true or false", name);
}

static bool is_arn_text(const char *text) {
  for (; *text; text++)
    if (!isalnum((unsigned char)*text) && !strchr(":/_.-+=@", *text)) return false;
  return true;
}

static int set_kms(s3_options *o, const said *t, err *e) {
  bool kms = strncmp(t->sse, "aws:kms", 7) == 0 || (!*t->sse && *t->kms_key);
  int bucket_key =
      flag(t->bucket_key, UNSAID, "AWS_SSE_BUCKET_KEY_ENABLED (sse_bucket_key_enabled)", e);
  if (bucket_key < 0) return bucket_key;
  if (!kms && (*t->kms_key || bucket_key != UNSAID))
    return err_set(e, ERR_INVAL,
                   "a KMS key or a bucket key (AWS_SSE_KMS_KEY_ID, AWS_SSE_BUCKET_KEY_ENABLED) "
                   "goes with AWS_SERVER_SIDE_ENCRYPTION=aws:kms alone");
  if (!is_arn_text(t->kms_key))
    return err_set(e, ERR_INVAL, "AWS_SSE_KMS_KEY_ID (sse_kms_key_id) is no id, ARN or alias");
  if (*t->kms_key)
    snprintf(o->kms_key, sizeof o->kms_key, "x-amz-server-side-encryption-aws-kms-key-id: %s",
             t->kms_key);
  if (bucket_key != UNSAID)
    snprintf(o->bucket_key, sizeof o->bucket_key,
             "x-amz-server-side-encryption-bucket-key-enabled: %s", bucket_key ? "true" : "false");
  if (kms)
    snprintf(o->sse, sizeof o->sse, "x-amz-server-side-encryption: %.20s",
             *t->sse ? t->sse : "aws:kms");
  return 0;
}

static int set_sse(s3_options *o, const said *t, bool customer, err *e) {
  static const char *const kinds[] = {"", "AES256", "aws:kms", "aws:kms:dsse", "sse-c"};
  size_t i = 0;
  while (i < sizeof kinds / sizeof *kinds && strcmp(t->sse, kinds[i]) != 0) i++;
  if (i == sizeof kinds / sizeof *kinds)
    return err_set(e, ERR_INVAL,
                   "AWS_SERVER_SIDE_ENCRYPTION (server_side_encryption) has to be AES256, aws:kms, "
                   "aws:kms:dsse or sse-c");
  bool of_customer = strcmp(t->sse, "sse-c") == 0;
  if (of_customer && !customer)
    return err_set(e, ERR_INVAL,
                   "sse-c needs a key: AWS_SSE_CUSTOMER_KEY_FILE or AWS_SSE_CUSTOMER_KEY_BASE64");
  if (customer && ((*t->sse && !of_customer) || *t->kms_key))
    return err_set(e, ERR_INVAL,
                   "a key of the customer's (AWS_SSE_CUSTOMER_KEY_...) and "
                   "AWS_SERVER_SIDE_ENCRYPTION exclude each other: unset one of them");
  if (strcmp(t->sse, "AES256") == 0)
    snprintf(o->sse, sizeof o->sse, "x-amz-server-side-encryption: AES256");
  return set_kms(o, t, e);
}

/* The file holds the 32 bytes, or their base64. */
static int read_customer_key(const io *io, const char *path, uint8_t key[CUSTOMER_KEY], err *e) {
  buf text;
  size_t len = 0;
  buf_init_secret(&text, 4096);
  int rc = fs_read(io, path, 4096, &text, e);
  if (rc < 0) {
    err_wrap(e, "AWS_SSE_CUSTOMER_KEY_FILE");
  } else if (text.len == CUSTOMER_KEY) {
    memcpy(key, text.data, CUSTOMER_KEY);
  } else if (!text.data || !base64_decode(text.data, key, CUSTOMER_KEY, &len) ||
             len != CUSTOMER_KEY) {
    rc = err_set(e, ERR_FORMAT,
                 "%s (AWS_SSE_CUSTOMER_KEY_FILE) has neither 32 bytes nor the base64 of 32", path);
  }
  buf_free(&text);
  return rc;
}

static char *customer_line(const char *name, const void *bytes, size_t len) {
  buf text;
  buf_init_secret(&text, 256);
  buf_fmt(&text, "x-amz-server-side-encryption-customer-%s: ", name);
  base64_encode(bytes, len, false, &text);
  char *line = buf_failed(&text) ? NULL : secret_copy(text.data);
  buf_free(&text);
  return line;
}

static int set_customer(s3_store *s, const said *t, err *e) {
  uint8_t key[CUSTOMER_KEY], md5[HASH_MD5_BYTES];
  size_t len = 0;
  int rc = 0;
  if (!*t->customer_key && !*t->customer_file) return 0;
  if (*t->customer_key && *t->customer_file)
    return err_set(e, ERR_INVAL,
                   "AWS_SSE_CUSTOMER_KEY_BASE64 and AWS_SSE_CUSTOMER_KEY_FILE are both set: unset "
                   "one of them");
  if (*t->customer_file)
    rc = read_customer_key(s->base.io, t->customer_file, key, e);
  else if (!base64_decode(t->customer_key, key, sizeof key, &len) || len != sizeof key)
    rc = err_set(e, ERR_FORMAT, "AWS_SSE_CUSTOMER_KEY_BASE64 is not the base64 of 32 bytes");
  if (rc == 0) rc = hash_md5(key, sizeof key, md5, e);
  if (rc == 0) {
    char **lines = s->options.customer;
    lines[0] = secret_copy("x-amz-server-side-encryption-customer-algorithm: AES256");
    lines[1] = customer_line("key", key, sizeof key);
    lines[2] = customer_line("key-md5", md5, sizeof md5);
    if (!lines[0] || !lines[1] || !lines[2]) rc = err_set(e, ERR_NOMEM, "no memory for a key");
  }
  explicit_bzero(key, sizeof key);
  return rc;
}

/* What is archived cannot be read at once, so a restore would fail. */
static int set_class(s3_options *o, const said *t, err *e) {
  const char *name = t->storage_class;
  if (!*name) return 0;
  if (strcmp(name, "GLACIER") == 0 || strcmp(name, "DEEP_ARCHIVE") == 0)
    return err_set(e, ERR_INVAL,
                   "the storage class %s cannot be read at once: take GLACIER_IR, or have a "
                   "lifecycle rule move what is old",
                   name);
  if (name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")])
    return err_set(e, ERR_INVAL,
                   "AWS_STORAGE_CLASS (storage_class) has to be a name as STANDARD_IA");
  snprintf(o->storage_class, sizeof o->storage_class, "x-amz-storage-class: %.40s", name);
  return 0;
}

static int set_flags(s3_options *o, const said *t, err *e) {
  bool named = strcasecmp(t->payer, "requester") == 0;
  int pays = named ? 1 : flag(t->payer, 0, "AWS_REQUEST_PAYER (request_payer)", e);
  if (pays < 0) return pays;
  int sign = flag(t->sign, 1, "CKPT_S3_SIGN_BODY (sign_body)", e);
  if (sign < 0) return sign;
  int verify = flag(t->verify, 1, "tls_verify_certificates", e);
  if (verify == 0)
    return err_set(e, ERR_INVAL,
                   "tls_verify_certificates=false is refused: whoever is on the way could read and "
                   "change everything; name the server's authority by AWS_CA_BUNDLE");
  o->requester_pays = pays;
  o->body_unsigned = !sign;
  return verify < 0 ? verify : 0;
}

/* ---- the way there ---- */

static bool is_address(const char *host) {
  return *host == '[' || strspn(host, "0123456789.") == strcspn(host, ":/");
}

/* pyarrow takes HOST[:PORT] and a scheme apart, or both in one. The text is not shown: somebody may
 * have put a password into it. */
static int set_endpoint(credentials *who, const said *t, err *e) {
  const char *host = t->endpoint, *sep = strstr(host, "://");
  bool http = strcmp(t->scheme, "http") == 0, https = strcmp(t->scheme, "https") == 0;
  if (*t->scheme && !http && !https)
    return err_set(e, ERR_INVAL, "\"scheme=\" in the target has to be http or https");
  if (!*host && http)
    return err_set(e, ERR_INVAL,
                   "\"scheme=http\" in the target goes with \"endpoint_override=HOST:PORT\" alone");
  if (!*host) return 0;
  if (sep) {
    bool plain = strncmp(host, "http://", 7) == 0, tls = strncmp(host, "https://", 8) == 0;
    if ((!plain && !tls) || (plain && https) || (tls && http))
      return err_set(e, ERR_INVAL,
                     "\"endpoint_override=\" and \"scheme=\" in the target do not agree");
    http = plain;
    host = sep + 3;
  }
  size_t len = strlen(host);
  while (len > 0 && host[len - 1] == '/') len--;
  if (len == 0 || *host == '/' || strpbrk(host, "?#@ \\"))
    return err_set(e, ERR_INVAL,
                   "\"endpoint_override=\" in the target has to be HOST[:PORT] or a URL of both");
  snprintf(who->endpoint, sizeof who->endpoint, "http%s://%.*s", http ? "" : "s", (int)len, host);
  const char *style = getenv("AWS_S3_ADDRESSING_STYLE");
  bool in_host = strstr(host, ".amazonaws.com") || (style && strcmp(style, "virtual") == 0);
  who->path_style = is_address(host) || !in_host;
  return 0;
}

static int set_way(credentials *who, const said *t, err *e) {
  if (t->region[strspn(t->region, "abcdefghijklmnopqrstuvwxyz0123456789-")])
    return err_set(e, ERR_INVAL, "\"region=\" in the target is no name of a region");
  if (*t->region) memcpy(who->region, t->region, sizeof t->region);
  if (*t->ca_file) snprintf(who->ca_file, sizeof who->ca_file, "%s", t->ca_file);
  int rc = set_endpoint(who, t, e);
  int in_host = rc < 0 ? rc : flag(t->force_virtual, UNSAID, "force_virtual_addressing", e);
  if (in_host < 0) return in_host;
  const char *host = *who->endpoint ? strstr(who->endpoint, "://") + 3 : "";
  if (in_host != UNSAID) who->path_style = in_host ? *host && is_address(host) : *host != 0;
  return 0;
}

/* Gives what the environment and the query say; free it with secret_free(), on failure too. */
static int hear(const uri *where, said **out, err *e) {
  *out = secret_alloc(sizeof **out);
  if (!*out) return err_set(e, ERR_NOMEM, "no memory for a store");
  int rc = of_environment(*out, e);
  return rc < 0 ? rc : of_query(*out, where->query, e);
}

int s3_options_open(s3_store *s, const uri *where, err *e) {
  said *t;
  int rc = hear(where, &t, e);
  if (rc == 0) rc = set_customer(s, t, e);
  if (rc == 0) rc = set_sse(&s->options, t, s->options.customer[0], e);
  if (rc == 0) rc = set_class(&s->options, t, e);
  if (rc == 0) rc = set_flags(&s->options, t, e);
  secret_free(t);
  return rc;
}

int s3_options_way(s3_store *s, const uri *where, err *e) {
  said *t;
  int rc = hear(where, &t, e);
  if (rc == 0) rc = set_way(&s->who, t, e);
  secret_free(t);
  return rc;
}

void s3_options_forget(s3_options *o) {
  for (int i = 0; i < 3; i++) secret_free(o->customer[i]);
}

/* ---- of one request ---- */

static bool asks(const s3_request *r, const char *name) {
  for (const char *const *q = r->query; q && *q; q += 2)
    if (strcmp(*q, name) == 0) return true;
  return false;
}

/* Our own records are small, read at each start and soon replaced: classes for what is seldom read
 * charge for 128 KiB and 30 days at least. */
static bool is_record(const char *path) {
  return strncmp(path, ".ckpt/", 6) == 0 || strstr(path, "/.ckpt/");
}

int s3_options_headers(const s3_store *s, const s3_request *r, bool https, const char **lines,
                       size_t *count, err *e) {
  const s3_options *o = &s->options;
  bool put = strcmp(r->method, "PUT") == 0, post = strcmp(r->method, "POST") == 0;
  bool makes = (put && !asks(r, "partNumber")) || (post && asks(r, "uploads"));
  bool reads = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
  bool object = *r->path && (put || post || reads);
  size_t n = *count;
  if (o->requester_pays) lines[n++] = "x-amz-request-payer: requester";
  if (object && makes && *o->sse) lines[n++] = o->sse;
  if (object && makes && *o->kms_key) lines[n++] = o->kms_key;
  if (object && makes && *o->bucket_key) lines[n++] = o->bucket_key;
  if (object && makes && *o->storage_class && !is_record(r->path)) lines[n++] = o->storage_class;
  if (object && o->customer[0]) {
    if (!https)
      return err_set(e, ERR_ACCESS,
                     "a key of the customer's (AWS_SSE_CUSTOMER_KEY_...) goes over TLS alone: give "
                     "an endpoint of https://");
    for (int i = 0; i < 3; i++) lines[n++] = o->customer[i];
  }
  *count = n;
  return 0;
}
