#include "store_failing.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct store_failing {
  store base;
  store *inner;
  store_ops ops;
  store_failing_plan plan; /* set while nothing runs */
  atomic_long count, failed;
};

typedef struct writer {
  store_writer base;
  store_writer *inner;
} writer;

static store_failing *of(store *s) {
  return (store_failing *)s;
}

static bool fails(store_failing *f) {
  long n = atomic_fetch_add(&f->count, 1) + 1;
  const store_failing_plan *p = &f->plan;
  bool hit = p->nth > 0 && (n == p->nth || (p->for_good && n > p->nth));
  if (hit) atomic_fetch_add(&f->failed, 1);
  return hit;
}

static int answer(const store_failing *f, const char *what, const char *key, err *e) {
  return err_set(e, f->plan.code, "failing: %s %s", what, key);
}

/* The shape of most calls: fails before or after the work, or is the inner store's. */
#define PASS_ON(type, what, key, call)                                                             \
  store_failing *f = of(base);                                                                     \
  store *in = f->inner;                                                                            \
  bool hit = fails(f);                                                                             \
  if (hit && !f->plan.done) return answer(f, what, key, e);                                        \
  type rc = call;                                                                                  \
  return hit && rc >= 0 ? answer(f, what, key, e) : rc;

static int failing_exists(store *base, err *e) {
  PASS_ON(int, "look for", "the store", in->ops->exists(in, e))
}

/* A lost answer has no bytes. */
static int failing_get(store *base, const char *key, buf *out, err *e) {
  store_failing *f = of(base);
  return fails(f) ? answer(f, "get", key, e) : f->inner->ops->get(f->inner, key, out, e);
}

static ssize_t failing_read(store *base, const char *key, uint64_t at, void *to, size_t len,
                            err *e) {
  store_failing *f = of(base);
  return fails(f) ? answer(f, "read", key, e) : f->inner->ops->read(f->inner, key, at, to, len, e);
}

static int failing_head(store *base, const char *key, store_object *out, err *e) {
  store_failing *f = of(base);
  return fails(f) ? answer(f, "head", key, e) : f->inner->ops->head(f->inner, key, out, e);
}

static int failing_put(store *base, const char *key, const void *data, size_t len, store_how how,
                       err *e) {
  PASS_ON(int, "put", key, in->ops->put(in, key, data, len, how, e))
}

static int failing_put_marked(store *base, const char *key, const void *data, size_t len,
                              store_how how, const char *mark, err *e) {
  PASS_ON(int, "put", key, in->ops->put_marked(in, key, data, len, how, mark, e))
}

/* A page of the listing arrives, and the next one does not. */
static int failing_list(store *base, const char *prefix, bool delimited, store_list_fn *fn,
                        void *ctx, err *e) {
  PASS_ON(int, "list", prefix, in->ops->list(in, prefix, delimited, fn, ctx, e))
}

static int failing_remove(store *base, const char *key, err *e) {
  PASS_ON(int, "remove", key, in->ops->remove(in, key, e))
}

static int take_first(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  (void)is_prefix, (void)object;
  snprintf(ctx, STORE_KEY_MAX + 1, "%s", key);
  return 1;
}

static int failing_remove_prefix(store *base, const char *prefix, err *e) {
  store_failing *f = of(base);
  store *in = f->inner;
  if (!fails(f)) return in->ops->remove_prefix(in, prefix, e);
  char first[STORE_KEY_MAX + 1];
  if (f->plan.done && in->ops->list(in, prefix, false, take_first, first, NULL) == 1)
    in->ops->remove(in, first, NULL);
  return answer(f, "remove", prefix, e);
}

static int failing_publish(store *base, const char *from, const char *to, err *e) {
  PASS_ON(int, "publish", to, in->ops->publish(in, from, to, e))
}

static int failing_unfinished(store *base, const char *prefix, store_unfinished_fn *fn, void *ctx,
                              err *e) {
  PASS_ON(int, "list the unfinished of", prefix, in->ops->unfinished(in, prefix, fn, ctx, e))
}

static int failing_discard(store *base, const store_unfinished *what, err *e) {
  PASS_ON(int, "discard", what->key, in->ops->discard(in, what, e))
}

static int failing_write_open(store *base, const char *key, uint64_t size, unsigned how,
                              atomic_int *cancel, store_writer **out, err *e) {
  store_failing *f = of(base);
  *out = NULL;
  if (fails(f)) return answer(f, "open", key, e);
  writer *w = malloc(sizeof *w);
  if (!w) abort();
  w->base.store = base;
  int rc = f->inner->ops->write_open(f->inner, key, size, how, cancel, &w->inner, e);
  if (rc < 0)
    free(w);
  else
    *out = &w->base;
  return rc;
}

static int failing_write(store_writer *base_writer, const void *data, size_t len, err *e) {
  writer *w = (writer *)base_writer;
  store_failing *f = of(w->base.store);
  bool hit = fails(f);
  if (hit && !f->plan.done) return answer(f, "write", "a part", e);
  int rc = f->inner->ops->write(w->inner, data, len, e);
  return hit && rc == 0 ? answer(f, "write", "a part", e) : rc;
}

static int failing_write_close(store_writer *base_writer, err *e) {
  writer *w = (writer *)base_writer;
  store_failing *f = of(w->base.store);
  bool hit = fails(f);
  int rc = 0;
  if (hit && !f->plan.done)
    f->inner->ops->write_abort(w->inner);
  else
    rc = f->inner->ops->write_close(w->inner, e);
  free(w);
  return hit && rc == 0 ? answer(f, "close", "an object", e) : rc;
}

static void failing_write_mark(store_writer *base_writer, const char *mark) {
  writer *w = (writer *)base_writer;
  of(w->base.store)->inner->ops->write_mark(w->inner, mark);
}

static void failing_write_abort(store_writer *base_writer) {
  writer *w = (writer *)base_writer;
  store_failing *f = of(w->base.store);
  f->inner->ops->write_abort(w->inner);
  free(w);
}

store_failing *store_failing_new(store *inner) {
  store_failing *f = calloc(1, sizeof *f);
  if (!f) abort();
  f->inner = inner;
  f->ops = (store_ops){
      .version = 1,
      .scheme = "failing",
      .caps = inner->ops->caps,
      .exists = failing_exists,
      .get = failing_get,
      .read = failing_read,
      .head = failing_head,
      .put = failing_put,
      .list = failing_list,
      .remove = failing_remove,
      .remove_prefix = failing_remove_prefix,
      .write_open = failing_write_open,
      .write = failing_write,
      .write_close = failing_write_close,
      .write_abort = failing_write_abort,
      .put_marked = inner->ops->put_marked ? failing_put_marked : NULL,
      .write_mark = inner->ops->write_mark ? failing_write_mark : NULL,
      .publish = inner->ops->publish ? failing_publish : NULL,
      .unfinished = inner->ops->unfinished ? failing_unfinished : NULL,
      .discard = inner->ops->discard ? failing_discard : NULL,
  };
  f->base = (store){.ops = &f->ops, .io = inner->io, .log = inner->log};
  return f;
}

void store_failing_free(store_failing *f) {
  free(f);
}

store *store_failing_store(store_failing *f) {
  return &f->base;
}

void store_failing_set(store_failing *f, store_failing_plan plan) {
  f->plan = plan;
  atomic_store(&f->count, 0);
  atomic_store(&f->failed, 0);
}

long store_failing_failed(store_failing *f) {
  return atomic_load(&f->failed);
}
