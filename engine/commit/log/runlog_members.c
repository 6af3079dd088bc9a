/* runlog_members: reads and writes the members of log entries: a term describes its writer, a
 * commit its checkpoint. A snapshot has the same members in its state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runlog_fold.h"

enum { WORLD_MAX = 1 << 20 };

/* Numbers are written as signed 64-bit integers and are never negative. */
int runlog_get_number(const json_t *object, const char *key, const char *what, uint64_t *out,
                      err *e) {
  int64_t number;
  int rc = js_get_int(object, key, what, &number, e);
  if (rc < 0) return rc;
  if (number < 0) return err_set(e, ERR_FORMAT, "%s: \"%s\" is negative", what, key);
  *out = (uint64_t)number;
  return 0;
}

/* Before format 1 the member was absent, and one writer did all. */
int runlog_get_world(const json_t *object, const char *what, uint32_t *out, err *e) {
  int64_t world = 1;
  int rc = js_opt_int(object, "world", what, 1, &world, e);
  if (rc < 0) return rc;
  if (world < 1 || world > WORLD_MAX)
    return err_set(e, ERR_FORMAT, "%s: \"world\" is not 1 to %d", what, WORLD_MAX);
  *out = (uint32_t)world;
  return 0;
}

/* A longer one is cut off: it is not one of ours, and is only ever compared. */
void runlog_keep_nonce(const char *nonce, char out[RUNLOG_NONCE_MAX]) {
  snprintf(out, RUNLOG_NONCE_MAX, "%s", nonce);
}

static const char plain_keys[] = "plain";

bool runlog_opt_plain(const json_t *object) {
  const char *keys = json_string_value(json_object_get(object, "keys"));
  return keys && strcmp(keys, plain_keys) == 0;
}

void runlog_set_plain(json_t *object, int *bad) {
  js_set(object, "keys", json_string(plain_keys), bad);
}

void runlog_opt_nonce(const json_t *object, char out[RUNLOG_NONCE_MAX]) {
  const char *nonce = json_string_value(json_object_get(object, "nonce"));
  runlog_keep_nonce(nonce ? nonce : "", out);
}

int runlog_get_id(const json_t *object, const char *key, const char *what, char *out, size_t room,
                  err *e) {
  char *name = NULL;
  int rc = js_get_name(object, key, what, &name, e);
  if (rc < 0) return rc;
  size_t len = strlen(name);
  if (len < room)
    memcpy(out, name, len + 1);
  else
    rc = err_set(e, ERR_FORMAT, "%s: \"%s\" is longer than %zu bytes", what, key, room - 1);
  free(name);
  return rc;
}

static int no_memory(const char *what, err *e) {
  return err_set(e, ERR_NOMEM, "%s: out of memory", what);
}

/* Reads a text that the log may carry for people; a value of another type counts as absent. Its
 * writer made it plain; that is done again, because it will be printed. */
int runlog_get_text(const json_t *object, const char *key, const char *what, char **out, err *e) {
  const char *text = json_string_value(json_object_get(object, key));
  buf plain;
  *out = NULL;
  if (!text || !*text) return 0;
  buf_init(&plain, RUNLOG_REASON_MAX);
  js_plain(text, RUNLOG_REASON_MAX - 1, &plain);
  if (!buf_failed(&plain)) *out = buf_take(&plain);
  buf_free(&plain);
  return *out ? 0 : no_memory(what, e);
}

/* A digest that is absent or malformed is left empty, and so equals nobody's. */
void runlog_opt_digest(const json_t *object, const char *key, char out[RUNLOG_DIGEST_MAX]) {
  const char *text = json_string_value(json_object_get(object, key));
  bool good = text && strlen(text) == RUNLOG_DIGEST_MAX - 1 &&
              strspn(text, "0123456789abcdef") == RUNLOG_DIGEST_MAX - 1;
  snprintf(out, RUNLOG_DIGEST_MAX, "%s", good ? text : "");
}

