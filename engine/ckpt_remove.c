/* The public API, its part about what a target does not keep: what retention would do, and removal
 * by hand. As a guest: no run is opened, and nobody is fenced. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "ckpt_state.h"
#include "core/prune.h"
#include "core/verified.h"

_Static_assert((int)CKPT_KEEP == (int)RETENTION_KEEP && (int)CKPT_DELETE == (int)RETENTION_DELETE,
               "ckpt.h and retention.h disagree");

/* ---- remove ---- */

int ckpt_grace_ns(double seconds, int64_t *ns, err *e) {
  return seconds_or_none(seconds, 24 * 3600 * SECOND_NS, "grace_delete", ns, e);
}

int ckpt_share(double share, double *out, err *e) {
  if (!(share >= 0 && share <= 1))
    return err_set(e, ERR_INVAL,
                   "max_delete: %g is no share; say 0.25 for a quarter (nothing at all: no_delete)",
                   share);
  *out = share > 0 ? share : 0.25;
  return 0;
}

struct removing {
  ckpt_asked asked;
  retention_limits limits;
  bool everything, dry;
  ckpt_item_fn *fn;
  void *ctx;
  const catalog_place *at; /* of the log that it is at */
  const runlog *log;
  size_t met;                /* commits that are meant, live or dropped */
  char first[STORE_KEY_MAX]; /* the group of the first of them */
  size_t held;               /* in this log: dropped ones that stay for a rule */
  int status;                /* of fn */
};

static void tell_removed(struct removing *r, const runlog_commit *c, runlog_life life) {
  catalog_told t;
  char root[HASH_HEX_MAX];
  runlog_commit now = *c;
  now.life = life;
  if (r->status != 0 || !r->fn || catalog_describe(r->at, r->log, &now, &t, NULL) < 0) return;
  ckpt_item item = ckpt_item_of(&t.item, root);
  r->status = r->fn(r->ctx, &item);
}

static void on_removed(void *ctx, const runlog_commit *c, retention_verdict what) {
  tell_removed(ctx, c, what == RETENTION_DROP ? RUNLOG_DROPPED : RUNLOG_DELETED);
}

static bool is_named(const struct removing *r, const runlog_commit *c) {
  return catalog_is_asked(r->asked.name, runlog_prefix(r->log), c);
}

static bool may_go(void *ctx, const runlog_commit *c) {
  return is_named(ctx, c);
}

/* Of a name the newest live one; of everything all; of nothing in particular none. */
static size_t choose_wishes(const struct removing *r, prune_wish *wishes) {
  const runlog_state *state = runlog_view(r->log);
  const runlog_commit *newest = catalog_newest(r->log, r->asked.name);
  size_t count = 0;
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (c->life == RUNLOG_LIVE && (r->asked.name ? c == newest : r->everything))
      wishes[count++] = (prune_wish){c->n, "user", "removed by hand"};
  }
  return count;
}

/* What a rule keeps is refused before anything is written. */
static int check_wishes(const struct removing *r, const prune_wish *wishes, size_t count,
                        const pins *held, err *e) {
  int64_t now = r->asked.engine->env.io->now(r->asked.engine->env.io, IO_WALL);
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
                   strstr(why, "pinned") ? " (ckpt-lua unpin)" : " (to remove it too: --all)");
  }
  free(pinned);
  return rc;
}

/* Calls fn with what is to go of a log. */
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
  /* A thousand trials have a checkpoint-1: who means one of them must not lose all. */
  if (r->asked.name && r->met > 0 && met > 0)
    return err_set(e, ERR_INVAL,
                   "several have the name %s, in \"%s\" and \"%s\": put the directory before it",
                   r->asked.name, r->first, group);
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

