/* The store of Google Cloud Storage against a stand-in. spec/store/gs_spec.sh starts it, and
 * spec/servers/tokens.py before it, which asks for a token, and runs this with
 *   CKPT_TEST_GS        the stand-in's endpoint
 *   CKPT_TEST_GS_GATE   the same behind tokens.py, which notes what it is asked for in
 *   CKPT_TEST_GS_NOTES  this file
 *   CKPT_TEST_GS_KEYS   a directory with files of credentials that tokens.py takes */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common_memory.h"
#include "store/store.h"
#include "store_place.h"
#include "store_replace.h"
#include "store_suite.h"
#include "tmpdir.h"

enum { PART = 8 << 20, LARGE = 20 << 20 };

static const char *env(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

static int forget(void **unused) {
  static const char *const names[] = {"GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SKIP_SIGNATURE",
                                      "STORAGE_EMULATOR_HOST", "CLOUDSDK_CONFIG",
                                      "GCE_METADATA_HOST"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
  setenv("HOME", "/nowhere", 1);
  unlink(env("CKPT_TEST_GS_NOTES"));
  return 0;
}

static int open_at(const char *endpoint, const char *more, store **out, err *e) {
  static int names;
  char text[512];
  uri where;
  snprintf(text, sizeof text, "gs://ckpt-test/gs/%d/%d?endpoint_override=%s%s", (int)getpid(),
           ++names, endpoint, more);
  int rc = uri_parse(text, &where, e);
  *out = NULL;
  return rc < 0 ? rc : store_open(&where, io_system(), NULL, out, e);
}

static store *gate(void) {
  store *s;
  err e = {0};
  if (open_at(env("CKPT_TEST_GS_GATE"), "", &s, &e) < 0) fail_msg("%s", e.text);
  return s;
}

static void credentials(const char *name) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", env("CKPT_TEST_GS_KEYS"), name);
  setenv("GOOGLE_APPLICATION_CREDENTIALS", path, 1);
}

static int noted(const char *text) {
  size_t len;
  int found = 0;
  char *log = read_file(env("CKPT_TEST_GS_NOTES"), &len);
  for (char *line = log ? strtok(log, "\n") : NULL; line; line = strtok(NULL, "\n"))
    found += strstr(line, text) != NULL;
  free(log);
  return found;
}

static void good(int rc, const char *what, const err *e) {
  if (rc < 0) fail_msg("%s: %s", what, e->text);
}

/* One of each kind of request. */
static void all_requests(store *s) {
  err e = {0};
  store_object o;
  char *large = malloc(LARGE), *back = malloc(LARGE);
  assert_true(large && back);
  for (size_t i = 0; i < LARGE; i++) large[i] = (char)(i * 7 >> 4);
  good(store_put_marked(s, "d/k l?m#n%", "text", 4, STORE_IF_ABSENT, "mark1", &e), "put", &e);
  assert_int_equal(store_put_text(s, "d/k l?m#n%", "more", STORE_IF_ABSENT), ERR_EXISTS);
  store_must_hold(s, "d/k l?m#n%", "text");
  good(s->ops->head(s, "d/k l?m#n%", &o, &e), "head", &e);
  assert_string_equal(o.mark, "mark1");
  good(store_stream(s, "d/large", large, LARGE, 1 << 20, false), "a large object", &e);
  for (size_t at = 0; at < LARGE;) {
    ssize_t n = s->ops->read(s, "d/large", at, back + at, LARGE - at, &e);
    good(n > 0 ? 0 : (int)n - 1, "read", &e);
    at += (size_t)n;
  }
  assert_memory_equal(large, back, LARGE);
  store_must_list(s, "d", false, "d/k l?m#n% d/large");
  good(s->ops->race(s, &e), "race", &e);
  good(s->ops->remove_prefix(s, "d", &e), "remove_prefix", &e);
  store_must_list(s, "d", false, "");
  free(large);
  free(back);
}

/* ---- tokens ---- */

static void no_core_file_has_keys_or_tokens(void **unused) {
  static const char *const files[] = {"service.json", "user.json"};
  static const char kept[] = "what this looks for, and has to find";
  /* "Bearer ya29.", "BEGIN PRIVATE KEY-----\\n", "refresh+of", "refresh%2Bof", "secret &=" */
  static const char *const secrets[] = {"Wptgpg5lt',;", "WPR\\[5EG\\CTAP5^PL88888I{", "gpsgpf}>zs",
                                        "gpsgpf}0'Wzs", "fpvgpa53("};
  char *here = strdup(kept);
  assert_non_null(here);
  for (char *c = here; *c; c++) *c ^= COMMON_MEMORY_CHANGED;
  for (int i = 0; i < 2; i++) {
    forget(NULL);
    credentials(files[i]);
    store *s = gate();
    all_requests(s);
    assert_int_equal(common_memory_has(kept), 1); /* else it is blind */
    for (size_t k = 0; k < sizeof secrets / sizeof *secrets; k++)
      if (common_memory_has(secrets[k])) fail_msg("%s: secret %zu", files[i], k);
    store_close(s);
  }
  free(here);
}

static void each_source_of_tokens_opens_the_gate(void **unused) {
  static const char *const files[] = {"service.json", "user.json"};
  for (int i = 0; i < 2; i++) {
    forget(NULL);
    credentials(files[i]);
    store *s = gate();
    all_requests(s);
    assert_true(noted("token") >= 1);
    assert_true(noted("storage") >= 20);
    store_close(s);
  }
  forget(NULL);
  setenv("CLOUDSDK_CONFIG", env("CKPT_TEST_GS_KEYS"), 1); /* as gcloud leaves them */
  store *s = gate();
  assert_int_equal(store_put_text(s, "k", "x", STORE_REPLACE), 0);
  assert_int_equal(noted("token refresh_token"), 1);
  store_close(s);
  forget(NULL);
  setenv("GCE_METADATA_HOST", strstr(env("CKPT_TEST_GS_GATE"), "://") + 3, 1);
  s = gate();
  all_requests(s);
  assert_int_equal(noted("token metadata"), 1);
  store_close(s);
}

/* The machine's own server is asked past any proxy, which would see the token. */
static void no_proxy_sees_the_token_of_the_machine(void **unused) {
  char host[64];
  store_object o;
  err e = {0};
  forget(NULL);
  snprintf(host, sizeof host, "localhost:%s", strrchr(env("CKPT_TEST_GS_GATE"), ':') + 1);
  setenv("GCE_METADATA_HOST", host, 1);
  setenv("http_proxy", "http://127.0.0.1:9", 1);
  setenv("no_proxy", "127.0.0.1", 1); /* the storage alone */
  store *s = gate();
  int rc = s->ops->head(s, "k", &o, &e);
  unsetenv("http_proxy");
  unsetenv("no_proxy");
  if (rc != ERR_NOENT) fail_msg("%d: %s", rc, e.text);
  assert_int_equal(noted("token metadata"), 1);
  store_close(s);
}

static void a_token_is_fetched_again_before_it_expires(void **unused) {
  store_object o;
  forget(NULL);
  credentials("short.json"); /* its tokens live for 4 s */
  store *s = gate();
  for (int i = 0; i < 12; i++) {
    assert_int_equal(s->ops->head(s, "k", &o, NULL), ERR_NOENT);
    usleep(500000);
  }
  assert_true(noted("token") >= 2);
  assert_int_equal(noted("refused"), 0);
  store_close(s);
}

/* The server may forget a token before its time. */
static void a_token_that_is_refused_is_fetched_again_once(void **unused) {
  store_object o;
  err e = {0};
  forget(NULL);
  credentials("revoked.json"); /* its first token is refused after the first request */
  store *s = gate();
  for (int i = 0; i < 3; i++) assert_int_equal(s->ops->head(s, "k", &o, NULL), ERR_NOENT);
  assert_int_equal(noted("refused"), 1);
  assert_int_equal(noted("token"), 2);
  store_close(s);
  forget(NULL);
  credentials("never.json"); /* all of its tokens are refused */
  s = gate();
  assert_int_equal(s->ops->head(s, "k", &o, &e), ERR_ACCESS);
  assert_int_equal(noted("refused"), 2);
  assert_null(strstr(e.text, "ya29"));
  store_close(s);
}

static void without_a_token_the_gate_is_shut(void **unused) {
  store *s;
  err e = {0};
  store_object o;
  forget(NULL);
  setenv("GOOGLE_SKIP_SIGNATURE", "true", 1);
  s = gate();
  assert_int_equal(s->ops->head(s, "k", &o, &e), ERR_ACCESS);
  store_close(s);
  forget(NULL);
  assert_int_equal(open_at(env("CKPT_TEST_GS_GATE"), "&anonymous=true", &s, &e), 0);
  if (!s) abort();
  assert_int_equal(s->ops->head(s, "k", &o, &e), ERR_ACCESS);
  store_close(s);
  setenv("GCE_METADATA_HOST", "127.0.0.1:9", 1);
  s = gate();
  assert_true(s->ops->head(s, "k", &o, &e) < 0);
  store_close(s);
}

static void bad_credentials_are_refused_by_name_and_not_shown(void **unused) {
  static const struct {
    const char *text, *word;
    int code;
  } bad[] = {
      {"hidden", "no JSON", ERR_FORMAT},
      {"{\"type\":\"external_account\",\"x\":\"hidden\"}", "external_account", ERR_UNSUPPORTED},
      {"{\"type\":\"impersonated_service_account\"}", "impersonated", ERR_UNSUPPORTED},
      {"{\"type\":\"hidden\"}", "type", ERR_UNSUPPORTED},
      {"{\"type\":\"service_account\",\"private_key\":\"hidden\"}", "client_email", ERR_FORMAT},
      {"{\"type\":\"authorized_user\",\"client_id\":\"a\",\"client_secret\":\"hidden\"}",
       "refresh_token", ERR_FORMAT},
      {"{\"type\":\"service_account\",\"client_email\":\"a\",\"private_key\":\"hidden\","
       "\"token_uri\":\"http://far.example/\"}",
       "token_uri", ERR_FORMAT}};
  char *dir = tmpdir_new();
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    store *s;
    err e = {0};
    forget(NULL);
    write_file(tmpdir_path(dir, "c.json"), bad[i].text);
    setenv("GOOGLE_APPLICATION_CREDENTIALS", tmpdir_path(dir, "c.json"), 1);
    if (open_at(env("CKPT_TEST_GS"), "", &s, &e) != bad[i].code) fail_msg("%zu: %s", i, e.text);
    if (!strstr(e.text, bad[i].word)) fail_msg("%s: %s", bad[i].word, e.text);
    assert_null(strstr(e.text, "hidden"));
  }
  store *s;
  store_object o;
  err e = {0};
  write_file(tmpdir_path(dir, "c.json"),
             "{\"type\":\"service_account\",\"client_email\":\"a\",\"private_key\":\"hidden\"}");
  assert_int_equal(open_at(env("CKPT_TEST_GS"), "", &s, &e), 0);
  assert_int_equal(s->ops->head(s, "k", &o, &e), ERR_FORMAT);
  assert_null(strstr(e.text, "hidden"));
  store_close(s);
  tmpdir_remove(dir);
}

