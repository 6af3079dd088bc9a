#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io_fault.h"
#include "store/aws/credentials_parts.h"
#include "tmpdir.h"

static char *home;
static credentials c;

/* A home without anything in it, and an environment that says nothing of S3. */
static int set_up(void **unused) {
  static const char *const names[] = {"AWS_ACCESS_KEY_ID",
                                      "AWS_SECRET_ACCESS_KEY",
                                      "AWS_SESSION_TOKEN",
                                      "AWS_SECURITY_TOKEN",
                                      "AWS_PROFILE",
                                      "AWS_DEFAULT_PROFILE",
                                      "AWS_SHARED_CREDENTIALS_FILE",
                                      "AWS_CONFIG_FILE",
                                      "AWS_NO_SIGN_REQUEST",
                                      "AWS_REGION",
                                      "AWS_DEFAULT_REGION",
                                      "AWS_ENDPOINT_URL_S3",
                                      "AWS_ENDPOINT_URL",
                                      "AWS_CA_BUNDLE",
                                      "AWS_S3_ADDRESSING_STYLE",
                                      "AWS_WEB_IDENTITY_TOKEN_FILE",
                                      "AWS_ROLE_ARN",
                                      "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                      "AWS_CONTAINER_CREDENTIALS_FULL_URI"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unsetenv(names[i]);
  setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
  home = tmpdir_new();
  make_dir(tmpdir_path(home, ".aws"));
  setenv("HOME", home, 1);
  memset(&c, 'x', sizeof c);
  return 0;
}

static int tear_down(void **unused) {
  tmpdir_remove(home);
  return 0;
}

static void keys_file(const char *text) {
  write_file(tmpdir_path(home, ".aws/credentials"), text);
}

static void config_file(const char *text) {
  write_file(tmpdir_path(home, ".aws/config"), text);
}

static void env_keys(void) {
  setenv("AWS_ACCESS_KEY_ID", "AKENV", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "senv", 1);
}

static void found(const char *access, const char *secret, const char *token) {
  err e = {0};
  if (credentials_find(io_system(), &c, &e) != 0) fail_msg("%s", e.text);
  assert_string_equal(c.access, access);
  assert_string_equal(c.secret, secret);
  assert_string_equal(c.token, token);
}

static void fails(int code, const char *text) {
  err e = {0};
  assert_int_equal(credentials_find(io_system(), &c, &e), code);
  if (!strstr(e.text, text)) fail_msg("not in it: %s: %s", text, e.text);
  assert_string_equal(c.secret, "");
  assert_string_equal(c.token, "");
}

/* ---- the order ---- */

static void the_environment_comes_first_and_brings_its_own_token(void **unused) {
  keys_file("[default]\naws_access_key_id = AKFILE\naws_secret_access_key = sfile\n"
            "aws_session_token = tfile\n");
  env_keys();
  found("AKENV", "senv", ""); /* a token of other keys would make these invalid */
  setenv("AWS_SESSION_TOKEN", "tenv", 1);
  found("AKENV", "senv", "tenv");
  unsetenv("AWS_ACCESS_KEY_ID");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  found("AKFILE", "sfile", "tfile");
}

static void half_a_pair_is_refused(void **unused) {
  setenv("AWS_ACCESS_KEY_ID", "AKENV", 1);
  fails(ERR_ACCESS, "AWS_SECRET_ACCESS_KEY");
  unsetenv("AWS_ACCESS_KEY_ID");
  setenv("AWS_SECRET_ACCESS_KEY", "senv", 1);
  fails(ERR_ACCESS, "AWS_ACCESS_KEY_ID");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  keys_file("[default]\naws_access_key_id = AKFILE\n");
  config_file("[default]\naws_secret_access_key = sother\n");
  fails(ERR_ACCESS, ".aws/credentials");
}

static void the_profile_is_looked_for_in_both_files(void **unused) {
  keys_file("[default]\naws_access_key_id=AKD\naws_secret_access_key=sd\n"
            "[two]\naws_access_key_id=AK2\naws_secret_access_key=s2\n");
  config_file("[default]\nregion = eu-west-1\n[profile two]\nregion = eu-west-2\n"
              "[profile three]\naws_access_key_id=AK3\naws_secret_access_key=s3\n"
              "[four]\naws_access_key_id=AK4\naws_secret_access_key=s4\n");
  found("AKD", "sd", "");
  assert_string_equal(c.region, "eu-west-1");
  setenv("AWS_PROFILE", "two", 1);
  found("AK2", "s2", "");
  assert_string_equal(c.region, "eu-west-2");
  setenv("AWS_PROFILE", "three", 1);
  found("AK3", "s3", "");
  assert_string_equal(c.region, "us-east-1");
  setenv("AWS_PROFILE", "four", 1); /* in this file it would be called "profile four" */
  fails(ERR_ACCESS, "\"four\" is not in");
}

static void files_may_be_elsewhere(void **unused) {
  write_file(tmpdir_path(home, "k"), "[default]\naws_access_key_id=A\naws_secret_access_key=s\n");
  setenv("AWS_SHARED_CREDENTIALS_FILE", tmpdir_path(home, "k"), 1);
  setenv("AWS_CONFIG_FILE", "/nowhere/config", 1);
  found("A", "s", "");
  setenv("AWS_SHARED_CREDENTIALS_FILE", "~/k", 1);
  found("A", "s", "");
  unsetenv("HOME");
  fails(ERR_ACCESS, "no keys");
}

static void without_keys_it_says_what_was_looked_at(void **unused) {
  fails(ERR_ACCESS, "AWS_ACCESS_KEY_ID");
  fails(ERR_ACCESS, ".aws/credentials");
  fails(ERR_ACCESS, ".aws/config");
  setenv("AWS_NO_SIGN_REQUEST", "0", 1);
  fails(ERR_ACCESS, "AWS_NO_SIGN_REQUEST");
  setenv("AWS_NO_SIGN_REQUEST", "true", 1);
  found("", "", "");
  assert_true(c.anonymous);
  env_keys();
  found("AKENV", "senv", "");
  assert_false(c.anonymous);
}

static void another_way_to_keys_is_named(void **unused) {
  config_file("[profile x]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = y\n");
  setenv("AWS_PROFILE", "x", 1);
  fails(ERR_ACCESS, "source_profile \"y\" is not there");
  config_file("[profile x]\nlogin_session = me\n");
  fails(ERR_ACCESS, "login_session");
}

static void region_endpoint_and_ca_come_from_the_environment_first(void **unused) {
  env_keys();
  config_file("[default]\nregion = eu-west-1\nendpoint_url = http://file:1\nca_bundle = /file\n");
  found("AKENV", "senv", "");
  assert_string_equal(c.region, "eu-west-1");
  assert_string_equal(c.endpoint, "http://file:1");
  assert_string_equal(c.ca_file, "/file");
  setenv("AWS_DEFAULT_REGION", "r2", 1);
  setenv("AWS_ENDPOINT_URL", "https://all", 1);
  setenv("AWS_CA_BUNDLE", "/env", 1);
  found("AKENV", "senv", "");
  assert_string_equal(c.region, "r2");
  assert_string_equal(c.endpoint, "https://all");
  assert_string_equal(c.ca_file, "/env");
  setenv("AWS_REGION", "r1", 1);
  setenv("AWS_ENDPOINT_URL_S3", "http://s3only/", 1);
  found("AKENV", "senv", "");
  assert_string_equal(c.region, "r1");
  assert_string_equal(c.endpoint, "http://s3only");
}

static void the_style_is_path_where_a_bucket_cannot_be_in_the_host(void **unused) {
  static const struct {
    const char *endpoint, *style;
    bool path;
  } known[] = {{"", "", false},
               {"", "path", true},
               {"", "virtual", false},
               {"", "auto", false},
               {"https://s3.example.com", "", true},
               {"https://s3.example.com", "virtual", false},
               {"https://s3.eu-west-1.amazonaws.com", "", false},
               {"https://s3.example.com", "path", true},
               {"https://s3.example.com:9000", "", true},
               {"https://s3.example.com:9000", "virtual", false},
               {"http://127.0.0.1", "", true},
               {"http://127.0.0.1:9000", "virtual", true},
               {"http://[::1]:9000", "virtual", true},
               {"https://gw.example.com/s3", "virtual", false},
               {"https://gw.example.com:1/s3", "auto", true}};
  env_keys();
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    setenv("AWS_ENDPOINT_URL", known[i].endpoint, 1);
    setenv("AWS_S3_ADDRESSING_STYLE", known[i].style, 1);
    found("AKENV", "senv", "");
    if (c.path_style != known[i].path) fail_msg("%s %s", known[i].endpoint, known[i].style);
  }
  setenv("AWS_S3_ADDRESSING_STYLE", "diagonal", 1);
  fails(ERR_INVAL, "AWS_S3_ADDRESSING_STYLE");
}

