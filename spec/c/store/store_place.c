#include "store_place.h"

#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tmpdir.h"

const char *store_place_scheme = "file";
const char *store_place_parent;

void store_place_make(store_place *p, const io *io) {
  static int names;
  char text[URI_MAX];
  err e = {0};
  p->dir = store_place_parent ? tmpdir_new_in(store_place_parent) : tmpdir_new();
  if (strcmp(store_place_scheme, "file") == 0)
    snprintf(text, sizeof text, "file://%s/root", p->dir);
  else if (strcmp(store_place_scheme, "s3") == 0 || strcmp(store_place_scheme, "gs") == 0)
    snprintf(text, sizeof text, "%s://ckpt-test/%d/%d", store_place_scheme, (int)getpid(), ++names);
  else
    snprintf(text, sizeof text, "%s://test-%d", store_place_scheme, ++names);
  if (uri_parse(text, &p->where, &e) < 0 || store_open(&p->where, io, NULL, &p->s, &e) < 0)
    fail_msg("%s: %s", text, e.text);
}

void store_place_remove(store_place *p) {
  store_close(p->s);
  tmpdir_remove(p->dir);
}

int store_place_setup(void **state) {
  store_place *p = calloc(1, sizeof *p);
  if (!p) return -1;
  store_place_make(p, io_system());
  *state = p;
  return 0;
}

int store_place_teardown(void **state) {
  store_place_remove(*state);
  free(*state);
  return 0;
}

int store_put_text(store *s, const char *key, const char *text, store_how how) {
  return s->ops->put(s, key, text, strlen(text), how, NULL);
}

void store_must_hold(store *s, const char *key, const char *text) {
  err e = {0};
  buf b;
  buf_init(&b, 1 << 20);
  if (s->ops->get(s, key, &b, &e) < 0) fail_msg("%s: %s", key, e.text);
  assert_int_equal(b.len, strlen(text));
  if (b.len) assert_memory_equal(b.data, text, b.len);
  buf_free(&b);
}

void store_must_be(store *s, const char *key, const char *data, size_t len) {
  enum { AT_ONCE = 8 << 20 };
  char *got = malloc(AT_ONCE);
  err e = {0};
  for (size_t at = 0; at < len; at += AT_ONCE) {
    size_t want = len - at < AT_ONCE ? len - at : AT_ONCE;
    ssize_t n = s->ops->read(s, key, at, got, AT_ONCE, &e);
    if (n < 0) fail_msg("%s", e.text);
    assert_int_equal(n, want);
    if (memcmp(got, data + at, want) != 0) fail_msg("%s: other bytes after %zu", key, at);
  }
  free(got);
}

bool store_holds(store *s, const char *key) {
  store_object o;
  return s->ops->head(s, key, &o, NULL) == 0;
}

static int add_name(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  buf *b = ctx;
  if (is_prefix == (object != NULL)) fail_msg("%s: neither an object nor a prefix", key);
  buf_fmt(b, "%s%s%s", b->len ? " " : "", key, is_prefix ? "/" : "");
  return 0;
}

char *store_listing(store *s, const char *prefix, bool delimited) {
  buf b;
  buf_init(&b, 1 << 20);
  buf_str(&b, "");
  int rc = s->ops->list(s, prefix, delimited, add_name, &b, NULL);
  if (rc < 0) {
    buf_clear(&b);
    buf_fmt(&b, "!%s", err_name(rc));
  }
  return buf_take(&b);
}

void store_must_list(store *s, const char *prefix, bool delimited, const char *expected) {
  char *got = store_listing(s, prefix, delimited);
  assert_string_equal(got, expected);
  free(got);
}

int store_stream(store *s, const char *key, const void *data, size_t len, size_t chunk,
                 bool staged) {
  store_writer *w;
  int rc = s->ops->write_open(s, key, len, staged ? STORE_STAGED : 0, NULL, &w, NULL);
  if (rc < 0) return rc;
  for (size_t at = 0; at < len && rc == 0; at += chunk)
    rc = s->ops->write(w, (const char *)data + at, len - at < chunk ? len - at : chunk, NULL);
  if (rc == 0) return s->ops->write_close(w, NULL);
  s->ops->write_abort(w);
  return rc;
}
