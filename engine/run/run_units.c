#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "run/run_state.h"
#include "prims/match_series.h"

static int by_path(const void *path, const void *unit) {
  return strcmp(path, (*(run_unit *const *)unit)->path);
}

static size_t place_of(const run *r, const char *path, bool *there) {
  return vec_place(path, (const void *)r->units, r->unit_count, sizeof(run_unit *), by_path, there);
}

run_unit *run_unit_find(run *r, const char *path) {
  bool there;
  size_t at = place_of(r, path, &there);
  return there ? r->units[at] : NULL;
}

static void unit_free(run_unit *u) {
  if (!u) return;
  policy_once_clear(&u->once);
  run_unit_beside_drop(u);
  free(u->path);
  free(u->series);
  names_free(&u->mentions);
  names_free(&u->left);
  free(u->result);
  free(u->numbers);
  free(u);
}

static run_unit *unit_new(const detect_unit *facts) {
  char series[512];
  match_series(facts->name, series, sizeof series);
  run_unit *u = calloc(1, sizeof *u);
  if (!u) return NULL;
  u->path = strdup(facts->path);
  u->series = strdup(series);
  if (u->path && u->series) return u;
  unit_free(u);
  return NULL;
}

static int insert(run *r, run_unit *u) {
  if (!vec_grow((void *)&r->units, r->unit_count, &r->unit_room, sizeof(void *)) ||
      !VEC_ROOM(r->line, r->unit_count, r->line_room))
    return ERR_NOMEM;
  bool there;
  size_t at = place_of(r, u->path, &there);
  memmove(&r->units[at + 1], &r->units[at], (r->unit_count - at) * sizeof(run_unit *));
  r->units[at] = u;
  r->unit_count++;
  return 0;
}

/* ---- what stands beside it ---- */

void run_unit_beside_drop(run_unit *u) {
  job_beside_free(u->beside);
  u->beside = NULL;
  u->beside_next = 0;
}

static void look_beside(run *r, run_unit *u, int64_t now) {
  const int64_t pause = 200000000;
  bool late;
  err e = {0};
  if (job_beside_look(&r->job_env, u->path, u->step, &u->beside, &late, &e) < 0)
    log_say(r->env->log, LOG_WARN, "%s", e.text);
  u->beside_next = late && now < u->beside_until ? now + pause : 0;
}

void run_unit_beside(run *r, run_unit *u) {
  const int64_t most = (int64_t)10 * 1000000000; /* as long as a job waits for one */
  if (u->beside && digest_equal(&u->beside_of, &u->fingerprint)) return;
  run_unit_beside_drop(u);
  /* Of one that was there before, the moment is gone. */
  if (u->above || run_order_at_start(r, u)) return;
  u->beside_of = u->fingerprint;
  int64_t now = r->env->io->now(r->env->io, IO_MONO);
  u->beside_until = now + most;
  look_beside(r, u, now);
}

int64_t run_beside_step(run *r, int64_t now) {
  int64_t due = INT64_MAX;
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (u->beside_next == 0 || !run_unit_queued(u)) continue;
    if (u->beside_next <= now) look_beside(r, u, now);
    if (u->beside_next && u->beside_next < due) due = u->beside_next;
  }
  return due;
}

/* Finds the record of a unit, or makes it, and writes the present facts into it. */
int run_unit_take(run *r, const detect_unit *facts, run_unit **out, err *e) {
  run_unit *u = run_unit_find(r, facts->path);
  if (!u) {
    run_group *g;
    int rc = run_group_get(r, facts->group, &g, e);
    if (rc < 0) return rc;
    u = unit_new(facts);
    if (!u || insert(r, u) < 0) {
      unit_free(u);
      return err_set(e, ERR_NOMEM, "%s: out of memory", facts->path);
    }
    u->group = g;
  }
  u->gone = false; /* its name may be there again before the save of the old one has ended */
  u->kind = facts->kind;
  u->step = facts->step;
  u->in_place = facts->in_place;
  u->above = facts->above;
  u->reused = facts->reused || run_in_place_is_fixed(r, facts->path);
  u->bytes = facts->bytes;
  u->stamp = facts->stamp;
  u->fingerprint = facts->fingerprint;
  u->changed_ns = facts->changed_ns;
  u->made_ns = facts->made_ns;
  u->want = policy_builtin(facts);
  snprintf(u->reason, sizeof u->reason, "%s", facts->reason ? facts->reason : "");
  if (!u->begun) run_result_begin(r, u);
  *out = u;
  return 0;
}

void run_unit_remove(run *r, run_unit *u) {
  bool there;
  size_t at = place_of(r, u->path, &there);
  if (there) {
    memmove(&r->units[at], &r->units[at + 1], (r->unit_count - at - 1) * sizeof(run_unit *));
    r->unit_count--;
  }
  unit_free(u);
}

/* ---- what becomes of a unit ---- */

void run_unit_is(run *r, run_unit *u, unit_phase phase) {
  u->phase = phase;
  r->failed += phase == UNIT_FAILED;
  r->dropped += phase == UNIT_DROPPED;
}

/* What the host is told when the trail notes this; 0: nothing. */
static run_kind news_of(trail_what what) {
  switch (what) {
  case TRAIL_UNPROVEN: return RUN_UNPROVEN;
  case TRAIL_RETRYING: return RUN_RETRYING;
  case TRAIL_FAILED: return RUN_FAILED;
  case TRAIL_LET_GO: return RUN_DROPPED;
  default: return 0;
  }
}

void run_unit_to(run *r, run_unit *u, unit_phase phase, trail_what what, int status,
                 const char *reason) {
  const run_kind news = news_of(what);
  if (status < 0) u->status = status;
  run_unit_is(r, u, phase);
  run_note(r, u, what, reason);
  if (news) run_tell(r, u, news, NULL, status, reason ? reason : u->reason);
}

void run_unit_again(run *r, run_unit *u) {
  r->failed -= u->phase == UNIT_FAILED;
  r->dropped -= u->phase == UNIT_DROPPED;
  run_enqueue(r, u);
}

void run_tell(run *r, const run_unit *u, run_kind kind, const job *j, int status,
              const char *reason) {
  int64_t now = r->env->io->now(r->env->io, IO_MONO);
  run_news news = {
      .kind = kind,
      .status = status,
      .job = u->job,
      .step = j ? j->plan.step : u->step,
      .files = j ? j->files : 0,
      .bytes = j ? j->bytes : u->bytes,
      .seconds = u->complete_at ? (double)(now - u->complete_at) / 1e9 : 0,
      .unit = u->path,
      .reason = reason,
      .is_copy = j && *j->copy_of,
  };
  r->env->tell(r->env->ctx, r, &news);
}