static void what_is_no_endpoint_is_refused_unseen(void **unused) {
  static const char *const bad[] = {"s3.example.com",  "ftp://h",           "http://",
                                    "https:///path",   "http://u:hidden@h", "http://h?hidden",
                                    "http://h#hidden", "http://hid den",    "hidden"};
  env_keys();
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    err e = {0};
    setenv("AWS_ENDPOINT_URL_S3", bad[i], 1);
    assert_int_equal(credentials_find(io_system(), &c, &e), ERR_INVAL);
    assert_null(strstr(e.text, "hid"));
    assert_non_null(strstr(e.text, "AWS_ENDPOINT_URL_S3"));
  }
}

/* ---- the files ---- */

static void files_are_read_as_people_write_them(void **unused) {
  keys_file("\xef\xbb\xbf# a comment\r\n; another\r\n\r\n[ default ] # here too\r\n"
            "\taws_access_key_id\t=\tAK 1 \r\n"
            "AWS_Secret_Access_Key=a+b/c=d#e;f   # not the key's\r\n"
            "aws_session_token = t\r\nunknown_thing = 5\r\n[other]\naws_access_key_id = no\n");
  config_file(
      "[sso-session default]\nregion = wrong\n[profile 'default']\nregion = r1\n"
      "s3 =\n  # comment\n  max_concurrent_requests = 20\n  addressing_style = path\n"
      "output = json\n[services default]\nregion = wrong\ns3 =\n  endpoint_url = http://no");
  found("AK 1", "a+b/c=d#e;f", "t");
  assert_string_equal(c.region, "r1");
  assert_true(c.path_style);
  assert_string_equal(c.endpoint, "");
}

