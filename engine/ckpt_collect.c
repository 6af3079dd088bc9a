/* The public API, its part about what nobody needs any more at a target. */
#include <stdio.h>
#include <string.h>

#include "ckpt_state.h"
#include "core/collect.h"

struct collection {
  ckpt *engine;
  collect how; /* store and log: those that it is at */
  ckpt_collected_fn *fn;
  void *ctx;
  const char *key;
  size_t failures;
  int status; /* of the first of them */
  err first;
};

static int tell(void *ctx, const runlog *log, const collected *what) {
  struct collection *n = ctx;
  ckpt_collected public = {.size = sizeof public,
                           .log = runlog_prefix(log),
                           .what = what->what,
                           .name = what->name,
                           .reason = what->reason,
                           .bytes = what->bytes,
                           .status = what->status};
  return n->fn ? n->fn(n->ctx, &public) : 0;
}

static void note_failure(struct collection *n, const char *prefix, int status, const char *why) {
  if (n->failures++ > 0) return;
  n->status = err_set(&n->first, status, "%s%s%s", prefix, *prefix ? ": " : "", why);
}

/* One log that cannot be read is no reason to leave the others as they are. */
static int on_unread(void *ctx, const char *prefix, int status, const char *why) {
  struct collection *n = ctx;
  ckpt_collected public = {.size = sizeof public,
                           .log = prefix,
                           .what = "log",
                           .name = "",
                           .reason = why,
                           .status = status};
  note_failure(n, prefix, status, why);
  return n->fn ? n->fn(n->ctx, &public) : 0;
}

static void at(struct collection *n, const catalog_place *place, runlog *log) {
  n->how.store = place->store;
  n->how.log = log;
}

/* What told() said ends the walk. */
static int end_of(struct collection *n, const runlog *log, int rc, const err *why) {
  if (rc < 0) note_failure(n, runlog_prefix(log), rc, why->text);
  return rc > 0 ? rc : 0;
}

static int collect_in(void *ctx, const catalog_place *place, runlog *log, err *e) {
  struct collection *n = ctx;
  err why = {0};
  (void)e;
  at(n, place, log);
  return end_of(n, log, collect_log(&n->how, &why), &why);
}

static int check_in(void *ctx, const catalog_place *place, runlog *log, err *e) {
  struct collection *n = ctx;
  at(n, place, log);
  return collect_check_run(&n->how, e);
}

static int remove_in(void *ctx, const catalog_place *place, runlog *log, err *e) {
  struct collection *n = ctx;
  err why = {0};
  (void)e;
  at(n, place, log);
  return end_of(n, log, collect_run(&n->how, &why), &why);
}

/* All of them are asked before the first one is ended. */
static int remove_runs(struct collection *n, const char *uri) {
  ckpt *c = n->engine;
  int rc = catalog_logs(c->env.io, &c->log, uri, check_in, n, &c->error);
  return rc < 0 ? rc : catalog_logs(c->env.io, &c->log, uri, remove_in, n, &c->error);
}

static int key_in(void *ctx, const catalog_place *place, runlog *log, err *e) {
  struct collection *n = ctx;
  at(n, place, log);
  return collect_key(&n->how, n->key, e);
}

static int remove_key(struct collection *n, const char *uri) {
  ckpt *c = n->engine;
  int rc = catalog_logs(c->env.io, &c->log, uri, key_in, n, &c->error);
  if (rc != 0) return rc == 1 ? 0 : rc;
  return err_set(&c->error, ERR_NOENT,
                 "%s is in no directory of a save that was given up or of a checkpoint that is "
                 "deleted: gc names what can be removed so",
                 n->key);
}

int ckpt_collect(ckpt *c, const ckpt_collect_options *options, ckpt_collected_fn *fn, void *ctx) {
  ckpt_collect_options taken;
  struct collection n = {.engine = c, .fn = fn, .ctx = ctx};
  int rc = ckpt_take(&taken, sizeof taken, options, "ckpt_collect_options", &c->error);
  if (rc == 0 && (!taken.uri || !*taken.uri))
    rc = err_set(&c->error, ERR_INVAL, "a collection needs a target");
  n.how = (collect){.sink = &c->log, .dry = taken.flags & CKPT_DRY_RUN, .told = tell, .ctx = &n};
  if (rc == 0) rc = ckpt_grace_ns(taken.grace_delete_s, &n.how.grace_ns, &c->error);
  if (rc < 0) return rc;
  n.key = taken.remove;
  if (n.key) return remove_key(&n, taken.uri);
  rc = taken.flags & CKPT_COLLECT_RUN
           ? remove_runs(&n, taken.uri)
           : catalog_logs_all(c->env.io, &c->log, taken.uri, collect_in, on_unread, &n, &c->error);
  if (rc != 0 || n.failures == 0) return rc;
  if (n.failures == 1) return err_set(&c->error, n.status, "%s", n.first.text);
  return err_set(&c->error, n.status, "%zu logs could not be collected whole; the first: %s",
                 n.failures, n.first.text);
}