int runlog_get_writer(const json_t *object, const char *what, runlog_writer *w, err *e) {
  uint64_t pid = 0;
  int rc = runlog_get_id(object, "launch", what, w->launch, sizeof w->launch, e);
  if (rc == 0) rc = runlog_get_id(object, "job", what, w->job, sizeof w->job, e);
  if (rc == 0) rc = runlog_get_id(object, "host", what, w->host, sizeof w->host, e);
  if (rc == 0) rc = runlog_get_id(object, "boot", what, w->boot, sizeof w->boot, e);
  if (rc == 0) rc = runlog_get_id(object, "state", what, w->state, sizeof w->state, e);
  if (rc == 0) rc = runlog_get_number(object, "pid", what, &pid, e);
  if (rc == 0) rc = runlog_get_number(object, "start", what, &w->start, e);
  if (rc == 0) rc = runlog_get_world(object, what, &w->world, e);
  runlog_opt_digest(object, "machine", w->machine);
  runlog_opt_digest(object, "place", w->place);
  runlog_opt_digest(object, "pids", w->pids);
  runlog_opt_digest(object, "flags", w->flags);
  w->any_flags = json_is_true(json_object_get(object, "any_flags"));
  w->epochs = json_is_true(json_object_get(object, "epochs"));
  w->pid = (int64_t)pid;
  return rc;
}

static int get_root(const json_t *object, hash_kind hash, const char *what, digest *out, err *e) {
  const char *hex = NULL;
  int rc = js_get_str(object, "root", what, &hex, e);
  if (rc == 0 && digest_parse(hash, hex, out, NULL) < 0)
    rc = err_set(e, ERR_FORMAT, "%s: \"%.80s\" is no digest", what, hex);
  return rc;
}

/* 1.0 has none. */
static int get_manifest(const json_t *object, hash_kind hash, const char *what, digest *out,
                        err *e) {
  const char *hex = NULL;
  if (!json_object_get(object, "manifest")) return 0;
  int rc = js_get_str(object, "manifest", what, &hex, e);
  if (rc == 0 && digest_parse(hash, hex, out, NULL) < 0)
    rc = err_set(e, ERR_FORMAT, "%s: \"%.80s\" is no digest", what, hex);
  return rc;
}

static int get_with(const json_t *object, hash_kind hash, const char *what, runlog_companions *out,
                    err *e) {
  const json_t *with = json_object_get(object, "with");
  if (!with) return 0;
  if (!json_is_object(with)) return err_set(e, ERR_FORMAT, "%s: \"with\" is not an object", what);
  int rc = runlog_get_number(with, "term", what, &out->term, e);
  if (rc == 0) rc = runlog_get_number(with, "files", what, &out->files, e);
  if (rc == 0) rc = runlog_get_number(with, "bytes", what, &out->bytes, e);
  return rc < 0 ? rc : get_root(with, hash, what, &out->root, e);
}

int runlog_get_metrics(const json_t *object, const char *what, char **out, err *e) {
  const json_t *value = json_object_get(object, "metrics");
  buf text;
  *out = NULL;
  if (!json_is_object(value)) return 0;
  buf_init(&text, 2 * RUNLOG_METRICS_MAX); /* numbers may be printed in a longer way */
  int rc = js_print(value, &text, NULL);
  if (rc == 0) *out = buf_take(&text);
  buf_free(&text);
  return rc == 0 || rc == ERR_LIMIT ? 0 : no_memory(what, e);
}

/* What is no list of names says nothing. */
static int get_needs(const json_t *object, const char *what, char **out, err *e) {
  const json_t *list = json_object_get(object, "needs"), *name;
  size_t i, len = 0;
  buf text;
  *out = NULL;
  buf_init(&text, RUNLOG_NEEDS_MAX + 1);
  json_array_foreach(list, i, name) {
    const char *spelt = json_string_value(name);
    if (!spelt || !*spelt || strchr(spelt, '/') || len + strlen(spelt) >= RUNLOG_NEEDS_MAX)
      continue;
    buf_fmt(&text, "%s/", spelt);
    len += strlen(spelt) + 1;
  }
  bool failed = buf_failed(&text);
  if (!failed && text.len) *out = buf_take(&text);
  buf_free(&text);
  return failed ? no_memory(what, e) : 0;
}

bool runlog_commit_needs(const runlog_commit *c, const char *unit) {
  size_t len = strlen(unit);
  for (const char *at = c->needs; at && *at; at = strchr(at, '/') + 1)
    if (strncmp(at, unit, len) == 0 && at[len] == '/') return true;
  return false;
}