static void nested_settings_are_those_of_s3_alone(void **unused) {
  env_keys();
  config_file("[default]\ndynamodb =\n  endpoint_url = http://no\n  addressing_style = path\n"
              "s3 =\n  endpoint_url = http://yes\n  addressing_style = virtual\nregion = r\n");
  found("AKENV", "senv", "");
  assert_string_equal(c.endpoint, "http://yes");
  assert_string_equal(c.region, "r");
  assert_false(c.path_style);
}

static void malformed_lines_are_named_and_not_shown(void **unused) {
  static const struct {
    const char *text, *line;
  } bad[] = {{"[default]\naws_secret_access_key hidden\n", "line 2"},
             {"[default\naws_secret_access_key = hidden\n", "line 1"},
             {"hidden\n", "line 1"},
             {"\n\n= hidden\n", "line 3"},
             {"[default] hidden\n", "line 1"},
             {"[default]\naws_access_key_id = a\naws_secret_access_key = hid\1zen\n", "line 3"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    keys_file(bad[i].text);
    err e = {0};
    assert_int_equal(credentials_find(io_system(), &c, &e), ERR_FORMAT);
    assert_non_null(strstr(e.text, bad[i].line));
    assert_non_null(strstr(e.text, ".aws/credentials"));
    assert_null(strstr(e.text, "hid"));
  }
}

static void what_is_too_long_is_refused(void **unused) {
  char *text = malloc(CREDENTIALS_TOKEN_MAX + 1);
  assert_non_null(text);
  for (int len = 255; len <= 256; len++) {
    snprintf(text, 6000, "[default]\naws_access_key_id = a\naws_secret_access_key = %0*d\n", len,
             0);
    keys_file(text);
    err e = {0};
    assert_int_equal(credentials_find(io_system(), &c, &e), len == 255 ? 0 : ERR_FORMAT);
    assert_null(strstr(e.text, "000"));
  }
  memset(text, '0', CREDENTIALS_TOKEN_MAX);
  text[CREDENTIALS_TOKEN_MAX] = 0;
  env_keys();
  keys_file("");
  setenv("AWS_SESSION_TOKEN", text, 1);
  fails(ERR_FORMAT, "AWS_SESSION_TOKEN");
  unsetenv("AWS_SESSION_TOKEN");
  setenv("AWS_CONFIG_FILE", text, 1);
  fails(ERR_LIMIT, "AWS_CONFIG_FILE");
  free(text);
}

/* A line end in a token would be a header of its own. */
static void a_value_with_a_line_end_is_refused(void **unused) {
  env_keys();
  setenv("AWS_SESSION_TOKEN", "hidden\r\nx-amz-acl: public", 1);
  err e = {0};
  assert_int_equal(credentials_find(io_system(), &c, &e), ERR_FORMAT);
  assert_non_null(strstr(e.text, "AWS_SESSION_TOKEN"));
  assert_null(strstr(e.text, "hidden"));
}

static void what_is_no_text_is_refused(void **unused) {
  write_bytes(tmpdir_path(home, ".aws/credentials"), "[default]\n\0hidden", 17);
  fails(ERR_FORMAT, "NUL");
  size_t len = (1 << 20) + 1;
  char *large = calloc(1, len);
  assert_non_null(large);
  memset(large, '\n', len);
  write_bytes(tmpdir_path(home, ".aws/credentials"), large, len);
  fails(ERR_LIMIT, ".aws/credentials");
  free(large);
}

/* Random files of the bytes that matter: an answer or an error, and no secret in it. */
static void hostile_files_do_no_harm(void **unused) {
  static const char *const bits[] = {"[",
                                     "]",
                                     "default",
                                     "profile ",
                                     "=",
                                     " ",
                                     "\t",
                                     "\n",
                                     "\r\n",
                                     "#",
                                     ";",
                                     "s3 =",
                                     "\n ",
                                     "aws_access_key_id",
                                     "HIDDEN",
                                     "'",
                                     "\"",
                                     "\xff",
                                     "[default]\n",
                                     "aws_access_key_id=A\n",
                                     "aws_secret_access_key=HIDDEN\n"};
  srand(7);
  int good = 0, bad = 0;
  for (int round = 0; round < 500; round++) {
    char text[800] = "";
    size_t len = 0;
    if (rand() % 2) { /* half of them begin well */
      strcpy(text, "[default]\naws_access_key_id=A\naws_secret_access_key=HIDDEN\n");
      len = strlen(text);
    }
    for (int i = rand() % 40; i > 0; i--) {
      const char *bit = bits[(size_t)rand() % (sizeof bits / sizeof bits[0])];
      memcpy(text + len, bit, strlen(bit));
      len += strlen(bit);
    }
    text[len] = 0;
    keys_file(text);
    config_file(text);
    err e = {0};
    int rc = credentials_find(io_unflushed(), &c, &e);
    assert_true(rc == 0 || rc == ERR_FORMAT || rc == ERR_ACCESS);
    assert_null(strstr(e.text, "HIDDEN"));
    if (rc == 0)
      good++;
    else
      bad++;
  }
  assert_true(good > 0 && bad > 0);
}

static void each_failing_call_is_an_error(void **unused) {
  keys_file("[default]\naws_access_key_id = a\naws_secret_access_key = s\n");
  config_file("[default]\nregion = r\n");
  io_fault *f = io_fault_new(io_system());
  io_fault_once(f, CALL_ANY, 0, 0);
  assert_int_equal(credentials_find(io_fault_io(f), &c, NULL), 0);
  long calls = io_fault_count(f, CALL_ANY);
  for (long n = 1; n <= calls; n++) {
    err e = {0};
    io_fault_once(f, CALL_ANY, n, EIO);
    int rc = credentials_find(io_fault_io(f), &c, &e);
    if (rc == 0) continue; /* a close that failed */
    assert_int_equal(rc, ERR_IO);
    assert_string_equal(c.secret, "");
  }
  io_fault_once(f, CALL_OPEN, 1, EACCES);
  assert_int_equal(credentials_find(io_fault_io(f), &c, NULL), ERR_ACCESS);
  env_keys(); /* then the home may be another user's */
  io_fault_once(f, CALL_OPEN, 1, EACCES);
  assert_int_equal(credentials_find(io_fault_io(f), &c, NULL), 0);
  setenv("AWS_SHARED_CREDENTIALS_FILE", tmpdir_path(home, ".aws/credentials"), 1);
  io_fault_once(f, CALL_OPEN, 1, EACCES);
  assert_int_equal(credentials_find(io_fault_io(f), &c, NULL), ERR_ACCESS);
  io_fault_free(f);
}

static void what_is_forgotten_is_gone(void **unused) {
  env_keys();
  setenv("AWS_SESSION_TOKEN", "t", 1);
  found("AKENV", "senv", "t");
  credentials_forget(&c);
  for (size_t i = 0; i < sizeof c.secret; i++) assert_int_equal(c.secret[i], 0);
  assert_string_equal(c.access, "");
  assert_string_equal(c.token, "");
}

/* ---- what is laid over the environment ---- */

static void keys_of_one_place_are_not_mixed_with_anothers(void **unused) {
  static const char *const profile[] = {"AWS_PROFILE=mine", NULL};
  static const char *const pair[] = {"AWS_ACCESS_KEY_ID=AKLAID", "AWS_SECRET_ACCESS_KEY=slaid",
                                     "AWS_REGION=r2", NULL};
  static const char *const region[] = {"AWS_REGION=r3", "AWS_CONFIG_FILE=", NULL};
  static const char *const bad[] = {"AWS_PROFILE", NULL};
  io laid;
  env_keys();
  setenv("AWS_SESSION_TOKEN", "tenv", 1);
  setenv("AWS_REGION", "r1", 1);
  keys_file("[mine]\naws_access_key_id = AKMINE\naws_secret_access_key = smine\n");
  assert_int_equal(io_lay(io_system(), profile, &laid), 0);
  assert_int_equal(credentials_find(&laid, &c, NULL), 0);
  assert_string_equal(c.access, "AKMINE");
  assert_string_equal(c.token, "");
  assert_string_equal(c.region, "r1");
  io_lay_free(&laid);
  assert_int_equal(io_lay(io_system(), pair, &laid), 0);
  assert_int_equal(credentials_find(&laid, &c, NULL), 0);
  assert_string_equal(c.access, "AKLAID");
  assert_string_equal(c.token, ""); /* it is that of the other keys */
  assert_string_equal(c.region, "r2");
  io_lay_free(&laid);
  assert_int_equal(io_lay(io_system(), region, &laid), 0);
  assert_int_equal(credentials_find(&laid, &c, NULL), 0);
  assert_string_equal(c.access, "AKENV");
  assert_string_equal(c.token, "tenv");
  assert_string_equal(c.region, "r3");
  io_lay_free(&laid);
  assert_int_equal(io_lay(io_system(), bad, &laid), -EINVAL);
  found("AKENV", "senv", "tenv");
  unsetenv("AWS_SESSION_TOKEN");
  unsetenv("AWS_REGION");
}

/* ---- pieces ---- */

static void a_line_is_split_as_a_shell_does(void **unused) {
  static const struct {
    const char *line, *words[4];
  } known[] = {{"a b", {"a", "b"}},
               {"  a\t'b c'\"d\" ", {"a", "b cd"}},
               {"'' \"\"", {"", ""}},
               {"a\\ b \"c\\\"d\\e\"", {"a b", "c\"d\\e"}},
               {"'a\\b' $HOME ;|&", {"a\\b", "$HOME", ";|&"}}};
  char *argv[8];
  buf text;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    buf_init(&text, 1000);
    assert_int_equal(credentials_split(known[i].line, &text, argv, 8, NULL), 0);
    size_t n = 0;
    for (; known[i].words[n]; n++) assert_string_equal(argv[n], known[i].words[n]);
    assert_null(argv[n]);
    buf_free(&text);
  }
  static const char *const bad[] = {"", "  ", "'a", "\"a", "a\\", "1 2 3 4 5 6 7 8"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    buf_init(&text, 1000);
    assert_true(credentials_split(bad[i], &text, argv, 8, NULL) < 0);
    buf_free(&text);
  }
}

