#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "base/vec.h"
#include "job/keep/judge.h"
#include "lab/world.h"

static void commit_free(runlog_commit *c) {
  free(c->unit);
  free(c->dir);
  free(c->metrics);
  free(c->needs);
  free(c->drop_policy);
  free(c->drop_reason);
}

static void sheet_free(lab_sheet *s) {
  free(s->items);
  free(s->said);
  free(s->kept);
  free(s->keep);
  free(s->plan);
}

void lab_log_free(lab_trial *t) {
  sheet_free(&t->sheet);
  for (size_t i = 0; i < t->log.commit_count; i++) commit_free(&t->log.commits[i]);
  free(t->log.commits);
}

static char *copy(lab *l, const char *text) {
  char *made = text ? strdup(text) : NULL;
  if (text && !made) l->broken = true;
  return made;
}

/* The texts that are given are copied. */
static void append(lab *l, lab_trial *t, const runlog_commit *given) {
  runlog_state *log = &t->log;
  if (!VEC_ROOM(log->commits, log->commit_count, log->commit_room)) {
    l->broken = true;
    return;
  }
  runlog_commit *c = &log->commits[log->commit_count++];
  *c = *given;
  c->unit = copy(l, given->unit);
  c->dir = copy(l, given->dir);
  c->metrics = copy(l, given->metrics);
  c->needs = copy(l, given->needs);
  t->keep_asked = true;
  t->fresh++;
}

void lab_commit(lab *l, lab_trial *t, const lab_unit *u) {
  const uint64_t n = ++t->next_commit;
  append(l, t,
         &(runlog_commit){.n = n,
                          .attempt = u->id,
                          .unit = u->name,
                          .dir = u->name,
                          .kind = MATCH_DIR,
                          .step = u->step,
                          .time_ns = l->now,
                          .files = 1,
                          .bytes = u->bytes,
                          .metrics = u->metrics});
  l->sum->saved++;
  lab_add(&l->sum->bytes_sent, u->bytes);
  lab_add(&l->bytes_kept, u->bytes);
  if (l->bytes_kept > l->sum->bytes_most) l->sum->bytes_most = l->bytes_kept;
}

void lab_commit_again(lab *l, lab_trial *t, const runlog_commit *c) {
  append(l, t,
         &(runlog_commit){.n = c->n,
                          .attempt = c->attempt,
                          .unit = c->unit,
                          .dir = c->dir,
                          .kind = c->kind,
                          .step = c->step,
                          .time_ns = c->time_ns,
                          .files = c->files,
                          .bytes = c->bytes,
                          .above = c->above,
                          .metrics = c->metrics,
                          .needs = c->needs,
                          .bad = c->bad});
}

size_t lab_items(const lab_trial *t, policy_item *out) {
  return retention_items(&t->log, out);
}

uint64_t lab_live(const lab_trial *t) {
  uint64_t live = 0;
  for (size_t i = 0; i < t->log.commit_count; i++) live += t->log.commits[i].life == RUNLOG_LIVE;
  return live;
}

/* Makes room for what is said of each commit. It stays for the next time: a log may be long, and is looked
 * at after each commit. */
static bool sheet_room(lab_sheet *s, size_t commits) {
  const size_t room = commits * 2 + 16;
  if (commits < s->room) return true;
  sheet_free(s);
  *s = (lab_sheet){.room = room,
                   .items = malloc(room * sizeof *s->items),
                   .said = malloc(room * sizeof *s->said),
                   .kept = malloc(room * sizeof *s->kept),
                   .keep = malloc(room * sizeof *s->keep),
                   .plan = malloc(room * sizeof *s->plan)};
  const bool good = s->items && s->said && s->kept && s->keep && s->plan;
  if (!good) s->room = 0;
  return good;
}

static const char *passed(const lab *l, const lab_trial *t, const runlog_commit *c) {
  return judge_passed(l->policy, &t->log, t->name, c, l->o->limits.no_delete, NULL);
}

/* Where no policy has `keep`, a commit lets older ones of its very name go, and nothing else does: returns that
 * name, so that the others are not looked at again with each one that comes. What was to go and did not, is:
 * NULL, as where a policy is asked about all. */
static const char *alone(const lab *l, const lab_trial *t) {
  const runlog_state *log = &t->log;
  if (policy_has(l->policy, POLICY_KEEP) || l->judged || t->some_stay) return NULL;
  if (t->fresh > 1 || log->commit_count == 0) return NULL;
  return log->commits[log->commit_count - 1].unit;
}

