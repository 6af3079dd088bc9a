/* The public API, its part about checkpoints that do not load. As a guest: no run is opened, and
 * nobody is fenced. */
#include <stdio.h>
#include <string.h>

#include "ckpt_state.h"

struct marking {
  ckpt_asked asked;
  const char *reason;
  bool good, dry;
  uint64_t only; /* 0: any */
  ckpt_item_fn *fn;
  void *ctx;
  /* What was chosen, of all logs at the place. */
  char group[STORE_KEY_MAX];
  uint64_t number;
  int64_t time_ns;
  bool found;
};

/* The newest live one that was asked for and that the mark would change; else the newest that was
 * asked for, of which it is true already. */
static const runlog_commit *choose(const struct marking *m, const runlog *log) {
  const runlog_state *state = runlog_view(log);
  const runlog_commit *other = NULL;
  for (size_t i = state->commit_count; i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c->life != RUNLOG_LIVE || !catalog_is_asked(m->asked.name, runlog_prefix(log), c) ||
        (m->only && c->n != m->only))
      continue;
    if (c->bad == m->good) return c;
    if (m->asked.name && !other) other = c;
  }
  return other;
}

/* A thousand trials have a checkpoint-1: who means one of them must say which. */
static int choose_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct marking *m = ctx;
  const runlog_commit *c = choose(m, log);
  (void)at;
  if (!c) return 0;
  if (m->found && m->asked.name)
    return err_set(e, ERR_INVAL,
                   "several have the name %s, in \"%s\" and \"%s\": put the directory before it",
                   m->asked.name, m->group, runlog_prefix(log));
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
  char root[HASH_HEX_MAX];
  int rc = m->dry ? 0 : runlog_mark(log, m->number, !m->good, m->reason, e);
  const runlog_commit *c = rc == 0 ? runlog_find_commit(runlog_view(log), m->number) : NULL;
  if (rc < 0 || !c || !m->fn) return rc;
  rc = catalog_describe(at, log, c, &t, e);
  if (rc < 0) return rc;
  ckpt_item public = ckpt_item_of(&t.item, root);
  return m->fn(m->ctx, &public);
}

/* Of a name that is there, but not live any more. */
static int is_gone(void *ctx, const catalog_place *at, runlog *log, err *e) {
  const struct marking *m = ctx;
  const runlog_state *state = runlog_view(log);
  (void)at;
  for (size_t i = state->commit_count; m->asked.name && i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c->life != RUNLOG_LIVE && catalog_is_asked(m->asked.name, runlog_prefix(log), c))
      return err_set(e, ERR_NOENT, "%s is no longer kept: no restore chooses it anyway", c->dir);
  }
  return 0;
}

int ckpt_mark(ckpt *c, const ckpt_mark_options *options, ckpt_item_fn *fn, void *ctx) {
  ckpt_mark_options taken;
  struct marking m = {.fn = fn, .ctx = ctx};
  err *e = &c->error;
  int rc = ckpt_take(&taken, sizeof taken, options, "ckpt_mark_options", e);
  if (rc == 0 && taken.reason && strlen(taken.reason) >= RUNLOG_REASON_MAX)
    rc = err_set(e, ERR_INVAL, "the reason is longer than %d bytes", RUNLOG_REASON_MAX - 1);
  if (rc == 0) rc = ckpt_ask(c, taken.uri, taken.name, &m.asked);
  m.reason = taken.reason;
  m.good = taken.good;
  m.dry = taken.flags & CKPT_DRY_RUN;
  m.only = taken.number;
  if (rc == 0) rc = ckpt_each_log(&m.asked, choose_in, &m, e);
  if (rc == 0 && !m.found) rc = ckpt_each_log(&m.asked, is_gone, &m, e);
  if (rc == 0 && !m.found && m.good && !m.asked.name)
    rc = err_set(e, ERR_NOENT, "no checkpoint of %s is marked bad", m.asked.where);
  if (rc == 0 && !m.found) rc = ckpt_no_such(&m.asked, e);
  if (rc < 0) return rc;
  return catalog_log_at(c->env.io, &c->log, m.asked.where, m.group, mark_in, &m, e);
}
