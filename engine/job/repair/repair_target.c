/* repair_target: repairs each log at or below a place. */
#include <stdio.h>

#include "base/names.h"
#include "repair_impl.h"

struct target {
  const repair_wish *wish;
  store *store;
  names seen; /* sorted: the logs that were looked at */
  size_t failures;
  int status;
  err first;
};

static int repair_one(struct target *t, const char *prefix, bool alone) {
  err why = {0};
  if (names_has(&t->seen, prefix)) return 0;
  if (!names_add(&t->seen, prefix)) return ERR_NOMEM;
  names_sort(&t->seen);
  const repair how = {.store = t->store,
                      .prefix = prefix,
                      .sink = t->wish->sink,
                      .dry = t->wish->dry,
                      .take_over = t->wish->take_over,
                      .told = t->wish->told,
                      .ctx = t->wish->ctx};
  int rc = repair_log(&how, &why);
  if (rc == ERR_NOENT && alone) return 0;
  if (rc < 0 && t->failures++ == 0)
    t->status = err_set(&t->first, rc, "%s%s%s", prefix, *prefix ? ": " : "", why.text);
  return rc > 0 ? rc : 0;
}

static int on_log(void *ctx, runlog *log, err *e) {
  (void)e;
  return names_add(ctx, runlog_prefix(log)) ? 0 : ERR_NOMEM;
}

static int on_unread(void *ctx, const char *prefix, int status, const char *why) {
  (void)status, (void)why;
  return names_add(ctx, prefix) ? 0 : ERR_NOMEM;
}

/* Below a log that cannot be read nothing is found, so those below it come in the next round. */
static int repair_below(struct target *t, err *e) {
  enum { ROUNDS_MAX = 16 };
  int rc = 0;
  for (int i = 0; rc == 0 && i < ROUNDS_MAX; i++) {
    names logs = {0};
    size_t before = t->seen.count;
    err why = {0};
    rc = runlog_groups_all(t->store, "", on_log, on_unread, &logs, &why);
    if (rc == ERR_NOENT) rc = 0;
    if (rc < 0) err_set(e, rc, "%s", *why.text ? why.text : err_text(rc));
    for (size_t k = 0; rc == 0 && k < logs.count; k++) rc = repair_one(t, logs.at[k], false);
    names_free(&logs);
    if (t->wish->dry || t->seen.count == before) break;
  }
  return rc;
}

int repair_target(const repair_wish *wish, err *e) {
  struct target t = {.wish = wish};
  uri where;
  buf text;
  buf_init(&text, URI_MAX);
  int rc = uri_expand(wish->where, &text, e);
  if (rc == 0) rc = uri_parse(text.data ? text.data : "", &where, e);
  buf_free(&text);
  if (rc == 0) rc = store_open(&where, wish->io, wish->sink, &t.store, e);
  if (rc == 0) rc = t.store->ops->exists(t.store, e);
  if (rc == 0) rc = repair_one(&t, "", true);
  if (rc == 0) rc = repair_below(&t, e);
  store_close(t.store);
  names_free(&t.seen);
  if (rc != 0 || t.failures == 0) return rc;
  if (t.failures == 1) return err_set(e, t.status, "%s", t.first.text);
  return err_set(e, t.status, "%zu logs could not be repaired; the first: %s", t.failures,
                 t.first.text);
}