int runlog_get_facts(const json_t *object, const char *what, runlog_commit *out, err *e) {
  const char *name = NULL;
  hash_kind hash = HASH_XXH3_128;
  int rc = manifest_kind_get(object, what, &out->kind, e);
  if (rc == 0) rc = js_opt_int(object, "step", what, MATCH_NO_STEP, &out->step, e);
  if (rc == 0 && out->step < MATCH_NO_STEP)
    rc = err_set(e, ERR_FORMAT, "%s: the step is negative", what);
  if (rc == 0) rc = runlog_get_number(object, "files", what, &out->files, e);
  if (rc == 0) rc = runlog_get_number(object, "bytes", what, &out->bytes, e);
  if (rc == 0) rc = js_get_str(object, "digest", what, &name, e);
  if (rc == 0) rc = hash_kind_of(name, &hash, e);
  if (rc == 0) rc = get_root(object, hash, what, &out->root, e);
  if (rc == 0) rc = get_manifest(object, hash, what, &out->manifest, e);
  if (rc == 0) rc = get_with(object, hash, what, &out->companions, e);
  json_int_t left_out = json_integer_value(json_object_get(object, "left_out"));
  out->left_out = left_out > 0 ? (uint64_t)left_out : 0;
  json_int_t left_here = json_integer_value(json_object_get(object, "left_here"));
  out->left_here = left_here > 0 ? (uint64_t)left_here : 0;
  out->above = json_is_true(json_object_get(object, "above"));
  if (rc == 0) rc = get_needs(object, what, &out->needs, e);
  if (rc == 0) rc = runlog_get_metrics(object, what, &out->metrics, e);
  if (rc == 0) rc = runlog_get_text(object, "policy", what, &out->policy, e);
  return rc < 0 ? rc : runlog_get_text(object, "reason", what, &out->reason, e);
}

/* ---- writing ---- */

void runlog_set_number(json_t *object, const char *key, uint64_t number, int *bad) {
  js_set(object, key, json_integer((json_int_t)number), bad);
}

/* The texts of policies and users are made plain: they are shown on terminals, by whoever reads the
 * log. */
void runlog_set_text(json_t *object, const char *key, const char *text, int *bad) {
  buf plain;
  if (!text || !*text) return;
  buf_init(&plain, RUNLOG_REASON_MAX);
  js_plain(text, RUNLOG_REASON_MAX - 1, &plain);
  *bad |= buf_failed(&plain) != 0;
  if (!buf_failed(&plain)) js_set(object, key, json_stringn(plain.data, plain.len), bad);
  buf_free(&plain);
}

void runlog_set_lines(json_t *object, const char *key, const char *lines, int *bad) {
  json_t *list = lines && *lines ? json_array() : NULL;
  for (const char *at = lines; list && at && *at; at += *at == '\n') {
    char line[RUNLOG_REASON_MAX];
    buf plain;
    size_t len = strcspn(at, "\n");
    snprintf(line, sizeof line, "%.*s", (int)(len < sizeof line ? len : sizeof line - 1), at);
    at += len;
    buf_init(&plain, RUNLOG_REASON_MAX);
    js_plain(line, RUNLOG_REASON_MAX - 1, &plain);
    *bad |= buf_failed(&plain) != 0;
    if (plain.len && json_array_size(list) < RUNLOG_LINES &&
        json_array_append_new(list, json_stringn(plain.data, plain.len)) < 0)
      *bad = 1;
    buf_free(&plain);
  }
  if (list) js_set(object, key, list, bad);
}

/* Lines are an extra: what is none is passed over. */
int runlog_get_lines(const json_t *object, const char *key, const char *what, char **out, err *e) {
  const json_t *list = json_object_get(object, key);
  size_t i;
  json_t *line;
  buf text;
  *out = NULL;
  buf_init(&text, RUNLOG_LINES_MAX);
  json_array_foreach(list, i, line) {
    const char *one = json_string_value(line);
    if (!one || i >= RUNLOG_LINES || strlen(one) >= RUNLOG_REASON_MAX || strchr(one, '\n'))
      continue;
    buf_fmt(&text, "%s%s", text.len ? "\n" : "", one);
  }
  int rc = buf_failed(&text);
  if (rc == 0 && text.len) *out = buf_take(&text);
  buf_free(&text);
  return rc == 0 || rc == ERR_LIMIT ? 0 : no_memory(what, e);
}

