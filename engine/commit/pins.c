#include "pins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"

enum { PIN_BYTES_MAX = 16 << 10, FORMAT = 1, READER = 1, WORD_MAX = 128 };

static int key_of(const char *prefix, const char *id, char out[STORE_KEY_MAX], err *e) {
  char name[STORE_KEY_MAX + 1]; /* a name that is cut off here is too long for a key, too */
  snprintf(name, sizeof name, ".ckpt/pins%s%s", *id ? "/" : "", id);
  return runlog_join(prefix, name, out, e);
}

static void pin_free(pin *p) {
  free(p->dir);
  free(p->host);
  free(p->by);
}

void pins_free(pins *p) {
  for (size_t i = 0; i < p->count; i++) pin_free(&p->at[i]);
  free(p->at);
  *p = (pins){0};
}

bool pin_expired(const pin *p, int64_t store_now_ns) {
  return p->until_ns < store_now_ns;
}

uint64_t *pins_held(const pins *p, int64_t store_now_ns, size_t *count) {
  uint64_t *numbers = calloc(p->count + 1, sizeof *numbers);
  *count = 0;
  for (size_t i = 0; numbers && i < p->count; i++)
    if (!pin_expired(&p->at[i], store_now_ns)) numbers[(*count)++] = p->at[i].commit;
  return numbers;
}

/* ---- reading ---- */

/* Returns the later of two ends: the pin's own, and its life counted by the store's clock. */
static int64_t end_of(const pin *p, int64_t mtime_ns) {
  int64_t life, end;
  if (p->expires_ns == 0) return INT64_MAX;
  if (__builtin_sub_overflow(p->expires_ns, p->created_ns, &life) || life < 0) return INT64_MAX;
  if (__builtin_add_overflow(mtime_ns, life, &end)) return INT64_MAX;
  return end > p->expires_ns ? end : p->expires_ns;
}

static int parse(const buf *text, const char *key, pin *out) {
  json_t *object = NULL;
  int64_t commit = 0;
  int rc = js_read(text, key, READER, &object, NULL);
  if (rc == 0 && !runlog_sum_holds(object, text)) rc = ERR_FORMAT;
  if (rc == 0) rc = js_get_int(object, "commit", key, &commit, NULL);
  if (rc == 0) rc = js_get_int(object, "created_ns", key, &out->created_ns, NULL);
  if (rc == 0) rc = js_opt_int(object, "expires_ns", key, 0, &out->expires_ns, NULL);
  if (rc == 0) rc = js_get_name(object, "dir", key, &out->dir, NULL);
  if (rc == 0) rc = js_get_name(object, "host", key, &out->host, NULL);
  if (rc == 0) rc = js_get_name(object, "by", key, &out->by, NULL);
  if (rc == 0 && (commit < 0 || out->expires_ns < 0)) rc = ERR_FORMAT;
  out->commit = (uint64_t)commit;
  json_decref(object);
  return rc;
}

/* Reads a pin: 1 if it is one, 0 if it is gone, ERR_FORMAT if nobody can say what it is. */
static int read_pin(store *s, const char *key, int64_t mtime_ns, pin *out, err *e) {
  const char *name = strrchr(key, '/') + 1;
  buf text;
  err why = {0};
  *out = (pin){0};
  buf_init(&text, PIN_BYTES_MAX);
  int rc = s->ops->get(s, key, &text, &why);
  bool got = rc == 0;
  if (got) rc = strlen(name) < sizeof out->id ? parse(&text, key, out) : ERR_FORMAT;
  buf_free(&text);
  if (rc == 0) {
    snprintf(out->id, sizeof out->id, "%s", name);
    out->until_ns = end_of(out, mtime_ns);
    return 1;
  }
  pin_free(out);
  if (rc == ERR_NOENT && !got) return 0;
  if (rc == ERR_NOMEM) return err_set(e, rc, "read the pins: out of memory");
  if (!got && rc != ERR_LIMIT) return err_set(e, rc, "read the pins: %s", why.text);
  return ERR_FORMAT;
}

