/* run_keep: retention of a run, group by group: the policy says which commits to keep, a worker
 * drops the rest, and deletes those that were dropped long enough ago. No save waits for it: a pass
 * begins when none is due, and stops after the present step as soon as one is. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "base/vec.h"
#include "job/keep/judge.h"
#include "job/keep/prune.h"
#include "run/run_state.h"
#include "commit/settle.h"
#include "prims/fs.h"

enum { RETRY_S = 60, LOOK_AGAIN_S = 300 };

/* A step of a pass with one commit, for the owner to tell. */
struct done {
  retention_verdict what; /* RETENTION_KEEP: it lost files, so many */
  char *unit;             /* below the watched directory */
  char policy[POLICY_NAME_MAX], reason[POLICY_REASON_MAX];
  uint64_t commit, files, bytes;
  int64_t step;
};

/* One pass over the log of a group. */
struct run_keeping {
  run *run;
  run_group *group;
  prune prune;
  atomic_int stop;
  policy_kept *kept; /* the policy's answer; the wishes point into it */
  prune_wish *wishes;
  size_t wish_count;
  bool litter;
  bool thins;  /* older ones may lose files */
  names globs; /* of `wants` */
  prune_thin_wish wants;
  char by[POLICY_NAME_MAX];
  prune_rest thin_rest;
  struct done *done;
  size_t done_count, done_room;
  prune_rest rest;
  bool cut; /* it was stopped before all was done: what it was to drop is asked about again */
  int status;
  err error;
};

static void keeping_free(run_keeping *k) {
  if (!k) return;
  for (size_t i = 0; i < k->done_count; i++) free(k->done[i].unit);
  free(k->done);
  names_free(&k->globs);
  free(k->wishes);
  free(k->kept);
  free(k);
}

void run_keep_close(run_group *g) {
  keeping_free(g->keeping);
  g->keeping = NULL;
  prune_thin_forget(&g->thin.whole);
  names_free(&g->thin.globs);
  run_keep_unlist(g);
}

bool run_keep_busy(const run_group *g) {
  return g->keeping || run_result_busy(g);
}

void run_keep_stop(run *r) {
  for (size_t i = 0; i < r->group_count; i++)
    if (r->groups[i]->keeping) atomic_store(&r->groups[i]->keeping->stop, 1);
}

/* ---- on a worker ---- */

/* Out of memory a message is lost here, no more: the log has the step. */
static void add_done(run_keeping *k, const runlog_commit *c, const struct done *what,
                     const char *policy, const char *reason) {
  char path[FS_PATH_MAX];
  if (!VEC_ROOM(k->done, k->done_count, k->done_room)) return;
  struct done *d = &k->done[k->done_count];
  *d = *what;
  d->commit = c->n;
  d->step = c->step;
  snprintf(d->policy, sizeof d->policy, "%s", policy ? policy : "");
  snprintf(d->reason, sizeof d->reason, "%s", reason ? reason : "");
  if (fs_join(path, k->group->group.prefix, c->unit, NULL) < 0) return;
  d->unit = strdup(path);
  if (d->unit) k->done_count++;
}

static void on_step(void *ctx, const runlog_commit *c, retention_verdict what) {
  add_done(ctx, c, &(struct done){.what = what, .files = c->files, .bytes = c->bytes},
           c->drop_policy, c->drop_reason);
}

static void on_thin(void *ctx, const runlog_commit *c, uint64_t files, uint64_t bytes) {
  add_done(ctx, c, &(struct done){.what = RETENTION_KEEP, .files = files, .bytes = bytes},
           c->thin.policy, c->thin.reason);
}

static size_t dropped(const run_keeping *k) {
  size_t count = 0;
  for (size_t i = 0; i < k->done_count; i++) count += k->done[i].what == RETENTION_DROP;
  return count;
}

