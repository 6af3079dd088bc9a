/* manifest_json: the text form of a manifest. One entry stands on one line, so that a manifest of a
 * million files is printed without a second copy of it in memory, and can be read with ordinary
 * tools. */
#include "manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/names.h"

enum { CRC_HEX = 8 };

static const char *const type_names[] = {"file", "dir", "link", NULL};

static json_t *mode_new(mode_t mode) {
  char text[8] = {0};
  for (int i = 0; i < 4; i++) text[i] = (char)('0' + (mode >> (9 - 3 * i) & 7));
  return json_string(text);
}

static json_t *digest_new(const digest *d) {
  char hex[HASH_HEX_MAX];
  digest_hex(d, hex);
  return json_string(hex);
}

static json_t *blocks_new(const manifest_entry *at) {
  json_t *blocks = json_array();
  size_t count = hash_block_count(at->size);
  int bad = 0;
  for (size_t i = 0; i < count; i++)
    bad |= json_array_append_new(blocks, digest_new(&at->blocks[i]));
  if (!bad) return blocks;
  json_decref(blocks);
  return NULL;
}

/* The sums stand in one text, eight digits each: 1.0, which passes over them, counts the arrays that
 * a manifest has. */
static json_t *crcs_new(const manifest_entry *at) {
  size_t count = hash_block_count(at->size);
  char *text = malloc(CRC_HEX * count + 1);
  for (size_t i = 0; text && i < count; i++)
    snprintf(text + CRC_HEX * i, CRC_HEX + 1, "%08" PRIx32, at->blocks[i].crc);
  json_t *value = text ? json_stringn(text, CRC_HEX * count) : NULL;
  free(text);
  return value;
}

/* Blocks that 1.0 has read have none. */
static bool all_summed(const manifest_entry *at) {
  size_t count = hash_block_count(at->size);
  for (size_t i = 0; i < count; i++)
    if (!at->blocks[i].summed) return false;
  return count > 0;
}

static int print_entry(const manifest *m, const manifest_entry *at, buf *out, err *e) {
  json_t *object = json_object();
  int bad = 0;
  js_set(object, "name", js_name_new(at->name), &bad);
  js_set(object, "type", json_string(type_names[at->type]), &bad);
  js_set(object, "mode", mode_new(at->mode), &bad);
  js_set(object, "mtime_ns", json_integer(at->mtime_ns), &bad);
  if (at->type == MANIFEST_FILE) {
    js_set(object, "size", json_integer((json_int_t)at->size), &bad);
    js_set(object, "digest", digest_new(&at->file), &bad);
    js_set(object, "blocks", blocks_new(at), &bad);
    if (all_summed(at)) js_set(object, "crc32c", crcs_new(at), &bad);
  } else if (at->type == MANIFEST_LINK) {
    js_set(object, "target", js_name_new(at->target), &bad);
  }
  if (at->alone && at->rank < m->world) js_set(object, "rank", json_integer(at->rank), &bad);
  int rc =
      bad ? err_set(e, ERR_NOMEM, "print a manifest: out of memory") : js_print(object, out, e);
  json_decref(object);
  return rc;
}

/* How its names are spelt as keys, where 1.0 spelt one of them otherwise. */
static const char plain_keys[] = "plain";

static int metrics_new(const char *text, json_t **out, err *e) {
  json_t *value = NULL;
  int rc = js_parse(text, strlen(text), "metrics", &value, e);
  if (rc == 0 && !json_is_object(value)) rc = err_set(e, ERR_FORMAT, "metrics: not a JSON object");
  if (rc == 0)
    *out = value;
  else
    json_decref(value);
  return rc;
}

static json_t *texts_new(char *const *at, size_t count) {
  json_t *list = json_array();
  int bad = !list;
  for (size_t i = 0; !bad && i < count; i++) bad = json_array_append_new(list, js_name_new(at[i]));
  if (!bad) return list;
  json_decref(list);
  return NULL;
}

/* They are for people alone: what is no name is passed over. */
static int parse_left_names(const json_t *object, const char *what, manifest_left *out, err *e) {
  const json_t *list = json_object_get(object, "left_names"), *item;
  size_t i;
  int rc = 0;
  json_array_foreach(list, i, item) {
    const char *text = json_string_value(item);
    buf name;
    buf_init(&name, text ? strlen(text) + 1 : 1);
    bool good = text && *text && js_name_unescape(text, &name, NULL) == 0 && !buf_failed(&name);
    if (good && !manifest_left_note(out, name.data))
      rc = err_set(e, ERR_NOMEM, "%s: out of memory", what);
    buf_free(&name);
    if (rc < 0) break;
  }
  return rc;
}

