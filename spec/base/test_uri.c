#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/uri.h"

static void parses_to(const char *text, const char *scheme, const char *host, const char *path) {
  uri u;
  err e = {0};
  if (uri_parse(text, &u, &e) < 0) fail_msg("%s: %s", text, e.text);
  assert_string_equal(u.scheme, scheme);
  assert_string_equal(u.host, host);
  assert_string_equal(u.path, path);
}

static void is_refused(const char *text, int code, const char *because) {
  uri u;
  err e = {0};
  assert_int_equal(uri_parse(text, &u, &e), code);
  if (!strstr(e.text, because)) fail_msg("%s: \"%s\" lacks \"%s\"", text, e.text, because);
  if (strstr(e.text, "secret")) fail_msg("the password is in: %s", e.text);
}

static void a_path_is_a_file_target_and_absolute(void **state) {
  char here[URI_MAX], want[URI_MAX + 8];
  assert_non_null(getcwd(here, sizeof here));
  snprintf(want, sizeof want, "%s/out/x", strcmp(here, "/") == 0 ? "" : here);
  parses_to("/data/run", "file", "", "/data/run");
  parses_to("out/x", "file", "", want);
  parses_to("./a/.././out//x/", "file", "", want);
  parses_to(".", "file", "", here);
}

static void dots_and_slashes_are_resolved_by_name(void **state) {
  parses_to("/a/b/../c/./d//", "file", "", "/a/c/d");
  parses_to("/../../x", "file", "", "/x");
  parses_to("/a/..", "file", "", "/");
  parses_to("/", "file", "", "/");
  parses_to("/a/...", "file", "", "/a/...");
  parses_to("/a/..b/.c", "file", "", "/a/..b/.c");
}

/* Each would be a directory on this machine, and be called durable. */
static void other_tools_spellings_are_refused_with_the_right_one(void **state) {
  is_refused("s3:bucket/x", ERR_INVAL, "write s3://bucket/x");
  is_refused("s3:/b/x", ERR_INVAL, "write s3://b/x");
  is_refused("s3:b", ERR_INVAL, "write s3://b");
  is_refused("file:x", ERR_INVAL, "(x), or as file:///");
  is_refused("file:/data/x", ERR_INVAL, "(/data/x), or as file:///");
  is_refused("user@host:/d", ERR_INVAL, "./user@host:/d");
  is_refused("host:/d", ERR_INVAL, "mount");
  is_refused("C:\\x", ERR_INVAL, "no target");
}

static void a_colon_is_a_character_of_a_path_that_says_it_is_one(void **state) {
  char here[URI_MAX], want[URI_MAX + 16];
  assert_non_null(getcwd(here, sizeof here));
  snprintf(want, sizeof want, "%s/s3:b/x", strcmp(here, "/") == 0 ? "" : here);
  parses_to("./s3:b/x", "file", "", want);
  parses_to("/data/a:b", "file", "", "/data/a:b");
  snprintf(want, sizeof want, "%s/out/a:b", strcmp(here, "/") == 0 ? "" : here);
  parses_to("out/a:b", "file", "", want);
}

static void has_query(const char *text, const char *path, const char *query) {
  uri u;
  err e = {0};
  if (uri_parse(text, &u, &e) < 0) fail_msg("%s: %s", text, e.text);
  assert_string_equal(u.path, path);
  assert_string_equal(u.query, query);
}

static void a_bucket_has_a_query_and_other_places_have_none(void **state) {
  has_query("s3://b/x?region=us-east-1&scheme=http", "x", "region=us-east-1&scheme=http");
  has_query("s3://b?endpoint_override=h:1", "", "endpoint_override=h:1");
  has_query("gs://b/a//b/?scheme=http", "a/b", "scheme=http");
  has_query("s3://b/what?/x", "what?/x", "");
  has_query("s3://b/what?/x?region=r", "what?/x", "region=r");
  is_refused("mem://b/x?a=b", ERR_INVAL, "has no query");
  parses_to("file:///a/x?a=b", "file", "", "/a/x?a=b");
}

static void a_query_is_taken_apart_and_decoded(void **state) {
  const char *at = "&region=eu-west-1&&endpoint_override=http%3A%2F%2Fh:1%2fx&empty=";
  char name[URI_NAME_MAX], value[URI_QUERY_MAX];
  assert_int_equal(uri_query_next(&at, name, value, NULL), 1);
  assert_string_equal(name, "region");
  assert_string_equal(value, "eu-west-1");
  assert_int_equal(uri_query_next(&at, name, value, NULL), 1);
  assert_string_equal(value, "http://h:1/x");
  assert_int_equal(uri_query_next(&at, name, value, NULL), 1);
  assert_string_equal(value, "");
  assert_int_equal(uri_query_next(&at, name, value, NULL), 0);
  static const char *const bad[] = {"a=%",   "a=%2", "a=%2&b=x", "a=%zz",
                                    "a=%0a", "a",    "=x",       "a=b&c"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    int rc;
    at = bad[i];
    while ((rc = uri_query_next(&at, name, value, NULL)) > 0) {
    }
    assert_int_equal(rc, ERR_INVAL);
  }
}

