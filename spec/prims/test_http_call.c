/* What goes out, what comes back, and what a broken answer leads to. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

#include "prims/hash.h"
#include "prims/http.h"
#include "server.h"
#include "tmpdir.h"

static server odd, secure;
static http *h;
static http_response r;
static char url[256];

static const char *at(const char *path) {
  snprintf(url, sizeof url, "http://127.0.0.1:%d%s", odd.port, path);
  return url;
}

static int ask(http_request q, err *e) {
  http_call *call;
  int rc = http_start(h, &q, &r, &call, e);
  return rc < 0 ? rc : http_wait(call, e);
}

static int get(const char *path, err *e) {
  return ask((http_request){.method = "GET", .url = at(path), .stall_s = 5}, e);
}

static int set_up(void **unused) {
  buf_init(&r.headers, 4096);
  buf_init(&r.body, 1 << 20);
  r.into = NULL;
  r.room = 0;
  return http_open(&h, NULL);
}

static int tear_down(void **unused) {
  http_close(h);
  buf_free(&r.headers);
  buf_free(&r.body);
  return 0;
}

static int start(void **unused) {
  /* What the machine's own environment says of proxies would decide over all tests. */
  const char *names[] = {"http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unsetenv(names[i]);
  odd = server_start("odd.py", NULL);
  secure = server_start("odd.py", (const char *const[]){"spec/data/tls/server.pem", NULL});
  return 0;
}

static int stop(void **unused) {
  server_stop(&odd);
  server_stop(&secure);
  return 0;
}

/* ---- what goes out ---- */

static void a_request_goes_out_as_it_was_given(void **unused) {
  const char *headers[] = {"x-amz-date: now", "X-Empty: ", "host: bucket.example:81", NULL};
  http_request q = {
      .method = "DELETE", .url = at("/echo/../a//b%2F%c3?x=%20+&=;,'()"), .headers = headers};
  assert_int_equal(ask(q, NULL), 0);
  assert_int_equal(r.status, 200);
  char want[512];
  snprintf(want, sizeof want,
           "DELETE /echo/../a//b%%2F%%c3?x=%%20+&=;,'() HTTP/1.1\nHost: bucket.example:81\n");
  /* The server says the target, then each header, then the body. */
  assert_non_null(strstr(r.body.data, "DELETE /echo/../a//b%2F%c3?x=%20+&=;,'()\n"));
  assert_non_null(strstr(r.body.data, "\nx-amz-date: now\n"));
  assert_non_null(strstr(r.body.data, "\nX-Empty:"));
  assert_non_null(strstr(r.body.data, "ost: bucket.example:81\n"));
  assert_null(strstr(r.body.data, "ost: 127.0.0.1"));
}

static void nothing_goes_out_that_was_not_given(void **unused) {
  http_request q = {.method = "POST", .url = at("/echo"), .body = "12345", .len = 5};
  assert_int_equal(ask(q, NULL), 0);
  char want[256];
  int len = snprintf(want, sizeof want,
                     "POST /echo\nHost: 127.0.0.1:%d\nContent-Length: 5\nbody 5 ", odd.port);
  r.body.data[len] = 0;
  assert_string_equal(r.body.data, want);
}

static void bodies_of_all_sizes_arrive_whole(void **unused) {
  static const size_t sizes[] = {0, 1, 16383, 65536, 65537, (8 << 20) + 3};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    for (int put = 0; put < 2; put++) {
      char *body = malloc(sizes[i] + 1), want[128], hex[HASH_HEX_MAX];
      assert_non_null(body);
      for (size_t k = 0; k < sizes[i]; k++) body[k] = (char)(k * 31 >> 3);
      _Atomic uint64_t moved = 7;
      http_request q = {.method = put ? "PUT" : "POST",
                        .url = at("/echo"),
                        .body = body,
                        .len = sizes[i],
                        .moved = &moved};
      assert_int_equal(ask(q, NULL), 0);
      assert_int_equal(hash_sha256_hex(body, sizes[i], hex, NULL), 0);
      snprintf(want, sizeof want, "\nbody %zu %s", sizes[i], hex);
      assert_non_null(strstr(r.body.data, want));
      assert_int_equal(moved, 7 + sizes[i]);
      free(body);
    }
  }
}