/* ---- objects ---- */

static store *direct(void) {
  store *s;
  err e = {0};
  forget(NULL);
  setenv("STORAGE_EMULATOR_HOST", env("CKPT_TEST_GS"), 1);
  if (open_at(env("CKPT_TEST_GS"), "", &s, &e) < 0) fail_msg("%s", e.text);
  return s;
}

static int resume(store *s, const char *data, size_t len) {
  store_writer *w;
  int rc = s->ops->write_open(s, "k", len, STORE_RESUME, NULL, &w, NULL);
  if (rc < 0) return rc;
  for (size_t at = 0; rc == 0 && at < len; at += PART)
    rc = s->ops->write(w, data + at, len - at < PART ? len - at : PART, NULL);
  if (rc == 0) return s->ops->write_close(w, NULL);
  s->ops->write_abort(w);
  return rc;
}

static void what_stands_already_is_compared_byte_by_byte(void **unused) {
  store *s = direct();
  char *data = calloc(1, LARGE);
  assert_int_equal(resume(s, data, LARGE), 0);
  assert_int_equal(resume(s, data, LARGE), 0);
  assert_int_equal(resume(s, data, LARGE - 1), ERR_EXISTS);
  data[LARGE - 1] = 1;
  assert_int_equal(resume(s, data, LARGE), ERR_EXISTS);
  assert_int_equal(store_stream(s, "k", data, LARGE, PART, false), ERR_EXISTS);
  store_close(s);
  free(data);
}

