/* store_s3: how names are spelt as keys of the bucket, and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "store_s3.h"

/* No text that 1.0 spelt has this: there two digits come behind each '%'. */
static const char mark[] = "%~";
enum { MARK = sizeof mark - 1 };

/* How all below the prefix is spelt. */
typedef struct s3_spelt {
  char *prefix;
  size_t len;
  store_spelling how;
  bool told; /* all there was asked for once: a listing leaves nothing out */
} s3_spelt;

/* ---- one component ---- */

/* A component of a key as a text of its own. */
typedef struct part {
  char text[STORE_KEY_MAX + 1];
} part;

static bool cut(part *p, const char *at, size_t len) {
  if (len >= sizeof p->text) return false;
  memcpy(p->text, at, len);
  p->text[len] = 0;
  return true;
}

static bool is_marked(const char *text) {
  return strncmp(text, mark, MARK) == 0;
}

/* True if it is what the bucket can have as it is: '%' is all that 1.0 would have changed in it. */
static bool is_plain(const char *name) {
  buf text;
  size_t percents = 0;
  for (const char *at = name; *at; at++) percents += *at == '%';
  buf_init(&text, 3 * strlen(name) + 1);
  js_name_escape(name, &text);
  bool plain = !buf_failed(&text) && strlen(text.data) == strlen(name) + 2 * percents;
  buf_free(&text);
  return plain;
}

static void spell(const char *name, store_spelling how, buf *out) {
  bool as_is = how == STORE_SPELT_RAW;
  if (how == STORE_SPELT_PLAIN) as_is = !is_marked(name) && is_plain(name);
  if (how == STORE_SPELT_PLAIN && !as_is) buf_add(out, mark, MARK);
  if (as_is)
    buf_str(out, name);
  else
    js_name_escape(name, out);
}

/* Reads a component back. One key has one name: "%41", made by another tool, is not what 1.0 made
 * of "A", and so it is nobody's. */
static bool unspell(const char *text, store_spelling how, part *out) {
  buf name, back;
  bool as_is = how == STORE_SPELT_RAW || (how == STORE_SPELT_PLAIN && !is_marked(text));
  if (as_is && (how == STORE_SPELT_RAW || is_plain(text))) return cut(out, text, strlen(text));
  if (as_is) return false;
  buf_init(&name, STORE_KEY_MAX + 1);
  buf_init(&back, 4 * STORE_KEY_MAX);
  const char *behind = text + (how == STORE_SPELT_PLAIN ? MARK : 0);
  bool good = js_name_unescape(behind, &name, NULL) == 0 && !buf_failed(&name);
  if (good) spell(name.data, how, &back);
  good = good && !buf_failed(&back) && strcmp(back.data, text) == 0 &&
         cut(out, name.data, strlen(name.data));
  buf_free(&name);
  buf_free(&back);
  return good;
}

/* ---- what was said ---- */

static bool is_above(const s3_spelt *w, const char *key, size_t len) {
  if (w->len > len || memcmp(w->prefix, key, w->len) != 0) return false;
  return w->len == 0 || w->len == len || key[w->len] == '/';
}

/* Finds how what is right below this key is spelt. */
static s3_spelt below(s3_store *s, const char *key, size_t len) {
  const s3_spelt *nearest = NULL;
  s3_spelt found = {.how = STORE_SPELT_1};
  if (s->spelt_count == 0) return found;
  pthread_mutex_lock(&s->spelling);
  for (size_t i = 0; i < s->spelt_count; i++)
    if (is_above(&s->spelt[i], key, len) && (!nearest || s->spelt[i].len > nearest->len))
      nearest = &s->spelt[i];
  if (nearest) found = *nearest;
  pthread_mutex_unlock(&s->spelling);
  return found;
}

static s3_spelt *find(s3_store *s, const char *prefix) {
  for (size_t i = 0; i < s->spelt_count; i++)
    if (strcmp(s->spelt[i].prefix, prefix) == 0) return &s->spelt[i];
  return NULL;
}

static int add(s3_store *s, const char *prefix, store_spelling how) {
  size_t count = s->spelt_count;
  if (!VEC_ROOM(s->spelt, count, s->spelt_room)) return ERR_NOMEM;
  char *copy = strdup(prefix);
  if (!copy) return ERR_NOMEM;
  s->spelt[count] =
      (s3_spelt){.prefix = copy, .len = strlen(prefix), .how = how, .told = how == STORE_SPELT_RAW};
  s->spelt_count = count + 1;
  return 0;
}

