#include "json.h"

#include <pthread.h>
#include <string.h>

#include "number.h"
#include "secret.h"
#include "shown.h"

enum { DEPTH_MAX = 64 };

static int depth_ok(const json_t *value, int left) {
  if (left == 0) return 0;
  size_t i;
  const char *key;
  json_t *child;
  if (json_is_array(value)) {
    json_array_foreach(value, i, child) if (!depth_ok(child, left - 1)) return 0;
  } else if (json_is_object(value)) {
    json_object_foreach((json_t *)value, key, child) if (!depth_ok(child, left - 1)) return 0;
  }
  return 1;
}

/* These are the bytes that jansson takes for one of each, with malloc's overhead and the spare room
 * of its tables: an object, an array, another value and its place in a list, a text beside its
 * bytes, a key's place in a table. */
enum { OBJECT_COST = 240, ARRAY_COST = 144, VALUE_COST = 64, TEXT_COST = 48, KEY_COST = 72 };

/* A text that is no JSON may get any weight: the parser refuses it soon after. */
static size_t weight_of(const char *text, size_t len) {
  size_t weight = VALUE_COST;
  bool in_string = false;
  for (size_t i = 0; i < len && weight <= JS_WEIGHT_MAX; i++) {
    char c = text[i];
    if (c == '"') {
      weight += in_string ? 0 : TEXT_COST;
      in_string = !in_string;
    } else if (in_string) {
      weight++;
      if (c == '\\') i++;
    } else {
      weight += c == '{' ? OBJECT_COST : c == '[' ? ARRAY_COST : c == ',' ? VALUE_COST : 0;
      if (c == ':') weight += KEY_COST;
    }
  }
  return weight;
}

int js_weigh(const char *text, size_t len, const char *what, err *e) {
  /* No letter weighs more than an object's. Most texts are short: a log's snapshot has 20,000. */
  bool is_short = len <= (JS_WEIGHT_MAX - VALUE_COST) / OBJECT_COST;
  if (is_short || weight_of(text, len) <= JS_WEIGHT_MAX) return 0;
  return err_set(e, ERR_LIMIT,
                 "%s: more values than such a document may have: they would take over %zu MiB of "
                 "memory",
                 what, JS_WEIGHT_MAX >> 20);
}

int js_parse(const char *text, size_t len, const char *what, json_t **out, err *e) {
  int rc = js_weigh(text, len, what, e);
  return rc < 0 ? rc : js_parse_large(text, len, what, out, e);
}

/* jansson's own word repeats what stands near the fault, whatever that is. */
static int not_valid(const char *what, const json_error_t *why, err *e) {
  buf plain;
  buf_init(&plain, sizeof why->text);
  js_plain(why->text, sizeof why->text - 1, &plain);
  int rc = err_set(e, ERR_FORMAT, "%s: not valid JSON: %s at line %d column %d", what,
                   plain.data ? plain.data : "?", why->line, why->column);
  buf_free(&plain);
  return rc;
}

int js_parse_large(const char *text, size_t len, const char *what, json_t **out, err *e) {
  json_error_t why;
  json_t *value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
  if (!value) return not_valid(what, &why, e);
  if (!depth_ok(value, DEPTH_MAX)) {
    json_decref(value);
    return err_set(e, ERR_FORMAT, "%s: JSON is nested deeper than %d", what, DEPTH_MAX);
  }
  *out = value;
  return 0;
}

/* ---- secret ones ---- */

/* jansson has one pair of functions for the memory of all, the host's values too. Ours go on to
 * those that were there, but for a thread that is at a secret, and for what is a secret's. */
static json_malloc_t common_malloc;
static json_free_t common_free;
static _Thread_local bool at_a_secret;

static void *any_malloc(size_t size) {
  return at_a_secret && size <= SECRET_PIECE_MAX ? secret_alloc(size) : common_malloc(size);
}

static void any_free(void *p) {
  if (secret_owns(p))
    secret_free(p);
  else
    common_free(p);
}

static void take_memory(void) {
  json_get_alloc_funcs(&common_malloc, &common_free);
  json_set_alloc_funcs(any_malloc, any_free);
}

