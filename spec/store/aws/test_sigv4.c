/* Signatures, against what AWS has published and against a verifier that knows only the rule. */
#include "with_cmocka.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "prims/hash.h"
#include "prims/http.h"
#include "server.h"
#include "store/aws/sigv4.h"

static const char empty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/* ---- published values ---- */

static const sigv4_key example = {.access = "AKIAIOSFODNN7EXAMPLE",
                                  .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                  .region = "us-east-1"};

static void signature_is(sigv4_request r, const char *target, const char *names, const char *hex) {
  buf to, headers;
  char want[400];
  buf_init(&to, 4096);
  buf_init(&headers, 4096);
  r.host = "examplebucket.s3.amazonaws.com";
  r.time_ns = INT64_C(1369353600) * 1000000000;
  assert_int_equal(sigv4_sign(&example, &r, &to, &headers, NULL), 0);
  snprintf(want, sizeof want,
           "\nauthorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/"
           "s3/aws4_request,SignedHeaders=%s,Signature=%s\n",
           names, hex);
  assert_string_equal(to.data, target);
  assert_non_null(strstr(headers.data, want));
  assert_non_null(strstr(headers.data, "x-amz-date: 20130524T000000Z\n"));
  assert_int_equal(strncmp(headers.data, "host: examplebucket.s3.amazonaws.com\n", 37), 0);
  buf_free(&to);
  buf_free(&headers);
}

