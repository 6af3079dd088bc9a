/* What a user says of encryption, storage class, who pays, region and endpoint, and what then goes
 * out with each kind of request: spec/servers/verifier.py notes it, between the store and a server.
 * spec/store/options_spec.sh starts the server and runs this with
 *   CKPT_TEST_S3  the server's endpoint
 * and spec/store/sse_spec.sh with
 *   CKPT_TEST_S3_KMS  that of a server which encrypts, over TLS */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common_memory.h"
#include "server.h"
#include "store/store.h"
#include "store_place.h"
#include "tmpdir.h"

#define SECRET "gate/sec+ret="
#define CA "spec/data/tls/ca.pem"
/* 32 times 'k', and its MD5. */
#define KEY "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define KEY64 "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
#define KEY_MD5 "mT2HRsMGJ5IX5C+0rreZ8Q=="
#define KMS_LINE "x-amz-server-side-encryption-aws-kms-key-id"
#define SSE_LINE "\"x-amz-server-side-encryption\""
#define CUSTOMER_LINE "x-amz-server-side-encryption-customer-key\": \"" KEY64

#define SAID(f) cmocka_unit_test_setup_teardown(f, forget, forget)

static server plain, tls, region;
static char port[16], notes[256];
static char *dir;

static int forget(void **unused) {
  static const char *const names[] = {
      "AWS_CA_BUNDLE",      "AWS_S3_ADDRESSING_STYLE",    "AWS_ENDPOINT_URL",
      "AWS_PROFILE",        "AWS_NO_SIGN_REQUEST",        "http_proxy",
      "https_proxy",        "AWS_ENDPOINT_URL_S3",        "no_proxy",
      "AWS_SESSION_TOKEN",  "AWS_DEFAULT_REGION",         "AWS_SERVER_SIDE_ENCRYPTION",
      "AWS_SSE_KMS_KEY_ID", "AWS_SSE_BUCKET_KEY_ENABLED", "AWS_SSE_CUSTOMER_KEY_BASE64",
      "AWS_STORAGE_CLASS",  "AWS_SSE_CUSTOMER_KEY_FILE",  "AWS_REQUEST_PAYER",
      "AWS_REGION",         "CKPT_S3_SIGN_BODY"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unsetenv(names[i]);
  setenv("AWS_ACCESS_KEY_ID", "GATE", 1);
  setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
  setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere", 1);
  setenv("AWS_CONFIG_FILE", "/nowhere", 1);
  unlink(notes);
  return 0;
}

static int open_as(const char *text, store **out, err *e) {
  uri where;
  *out = NULL;
  int rc = uri_parse(text, &where, e);
  return rc < 0 ? rc : store_open(&where, io_system(), NULL, out, e);
}

/* A place of its own in the bucket, with that query. */
static store *open_new(const char *query) {
  static int names;
  char text[1024];
  store *s;
  err e = {0};
  snprintf(text, sizeof text, "s3://ckpt-test/options/%d/%d%s", (int)getpid(), ++names, query);
  if (open_as(text, &s, &e) < 0) fail_msg("%s: %s", text, e.text);
  return s;
}

static const char *at_gate(char text[128], const char *more, int number) {
  snprintf(text, 128, "?scheme=http&endpoint_override=127.0.0.1:%d%s", number, more);
  return text;
}

/* The same over TLS, with the bucket in the host. */
static void over_tls(void) {
  char text[128];
  snprintf(text, sizeof text, "https://s3.localhost:%d", tls.port);
  setenv("AWS_ENDPOINT_URL", text, 1);
  setenv("AWS_CA_BUNDLE", CA, 1);
  setenv("AWS_S3_ADDRESSING_STYLE", "virtual", 1);
}

static void good(int rc, const char *what, const err *e) {
  if (rc < 0) fail_msg("%s: %s", what, e->text);
}

static int count(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  ++*(int *)ctx;
  return 0;
}

/* One of each kind of request. */
static void all_requests(store *s) {
  enum { LARGE = 20 << 20 };
  err e = {0};
  store_object o;
  char got[4];
  int listed = 0;
  char *large = calloc(1, LARGE);
  assert_non_null(large);
  good(s->ops->put(s, "d/small", "text", 4, STORE_IF_ABSENT, &e), "put", &e);
  good(s->ops->put(s, "d/.ckpt/log/1", "text", 4, STORE_IF_ABSENT, &e), "put a record", &e);
  store_must_hold(s, "d/small", "text");
  good(s->ops->head(s, "d/small", &o, &e), "head", &e);
  assert_int_equal(s->ops->read(s, "d/small", 1, got, 2, &e), 2);
  good(store_stream(s, "d/large", large, LARGE, 1 << 20, false), "a large object", &e);
  good(s->ops->list(s, "", false, count, &listed, &e), "list", &e);
  assert_int_equal(listed, 3);
  good(s->ops->remove(s, "d/small", &e), "remove", &e);
  good(s->ops->remove_prefix(s, "d", &e), "remove_prefix", &e);
  free(large);
}

typedef struct noted {
  int all, with; /* requests of the kind, and those of them with the word */
} noted;

/* Counts the requests whose line begins so and has `kind` ("" fits all; "!x": not x). */
static noted count_notes(const char *method, const char *kind, const char *word) {
  size_t len;
  noted n = {0};
  char *log = read_file(notes, &len), begin[16];
  snprintf(begin, sizeof begin, "[\"%s\"", method);
  for (char *line = log ? strtok(log, "\n") : NULL; line; line = strtok(NULL, "\n")) {
    char target[600];
    snprintf(target, sizeof target, "%.*s", (int)strcspn(line, "{"), line);
    bool fits = *kind == '!' ? !strstr(target, kind + 1) : strstr(target, kind) != NULL;
    if (strncmp(line, begin, strlen(begin)) != 0 || !fits) continue;
    n.all++;
    n.with += strstr(line, word) != NULL;
  }
  free(log);
  return n;
}

static void all_have(const char *method, const char *kind, const char *word) {
  noted n = count_notes(method, kind, word);
  if (n.all == 0 || n.with != n.all)
    fail_msg("%s %s: %d of %d have %s", method, kind, n.with, n.all, word);
}

static void none_has(const char *method, const char *kind, const char *word) {
  noted n = count_notes(method, kind, word);
  if (n.all == 0 || n.with) fail_msg("%s %s: %d of %d have %s", method, kind, n.with, n.all, word);
}

/* ---- what goes out ---- */

static void kms_class_and_payer_go_with_the_requests_that_want_them(void **unused) {
  over_tls();
  setenv("AWS_SERVER_SIDE_ENCRYPTION", "aws:kms", 1);
  setenv("AWS_SSE_KMS_KEY_ID", "arn:aws:kms:eu-west-1:1:key/a-b", 1);
  setenv("AWS_SSE_BUCKET_KEY_ENABLED", "true", 1);
  setenv("AWS_STORAGE_CLASS", "STANDARD_IA", 1);
  setenv("AWS_REQUEST_PAYER", "requester", 1);
  store *s = open_new("");
  all_requests(s);
  static const char *const made[] = {SSE_LINE ": \"aws:kms\"",
                                     KMS_LINE "\": \"arn:aws:kms:eu-west-1:1:key/a-b\"",
                                     "bucket-key-enabled\": \"true\""};
  for (int i = 0; i < 3; i++) {
    all_have("PUT", "!partNumber", made[i]);
    all_have("POST", "uploads=", made[i]);
    none_has("PUT", "partNumber", made[i]);
    none_has("GET", "", made[i]);
    none_has("HEAD", "", made[i]);
    none_has("POST", "uploadId", made[i]);
  }
  all_have("PUT", "small", "\"x-amz-storage-class\": \"STANDARD_IA\"");
  all_have("POST", "uploads=", "\"x-amz-storage-class\": \"STANDARD_IA\"");
  none_has("PUT", ".ckpt/", "x-amz-storage-class");
  none_has("PUT", "partNumber", "x-amz-storage-class");
  static const char *const methods[] = {"PUT", "GET", "HEAD", "POST", "DELETE"};
  for (int i = 0; i < 5; i++) all_have(methods[i], "", "\"x-amz-request-payer\": \"requester\"");
  store_close(s);
}

static void a_key_of_the_customers_goes_with_every_touch_of_an_object(void **unused) {
  over_tls();
  write_file(tmpdir_path(dir, "key"), KEY);
  setenv("AWS_SSE_CUSTOMER_KEY_FILE", tmpdir_path(dir, "key"), 1);
  setenv("AWS_SERVER_SIDE_ENCRYPTION", "sse-c", 1);
  store *s = open_new("");
  all_requests(s);
  static const char *const lines[] = {"customer-algorithm\": \"AES256\"", CUSTOMER_LINE,
                                      ("customer-key-md5\": \"" KEY_MD5)};
  for (int i = 0; i < 3; i++) {
    all_have("PUT", "", lines[i]);
    all_have("HEAD", "/options/", lines[i]);
    all_have("GET", "/options/", lines[i]);
    all_have("POST", "uploads=", lines[i]);
    all_have("POST", "uploadId", lines[i]);
    none_has("GET", "list-type", lines[i]);
    none_has("DELETE", "", lines[i]);
    none_has("POST", "delete=", lines[i]);
  }
  none_has("PUT", "", SSE_LINE);
  store_close(s);
}

/* It comes first: others read what went out. */
static void no_core_file_has_a_key_of_the_customers(void **unused) {
  static const char kept[] = "what this looks for, and has to find";
  char *here = strdup(kept);
  assert_non_null(here);
  for (char *c = here; *c; c++) *c ^= COMMON_MEMORY_CHANGED;
  over_tls();
  write_file(tmpdir_path(dir, "key"), KEY);
  setenv("AWS_SSE_CUSTOMER_KEY_FILE", tmpdir_path(dir, "key"), 1);
  store *s = open_new("");
  assert_int_equal(store_put_text(s, "k", "x", STORE_REPLACE), 0);
  assert_int_equal(common_memory_has(kept), 1);             /* else it is blind */
  assert_int_equal(common_memory_has("t'agt'agt'agt'"), 0); /* the beginning of its base64 */
  store_close(s);
  assert_int_equal(common_memory_has("t'agt'agt'agt'"), 0);
  free(here);
}

static void the_key_may_stand_as_base64_in_file_or_variable(void **unused) {
  over_tls();
  write_file(tmpdir_path(dir, "key"), KEY64 "\n");
  setenv("AWS_SSE_CUSTOMER_KEY_FILE", tmpdir_path(dir, "key"), 1);
  store *s = open_new("");
  assert_int_equal(store_put_text(s, "k", "x", STORE_REPLACE), 0);
  store_close(s);
  unsetenv("AWS_SSE_CUSTOMER_KEY_FILE");
  setenv("AWS_SSE_CUSTOMER_KEY_BASE64", KEY64, 1);
  s = open_new("");
  assert_int_equal(store_put_text(s, "k", "x", STORE_REPLACE), 0);
  store_close(s);
  all_have("PUT", "", CUSTOMER_LINE);
}

static void such_a_key_never_goes_over_plain_http(void **unused) {
  char text[128];
  err e = {0};
  setenv("AWS_SSE_CUSTOMER_KEY_BASE64", KEY64, 1);
  store *s = open_new(at_gate(text, "", plain.port));
  assert_int_equal(s->ops->put(s, "k", "x", 1, STORE_REPLACE, &e), ERR_ACCESS);
  assert_non_null(strstr(e.text, "TLS"));
  assert_null(strstr(e.text, KEY64));
  assert_int_equal(count_notes("PUT", "", "").all, 0);
  store_close(s);
}

/* ---- said in the target ---- */

static void the_target_says_where_and_how_and_wins(void **unused) {
  char text[128];
  setenv("AWS_ENDPOINT_URL", "http://nowhere.invalid", 1);
  setenv("AWS_REGION", "eu-north-1", 1);
  setenv("AWS_SERVER_SIDE_ENCRYPTION", "aws:kms", 1);
  at_gate(text, "&region=us-west-2&server_side_encryption=AES256", plain.port);
  store *s = open_new(text);
  all_requests(s);
  all_have("PUT", "small", SSE_LINE ": \"AES256\"");
  all_have("GET", "", "/us-west-2/s3/aws4_request");
  all_have("PUT", "", "/us-west-2/s3/aws4_request");
  store_close(s);
}

static void what_pyarrow_knows_and_we_need_not_is_passed_over(void **unused) {
  char text[128], query[300];
  snprintf(query, sizeof query, "%s%s", at_gate(text, "", plain.port),
           "&allow_bucket_creation=true&allow_bucket_deletion=1&smart_defaults=x&"
           "tls_verify_certificates=true&sign_body=no&storage_class=STANDARD_IA");
  store *s = open_new(query);
  all_requests(s);
  all_have("PUT", "", "UNSIGNED-PAYLOAD");
  all_have("PUT", "partNumber", "UNSIGNED-PAYLOAD");
  store_close(s);
  unlink(notes);
  s = open_new(at_gate(text, "", plain.port));
  assert_int_equal(store_put_text(s, "k", "x", STORE_REPLACE), 0);
  none_has("PUT", "", "UNSIGNED-PAYLOAD");
  store_close(s);
}

static void a_certificate_of_the_target_is_taken(void **unused) {
  char query[300];
  snprintf(query, sizeof query,
           "?endpoint_override=https%%3A%%2F%%2Fs3.localhost:%d&tls_ca_file_path=%s&"
           "force_virtual_addressing=true",
           tls.port, CA);
  store *s = open_new(query);
  all_requests(s);
  store_close(s);
}

static void what_is_not_known_or_wrong_is_refused_by_name(void **unused) {
  static const struct {
    const char *query, *word;
  } bad[] = {{"regoin=x", "\"regoin=...\""},
             {"regoin=x", "endpoint_override"},
             {"region=r&region=r", "twice"},
             {"region=EU_1", "region"},
             {"scheme=http", "endpoint_override=HOST:PORT"},
             {"scheme=ftp", "http or https"},
             {"scheme=http&endpoint_override=https://h", "agree"},
             {"endpoint_override=me:hidden@h", "endpoint_override"},
             {"endpoint_override=h/%3Fhidden", "endpoint_override"},
             {"server_side_encryption=none", "AES256"},
             {"server_side_encryption=AES256&sse_kms_key_id=k", "aws:kms"},
             {"server_side_encryption=sse-c", "AWS_SSE_CUSTOMER_KEY_FILE"},
             {"sse_kms_key_id=a%20b", "sse_kms_key_id"},
             {"sse_bucket_key_enabled=maybe&sse_kms_key_id=k", "true or false"},
             {"storage_class=DEEP_ARCHIVE", "GLACIER_IR"},
             {"storage_class=a:b", "STANDARD_IA"},
             {"request_payer=nobody", "request_payer"},
             {"sign_body=perhaps", "sign_body"},
             {"tls_verify_certificates=false", "AWS_CA_BUNDLE"},
             {"region=%0d%0ax", "region"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[256];
    store *s;
    err e = {0};
    snprintf(text, sizeof text, "s3://ckpt-test/x?%s", bad[i].query);
    if (open_as(text, &s, &e) != ERR_INVAL) fail_msg("%s: %s", text, e.text);
    if (!strstr(e.text, bad[i].word)) fail_msg("%s: %s", text, e.text);
    assert_null(strstr(e.text, "hidden"));
  }
}

static void a_bad_key_of_the_customers_is_refused_unseen(void **unused) {
  store *s;
  err e = {0};
  setenv("AWS_SSE_CUSTOMER_KEY_BASE64", "aGlkZGVu", 1);
  assert_int_equal(open_as("s3://ckpt-test/x", &s, &e), ERR_FORMAT);
  assert_null(strstr(e.text, "aGlkZGVu"));
  setenv("AWS_SSE_CUSTOMER_KEY_BASE64", KEY64, 1);
  setenv("AWS_SSE_CUSTOMER_KEY_FILE", "/nowhere", 1);
  assert_int_equal(open_as("s3://ckpt-test/x", &s, &e), ERR_INVAL);
  unsetenv("AWS_SSE_CUSTOMER_KEY_BASE64");
  assert_int_equal(open_as("s3://ckpt-test/x", &s, &e), ERR_NOENT);
  assert_non_null(strstr(e.text, "AWS_SSE_CUSTOMER_KEY_FILE"));
  write_file(tmpdir_path(dir, "key"), "hidden");
  setenv("AWS_SSE_CUSTOMER_KEY_FILE", tmpdir_path(dir, "key"), 1);
  assert_int_equal(open_as("s3://ckpt-test/x", &s, &e), ERR_FORMAT);
  assert_null(strstr(e.text, "hidden"));
  write_file(tmpdir_path(dir, "key"), KEY);
  setenv("AWS_SERVER_SIDE_ENCRYPTION", "AES256", 1);
  assert_int_equal(open_as("s3://ckpt-test/x", &s, &e), ERR_INVAL);
  assert_null(strstr(e.text, KEY));
}

/* ---- the region ---- */

/* Nobody said one; the bucket is in another than the usual, and the first request is one whose answer
 * cannot say so. */
static void the_region_is_found_out_once(void **unused) {
  char text[128];
  store *s = open_new(at_gate(text, "", region.port));
  store_object o;
  err e = {0};
  assert_int_equal(s->ops->head(s, "k", &o, &e), ERR_NOENT);
  assert_int_equal(count_notes("HEAD", "", "/us-east-1/s3/").with, 2); /* object and bucket */
  all_requests(s);
  assert_int_equal(count_notes("HEAD", "", "/us-east-1/s3/").with, 2);
  all_have("PUT", "", "/ap-south-2/s3/");
  all_have("GET", "", "/ap-south-2/s3/");
  store_close(s);
  unlink(notes);
  s = open_new(at_gate(text, "&region=sa-east-1", region.port)); /* a wrong one is corrected, too */
  all_requests(s);
  assert_int_equal(count_notes("PUT", "", "/sa-east-1/s3/").with, 1);
  store_close(s);
}

/* ---- proxies ---- */

static void a_host_that_no_proxy_names_is_asked_directly(void **unused) {
  char text[128];
  err e = {0};
  setenv("http_proxy", "http://user:hidden@127.0.0.1:9", 1); /* nobody listens there */
  store *s = open_new(at_gate(text, "", plain.port));
  assert_int_equal(s->ops->put(s, "k", "x", 1, STORE_REPLACE, &e), ERR_IO);
  assert_null(strstr(e.text, "hidden"));
  setenv("no_proxy", "localhost,127.0.0.1", 1);
  good(s->ops->put(s, "k", "x", 1, STORE_REPLACE, &e), "put", &e);
  store_close(s);
}

/* ---- a server that encrypts ---- */

static const char *encrypting;

static void at_server(void) {
  forget(NULL);
  setenv("AWS_ENDPOINT_URL", encrypting, 1);
  setenv("AWS_CA_BUNDLE", CA, 1);
  setenv("AWS_ACCESS_KEY_ID", "testkey", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "testsecret", 1);
}

static void objects_encrypted_by_the_server_are_made_and_read(void **unused) {
  static const char *const kinds[] = {"AES256", "aws:kms"};
  for (int i = 0; i < 2; i++) {
    at_server();
    setenv("AWS_SERVER_SIDE_ENCRYPTION", kinds[i], 1);
    if (i) setenv("AWS_SSE_KMS_KEY_ID", "ckpt-key", 1);
    store *s = open_new("");
    all_requests(s);
    store_close(s);
  }
}

/* It has one key: another name shows that ours really reached it. */
static void the_named_key_is_the_one_that_is_used(void **unused) {
  err e = {0};
  at_server();
  setenv("AWS_SSE_KMS_KEY_ID", "no-such-key", 1);
  store *s = open_new("");
  assert_true(s->ops->put(s, "k", "x", 1, STORE_REPLACE, &e) < 0);
  store_close(s);
}

static void what_a_customers_key_encrypts_is_read_by_it_alone(void **unused) {
  at_server();
  setenv("AWS_SSE_CUSTOMER_KEY_BASE64", KEY64, 1);
  store *s = open_new("");
  all_requests(s);
  store_close(s);
  const char *uri = "s3://ckpt-test/customer";
  assert_int_equal(open_as(uri, &s, NULL), 0);
  assert_int_equal(store_put_text(s, "k", "mine", STORE_REPLACE), 0);
  store_must_hold(s, "k", "mine");
  store_close(s);
  for (int i = 0; i < 2; i++) {
    store_object o;
    buf b;
    err e = {0};
    if (i)
      setenv("AWS_SSE_CUSTOMER_KEY_BASE64", "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg=", 1);
    else
      unsetenv("AWS_SSE_CUSTOMER_KEY_BASE64");
    assert_int_equal(open_as(uri, &s, NULL), 0);
    if (!s) abort();
    buf_init(&b, 100);
    assert_true(s->ops->get(s, "k", &b, &e) < 0);
    assert_true(s->ops->head(s, "k", &o, &e) < 0);
    if (i) assert_null(strstr(e.text, "eHh4"));
    if (i && !strstr(e.text, "AWS_SSE_CUSTOMER_KEY")) fail_msg("%s", e.text);
    buf_free(&b);
    store_close(s);
  }
}

static int at_an_encrypting_server(void) {
  const struct CMUnitTest tests[] = {
      SAID(objects_encrypted_by_the_server_are_made_and_read),
      SAID(the_named_key_is_the_one_that_is_used),
      SAID(what_a_customers_key_encrypts_is_read_by_it_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

static server gate(const char *a, const char *b, const char *c, const char *d) {
  const char *arguments[] = {SECRET, "--forward", port, "--note", notes, a, b, c, d, NULL, NULL};
  return server_start("verifier.py", arguments);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SAID(kms_class_and_payer_go_with_the_requests_that_want_them),
      SAID(no_core_file_has_a_key_of_the_customers),
      SAID(a_key_of_the_customers_goes_with_every_touch_of_an_object),
      SAID(the_key_may_stand_as_base64_in_file_or_variable),
      SAID(such_a_key_never_goes_over_plain_http),
      SAID(the_target_says_where_and_how_and_wins),
      SAID(what_pyarrow_knows_and_we_need_not_is_passed_over),
      SAID(a_certificate_of_the_target_is_taken),
      SAID(what_is_not_known_or_wrong_is_refused_by_name),
      SAID(a_bad_key_of_the_customers_is_refused_unseen),
      SAID(the_region_is_found_out_once),
      SAID(a_host_that_no_proxy_names_is_asked_directly),
  };
  const char *at = getenv("CKPT_TEST_S3");
  encrypting = getenv("CKPT_TEST_S3_KMS");
  if (encrypting) return at_an_encrypting_server();
  if (!at) {
    puts("1..0 # SKIP spec/store/options_spec.sh runs it, against a server");
    return 0;
  }
  snprintf(port, sizeof port, "%s", strrchr(at, ':') + 1);
  dir = tmpdir_new();
  snprintf(notes, sizeof notes, "%s", tmpdir_path(dir, "notes"));
  plain = gate(NULL, NULL, NULL, NULL);
  tls = gate("--tls", "spec/data/tls/server.pem", "--domain", "s3.localhost");
  region = gate("--region", "ap-south-2", NULL, NULL);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  server_stop(&region);
  server_stop(&tls);
  server_stop(&plain);
  tmpdir_remove(dir);
  return failed;
}
