/* run_in_place: names without a number, as `last.pt`, or with one that never changes, as `resnet50.pt`,
 * which a job writes again and again. Each is saved at
 * most once in a while: a store that has one of every ten seconds is full in a day, and what is of use
 * of them is the newest.
 *
 * The names of a directory wait together: a round begins with the first that is saved, and in a round
 * each is saved once. So the newest of them does not overtake another one, which could not follow it.
 *
 * What a day of them is, is said once: at a store one pays for what is sent, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "base/shown.h"
#include "base/vec.h"
#include "prims/match_series.h"
#include "run/run_state.h"

static run_name *find(const run *r, const char *path) {
  for (size_t i = 0; i < r->name_count; i++)
    if (strcmp(r->names[i].path, path) == 0) return &r->names[i];
  return NULL;
}

/* Ranks must all choose alike, and each has a clock of its own. */
static bool is_paced(const run *r, const run_unit *u) {
  return u->reused && !u->above && r->in_place_every_ns > 0 && r->ranks.world <= 1;
}

static int64_t end_of_round(const run *r, const run_group *g) {
  return seconds_later(g->in_place_at, r->in_place_every_ns);
}

int64_t run_in_place_due(const run *r, const run_unit *u) {
  if (!is_paced(r, u) || r->writer_gone || r->preempted || run_drain_wants(r, u) ||
      u->group->in_place_at == 0)
    return 0;
  const run_name *n = find(r, u->path);
  return n && n->at_ns >= u->group->in_place_at ? end_of_round(r, u->group) : 0;
}

void run_in_place_begun(run *r, const run_unit *u) {
  int64_t now = r->env->io->now(r->env->io, IO_MONO);
  run_group *g = u->group;
  if (is_paced(r, u) && (g->in_place_at == 0 || now >= end_of_round(r, g))) g->in_place_at = now;
}

static run_name *add(run *r, const char *path) {
  char *copy = VEC_ROOM(r->names, r->name_count, r->name_room) ? strdup(path) : NULL;
  if (!copy) return NULL;
  r->names[r->name_count] = (run_name){.path = copy};
  return &r->names[r->name_count++];
}

/* ---- what a day of it is ---- */

/* From so many commits on, or after an hour, a name's pace is known. */
enum { ENOUGH = 3, DAY_S = 24 * 3600, HOUR_S = 3600, WORTH_SAYING = 24 };

typedef struct day {
  double commits, bytes, every_s; /* `every_s`: of the name that is saved most often */
  const char *name;               /* that one */
  size_t names;
} day;

static void add_day(const run_name *n, day *d) {
  double lasted = (double)(n->at_ns - n->since) / SECOND_NS;
  if (n->commits < 2 || lasted <= 0) return;
  double every = lasted / (double)(n->commits - 1);
  d->names++;
  d->commits += DAY_S / every;
  d->bytes += DAY_S / every * (double)n->bytes / (double)n->commits;
  if (d->name && d->every_s <= every) return;
  d->name = n->path;
  d->every_s = every;
}

static const char *what_stays(const run *r) {
  if (r->limits.no_delete) return "all of them stay (`no_delete`)";
  return policy_keeps_few(r->policy)
             ? "of each name the newest three, the last one of each day and of each start are kept"
             : "what is kept of them the policy says";
}

static void say_day(run *r, const day *d) {
  char more[40] = "", size[SHOWN_SIZE_MAX];
  if (d->names > 1) snprintf(more, sizeof more, " and %zu more are", d->names - 1);
  double bytes = d->bytes < 1e18 ? d->bytes : 1e18;
  log_say(
      r->env->log, LOG_WARN,
      "%s%s saved again and again, every %.0f s: about %.0f commits and %s a day are sent; %s. A "
      "longer `in_place_every` makes it fewer",
      d->name, *more ? more : " is", d->every_s, d->commits, shown_size((uint64_t)bytes, size),
      what_stays(r));
}

/* Says once what a day of all of them would be, when the pace of one is known. At the end all that
 * waits is saved, whatever the pace. */
static void foretell(run *r, const run_name *n) {
  bool known = n->commits >= ENOUGH ||
               (n->commits > 1 && n->at_ns - n->since >= (int64_t)HOUR_S * SECOND_NS);
  day d = {0};
  if (!known || r->day_said || r->writer_gone || r->preempted || run_follows(r)) return;
  for (size_t i = 0; i < r->name_count; i++) add_day(&r->names[i], &d);
  if (d.commits <= WORTH_SAYING) return;
  r->day_said = true;
  say_day(r, &d);
}

/* ---- names with a number that never changes ---- */

bool run_in_place_is_fixed(const run *r, const char *path) {
  const run_name *n = find(r, path);
  return n && n->fixed;
}

/* Its second commit tells, unless one of its kind has another number. */
static bool is_fixed(const run *r, const run_unit *u) {
  const run_group *g = u->group;
  const char *name = fs_base(u->path);
  const runlog_state *state = runlog_view(g->group.log);
  const runlog_commit *c = runlog_newest(state, name);
  size_t count = 0;
  if (!c ||
      policy_reuses(r->policy, g->group.prefix, name, u->kind == MATCH_DIR) !=
          POLICY_SAME_IF_FIXED ||
      !generations_is_fixed(state, c))
    return false;
  for (size_t i = 0; i < state->commit_count; i++)
    count += strcmp(state->commits[i].unit, name) == 0;
  return count > 1;
}

static bool is_of_kind(const char *path, const char *other) {
  size_t dir = (size_t)(fs_base(path) - path);
  return dir == (size_t)(fs_base(other) - other) && memcmp(path, other, dir) == 0 &&
         match_same_series(fs_base(path), fs_base(other));
}

/* Another number came: those before it are checkpoints of their own. */
static void unfix(run *r, const run_unit *u) {
  for (size_t i = 0; i < r->name_count; i++) {
    run_name *n = &r->names[i];
    if (!n->fixed || !is_of_kind(n->path, u->path)) continue;
    n->fixed = false;
    run_unit *there = run_unit_find(r, n->path);
    if (there) there->reused = false;
  }
}

void run_in_place_committed(run *r, const run_unit *u, uint64_t bytes) {
  if (u->above) return;
  const bool fixed = (!u->reused || run_in_place_is_fixed(r, u->path)) && is_fixed(r, u);
  if (!u->reused && !fixed) {
    unfix(r, u);
    return;
  }
  int64_t now = r->env->io->now(r->env->io, IO_MONO);
  run_name *n = find(r, u->path);
  if (!n && (n = add(r, u->path))) {
    n->since = now;
    n->fixed = fixed;
    if (fixed) u->group->in_place_at = now; /* it begins a round, had it been known before */
  }
  if (!n) {
    log_say(r->env->log, LOG_WARN, "%s may be saved more often than is asked for: out of memory",
            u->path);
    return;
  }
  n->at_ns = now;
  n->commits++;
  n->bytes += bytes;
  foretell(r, n);
}

void run_in_place_free(run *r) {
  for (size_t i = 0; i < r->name_count; i++) free(r->names[i].path);
  free(r->names);
}
