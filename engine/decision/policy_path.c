/* policy_path: follows a path in a JSON text: log_history[-1].eval_loss. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "decision/policy_impl.h"

/* NAME: a member. AT: an entry of a list. ALL: of each name the last entry of a list that has it.
 * SAME: the same of those entries whose member `name` is not another than the file's own `of`. */
typedef struct step {
  enum { STEP_NAME, STEP_AT, STEP_ALL, STEP_SAME } kind;
  char name[POLICY_KEY_MAX], of[POLICY_KEY_MAX];
  long index;
} step;

static bool take_word(const char **at, const char *end, char out[POLICY_KEY_MAX]) {
  size_t len = strcspn(*at, end);
  if (len == 0 || len >= POLICY_KEY_MAX) return false;
  memcpy(out, *at, len);
  out[len] = '\0';
  *at += len;
  return true;
}

/* Takes what is between brackets: a number, a star, or NAME=NAME. */
static bool next_entry(const char **at, step *out) {
  const char *from = *at + 1;
  char *end;
  if (strncmp(from, "*]", 2) == 0) {
    out->kind = STEP_ALL;
    *at = from + 2;
    return true;
  }
  out->index = strtol(from, &end, 10);
  if (end != from && *end == ']' && !isspace((unsigned char)*from)) {
    out->kind = STEP_AT;
    *at = end + 1;
    return true;
  }
  out->kind = STEP_SAME;
  if (!take_word(&from, "=.[]", out->name) || *from++ != '=') return false;
  if (!take_word(&from, "=.[]", out->of) || *from != ']') return false;
  *at = from + 1;
  return true;
}

/* Takes the next step of the path; false at its end, or where it is malformed (*at stays there). */
static bool next_step(const char **at, bool first, step *out) {
  const char *from = *at;
  *out = (step){.kind = STEP_NAME};
  if (*from == '[') return next_entry(at, out);
  if (!first && *from++ != '.') return false;
  if (!take_word(&from, ".[]", out->name)) return false;
  *at = from;
  return true;
}

/* What does not tell is no other. */
static bool is_another(const json_t *entry, const step *s, const json_t *top) {
  if (s->kind == STEP_ALL) return false;
  const json_t *own = json_object_get(entry, s->name), *of = json_object_get(top, s->of);
  return own && of && !json_equal(own, of);
}

/* Returns one object of the entries of a list. */
static json_t *merge(const json_t *list, const step *s, const json_t *top) {
  json_t *all = json_is_array(list) ? json_object() : NULL;
  size_t i;
  json_t *entry;
  json_array_foreach(list, i, entry) {
    if (json_is_object(entry) && !is_another(entry, s, top)) json_object_update(all, entry);
  }
  return all;
}

/* Returns a new reference, or NULL. */
static json_t *descend(const json_t *value, const step *s, const json_t *top) {
  if (s->kind == STEP_NAME) return json_incref(json_object_get(value, s->name));
  if (s->kind != STEP_AT) return merge(value, s, top);
  long count = (long)json_array_size(value), index = s->index < 0 ? count + s->index : s->index;
  return index >= 0 && index < count ? json_incref(json_array_get(value, (size_t)index)) : NULL;
}

json_t *policy_path_find(json_t *top, const char *path, char key[POLICY_KEY_MAX]) {
  step s;
  const char *at = path;
  json_t *value = json_incref(top);
  *key = '\0';
  while (value && *at && next_step(&at, at == path, &s)) {
    json_t *inner = descend(value, &s, top);
    json_decref(value);
    value = inner;
    if (s.kind == STEP_NAME) memcpy(key, s.name, sizeof s.name);
  }
  return value;
}

bool policy_path_good(const char *path) {
  step s;
  const char *at = path;
  while (*at && next_step(&at, at == path, &s)) continue;
  return *at == '\0';
}