/* What would be done, by this machine's clock: the store's cannot be had without a write. */
static int pretend_one(struct removing *r, runlog *log, const prune_wish *wishes, size_t count,
                       err *e) {
  const runlog_state *state = runlog_view(log);
  retention_item *items = calloc(state->commit_count + 1, sizeof *items);
  retention_guard guard = {.resumed = RUNLOG_NONE, .verified = RUNLOG_NONE};
  retention_limits limits = r->limits;
  if (!items) return err_set(e, ERR_NOMEM, "remove: out of memory");
  limits.now_ns = r->asked.engine->env.io->now(r->asked.engine->env.io, IO_WALL);
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
             .sink = &r->asked.engine->log,
             .limits = r->limits,
             .resumed = RUNLOG_NONE,
             .only = may_go,
             .told = on_removed,
             .ctx = r};
  int rc = prune_drop(&p, wishes, count, e);
  if (rc == 0) rc = prune_delete(&p, SIZE_MAX, &rest, e);
  return rc < 0 ? rc : r->status;
}

static int remove_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct removing *r = ctx;
  return with_wishes(r, at, log, r->dry ? pretend_one : remove_one, e);
}

int ckpt_remove(ckpt *c, const ckpt_remove_options *options, ckpt_item_fn *fn, void *ctx) {
  ckpt_remove_options taken;
  struct removing r = {.fn = fn, .ctx = ctx, .limits = {.max_drop = 1}};
  int rc = ckpt_take(&taken, sizeof taken, options, "ckpt_remove_options", &c->error);
  if (rc == 0) rc = ckpt_grace_ns(taken.grace_delete_s, &r.limits.grace_ns, &c->error);
  if (rc == 0) rc = ckpt_ask(c, taken.uri, taken.name, &r.asked);
  if (rc < 0) return rc;
  r.everything = taken.flags & CKPT_REMOVE_ALL;
  r.dry = taken.flags & CKPT_DRY_RUN;
  r.limits.word = r.everything ? RETENTION_ALL : RETENTION_BY_HAND;
  rc = ckpt_each_log(&r.asked, check_in, &r, &c->error);
  if (rc == 0 && r.asked.name && r.met == 0) rc = ckpt_no_such(&r.asked, &c->error);
  return rc < 0 ? rc : ckpt_each_log(&r.asked, remove_in, &r, &c->error);
}

/* ---- plan ---- */

struct planning {
  ckpt *engine;
  policy *policy;
  retention_limits limits;
  ckpt_verdict_fn *fn;
  void *ctx;
};

/* What is known of one log; `keep` and `kept` go with its commits. */
typedef struct judged {
  policy_item *items;
  policy_kept *said, *kept;
  bool *keep;
  uint64_t *pinned;
  retention_item *plan;
  pins pins;
} judged;

static void judged_free(judged *j) {
  free(j->items);
  free(j->said);
  free(j->kept);
  free(j->keep);
  free(j->pinned);
  free(j->plan);
  pins_free(&j->pins);
}

static int judged_new(judged *j, size_t commits, err *e) {
  size_t room = commits + 1;
  j->items = calloc(room, sizeof *j->items);
  j->said = calloc(room, sizeof *j->said);
  j->kept = calloc(room, sizeof *j->kept);
  j->keep = calloc(room, sizeof *j->keep);
  j->plan = calloc(room, sizeof *j->plan);
  if (j->items && j->said && j->kept && j->keep && j->plan) return 0;
  return err_set(e, ERR_NOMEM, "plan: out of memory");
}

static void ask_policy(struct planning *p, const runlog *log, judged *j) {
  const runlog_state *state = runlog_view(log);
  char *memory = NULL; /* what it would remember is forgotten: nothing is written */
  size_t count = retention_items(state, j->items);
  bool chosen =
      policy_has(p->policy, POLICY_KEEP) &&
      policy_select(p->policy, POLICY_KEEP, runlog_prefix(log), j->items, count, &memory, j->said);
  free(memory);
  retention_spread(state, chosen ? j->said : NULL, j->kept);
  for (size_t i = 0; i < state->commit_count; i++) j->keep[i] = j->kept[i].keep;
}