/* True if it would be spelt so if nothing was said of it: most are, and need no room. */
static bool goes_without(const s3_store *s, const char *prefix, store_spelling how) {
  size_t len = strlen(prefix);
  for (size_t i = 0; i < s->spelt_count; i++)
    if (s->spelt[i].len < len && is_above(&s->spelt[i], prefix, len)) return false;
  return how == STORE_SPELT_1;
}

static void drop(s3_store *s, s3_spelt *there) {
  free(there->prefix);
  *there = s->spelt[s->spelt_count - 1];
  s->spelt_count = s->spelt_count - 1;
}

int s3_spell(store *base, const char *prefix, store_spelling how, err *e) {
  s3_store *s = (s3_store *)base;
  int rc = *prefix ? store_key_check(prefix, e) : 0;
  if (rc < 0) return rc;
  pthread_mutex_lock(&s->spelling);
  s3_spelt *there = find(s, prefix);
  if (there && !there->told && goes_without(s, prefix, how))
    drop(s, there);
  else if (there)
    there->how = how, there->told |= how == STORE_SPELT_RAW;
  else if (!goes_without(s, prefix, how))
    rc = add(s, prefix, how);
  pthread_mutex_unlock(&s->spelling);
  return rc < 0 ? err_set(e, rc, "no memory for how %s is spelt", prefix) : 0;
}

void s3_forget_spelling(s3_store *s) {
  for (size_t i = 0; i < s->spelt_count; i++) free(s->spelt[i].prefix);
  free(s->spelt);
  pthread_mutex_destroy(&s->spelling);
}

bool s3_tells_all(s3_store *s, const char *prefix) {
  return below(s, prefix, strlen(prefix)).told;
}

/* ---- keys ---- */

static int too_long(const char *key, err *e) {
  return err_set(e, ERR_LIMIT, "the key \"%.60s...\" is too long for a bucket", key);
}

static void spell_key(s3_store *s, const char *key, buf *out) {
  for (const char *at = key; at;) {
    size_t len = strcspn(at, "/"), above = at == key ? 0 : (size_t)(at - key) - 1;
    part name;
    cut(&name, at, len); /* a component is no longer than a key */
    if (at != key) buf_str(out, "/");
    spell(name.text, below(s, key, above).how, out);
    at = at[len] ? at + len + 1 : NULL;
  }
}

int s3_path(s3_store *s, const char *key, char out[S3_PATH_MAX], err *e) {
  size_t len = strlen(s->prefix);
  int rc = *key ? store_key_check(key, e) : 0;
  if (rc < 0) return rc;
  memcpy(out, s->prefix, len + 1);
  if (!*key) return 0;
  buf text;
  buf_init(&text, S3_PATH_MAX - len - 2);
  spell_key(s, key, &text);
  rc = buf_failed(&text) ? too_long(key, e) : 0;
  if (rc == 0) snprintf(out + len, S3_PATH_MAX - len, "%s%s", len ? "/" : "", text.data);
  buf_free(&text);
  return rc;
}

bool s3_key_of(s3_store *s, const char *path, char out[STORE_KEY_MAX + 1]) {
  size_t len = strlen(s->prefix), used = 0;
  if (len && (strncmp(path, s->prefix, len) != 0 || path[len++] != '/')) return false;
  for (const char *at = path + len; at;) {
    size_t size = strcspn(at, "/");
    part text, name;
    out[used] = 0;
    if (!cut(&text, at, size) || !unspell(text.text, below(s, out, used).how, &name)) return false;
    int more = snprintf(out + used, STORE_KEY_MAX + 1 - used, "%s%s", used ? "/" : "", name.text);
    if (more <= 0 || (size_t)more > STORE_KEY_MAX - used) return false;
    used += (size_t)more;
    at = at[size] ? at + size + 1 : NULL;
  }
  return store_key_check(out, NULL) == 0;
}

int s3_raw_path(const s3_store *s, const char *key, char out[S3_PATH_MAX], err *e) {
  int rc = store_key_check(key, e);
  if (rc == 0) snprintf(out, S3_PATH_MAX, "%s%s%s", s->prefix, *s->prefix ? "/" : "", key);
  return rc;
}

bool s3_raw_key(const s3_store *s, const char *path, char out[STORE_KEY_MAX + 1]) {
  size_t len = strlen(s->prefix);
  if (len && (strncmp(path, s->prefix, len) != 0 || path[len++] != '/')) return false;
  if (store_key_check(path + len, NULL) < 0) return false;
  memcpy(out, path + len, strlen(path + len) + 1);
  return true;
}
