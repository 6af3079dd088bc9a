#include "manifest_thin.h"

#include <stdlib.h>
#include <string.h>

#include "prims/match.h"

enum { FORMAT = 1, READER = 2 };

json_t *manifest_globs_new(const names *globs) {
  json_t *list = json_array();
  int bad = !list;
  for (size_t i = 0; !bad && i < globs->count; i++)
    bad = json_array_append_new(list, js_name_new(globs->at[i]));
  if (!bad) return list;
  json_decref(list);
  return NULL;
}

static int get_glob(const json_t *item, const char *what, names *out, err *e) {
  const char *text = json_string_value(item);
  buf glob;
  buf_init(&glob, text ? strlen(text) + 1 : 1);
  bool good = text && *text && js_name_unescape(text, &glob, NULL) == 0 && !buf_failed(&glob) &&
              match_anywhere_check(glob.data, NULL) == 0;
  int rc = good ? 0 : err_set(e, ERR_FORMAT, "%s: what it takes files away by is no glob", what);
  if (good && !names_add(out, glob.data)) rc = err_set(e, ERR_NOMEM, "%s: out of memory", what);
  buf_free(&glob);
  return rc;
}

int manifest_globs_get(const json_t *object, const char *key, const char *what, names *out,
                       err *e) {
  json_t *list = NULL;
  int rc = js_get_array(object, key, what, &list, e);
  size_t count = rc == 0 ? json_array_size(list) : 0;
  if (rc == 0 && (count == 0 || count > MANIFEST_LEFT_GLOBS))
    rc = err_set(e, ERR_FORMAT, "%s: \"%s\" has not 1 to %d globs", what, key, MANIFEST_LEFT_GLOBS);
  for (size_t i = 0; rc == 0 && i < count; i++)
    rc = get_glob(json_array_get(list, i), what, out, e);
  return rc;
}

static bool any_fits(const names *globs, const char *path, bool is_dir) {
  for (size_t i = 0; i < globs->count; i++)
    if (match_exclude(globs->at[i], path, is_dir)) return true;
  return false;
}

/* What the user may replace in the store is never meant: it is no part of the table. */
bool manifest_thin_means(const manifest *m, const manifest_entry *at, const names *globs) {
  char path[4096];
  size_t len = strlen(at->name);
  if (m->kind != MATCH_DIR || at->outside || len >= sizeof path) return false;
  for (const char *slash = strchr(at->name, '/'); slash; slash = strchr(slash + 1, '/')) {
    size_t upto = (size_t)(slash - at->name);
    memcpy(path, at->name, upto);
    path[upto] = 0;
    if (any_fits(globs, path, true)) return true;
  }
  return any_fits(globs, at->name, at->type == MANIFEST_DIR);
}

/* A name that was a second one for a file that goes would lead nowhere. */
static bool cuts_a_link(const manifest *whole, const manifest *rest) {
  for (size_t i = 0; i < rest->count; i++) {
    const manifest_entry *at = &rest->entries[i];
    if (at->type != MANIFEST_LINK) continue;
    if (manifest_link_leads(rest, at) != manifest_link_leads(whole, at)) return true;
  }
  return false;
}

const char *manifest_thin_judge(const manifest *m, const names *globs, manifest_rest *out) {
  manifest rest = {0};
  const char *why = NULL;
  bool *stays = calloc(m->count + 1, sizeof *stays);
  if (!stays) return "";
  for (size_t i = 0; i < m->count; i++) stays[i] = !manifest_thin_means(m, &m->entries[i], globs);
  const bool chosen = manifest_choose(m, stays, &rest, NULL) == 0;
  free(stays);
  if (!chosen) return "";
  *out = (manifest_rest){manifest_files(&rest), manifest_bytes(&rest)};
  if (m->kind != MATCH_DIR)
    why = "it is no directory";
  else if (out->files == manifest_files(m))
    why = "it has no such file";
  else if (out->files == 0)
    why = "it has nothing else";
  else if (cuts_a_link(m, &rest))
    why = "a link that stays leads to what would go";
  free(rest.entries);
  return why;
}