/* A command line is seen by every user of the machine. */
static void secrets_in_a_query_are_refused_unseen(void **state) {
  is_refused("s3://b?aws_session_token=hidden", ERR_INVAL, "environment");
  is_refused("s3://b/x?region=r&Session_Token=hidden", ERR_INVAL, "Session_Token=...");
  uri u;
  err e = {0};
  assert_int_equal(uri_parse("s3://b?access_key=hidden", &u, &e), ERR_INVAL);
  assert_null(strstr(e.text, "hidden"));
}

static void what_differs_in_the_query_alone_is_one_place(void **state) {
  assert_true(uri_same_place("s3://b/x?region=r", "s3://b/x/"));
  assert_true(uri_same_place("s3://b/x?region=r", "s3://b/x?region=q"));
  assert_false(uri_same_place("s3://b/x?region=r", "gs://b/x?region=r"));
  assert_false(uri_same_place("s3://b/x", "s3://b/y"));
  assert_true(uri_same_place("/a/x", "file:///a//x"));
  uri u;
  buf b;
  buf_init(&b, 100);
  assert_int_equal(uri_parse("s3://b/x?region=r", &u, NULL), 0);
  uri_print(&u, &b);
  assert_string_equal(b.data, "s3://b/x");
  buf_clear(&b);
  uri_print_below(&u, "c-1", &b);
  assert_string_equal(b.data, "s3://b/x/c-1?region=r");
  buf_free(&b);
}

static void a_path_may_hold_anything_but_a_scheme(void **state) {
  parses_to("/a/b://c", "file", "", "/a/b:/c");
  parses_to("/a b/\xff%20?#@:{}", "file", "", "/a b/\xff%20?#@:{}");
}

static void file_uris_have_three_slashes(void **state) {
  parses_to("file:///data/run/", "file", "", "/data/run");
  parses_to("FILE:///data", "file", "", "/data");
  parses_to("file://localhost/data", "file", "", "/data");
  is_refused("file://data/run", ERR_INVAL, "three slashes");
  is_refused("file://me:secret@host/run", ERR_INVAL, "three slashes");
  is_refused("file://", ERR_INVAL, "three slashes");
}

static void other_stores_have_a_name_and_a_path(void **state) {
  parses_to("mem://one", "mem", "one", "");
  parses_to("mem://one/", "mem", "one", "");
  parses_to("S3://Bucket/a/./b//c/", "s3", "Bucket", "a/b/c");
  parses_to("hdfs://nn:8020/run", "hdfs", "nn:8020", "run");
  parses_to("s3://b/../../c", "s3", "b", "c");
}

static void bad_targets_are_refused_and_passwords_never_shown(void **state) {
  is_refused(NULL, ERR_INVAL, "empty");
  is_refused("", ERR_INVAL, "empty");
  is_refused("://x", ERR_INVAL, "no scheme");
  is_refused("s3:///x", ERR_INVAL, "missing");
  is_refused("s3://", ERR_INVAL, "missing");
  is_refused("a-scheme-of-many-letters://b", ERR_INVAL, "no scheme");
  is_refused("s 3://b", ERR_INVAL, "no scheme");
  is_refused("s3://me:secret@b/c", ERR_INVAL, "environment");
  is_refused("s3+x://me:secret@b/c", ERR_INVAL, "no scheme");
}

static void lengths_are_bounded(void **state) {
  char text[2 * URI_MAX];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  is_refused(text, ERR_LIMIT, "longer than");
  text[0] = '/';
  text[URI_MAX - 1] = 0;
  parses_to(text, "file", "", text);
  text[URI_MAX - 1] = 'x';
  text[URI_MAX] = 0;
  is_refused(text, ERR_LIMIT, "longer than");
  memcpy(text, "s3://", 5);
  text[5 + 255] = 0;
  uri u;
  assert_int_equal(uri_parse(text, &u, NULL), 0);
  text[5 + 255] = 'x';
  text[5 + 256] = 0;
  is_refused(text, ERR_INVAL, "too long");
}

static void a_relative_path_that_grows_too_long_is_refused(void **state) {
  char text[URI_MAX];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  is_refused(text, ERR_LIMIT, "longer than"); /* the working directory comes in front */
}

static void what_is_printed_parses_to_the_same(void **state) {
  static const char *const texts[] = {"file:///data/run", "file:///", "mem://x", "s3://b/a/b"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    uri u;
    buf b;
    buf_init(&b, 100);
    assert_int_equal(uri_parse(texts[i], &u, NULL), 0);
    uri_print(&u, &b);
    assert_string_equal(b.data, texts[i]);
    buf_free(&b);
  }
}

