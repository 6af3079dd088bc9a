#include "asked.h"

#include <stdio.h>
#include <string.h>

#include "catalog_impl.h"

int asked_no_such(const asked *a, err *e) {
  if (!a->name) return err_set(e, ERR_NOENT, "%s has no checkpoint", a->where);
  return catalog_nothing_found(a->where, a->name, e);
}

static int is_begun(void *ctx, const catalog_place *at, runlog *log, err *e) {
  (void)at, (void)e;
  *(bool *)ctx |= runlog_view(log)->next > 0;
  return 0;
}

/* Returns 1 if there is a log at or below the place. */
static int is_target(const asked *a, err *e) {
  bool here = false;
  err why = {0};
  int rc = catalog_log_at(a->io, a->log, a->where, "", is_begun, &here, e);
  if (rc < 0 || here) return rc < 0 ? rc : 1;
  rc = catalog_logs(a->io, a->log, a->where, is_begun, &here, &why);
  if (catalog_is_absent(rc)) return 0;
  return rc < 0 ? err_set(e, rc, "%s", why.text) : 1;
}

int asked_parse(const io *io, const log_sink *log, const char *uri, const char *name, asked *out,
                err *e) {
  *out = (asked){.io = io, .log = log, .name = name};
  if (!uri || !*uri) return err_set(e, ERR_INVAL, "a target is needed");
  if (snprintf(out->where, sizeof out->where, "%s", uri) >= (int)sizeof out->where)
    return err_set(e, ERR_LIMIT, "%.100s...: the URI is too long", uri);
  int target = name ? 1 : is_target(out, e);
  char *slash = strrchr(out->where, '/');
  bool splits = slash && slash > out->where && slash[-1] != '/' && slash[1];
  if (target != 0 || !splits) return target < 0 ? target : 0;
  *slash = 0;
  out->name = slash + 1;
  return 0;
}

int asked_each_log(const asked *a, catalog_log_fn *fn, void *ctx, err *e) {
  return catalog_logs(a->io, a->log, a->where, fn, ctx, e);
}

static int choose_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  asked_one *one = ctx;
  const runlog_commit *c = catalog_newest(log, one->asked->name);
  (void)at, (void)e;
  if (!c || (one->found && c->time_ns <= one->time_ns)) return 0;
  snprintf(one->group, sizeof one->group, "%s", runlog_prefix(log));
  one->number = c->n;
  one->time_ns = c->time_ns;
  one->found = true;
  return 0;
}

int asked_with_one(const asked *a, asked_one *one, catalog_log_fn *fn, void *ctx, err *e) {
  *one = (asked_one){.asked = a};
  int rc = asked_each_log(a, choose_in, one, e);
  if (rc == 0 && !one->found) rc = asked_no_such(a, e);
  return rc < 0 ? rc : catalog_log_at(a->io, a->log, a->where, one->group, fn, ctx, e);
}

int asked_get_one(const asked_one *one, const runlog *log, const runlog_commit **out, err *e) {
  *out = runlog_find_commit(runlog_view(log), one->number);
  if (*out && (*out)->life == RUNLOG_LIVE) return 0;
  return err_set(e, ERR_CONFLICT, "it was dropped just now: nothing was done");
}