static void an_upload_without_a_body_has_length_zero(void **unused) {
  http_request q = {.method = "POST", .url = at("/echo?uploads=")};
  assert_int_equal(ask(q, NULL), 0);
  assert_non_null(strstr(r.body.data, "\nContent-Length: 0\n"));
}

static void requests_that_must_not_go_out_are_refused(void **unused) {
  static const char *const urls[] = {
      "ftp://127.0.0.1/x", "file:///etc/passwd",        "", "127.0.0.1", "gopher://127.0.0.1/",
      "http://a b/",       "http://u:secret@127.0.0.1/"};
  for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
    err e = {0};
    assert_int_equal(ask((http_request){.method = "GET", .url = urls[i]}, &e), ERR_INVAL);
    assert_null(strstr(e.text, "secret"));
    assert_null(strstr(e.text, "passwd"));
  }
  static const char *const headers[] = {"x: a\r\ny: secret", "x: a\n", ": secret", "secret", ""};
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
    err e = {0};
    const char *list[] = {"a: b", headers[i], NULL};
    http_request q = {.method = "GET", .url = at("/echo"), .headers = list};
    assert_int_equal(ask(q, &e), ERR_INVAL);
    assert_null(strstr(e.text, "secret"));
  }
  const char *many[HTTP_HEADERS_MAX + 2] = {0};
  for (int i = 0; i <= HTTP_HEADERS_MAX; i++) many[i] = "a: b";
  http_request q = {.method = "GET", .url = at("/echo"), .headers = many};
  assert_int_equal(ask(q, NULL), ERR_LIMIT);
  many[HTTP_HEADERS_MAX] = NULL;
  assert_int_equal(ask(q, NULL), 0);
}

/* ---- what comes back ---- */

static void a_large_answer_lands_where_the_caller_wants_it(void **unused) {
  enum { SIZE = (8 << 20) + 5 };
  unsigned char *to = malloc(SIZE + 1);
  assert_non_null(to);
  to[SIZE] = 0xAA;
  r.into = to;
  r.room = SIZE;
  _Atomic uint64_t moved = 0;
  char path[64];
  snprintf(path, sizeof path, "/bytes/%d", SIZE);
  assert_int_equal(ask((http_request){.method = "GET", .url = at(path), .moved = &moved}, NULL), 0);
  assert_int_equal(r.got, SIZE);
  assert_int_equal(moved, SIZE);
  assert_int_equal(r.body.len, 0);
  for (size_t i = 0; i < SIZE; i++) assert_true(to[i] == (unsigned char)i);
  assert_int_equal(to[SIZE], 0xAA);

  err e = {0};
  r.room = SIZE - 1; /* one byte too many */
  to[SIZE - 1] = 0xBB;
  assert_int_equal(ask((http_request){.method = "GET", .url = at(path)}, &e), ERR_LIMIT);
  assert_int_equal(to[SIZE - 1], 0xBB);
  assert_non_null(strstr(e.text, "127.0.0.1"));
  free(to);
}

static void every_status_is_an_answer(void **unused) {
  static const char *const statuses[] = {"200", "302", "404", "412", "500", "503"};
  char into[64];
  r.into = into;
  r.room = sizeof into;
  for (size_t i = 0; i < 6; i++) {
    char path[32], value[32];
    snprintf(path, sizeof path, "/status/%s", statuses[i]);
    assert_int_equal(get(path, NULL), 0);
    assert_int_equal(r.status, atoi(statuses[i]));
    /* Errors go to `body`, or they would be taken for data. */
    assert_int_equal(r.got, i == 0 ? 17 : 0);
    assert_int_equal(r.body.len, i == 0 ? 0 : 17);
    assert_true(http_header(&r, "x-odd", value, sizeof value));
    assert_string_equal(value, "some thing");
    assert_true(r.seconds > 0);
  }
}

static void a_header_is_found_by_its_whole_name(void **unused) {
  char value[8];
  assert_int_equal(get("/status/200", NULL), 0);
  assert_false(http_header(&r, "x-od", value, sizeof value));
  assert_false(http_header(&r, "odd", value, sizeof value));
  assert_string_equal(value, "");
  assert_true(http_header(&r, "content-length", value, sizeof value));
  assert_string_equal(value, "17");
  assert_false(http_header(&r, "x-odd", value, sizeof value)); /* half of it would be a lie */
  http_response none = {0};
  assert_false(http_header(&none, "x", value, sizeof value));
}