static void secret_begins(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, take_memory);
  at_a_secret = true;
}

int js_parse_secret(const char *text, size_t len, const char *what, json_t **out, err *e) {
  if (len > JS_SECRET_MAX)
    return err_set(e, ERR_LIMIT, "%s has %zu bytes, over the limit of %d", what, len,
                   JS_SECRET_MAX);
  err why = {0};
  secret_begins();
  int rc = js_parse(text, len, what, out, &why);
  at_a_secret = false;
  /* jansson's own word repeats what stands near the fault. */
  return rc < 0 ? err_set(e, why.code, "%s is no JSON, or has more in it than it may", what) : 0;
}

int js_print_secret(const json_t *value, buf *out, err *e) {
  secret_begins();
  int rc = js_print_in_full(value, out, e);
  at_a_secret = false;
  return rc;
}

int js_read(const buf *text, const char *what, int64_t known, json_t **out, err *e) {
  int rc = js_parse(text->data ? text->data : "", text->len, what, out, e);
  return rc < 0 ? rc : js_check_reader(*out, what, known, e);
}

void js_set(json_t *object, const char *key, json_t *value, int *bad) {
  *bad |= json_object_set_new(object, key, value);
}

int js_check_weight(const char *text, size_t len, size_t nests, size_t values, const char *what,
                    err *e) {
  bool in_string = false;
  for (size_t i = 0; i < len; i++) {
    char c = text[i];
    bool nest = !in_string && (c == '{' || c == '['), value = !in_string && c == ',';
    if (in_string && c == '\\')
      i++;
    else if (c == '"')
      in_string = !in_string;
    if ((nest && nests-- == 0) || (value && values-- == 0))
      return err_set(e, ERR_LIMIT, "%s: more values than such a document may have", what);
  }
  return 0;
}

static int append(const char *bytes, size_t len, void *to) {
  buf_add(to, bytes, len);
  return buf_failed(to) ? -1 : 0;
}

static bool has_reals(const json_t *value) {
  size_t i;
  const char *key;
  json_t *child;
  if (json_is_real(value)) return true;
  json_array_foreach(value, i, child) if (has_reals(child)) return true;
  json_object_foreach((json_t *)value, key, child) if (has_reals(child)) return true;
  return false;
}

int js_print(const json_t *value, buf *out, err *e) {
  if (!has_reals(value)) return js_print_in_full(value, out, e);
  buf full;
  buf_init(&full, 4 * (out->max ? out->max : 1));
  int rc = js_print_in_full(value, &full, e);
  if (rc == 0) number_shorten(full.data, full.len, out);
  buf_free(&full);
  if (rc < 0 || !buf_failed(out)) return rc;
  return err_set(e, buf_failed(out), "print JSON: %s", err_text(buf_failed(out)));
}

int js_print_in_full(const json_t *value, buf *out, err *e) {
  int rc = json_dump_callback(value, append, out, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
  if (rc == 0) return 0;
  int code = buf_failed(out) ? buf_failed(out) : ERR_NOMEM;
  return err_set(e, code, "print JSON: %s", err_text(code));
}

static int wrong(err *e, const char *what, const char *key, const char *type) {
  err_set(e, ERR_FORMAT, "%s: \"%s\" is missing or not %s", what, key, type);
  return ERR_FORMAT; /* a constant, not err_set's result: so a compiler sees that the getter
                      * failed */
}

int js_get_str(const json_t *object, const char *key, const char *what, const char **out, err *e) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_string(value)) return wrong(e, what, key, "a string");
  *out = json_string_value(value);
  return 0;
}

int js_get_int(const json_t *object, const char *key, const char *what, int64_t *out, err *e) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_integer(value)) return wrong(e, what, key, "an integer");
  *out = json_integer_value(value);
  return 0;
}

int js_get_array(const json_t *object, const char *key, const char *what, json_t **out, err *e) {
  json_t *value = json_object_get(object, key);
  if (!json_is_array(value)) return wrong(e, what, key, "an array");
  *out = value;
  return 0;
}

