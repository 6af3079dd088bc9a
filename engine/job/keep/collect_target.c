#include "collect_target.h"

#include "commit/arbiter.h"

struct collection {
  const collect_target *t;
  collect how; /* store and log are those of the present log */
  const char *key;
  size_t failures;
  int status; /* of the first failure */
  err first;
};

static int on_collected(void *ctx, const runlog *log, const collected *what) {
  const struct collection *n = ctx;
  return n->t->told(n->t->ctx, runlog_prefix(log), what);
}

static struct collection begin(const collect_target *t) {
  return (struct collection){
      .t = t,
      .how = {.sink = t->sink, .dry = t->dry, .grace_ns = t->grace_ns, .told = on_collected}};
}

static void note_failure(struct collection *n, const char *prefix, int status, const char *why) {
  if (n->failures++ > 0) return;
  n->status = err_set(&n->first, status, "%s%s%s", prefix, *prefix ? ": " : "", why);
}

static int on_unread(void *ctx, const char *prefix, int status, const char *why) {
  struct collection *n = ctx;
  note_failure(n, prefix, status, why);
  return n->t->told(n->t->ctx, prefix,
                    &(collected){.what = "log", .name = "", .reason = why, .status = status});
}

static void at(struct collection *n, const catalog_place *place, runlog *log) {
  n->how.store = place->store;
  n->how.log = log;
  n->how.ctx = n;
}

/* Ends the walk with the value that told() returned. */
static int end_of(struct collection *n, const runlog *log, int rc, const err *why) {
  if (rc < 0) note_failure(n, runlog_prefix(log), rc, why->text);
  return rc > 0 ? rc : 0;
}

static int check_arbiter(const struct collection *n, const runlog *log, err *e) {
  return n->how.dry ? 0 : arbiter_check_guest(n->how.store, runlog_prefix(log), e);
}

static int collect_in(void *ctx, const catalog_place *place, runlog *log, err *e) {
  struct collection *n = ctx;
  err why = {0};
  (void)e;
  at(n, place, log);
  int rc = check_arbiter(n, log, &why);
  if (rc == 0) rc = collect_log(&n->how, &why);
  return end_of(n, log, rc, &why);
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
  int rc = check_arbiter(n, log, &why);
  if (rc == 0) rc = collect_run(&n->how, &why);
  return end_of(n, log, rc, &why);
}

static int key_in(void *ctx, const catalog_place *place, runlog *log, err *e) {
  struct collection *n = ctx;
  at(n, place, log);
  return collect_key(&n->how, n->key, e);
}

/* Returns the failures of a walk that went to its end with `rc`. */
static int result_of(const struct collection *n, int rc, err *e) {
  if (rc != 0 || n->failures == 0) return rc;
  if (n->failures == 1) return err_set(e, n->status, "%s", n->first.text);
  return err_set(e, n->status, "%zu logs could not be collected whole; the first: %s", n->failures,
                 n->first.text);
}

int collect_target_logs(const collect_target *t, err *e) {
  struct collection n = begin(t);
  int rc = catalog_logs_all(t->io, t->sink, t->where, collect_in, on_unread, &n, e);
  return result_of(&n, rc, e);
}

int collect_target_runs(const collect_target *t, err *e) {
  struct collection n = begin(t);
  int rc = catalog_logs(t->io, t->sink, t->where, check_in, &n, e);
  if (rc == 0) rc = catalog_logs(t->io, t->sink, t->where, remove_in, &n, e);
  return result_of(&n, rc, e);
}

int collect_target_key(const collect_target *t, const char *key, err *e) {
  struct collection n = begin(t);
  n.key = key;
  int rc = catalog_logs(t->io, t->sink, t->where, key_in, &n, e);
  if (rc != 0) return rc == 1 ? 0 : rc;
  return err_set(e, ERR_NOENT,
                 "%s is in no directory of a save that was given up or of a checkpoint that is "
                 "deleted: `collect` names what can be removed so",
                 key);
}