/* Removes one commit at a time: a save that waits has its turn before the next. */
static void keep_on_worker(void *arg) {
  run_keeping *k = arg;
  run *r = k->run;
  k->rest.wait_ns = k->thin_rest.wait_ns = INT64_MAX;
  k->status = prune_drop(&k->prune, k->wishes, k->wish_count, &k->error);
  if (k->status == 0 && k->thins && !atomic_load(&k->stop))
    k->status = prune_thin(&k->prune, k->globs.count ? &k->wants : NULL, &k->group->thin.whole,
                           dropped(k), &k->group->thin.left, on_thin, k, &k->thin_rest, &k->error);
  if (k->status == 0 && k->litter && !atomic_load(&k->stop))
    settle_litter(r->store, k->prune.log, r->env->log);
  if (k->status == 0 && !atomic_load(&k->stop))
    k->status = prune_delete(&k->prune, 1, &k->rest, &k->error);
  else if (k->status == 0)
    k->cut = k->rest.more = true;
}

/* ---- on the owner's thread ---- */

static int64_t now_of(const run *r) {
  return r->env->io->now(r->env->io, IO_MONO);
}

static void tell_thin(const run *r, const struct done *d) {
  log_say(r->env->log, LOG_INFO,
          "%s stays without %" PRIu64 " of its files, %" PRIu64 " bytes: %s (policy %s)", d->unit,
          d->files, d->bytes, d->reason, d->policy);
}

static void tell(run *r, const struct done *d) {
  if (d->what == RETENTION_KEEP) {
    tell_thin(r, d);
    return;
  }
  bool deleted = d->what == RETENTION_DELETE;
  trail_note(r->trail, &(trail_record){.what = deleted ? TRAIL_DELETED : TRAIL_DROPPED,
                                       .unit = d->unit,
                                       .policy = *d->policy ? d->policy : NULL,
                                       .reason = d->reason,
                                       .commit = d->commit});
  r->env->tell(r->env->ctx, r,
               &(run_news){.kind = deleted ? RUN_DELETED : RUN_EXPIRED,
                           .step = d->step,
                           .files = d->files,
                           .bytes = d->bytes,
                           .unit = d->unit,
                           .reason = d->reason});
}

/* Schedules the next pass. One that failed costs disk, no more. */
static void schedule(run *r, run_group *g, const run_keeping *k) {
  int64_t now = now_of(r);
  g->keep_litter = k->rest.litter || (k->litter && k->status < 0);
  g->keep_at = k->rest.more ? now : seconds_later(now, k->rest.wait_ns);
  g->keep_asked = g->keep_asked || (k->cut && (k->wish_count || k->thins));
  if (k->thins) g->thin.at = seconds_later(now, k->thin_rest.wait_ns);
  if (g->thin.left && g->thin.at > seconds_later(now, LOOK_AGAIN_S * SECOND_NS))
    g->thin.at = seconds_later(now, LOOK_AGAIN_S * SECOND_NS);
  if (g->keep_at > g->thin.at) g->keep_at = g->thin.at;
  if (k->status == ERR_FENCED) {
    run_fenced(r, g->group.prefix, k->error.text);
  } else if (k->status < 0) {
    bool again = err_class_of(k->status) == ERR_CLASS_RETRYABLE;
    g->keep_at = again ? seconds_later(now, RETRY_S * SECOND_NS) : INT64_MAX;
    log_say(r->env->log, LOG_WARN, "what is no longer kept could not be removed%s: %s",
            again ? " yet" : "", k->error.text);
    if (k->thins) g->thin.at = g->keep_at;
  } else if (g->keep_litter && g->keep_at > seconds_later(now, RETRY_S * SECOND_NS)) {
    g->keep_at = seconds_later(now, RETRY_S * SECOND_NS);
  }
}

static void keep_done(void *ctx) {
  run_keeping *k = ctx;
  run *r = k->run;
  run_group *g = k->group;
  r->tasks--;
  g->keeping = NULL;
  for (size_t i = 0; i < k->done_count; i++) tell(r, &k->done[i]);
  schedule(r, g, k);
  run_group_note_newest(g);
  run_keep_list(r, g);
  keeping_free(k);
}

static void wish(run_keeping *k, uint64_t commit, const char *policy, const char *reason) {
  k->wishes[k->wish_count++] = (prune_wish){commit, policy, reason};
}

static const char *passed(const run *r, const run_group *g, const generations_doubt *doubt,
                          const runlog_commit *c) {
  if (!ruling_keeps_few(&r->replaced)) return NULL;
  return judge_passed(r->policy, runlog_view(g->group.log), g->group.prefix, c, r->limits.no_delete,
                      doubt);
}