void runlog_set_writer(json_t *object, const runlog_writer *w, int *bad) {
  js_set(object, "launch", js_name_new(w->launch), bad);
  js_set(object, "job", js_name_new(w->job), bad);
  js_set(object, "host", js_name_new(w->host), bad);
  js_set(object, "boot", js_name_new(w->boot), bad);
  js_set(object, "state", js_name_new(w->state), bad);
  if (*w->machine) js_set(object, "machine", json_string(w->machine), bad);
  if (*w->place) js_set(object, "place", json_string(w->place), bad);
  if (*w->pids) js_set(object, "pids", json_string(w->pids), bad);
  if (*w->flags) js_set(object, "flags", json_string(w->flags), bad);
  if (w->any_flags) js_set(object, "any_flags", json_true(), bad);
  if (w->epochs) js_set(object, "epochs", json_true(), bad);
  runlog_set_number(object, "pid", (uint64_t)w->pid, bad);
  runlog_set_number(object, "start", w->start, bad);
  runlog_set_number(object, "world", w->world > 1 ? w->world : 1, bad);
}

/* Metrics come from the job: a text that is no object is left out, and stops no commit. A snapshot
 * nests them three levels deeper than a commit does, and must still be read. */
void runlog_set_metrics(json_t *object, const char *text, int *bad) {
  json_t *value = NULL;
  buf nested;
  if (!text) return;
  buf_init(&nested, 3 * RUNLOG_METRICS_MAX);
  buf_fmt(&nested, "[[[%s]]]", text);
  if (!buf_failed(&nested) && js_parse(nested.data, nested.len, "metrics", &value, NULL) == 0) {
    json_t *inner = json_array_get(json_array_get(json_array_get(value, 0), 0), 0);
    if (json_is_object(inner)) js_set(object, "metrics", json_incref(inner), bad);
  }
  json_decref(value);
  buf_free(&nested);
}

static void set_root(json_t *object, const digest *root, int *bad) {
  char hex[HASH_HEX_MAX];
  digest_hex(root, hex);
  js_set(object, "root", json_string(hex), bad);
}

static void set_manifest(json_t *object, const digest *text, int *bad) {
  char hex[HASH_HEX_MAX];
  if (text->len == 0) return;
  digest_hex(text, hex);
  js_set(object, "manifest", json_string(hex), bad);
}

static void set_with(json_t *object, const runlog_companions *with, int *bad) {
  if (with->files == 0) return;
  json_t *value = json_object();
  runlog_set_number(value, "term", with->term, bad);
  runlog_set_number(value, "files", with->files, bad);
  runlog_set_number(value, "bytes", with->bytes, bad);
  set_root(value, &with->root, bad);
  js_set(object, "with", value, bad);
}

static void set_needs(json_t *object, const char *needs, int *bad) {
  if (!needs || !*needs) return;
  json_t *list = json_array();
  for (const char *at = needs; *at;) {
    size_t len = strcspn(at, "/");
    json_t *name = json_stringn(at, len); /* NULL: it is no UTF-8, and nothing of JSON names it */
    if (name) *bad |= json_array_append_new(list, name) != 0;
    at += len + (at[len] == '/');
  }
  js_set(object, "needs", list, bad);
}

void runlog_set_facts(json_t *object, const runlog_commit *c, int *bad) {
  const char *hash = hash_name(c->root.len == HASH_BYTES_MAX ? HASH_SHA256 : HASH_XXH3_128);
  js_set(object, "kind", json_string(manifest_kind_name(c->kind)), bad);
  if (c->step != MATCH_NO_STEP) js_set(object, "step", json_integer(c->step), bad);
  runlog_set_number(object, "files", c->files, bad);
  runlog_set_number(object, "bytes", c->bytes, bad);
  if (c->left_out) runlog_set_number(object, "left_out", c->left_out, bad);
  if (c->left_here) runlog_set_number(object, "left_here", c->left_here, bad);
  if (c->above) js_set(object, "above", json_true(), bad);
  js_set(object, "digest", json_string(hash), bad);
  set_root(object, &c->root, bad);
  set_manifest(object, &c->manifest, bad);
  set_with(object, &c->companions, bad);
  set_needs(object, c->needs, bad);
  runlog_set_metrics(object, c->metrics, bad);
  runlog_set_text(object, "policy", c->policy, bad);
  runlog_set_text(object, "reason", c->reason, bad);
}
