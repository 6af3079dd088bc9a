#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/run_state.h"

static size_t place_of(const run *r, const char *path, bool *there) {
  size_t low = 0, high = r->unit_count;
  while (low < high) {
    size_t mid = (low + high) / 2;
    int order = strcmp(r->units[mid]->path, path);
    if (order == 0) {
      *there = true;
      return mid;
    }
    if (order < 0)
      low = mid + 1;
    else
      high = mid;
  }
  *there = false;
  return low;
}

run_unit *run_unit_find(run *r, const char *path) {
  bool there;
  size_t at = place_of(r, path, &there);
  return there ? r->units[at] : NULL;
}

static void unit_free(run_unit *u) {
  if (!u) return;
  free(u->path);
  free(u->series);
  free(u);
}

static run_unit *unit_new(const detect_unit *facts) {
  char series[512];
  detect_series(facts->name, series, sizeof series);
  run_unit *u = calloc(1, sizeof *u);
  if (!u) return NULL;
  u->path = strdup(facts->path);
  u->series = strdup(series);
  if (u->path && u->series) return u;
  unit_free(u);
  return NULL;
}

static int insert(run *r, run_unit *u) {
  if (r->unit_count == r->unit_room) {
    size_t room = r->unit_room ? 2 * r->unit_room : 16;
    run_unit **units = realloc(r->units, room * sizeof(run_unit *));
    if (!units) return ERR_NOMEM;
    r->units = units;
    r->unit_room = room;
  }
  bool there;
  size_t at = place_of(r, u->path, &there);
  memmove(&r->units[at + 1], &r->units[at], (r->unit_count - at) * sizeof(run_unit *));
  r->units[at] = u;
  r->unit_count++;
  return 0;
}

/* The record of a unit, made if it is new, with the facts of now in it. */
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
  u->bytes = facts->bytes;
  u->stamp = facts->stamp;
  u->fingerprint = facts->fingerprint;
  u->changed_ns = facts->changed_ns;
  u->made_ns = facts->made_ns;
  u->want = policy_builtin(facts);
  snprintf(u->reason, sizeof u->reason, "%s", facts->reason ? facts->reason : "");
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
  };
  r->env->tell(r->env->ctx, r, &news);
}
