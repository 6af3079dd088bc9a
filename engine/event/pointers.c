#include "pointers.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "prims/match.h"

static const pointer_row link_row = {"*", POINTER_TEXT, NULL, false};
static const pointer_row guessed = {"*", POINTER_TEXT, NULL, false}; /* one word */

const pointer_row *pointers_row(const char *name) {
  for (const framework *f = frameworks(); f->name; f++)
    for (const pointer_row *row = f->pointers; row->name; row++)
      if (match_glob(row->name, name)) return row;
  return NULL;
}

const char *pointers_framework(const pointer_row *row) {
  for (const framework *f = frameworks(); f->name; f++)
    for (const pointer_row *own = f->pointers; own->name; own++)
      if (own == row) return f->name;
  return NULL;
}

const pointer_row *pointers_link(void) {
  return &link_row;
}

bool pointers_lead(const pointer_row *row) {
  return row && row->form <= POINTER_LIST;
}

bool pointers_follow_newest(const char *name, bool link) {
  return !link || strncmp(name, "last", 4) == 0 || strncmp(name, "latest", 6) == 0;
}

/* ---- what it names ---- */

enum { SPELT_MAX = 4096 };

/* The text without white space around it. */
static const char *trimmed(const char *text, size_t *len) {
  while (*len && isspace((unsigned char)text[*len - 1])) --*len;
  while (*len && isspace((unsigned char)*text)) text++, --*len;
  return text;
}

static bool is_line(const char *text, size_t len) {
  if (len == 0 || len >= SPELT_MAX) return false;
  for (size_t i = 0; i < len; i++)
    if (iscntrl((unsigned char)text[i])) return false;
  return true;
}

const pointer_row *pointers_guess(const char *text, size_t len) {
  text = trimmed(text, &len);
  if (!is_line(text, len) || memchr(text, ' ', len) || memchr(text, '{', len)) return NULL;
  return &guessed;
}

static int add(names *out, const char *text, size_t len, err *e) {
  char spelt[SPELT_MAX];
  snprintf(spelt, sizeof spelt, "%.*s", (int)len, text);
  return names_add(out, spelt) ? 0 : err_set(e, ERR_NOMEM, "read a pointer: out of memory");
}

static int read_line(const char *text, size_t len, names *out, err *e) {
  text = trimmed(text, &len);
  return is_line(text, len) ? add(out, text, len, e) : 0;
}

/* Only the first one is what a job loads: `all_model_checkpoint_paths` says what may be removed. */
static int read_proto(const char *text, size_t len, names *out, err *e) {
  static const char member[] = "model_checkpoint_path:";
  const char *end = text + len;
  if (len < sizeof member || strncmp(text, member, sizeof member - 1) != 0) return 0;
  const char *from = memchr(text, '"', len);
  const char *to = from ? memchr(from + 1, '"', (size_t)(end - from - 1)) : NULL;
  return to ? read_line(from + 1, (size_t)(to - from - 1), out, e) : 0;
}

/* js_parse() has bounded its depth. */
static int take_members(const json_t *value, const char *key, names *out,
                        err *e) { // NOLINT(misc-no-recursion)
  const char *name;
  json_t *member;
  size_t i;
  int rc = 0;
  if (json_is_object(value)) json_object_foreach((json_t *)value, name, member) {
      const char *text = strcmp(name, key) == 0 ? json_string_value(member) : NULL;
      if (rc == 0 && text) rc = read_line(text, strlen(text), out, e);
      if (rc == 0) rc = take_members(member, key, out, e);
    }
  if (json_is_array(value))
    json_array_foreach(value, i, member) if (rc == 0) rc = take_members(member, key, out, e);
  return rc;
}

int pointers_read_json(const char *text, size_t len, const char *key, names *out, err *e) {
  json_t *document = NULL;
  int rc = js_parse(text, len, "a list", &document, NULL);
  if (rc == ERR_NOMEM) return err_set(e, rc, "read a list: out of memory");
  rc = rc == 0 ? take_members(document, key, out, e) : 0;
  json_decref(document);
  if (rc == 0) names_sort_unique(out);
  return rc;
}

int pointers_read(const pointer_row *row, const char *text, size_t len, names *out, err *e) {
  switch (row->form) {
  case POINTER_TEXT:
  case POINTER_STEP: return read_line(text, len, out, e);
  case POINTER_PROTO: return read_proto(text, len, out, e);
  case POINTER_LIST: return pointers_read_json(text, len, row->key, out, e);
  case POINTER_STATE:
  case POINTER_LOG: break;
  }
  return 0;
}

const char *pointers_wish(const char *name) {
  for (const framework *f = frameworks(); f->name; f++)
    if (f->wish.name && strcmp(f->wish.name, name) == 0) return f->wish.key;
  return NULL;
}

/* ---- what is meant ---- */

bool pointers_base(const char *spelt, char *out, size_t room) {
  size_t len = strlen(spelt), from;
  while (len && spelt[len - 1] == '/') len--;
  for (from = len; from && spelt[from - 1] != '/';) from--;
  if (len == from || len - from >= room) return false;
  memcpy(out, spelt + from, len - from);
  out[len - from] = 0;
  return strcmp(out, ".") != 0 && strcmp(out, "..") != 0;
}

static bool is_step(const char *text, int64_t *step) {
  size_t len = strlen(text);
  *step = 0;
  if (len == 0 || len > 18) return false;
  for (size_t i = 0; i < len; i++) {
    if (!isdigit((unsigned char)text[i])) return false;
    *step = *step * 10 + (text[i] - '0');
  }
  return true;
}

bool pointers_mean(const pointer_row *row, const char *spelt, const char *unit, int64_t step) {
  char base[SPELT_MAX];
  int64_t n;
  if (row->form == POINTER_STEP && is_step(spelt, &n)) return n == step;
  return pointers_base(spelt, base, sizeof base) && strcmp(base, unit) == 0;
}

/* ---- another name in its place ---- */

static bool is_name_byte(unsigned char c) {
  return isalnum(c) || c == '_' || c == '-' || c == '.';
}

/* Puts `to` in the place of each `from` that stands there as a whole name. */
static size_t replace(const char *text, size_t len, const char *from, const char *to, char *out,
                      size_t room) {
  size_t n = strlen(from), m = strlen(to), used = 0;
  for (size_t i = 0; i < len;) {
    bool here = len - i >= n && memcmp(text + i, from, n) == 0 &&
                (i == 0 || !is_name_byte((unsigned char)text[i - 1])) &&
                (i + n == len || !is_name_byte((unsigned char)text[i + n]));
    size_t more = here ? m : 1;
    if (used + more >= room) return 0;
    memcpy(out + used, here ? to : text + i, more);
    used += more;
    i += here ? n : 1;
  }
  out[used] = 0;
  return used;
}

size_t pointers_rewrite(const pointer_row *row, const char *text, size_t len, const char *spelt,
                        const char *unit, int64_t step, char *out, size_t room) {
  char base[SPELT_MAX];
  int64_t n;
  if (row->form == POINTER_STEP) {
    int got = step < 0 || !is_step(spelt, &n) ? 0 : snprintf(out, room, "%lld", (long long)step);
    return got > 0 && (size_t)got < room ? (size_t)got : 0;
  }
  if (row->form > POINTER_PROTO || !pointers_base(spelt, base, sizeof base)) return 0;
  return replace(text, len, base, unit, out, room);
}