/* What a file above the checkpoints names is kept, or a restore of that file would be of no use. */
static void wish_away(run *r, run_group *g, run_keeping *k) {
  const runlog_state *state = runlog_view(g->group.log);
  const generations_doubt doubt = run_starts_doubt(r, g);
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    const char *why = k->kept[i].keep ? passed(r, g, &doubt, c) : NULL;
    if (k->kept[i].keep && !why) continue;
    if (!c->above && run_above_names(r, g, c)) continue;
    if (why)
      wish(k, c->n, "builtin", why);
    else
      wish(k, c->n, k->kept[i].policy, k->kept[i].reason);
  }
}

/* Asks the policy which commits it does not want to keep. Whatever goes wrong, it keeps all. */
static int ask_policy(run *r, run_group *g, run_keeping *k, err *e) {
  const runlog_state *state = runlog_view(g->group.log);
  size_t room = state->commit_count + 1;
  policy_item *items = calloc(room, sizeof *items);
  policy_kept *said = calloc(room, sizeof *said);
  k->kept = calloc(room, sizeof *k->kept);
  k->wishes = calloc(room, sizeof *k->wishes);
  int rc = items && said && k->kept && k->wishes
               ? 0
               : err_set(e, ERR_NOMEM, "ask what is kept: out of memory");
  size_t count = rc == 0 ? retention_items(state, items) : 0;
  if (rc == 0) {
    run_starts_note(r, g, items, count);
    bool answered = policy_has(r->policy, POLICY_KEEP) && g->remembers == MEMORY_KNOWN &&
                    run_policy_select(r, g, POLICY_KEEP, items, count, said);
    retention_spread(state, answered ? said : NULL, k->kept);
    wish_away(r, g, k);
  }
  free(items);
  free(said);
  return rc;
}

static bool any_dropped(const run_group *g) {
  const runlog_state *state = runlog_view(g->group.log);
  for (size_t i = 0; i < state->commit_count; i++)
    if (state->commits[i].life == RUNLOG_DROPPED) return true;
  return false;
}

/* ---- files that only the newest keep ---- */

static bool any_thin(const run_group *g) {
  const runlog_state *state = runlog_view(g->group.log);
  for (size_t i = 0; i < state->commit_count; i++)
    if (state->commits[i].life == RUNLOG_LIVE && state->commits[i].thin.globs.count) return true;
  return false;
}

/* What any chain keeps that still rules stays: as long as one does that was replaced, nothing is taken. */
static const policy_newest_only *newest_only(const run *r) {
  const policy_newest_only *n = policy_newest(r->policy);
  return n->globs.count && r->replaced.count == 0 && !r->limits.no_delete ? n : NULL;
}

static bool may_thin(const run *r, const run_group *g) {
  return newest_only(r) || (g->thin.left && !r->limits.no_delete && any_thin(g));
}

/* What has no such files is known of the globs that were asked for before. */
static int wish_thin(const run *r, run_group *g, run_keeping *k, err *e) {
  const policy_newest_only *n = newest_only(r);
  k->thins = true;
  g->thin.at = INT64_MAX;
  if (!n) return 0;
  if (!names_same(names_list(&n->globs), names_list(&g->thin.globs))) {
    prune_thin_forget(&g->thin.whole);
    names_free(&g->thin.globs);
    if (!names_add_all(&g->thin.globs, names_list(&n->globs)))
      return err_set(e, ERR_NOMEM, "a pass of retention: out of memory");
  }
  if (!names_add_all(&k->globs, names_list(&n->globs)))
    return err_set(e, ERR_NOMEM, "a pass of retention: out of memory");
  snprintf(k->by, sizeof k->by, "%s", n->policy);
  k->wants = (prune_thin_wish){.globs = &k->globs, .newest = n->newest, .policy = k->by};
  return 0;
}

