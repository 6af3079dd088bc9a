#include "retention.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/seconds.h"
#include "prims/match_series.h"

enum { GENERATIONS = 2 };

static bool is_pinned(const retention_guard *guard, uint64_t n) {
  for (size_t i = 0; i < guard->pinned_count; i++)
    if (guard->pinned[i] == n) return true;
  return false;
}

/* True for a commit that a restore may choose by default. */
static bool is_good(const runlog_commit *c) {
  return c->life == RUNLOG_LIVE && !c->bad;
}

/* True for a commit that a policy is asked about. What is above the checkpoints is none. */
static bool is_asked_about(const runlog_commit *c) {
  return is_good(c) && !c->above;
}

/* True if a better commit of its kind is there: for a good commit, a good one after it in the log;
 * for one that was dropped or is bad, a good one anywhere. (A bad commit without a good one beside
 * it is all there is.) */
static bool has_better(const runlog_state *state, const runlog_commit *c) {
  for (size_t i = state->commit_count; i-- > 0;) {
    const runlog_commit *other = &state->commits[i];
    if (is_good(c) && other->n <= c->n) return false;
    if (other != c && is_good(other) && match_same_series(other->unit, c->unit)) return true;
  }
  return false;
}

/* True if a commit of its kind was dropped later and its data is still there; asked if nothing of
 * the kind is live. */
static bool has_newer_dropped(const runlog_state *state, const runlog_commit *c) {
  for (size_t i = state->commit_count; i-- > 0 && state->commits[i].n > c->n;)
    if (state->commits[i].life == RUNLOG_DROPPED &&
        match_same_series(state->commits[i].unit, c->unit))
      return true;
  return false;
}

/* True for the last generations of a name that is saved again and again, and is the newest of its
 * kind therefore. A step that was saved twice, on the way to later ones, is no such name. */
static bool is_last_generation(const runlog_state *state, const runlog_commit *c) {
  int newer = 0;
  if (c->life != RUNLOG_LIVE) return false;
  for (size_t i = state->commit_count; i-- > 0 && state->commits[i].n > c->n;) {
    const runlog_commit *other = &state->commits[i];
    if (!is_good(other) || !match_same_series(other->unit, c->unit)) continue;
    if (strcmp(other->unit, c->unit) == 0)
      newer++;
    else if (newer == 0)
      return false;
  }
  return newer > 0 && newer < GENERATIONS;
}

/* True if the newest good commit of some kind has a list that names it, which a start puts back: a
 * framework may want to find all of them. */
static bool is_listed(const runlog_state *state, const runlog_commit *c) {
  if (c->bad || c->life == RUNLOG_DELETED) return false;
  for (size_t i = state->commit_count; i-- > 0 && state->commits[i].n > c->n;)
    if (is_good(&state->commits[i]) && strcmp(state->commits[i].unit, c->unit) == 0) return false;
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *other = &state->commits[i];
    if (other != c && other->needs && is_good(other) && runlog_commit_needs(other, c->unit) &&
        !has_better(state, other))
      return true;
  }
  return false;
}

bool retention_listed(const runlog_state *state, names *out) {
  names_free(out);
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (!c->needs || !is_good(c) || has_better(state, c)) continue;
    for (const char *at = c->needs, *end; (end = strchr(at, '/')); at = end + 1) {
      char *name = strndup(at, (size_t)(end - at));
      const bool added = name && names_add(out, name);
      free(name);
      if (!added) return false;
    }
  }
  names_sort_unique(out);
  return true;
}

/* Returns why a commit stays even if the user removes all by hand. */
static const char *always_guarded(const runlog_commit *c, const retention_guard *guard) {
  if (is_pinned(guard, c->n)) return "it is pinned";
  if (guard->resumed == c->n) return "the run goes on from it";
  return NULL;
}

const char *retention_guarded(const runlog_state *state, const runlog_commit *c,
                              const retention_guard *guard, retention_word word) {
  const char *why = always_guarded(c, guard);
  if (why || word == RETENTION_ALL) return why;
  if (!FAULT("newest-may-go") && !has_better(state, c) &&
      (c->life == RUNLOG_LIVE || !has_newer_dropped(state, c)))
    return c->life == RUNLOG_LIVE ? "it is the newest of its kind"
                                  : "nothing of its kind is kept, and it is the newest that was";
  if (is_listed(state, c)) return "what was saved with the newest of its kind names it";
  if (word != RETENTION_POLICY) return NULL;
  if (c->life == RUNLOG_LIVE && c->n < state->flags_since)
    return "it was saved under other flags of the job, and neither `run_id` nor `continue_run` was "
           "given since";
  if (guard->verified == c->n) return "it is the last one that verified";
  if (is_last_generation(state, c)) return "it is one of the last two of its name";
  return NULL;
}

size_t retention_items(const runlog_state *state, policy_item *out) {
  const runlog_commit *newest = runlog_newest(state, NULL);
  size_t count = 0;
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (!is_asked_about(c)) continue;
    out[count++] = (policy_item){.number = c->n,
                                 .name = c->unit,
                                 .dir = c->dir,
                                 .step = c->step,
                                 .time_ns = c->time_ns,
                                 .files = c->files,
                                 .bytes = c->bytes,
                                 .left_out = c->left_here,
                                 .metrics = c->metrics,
                                 .newest = c == newest,
                                 .durable = true};
  }
  return count;
}