static int take(store *s, const store_found *f, pins *out, err *e) {
  pin p;
  int rc = read_pin(s, f->key, f->object.mtime_ns, &p, e);
  if (rc == ERR_FORMAT) {
    out->broken++;
    snprintf(out->broken_key, sizeof out->broken_key, "%s", f->key);
    return 0;
  }
  if (rc != 1) return rc;
  if (VEC_ROOM(out->at, out->count, out->room)) {
    out->at[out->count++] = p;
    return 0;
  }
  pin_free(&p);
  return err_set(e, ERR_NOMEM, "read the pins: out of memory");
}

int pins_list(store *s, const char *prefix, pins *out, err *e) {
  char key[STORE_KEY_MAX];
  store_keys l = {0};
  err why = {0};
  *out = (pins){0};
  int rc = key_of(prefix, "", key, e);
  if (rc < 0) return rc;
  rc = s->ops->list(s, key, false, store_keys_add, &l, &why);
  if (rc == ERR_NOENT || rc == ERR_NOSTORE) rc = 0;
  if (rc < 0) err_set(e, rc, "list the pins: %s", *why.text ? why.text : err_text(rc));
  for (size_t i = 0; rc == 0 && i < l.count; i++) rc = take(s, &l.at[i], out, e);
  store_keys_free(&l);
  return rc;
}

/* ---- writing ---- */

static int print(const io *io, const pin_request *r, buf *out, err *e) {
  char host[WORD_MAX] = "";
  int64_t now = io->now(io, IO_WALL), end = 0;
  json_t *object = json_object();
  int bad = 0;
  if (gethostname(host, sizeof host - 1) < 0) host[0] = 0;
  if (r->life_ns && __builtin_add_overflow(now, r->life_ns, &end)) end = INT64_MAX;
  js_set(object, "format", json_integer(FORMAT), &bad);
  js_set(object, "reader", json_integer(READER), &bad);
  js_set(object, "dir", js_name_new(r->dir), &bad);
  js_set(object, "commit", json_integer((json_int_t)r->commit), &bad);
  js_set(object, "host", js_name_new(host), &bad);
  js_set(object, "by", js_name_new(r->by), &bad);
  js_set(object, "created_ns", json_integer(now), &bad);
  if (r->life_ns) js_set(object, "expires_ns", json_integer(end), &bad);
  int rc = bad ? err_set(e, ERR_NOMEM, "pin %s: out of memory", r->dir) : js_print(object, out, e);
  json_decref(object);
  return rc == 0 ? runlog_seal(out, e) : rc;
}

int pins_put(store *s, const char *prefix, const pin_request *request, char id[PINS_ID_MAX],
             bool renew, err *e) {
  char key[STORE_KEY_MAX];
  buf text;
  buf_init(&text, PIN_BYTES_MAX);
  int rc = renew ? 0 : io_nonce(s->io, id);
  if (rc < 0) rc = err_sys(e, rc, "pin %s: random numbers", request->dir);
  if (rc == 0) rc = key_of(prefix, id, key, e);
  if (rc == 0) rc = print(s->io, request, &text, e);
  if (rc == 0)
    rc = s->ops->put(s, key, text.data, text.len, renew ? STORE_REPLACE : STORE_IF_ABSENT, e);
  buf_free(&text);
  return rc;
}

int pins_remove(store *s, const char *prefix, const char *id, err *e) {
  char key[STORE_KEY_MAX];
  store_object object;
  if (!*id || strchr(id, '/')) return err_set(e, ERR_NOENT, "there is no pin \"%.100s\"", id);
  int rc = key_of(prefix, id, key, e);
  if (rc == 0) rc = s->ops->head(s, key, &object, e);
  return rc < 0 ? rc : s->ops->remove(s, key, e);
}