static int tell_verdict(struct planning *p, const catalog_place *at, const runlog *log,
                        const judged *j, size_t i, err *e) {
  const retention_item *item = &j->plan[i];
  const runlog_commit *c = item->commit;
  catalog_told t;
  char root[HASH_HEX_MAX], reason[2 * POLICY_REASON_MAX + 16];
  bool live = c->life == RUNLOG_LIVE;
  const char *said = live ? j->kept[i].reason : c->drop_reason ? c->drop_reason : "";
  bool own = item->verdict == RETENTION_KEEP || item->verdict == RETENTION_DROP;
  if (own)
    snprintf(reason, sizeof reason, "%s", *said ? said : item->reason);
  else
    snprintf(reason, sizeof reason, "%s%s%s", item->reason, *said ? "; " : "", said);
  int rc = catalog_describe(at, log, c, &t, e);
  if (rc < 0) return rc;
  ckpt_item public = ckpt_item_of(&t.item, root);
  ckpt_verdict verdict = {.size = sizeof verdict,
                          .item = &public,
                          .verdict = (uint32_t)item->verdict,
                          .policy = live ? j->kept[i].policy : public.drop_policy,
                          .reason = reason,
                          .wait_s = seconds_of_ns(item->wait_ns)};
  return p->fn ? p->fn(p->ctx, &verdict) : 0;
}

static int plan_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct planning *p = ctx;
  const runlog_state *state = runlog_view(log);
  judged j = {0};
  retention_guard guard = {.resumed = RUNLOG_NONE};
  int rc = verified_read(at->store, runlog_prefix(log), &guard.verified, e);
  if (rc == 0) rc = pins_list(at->store, runlog_prefix(log), &j.pins, e);
  if (rc == 0) rc = judged_new(&j, state->commit_count, e);
  if (rc == 0 && !(j.pinned = pins_held(&j.pins, p->limits.now_ns, &guard.pinned_count)))
    rc = err_set(e, ERR_NOMEM, "plan: out of memory");
  if (rc == 0) {
    guard.pinned = j.pinned;
    ask_policy(p, log, &j);
    retention_plan(state, j.keep, &guard, &p->limits, j.plan);
  }
  for (size_t i = 0; rc == 0 && i < state->commit_count; i++)
    if (j.plan[i].verdict != RETENTION_GONE) rc = tell_verdict(p, at, log, &j, i, e);
  judged_free(&j);
  return rc;
}

int ckpt_plan(ckpt *c, const ckpt_plan_options *options, ckpt_verdict_fn *fn, void *ctx) {
  ckpt_plan_options taken;
  struct planning p = {.engine = c, .fn = fn, .ctx = ctx};
  const io *io = c->env.io;
  int rc = ckpt_take(&taken, sizeof taken, options, "ckpt_plan_options", &c->error);
  if (rc == 0 && (!taken.uri || !*taken.uri))
    rc = err_set(&c->error, ERR_INVAL, "a plan needs a target");
  p.limits =
      (retention_limits){.no_delete = taken.flags & CKPT_NO_DELETE, .now_ns = io->now(io, IO_WALL)};
  if (rc == 0) rc = ckpt_share(taken.max_delete, &p.limits.max_drop, &c->error);
  if (rc == 0) rc = ckpt_grace_ns(taken.grace_delete_s, &p.limits.grace_ns, &c->error);
  if (rc == 0 && taken.policies) rc = ckpt_need_policies(c);
  if (rc < 0) return rc;
  policy_options o = {.io = io,
                      .log = &c->log,
                      .link = c->policies,
                      .id = "plan",
                      .names = taken.policies,
                      .settings = taken.settings,
                      .dir = taken.policy_dir,
                      .quiet_ns = -1};
  rc = policy_open(&o, &p.policy, &c->error);
  if (rc == 0) rc = catalog_logs(io, &c->log, taken.uri, plan_in, &p, &c->error);
  policy_close(p.policy);
  return rc;
}
