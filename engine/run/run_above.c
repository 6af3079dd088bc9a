/* run_above: saves files above the checkpoints, as Ray Tune's `experiment_state-*.json`: each is a unit
 * of the log of its own directory, and no checkpoint.
 *
 * They are written every few seconds, and belong together: so they are saved together, and then for a
 * while not at all, a minute once the run is 20 minutes old. A log of days must not have an entry of
 * every ten seconds, and a short run must not lose most of what its trials did. A state that names checkpoints which are not in the store is of no use to whoever
 * restores it, so they are waited for first, a minute at most; what is named is not let go. */
#include <stdio.h>
#include <string.h>

#include "base/seconds.h"
#include "prims/fs.h"
#include "prims/match.h"
#include "prims/match_series.h"
#include "run/run_state.h"

static const int64_t second_ns = 1000000000;
enum { LEAST_S = 10, MOST_S = 60, SHARE = 20, TOGETHER_S = 5, PATIENCE_S = 60, YOUNG_S = 120 };

/* ---- what they name ---- */

/* Reads what it names; of a file that cannot be read now nothing is known. */
static void read_names(const run *r, run_unit *u) {
  char path[FS_PATH_MAX];
  buf text;
  err why = {0};
  names_free(&u->mentions);
  u->mentions_of = u->fingerprint;
  buf_init(&text, ABOVE_TEXT_MAX);
  int rc = fs_join(path, r->places.dir, u->path, &why);
  if (rc == 0) rc = fs_read(r->env->io, path, ABOVE_TEXT_MAX, &text, &why);
  if (rc == 0 && text.len) rc = above_read(text.data, text.len, &u->mentions, &why);
  if (rc < 0 && rc != ERR_NOENT)
    log_say(r->env->log, LOG_DEBUG, "what %s names is not known: %s", u->path, why.text);
  buf_free(&text);
}

static const names *names_of(const run *r, run_unit *u) {
  if (!digest_equal(&u->mentions_of, &u->fingerprint)) read_names(r, u);
  return &u->mentions;
}

/* True if `prefix` is a directory right in that of the group. */
static bool lies_in(const char *prefix, const run_group *above) {
  char parent[FS_PATH_MAX];
  if (!*prefix) return false;
  fs_parent(prefix, parent);
  return strcmp(strcmp(parent, ".") == 0 ? "" : parent, above->group.prefix) == 0;
}

static bool has(const names *of, const char *prefix, const char *unit) {
  char name[FS_PATH_MAX];
  return of->count && fs_join(name, fs_base(prefix), unit, NULL) == 0 && names_has(of, name);
}

static bool lies_below_some(const run *r, const run_group *g) {
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->above && lies_in(g->group.prefix, r->units[i]->group)) return true;
  return false;
}

/* A tuner learns of a checkpoint when it is whole, and writes its state every ten seconds or more
 * seldom, which is saved a minute later at most: so the next state may name one that is new, though
 * newer ones are committed already. When the job is over its last state is on the disk. */
static bool may_be_named(const run *r, const run_group *g, const runlog_commit *c) {
  int64_t age, young = YOUNG_S * second_ns;
  if (__builtin_sub_overflow(r->env->io->now(r->env->io, IO_WALL), c->time_ns, &age)) return false;
  return !r->writer_gone && age < young && age > -young && lies_below_some(r, g);
}

bool run_above_names(run *r, const run_group *g, const runlog_commit *c) {
  if (may_be_named(r, g, c)) return true;
  for (size_t i = 0; i < r->group_count; i++) {
    const run_group *above = r->groups[i];
    if (above->above_at == 0 || !lies_in(g->group.prefix, above)) continue;
    for (size_t k = 0; k < ABOVE_KEPT; k++)
      if (has(&above->above_named[k], g->group.prefix, c->unit)) return true;
  }
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (u->above && lies_in(g->group.prefix, u->group) &&
        has(names_of(r, u), g->group.prefix, c->unit))
      return true;
  }
  return false;
}

