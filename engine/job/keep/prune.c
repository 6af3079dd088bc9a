#include "prune.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/seconds.h"
#include "base/vec.h"
#include "commit/lease.h"
#include "commit/settle.h"
#include "commit/verified.h"
#include "prune_impl.h"

void prune_pass_free(prune_pass *a) {
  pins_free(&a->pins);
  free(a->pinned);
  free(a->items);
}

/* Refuses to go on with a pin that cannot be read: it may be for any checkpoint. */
static int check_broken(const prune_pass *a, err *e) {
  if (!a->pins.broken) return 0;
  return err_set(e, ERR_FORMAT,
                 "nothing is dropped or deleted: %s cannot be read as a pin, so it may be for any "
                 "checkpoint (to remove it: `unpin`)",
                 a->pins.broken_key);
}

int prune_pass_pins(prune_pass *a, int64_t now, err *e) {
  const prune *p = a->p;
  a->guard = (retention_guard){.resumed = p->resumed};
  int rc = verified_read(p->store, runlog_prefix(p->log), &a->guard.verified, e);
  if (rc == 0) rc = pins_list(p->store, runlog_prefix(p->log), &a->pins, e);
  if (rc == 0) rc = check_broken(a, e);
  if (rc < 0) return rc;
  a->pinned = pins_held(&a->pins, now, &a->guard.pinned_count);
  if (!a->pinned) return err_set(e, ERR_NOMEM, "read the pins: out of memory");
  if (FAULT("pins-not-asked")) a->guard.pinned_count = 0;
  a->guard.pinned = a->pinned;
  return 0;
}

static void remove_expired(const prune_pass *a, int64_t now) {
  const prune *p = a->p;
  err why = {0};
  for (size_t i = 0; i < a->pins.count; i++)
    if (pin_expired(&a->pins.at[i], now) &&
        pins_remove(p->store, runlog_prefix(p->log), a->pins.at[i].id, &why) < 0)
      log_say(p->sink, LOG_DEBUG, "an expired pin stays: %s", why.text);
}

static int take_plan(prune_pass *a, const bool *keep, int64_t now, err *e) {
  const runlog_state *state = runlog_view(a->p->log);
  retention_limits limits = a->p->limits;
  limits.now_ns = now;
  a->items = calloc(state->commit_count + 1, sizeof *a->items);
  if (!a->items) return err_set(e, ERR_NOMEM, "plan what is kept: out of memory");
  retention_plan(state, keep, &a->guard, &limits, a->items);
  return 0;
}

bool prune_stopped(const prune *p) {
  return p->stop && atomic_load(p->stop);
}

/* Asks the rules again, on the log as it is when the entry is made. */
static bool may(void *ctx, const runlog_state *state, const runlog_commit *c) {
  const prune_pass *a = ctx;
  return !retention_guarded(state, c, &a->guard, a->p->limits.word);
}

static void tell(const prune *p, uint64_t n, retention_verdict what) {
  const runlog_commit *c = runlog_find_commit(runlog_view(p->log), n);
  if (c && p->told) p->told(p->ctx, c, what);
}

/* ---- drop ---- */

static const prune_wish *wish_for(const prune_wish *wishes, size_t count, uint64_t n) {
  return vec_find(&n, wishes, count, sizeof *wishes, vec_by_number);
}

static int drop_one(prune_pass *a, const prune_wish *wish, err *e) {
  const prune *p = a->p;
  err why = {0};
  int rc = runlog_drop(p->log, wish->commit, wish->policy, wish->reason, may, a, &why);
  if (rc == 0) tell(p, wish->commit, RETENTION_DROP);
  if (rc == 0 || rc == ERR_CONFLICT) return 0;
  return err_set(e, rc, "%s", why.text);
}

/* The log moves while it is appended to: so the numbers of the commits are taken first. */
static int drop_planned(prune_pass *a, const prune_wish *wishes, size_t count, err *e) {
  const runlog_state *state = runlog_view(a->p->log);
  const prune_wish **going = calloc(count + 1, sizeof(prune_wish *));
  if (!going) return err_set(e, ERR_NOMEM, "plan what is kept: out of memory");
  size_t n = 0;
  int rc = 0;
  for (size_t i = 0; i < state->commit_count; i++)
    if (a->items[i].verdict == RETENTION_DROP)
      going[n++] = wish_for(wishes, count, a->items[i].commit->n);
  for (size_t i = 0; rc == 0 && i < n && !prune_stopped(a->p); i++) rc = drop_one(a, going[i], e);
  free(going);
  return rc;
}

int prune_drop(const prune *p, const prune_wish *wishes, size_t count, err *e) {
  prune_pass a = {.p = p};
  bool *keep = NULL;
  if (count == 0) return 0;
  int rc = runlog_refresh(p->log, e);
  if (rc == 0) rc = prune_pass_pins(&a, INT64_MIN, e);
  if (rc < 0) goto out;
  const runlog_state *state = runlog_view(p->log);
  keep = calloc(state->commit_count + 1, sizeof *keep);
  if (!keep) {
    rc = err_set(e, ERR_NOMEM, "plan what is kept: out of memory");
    goto out;
  }
  for (size_t i = 0; i < state->commit_count; i++)
    keep[i] = !wish_for(wishes, count, state->commits[i].n);
  rc = take_plan(&a, keep, 0, e);
  if (rc == 0) rc = drop_planned(&a, wishes, count, e);
out:
  free(keep);
  prune_pass_free(&a);
  return rc;
}