/* What is no glob here, or one too many, is passed over: what is held against the table with fewer of them
 * has more files than it, and is not taken for it. */
static int parse_left_globs(const json_t *object, const char *what, names *out, err *e) {
  const json_t *list = json_object_get(object, "left_globs"), *item;
  size_t i;
  int rc = 0;
  json_array_foreach(list, i, item) {
    const char *text = json_string_value(item);
    buf glob;
    buf_init(&glob, text ? strlen(text) + 1 : 1);
    bool good = text && *text && js_name_unescape(text, &glob, NULL) == 0 && !buf_failed(&glob) &&
                match_exclude_check(glob.data, NULL) == 0 && out->count < MANIFEST_LEFT_GLOBS;
    if (good && !names_add(out, glob.data)) rc = err_set(e, ERR_NOMEM, "%s: out of memory", what);
    buf_free(&glob);
    if (rc < 0) break;
  }
  return rc;
}

/* Prints everything but the entries. The text is parsed once, as a reader will do: metrics that are
 * just within the nesting limit by themselves are beyond it inside of a manifest. */
static int print_head(const manifest *m, buf *out, err *e) {
  json_t *object = json_object(), *metrics = NULL, *again = NULL;
  int rc = m->metrics ? metrics_new(m->metrics, &metrics, e) : 0, bad = 0;
  if (rc < 0) goto out;
  bool odd = m->plain_keys && !m->old && manifest_is_odd(m);
  int reader = odd && m->in_bucket ? MANIFEST_READER : 1;
  js_set(object, "format", json_integer(m->old ? 0 : MANIFEST_FORMAT), &bad);
  js_set(object, "reader", json_integer(m->old ? 0 : reader), &bad);
  js_set(object, "unit", js_name_new(m->unit), &bad);
  js_set(object, "kind", json_string(manifest_kind_name(m->kind)), &bad);
  if (m->step != MATCH_NO_STEP) js_set(object, "step", json_integer(m->step), &bad);
  js_set(object, "created_ns", json_integer(m->created_ns), &bad);
  js_set(object, "mtime_ns", json_integer(m->mtime_ns), &bad);
  js_set(object, "mode", mode_new(m->mode), &bad);
  if (m->policy) js_set(object, "policy", js_name_new(m->policy), &bad);
  if (metrics) js_set(object, "metrics", json_incref(metrics), &bad);
  if (m->attempt) js_set(object, "attempt", json_string(m->attempt), &bad);
  if (m->left_out) js_set(object, "left_out", json_integer((json_int_t)m->left_out), &bad);
  if (m->left_here) js_set(object, "left_here", json_integer((json_int_t)m->left_here), &bad);
  if (m->left_names.count)
    js_set(object, "left_names", texts_new(m->left_names.at, m->left_names.count), &bad);
  if (m->left_globs.count)
    js_set(object, "left_globs", texts_new(m->left_globs.at, m->left_globs.count), &bad);
  if (m->world > 1) js_set(object, "world", json_integer(m->world), &bad);
  if (m->above) js_set(object, "above", json_true(), &bad);
  if (odd) js_set(object, "keys", json_string(plain_keys), &bad);
  js_set(object, "digest", json_string(hash_name(m->hash)), &bad);
  js_set(object, "block", json_integer(HASH_BLOCK), &bad);
  js_set(object, "root", digest_new(&m->root), &bad);
  rc = bad ? err_set(e, ERR_NOMEM, "print a manifest: out of memory") : js_print(object, out, e);
  if (rc == 0) rc = js_parse(out->data, out->len, "manifest", &again, e);
out:
  json_decref(again);
  json_decref(metrics);
  json_decref(object);
  return rc;
}

/* Prints the entries of the root digest, and before them the one that is outside of it. */
static int print_entries(const manifest *m, buf *out, err *e) {
  int rc = 0;
  bool first = true;
  for (size_t i = 0; rc == 0 && i < m->count; i++) {
    if (!m->entries[i].outside) continue;
    buf_str(out, ",\"metadata\":");
    rc = print_entry(m, &m->entries[i], out, e);
  }
  buf_str(out, ",\"files\":[");
  for (size_t i = 0; rc == 0 && i < m->count; i++) {
    if (m->entries[i].outside) continue;
    buf_str(out, first ? "\n" : ",\n");
    first = false;
    rc = print_entry(m, &m->entries[i], out, e);
  }
  return rc;
}