static void the_examples_that_aws_publishes_come_out(void **unused) {
  const char *range[] = {"range:bytes=0-9", NULL};
  signature_is(
      (sigv4_request){.method = "GET", .path = "/test.txt", .headers = range, .payload = empty},
      "/test.txt", "host;range;x-amz-content-sha256;x-amz-date",
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  const char *put[] = {"x-amz-storage-class: REDUCED_REDUNDANCY",
                       "date: Fri, 24 May 2013 00:00:00 GMT", NULL};
  signature_is(
      (sigv4_request){.method = "PUT",
                      .path = "/test$file.text",
                      .headers = put,
                      .payload =
                          "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"},
      "/test%24file.text", "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  const char *lifecycle[] = {"lifecycle", "", NULL};
  signature_is((sigv4_request){.method = "GET", .path = "/", .query = lifecycle, .payload = empty},
               "/?lifecycle=", "host;x-amz-content-sha256;x-amz-date",
               "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  const char *list[] = {"prefix", "J", "max-keys", "2", NULL};
  signature_is((sigv4_request){.method = "GET", .path = "/", .query = list, .payload = empty},
               "/?max-keys=2&prefix=J", "host;x-amz-content-sha256;x-amz-date",
               "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/* ---- the verifier ---- */

static server verifier;
static http *h;
static char token[2049];
static sigv4_key key = {
    .access = "AKTEST", .secret = "s/e+c=r et", .token = token, .region = "eu-north-1"};

static int start(void **unused) {
  unsetenv("http_proxy");
  memset(token, 'T', sizeof token - 1);
  memcpy(token + 1000, "/+=", 3);
  verifier = server_start("verifier.py", (const char *const[]){key.secret, "--token", token, NULL});
  return http_open(&h, NULL);
}

static int stop(void **unused) {
  http_close(h);
  server_stop(&verifier);
  return 0;
}

/* Signs and sends it; what the verifier says is left in `said`. Returns the status. */
static int judge(sigv4_request r, const char *body, size_t len, buf *said) {
  buf url, lines;
  char host[64];
  const char *headers[HTTP_HEADERS_MAX] = {0};
  size_t count = 0;
  snprintf(host, sizeof host, "127.0.0.1:%d", verifier.port);
  buf_init(&url, 1 << 16);
  buf_init(&lines, 1 << 16);
  buf_fmt(&url, "http://%s", host);
  r.host = host;
  r.time_ns = io_system()->now(io_system(), IO_WALL);
  assert_int_equal(sigv4_sign(&key, &r, &url, &lines, NULL), 0);
  for (char *line = lines.data, *end; (end = strchr(line, '\n')); line = end + 1) {
    *end = 0;
    headers[count++] = line;
  }
  for (const char *const *more = r.headers; more && *more; more++) headers[count++] = *more;
  http_request q = {
      .method = r.method, .url = url.data, .headers = headers, .body = body, .len = len};
  http_response a = {0};
  buf_init(&a.headers, 4096);
  buf_init(&a.body, 1 << 16);
  http_call *call;
  assert_int_equal(http_start(h, &q, &a, &call, NULL), 0);
  assert_int_equal(http_wait(call, NULL), 0);
  buf_clear(said);
  if (a.body.data) buf_str(said, a.body.data);
  buf_free(&a.headers);
  buf_free(&a.body);
  buf_free(&url);
  buf_free(&lines);
  return a.status;
}

static void is_good(sigv4_request r) {
  buf said;
  buf_init(&said, 1 << 16);
  if (judge(r, NULL, 0, &said) != 200) fail_msg("%s %s: %s", r.method, r.path, said.data);
  buf_free(&said);
}

static void each_byte_of_a_key_is_signed_as_it_is_sent(void **unused) {
  for (int c = 1; c < 256; c++) {
    char path[] = "/bucket/a?b";
    path[9] = (char)c;
    is_good((sigv4_request){.method = "GET", .path = path, .payload = empty});
  }
  static const char *const odd[] = {"/b/a b+c=d(e)!*'f:g@h,i&j$k%l~m",
                                    "/b/k\xc3\xa4se/\xe2\x82\xac",
                                    "/b//double///slash//",
                                    "/b/./dot/../dotdot",
                                    "/b/%2F%20 literal",
                                    "/b/new\nline\r\ttab",
                                    "/b/\xff\xfe not UTF-8",
                                    "/b/#hash?mark;semi",
                                    "/"};
  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
    is_good((sigv4_request){.method = "HEAD", .path = odd[i], .payload = empty});
}

static void queries_in_any_order_are_signed(void **unused) {
  const char *const q[] = {"prefix",
                           "a b+c/d=e&f",
                           "list-type",
                           "2",
                           "delimiter",
                           "/",
                           "continuation-token",
                           "1/+==",
                           "a-b",
                           "1",
                           "a",
                           "2",
                           "a",
                           "1",
                           "encoding-type",
                           "url",
                           "start-after",
                           "\xc3\xa4 \xff",
                           "uploads",
                           "",
                           "A",
                           "upper",
                           "a=b",
                           "x",
                           "a.b",
                           "y",
                           NULL};
  is_good((sigv4_request){.method = "GET", .path = "/b", .query = q, .payload = empty});
  const char *const part[] = {"uploadId", "x~y/z+", "partNumber", "10000", NULL};
  is_good((sigv4_request){.method = "PUT", .path = "/b/k", .query = part, .payload = empty});
}

static void headers_whose_names_begin_alike_are_signed(void **unused) {
  const char *const headers[] = {"x-amz-copy-source-range: bytes=0-1",
                                 "x-amz-copy-source: /b/k",
                                 "x-amz-meta-a-b:   two   spaces  inside  ",
                                 "x-amz-meta-a: 1",
                                 "x-amz-meta-ckpt-nonce:no-space",
                                 "content-md5: 1B2M2Y8AsgTpgAmY7PhCfg==",
                                 "if-none-match: *",
                                 NULL};
  is_good((sigv4_request){.method = "PUT", .path = "/b/k", .headers = headers, .payload = empty});
}

/* Random requests: keys, queries, headers and bodies of all bytes that may be in them. */
static void random_requests_are_good(void **unused) {
  static const char *const methods[] = {"GET", "PUT", "POST", "DELETE"};
  srand(4);
  for (int round = 0; round < 150; round++) {
    char path[64] = "/b/", texts[12][24], lines[6][64], body[64], hex[HASH_HEX_MAX];
    const char *query[13] = {0}, *headers[7] = {0};
    size_t len = (size_t)(rand() % 50), body_len = (size_t)rand() % sizeof body;
    for (size_t i = 0; i < len; i++) path[3 + i] = (char)(1 + rand() % 255);
    for (int i = 0, n = rand() % 6; i < n; i++) {
      snprintf(texts[2 * i], 24, "%c%s%d", 'a' + rand() % 3, rand() % 2 ? "-" : "", rand() % 20);
      snprintf(texts[2 * i + 1], 24, "%c%c=%d&+ /", 1 + rand() % 255, 1 + rand() % 255, rand());
      query[2 * i] = texts[2 * i];
      query[2 * i + 1] = texts[2 * i + 1];
    }
    for (int i = 0, n = rand() % 6; i < n; i++) {
      snprintf(lines[i], 64, "x-amz-meta-%.*s%c:%*d  %d", rand() % 3, "a-b", 'p' + i, rand() % 5,
               rand() % 9, rand());
      headers[i] = lines[i];
    }
    for (size_t i = 0; i < body_len; i++) body[i] = (char)rand();
    int m = rand() % 4;
    bool with_body = m == 1 || m == 2;
    assert_int_equal(hash_sha256_hex(body, with_body ? body_len : 0, hex, NULL), 0);
    sigv4_request r = {.method = methods[m],
                       .path = path,
                       .query = query,
                       .headers = headers,
                       .payload = rand() % 2 ? hex : SIGV4_UNSIGNED};
    buf said;
    buf_init(&said, 1 << 16);
    if (judge(r, with_body ? body : NULL, with_body ? body_len : 0, &said) != 200)
      fail_msg("round %d: %s", round, said.data);
    buf_free(&said);
  }
}

/* Else the tests above would prove nothing. */
static void the_verifier_refuses_what_is_wrong(void **unused) {
  buf said;
  buf_init(&said, 1 << 16);
  sigv4_request r = {.method = "PUT", .path = "/b/k", .payload = empty};
  assert_int_equal(judge(r, "x", 1, &said), 403);
  assert_non_null(strstr(said.data, "another body"));
  sigv4_key right = key;
  key.secret = "wrong";
  assert_int_equal(judge(r, NULL, 0, &said), 403);
  assert_non_null(strstr(said.data, "signature differs"));
  key = right;
  key.token = NULL;
  assert_int_equal(judge(r, NULL, 0, &said), 403);
  assert_non_null(strstr(said.data, "token"));
  key = right;
  key.access = "";
  assert_int_equal(judge(r, NULL, 0, &said), 403);
  assert_non_null(strstr(said.data, "no authorization"));
  key = right;
  assert_int_equal(judge(r, NULL, 0, &said), 200);
  buf_free(&said);
}

/* ---- bounds ---- */

static void without_a_key_nothing_is_signed(void **unused) {
  buf target, headers;
  buf_init(&target, 100);
  buf_init(&headers, 100);
  const sigv4_key nobody = {.region = "us-east-1"};
  const char *query[] = {"b", "2", "a", "1", NULL};
  sigv4_request r = {
      .method = "GET", .host = "h:1", .path = "/x y", .query = query, .payload = empty};
  assert_int_equal(sigv4_sign(&nobody, &r, &target, &headers, NULL), 0);
  assert_string_equal(target.data, "/x%20y?a=1&b=2");
  assert_string_equal(headers.data, "host: h:1\n");
  buf_free(&target);
  buf_free(&headers);
}

static void what_is_too_long_is_refused_and_no_secret_shown(void **unused) {
  enum { LONG = 70000 };
  char *text = malloc(LONG + 1);
  assert_non_null(text);
  memset(text, 's', LONG);
  text[LONG] = 0;
  const char *query[2 * 70 + 1] = {0};
  for (int i = 0; i < 140; i++) query[i] = "x";
  sigv4_request plain = {.method = "GET", .host = "h", .path = "/", .payload = empty};
  sigv4_request many = plain, large = plain;
  many.query = query;
  const char *headers[] = {text, NULL};
  large.headers = headers;
  text[1] = ':';
  sigv4_key secret = key, region = key;
  secret.secret = text;
  region.region = text;
  const struct {
    const sigv4_key *key;
    const sigv4_request *r;
    size_t room;
  } bad[] = {{&key, &many, 1 << 20},
             {&key, &large, 1 << 20},
             {&secret, &plain, 1 << 20},
             {&region, &plain, 1 << 20},
             {&key, &plain, 100}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    err e = {0};
    buf target, lines;
    buf_init(&target, bad[i].room);
    buf_init(&lines, bad[i].room);
    assert_int_equal(sigv4_sign(bad[i].key, bad[i].r, &target, &lines, &e), ERR_LIMIT);
    assert_null(strstr(e.text, "sss"));
    assert_int_equal(e.code, ERR_LIMIT);
    buf_free(&target);
    buf_free(&lines);
  }
  free(text);
}

static void encoding_keeps_a_slash_only_where_it_shall(void **unused) {
  buf out;
  buf_init(&out, 100);
  sigv4_encode("a/b c~\xc3\xa4", 0, &out);
  assert_string_equal(out.data, "a/b%20c~%C3%A4");
  buf_clear(&out);
  sigv4_encode("a/b", 1, &out);
  assert_string_equal(out.data, "a%2Fb");
  buf_free(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_examples_that_aws_publishes_come_out),
      cmocka_unit_test(each_byte_of_a_key_is_signed_as_it_is_sent),
      cmocka_unit_test(queries_in_any_order_are_signed),
      cmocka_unit_test(headers_whose_names_begin_alike_are_signed),
      cmocka_unit_test(random_requests_are_good),
      cmocka_unit_test(the_verifier_refuses_what_is_wrong),
      cmocka_unit_test(without_a_key_nothing_is_signed),
      cmocka_unit_test(what_is_too_long_is_refused_and_no_secret_shown),
      cmocka_unit_test(encoding_keeps_a_slash_only_where_it_shall),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
