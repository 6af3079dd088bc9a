/* What a bucket's server answers, and whose keys it is asked with. The program is linked so that
 * requests end here (--wrap=http_...): the input is the list of answers, each three digits of a
 * status, lines of headers, an empty line and the body, with a byte 0x1e between two. When they are
 * used up the connection is refused. */
#include "targets.h"

#include <string.h>

#include "prims/http.h"
#include "prims/program.h"
#include "store/aws/credentials_parts.h"
#include "store/aws/sigv4.h"
#include "store/store_s3.h"
#include "store/aws/xml.h"

/* ---- the server ---- */

static const uint8_t *answers;
static size_t answers_left;
static char nobody;

/* libFuzzer's program alone is linked with it; the names are those that the linker makes. */
// NOLINTBEGIN(bugprone-reserved-identifier)
int __wrap_http_open(http **out, err *e);
void __wrap_http_close(http *h);
int __wrap_http_start(http *h, const http_request *request, http_response *response,
                      http_call **out, err *e);
int __wrap_http_wait(http_call *call, err *e);
bool __wrap_http_done(const http_call *call);
int __wrap_program_start(const io *io, const program_plan *plan, program **out, err *e);

static int refused(err *e) {
  return err_set(e, ERR_IO, "the connection is refused");
}

static void take_body(http_response *r, const uint8_t *body, size_t len) {
  if (r->into && r->status / 100 == 2) {
    r->got = len < r->room ? len : r->room;
    if (r->got) memcpy(r->into, body, r->got);
  } else if (len > 0) {
    buf_add(&r->body, body, len);
  }
}

static int answer(const http_request *request, http_response *r, err *e) {
  size_t len, line_len;
  const uint8_t *at = fuzz_piece(&answers, &answers_left, 0x1e, &len);
  must(strncmp(request->url, "http", 4) == 0);
  r->status = 0;
  r->got = 0;
  buf_clear(&r->headers);
  buf_clear(&r->body);
  if (!at || len < 3) return refused(e);
  r->status = 100 + at[0] % 5 * 100 + (at[1] % 10) * 10 + at[2] % 10;
  at += 3, len -= 3;
  const uint8_t *line;
  while ((line = fuzz_piece(&at, &len, '\n', &line_len)) && line_len > 0) {
    if (memchr(line, 0, line_len)) continue;
    buf_add(&r->headers, line, line_len);
    buf_add(&r->headers, "\n", 1);
  }
  if (line) take_body(r, at, at ? len : 0);
  if (buf_failed(&r->body)) return err_set(e, ERR_LIMIT, "the answer is too long");
  return 0;
}

int __wrap_http_open(http **out, err *e) {
  (void)e;
  *out = (http *)&nobody;
  return 0;
}

void __wrap_http_close(http *h) {
  must(!h || h == (http *)&nobody);
}

typedef struct pending {
  int rc;
  err e;
} pending;

int __wrap_http_start(http *h, const http_request *request, http_response *response,
                      http_call **out, err *e) {
  (void)h, (void)e;
  pending *p = calloc(1, sizeof *p);
  must(p);
  p->rc = answer(request, response, &p->e);
  *out = (http_call *)p;
  return 0;
}

int __wrap_http_wait(http_call *call, err *e) {
  pending *p = (pending *)call;
  int rc = p->rc;
  if (rc < 0) err_set(e, rc, "%s", p->e.text);
  free(p);
  return rc;
}

bool __wrap_http_done(const http_call *call) {
  (void)call;
  return true;
}

/* A file of profiles names a program to be run. */
int __wrap_program_start(const io *io, const program_plan *plan, program **out, err *e) {
  (void)io;
  must(plan->argv[0]);
  *out = NULL;
  return err_set(e, ERR_ACCESS, "nothing is run here");
}

// NOLINTEND(bugprone-reserved-identifier)

/* ---- the client ---- */

