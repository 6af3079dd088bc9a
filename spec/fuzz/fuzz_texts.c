/* Texts of ours: JSON, names, addresses, plans, patterns. */
#include "targets.h"

#include <string.h>

#include "base/json.h"
#include "base/uri.h"
#include "decision/policy_impl.h"
#include "prims/match.h"
#include "prims/numbers/match_step.h"

void fuzz_json(const uint8_t *data, size_t size) {
  json_t *value = NULL, *again = NULL;
  buf text, twice;
  char *own = fuzz_text(data, size);
  buf_init(&text, 8 << 20);
  buf_init(&twice, 8 << 20);
  if (js_parse(own, size, "input", &value, NULL) == 0) {
    must(js_print(value, &text, NULL) == 0);
    must(js_parse(text.data, text.len, "print", &again, NULL) == 0);
    must(js_print(again, &twice, NULL) == 0);
    must(text.len == twice.len && memcmp(text.data, twice.data, text.len) == 0);
    json_decref(again);
  }
  json_decref(value);
  buf_free(&text);
  buf_free(&twice);
  free(own);
}

void fuzz_names(const uint8_t *data, size_t size) {
  char *own = fuzz_text(data, size);
  buf text, back;
  buf_init(&text, 8 << 20);
  buf_init(&back, 8 << 20);
  js_name_escape(own, &text);
  const char *escaped = text.data ? text.data : "";
  must(js_name_unescape(escaped, &back, NULL) == 0);
  must(strcmp(back.data ? back.data : "", own) == 0);
  for (const char *c = escaped; *c; c++) must((unsigned char)*c >= ' ');
  buf_clear(&back);
  js_name_unescape(own, &back, NULL);
  buf_clear(&text);
  js_plain(own, 200, &text);
  must(text.len <= 200);
  for (size_t i = 0; i < text.len; i++) must((unsigned char)text.data[i] >= ' ');
  buf_free(&text);
  buf_free(&back);
  free(own);
}

void fuzz_uri(const uint8_t *data, size_t size) {
  char *own = fuzz_text(data, size);
  uri u, again;
  err e = {0};
  buf text;
  buf_init(&text, 3 * URI_MAX);
  if (uri_parse(own, &u, &e) == 0) {
    uri_print(&u, &text);
    must(buf_failed(&text) == 0);
    if (strlen(text.data) <= URI_MAX / 2) {
      must(uri_parse(text.data, &again, NULL) == 0);
      must(strcmp(u.scheme, again.scheme) == 0 && strcmp(u.host, again.host) == 0);
      must(strcmp(u.path, again.path) == 0);
    }
  } else {
    must(e.code < 0 && *e.text);
  }
  buf_clear(&text);
  uri_expand(own, &text, &e);
  buf_free(&text);
  free(own);
}

/* A pattern, a line end, names. */
void fuzz_match(const uint8_t *data, size_t size) {
  size_t len, left = size;
  const uint8_t *at = data, *piece = size ? fuzz_piece(&at, &left, '\n', &len) : NULL;
  if (!piece) return;
  char *pattern = fuzz_text(piece, len);
  match_kind kind;
  match_unit found;
  bool exclude = match_exclude_check(pattern, NULL) == 0;
  bool unit = match_unit_check(pattern, &kind, NULL) == 0;
  while ((piece = fuzz_piece(&at, &left, '\n', &len))) {
    char *name = fuzz_text(piece, len);
    match_glob(pattern, name);
    match_step(name);
    if (exclude) match_exclude(pattern, name, len & 1);
    if (unit && match_unit_path(pattern, name, kind == MATCH_DIR, &found)) {
      must(found.name_len <= strlen(name) && found.kind == kind);
      must(found.step >= MATCH_NO_STEP);
    }
    free(name);
  }
  free(pattern);
}

/* What a policy says a checkpoint is: the data of its answer, as rules. */
void fuzz_rules(const uint8_t *data, size_t size) {
  static const char *const names[] = {
      "checkpoint-3", "a/step-00012", "last.ckpt", "x.tmp", "epoch=1-st.pt", "7", "a/b/c/d/e"};
  json_t *value = NULL;
  rules *made = NULL;
  match_unit found;
  const policy_options options = {.quiet_ns = -1};
  if (js_parse((const char *)data, size, "rules", &value, NULL) < 0) return;
  if (policy_make_rules(&options, value, &made, NULL) == 0) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      rules_match(made, names[i], i & 1, &found);
      rules_excluded(made, names[i], i & 1);
      rules_marker_named(made, names[i]);
      rules_is_marker(made, names[i]);
    }
    must(made->test_count <= RULES_TESTS_MAX);
    rules_free(made);
  }
  json_decref(value);
}
