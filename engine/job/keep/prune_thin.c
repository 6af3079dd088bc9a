#include "prune_thin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "commit/lease.h"
#include "prune_impl.h"
#include "prune_thin_newest.h"

typedef struct pass {
  prune_pass guards;
  const prune_thin_wish *wish;
  prune_thin_told *told;
  void *ctx;
  int64_t now;
  uint64_t old,
      young; /* entries: up to that one the grace is over, and from this one on it is not */
  thin_kinds kinds;
} pass;

static void pass_free(pass *a) {
  prune_pass_free(&a->guards);
  thin_kinds_free(&a->kinds);
}

/* ---- one commit ---- */

typedef struct asking {
  const pass *a;
  const thinning_have *have;
} asking;

/* Asks the rules again, on the log as it is when the entry is made. */
static bool may(void *ctx, const runlog_state *state, const runlog_commit *c) {
  const asking *q = ctx;
  return !thinning_guarded(state, c, &q->a->guards.guard, q->a->wish->newest, q->have);
}

/* Returns 1 if the log says it from now on. */
static int let_go(pass *a, uint64_t n, const thin_going *what, err *e) {
  const prune *p = a->guards.p;
  const runlog_commit *c = runlog_find_commit(runlog_view(p->log), n);
  const manifest_rest whole = {c->files, c->bytes};
  const bool noted = what->note.globs.count > 0;
  char reason[80], policy[POLICY_NAME_MAX];
  asking asked = {a, &what->have};
  err why = {0};
  snprintf(policy, sizeof policy, "%s", a->wish->policy);
  snprintf(reason, sizeof reason, "%" PRIu64 " newer %s", a->wish->newest,
           a->wish->newest == 1 ? "one has such files" : "ones have such files");
  const runlog_thinned how = {.globs = noted ? what->note.globs : *a->wish->globs,
                              .newest = noted ? what->note.newest : a->wish->newest,
                              .policy = policy,
                              .reason = noted ? "the note beside it says so" : reason};
  int rc = runlog_thin(p->log, n, &how, &what->stays, may, &asked, &why);
  if (rc == ERR_CONFLICT) return 0;
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  c = runlog_find_commit(runlog_view(p->log), n);
  if (c && a->told)
    a->told(a->ctx, c, whole.files - what->stays.files, whole.bytes - what->stays.bytes);
  return 1;
}

/* By the store's clock: the time in an entry is by its writer's, which may have been behind. What comes later in
 * the log is younger: few are asked for. */
static int is_over(pass *a, uint64_t after, prune_rest *rest, err *e) {
  const prune *p = a->guards.p;
  int64_t at = 0;
  if (p->limits.grace_ns <= 0 || after <= a->old) return 1;
  if (after >= a->young) return 0;
  int rc = runlog_entry_time(p->log, after, &at, e);
  if (rc < 0) return rc;
  const int64_t end = seconds_later(at, p->limits.grace_ns);
  if (end <= a->now) {
    a->old = after;
    return 1;
  }
  a->young = after;
  prune_wait_for(rest, end == SECONDS_FOREVER ? end : end - a->now);
  return 0;
}

/* ---- the pass ---- */

typedef struct candidate {
  uint64_t n, after;
} candidate;

/* The log moves while it is appended to: so the numbers of the commits are taken first. */
static int choose(const pass *a, candidate **out, size_t *count, err *e) {
  const prune *p = a->guards.p;
  const runlog_state *state = runlog_view(p->log);
  retention_limits limits = p->limits;
  limits.grace_ns = 0; /* the store is asked for it */
  *count = 0;
  *out = calloc(state->commit_count + 1, sizeof **out);
  if (!*out) return err_set(e, ERR_NOMEM, "take files of older checkpoints: out of memory");
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    const thinning t = thin_may(&a->kinds, c, &limits);
    if (t.verdict == THINNING_GOES) (*out)[(*count)++] = (candidate){c->n, t.after};
  }
  return 0;
}

static int thin_one(pass *a, const candidate *one, prune_rest *rest, err *e) {
  thin_going what = {0};
  const runlog_commit *c = runlog_find_commit(runlog_view(a->guards.p->log), one->n), *after;
  int rc =
      c ? is_over(a, one->after, rest, e) : 0; /* it is younger yet by those that have such files */
  if (rc == 1) rc = thin_look(&a->kinds, c, &what, e);
  if (rc == 1) {
    rc = thin_since(&a->kinds, c, &after, e);
    if (rc == 0) rc = after ? is_over(a, after->n, rest, e) : 0;
  }
  if (rc == 1) rc = let_go(a, one->n, &what, e);
  manifest_thin_free(&what.note);
  return rc;
}

/* Returns 1 if files of any are gone now. */
static int thin_all(pass *a, size_t dropped, prune_rest *rest, err *e) {
  const prune *p = a->guards.p;
  candidate *going = NULL;
  size_t count = 0, done = 0;
  int rc = prune_pass_pins(&a->guards, a->now, e);
  if (rc == 0) rc = choose(a, &going, &count, e);
  const size_t most = thinning_most(runlog_view(p->log), &p->limits, dropped);
  for (size_t i = 0; rc == 0 && i < count && done < most && !prune_stopped(p); i++) {
    rc = thin_one(a, &going[i], rest, e);
    done += rc == 1;
    if (rc > 0) rc = 0;
  }
  free(going);
  return rc < 0 ? rc : done > 0;
}

/* Nothing but the log is asked: most passes have nothing to do. */
static int may_any(const pass *a, err *e) {
  candidate *going = NULL;
  size_t count = 0;
  if (!a->wish || a->wish->globs->count == 0 || a->guards.p->limits.no_delete) return 0;
  if (a->wish->newest <= 1) return 1; /* the store knows what was verified */
  int rc = choose(a, &going, &count, e);
  free(going);
  return rc < 0 ? rc : count > 0;
}

static int on_removed(void *ctx, const char *dir, const removal_found *found, int status,
                      const char *why) {
  const prune *p = ((const pass *)ctx)->guards.p;
  (void)found;
  if (status < 0)
    log_say(p->sink, LOG_WARN, "files of %s, which it lost, are left for a later pass: %s", dir,
            why);
  return 0;
}

int prune_thin(const prune *p, const prune_thin_wish *wish, prune_thin_whole *whole, size_t dropped,
               bool *left, prune_thin_told *told, void *ctx, prune_rest *rest, err *e) {
  pass a = {.guards = {.p = p, .guard = {.resumed = p->resumed, .verified = RUNLOG_NONE}},
            .wish = wish,
            .told = told,
            .ctx = ctx,
            .kinds = {.p = p, .state = runlog_view(p->log), .whole = whole},
            .young = UINT64_MAX};
  rest->wait_ns = INT64_MAX;
  a.kinds.guard = &a.guards.guard;
  if (wish) a.kinds.wish = *wish;
  int rc = may_any(&a, e);
  const bool any = rc > 0;
  if (rc < 0 || (!any && !*left)) return rc;
  rc = runlog_refresh(p->log, e);
  if (rc == 0) rc = lease_store_now(p->store, runlog_prefix(p->log), &a.now, e);
  if (rc == 0 && any) rc = thin_all(&a, dropped, rest, e);
  if (rc == 1) *left = true;
  if (rc >= 0 && *left) rc = prune_thin_files(p, a.now, on_removed, &a, left, e);
  pass_free(&a);
  return rc < 0 ? rc : 0;
}