static void a_head_has_no_body(void **unused) {
  char value[32];
  assert_int_equal(ask((http_request){.method = "HEAD", .url = at("/bytes/12345")}, NULL), 0);
  assert_true(http_header(&r, "content-length", value, sizeof value));
  assert_string_equal(value, "12345");
  assert_int_equal(r.body.len, 0);
}

static void only_the_final_answer_counts(void **unused) {
  char value[32];
  assert_int_equal(get("/continue", NULL), 0);
  assert_int_equal(r.status, 200);
  assert_false(http_header(&r, "x-early", value, sizeof value));
  assert_true(http_header(&r, "x-late", value, sizeof value));
  assert_string_equal(r.body.data, "late");
}

static void no_redirect_is_followed_and_no_cookie_kept(void **unused) {
  assert_int_equal(get("/redirect", NULL), 0);
  assert_int_equal(r.status, 302);
  assert_int_equal(get("/echo", NULL), 0);
  assert_null(strstr(r.body.data, "ookie"));
}

static void no_netrc_is_read(void **unused) {
  char *dir = tmpdir_new();
  write_file(tmpdir_path(dir, ".netrc"), "machine 127.0.0.1 login a password b\n");
  const char *before = getenv("HOME");
  char *home = strdup(before ? before : "/");
  setenv("HOME", dir, 1);
  assert_int_equal(get("/echo", NULL), 0);
  assert_null(strstr(r.body.data, "uthorization"));
  setenv("HOME", home, 1);
  free(home);
  tmpdir_remove(dir);
}

static void an_answer_that_never_ends_is_cut_at_the_cap(void **unused) {
  err e = {0};
  assert_int_equal(get("/endless", &e), ERR_LIMIT);
  assert_non_null(strstr(e.text, "larger"));
  assert_true(r.body.len <= 1 << 20);
}

static void a_huge_header_is_refused(void **unused) {
  assert_int_equal(get("/header/3000", NULL), 0);
  assert_int_equal(get("/header/60000", NULL), ERR_LIMIT);
  assert_int_not_equal(get("/header/2000000", NULL), 0);
  assert_int_equal(get("/header/3000", NULL), 0); /* the next one is none the worse */
}

static void broken_answers_are_errors_that_may_pass(void **unused) {
  static const char *const paths[] = {"/cut/0", "/cut/999999", "/cuthead", "/garbage", "/close"};
  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    err e = {0};
    char path[128], place[64];
    snprintf(path, sizeof path, "%s?X-Amz-Signature=secret", paths[i]);
    assert_int_equal(get(path, &e), ERR_IO);
    snprintf(place, sizeof place, "http://127.0.0.1:%d: ", odd.port);
    assert_int_equal(strncmp(e.text, place, strlen(place)), 0);
    assert_null(strstr(e.text, "secret"));
  }
}

static void nobody_there_is_an_error_with_a_hint(void **unused) {
  err e = {0};
  http_request q = {.method = "GET", .url = "http://127.0.0.1:1/bucket?secret=1"};
  assert_int_equal(ask(q, &e), ERR_IO);
  assert_non_null(strstr(e.text, "http://127.0.0.1:1"));
  assert_non_null(strstr(e.text, "port right"));
  assert_null(strstr(e.text, "secret"));
  q.url = "http://no-such-host.invalid/";
  assert_int_equal(ask(q, &e), ERR_IO);
  assert_non_null(strstr(e.text, "no-such-host.invalid"));
}

/* What a request may wait for, and how it ends. All at once: libcurl takes the mean of some seconds
 * before it calls a transfer slow. */
