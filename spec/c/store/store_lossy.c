#include "store_lossy.h"

#include <stdlib.h>
#include <string.h>

#include "manifest_make.h"

static store_lossy *self(store *s) {
  return (store_lossy *)s;
}

static bool chance(store_lossy *s, unsigned of_1000) {
  return next_random(&s->random) % 1000 < of_1000;
}

void store_lossy_arrive(store_lossy *s) {
  if (!s->late_key) return;
  s->inner->ops->put(s->inner, s->late_key, s->late_data, s->late_len, STORE_IF_ABSENT, NULL);
  free(s->late_key);
  free(s->late_data);
  s->late_key = s->late_data = NULL;
}

static void come_between(store_lossy *s) {
  if (s->late_key && chance(s, 200)) store_lossy_arrive(s);
  if (s->between) s->between(s->ctx);
}

static int lossy_get(store *base, const char *key, buf *out, err *e) {
  store_lossy *s = self(base);
  s->gets++;
  come_between(s);
  if (chance(s, s->deaf)) return err_set(e, ERR_IO, "lossy: get %s failed", key);
  return s->inner->ops->get(s->inner, key, out, e);
}

static ssize_t lossy_read(store *base, const char *key, uint64_t at, void *to, size_t len, err *e) {
  store *in = self(base)->inner;
  return in->ops->read(in, key, at, to, len, e);
}

static int lossy_head(store *base, const char *key, store_object *out, err *e) {
  store *in = self(base)->inner;
  return in->ops->head(in, key, out, e);
}

static int lossy_put_marked(store *base, const char *key, const void *data, size_t len,
                            store_how how, const char *mark, err *e) {
  store_lossy *s = self(base);
  s->puts++;
  come_between(s);
  if (chance(s, s->never) || (s->never_at && s->puts >= s->never_at))
    return err_set(e, ERR_IO, "lossy: put %s failed", key);
  if (!s->late_key && how == STORE_IF_ABSENT && chance(s, s->late)) {
    s->late_key = strdup(key);
    s->late_data = malloc(len + 1);
    if (!s->late_key || !s->late_data) abort();
    memcpy(s->late_data, data, len);
    s->late_len = len;
    return err_set(e, ERR_TIMEOUT, "lossy: put %s has no answer", key);
  }
  int rc = store_put_marked(s->inner, key, data, len, how, mark, e);
  if (rc == 0 && (chance(s, s->lost) || s->puts == s->lost_at))
    return err_set(e, ERR_IO, "lossy: the answer to put %s is lost", key);
  return rc;
}

static int lossy_put(store *base, const char *key, const void *data, size_t len, store_how how,
                     err *e) {
  return lossy_put_marked(base, key, data, len, how, NULL, e);
}

static int lossy_exists(store *base, err *e) {
  store *in = self(base)->inner;
  return in->ops->exists(in, e);
}

/* The writer that comes back is the inner store's. */
static int lossy_write_open(store *base, const char *key, uint64_t size, unsigned how,
                            atomic_int *cancel, store_writer **out, err *e) {
  store *in = self(base)->inner;
  return in->ops->write_open(in, key, size, how, cancel, out, e);
}

static int lossy_write(store_writer *w, const void *data, size_t len, err *e) {
  return w->store->ops->write(w, data, len, e);
}

static int lossy_write_close(store_writer *w, err *e) {
  return w->store->ops->write_close(w, e);
}

static void lossy_write_abort(store_writer *w) {
  w->store->ops->write_abort(w);
}

static int lossy_list(store *base, const char *prefix, bool delimited, store_list_fn *fn, void *ctx,
                      err *e) {
  store *in = self(base)->inner;
  return in->ops->list(in, prefix, delimited, fn, ctx, e);
}

static int lossy_remove(store *base, const char *key, err *e) {
  store *in = self(base)->inner;
  return in->ops->remove(in, key, e);
}

static int lossy_remove_prefix(store *base, const char *prefix, err *e) {
  store *in = self(base)->inner;
  return in->ops->remove_prefix(in, prefix, e);
}

static const store_ops lossy_ops = {
    .version = 1,
    .scheme = "lossy",
    .exists = lossy_exists,
    .get = lossy_get,
    .read = lossy_read,
    .head = lossy_head,
    .put = lossy_put,
    .list = lossy_list,
    .remove = lossy_remove,
    .remove_prefix = lossy_remove_prefix,
    .write_open = lossy_write_open,
    .write = lossy_write,
    .write_close = lossy_write_close,
    .write_abort = lossy_write_abort,
    .put_marked = lossy_put_marked,
};

store_lossy *store_lossy_new(store *inner, uint64_t seed, bool proof) {
  store_lossy *s = calloc(1, sizeof *s);
  if (!s) abort();
  s->ops = lossy_ops;
  if (proof) s->ops.caps = STORE_CAP_IF_ABSENT | STORE_CAP_RESUME;
  s->base = (store){.ops = &s->ops, .io = inner->io};
  s->inner = inner;
  s->random = seed;
  return s;
}

void store_lossy_free(store_lossy *s) {
  if (!s) return;
  free(s->late_key);
  free(s->late_data);
  free(s);
}
