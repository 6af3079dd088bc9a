#include "show.h"

#include <string.h>

#include "base/json.h"
#include "commit/pins.h"
#include "job/restore/restore.h"

static void set_text(json_t *object, const char *key, const char *text, int *bad) {
  if (text && *text) js_set(object, key, json_string(text), bad);
}

static json_t *file_json(const manifest_entry *f, int *bad) {
  static const char *const types[] = {
      [MANIFEST_FILE] = "file", [MANIFEST_DIR] = "dir", [MANIFEST_LINK] = "link"};
  char hex[HASH_HEX_MAX];
  json_t *o = json_object();
  js_set(o, "name", js_name_new(f->name), bad);
  js_set(o, "type", json_string(types[f->type]), bad);
  js_set(o, "mode", json_integer(f->mode), bad);
  js_set(o, "mtime_ns", json_integer(f->mtime_ns), bad);
  if (f->type == MANIFEST_LINK) js_set(o, "target", js_name_new(f->target), bad);
  if (f->type != MANIFEST_FILE) return o;
  digest_hex(&f->file, hex);
  js_set(o, "size", json_integer((json_int_t)f->size), bad);
  js_set(o, "digest", json_string(hex), bad);
  return o;
}

static json_t *links_json(const manifest *m, size_t most, uint64_t *count, int *bad) {
  static const char *const leads[] = {
      [MANIFEST_LEADS_OUT] = "out", [MANIFEST_LEADS_NOWHERE] = "nowhere"};
  json_t *links = json_array();
  *count = 0;
  for (size_t i = 0; i < m->count; i++) {
    const manifest_entry *f = &m->entries[i];
    manifest_lead lead =
        f->type == MANIFEST_LINK ? manifest_link_leads(m, f) : MANIFEST_LEADS_WITHIN;
    if (lead == MANIFEST_LEADS_WITHIN || ++*count > most) continue;
    json_t *o = json_object();
    js_set(o, "name", js_name_new(f->name), bad);
    js_set(o, "target", js_name_new(f->target), bad);
    js_set(o, "leads", json_string(leads[lead]), bad);
    *bad |= json_array_append_new(links, o);
  }
  return links;
}

int show_links(const manifest *m, size_t most, uint64_t *count, char **out, err *e) {
  int bad = 0;
  buf text;
  json_t *links = links_json(m, most, count, &bad);
  buf_init(&text, MANIFEST_BYTES_MAX);
  *out = NULL;
  int rc =
      bad || !links ? err_set(e, ERR_NOMEM, "links: out of memory") : js_print(links, &text, e);
  if (rc == 0) *out = buf_take(&text);
  buf_free(&text);
  json_decref(links);
  return rc;
}

static json_t *pin_json(const pin *p, int64_t now, int *bad) {
  json_t *o = json_object();
  js_set(o, "id", json_string(p->id), bad);
  js_set(o, "by", js_name_new(p->by), bad);
  js_set(o, "host", js_name_new(p->host), bad);
  js_set(o, "created_ns", json_integer(p->created_ns), bad);
  if (p->expires_ns) js_set(o, "expires_ns", json_integer(p->until_ns), bad);
  js_set(o, "expired", json_boolean(pin_expired(p, now)), bad);
  return o;
}

static void append(json_t *array, json_t *value, int *bad) {
  *bad |= json_array_append_new(array, value);
}

static void set_metrics(json_t *o, const char *text, int *bad) {
  json_t *value = NULL;
  if (text && js_parse(text, strlen(text), "metrics", &value, NULL) == 0)
    js_set(o, "metrics", value, bad);
}

static void set_needs(json_t *o, const char *needs, int *bad) {
  if (!needs || !*needs) return;
  json_t *list = json_array();
  for (const char *at = needs; *at;) {
    size_t len = strcspn(at, "/");
    append(list, json_stringn(at, len), bad);
    at += len + (at[len] == '/');
  }
  js_set(o, "needs", list, bad);
}

static void set_names(json_t *o, const char *key, char *const *at, size_t count, int *bad) {
  if (count == 0) return;
  json_t *list = json_array();
  for (size_t i = 0; i < count; i++) append(list, js_name_new(at[i]), bad);
  js_set(o, key, list, bad);
}

