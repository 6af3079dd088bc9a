#include "remove_by_hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/arbiter.h"
#include "commit/pins.h"
#include "commit/verified.h"
#include "plan/retention.h"
#include "prune.h"

struct removing {
  const asked *asked;
  const remove_wish *wish;
  retention_limits limits;
  catalog_fn *told;
  void *ctx;
  const catalog_place *at; /* of the log that it is at */
  const runlog *log;
  size_t met;                /* commits that are meant, live or dropped */
  char first[STORE_KEY_MAX]; /* the group of the first of them */
  int status;                /* returned by `told` */
};

static void tell_removed(struct removing *r, const runlog_commit *c, runlog_life life) {
  catalog_told t;
  runlog_commit now = *c;
  now.life = life;
  if (r->status != 0 || !r->told || catalog_describe(r->at, r->log, &now, &t, NULL) < 0) return;
  r->status = r->told(r->ctx, r->at->store, &t.item, NULL);
}

static void on_removed(void *ctx, const runlog_commit *c, retention_verdict what) {
  tell_removed(ctx, c, what == RETENTION_DROP ? RUNLOG_DROPPED : RUNLOG_DELETED);
}

static bool is_named(const struct removing *r, const runlog_commit *c) {
  return catalog_is_asked(r->asked->name, runlog_prefix(r->log), c);
}

static bool may_go(void *ctx, const runlog_commit *c) {
  return is_named(ctx, c);
}

/* Chooses the commits to drop: by a name the newest live one; with `everything` all; otherwise
 * none. */
static size_t choose_wishes(const struct removing *r, prune_wish *wishes) {
  const runlog_state *state = runlog_view(r->log);
  const runlog_commit *newest = catalog_newest(r->log, r->asked->name);
  size_t count = 0;
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (c->life == RUNLOG_LIVE && (r->asked->name ? c == newest : r->wish->everything))
      wishes[count++] = (prune_wish){c->n, "user", "removed by hand"};
  }
  return count;
}

/* Refuses a commit that a rule keeps, before anything is written. */
static int check_wishes(const struct removing *r, const prune_wish *wishes, size_t count,
                        const pins *held, err *e) {
  int64_t now = r->asked->io->now(r->asked->io, IO_WALL);
  retention_guard guard = {.resumed = RUNLOG_NONE};
  int rc = verified_read(r->at->store, runlog_prefix(r->log), &guard.verified, e);
  if (rc < 0) return rc;
  uint64_t *pinned = pins_held(held, now, &guard.pinned_count);
  if (!pinned) return err_set(e, ERR_NOMEM, "remove: out of memory");
  guard.pinned = pinned;
  for (size_t i = 0; rc == 0 && i < count; i++) {
    const runlog_commit *c = runlog_find_commit(runlog_view(r->log), wishes[i].commit);
    const char *why = retention_guarded(runlog_view(r->log), c, &guard, r->limits.word);
    if (why)
      rc = err_set(e, ERR_HELD, "%s%s%s stays: %s%s", runlog_prefix(r->log),
                   *runlog_prefix(r->log) ? "/" : "", c->dir, why,
                   strstr(why, "pinned") ? " (`unpin`)" : " (to remove it too: `all`)");
  }
  free(pinned);
  return rc;
}

/* Called with the commits of a log that are to go. */
typedef int wishes_fn(struct removing *r, runlog *log, const prune_wish *wishes, size_t count,
                      err *e);

static int with_wishes(struct removing *r, const catalog_place *at, runlog *log, wishes_fn *fn,
                       err *e) {
  prune_wish *wishes = calloc(runlog_view(log)->commit_count + 1, sizeof *wishes);
  if (!wishes) return err_set(e, ERR_NOMEM, "remove: out of memory");
  r->at = at;
  r->log = log;
  int rc = fn(r, log, wishes, choose_wishes(r, wishes), e);
  free(wishes);
  return rc;
}

static int check_one(struct removing *r, runlog *log, const prune_wish *wishes, size_t count,
                     err *e) {
  const runlog_state *state = runlog_view(log);
  const char *group = runlog_prefix(log);
  pins held;
  size_t met = 0;
  for (size_t i = 0; i < state->commit_count; i++)
    met += state->commits[i].life != RUNLOG_DELETED && is_named(r, &state->commits[i]);
  /* A thousand trials have a checkpoint-1: a user who means one of them must not lose all. */
  if (r->asked->name && r->met > 0 && met > 0)
    return err_set(e, ERR_INVAL,
                   "several have the name %s, in \"%s\" and \"%s\": put the directory before it",
                   r->asked->name, r->first, group);
  if (met > 0) snprintf(r->first, sizeof r->first, "%s", group);
  r->met += met;
  if (!count) return 0;
  int rc = pins_list(r->at->store, runlog_prefix(log), &held, e);
  if (rc == 0) rc = check_wishes(r, wishes, count, &held, e);
  pins_free(&held);
  return rc;
}

static int check_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  return with_wishes(ctx, at, log, check_one, e);
}

/* Tells what would be done, by this machine's clock: the store's cannot be had without a write. */
static int pretend_one(struct removing *r, runlog *log, const prune_wish *wishes, size_t count,
                       err *e) {
  const runlog_state *state = runlog_view(log);
  retention_item *items = calloc(state->commit_count + 1, sizeof *items);
  retention_guard guard = {.resumed = RUNLOG_NONE, .verified = RUNLOG_NONE};
  retention_limits limits = r->limits;
  if (!items) return err_set(e, ERR_NOMEM, "remove: out of memory");
  limits.now_ns = r->asked->io->now(r->asked->io, IO_WALL);
  retention_plan(state, NULL, &guard, &limits, items);
  for (size_t i = 0; i < count; i++)
    tell_removed(r, runlog_find_commit(state, wishes[i].commit), RUNLOG_DROPPED);
  for (size_t i = 0; i < state->commit_count; i++)
    if (items[i].verdict == RETENTION_DELETE && is_named(r, &state->commits[i]))
      tell_removed(r, &state->commits[i], RUNLOG_DELETED);
  free(items);
  return r->status;
}

static int remove_one(struct removing *r, runlog *log, const prune_wish *wishes, size_t count,
                      err *e) {
  prune_rest rest;
  prune p = {.store = r->at->store,
             .log = log,
             .sink = r->asked->log,
             .limits = r->limits,
             .resumed = RUNLOG_NONE,
             .only = may_go,
             .told = on_removed,
             .ctx = r};
  int rc = arbiter_check_guest(p.store, runlog_prefix(log), e);
  if (rc == 0) rc = prune_drop(&p, wishes, count, e);
  if (rc == 0) rc = prune_delete(&p, SIZE_MAX, &rest, e);
  return rc < 0 ? rc : r->status;
}

static int remove_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct removing *r = ctx;
  return with_wishes(r, at, log, r->wish->dry ? pretend_one : remove_one, e);
}

int remove_by_hand(const asked *a, const remove_wish *wish, catalog_fn *told, void *ctx, err *e) {
  struct removing r = {.asked = a,
                       .wish = wish,
                       .limits = {.max_drop = 1,
                                  .grace_ns = wish->grace_ns,
                                  .word = wish->everything ? RETENTION_ALL : RETENTION_BY_HAND},
                       .told = told,
                       .ctx = ctx};
  int rc = asked_each_log(a, check_in, &r, e);
  if (rc == 0 && a->name && r.met == 0) rc = asked_no_such(a, e);
  return rc < 0 ? rc : asked_each_log(a, remove_in, &r, e);
}