static store *bucket(void) {
  static store *s;
  uri where;
  if (s) return s;
  setenv("AWS_ACCESS_KEY_ID", "key", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1", 1);
  setenv("HOME", "/nonexistent", 1);
  must(uri_parse("s3://bucket/prefix", &where, NULL) == 0);
  must(store_open(&where, fuzz_io(), NULL, &s, NULL) == 0);
  return s;
}

static int take_key(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  (void)ctx;
  must(is_prefix == !object && store_key_check(key, NULL) == 0);
  return 0;
}

static void write_large(store *s, const uint8_t *some, unsigned how) {
  static uint8_t part[S3_PART + 1];
  store_writer *w = NULL;
  (void)some;
  if (s->ops->write_open(s, "a/large", sizeof part, how, NULL, &w, NULL) < 0) return;
  if (s->ops->write(w, part, sizeof part, NULL) < 0)
    s->ops->write_abort(w);
  else
    s->ops->write_close(w, NULL);
}

void fuzz_s3(const uint8_t *data, size_t size) {
  store_object object;
  char to[100];
  buf text;
  store *s = bucket();
  if (size == 0) return;
  answers = size > 1 ? data + 1 : NULL;
  answers_left = size - 1;
  buf_init(&text, 64 << 10);
  switch (data[0] % 12) {
  case 0: s->ops->list(s, "a", true, take_key, NULL, NULL); break;
  case 1: s->ops->list(s, "", false, take_key, NULL, NULL); break;
  case 2: s->ops->exists(s, NULL); break;
  case 3: s->ops->head(s, "a/b", &object, NULL); break;
  case 4: s->ops->get(s, "a/b", &text, NULL); break;
  case 5: s->ops->read(s, "a/b", 10, to, sizeof to, NULL); break;
  case 6: s->ops->put(s, "a/b", "x", 1, STORE_IF_ABSENT, NULL); break;
  case 7: s->ops->put(s, "a/b", "x", 1, STORE_REPLACE, NULL); break;
  case 8: s->ops->remove_prefix(s, "a", NULL); break;
  case 9: s->ops->remove(s, "a/b", NULL); break;
  case 10: write_large(s, data, 0); break;
  default: write_large(s, data, STORE_RESUME); break;
  }
  buf_free(&text);
}

static int take_xml(void *ctx, const char *path, const char *text) {
  (void)ctx, (void)text;
  must(*path);
  return 0;
}

void fuzz_xml(const uint8_t *data, size_t size) {
  char etag[S3_ETAG_MAX], *own = fuzz_text(data, size);
  err e = {0};
  buf out;
  int rc = xml_walk(own, size, "input", take_xml, NULL, &e);
  must(rc == 0 || *e.text);
  s3_time(own);
  s3_etag(own, etag);
  buf_init(&out, 8 << 20);
  xml_escape(own, &out);
  must(!strpbrk(out.data ? out.data : "", "<>\""));
  buf_free(&out);
  free(own);
}

/* The credentials file, a byte 0x1e, and the config file. */
void fuzz_credentials(const uint8_t *data, size_t size) {
  static credentials found;
  char keys_path[128], config_path[128];
  const uint8_t *at = data;
  size_t left = size, len = 0;
  const uint8_t *piece = size ? fuzz_piece(&at, &left, 0x1e, &len) : (const uint8_t *)"";
  snprintf(keys_path, sizeof keys_path, "%s", fuzz_file("credentials", piece, len));
  snprintf(config_path, sizeof config_path, "%s",
           fuzz_file("config", at ? at : (const uint8_t *)"", at ? left : 0));
  unsetenv("AWS_ACCESS_KEY_ID");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  unsetenv("AWS_ENDPOINT_URL");
  answers = NULL; /* nobody answers */
  answers_left = 0;
  setenv("AWS_SHARED_CREDENTIALS_FILE", keys_path, 1);
  setenv("AWS_CONFIG_FILE", config_path, 1);
  err e = {0};
  int rc = credentials_find(fuzz_io(), &found, &e);
  must(rc == 0 || (rc < 0 && *e.text && !*found.secret));
  if (rc == 0) must(strlen(found.secret) < sizeof found.secret && *found.region);
  credentials_forget(&found);
}

/* The config file, a byte 0x1e, and what the servers answer that it leads to. */
static void find_keys(const uint8_t *data, size_t size, bool instance) {
  static credentials found;
  char config[128];
  const uint8_t *at = data;
  size_t left = size, len = 0;
  err e = {0};
  const uint8_t *piece = size ? fuzz_piece(&at, &left, 0x1e, &len) : (const uint8_t *)"";
  snprintf(config, sizeof config, "%s", fuzz_file("config", piece, len));
  answers = at && left ? at : NULL;
  answers_left = left;
  unsetenv("AWS_ACCESS_KEY_ID");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  unsetenv("AWS_ENDPOINT_URL");
  setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent", 1);
  setenv("AWS_CONFIG_FILE", config, 1);
  if (!instance) setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/x", 1);
  int rc = credentials_find(fuzz_io(), &found, &e);
  unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  must(rc <= 0 && !strchr(e.text, '\n'));
  must(rc == 0 ? found.anonymous || (*found.access && *found.secret) : *e.text && !*found.secret);
  credentials_forget(&found);
}

static void split_line(const char *line) {
  char *argv[8];
  buf words;
  buf_init(&words, 4096);
  if (credentials_split(line, &words, argv, 8, NULL) == 0) {
    size_t count = 0;
    for (; argv[count]; count++) must(strlen(argv[count]) <= strlen(line));
    must(count > 0 && count < 8);
  }
  buf_free(&words);
}

static void read_keys(const char *own, size_t size, unsigned how) {
  static const credentials_names names = {"a", "s", "t", "e", true};
  static credentials found;
  json_t *value = NULL;
  err e = {0};
  buf text;
  int rc;
  found = (credentials){0};
  buf_init_secret(&text, 1 << 20);
  buf_add(&text, own, size);
  if (how == 0)
    rc = credentials_of_sts(&text, &found, &e);
  else if (how == 1)
    rc = credentials_of_output(own, size, "p", &found, &e);
  else if ((rc = js_parse_secret(own, size, "input", &value, &e)) == 0)
    rc = credentials_of_json(value, &names, "input", &found, &e);
  must(rc == 0 ? *found.access && *found.secret : *e.text != 0);
  if (rc == 0 && how != 1) must(*found.token && found.expires_ns > 0);
  must(!strpbrk(found.token, "\r\n") && !strpbrk(found.secret, "\r\n"));
  json_decref(value);
  buf_free(&text);
}

/* What gives keys: the first byte says which of them. */
void fuzz_keys(const uint8_t *data, size_t size) {
  if (size == 0) return;
  char *own = fuzz_text(data + 1, size - 1);
  switch (data[0] % 7) {
  case 0:
  case 1:
  case 2: read_keys(own, size - 1, data[0] % 7); break;
  case 3: split_line(own); break;
  case 4: must(credentials_time(own) >= 0); break;
  case 5: find_keys(data + 1, size - 1, false); break;
  default: find_keys(data + 1, size - 1, true); break;
  }
  free(own);
}

/* Path, query items and headers, a line each. */
void fuzz_sigv4(const uint8_t *data, size_t size) {
  enum { MOST = 64 };
  char *path = NULL, *query[MOST + 1] = {0}, *headers[2] = {0};
  size_t left = size, len, count = 0;
  const uint8_t *at = data, *piece;
  buf target, lines;
  while (size && count < MOST && (piece = fuzz_piece(&at, &left, '\n', &len))) {
    char **to = !path ? &path : !headers[0] ? &headers[0] : &query[count++];
    *to = fuzz_text(piece, len);
  }
  if (count % 2) free(query[--count]), query[count] = NULL;
  const sigv4_key key = {.access = "AKID", .secret = "secret", .token = "t", .region = "r"};
  const sigv4_request r = {.method = "GET",
                           .host = "h",
                           .path = path ? path : "/",
                           .query = (const char *const *)query,
                           .headers = (const char *const *)headers,
                           .payload = SIGV4_UNSIGNED,
                           .time_ns = 1700000000000000000};
  buf_init(&target, 1 << 20);
  buf_init(&lines, 1 << 20);
  if (sigv4_sign(&key, &r, &target, &lines, NULL) == 0 && !buf_failed(&target))
    for (size_t i = 0; i < target.len; i++) must((unsigned char)target.data[i] > ' ');
  buf_free(&target);
  buf_free(&lines);
  free(path);
  free(headers[0]);
  for (size_t i = 0; i < count; i++) free(query[i]);
}
