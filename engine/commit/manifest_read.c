#include "manifest_read.h"

#include <stdio.h>
#include <string.h>

static int key_of(const char *dir_key, const char *name, char out[STORE_KEY_MAX], err *e) {
  if (snprintf(out, STORE_KEY_MAX, "%s%s%s", dir_key, *dir_key ? "/" : "", name) < STORE_KEY_MAX)
    return 0;
  return err_set(e, ERR_LIMIT, "%s: the store's name for it is too long", dir_key);
}

int manifest_key(const char *dir_key, char out[STORE_KEY_MAX], err *e) {
  return key_of(dir_key, MANIFEST_NAME, out, e);
}

int manifest_note_key(const char *dir_key, char out[STORE_KEY_MAX], err *e) {
  return key_of(dir_key, MANIFEST_THIN_NAME, out, e);
}

int manifest_read(store *s, const char *dir_key, manifest *out, err *e) {
  char key[STORE_KEY_MAX];
  int rc = manifest_key(dir_key, key, e);
  return rc < 0 ? rc : manifest_read_at(s, key, out, e);
}

static int check_committed(const char *dir_key, const manifest *m, const digest *root,
                           const digest *text, err *e) {
  if (!digest_equal(&m->root, root))
    return err_set(e, ERR_CORRUPT, "%s: its manifest is not the one that was committed", dir_key);
  if (text->len == 0 || digest_equal(&m->text, text)) return 0;
  return err_set(e, ERR_CORRUPT,
                 "%s: its manifest lists the files that were committed, but its text is not the "
                 "one that was (the digest in the log is another)",
                 dir_key);
}

/* One answer may be cut, or of another moment: the second one is believed. */
int manifest_read_proven(store *s, const char *dir_key, const digest *root, const digest *text,
                         manifest *out, err *e) {
  enum { READINGS = 2 };
  err why = {0};
  int rc = 0;
  for (int i = 0; i < READINGS; i++) {
    rc = manifest_read(s, dir_key, out, &why);
    if (rc == 0) {
      rc = check_committed(dir_key, out, root, text, &why);
      if (rc == 0) return 0;
      manifest_free(out);
    }
    if (rc != ERR_NOENT && rc != ERR_CORRUPT && rc != ERR_FORMAT) break;
  }
  if (e) *e = why;
  return rc;
}

int manifest_read_committed(store *s, const char *dir_key, const digest *root, manifest *out,
                            err *e) {
  return manifest_read_proven(s, dir_key, root, &(digest){0}, out, e);
}

int manifest_spell(store *s, const char *dir_key, const manifest *m, err *e) {
  if (!manifest_is_odd(m)) return 0;
  return store_spell(s, dir_key, m->plain_keys ? STORE_SPELT_PLAIN : STORE_SPELT_1, e);
}

static int spell_below(store *s, const char *key, const manifest *m, err *e) {
  char dir[STORE_KEY_MAX + 1];
  const char *slash = strrchr(key, '/');
  snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - key) : 0, key);
  return manifest_spell(s, dir, m, e);
}

int manifest_read_at(store *s, const char *key, manifest *out, err *e) {
  buf text;
  buf_init(&text, MANIFEST_BYTES_MAX);
  int rc = s->ops->get(s, key, &text, e);
  if (rc == 0) rc = manifest_parse(text.data ? text.data : "", text.len, key, out, e);
  buf_free(&text);
  if (rc < 0) return rc;
  rc = spell_below(s, key, out, e);
  if (rc < 0) manifest_free(out);
  return rc;
}

/* A note that nobody can read says nothing, and what is missing is damage. */
int manifest_read_note(store *s, const char *dir_key, const manifest *m, manifest_thin_note *out,
                       err *e) {
  char key[STORE_KEY_MAX];
  err why = {0};
  buf text;
  int rc = manifest_note_key(dir_key, key, e);
  if (rc < 0) return rc;
  buf_init(&text, MANIFEST_THIN_BYTES_MAX);
  rc = s->ops->get(s, key, &text, &why);
  *out = (manifest_thin_note){0};
  if (rc == 0) rc = manifest_thin_parse(text.data ? text.data : "", text.len, key, out, &why);
  buf_free(&text);
  if (rc == 0 && manifest_thin_is_of(out, m)) return 1;
  manifest_thin_free(out);
  const bool none = rc == 0 || rc == ERR_NOENT || rc == ERR_FORMAT || rc == ERR_LIMIT ||
                    rc == ERR_CORRUPT || rc == ERR_INVAL;
  return none ? 0 : err_set(e, rc, "%s", why.text);
}

int manifest_take_note(store *s, const char *dir_key, manifest *m, err *e) {
  manifest_thin_note note;
  int rc = manifest_read_note(s, dir_key, m, &note, e);
  if (rc <= 0) return rc;
  rc = manifest_thin(m, &note.globs, e);
  manifest_thin_free(&note);
  return rc < 0 ? rc : 1;
}