int manifest_print(const manifest *m, buf *out, err *e) {
  if (m->root.len == 0) return err_set(e, ERR_INVAL, "print a manifest: it is not sealed");
  size_t before = out->len;
  buf head;
  buf_init(&head, MANIFEST_BYTES_MAX);
  int rc = print_head(m, &head, e);
  if (rc < 0) goto out;
  buf_add(out, head.data, head.len - 1); /* without its closing brace */
  rc = print_entries(m, out, e);
  buf_str(out, "\n]}\n");
  if (rc < 0) goto out;
  rc = buf_failed(out);
  /* A manifest that no reader would accept must not be written. */
  if (rc == 0 && out->len - before > MANIFEST_BYTES_MAX) rc = ERR_LIMIT;
  if (rc < 0) err_set(e, rc, "print a manifest of %zu entries: %s", m->count, err_text(rc));
out:
  buf_free(&head);
  return rc;
}

/* Counting first keeps hostile input within what a real manifest of the largest size takes. */
static int check_weight(const char *text, size_t len, const char *what, err *e) {
  if (len > MANIFEST_BYTES_MAX)
    return err_set(e, ERR_LIMIT, "%s: %zu bytes, more than %d", what, len, MANIFEST_BYTES_MAX);
  return js_check_weight(text, len, 2 * (size_t)MANIFEST_ENTRIES_MAX,
                         8 * (size_t)MANIFEST_ENTRIES_MAX, what, e);
}

static int get_digest(const json_t *value, hash_kind kind, const char *what, digest *out, err *e) {
  const char *hex = json_string_value(value);
  if (!hex) return err_set(e, ERR_FORMAT, "%s: a digest is missing or not a string", what);
  int rc = digest_parse(kind, hex, out, NULL);
  return rc < 0 ? err_set(e, ERR_FORMAT, "%s: \"%.80s\" is no digest", what, hex) : 0;
}

static int get_mode(const json_t *object, const char *what, mode_t *out, err *e) {
  const char *text;
  int rc = js_get_str(object, "mode", what, &text, e);
  if (rc < 0) return rc;
  if (strlen(text) != 4 || strspn(text, "01234567") != 4)
    return err_set(e, ERR_FORMAT, "%s: the mode is not four octal digits", what);
  *out = (mode_t)strtoul(text, NULL, 8);
  return 0;
}

static int get_blocks(const json_t *object, hash_kind kind, const char *what, manifest_entry *to,
                      err *e) {
  json_t *blocks;
  int rc = js_get_array(object, "blocks", what, &blocks, e);
  if (rc < 0) return rc;
  size_t count = hash_block_count(to->size);
  if (json_array_size(blocks) != count)
    return err_set(e, ERR_FORMAT, "%s: a file of %llu bytes has %zu blocks, not %zu", what,
                   (unsigned long long)to->size, count, json_array_size(blocks));
  to->blocks = calloc(count ? count : 1, sizeof *to->blocks);
  if (!to->blocks) return err_set(e, ERR_NOMEM, "%s: out of memory", what);
  for (size_t i = 0; rc == 0 && i < count; i++)
    rc = get_digest(json_array_get(blocks, i), kind, what, &to->blocks[i], e);
  return rc;
}

/* Reads the CRC-32C of each block, if they are told. */
static int get_crcs(const json_t *object, const char *what, manifest_entry *to, err *e) {
  const json_t *value = json_object_get(object, "crc32c");
  const char *text = json_string_value(value);
  size_t count = hash_block_count(to->size);
  if (!value) return 0;
  if (!text || json_string_length(value) != CRC_HEX * count ||
      strspn(text, "0123456789abcdef") != CRC_HEX * count)
    return err_set(e, ERR_FORMAT, "%s: \"crc32c\" is not %d lower-case hex digits for each block",
                   what, CRC_HEX);
  for (size_t i = 0; i < count; i++) {
    char one[CRC_HEX + 1] = "";
    memcpy(one, text + CRC_HEX * i, CRC_HEX);
    to->blocks[i].crc = (uint32_t)strtoul(one, NULL, 16);
    to->blocks[i].summed = true;
  }
  return 0;
}

