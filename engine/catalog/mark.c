#include "mark.h"

#include <stdio.h>

#include "commit/arbiter.h"

struct marking {
  const asked *asked;
  const mark_wish *wish;
  catalog_fn *told;
  void *ctx;
  /* The choice, among all logs at the place. */
  char group[STORE_KEY_MAX];
  uint64_t number;
  int64_t time_ns;
  bool found;
};

/* Chooses the newest live commit that was asked for and that the mark would change; else the newest
 * that was asked for, which has the mark already. */
static const runlog_commit *choose(const struct marking *m, const runlog *log) {
  const runlog_state *state = runlog_view(log);
  const runlog_commit *other = NULL;
  for (size_t i = state->commit_count; i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c->life != RUNLOG_LIVE || !catalog_is_asked(m->asked->name, runlog_prefix(log), c) ||
        (m->wish->only && c->n != m->wish->only))
      continue;
    if (c->bad == m->wish->good) return c;
    if (m->asked->name && !other) other = c;
  }
  return other;
}

/* A thousand trials have a checkpoint-1: a user who means one of them must say which. */
static int choose_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct marking *m = ctx;
  const runlog_commit *c = choose(m, log);
  (void)at;
  if (!c) return 0;
  if (m->found && m->asked->name)
    return err_set(e, ERR_INVAL,
                   "several have the name %s, in \"%s\" and \"%s\": put the directory before it",
                   m->asked->name, m->group, runlog_prefix(log));
  if (m->found && c->time_ns <= m->time_ns) return 0;
  snprintf(m->group, sizeof m->group, "%s", runlog_prefix(log));
  m->number = c->n;
  m->time_ns = c->time_ns;
  m->found = true;
  return 0;
}

static int mark_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct marking *m = ctx;
  catalog_told t;
  int rc = m->wish->dry ? 0 : arbiter_check_guest(at->store, runlog_prefix(log), e);
  if (rc == 0 && !m->wish->dry)
    rc = runlog_mark(log, m->number, !m->wish->good, m->wish->reason, e);
  const runlog_commit *c = rc == 0 ? runlog_find_commit(runlog_view(log), m->number) : NULL;
  if (rc < 0 || !c || !m->told) return rc;
  rc = catalog_describe(at, log, c, &t, e);
  return rc < 0 ? rc : m->told(m->ctx, at->store, &t.item, e);
}

/* Tells of a name that is there, but not live any more. */
static int is_gone(void *ctx, const catalog_place *at, runlog *log, err *e) {
  const struct marking *m = ctx;
  const runlog_state *state = runlog_view(log);
  (void)at;
  for (size_t i = state->commit_count; m->asked->name && i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c->life != RUNLOG_LIVE && catalog_is_asked(m->asked->name, runlog_prefix(log), c))
      return err_set(e, ERR_NOENT, "%s is no longer kept: no restore chooses it anyway", c->dir);
  }
  return 0;
}

int mark_checkpoint(const asked *a, const mark_wish *wish, catalog_fn *told, void *ctx, err *e) {
  struct marking m = {.asked = a, .wish = wish, .told = told, .ctx = ctx};
  int rc = asked_each_log(a, choose_in, &m, e);
  if (rc == 0 && !m.found) rc = asked_each_log(a, is_gone, &m, e);
  if (rc == 0 && !m.found && wish->good && !a->name)
    rc = err_set(e, ERR_NOENT, "no checkpoint of %s is marked bad", a->where);
  if (rc == 0 && !m.found) rc = asked_no_such(a, e);
  if (rc < 0) return rc;
  return catalog_log_at(a->io, a->log, a->where, m.group, mark_in, &m, e);
}