static void names_in_braces_come_from_the_environment(void **state) {
  setenv("CKPT_TEST_JOB", "42", 1);
  setenv("CKPT_TEST_BRACES", "{CKPT_TEST_JOB}", 1);
  buf b;
  buf_init(&b, 200);
  assert_int_equal(
      uri_expand("s3://b/{CKPT_TEST_JOB}/{CKPT_TEST_JOB}x{CKPT_TEST_BRACES}", &b, NULL), 0);
  assert_string_equal(b.data, "s3://b/42/42x{CKPT_TEST_JOB}");
  buf_free(&b);
}

static void other_braces_stay_as_they_are(void **state) {
  buf b;
  buf_init(&b, 200);
  static const char text[] = "a{step}/{}/{1X}/{A B}/{OPEN";
  assert_int_equal(uri_expand(text, &b, NULL), 0);
  assert_string_equal(b.data, text);
  buf_clear(&b);
  assert_int_equal(uri_expand("", &b, NULL), 0);
  assert_string_equal(b.data, "");
  buf_free(&b);
}

static void an_unset_or_empty_name_is_an_error(void **state) {
  unsetenv("CKPT_TEST_NONE");
  setenv("CKPT_TEST_EMPTY", "", 1);
  static const char *const texts[] = {"s3://b/{CKPT_TEST_NONE}", "s3://b/{CKPT_TEST_EMPTY}"};
  for (int i = 0; i < 2; i++) {
    buf b;
    err e = {0};
    buf_init(&b, 200);
    assert_int_equal(uri_expand(texts[i], &b, &e), ERR_INVAL);
    assert_non_null(strstr(e.text, i ? "CKPT_TEST_EMPTY" : "CKPT_TEST_NONE"));
    buf_free(&b);
  }
}

static void an_expansion_is_bounded(void **state) {
  setenv("CKPT_TEST_JOB", "0123456789", 1);
  buf b;
  buf_init(&b, 15);
  err e = {0};
  assert_int_equal(uri_expand("{CKPT_TEST_JOB}{CKPT_TEST_JOB}", &b, &e), ERR_LIMIT);
  char name[400];
  memset(name, 'A', sizeof name);
  name[0] = '{';
  name[sizeof name - 2] = '}';
  name[sizeof name - 1] = 0;
  buf_clear(&b);
  assert_int_equal(uri_expand(name, &b, &e), ERR_INVAL);
  buf_free(&b);
}

static void within_means_the_same_or_below(void **state) {
  assert_true(uri_path_within("/a", "/a"));
  assert_true(uri_path_within("/a", "/a/b"));
  assert_true(uri_path_within("/", "/a"));
  assert_true(uri_path_within("/", "/"));
  assert_false(uri_path_within("/a", "/ab"));
  assert_false(uri_path_within("/a/b", "/a"));
  assert_false(uri_path_within("/a", "/"));
}

static void only_a_file_target_lies_in_a_directory(void **state) {
  uri u;
  assert_int_equal(uri_parse("file:///data/run", &u, NULL), 0);
  assert_string_equal(uri_dir(&u), "/data/run");
  assert_int_equal(uri_parse("s3://data/run", &u, NULL), 0);
  assert_null(uri_dir(&u));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_path_is_a_file_target_and_absolute),
      cmocka_unit_test(dots_and_slashes_are_resolved_by_name),
      cmocka_unit_test(other_tools_spellings_are_refused_with_the_right_one),
      cmocka_unit_test(a_colon_is_a_character_of_a_path_that_says_it_is_one),
      cmocka_unit_test(a_bucket_has_a_query_and_other_places_have_none),
      cmocka_unit_test(a_query_is_taken_apart_and_decoded),
      cmocka_unit_test(secrets_in_a_query_are_refused_unseen),
      cmocka_unit_test(what_differs_in_the_query_alone_is_one_place),
      cmocka_unit_test(a_path_may_hold_anything_but_a_scheme),
      cmocka_unit_test(file_uris_have_three_slashes),
      cmocka_unit_test(other_stores_have_a_name_and_a_path),
      cmocka_unit_test(bad_targets_are_refused_and_passwords_never_shown),
      cmocka_unit_test(lengths_are_bounded),
      cmocka_unit_test(a_relative_path_that_grows_too_long_is_refused),
      cmocka_unit_test(what_is_printed_parses_to_the_same),
      cmocka_unit_test(names_in_braces_come_from_the_environment),
      cmocka_unit_test(other_braces_stay_as_they_are),
      cmocka_unit_test(an_unset_or_empty_name_is_an_error),
      cmocka_unit_test(an_expansion_is_bounded),
      cmocka_unit_test(within_means_the_same_or_below),
      cmocka_unit_test(only_a_file_target_lies_in_a_directory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
