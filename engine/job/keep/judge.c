#include "judge.h"

#include <stdio.h>
#include <stdlib.h>

#include "commit/pins.h"
#include "commit/verified.h"

struct judging {
  const judge *how;
  judge_fn *fn;
  void *ctx;
};

/* The facts of one log; `keep` and `kept` go with its commits. */
typedef struct sheet {
  policy_item *items;
  policy_kept *said, *kept;
  bool *keep;
  uint64_t *pinned;
  retention_item *plan;
  runlog_commit *after; /* the commits once the drops of the plan are made */
  prune_thin_planned *loses;
  size_t commits;
  pins pins;
} sheet;

static void sheet_free(sheet *j) {
  free(j->items);
  free(j->said);
  free(j->kept);
  free(j->keep);
  free(j->pinned);
  free(j->plan);
  free(j->after);
  for (size_t i = 0; j->loses && i < j->commits; i++) names_free(&j->loses[i].globs);
  free(j->loses);
  pins_free(&j->pins);
}

static int sheet_new(sheet *j, size_t commits, err *e) {
  size_t room = commits + 1;
  j->items = calloc(room, sizeof *j->items);
  j->said = calloc(room, sizeof *j->said);
  j->kept = calloc(room, sizeof *j->kept);
  j->keep = calloc(room, sizeof *j->keep);
  j->plan = calloc(room, sizeof *j->plan);
  j->after = calloc(room, sizeof *j->after);
  j->loses = calloc(room, sizeof *j->loses);
  j->commits = commits;
  if (j->items && j->said && j->kept && j->keep && j->plan && j->after && j->loses) return 0;
  return err_set(e, ERR_NOMEM, "plan: out of memory");
}

bool judge_reused(const policy *p, const runlog_state *state, const char *prefix,
                  const runlog_commit *c) {
  if (!policy_keeps_few(p) || !generations_has_name(state, c)) return false;
  policy_reuse how = policy_reuses(p, prefix, c->unit, c->kind == MATCH_DIR);
  return how == POLICY_SAME_NAME || (how == POLICY_SAME_IF_FIXED && generations_is_fixed(state, c));
}

const char *judge_passed(const policy *p, const runlog_state *state, const char *prefix,
                         const runlog_commit *c, bool no_delete, const generations_doubt *doubt) {
  if (no_delete) return NULL;
  return generations_passed(state, c, judge_reused(p, state, prefix, c), doubt);
}

static void add_passed(const judge *how, const runlog *log, policy_kept *kept) {
  const runlog_state *state = runlog_view(log);
  const bool no_delete = how->limits.no_delete;
  for (size_t i = 0; i < state->commit_count; i++) {
    const char *why = NULL;
    if (kept[i].keep)
      why =
          judge_passed(how->policy, state, runlog_prefix(log), &state->commits[i], no_delete, NULL);
    if (!why) continue;
    kept[i] = (policy_kept){.policy = "builtin"};
    snprintf(kept[i].reason, sizeof kept[i].reason, "%s", why);
  }
}

static void ask_policy(struct judging *p, const runlog *log, sheet *j) {
  const runlog_state *state = runlog_view(log);
  char *memory = NULL; /* changes of the memory are forgotten: nothing is written */
  size_t count = retention_items(state, j->items);
  bool chosen = policy_has(p->how->policy, POLICY_KEEP) &&
                policy_select(p->how->policy, POLICY_KEEP, runlog_prefix(log), j->items, count,
                              &memory, j->said);
  free(memory);
  retention_spread(state, chosen ? j->said : NULL, j->kept);
  add_passed(p->how, log, j->kept);
  for (size_t i = 0; i < state->commit_count; i++) j->keep[i] = j->kept[i].keep;
}

static int tell_verdict(struct judging *p, const catalog_place *at, const runlog *log,
                        const sheet *j, size_t i, err *e) {
  const retention_item *item = &j->plan[i];
  const runlog_commit *c = item->commit;
  catalog_told t;
  char reason[2 * POLICY_REASON_MAX + 16];
  bool live = c->life == RUNLOG_LIVE;
  const char *said = live ? j->kept[i].reason : c->drop_reason ? c->drop_reason : "";
  bool own = item->verdict == RETENTION_KEEP || item->verdict == RETENTION_DROP;
  if (own)
    snprintf(reason, sizeof reason, "%s", *said ? said : item->reason);
  else
    snprintf(reason, sizeof reason, "%s%s%s", item->reason, *said ? "; " : "", said);
  int rc = catalog_describe(at, log, c, &t, e);
  if (rc < 0) return rc;
  judged one = {.item = &t.item,
                .verdict = item->verdict,
                .policy = live             ? j->kept[i].policy
                          : c->drop_policy ? c->drop_policy
                                           : "",
                .reason = reason,
                .wait_ns = item->wait_ns,
                .loses = j->loses[i].files ? &j->loses[i] : NULL};
  if (one.verdict == RETENTION_DROP)
    one.wait_ns = retention_grace(one.policy, said, p->how->limits.grace_ns);
  return p->fn(p->ctx, &one);
}

/* Files go behind the drops of the same pass, and share its limit with them. */
static int plan_files(struct judging *p, const catalog_place *at, runlog *log, sheet *j,
                      const retention_guard *guard, err *e) {
  const judge *how = p->how;
  const policy_newest_only *n = policy_newest(how->policy);
  const prune pass = {.store = at->store, .log = log, .sink = how->log, .limits = how->limits};
  const prune_thin_wish wish = {&n->globs, n->newest, n->policy};
  runlog_state after = *runlog_view(log);
  size_t dropped = 0;
  for (size_t i = 0; i < after.commit_count; i++) {
    j->after[i] = after.commits[i];
    if (j->plan[i].verdict != RETENTION_DROP) continue;
    j->after[i].life = RUNLOG_DROPPED;
    dropped++;
  }
  after.commits = j->after;
  int rc = prune_thin_plan(&pass, &wish, guard, &after, dropped, j->loses, e);
  for (size_t i = 0; i < after.commit_count; i++) /* a later pass drops all of it */
    if (j->plan[i].verdict == RETENTION_LIMITED) j->loses[i].files = 0;
  return rc;
}

static int judge_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct judging *p = ctx;
  const runlog_state *state = runlog_view(log);
  sheet j = {0};
  retention_guard guard = {.resumed = RUNLOG_NONE};
  int rc = verified_read(at->store, runlog_prefix(log), &guard.verified, e);
  if (rc == 0) rc = pins_list(at->store, runlog_prefix(log), &j.pins, e);
  if (rc == 0) rc = sheet_new(&j, state->commit_count, e);
  if (rc == 0 && !(j.pinned = pins_held(&j.pins, p->how->limits.now_ns, &guard.pinned_count)))
    rc = err_set(e, ERR_NOMEM, "plan: out of memory");
  if (rc == 0) {
    guard.pinned = j.pinned;
    ask_policy(p, log, &j);
    retention_plan(state, j.keep, &guard, &p->how->limits, j.plan);
    rc = plan_files(p, at, log, &j, &guard, e);
  }
  for (size_t i = 0; rc == 0 && i < state->commit_count; i++)
    if (j.plan[i].verdict != RETENTION_GONE) rc = tell_verdict(p, at, log, &j, i, e);
  sheet_free(&j);
  return rc;
}

int judge_target(const judge *how, const char *where, judge_fn *fn, void *ctx, err *e) {
  struct judging j = {.how = how, .fn = fn, .ctx = ctx};
  return catalog_logs(how->io, how->log, where, judge_in, &j, e);
}