static int get_type(const json_t *object, const char *what, manifest_type *out, err *e) {
  const char *text;
  int rc = js_get_str(object, "type", what, &text, e);
  if (rc < 0) return rc;
  size_t type = names_index(type_names, text);
  if (!type_names[type])
    return err_set(e, ERR_FORMAT, "%s: an entry's type \"%.40s\" is not file, dir or link", what,
                   text);
  *out = (manifest_type)type;
  return 0;
}

/* Everybody gets what no one rank alone had: what is no rank of that world says nothing. */
static void take_rank(const json_t *object, const manifest *m, manifest_entry *to) {
  const json_t *rank = json_object_get(object, "rank");
  json_int_t n = json_integer_value(rank);
  to->alone = json_is_integer(rank) && n >= 0 && n < m->world;
  to->rank = to->alone ? (uint32_t)n : 0;
}

static int parse_entry(const json_t *object, const char *what, manifest *m, err *e) {
  manifest_type type = MANIFEST_FILE;
  char *name = NULL, *target = NULL;
  int64_t size = 0;
  manifest_entry *to = NULL;
  int rc = js_get_name(object, "name", what, &name, e);
  if (rc == 0) rc = get_type(object, what, &type, e);
  if (rc == 0 && type == MANIFEST_LINK) rc = js_get_name(object, "target", what, &target, e);
  if (rc == 0 && !(to = manifest_add(m, type, name, target)))
    rc = err_set(e, ERR_NOMEM, "%s: out of memory", what);
  if (rc == 0) rc = get_mode(object, what, &to->mode, e);
  if (rc == 0) rc = js_get_int(object, "mtime_ns", what, &to->mtime_ns, e);
  if (rc == 0) take_rank(object, m, to);
  if (rc != 0 || type != MANIFEST_FILE) goto out;
  rc = js_get_int(object, "size", what, &size, e);
  if (rc == 0 && size < 0) rc = err_set(e, ERR_FORMAT, "%s: a size is negative", what);
  to->size = rc == 0 ? (uint64_t)size : 0;
  if (rc == 0) rc = get_digest(json_object_get(object, "digest"), m->hash, what, &to->file, e);
  if (rc == 0) rc = get_blocks(object, m->hash, what, to, e);
  if (rc == 0) rc = get_crcs(object, what, to, e);
out:
  free(name);
  free(target);
  return rc;
}

static int parse_metrics(const json_t *object, const char *what, manifest *m, err *e) {
  const json_t *value = json_object_get(object, "metrics");
  if (!value) return 0;
  if (!json_is_object(value)) return err_set(e, ERR_FORMAT, "%s: metrics are no object", what);
  buf text;
  buf_init(&text, MANIFEST_BYTES_MAX);
  int rc = js_print(value, &text, e);
  if (rc == 0) m->metrics = buf_take(&text);
  buf_free(&text);
  return rc;
}

/* A text that is not ours says nothing: as in 1.0, the root digest alone tells whose it is. */
static int parse_attempt(const json_t *object, const char *what, manifest *m, err *e) {
  const char *text = json_string_value(json_object_get(object, "attempt"));
  if (!text || !*text) return 0;
  m->attempt = strdup(text);
  return m->attempt ? 0 : err_set(e, ERR_NOMEM, "%s: out of memory", what);
}

static int parse_keys(const json_t *object, const char *what, manifest *m, err *e) {
  const json_t *keys = json_object_get(object, "keys");
  int64_t reader = 0;
  int rc = js_get_int(object, "reader", what, &reader, e);
  if (rc < 0) return rc;
  m->in_bucket = reader > 1;
  m->plain_keys = keys != NULL;
  if (!keys || (json_is_string(keys) && strcmp(json_string_value(keys), plain_keys) == 0)) return 0;
  return err_set(e, ERR_FORMAT, "%s: it does not say how its keys are spelt", what);
}