/* ---- of which session ---- */

/* A session of Ray's tuner writes the files of earlier ones anew, each under the time at which its session
 * began, and goes on by the last name. As they are written last they would be taken for the newest, and
 * the true one let go. */
static bool is_before(const char *name, const char *than) {
  static const char timed[] =
      "*[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]_[0-9][0-9]-[0-9][0-9]-[0-9][0-9].*";
  return match_glob(timed, name) && match_same_series(name, than) && strcmp(name, than) < 0;
}

bool run_above_is_outdated(const run *r, const detect_unit *facts) {
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *k = r->units[i];
    if (k->above && strcmp(k->group->group.prefix, facts->group) == 0 &&
        is_before(facts->name, fs_base(k->path)))
      return true;
  }
  return false;
}

/* What is saved, or on its way, stays so. */
void run_above_overtake(run *r, const run_unit *u) {
  for (size_t i = r->unit_count; i-- > 0;) {
    run_unit *k = r->units[i];
    const bool waits = k->phase == UNIT_SETTLING || k->phase == UNIT_UNPROVEN;
    if (waits && k->above && k->group == u->group && is_before(fs_base(k->path), fs_base(u->path)))
      run_unit_remove(r, k);
  }
}

/* ---- when ---- */

/* True while a checkpoint that stands here is named, and on its way to the store. */
static bool awaits(const run *r, run_unit *u) {
  const names *named = names_of(r, u);
  for (size_t i = 0; named->count && i < r->unit_count; i++) {
    const run_unit *k = r->units[i];
    bool coming = k->phase == UNIT_SETTLING || k->phase == UNIT_RUNNING || run_unit_queued(k);
    if (coming && !k->above && lies_in(k->group->group.prefix, u->group) &&
        has(named, k->group->group.prefix, fs_base(k->path)))
      return true;
  }
  return false;
}

static int64_t period_of(const run *r, int64_t now) {
  int64_t share = (now - r->started_at) / SHARE, least = LEAST_S * second_ns;
  int64_t most = MOST_S * second_ns;
  return share < least ? least : share < most ? share : most;
}

int64_t run_above_due(run *r, run_unit *u, int64_t now) {
  const run_group *g = u->group;
  int64_t due = u->next_try;
  if (due > now || r->preempted || run_drain_wants(r, u)) return due;
  bool together = g->above_at && now < seconds_later(g->above_at, TOGETHER_S * second_ns);
  if (together) return due;
  int64_t period = seconds_later(g->above_at, period_of(r, now));
  if (g->above_at && period > now && !r->writer_gone) return period;
  int64_t patience = seconds_later(g->above_since, PATIENCE_S * second_ns);
  if (patience <= now || !awaits(r, u)) return due;
  int64_t again = now + second_ns;
  return again < patience ? again : patience;
}

void run_above_waits(run *r, run_unit *u) {
  if (u->group->above_since == 0) u->group->above_since = r->env->io->now(r->env->io, IO_MONO);
}

static void shift(run_group *g) {
  names_free(&g->above_named[ABOVE_KEPT - 1]);
  memmove(&g->above_named[1], &g->above_named[0], (ABOVE_KEPT - 1) * sizeof(names));
  g->above_named[0] = (names){0};
}

void run_above_begun(run *r, run_unit *u) {
  run_group *g = u->group;
  int64_t now = r->env->io->now(r->env->io, IO_MONO);
  const names *named = names_of(r, u);
  if (g->above_at == 0 || now >= seconds_later(g->above_at, TOGETHER_S * second_ns)) {
    g->above_at = now;
    shift(g);
  }
  g->above_since = 0;
  if (!names_add_all(&g->above_named[0], names_list(named)))
    log_say(r->env->log, LOG_WARN, "what %s names may be let go: out of memory", u->path);
  names_sort_unique(&g->above_named[0]);
}

void run_above_free(run_group *g) {
  for (size_t i = 0; i < ABOVE_KEPT; i++) names_free(&g->above_named[i]);
}