static void a_bucket_that_is_not_there_is_no_store(void **unused) {
  uri where;
  store *s;
  char text[200];
  store_close(direct());
  snprintf(text, sizeof text, "gs://not-there/x?endpoint_override=%s", env("CKPT_TEST_GS"));
  assert_int_equal(uri_parse(text, &where, NULL), 0);
  assert_int_equal(store_open(&where, io_system(), NULL, &s, NULL), 0);
  assert_int_equal(s->ops->exists(s, NULL), ERR_NOSTORE);
  err e = {0};
  assert_int_equal(s->ops->put(s, "k", "x", 1, STORE_IF_ABSENT, &e), ERR_NOSTORE);
  assert_non_null(strstr(e.text, "gs://not-there/x/k"));
  store_close(s);
}

static void what_is_not_known_in_the_target_is_refused(void **unused) {
  static const char *const bad[] = {"&region=x", "&scheme=ftp", "&user_project=a%20b",
                                    "&storage_class=a:b", "&scheme=http&scheme=http"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    store *s;
    err e = {0};
    if (open_at(env("CKPT_TEST_GS"), bad[i], &s, &e) != ERR_INVAL) fail_msg("%s", bad[i]);
  }
  store *s;
  assert_int_equal(
      open_at(env("CKPT_TEST_GS"), "&project_id=x&retry_limit_seconds=3&anonymous=1", &s, NULL), 0);
  store_close(s);
}