static int parse_head(const json_t *object, const char *what, manifest *m, err *e) {
  const char *hash = NULL;
  int64_t block = 0;
  int rc = js_get_str(object, "digest", what, &hash, e);
  if (rc == 0) rc = hash_kind_of(hash, &m->hash, e);
  if (rc == 0) rc = js_get_int(object, "block", what, &block, e);
  if (rc == 0 && block != HASH_BLOCK)
    rc = err_set(e, ERR_FORMAT, "%s: blocks of %lld bytes, not %d", what, (long long)block,
                 HASH_BLOCK);
  if (rc == 0) rc = js_get_name(object, "unit", what, &m->unit, e);
  if (rc == 0) rc = manifest_kind_get(object, what, &m->kind, e);
  if (rc == 0) rc = js_opt_int(object, "step", what, MATCH_NO_STEP, &m->step, e);
  if (rc == 0 && m->step < 0 && json_object_get(object, "step"))
    rc = err_set(e, ERR_FORMAT, "%s: the step is negative", what);
  if (rc == 0) rc = js_get_int(object, "created_ns", what, &m->created_ns, e);
  if (rc == 0) rc = js_get_int(object, "mtime_ns", what, &m->mtime_ns, e);
  if (rc == 0) rc = get_mode(object, what, &m->mode, e);
  if (rc == 0 && json_object_get(object, "policy"))
    rc = js_get_name(object, "policy", what, &m->policy, e);
  if (rc == 0) rc = parse_attempt(object, what, m, e);
  json_int_t left_out = json_integer_value(json_object_get(object, "left_out"));
  m->left_out = left_out > 0 ? (uint64_t)left_out : 0;
  json_int_t left_here = json_integer_value(json_object_get(object, "left_here"));
  m->left_here = left_here > 0 ? (uint64_t)left_here : 0;
  if (rc == 0) rc = parse_left_names(object, what, &m->left_names, e);
  if (rc == 0) rc = parse_left_globs(object, what, &m->left_globs, e);
  json_int_t world = json_integer_value(json_object_get(object, "world"));
  m->world = world > 1 && world <= UINT32_MAX ? (uint32_t)world : 0;
  m->above = json_is_true(json_object_get(object, "above"));
  if (rc == 0) rc = parse_keys(object, what, m, e);
  return rc < 0 ? rc : parse_metrics(object, what, m, e);
}

/* Reads the record outside of the root digest. A record of another name would escape the digest, so
 * it is not enough to say that it is outside: manifest_seal() decides by the name, takes such an
 * entry into the digest, and the digest then differs. */
static int parse_metadata(const json_t *object, const char *what, manifest *m, err *e) {
  const json_t *record = json_object_get(object, "metadata");
  int64_t format = 0;
  int rc = js_get_int(object, "format", what, &format, e);
  if (rc < 0) return rc;
  m->old = format == 0;
  if (record && m->old)
    return err_set(e, ERR_FORMAT, "%s: format 0 has no record of metadata", what);
  return record ? parse_entry(record, what, m, e) : 0;
}

/* Parses everything but the root digest. */
static int parse_body(const json_t *object, const char *what, manifest *m, err *e) {
  json_t *files;
  int rc = js_check_reader(object, what, MANIFEST_READER, e);
  if (rc == 0) rc = js_get_array(object, "files", what, &files, e);
  if (rc != 0) return rc;
  if (json_array_size(files) > MANIFEST_ENTRIES_MAX)
    return err_set(e, ERR_LIMIT, "%s: %zu entries, more than %d", what, json_array_size(files),
                   MANIFEST_ENTRIES_MAX);
  rc = parse_head(object, what, m, e);
  for (size_t i = 0; rc == 0 && i < json_array_size(files); i++)
    rc = parse_entry(json_array_get(files, i), what, m, e);
  return rc < 0 ? rc : parse_metadata(object, what, m, e);
}

int manifest_text_digest(hash_kind kind, const char *text, size_t len, digest *out, err *e) {
  return hash_bytes(kind, text ? text : "", len, out, e);
}

int manifest_parse(const char *text, size_t len, const char *what, manifest *out, err *e) {
  json_t *object = NULL;
  digest stated;
  err why = {0};
  manifest_init(out);
  int rc = check_weight(text, len, what, e);
  if (rc == 0) rc = js_parse_large(text, len, what, &object, e);
  if (rc == 0) rc = parse_body(object, what, out, e);
  if (rc == 0) rc = get_digest(json_object_get(object, "root"), out->hash, what, &stated, e);
  if (rc < 0) goto out;
  rc = manifest_seal(out, &why);
  if (rc < 0)
    err_set(e, rc, "%s: %s", what, why.text);
  else if (!digest_equal(&stated, &out->root))
    rc = err_set(e, ERR_CORRUPT, "%s: the table does not match its root digest", what);
  if (rc == 0) rc = manifest_text_digest(out->hash, text, len, &out->text, e);
out:
  json_decref(object);
  if (rc < 0) manifest_free(out);
  return rc;
}