int js_opt_str(const json_t *object, const char *key, const char *what, const char *otherwise,
               const char **out, err *e) {
  if (json_object_get(object, key)) return js_get_str(object, key, what, out, e);
  *out = otherwise;
  return 0;
}

int js_opt_int(const json_t *object, const char *key, const char *what, int64_t otherwise,
               int64_t *out, err *e) {
  if (json_object_get(object, key)) return js_get_int(object, key, what, out, e);
  *out = otherwise;
  return 0;
}

int js_opt_bool(const json_t *object, const char *key, const char *what, bool otherwise, bool *out,
                err *e) {
  const json_t *value = json_object_get(object, key);
  if (value && !json_is_boolean(value)) return wrong(e, what, key, "a boolean");
  *out = value ? json_is_true(value) : otherwise;
  return 0;
}

int js_copy_str(const json_t *object, const char *key, const char *what, char *out, size_t room,
                err *e) {
  const char *text;
  int rc = js_get_str(object, key, what, &text, e);
  if (rc < 0) return rc;
  size_t len = strlen(text);
  if (len >= room)
    return err_set(e, ERR_FORMAT, "%s: \"%s\" is longer than %zu bytes", what, key, room - 1);
  memcpy(out, text, len + 1);
  return 0;
}

void js_name_escape(const char *name, buf *out) {
  const unsigned char *at = (const unsigned char *)name;
  while (*at) {
    size_t len = shown_utf8_len(at);
    if (len == 0 || *at == '%' || *at < 0x20 || *at == 0x7f) {
      buf_fmt(out, "%%%02X", *at++);
    } else {
      buf_add(out, at, len);
      at += len;
    }
  }
  buf_add(out, "", 0);
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void js_plain(const char *text, size_t max, buf *out) {
  const unsigned char *at = (const unsigned char *)text;
  size_t len;
  for (size_t used = 0; *at; used += len, at += len) {
    bool shown = is_shown(at, &len);
    const char *instead = shown_utf8_len(at) ? " " : "?";
    if (used + len > max) break;
    buf_add(out, shown ? (const char *)at : instead, shown ? len : 1);
  }
}

int js_name_unescape(const char *text, buf *out, err *e) {
  for (const char *at = text; *at; at++) {
    if (*at != '%') {
      buf_add(out, at, 1);
      continue;
    }
    int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);
    char byte = (char)(high * 16 + low);
    if (low < 0 || byte == 0)
      return err_set(e, ERR_FORMAT, "name \"%s\": broken %%XX escape", text);
    buf_add(out, &byte, 1);
    at += 2;
  }
  buf_add(out, "", 0);
  int rc = buf_failed(out);
  return rc < 0 ? err_set(e, rc, "name \"%.100s\": %s", text, err_text(rc)) : 0;
}

json_t *js_name_new(const char *name) {
  buf text;
  buf_init(&text, 3 * strlen(name));
  js_name_escape(name, &text);
  json_t *value = buf_failed(&text) ? NULL : json_string(text.data);
  buf_free(&text);
  return value;
}

int js_get_name(const json_t *object, const char *key, const char *what, char **out, err *e) {
  const char *text;
  int rc = js_get_str(object, key, what, &text, e);
  if (rc < 0) return rc;
  buf name;
  buf_init(&name, strlen(text));
  err why = {0};
  rc = js_name_unescape(text, &name, &why);
  if (rc == 0)
    *out = buf_take(&name);
  else
    err_set(e, rc, "%s: \"%s\": %s", what, key, why.text);
  buf_free(&name);
  return rc;
}

int js_check_reader(const json_t *object, const char *what, int64_t known, err *e) {
  int64_t format, reader;
  int rc = js_get_int(object, "format", what, &format, e);
  if (rc == 0) rc = js_get_int(object, "reader", what, &reader, e);
  if (rc < 0) return rc;
  if (format < 0 || reader < 0) return wrong(e, what, format < 0 ? "format" : "reader", "a number");
  if (reader > known)
    return err_set(e, ERR_VERSION,
                   "%s: format %lld needs a newer ckpt-lua (it asks for reader %lld, this is %lld)",
                   what, (long long)format, (long long)reader, (long long)known);
  return 0;
}