#define GS(f) cmocka_unit_test_setup_teardown(f, forget, forget)

int main(void) {
  const struct CMUnitTest objects[] = {
      GS(what_stands_already_is_compared_byte_by_byte),
      GS(a_bucket_that_is_not_there_is_no_store),
      GS(what_is_not_known_in_the_target_is_refused),
      GS(bad_credentials_are_refused_by_name_and_not_shown),
  };
  const struct CMUnitTest tokens[] = {
      GS(no_core_file_has_keys_or_tokens),
      GS(each_source_of_tokens_opens_the_gate),
      GS(no_proxy_sees_the_token_of_the_machine),
      GS(a_token_is_fetched_again_before_it_expires),
      GS(a_token_that_is_refused_is_fetched_again_once),
      GS(without_a_token_the_gate_is_shut),
  };
  if (!getenv("CKPT_TEST_GS")) {
    puts("1..0 # SKIP spec/store/gs_spec.sh runs it, against a stand-in");
    return 0;
  }
  int failed = cmocka_run_group_tests(objects, NULL, NULL);
  if (getenv("CKPT_TEST_GS_GATE")) failed += cmocka_run_group_tests(tokens, NULL, NULL);
  forget(NULL);
  setenv("STORAGE_EMULATOR_HOST", env("CKPT_TEST_GS"), 1);
  return failed + store_suite("gs") + store_replace_suite("gs");
}