static void every_wait_ends_and_slow_is_none(void **unused) {
  enum { SIZE = 32 << 20, COUNT = 6 }; /* more than the sockets hold */
  static const struct {
    const char *path;
    int rc;
  } waits[COUNT] = {
      {"/never", ERR_TIMEOUT},      /* accepts, and never answers */
      {"/noread", ERR_TIMEOUT},     /* takes no body */
      {"/halt/0", ERR_TIMEOUT},     /* stops behind the head */
      {"/halt/5000", ERR_TIMEOUT},  /* stops in the middle of the body */
      {"/trickle/20", ERR_TIMEOUT}, /* is never silent, and never done */
      {"/trickle/4", 0},
  };
  char *body = calloc(1, SIZE), urls[COUNT][sizeof url];
  assert_non_null(body);
  http_request q[COUNT];
  http_response answers[COUNT] = {{0}};
  http_call *calls[COUNT];
  for (int i = 0; i < COUNT; i++) {
    snprintf(urls[i], sizeof urls[i], "%s", at(waits[i].path));
    q[i] = (http_request){.method = i == 1 ? "PUT" : "GET", .url = urls[i], .stall_s = 1};
    if (i == 1) q[i].body = body, q[i].len = SIZE;
    buf_init(&answers[i].headers, 1000);
    buf_init(&answers[i].body, 8000);
    assert_int_equal(http_start(h, &q[i], &answers[i], &calls[i], NULL), 0);
  }
  for (int i = 0; i < COUNT; i++) {
    err e = {0};
    int rc = http_wait(calls[i], &e);
    if (rc != waits[i].rc) fail_msg("%s: %d, %s", waits[i].path, rc, e.text);
    if (rc < 0) assert_non_null(strstr(e.text, "http://127.0.0.1:"));
    assert_true(answers[i].seconds < 10);
    if (rc == 0) assert_int_equal(answers[i].body.len, 40);
    buf_free(&answers[i].headers);
    buf_free(&answers[i].body);
  }
  free(body);
}

/* A socket that listens and never accepts: once its queue is full, a connect just hangs. */
static int full_server(int *fd, int *fillers) {
  struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t len = sizeof where;
  *fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(*fd, (struct sockaddr *)&where, sizeof where), 0);
  assert_int_equal(listen(*fd, 0), 0);
  assert_int_equal(getsockname(*fd, (struct sockaddr *)&where, &len), 0);
  for (int i = 0; i < 4; i++) {
    fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)!connect(fillers[i], (struct sockaddr *)&where, sizeof where);
  }
  return ntohs(where.sin_port);
}

static void a_connect_that_hangs_is_a_time_out(void **unused) {
  int fd, fillers[4];
  int port = full_server(&fd, fillers);
  snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
  err e = {0};
  assert_int_equal(ask((http_request){.method = "GET", .url = url, .stall_s = 1}, &e), ERR_TIMEOUT);
  assert_true(r.seconds < 3);
  for (int i = 0; i < 4; i++) close(fillers[i]);
  close(fd);
}

/* ---- connections ---- */

static int connections(void) {
  assert_int_equal(get("/count", NULL), 0);
  return atoi(r.body.data);
}

static void a_connection_is_used_again(void **unused) {
  int before = connections();
  for (int i = 0; i < 20; i++) {
    assert_int_equal(get("/bytes/1000", NULL), 0);
    assert_false(r.resent);
  }
  assert_int_equal(connections(), before);
}

static void a_request_on_a_dead_connection_goes_out_again_and_says_so(void **unused) {
  assert_int_equal(get("/doomed", NULL), 0);
  http_request q = {.method = "PUT", .url = at("/echo"), .body = "again", .len = 5};
  assert_int_equal(ask(q, NULL), 0);
  assert_int_equal(r.status, 200);
  assert_true(r.resent);
  assert_non_null(strstr(r.body.data, "\nbody 5 "));
}

static void the_proxy_of_the_environment_is_used(void **unused) {
  char proxy[64];
  snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", odd.port);
  setenv("http_proxy", proxy, 1);
  http_request q = {.method = "GET", .url = "http://bucket.invalid/echo"};
  assert_int_equal(ask(q, NULL), 0);
  assert_non_null(strstr(r.body.data, "GET http://bucket.invalid/echo\n"));
  setenv("no_proxy", "bucket.invalid", 1);
  assert_int_equal(ask(q, NULL), ERR_IO);
  unsetenv("http_proxy");
  unsetenv("no_proxy");
}

/* ---- TLS ---- */

static int get_secure(const char *host, const char *ca, err *e) {
  snprintf(url, sizeof url, "https://%s:%d/bytes/5", host, secure.port);
  return ask((http_request){.method = "GET", .url = url, .ca_file = ca, .stall_s = 5}, e);
}