static void times_are_read_with_any_offset(void **unused) {
  const int64_t ns = INT64_C(1767323045) * 1000000000; /* 2026-01-02T03:04:05Z */
  static const char *const same[] = {"2026-01-02T03:04:05Z",      "2026-01-02T03:04:05.123456Z",
                                     "2026-01-02T05:04:05+02:00", "2026-01-01T20:04:05-0700",
                                     "2026-01-02 03:04:05+00:00", "2026-01-02T03:04:05",
                                     "2026-01-02T03:04:05UTC"};
  static const char *const none[] = {"",
                                     "soon",
                                     "2026-01-02",
                                     "2026-13-02T03:04:05Z",
                                     "2026-01-02T03:04:05X",
                                     "2026-01-02T03:04:05+2",
                                     "2026-01-02T03:04:05+02:00x",
                                     "1-01-02T03:04:05Z"};
  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
    if (credentials_time(same[i]) != ns) fail_msg("%s", same[i]);
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
    if (credentials_time(none[i]) != 0) fail_msg("%s", none[i]);
}

static void a_containers_keys_come_from_this_machine_or_over_tls(void **unused) {
  static const char *const bad[] = {"http://10.0.0.1/x",       "http://127.0.0.1.evil.example/x",
                                    "http://127.0.0.1@evil/x", "http://evil/127.0.0.1",
                                    "http://169.254.170.22/x", "ftp://127.0.0.1/x",
                                    "http://[fd00:ec2::24]/x", "http://localhost.evil/x"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", bad[i], 1);
    fails(ERR_ACCESS, "AWS_CONTAINER_CREDENTIALS_FULL_URI names");
  }
  setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.3.2.1:1/x", 1); /* nobody is there */
  setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hidden\r\nx: y", 1);
  fails(ERR_FORMAT, "control character");
  unsetenv("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@evil/x", 1);
  fails(ERR_INVAL, "slash");
  unsetenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_environment_comes_first_and_brings_its_own_token),
      TEST(half_a_pair_is_refused),
      TEST(the_profile_is_looked_for_in_both_files),
      TEST(files_may_be_elsewhere),
      TEST(without_keys_it_says_what_was_looked_at),
      TEST(another_way_to_keys_is_named),
      TEST(region_endpoint_and_ca_come_from_the_environment_first),
      TEST(the_style_is_path_where_a_bucket_cannot_be_in_the_host),
      TEST(what_is_no_endpoint_is_refused_unseen),
      TEST(files_are_read_as_people_write_them),
      TEST(nested_settings_are_those_of_s3_alone),
      TEST(malformed_lines_are_named_and_not_shown),
      TEST(what_is_too_long_is_refused),
      TEST(a_value_with_a_line_end_is_refused),
      TEST(what_is_no_text_is_refused),
      TEST(hostile_files_do_no_harm),
      TEST(each_failing_call_is_an_error),
      TEST(what_is_forgotten_is_gone),
      TEST(keys_of_one_place_are_not_mixed_with_anothers),
      TEST(a_line_is_split_as_a_shell_does),
      TEST(times_are_read_with_any_offset),
      TEST(a_containers_keys_come_from_this_machine_or_over_tls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
