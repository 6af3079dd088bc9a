/* runlog_pieces: reads and completes the text of a snapshot piece by piece. As one tree it would take ten times
 * its size: here each attempt and each commit is a tree of its own, which goes when it was read.
 *
 * The text is one that its sum has proven, so it is compact, as js_print() makes it; where it is not,
 * it is refused, and read as a whole. */
#include <string.h>

#include "runlog_fold.h"

/* ---- cutting ---- */

typedef struct piece {
  const char *at;
  size_t len;
} piece;

/* A letter is escaped behind an odd number of backslashes. */
static bool is_escaped(piece t, size_t at) {
  size_t from = at;
  while (from && t.at[from - 1] == '\\') from--;
  return (at - from) % 2;
}

/* Each returns the place behind what begins at `at`, or 0. */
static size_t skip_string(piece t, size_t at) {
  do {
    const char *end = memchr(t.at + at + 1, '"', t.len - at - 1);
    if (!end) return 0;
    at = (size_t)(end - t.at);
  } while (is_escaped(t, at));
  return at + 1;
}

/* What a letter outside of a string is. A snapshot of 10,000 commits has millions of them. */
enum { PLAIN, QUOTE, OPENS, CLOSES, BETWEEN };
static const unsigned char kind_of[256] = {
    ['"'] = QUOTE,  ['{'] = OPENS,   ['['] = OPENS,   ['}'] = CLOSES,
    [']'] = CLOSES, [','] = BETWEEN, [':'] = BETWEEN,
};

static int kind_at(piece t, size_t at) {
  return kind_of[(unsigned char)t.at[at]];
}

static size_t skip_plain(piece t, size_t at) {
  while (at < t.len && kind_at(t, at) == PLAIN) at++;
  return at;
}

static size_t skip_value(piece t, size_t at) {
  size_t depth = 0;
  do {
    if (at >= t.len) return 0;
    int kind = kind_at(t, at);
    if (!depth && (kind == CLOSES || kind == BETWEEN)) return 0;
    if (kind == OPENS) depth++;
    if (kind == CLOSES) depth--;
    at = kind == QUOTE ? skip_string(t, at) : kind == PLAIN ? skip_plain(t, at) : at + 1;
    if (!at) return 0;
  } while (depth);
  return at;
}

/* Finds the value of a member of an object; false if there is none, or the text is not compact. */
static bool find_member(piece t, const char *key, piece *out) {
  size_t len = strlen(key), at = 0;
  if (!t.len || t.at[0] != '{') return false;
  do {
    size_t from = at + 1;
    size_t colon = from < t.len && t.at[from] == '"' ? skip_string(t, from) : 0;
    size_t end = colon && colon < t.len && t.at[colon] == ':' ? skip_value(t, colon + 1) : 0;
    if (!end) return false;
    *out = (piece){t.at + colon + 1, end - colon - 1};
    if (colon - from == len + 2 && memcmp(t.at + from + 1, key, len) == 0) return true;
    at = end;
  } while (at < t.len && t.at[at] == ',');
  return false;
}

/* Appends the text with another value in place of that piece of it. */
static void add_without(piece t, piece value, const char *instead, buf *out) {
  buf_add(out, t.at, (size_t)(value.at - t.at));
  buf_str(out, instead);
  buf_add(out, value.at + value.len, (size_t)(t.at + t.len - value.at) - value.len);
}

/* ---- reading ---- */

static int malformed(const char *what, err *e) {
  return err_set(e, ERR_FORMAT, "%s: its text is not compact", what);
}

int runlog_parse_pieces(const buf *text, const char *what, json_t **out, err *e) {
  piece whole = {text->data, text->len}, state;
  buf rest;
  *out = NULL;
  if (!find_member(whole, "state", &state)) return malformed(what, e);
  buf_init(&rest, RUNLOG_ENTRY_MAX);
  add_without(whole, state, "null", &rest);
  int rc = buf_failed(&rest) ? malformed(what, e) : js_parse(rest.data, rest.len, what, out, e);
  buf_free(&rest);
  return rc;
}

typedef int load_fn(const json_t *object, uint64_t through, const char *what, runlog_state *out,
                    err *e);

static int load_each(piece list, load_fn *fn, uint64_t through, const char *what, runlog_state *out,
                     err *e) {
  size_t at = 0;
  if (list.len == 2 && memcmp(list.at, "[]", 2) == 0) return 0;
  if (list.len < 2 || list.at[0] != '[') return malformed(what, e);
  do {
    json_t *object = NULL;
    size_t end = skip_value(list, at + 1);
    if (!end) return malformed(what, e);
    int rc = js_parse(list.at + at + 1, end - at - 1, what, &object, e);
    if (rc == 0) rc = fn(object, through, what, out, e);
    json_decref(object);
    if (rc < 0) return rc;
    at = end;
  } while (at < list.len && list.at[at] == ',');
  return at + 1 == list.len && list.at[at] == ']' ? 0 : malformed(what, e);
}

int runlog_state_load_text(const buf *text, uint64_t through, const char *what, runlog_state *out,
                           err *e) {
  piece whole = {text->data, text->len}, state;
  if (!find_member(whole, "state", &state)) return malformed(what, e);
  return runlog_state_load_pieces(state.at, state.len, through, what, out, e);
}

int runlog_state_load_pieces(const char *text, size_t len, uint64_t through, const char *what,
                             runlog_state *out, err *e) {
  piece state = {text, len}, attempts, commits;
  json_t *rest = NULL;
  buf first;
  if (!find_member(state, "attempts", &attempts) || !find_member(state, "commits", &commits) ||
      attempts.at > commits.at)
    return malformed(what, e);
  buf_init(&first, RUNLOG_ENTRY_MAX);
  buf_add(&first, state.at, (size_t)(attempts.at - state.at));
  buf_str(&first, "[]");
  const char *between = attempts.at + attempts.len;
  buf_add(&first, between, (size_t)(commits.at - between));
  buf_str(&first, "[]");
  const char *behind = commits.at + commits.len;
  buf_add(&first, behind, (size_t)(state.at + state.len - behind));
  int rc =
      buf_failed(&first) ? malformed(what, e) : js_parse(first.data, first.len, what, &rest, e);
  if (rc == 0) rc = runlog_state_load(rest, through, what, out, e);
  if (rc == 0) rc = load_each(attempts, runlog_load_attempt, through, what, out, e);
  if (rc == 0) rc = load_each(commits, runlog_load_commit, through, what, out, e);
  json_decref(rest);
  buf_free(&first);
  return rc;
}

/* ---- writing ---- */

int runlog_put_state(buf *entry, const buf *state, err *e) {
  piece text = {entry->data, entry->len}, none;
  buf whole;
  if (!find_member(text, "state", &none)) return malformed("a snapshot", e);
  buf_init(&whole, entry->max);
  add_without(text, none, state->data, &whole);
  int rc = buf_failed(&whole);
  if (rc < 0) {
    buf_free(&whole);
    return err_set(e, rc, "a snapshot: its state does not fit in: %s", err_text(rc));
  }
  buf_free(entry);
  *entry = whole;
  return 0;
}