/* Begins a pass. If the pool is full, it is tried a second later. */
static int begin(run *r, run_group *g, bool ask, bool thin, err *e) {
  run_keeping *k = calloc(1, sizeof *k);
  if (!k) return err_set(e, ERR_NOMEM, "a pass of retention: out of memory");
  k->run = r;
  k->group = g;
  k->litter = g->keep_litter;
  k->prune = (prune){.store = r->store,
                     .log = g->group.log,
                     .sink = r->env->log,
                     .limits = r->limits,
                     .resumed = g->resumed,
                     .stop = &k->stop,
                     .told = on_step,
                     .ctx = k};
  int rc = ask ? ask_policy(r, g, k, e) : 0;
  if (rc == 0 && thin) rc = wish_thin(r, g, k, e);
  if (!thin && g->thin.at <= now_of(r)) g->thin.at = INT64_MAX; /* nothing is to go by now */
  g->keep_asked = false;
  g->keep_at = g->thin.at;
  if (rc == 0 && k->wish_count == 0 && !k->litter && !k->thins && !any_dropped(g)) {
    keeping_free(k);
    return 0;
  }
  if (rc == 0 && !run_submit(r, keep_on_worker, keep_done, k)) {
    g->keep_asked = ask || thin;
    g->keep_at = seconds_later(now_of(r), 1000000000);
    rc = 1;
  }
  if (rc != 0) {
    keeping_free(k);
    return rc < 0 ? rc : 0;
  }
  g->keeping = k;
  return 0;
}

/* True if its log may be used for a pass at all. When time is short, disk can wait. */
static bool is_free(const run *r, const run_group *g) {
  /* A save comes before the first pass: it begins the group, and so makes its log. What is kept may
   * depend on numbers that are still to be told. */
  return !g->save && !g->keeping && !run_result_late(r, g) && !r->closing && !r->keep_all &&
         !r->fenced && !r->preempted && !g->foreign && g->term != RUNLOG_NONE && g->group.log &&
         !run_follows(r);
}

/* True if there is anything to ask about: the policy, or what the core lets go by itself. */
static bool may_let_go(const run *r, const run_group *g) {
  const runlog_state *state = runlog_view(g->group.log);
  const generations_doubt doubt = run_starts_doubt(r, g);
  bool any = policy_has(r->policy, POLICY_KEEP);
  for (size_t i = 0; !any && i < state->commit_count; i++)
    any = passed(r, g, &doubt, &state->commits[i]) != NULL;
  return any;
}

static bool is_asked(const run *r, const run_group *g) {
  return g->keep_asked && (may_let_go(r, g) || any_dropped(g) || may_thin(r, g));
}

/* True if a save of this group waits for the pass to end. */
static bool is_awaited(const run *r, const run_group *g, int64_t now) {
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->group == g && run_unit_queued(r->units[i]) && r->units[i]->next_try <= now &&
        run_in_place_due(r, r->units[i]) <= now)
      return true;
  return false;
}

void run_keep_ask(run *r, run_group *g) {
  (void)r;
  g->keep_asked = true;
}

void run_keep_ask_all(run *r) {
  for (size_t i = 0; i < r->group_count; i++) run_keep_ask(r, r->groups[i]);
}

int run_keep_step(run *r, err *e) {
  int64_t now = now_of(r);
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (g->keeping && (r->preempted || is_awaited(r, g, now))) atomic_store(&g->keeping->stop, 1);
    if (!is_free(r, g) || is_awaited(r, g, now)) continue;
    bool asked = is_asked(r, g);
    g->keep_asked = asked; /* nothing is asked, and nothing was dropped: it rests until the next
                            * commit */
    if (asked || g->keep_at <= now)
      rc =
          begin(r, g, asked && may_let_go(r, g), (asked || g->thin.at <= now) && may_thin(r, g), e);
  }
  return rc;
}

int64_t run_keep_due(const run *r) {
  int64_t due = INT64_MAX;
  for (size_t i = 0; i < r->group_count; i++) {
    const run_group *g = r->groups[i];
    if (!is_free(r, g)) continue;
    if (g->keep_at < due) due = g->keep_at;
  }
  return due;
}

bool run_keep_pending(const run *r) {
  int64_t now = now_of(r);
  for (size_t i = 0; i < r->group_count; i++) {
    const run_group *g = r->groups[i];
    if (g->keeping || run_result_late(r, g) ||
        (is_free(r, g) && (is_asked(r, g) || g->keep_at <= now)))
      return true;
  }
  return false;
}