static void free_entry(manifest_entry *at) {
  free(at->name);
  free(at->blocks);
  free(at->target);
}

int manifest_thin(manifest *m, const names *globs, err *e) {
  size_t kept = 0;
  bool good = names_add_all(&m->left_globs, names_list(globs));
  for (size_t i = 0; i < m->count; i++) {
    manifest_entry *at = &m->entries[i];
    if (!manifest_thin_means(m, at, globs)) {
      m->entries[kept++] = *at;
      continue;
    }
    if (at->type == MANIFEST_FILE) {
      m->left_out++;
      m->left_here++;
      good = manifest_left_note(&m->left_names, at->name) && good;
    }
    free_entry(at);
  }
  m->count = kept;
  return good ? 0 : err_set(e, ERR_NOMEM, "no memory for what is left of %s", m->unit);
}

/* ---- the note ---- */

int manifest_thin_print(const manifest *m, const names *globs, uint64_t newest, buf *out, err *e) {
  char root[HASH_HEX_MAX];
  int bad = 0;
  json_t *object = json_object();
  digest_hex(&m->root, root);
  js_set(object, "format", json_integer(FORMAT), &bad);
  js_set(object, "reader", json_integer(READER), &bad);
  if (m->attempt) js_set(object, "attempt", json_string(m->attempt), &bad);
  js_set(object, "root", json_string(root), &bad);
  js_set(object, "globs", manifest_globs_new(globs), &bad);
  js_set(object, "newest", json_integer((json_int_t)newest), &bad);
  int rc = bad ? err_set(e, ERR_NOMEM, "a note of what is gone: out of memory")
               : js_print(object, out, e);
  if (rc == 0) buf_str(out, "\n");
  json_decref(object);
  return rc == 0 && buf_failed(out) ? err_set(e, buf_failed(out), "a note of what is gone") : rc;
}

static int read_note(const json_t *object, const char *what, manifest_thin_note *out, err *e) {
  const char *attempt = json_string_value(json_object_get(object, "attempt"));
  int64_t newest = 0;
  int rc = js_check_reader(object, what, READER, e);
  if (rc == 0) rc = js_copy_str(object, "root", what, out->root, sizeof out->root, e);
  if (rc == 0) rc = manifest_globs_get(object, "globs", what, &out->globs, e);
  if (rc == 0) rc = js_get_int(object, "newest", what, &newest, e);
  if (rc == 0 && newest < 0) rc = err_set(e, ERR_FORMAT, "%s: \"newest\" is negative", what);
  if (rc == 0 && attempt && strlen(attempt) >= sizeof out->attempt)
    rc = err_set(e, ERR_FORMAT, "%s: \"attempt\" is too long", what);
  if (rc < 0) return rc;
  if (attempt) memcpy(out->attempt, attempt, strlen(attempt) + 1);
  out->newest = (uint64_t)newest;
  return 0;
}

int manifest_thin_parse(const char *text, size_t len, const char *what, manifest_thin_note *out,
                        err *e) {
  json_t *object = NULL;
  *out = (manifest_thin_note){0};
  if (len > MANIFEST_THIN_BYTES_MAX)
    return err_set(e, ERR_LIMIT, "%s has more than %d bytes", what, MANIFEST_THIN_BYTES_MAX);
  int rc = js_parse(text, len, what, &object, e);
  if (rc == 0) rc = read_note(object, what, out, e);
  json_decref(object);
  return rc;
}

void manifest_thin_free(manifest_thin_note *note) {
  names_free(&note->globs);
}

bool manifest_thin_is_of(const manifest_thin_note *note, const manifest *m) {
  char root[HASH_HEX_MAX];
  digest_hex(&m->root, root);
  return strcmp(note->root, root) == 0 && strcmp(note->attempt, m->attempt ? m->attempt : "") == 0;
}
