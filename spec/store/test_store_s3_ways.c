/* The ways to a bucket: plain and over TLS, with the bucket in the path and in the host, through
 * proxies. Between the store and the server stands spec/servers/verifier.py, which lets through
 * only what is signed as the rule wants it. spec/store/ways_spec.sh starts the server and runs this
 * with CKPT_TEST_S3  the server's endpoint */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"
#include "store_place.h"
#include "store_suite.h"
#include "tmpdir.h"

#define SECRET "gate/sec+ret="
#define TOKEN "a/token+of==a/session"
#define CA "spec/data/tls/ca.pem"

static server plain, tls, proxied, proxy;
static char port[16];

static void endpoint(const char *scheme, const char *host, int number) {
  char text[128];
  snprintf(text, sizeof text, "%s://%s:%d", scheme, host, number);
  setenv("AWS_ENDPOINT_URL", text, 1);
}

/* What a way begins from: its own keys, and no more said than that. */
static int forget(void **unused) {
  static const char *const names[] = {
      "AWS_CA_BUNDLE", "AWS_S3_ADDRESSING_STYLE",     "AWS_ENDPOINT_URL",
      "AWS_PROFILE",   "AWS_NO_SIGN_REQUEST",         "http_proxy",
      "https_proxy",   "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE",
      "all_proxy",     "AWS_ENDPOINT_URL_S3",         "no_proxy"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unsetenv(names[i]);
  setenv("AWS_ACCESS_KEY_ID", "GATE", 1);
  setenv("AWS_SECRET_ACCESS_KEY", SECRET, 1);
  setenv("AWS_SESSION_TOKEN", TOKEN, 1);
  setenv("AWS_REGION", "eu-north-1", 1);
  return 0;
}

static void over_tls(void) {
  endpoint("https", "s3.localhost", tls.port);
  setenv("AWS_CA_BUNDLE", CA, 1);
  setenv("AWS_S3_ADDRESSING_STYLE", "virtual", 1);
}

static int count(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  ++*(int *)ctx;
  return 0;
}

static void good(int rc, const char *what, const err *e) {
  if (rc < 0) fail_msg("%s: %s", what, e->text);
}

/* One of each kind of request that the store makes, with keys that are hard to sign. */
static void all_requests_pass(void) {
  enum { LARGE = 20 << 20 };
  static const char *const keys[] = {"plain", "dir/a b+c=d(e)!*'f:g@h,i&j$k%l~m", "dir/k\xc3\xa4se",
                                     "dir/%2F%20", "dir/#hash?mark;semi"};
  enum { KEYS = sizeof keys / sizeof keys[0] };
  store_place p;
  err e = {0};
  store_object o;
  char got[4];
  store_place_scheme = "s3";
  store_place_make(&p, io_system());
  store *s = p.s;
  for (int i = 0; i < KEYS; i++) {
    good(s->ops->put(s, keys[i], "text", 4, STORE_IF_ABSENT, &e), "put", &e);
    assert_int_equal(s->ops->put(s, keys[i], "other", 5, STORE_IF_ABSENT, &e), ERR_EXISTS);
    good(s->ops->put(s, keys[i], "replaced", 8, STORE_REPLACE, &e), "replace", &e);
    store_must_hold(s, keys[i], "replaced");
    good(s->ops->head(s, keys[i], &o, &e), "head", &e);
    assert_int_equal(o.size, 8);
    assert_int_equal(s->ops->read(s, keys[i], 2, got, 4, &e), 4);
    assert_memory_equal(got, "plac", 4);
  }
  int listed = 0;
  good(s->ops->list(s, "dir", false, count, &listed, &e), "list", &e);
  assert_int_equal(listed, KEYS - 1);

  char *large = malloc(LARGE), *back = malloc(LARGE);
  assert_true(large && back);
  for (size_t i = 0; i < LARGE; i++) large[i] = (char)(i * 7 >> 4);
  good(store_stream(s, "large/one", large, LARGE, 1 << 20, false), "a large object", &e);
  for (size_t at = 0; at < LARGE;) {
    ssize_t n = s->ops->read(s, "large/one", at, back + at, LARGE - at, &e);
    good(n > 0 ? 0 : (int)n - 1, "read", &e);
    at += (size_t)n;
  }
  assert_memory_equal(large, back, LARGE);
  free(large);
  free(back);

  good(s->ops->race(s, &e), "race", &e);
  good(s->ops->remove(s, "plain", &e), "remove", &e);
  good(s->ops->remove_prefix(s, "dir", &e), "remove_prefix", &e);
  good(s->ops->remove_prefix(s, "large", &e), "remove_prefix", &e);
  listed = 0;
  good(s->ops->list(s, "", false, count, &listed, &e), "list", &e);
  assert_int_equal(listed, 0);
  store_place_remove(&p);
}

/* ---- the ways ---- */

static void a_bucket_in_the_path_over_plain_http(void **unused) {
  endpoint("http", "127.0.0.1", plain.port);
  all_requests_pass();
}

static void a_bucket_in_the_host_over_tls_with_an_authority_of_ones_own(void **unused) {
  over_tls();
  all_requests_pass();
}

static void all_of_it_from_a_profile(void **unused) {
  char *dir = tmpdir_new(), text[512];
  snprintf(text, sizeof text,
           "[profile gate]\nregion = eu-north-1\nca_bundle = %s\n"
           "endpoint_url = https://s3.localhost:%d\ns3 =\n  addressing_style = virtual\n",
           CA, tls.port);
  write_file(tmpdir_path(dir, "config"), text);
  write_file(tmpdir_path(dir, "keys"), "[gate]\naws_access_key_id = GATE\n"
                                       "aws_secret_access_key = " SECRET "\n"
                                       "aws_session_token = " TOKEN "\n");
  setenv("AWS_CONFIG_FILE", tmpdir_path(dir, "config"), 1);
  setenv("AWS_SHARED_CREDENTIALS_FILE", tmpdir_path(dir, "keys"), 1);
  setenv("AWS_PROFILE", "gate", 1);
  unsetenv("AWS_ACCESS_KEY_ID");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  unsetenv("AWS_SESSION_TOKEN");
  unsetenv("AWS_REGION");
  all_requests_pass();
  tmpdir_remove(dir);
}

/* Names below "invalid" are nowhere: only the proxy, which asks for no names, gets through. */
static void a_proxy_for_plain_http(void **unused) {
  char where[64];
  snprintf(where, sizeof where, "http://127.0.0.1:%d", proxy.port);
  endpoint("http", "s3.invalid", plain.port);
  setenv("AWS_S3_ADDRESSING_STYLE", "path", 1);
  setenv("http_proxy", where, 1);
  all_requests_pass();
}

static void a_proxy_for_tls(void **unused) {
  char where[64];
  over_tls();
  endpoint("https", "s3.invalid", proxied.port);
  snprintf(where, sizeof where, "http://127.0.0.1:%d", proxy.port);
  setenv("https_proxy", where, 1);
  all_requests_pass();
}

/* ---- what is refused ---- */

static int try(err *e) {
  store_place p;
  store_place_scheme = "s3";
  store_place_make(&p, io_system());
  int rc = p.s->ops->put(p.s, "k", "text", 4, STORE_REPLACE, e);
  store_place_remove(&p);
  return rc;
}

static void a_server_of_another_authority_is_not_spoken_to(void **unused) {
  err e = {0};
  over_tls();
  unsetenv("AWS_CA_BUNDLE");
  assert_int_equal(try(&e), ERR_ACCESS);
  assert_non_null(strstr(e.text, "AWS_CA_BUNDLE"));
  assert_non_null(strstr(e.text, "s3://ckpt-test/"));
}

static void wrong_signatures_do_not_pass(void **unused) {
  err e = {0};
  endpoint("http", "127.0.0.1", plain.port);
  setenv("AWS_SECRET_ACCESS_KEY", "wrong" SECRET, 1);
  assert_int_equal(try(&e), ERR_ACCESS);
  assert_null(strstr(e.text, SECRET));
  forget(NULL);
  endpoint("http", "127.0.0.1", plain.port);
  unsetenv("AWS_SESSION_TOKEN");
  assert_int_equal(try(&e), ERR_ACCESS);
  setenv("AWS_NO_SIGN_REQUEST", "1", 1);
  unsetenv("AWS_ACCESS_KEY_ID");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  assert_int_equal(try(&e), ERR_ACCESS);
}

static server gate(const char *certificate, const char *domain) {
  const char *arguments[] = {SECRET, "--token", TOKEN, "--forward", port,
                             NULL,   NULL,      NULL,  NULL,        NULL};
  if (certificate) {
    arguments[5] = "--tls";
    arguments[6] = certificate;
    arguments[7] = "--domain";
    arguments[8] = domain;
  }
  return server_start("verifier.py", arguments);
}

#define WAY(f) cmocka_unit_test_setup_teardown(f, forget, forget)

int main(void) {
  const struct CMUnitTest ways[] = {
      WAY(a_bucket_in_the_path_over_plain_http),
      WAY(a_bucket_in_the_host_over_tls_with_an_authority_of_ones_own),
      WAY(all_of_it_from_a_profile),
      WAY(a_proxy_for_plain_http),
      WAY(a_proxy_for_tls),
      WAY(a_server_of_another_authority_is_not_spoken_to),
      WAY(wrong_signatures_do_not_pass),
  };
  const char *server = getenv("CKPT_TEST_S3");
  if (!server) {
    puts("1..0 # SKIP spec/store/ways_spec.sh runs it, against a server");
    return 0;
  }
  snprintf(port, sizeof port, "%s", strrchr(server, ':') + 1);
  plain = gate(NULL, NULL);
  tls = gate("spec/data/tls/server.pem", "s3.localhost");
  proxied = gate("spec/data/tls/server.pem", "s3.invalid");
  proxy = server_start("odd.py", NULL);
  int failed = cmocka_run_group_tests_name("ways", ways, NULL, NULL);
  forget(NULL);
  over_tls();
  failed += store_suite("s3");
  server_stop(&proxy);
  server_stop(&proxied);
  server_stop(&tls);
  server_stop(&plain);
  return failed;
}