static void a_certificate_is_verified(void **unused) {
  err e = {0};
  assert_int_equal(get_secure("127.0.0.1", NULL, &e), ERR_ACCESS);
  assert_non_null(strstr(e.text, "AWS_CA_BUNDLE"));
  assert_int_equal(r.status, 0);
  assert_int_equal(get_secure("127.0.0.1", "spec/data/tls/ca.pem", NULL), 0);
  assert_int_equal(r.body.len, 5);
  assert_int_equal(get_secure("localhost", "spec/data/tls/ca.pem", NULL), 0);
  assert_int_equal(get_secure("bucket.s3.localhost", "spec/data/tls/ca.pem", NULL), 0);
  /* What was verified for one request must not count for the next. */
  assert_int_equal(get_secure("127.0.0.1", NULL, &e), ERR_ACCESS);
  assert_int_equal(get_secure("other.localhost", "spec/data/tls/ca.pem", &e), ERR_ACCESS);
}

static void a_proxy_is_tunnelled_through_and_its_answer_is_not_the_servers(void **unused) {
  char where[64], value[32];
  snprintf(where, sizeof where, "http://127.0.0.1:%d", odd.port);
  setenv("https_proxy", where, 1);
  assert_int_equal(get_secure("bucket.s3.invalid", "spec/data/tls/ca.pem", NULL), 0);
  assert_int_equal(r.body.len, 5);
  assert_false(http_header(&r, "x-proxy", value, sizeof value));
  err e = {0};
  assert_int_equal(get_secure("other.invalid", "spec/data/tls/ca.pem", &e), ERR_ACCESS);
  unsetenv("https_proxy");
}

static void a_ca_file_that_is_none_is_named(void **unused) {
  err e = {0};
  assert_int_equal(get_secure("localhost", "/nowhere/ca.pem", &e), ERR_ACCESS);
  assert_non_null(strstr(e.text, "/nowhere/ca.pem"));
  assert_int_equal(get_secure("localhost", "Makefile", &e), ERR_ACCESS);
}

static void plain_and_tls_do_not_meet(void **unused) {
  err e = {0};
  snprintf(url, sizeof url, "https://127.0.0.1:%d/echo", odd.port);
  /* What a server makes of the other's language is its own: an alert, or silence. */
  int rc = ask((http_request){.method = "GET", .url = url, .stall_s = 2}, &e);
  assert_true(rc == ERR_IO || rc == ERR_TIMEOUT);
  snprintf(url, sizeof url, "http://127.0.0.1:%d/echo", secure.port);
  rc = ask((http_request){.method = "GET", .url = url, .stall_s = 2}, &e);
  assert_true(rc == ERR_IO || rc == ERR_TIMEOUT);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_request_goes_out_as_it_was_given),
      TEST(nothing_goes_out_that_was_not_given),
      TEST(bodies_of_all_sizes_arrive_whole),
      TEST(an_upload_without_a_body_has_length_zero),
      TEST(requests_that_must_not_go_out_are_refused),
      TEST(a_large_answer_lands_where_the_caller_wants_it),
      TEST(every_status_is_an_answer),
      TEST(a_header_is_found_by_its_whole_name),
      TEST(a_head_has_no_body),
      TEST(only_the_final_answer_counts),
      TEST(no_redirect_is_followed_and_no_cookie_kept),
      TEST(no_netrc_is_read),
      TEST(an_answer_that_never_ends_is_cut_at_the_cap),
      TEST(a_huge_header_is_refused),
      TEST(broken_answers_are_errors_that_may_pass),
      TEST(nobody_there_is_an_error_with_a_hint),
      TEST(every_wait_ends_and_slow_is_none),
      TEST(a_connect_that_hangs_is_a_time_out),
      TEST(a_connection_is_used_again),
      TEST(a_request_on_a_dead_connection_goes_out_again_and_says_so),
      TEST(the_proxy_of_the_environment_is_used),
      TEST(a_certificate_is_verified),
      TEST(a_proxy_is_tunnelled_through_and_its_answer_is_not_the_servers),
      TEST(a_ca_file_that_is_none_is_named),
      TEST(plain_and_tls_do_not_meet),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