/* Judges a bad commit by the good ones before it: as long as one of those is kept, the failed tries
 * after it are kept too. */
static void judge_bad(const runlog_state *state, size_t at, const policy_kept *all,
                      policy_kept *out) {
  const runlog_commit *c = &state->commits[at];
  *out = (policy_kept){.keep = !has_better(state, c), .policy = "builtin"};
  for (size_t i = 0; !out->keep && i < at; i++)
    out->keep = is_good(&state->commits[i]) && all[i].keep &&
                match_same_series(state->commits[i].unit, c->unit);
  snprintf(out->reason, sizeof out->reason, "it is marked bad%s",
           out->keep ? "" : ", and those before it are not kept");
}

void retention_spread(const runlog_state *state, const policy_kept *kept, policy_kept *all) {
  size_t at = 0;
  for (size_t i = 0; i < state->commit_count; i++)
    all[i] = is_asked_about(&state->commits[i]) && kept ? kept[at++] : (policy_kept){.keep = true};
  for (size_t i = 0; kept && i < state->commit_count; i++)
    if (state->commits[i].life == RUNLOG_LIVE && state->commits[i].bad)
      judge_bad(state, i, all, &all[i]);
}

/* ---- the plan ---- */

static void judge(retention_item *item, retention_verdict verdict, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void judge(retention_item *item, retention_verdict verdict, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  item->verdict = verdict;
  vsnprintf(item->reason, sizeof item->reason, fmt, args);
  va_end(args);
}

/* Of most there is nothing to say: a log may have many thousands. */
static void judge_kept(retention_item *item) {
  static const char kept[] = "kept";
  item->verdict = RETENTION_KEEP;
  memcpy(item->reason, kept, sizeof kept);
}

int64_t retention_grace(const char *policy, const char *reason, int64_t grace_ns) {
  enum { SHARE = 24 };
  if (grace_ns <= 0) return 0;
  if (grace_ns == SECONDS_FOREVER || !policy || !reason) return grace_ns;
  bool passed = strcmp(policy, "builtin") == 0 && strcmp(reason, RETENTION_PASSED) == 0;
  return passed ? grace_ns / SHARE : grace_ns;
}

/* Returns the rest of the grace period. Times of the log come from other machines: a sum that does
 * not fit is far away. */
static int64_t rest_of_grace(const runlog_commit *c, const retention_limits *limits) {
  int64_t grace = retention_grace(c->drop_policy, c->drop_reason, limits->grace_ns);
  /* A grace period of 0 needs no clock; those of file systems lag some milliseconds behind. */
  if (grace == 0) return 0;
  if (FAULT("grace-not-waited")) return 0;
  return seconds_left(c->drop_ns, grace, limits->now_ns);
}

static void plan_dropped(const runlog_state *state, const retention_guard *guard,
                         const retention_limits *limits, retention_item *item) {
  const runlog_commit *c = item->commit;
  const int64_t rest = rest_of_grace(c, limits);
  const char *why = NULL;
  if (limits->no_delete) {
    judge(item, RETENTION_WAIT, "dropped; nothing is deleted here");
  } else if (rest > 0) {
    item->wait_ns = rest;
    judge(item, RETENTION_WAIT, "dropped; its data stays until the grace is over");
  } else if ((why = retention_guarded(state, c, guard, limits->word))) {
    judge(item, RETENTION_GUARDED, "dropped; its data stays: %s", why);
  } else {
    judge(item, RETENTION_DELETE, "dropped, and the grace is over");
  }
}

size_t retention_allowed(size_t live, const retention_limits *limits) {
  double share = limits->max_drop;
  if (limits->word != RETENTION_POLICY || share >= 1) return live;
  size_t most = share > 0 ? (size_t)((double)live * share) : 0; /* NaN compares as false */
  return most ? most : 1;
}

void retention_plan(const runlog_state *state, const bool *keep, const retention_guard *guard,
                    const retention_limits *limits, retention_item *out) {
  size_t live = 0, dropped = 0;
  for (size_t i = 0; i < state->commit_count; i++) live += state->commits[i].life == RUNLOG_LIVE;
  size_t most = retention_allowed(live, limits);
  for (size_t i = 0; i < state->commit_count; i++) {
    retention_item *item = &out[i];
    item->commit = &state->commits[i];
    item->wait_ns = 0;
    if (item->commit->life == RUNLOG_DELETED) {
      judge(item, RETENTION_GONE, "deleted");
      continue;
    }
    if (item->commit->life == RUNLOG_DROPPED) {
      plan_dropped(state, guard, limits, item);
      continue;
    }
    const char *why =
        !keep || keep[i] ? NULL : retention_guarded(state, item->commit, guard, limits->word);
    if (!keep || keep[i])
      judge_kept(item);
    else if (why)
      judge(item, RETENTION_GUARDED, "%s", why);
    else if (dropped >= most)
      judge(item, RETENTION_LIMITED, "at most %zu of %zu go in one pass", most, live);
    else
      judge(item, RETENTION_DROP, "no longer kept");
    dropped += item->verdict == RETENTION_DROP;
  }
}