/* Of one whose note a repair has found nobody knows by whom, and why. */
static json_t *taken_json(const runlog_thinned *thin, int *bad) {
  json_t *o = json_object();
  set_names(o, "globs", thin->globs.at, thin->globs.count, bad);
  js_set(o, "newest", json_integer((json_int_t)thin->newest), bad);
  set_text(o, "policy", thin->policy, bad);
  set_text(o, "reason", thin->reason, bad);
  return o;
}

/* Sets the log's members; metrics that were too large for it are in the manifest. */
static void set_commit(json_t *o, const catalog_item *item, const manifest *m, int *bad) {
  const runlog_commit *c = item->commit;
  char hex[HASH_HEX_MAX];
  digest_hex(&c->root, hex);
  js_set(o, "group", js_name_new(item->group), bad);
  js_set(o, "name", js_name_new(c->unit), bad);
  js_set(o, "dir", js_name_new(c->dir), bad);
  js_set(o, "uri", js_name_new(item->uri), bad);
  js_set(o, "number", json_integer((json_int_t)c->n), bad);
  js_set(o, "kind", json_string(manifest_kind_name(c->kind)), bad);
  if (c->step != MATCH_NO_STEP) js_set(o, "step", json_integer(c->step), bad);
  js_set(o, "time_ns", json_integer(c->time_ns), bad);
  js_set(o, "bytes", json_integer((json_int_t)c->bytes), bad);
  if (c->above) js_set(o, "above", json_true(), bad);
  if (c->left_out) js_set(o, "left_out", json_integer((json_int_t)c->left_out), bad);
  set_names(o, "left_names", m->left_names.at, m->left_names.count, bad);
  set_names(o, "left_globs", m->left_globs.at, m->left_globs.count, bad);
  if (c->thin.globs.count) js_set(o, "taken", taken_json(&c->thin, bad), bad);
  set_needs(o, c->needs, bad);
  js_set(o, "digest", json_string(hash_name(m->hash)), bad);
  js_set(o, "root", json_string(hex), bad);
  set_text(o, "policy", c->policy, bad);
  set_text(o, "reason", c->reason, bad);
  if (c->bad) js_set(o, "bad", json_true(), bad);
  set_text(o, "bad_reason", c->bad_reason, bad);
  set_text(o, "bad_lines", c->bad_lines, bad);
  set_metrics(o, c->metrics ? c->metrics : m->metrics, bad);
}

static int show_json(const catalog_item *item, const manifest *m, const pins *held, int64_t now,
                     char **out, err *e) {
  json_t *o = json_object(), *files = json_array(), *pinned = json_array();
  int bad = 0;
  uint64_t loose;
  buf text;
  buf_init(&text, 2 * (size_t)MANIFEST_BYTES_MAX);
  set_commit(o, item, m, &bad);
  for (size_t i = 0; i < m->count; i++) append(files, file_json(&m->entries[i], &bad), &bad);
  for (size_t i = 0; i < held->count; i++)
    if (held->at[i].commit == item->commit->n)
      append(pinned, pin_json(&held->at[i], now, &bad), &bad);
  js_set(o, "files", files, &bad);
  js_set(o, "links", links_json(m, SIZE_MAX, &loose, &bad), &bad);
  js_set(o, "pins", pinned, &bad);
  int rc = bad ? err_set(e, ERR_NOMEM, "show: out of memory") : js_print(o, &text, e);
  if (rc == 0) *out = buf_take(&text);
  buf_free(&text);
  json_decref(o);
  return rc;
}

struct showing {
  asked_one one;
  char **out;
};

static int show_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct showing *s = ctx;
  const io *io = s->one.asked->io;
  const runlog_commit *c;
  catalog_told t;
  manifest m = {0};
  pins held = {0};
  int rc = asked_get_one(&s->one, log, &c, e);
  if (rc == 0) rc = catalog_describe(at, log, c, &t, e);
  if (rc == 0) rc = restore_manifest(at->store, runlog_prefix(log), c, &m, e);
  if (rc == 0) rc = pins_list(at->store, runlog_prefix(log), &held, e);
  if (rc == 0) rc = show_json(&t.item, &m, &held, io->now(io, IO_WALL), s->out, e);
  manifest_free(&m);
  pins_free(&held);
  return rc;
}

int show_checkpoint(const asked *a, char **out, err *e) {
  struct showing s = {.out = out};
  *out = NULL;
  return asked_with_one(a, &s.one, show_in, &s, e);
}
