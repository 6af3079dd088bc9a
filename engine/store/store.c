#include "store.h"

#include <string.h>

static const store_ops *const stores[] = {&store_file_ops, &store_mem_ops, &store_s3_ops};

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

void store_write_since(store_writer *w, int64_t ns) {
  if (w->store->ops->write_since && ns > 0) w->store->ops->write_since(w, ns);
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

/* One rule for all stores, or a checkpoint could be put into one and not be copied to another. "."
 * and ".." would leave the root of a file store; an empty component is one name on a disk and
 * another one in a bucket. */
int store_key_check(const char *key, err *e) {
  if (!key || !*key) return err_set(e, ERR_INVAL, "an empty key names no object");
  if (strnlen(key, STORE_KEY_MAX + 1) > STORE_KEY_MAX)
    return err_set(e, ERR_LIMIT, "the key \"%.60s...\" is longer than %d bytes", key,
                   STORE_KEY_MAX);
  for (const char *at = key;; at++) {
    size_t len = strcspn(at, "/");
    if (len == 0)
      return err_set(e, ERR_INVAL,
                     "the key \"%.200s\" has an empty component: no slash may lead, "
                     "trail or be doubled",
                     key);
    if (at[0] == '.' && (len == 1 || (len == 2 && at[1] == '.')))
      return err_set(e, ERR_INVAL, "the key \"%.200s\" has a component \"%.*s\"", key, (int)len,
                     at);
    at += len;
    if (!*at) return 0;
  }
}

/* The slash ranks below every byte, and the end of a key below the slash. */
static int rank_of(char c) {
  return c == 0 ? 0 : c == '/' ? 1 : 2 + (unsigned char)c;
}

int store_key_order(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return rank_of(*a) - rank_of(*b);
}
