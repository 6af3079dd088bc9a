#include "store.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

static const store_ops *const stores[] = {&store_file_ops, &store_mem_ops, &store_s3_ops,
                                          &store_gs_ops};

enum { STORES = sizeof stores / sizeof stores[0] };

int store_open(const uri *where, const io *io, const log_sink *log, store **out, err *e) {
  *out = NULL;
  for (int i = 0; i < STORES; i++)
    if (strcmp(where->scheme, stores[i]->scheme) == 0)
      return stores[i]->open(where, io, log, out, e);
  buf known;
  buf_init(&known, 256);
  for (int i = 0; i < STORES; i++) buf_fmt(&known, "%s%s://", i ? ", " : "", stores[i]->scheme);
  int rc = err_set(e, ERR_UNSUPPORTED, "no store speaks %s://; there are %s", where->scheme,
                   known.data ? known.data : "others");
  buf_free(&known);
  return rc;
}

const char *store_scheme(size_t i) {
  return i < STORES ? stores[i]->scheme : NULL;
}

void store_close(store *s) {
  if (s) s->ops->close(s);
}

bool store_can(const store *s, store_cap cap) {
  return (s->ops->caps & (uint32_t)cap) != 0;
}

int store_put_marked(store *s, const char *key, const void *data, size_t len, store_how how,
                     const char *mark, err *e) {
  if (s->ops->put_marked && mark && *mark)
    return s->ops->put_marked(s, key, data, len, how, mark, e);
  return s->ops->put(s, key, data, len, how, e);
}

void store_write_mark(store_writer *w, const char *mark) {
  if (w->store->ops->write_mark && mark && *mark) w->store->ops->write_mark(w, mark);
}

bool store_write_tally(store_writer *w, const store_tally *tally) {
  if (!w->store->ops->write_tally) return false;
  w->store->ops->write_tally(w, tally);
  return true;
}

void store_write_digest(store_writer *w, hash_kind kind, const digest *of) {
  if (w->store->ops->write_digest) w->store->ops->write_digest(w, kind, of);
}

void store_write_since(store_writer *w, int64_t ns) {
  if (w->store->ops->write_since && ns > 0) w->store->ops->write_since(w, ns);
}

int store_spell(store *s, const char *prefix, store_spelling how, err *e) {
  return s->ops->spell ? s->ops->spell(s, prefix, how, e) : 0;
}

void store_get_many(store *s, store_ask *asks, size_t count) {
  if (s->ops->get_many && count > 1) {
    s->ops->get_many(s, asks, count);
    return;
  }
  for (size_t i = 0; i < count; i++)
    asks[i].rc = s->ops->get(s, asks[i].key, &asks[i].out, &asks[i].why);
}

int store_keys_add(void *keys, const char *key, bool is_prefix, const store_object *object) {
  store_keys *l = keys;
  if (!VEC_ROOM(l->at, l->count, l->room)) return ERR_NOMEM;
  store_found *found = &l->at[l->count];
  *found = (store_found){.key = strdup(key), .is_prefix = is_prefix};
  if (!found->key) return ERR_NOMEM;
  if (object) found->object = *object;
  l->count++;
  return 0;
}

void store_keys_free(store_keys *l) {
  for (size_t i = 0; i < l->count; i++) free(l->at[i].key);
  free(l->at);
  *l = (store_keys){0};
}

typedef struct prefixes {
  store_list_fn *fn;
  void *ctx;
} prefixes;

static int tell_prefix(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  const prefixes *p = ctx;
  return is_prefix ? p->fn(p->ctx, key, true, object) : 0;
}

int store_list_dirs(store *s, const char *prefix, store_list_fn *fn, void *ctx, err *e) {
  prefixes p = {fn, ctx};
  if (s->ops->list_dirs) return s->ops->list_dirs(s, prefix, fn, ctx, e);
  return s->ops->list(s, prefix, true, tell_prefix, &p, e);
}

int store_remove_below(store *s, const char *prefix, const char *const *keys, size_t count,
                       err *e) {
  int rc = 0;
  if (s->ops->remove_below) return s->ops->remove_below(s, prefix, keys, count, e);
  for (size_t i = 0; rc == 0 && i < count; i++) rc = s->ops->remove(s, keys[i], e);
  return rc;
}
