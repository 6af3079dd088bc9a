#include "arbiter.h"

#include <string.h>

#include "base/json.h"
#include "commit/log/runlog.h"

enum { FORMAT = 1, TEXT_MAX = 16 << 10, SERVERS_MAX = 8 };

static const char name[] = ".ckpt/race";

/* Reads the servers that are named, or an empty list. Any answer tells who the server is. */
static int read_proven(store *s, const char *key, json_t **out, err *e) {
  buf text;
  err why = {0};
  json_t *value = NULL;
  buf_init(&text, TEXT_MAX);
  int rc = s->ops->get(s, key, &text, &why);
  if (rc == 0 && js_read(&text, key, FORMAT, &value, NULL) == 0)
    *out = json_incref(json_object_get(value, "proven"));
  json_decref(value);
  buf_free(&text);
  if (!json_is_array(*out)) {
    json_decref(*out);
    *out = json_array();
  }
  if (!*out) return err_set(e, ERR_NOMEM, "read %s: out of memory", key);
  /* What refuses us for good, the race tells in its own words. */
  if (rc < 0 && err_class_of(rc) == ERR_CLASS_RETRYABLE) return err_set(e, rc, "%s", why.text);
  return 0;
}

static void ask_server(store *s, char out[STORE_SERVER_MAX]) {
  *out = 0;
  if (s->ops->server) s->ops->server(s, out);
}

static bool is_named(const json_t *proven, const char *server) {
  size_t i;
  const json_t *one;
  json_array_foreach(proven, i, one) {
    const char *text = json_string_value(one);
    if (text && *server && strcmp(text, server) == 0) return true;
  }
  return false;
}

static bool needs_none(store *s) {
  return !s->ops->race || s->single_writer || atomic_load(&s->arbitrates);
}

static int check(store *s, const json_t *proven, bool *due, err *e) {
  char server[STORE_SERVER_MAX];
  ask_server(s, server);
  *due = !is_named(proven, server);
  int rc = *due ? s->ops->race(s, e) : 0;
  if (rc == 0) atomic_store(&s->arbitrates, true);
  return rc;
}

int arbiter_check(store *s, const char *prefix, bool *due, err *e) {
  char key[STORE_KEY_MAX];
  json_t *proven = NULL;
  *due = s->ops->race && s->single_writer;
  if (needs_none(s)) return 0;
  int rc = runlog_join(prefix, name, key, e);
  if (rc == 0) rc = read_proven(s, key, &proven, e);
  if (rc == 0) rc = check(s, proven, due, e);
  json_decref(proven);
  return rc;
}

int arbiter_check_guest(store *s, const char *prefix, err *e) {
  char key[STORE_KEY_MAX];
  json_t *proven = NULL;
  bool due = false;
  if (needs_none(s)) return 0;
  int rc = runlog_join(prefix, name, key, e);
  if (rc == 0) rc = read_proven(s, key, &proven, e);
  if (rc == 0 && json_array_size(proven) > 0) rc = check(s, proven, &due, e);
  json_decref(proven);
  if (rc == 0 && due) arbiter_note(s, prefix);
  return rc;
}

/* The newest stands first; those that were longest not met go. */
static json_t *with(json_t *proven, const char *server) {
  json_t *list = json_array(), *one;
  size_t i;
  json_array_append_new(list, json_string(server));
  json_array_foreach(proven, i, one) if (json_is_string(one) && json_array_size(list) < SERVERS_MAX)
      json_array_append(list, one);
  return json_pack("{s:i, s:i, s:o}", "format", FORMAT, "reader", FORMAT, "proven", list);
}

static int note(store *s, const char *key, err *e) {
  char server[STORE_SERVER_MAX];
  json_t *proven = NULL, *value = NULL;
  buf text;
  buf_init(&text, TEXT_MAX);
  int rc = read_proven(s, key, &proven, e);
  ask_server(s, server);
  if (rc == 0 && *server && !is_named(proven, server)) {
    value = with(proven, server);
    rc = value ? js_print(value, &text, e) : err_set(e, ERR_NOMEM, "write %s: out of memory", key);
    if (rc == 0) rc = s->ops->put(s, key, text.data, text.len, STORE_REPLACE, e);
  }
  json_decref(proven);
  json_decref(value);
  buf_free(&text);
  return rc;
}

void arbiter_note(store *s, const char *prefix) {
  char key[STORE_KEY_MAX];
  err why = {0};
  if (!s->ops->race) return;
  int rc = runlog_join(prefix, name, key, &why);
  if (rc == 0) rc = s->single_writer ? s->ops->remove(s, key, &why) : note(s, key, &why);
  if (rc < 0)
    log_say(&s->log, LOG_INFO,
            "whether the server arbitrates between writers is not noted, so the next run tries it "
            "out again: %s",
            why.text);
}
