#include "last_rules.h"

#include <stdlib.h>

#include "base/json_names.h"
#include "base/names.h"
#include "prims/fs.h"

enum { FILE_MAX = 1 << 20, LIST_MAX = 4096 };

/* ---- writing ---- */

static void member(json_t *to, const char *key, const char *text) {
  if (text) json_object_set_new(to, key, js_name_new(text));
}

/* rules_make() adds the built-in excludes by itself. */
static json_t *list_of(const char *const *patterns, bool added) {
  json_t *list = json_array();
  for (; list && patterns && *patterns; patterns++)
    if (!added || !rules_excludes_builtin(*patterns))
      json_array_append_new(list, js_name_new(*patterns));
  return list;
}

static json_t *markers_of(const rules *r) {
  json_t *list = json_array();
  for (size_t i = 0; list && i < r->marker_count; i++) {
    json_t *marker = json_object();
    member(marker, "name", r->markers[i].name);
    member(marker, "when", r->markers[i].signature);
    json_object_set_new(marker, "newer", json_boolean(r->markers[i].newest));
    json_array_append_new(list, marker);
  }
  return list;
}

int last_rules_write(const io *io, const char *state, const last_rules *now, err *e) {
  char path[FS_PATH_MAX];
  const rules *r = now->rules;
  buf text;
  int rc = fs_join(path, state, "rules.json", e);
  if (rc < 0) return rc;
  buf_init(&text, FILE_MAX);
  json_t *doc = json_pack("{s:i, s:i, s:o, s:o, s:o, s:o, s:I, s:I, s:b}", "format", 0, "reader", 0,
                          "units", list_of(r->units, false), "proven", list_of(r->proven, false),
                          "excludes", list_of(r->excludes, true), "markers", markers_of(r),
                          "quiet_ns", (json_int_t)r->quiet_ns, "grace_ns",
                          (json_int_t)now->grace_ns, "no_delete", now->no_delete);
  member(doc, "dir", now->dir);
  member(doc, "target", now->target);
  member(doc, "policies", now->policies);
  member(doc, "null_marker", now->null_marker);
  member(doc, "temp_marker", now->temp_marker);
  rc = doc ? js_print(doc, &text, e) : err_set(e, ERR_NOMEM, "write %s: out of memory", path);
  if (rc == 0) rc = fs_replace(io, path, text.data, text.len, 0600, e);
  json_decref(doc);
  buf_free(&text);
  return rc;
}

/* ---- reading ---- */

static int take(const json_t *doc, const char *key, char **out, err *e) {
  return json_object_get(doc, key) ? js_get_name(doc, key, "rules.json", out, e) : 0;
}

static int take_list(const json_t *doc, const char *key, names *out, err *e) {
  json_t *list;
  int rc = js_get_array(doc, key, "rules.json", &list, e);
  if (rc == 0 && json_array_size(list) > LIST_MAX)
    rc = err_set(e, ERR_LIMIT, "rules.json: more than %d %s", LIST_MAX, key);
  return rc < 0 ? rc : js_take_names(list, key, "rules.json", FS_PATH_MAX, out, e);
}

typedef struct lists {
  names units, proven, excludes;
  rules_marker *markers;
  size_t marker_count;
} lists;

static void lists_free(lists *l) {
  names_free(&l->units);
  names_free(&l->proven);
  names_free(&l->excludes);
  for (size_t i = 0; i < l->marker_count; i++) {
    free((char *)l->markers[i].name);
    free((char *)l->markers[i].signature);
  }
  free(l->markers);
}

static int take_markers(const json_t *doc, lists *l, err *e) {
  json_t *list;
  int rc = js_get_array(doc, "markers", "rules.json", &list, e);
  if (rc == 0 && json_array_size(list) > LIST_MAX)
    rc = err_set(e, ERR_LIMIT, "rules.json: more than %d markers", LIST_MAX);
  if (rc < 0) return rc;
  l->markers = calloc(json_array_size(list) + 1, sizeof *l->markers);
  if (!l->markers) return err_set(e, ERR_NOMEM, "rules.json: out of memory");
  for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
    const json_t *at = json_array_get(list, i);
    rules_marker *m = &l->markers[l->marker_count++];
    char *when = NULL, *name = NULL;
    rc = js_get_name(at, "name", "rules.json", &name, e);
    if (rc == 0) rc = take(at, "when", &when, e);
    if (rc == 0) rc = js_opt_bool(at, "newer", "rules.json", false, &m->newest, e);
    m->name = name;
    m->signature = when;
  }
  return rc;
}

static int make(const json_t *doc, const lists *l, rules **out, err *e) {
  int64_t quiet_ns;
  int rc = js_opt_int(doc, "quiet_ns", "rules.json", -1, &quiet_ns, e);
  if (rc < 0) return rc;
  return rules_make(&(rules_spec){.units = names_list(&l->units),
                                  .proven = names_list(&l->proven),
                                  .excludes = names_list(&l->excludes),
                                  .known = l->markers,
                                  .known_count = l->marker_count,
                                  .quiet_ns = quiet_ns},
                    out, e);
}

int last_rules_read(const io *io, const char *state, last_rules *out, err *e) {
  char path[FS_PATH_MAX];
  json_t *doc = NULL;
  lists l = {0};
  buf text;
  *out = (last_rules){0};
  buf_init(&text, FILE_MAX);
  int rc = fs_join(path, state, "rules.json", e);
  if (rc == 0) rc = fs_read(io, path, FILE_MAX, &text, e);
  if (rc == 0) rc = js_read(&text, path, 0, &doc, e);
  if (rc == 0) rc = take_list(doc, "units", &l.units, e);
  if (rc == 0) rc = take_list(doc, "proven", &l.proven, e);
  if (rc == 0) rc = take_list(doc, "excludes", &l.excludes, e);
  if (rc == 0) rc = take_markers(doc, &l, e);
  if (rc == 0) rc = make(doc, &l, &out->rules, e);
  if (rc == 0) rc = js_opt_int(doc, "grace_ns", path, 0, &out->grace_ns, e);
  if (rc == 0) rc = js_opt_bool(doc, "no_delete", path, false, &out->no_delete, e);
  if (rc == 0) rc = take(doc, "dir", &out->dir, e);
  if (rc == 0) rc = take(doc, "target", &out->target, e);
  if (rc == 0) rc = take(doc, "policies", &out->policies, e);
  if (rc == 0) rc = take(doc, "null_marker", &out->null_marker, e);
  if (rc == 0) rc = take(doc, "temp_marker", &out->temp_marker, e);
  lists_free(&l);
  json_decref(doc);
  buf_free(&text);
  return rc;
}

void last_rules_free(last_rules *l) {
  rules_free(l->rules);
  free(l->dir);
  free(l->target);
  free(l->policies);
  free(l->null_marker);
  free(l->temp_marker);
  *l = (last_rules){0};
}