static bool may_let_go(const lab *l, const lab_trial *t) {
  const runlog_state *log = &t->log;
  const char *unit = alone(l, t);
  if (!unit) return true;
  if (!judge_reused(l->policy, log, t->name, &log->commits[log->commit_count - 1])) return false;
  for (size_t i = log->commit_count - 1; i-- > 0;) {
    const runlog_commit *c = &log->commits[i];
    if (c->life == RUNLOG_LIVE && strcmp(c->unit, unit) == 0 && passed(l, t, c)) return true;
  }
  return false;
}

static void ask(lab *l, lab_trial *t, lab_sheet *s) {
  const runlog_state *log = &t->log;
  size_t count = lab_items(t, s->items);
  memset(s->said, 0, count * sizeof *s->said);
  bool answered =
      policy_has(l->policy, POLICY_KEEP) &&
      policy_select(l->policy, POLICY_KEEP, t->name, s->items, count, &t->memory, s->said);
  retention_spread(log, answered ? s->said : NULL, s->kept);
  const char *unit = alone(l, t);
  for (size_t i = 0; i < log->commit_count; i++) {
    const bool looked_at = s->kept[i].keep && (!unit || strcmp(log->commits[i].unit, unit) == 0);
    const char *why = looked_at ? passed(l, t, &log->commits[i]) : NULL;
    if (!why) continue;
    s->kept[i] = (policy_kept){.policy = "builtin"};
    snprintf(s->kept[i].reason, sizeof s->kept[i].reason, "%s", why);
  }
}

static void plan(const lab *l, const lab_trial *t, const lab_sheet *s) {
  const retention_guard guard = {.resumed = t->resumed, .verified = RUNLOG_NONE};
  retention_limits limits = l->o->limits;
  limits.now_ns = l->now;
  retention_plan(&t->log, s->keep, &guard, &limits, s->plan);
}

static void drop(lab *l, lab_trial *t, runlog_commit *c, const policy_kept *said) {
  int64_t gone_at =
      seconds_later(l->now, retention_grace(said->policy, said->reason, l->o->limits.grace_ns));
  if (gone_at < t->keep_at && !l->o->limits.no_delete) t->keep_at = gone_at;
  c->life = RUNLOG_DROPPED;
  c->drop_ns = l->now;
  c->drop_policy = strdup(said->policy);
  c->drop_reason = strdup(said->reason);
  l->sum->deleted++;
  lab_tell(l, t, LAB_LET_GO, c->unit, c->attempt, 0);
  if (!c->drop_policy || !c->drop_reason || !names_add(&l->news.deleted, c->unit)) l->broken = true;
}

/* Takes the deleted ones out of the log: no rule asks for them any more. */
static void sweep(lab *l, lab_trial *t, const lab_sheet *s) {
  runlog_state *log = &t->log;
  size_t left = 0;
  t->keep_at = INT64_MAX;
  for (size_t i = 0; i < log->commit_count; i++) {
    const retention_item *item = &s->plan[i];
    if (item->verdict == RETENTION_DELETE) {
      l->bytes_kept -=
          log->commits[i].bytes < l->bytes_kept ? log->commits[i].bytes : l->bytes_kept;
      commit_free(&log->commits[i]);
      continue;
    }
    int64_t at = item->verdict == RETENTION_WAIT ? seconds_later(l->now, item->wait_ns) : INT64_MAX;
    if (at < t->keep_at && !l->o->limits.no_delete) t->keep_at = at;
    log->commits[left++] = log->commits[i];
  }
  log->commit_count = left;
}

static void let_go(lab *l, lab_trial *t, lab_sheet *s) {
  const runlog_state *log = &t->log;
  ask(l, t, s);
  for (size_t i = 0; i < log->commit_count; i++) s->keep[i] = s->kept[i].keep;
  plan(l, t, s);
  t->some_stay = false;
  for (size_t i = 0; i < log->commit_count; i++) {
    runlog_commit *c = &log->commits[i];
    const retention_verdict verdict = s->plan[i].verdict;
    if (l->judged && c->life == RUNLOG_LIVE) l->judged(l->judged_ctx, &s->plan[i], &s->kept[i]);
    t->some_stay = t->some_stay || verdict == RETENTION_GUARDED || verdict == RETENTION_LIMITED;
    if (verdict == RETENTION_DROP) drop(l, t, c, &s->kept[i]);
  }
}

void lab_keep(lab *l, lab_trial *t) {
  const runlog_state *log = &t->log;
  lab_sheet *s = &t->sheet;
  if (!sheet_room(s, log->commit_count)) {
    l->broken = true;
    return;
  }
  if (t->keep_asked && may_let_go(l, t)) let_go(l, t, s);
  t->keep_asked = false;
  t->fresh = 0;
  if (t->keep_at <= l->now) {
    for (size_t i = 0; i < log->commit_count; i++) s->keep[i] = true;
    plan(l, t, s);
    sweep(l, t, s);
  }
}