/* ---- delete ---- */

static bool any_dropped(const prune *p) {
  const runlog_state *state = runlog_view(p->log);
  for (size_t i = 0; i < state->commit_count; i++)
    if (state->commits[i].life == RUNLOG_DROPPED) return true;
  return false;
}

/* Tells how much of this drop's grace period is left by the store's clock: the time in the entry is
 * by its writer's, which may have been behind. */
static int rest_of(const prune *p, uint64_t commit, int64_t now, int64_t *rest, err *e) {
  const runlog_commit *c = runlog_find_commit(runlog_view(p->log), commit);
  int64_t at, end;
  *rest = SECONDS_FOREVER;
  if (!c) return 0;
  int64_t grace = retention_grace(c->drop_policy, c->drop_reason, p->limits.grace_ns);
  int rc = runlog_entry_time(p->log, c->drop, &at, e);
  if (rc < 0) return rc;
  end = FAULT("grace-not-waited") ? 0 : seconds_later(at, grace);
  *rest = end == SECONDS_FOREVER ? end : end > now ? end - now : 0;
  return 0;
}

static int delete_one(prune_pass *a, uint64_t n, prune_rest *rest, err *e) {
  const prune *p = a->p;
  err why = {0};
  if (p->dry) {
    tell(p, n, RETENTION_DELETE);
    return 0;
  }
  int rc = runlog_delete(p->log, n, may, a, &why);
  if (rc == ERR_CONFLICT) return 0;
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  const runlog_commit *c = runlog_find_commit(runlog_view(p->log), n);
  if (settle_remove(p->store, p->log, c, p->sink, &why) == 0) {
    tell(p, n, RETENTION_DELETE);
    return 0;
  }
  rest->litter = true;
  log_say(p->sink, LOG_WARN, "data of %s, which is deleted, is left for a later pass: %s", c->dir,
          why.text);
  return 0;
}

void prune_wait_for(prune_rest *rest, int64_t ns) {
  if (ns < rest->wait_ns) rest->wait_ns = ns;
}

/* A commit that is pinned, or guarded for another reason, may be free some time later. */
static int64_t wait_of(const retention_item *item) {
  enum { LOOK_AGAIN_S = 300 };
  return item->verdict == RETENTION_WAIT ? item->wait_ns : (int64_t)LOOK_AGAIN_S * 1000000000;
}

/* The numbers of the commits that the plan lets go. */
typedef struct going {
  uint64_t *commits;
  size_t count;
} going;

static int take_going(const prune_pass *a, going *out, prune_rest *rest, err *e) {
  const runlog_state *state = runlog_view(a->p->log);
  *out = (going){calloc(state->commit_count + 1, sizeof *out->commits), 0};
  if (!out->commits) return err_set(e, ERR_NOMEM, "plan what is deleted: out of memory");
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (c->life != RUNLOG_DROPPED || (a->p->only && !a->p->only(a->p->ctx, c))) continue;
    if (a->items[i].verdict != RETENTION_DELETE) {
      prune_wait_for(rest, wait_of(&a->items[i]));
      continue;
    }
    out->commits[out->count++] = c->n;
  }
  return 0;
}

static int delete_planned(prune_pass *a, int64_t now, size_t most, prune_rest *rest, err *e) {
  going g;
  size_t done = 0;
  int rc = take_going(a, &g, rest, e);
  for (size_t i = 0; rc == 0 && i < g.count; i++) {
    int64_t left = 0;
    rc = rest_of(a->p, g.commits[i], now, &left, e);
    if (rc < 0) break;
    if (left > 0) {
      prune_wait_for(rest, left);
      continue;
    }
    if (done == most || prune_stopped(a->p)) {
      rest->more = true;
      break;
    }
    done++;
    rc = delete_one(a, g.commits[i], rest, e);
  }
  free(g.commits);
  return rc;
}

/* The pins are listed after the drops were read: a reader that puts one later sees the drop. */
int prune_delete(const prune *p, size_t most, prune_rest *rest, err *e) {
  prune_pass a = {.p = p};
  int64_t now = 0;
  *rest = (prune_rest){.wait_ns = INT64_MAX};
  if (p->limits.no_delete) return 0;
  int rc = runlog_refresh(p->log, e);
  if (rc < 0 || !any_dropped(p)) return rc;
  if (p->dry) /* the store's clock cannot be had without a write */
    now = p->store->io->now(p->store->io, IO_WALL);
  else
    rc = lease_store_now(p->store, runlog_prefix(p->log), &now, e);
  if (rc == 0) rc = prune_pass_pins(&a, now, e);
  if (rc == 0) rc = take_plan(&a, NULL, now, e);
  if (rc == 0 && !p->dry) remove_expired(&a, now);
  if (rc == 0) rc = delete_planned(&a, now, most, rest, e);
  prune_pass_free(&a);
  return rc;
}
