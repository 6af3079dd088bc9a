/* run_order: the line of a group. The last commit of a log is what "newest" means to all that read
 * it, so a checkpoint that was complete before the newest commit is not committed after it, whatever
 * its name. */
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "run/run_state.h"

static void take_later(int64_t *newest, int64_t time_ns) {
  if (time_ns > *newest) *newest = time_ns;
}

/* Tells when the content of a commit was written; 0: that is not known. The time of its entry says
 * when it was sent, which may be days later. */
int64_t run_order_of_commit(run *r, run_group *g, const runlog_commit *c) {
  const manifest *m = NULL;
  if (run_is_lost(g, c->n) || run_manifest(r, g, c, &m, NULL) < 0 || !m) return 0;
  return manifest_made_ns(m);
}

/* An entry's own step may have been read from the name by a rule of before. */
int64_t run_step_of(const run *r, const run_group *g, const runlog_commit *c) {
  char path[FS_PATH_MAX];
  match_unit m;
  const char *tail = c->kind == MATCH_GROUP ? ".x" : "";
  size_t len = strlen(g->group.prefix);
  int n = snprintf(path, sizeof path, "%s%s%s%s", g->group.prefix, len ? "/" : "", c->unit, tail);
  bool fits = n > 0 && (size_t)n < sizeof path;
  return fits && rules_match(r->rules, path, c->kind == MATCH_DIR, &m) ? m.step : c->step;
}

/* What is bad or let go is no commit that a restore would take: the line goes on from the one before. */
static int64_t newest_of(run *r, run_group *g) {
  if (!g->group.log || g->foreign) return 0;
  const runlog_commit *c = runlog_newest(runlog_view(g->group.log), NULL);
  return c ? run_order_of_commit(r, g, c) : 0;
}

static bool is_later(run_place a, run_place b) {
  return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.made_ns > b.made_ns;
}

void run_order_now(run *r) {
  take_later(&r->moment_ns, r->env->io->now(r->env->io, IO_WALL));
}

void run_order_begin(run *r) {
  r->started_ns = r->env->io->now(r->env->io, IO_WALL);
  r->started_at = r->env->io->now(r->env->io, IO_MONO);
  r->moment_ns = r->started_ns;
  for (size_t i = 0; i < r->group_count; i++) {
    int64_t made = newest_of(r, r->groups[i]);
    r->groups[i]->newest_place = (run_place){made, made};
  }
}

/* What stood there at the start has its files' times alone. What is completed before our eyes has its
 * place when it is: a copy keeps the times of what it is a copy of, and a file may get its last byte
 * long before its marker. Clocks that are set back change no order. */
void run_order_note(run *r, run_unit *u) {
  const int64_t newest_ns = u->group->newest_place.at_ns;
  if (u->place.at_ns && digest_equal(&u->place_of, &u->fingerprint)) return;
  u->place_of = u->fingerprint;
  u->place = (run_place){u->made_ns, u->made_ns};
  if (run_order_at_start(r, u)) return;
  u->place.at_ns = newest_ns >= r->moment_ns ? newest_ns + 1 : r->moment_ns;
}

bool run_order_at_start(const run *r, const run_unit *u) {
  return u->changed_ns <= r->started_ns;
}

bool run_order_before(const run_unit *a, const run_unit *b) {
  if (is_later(a->place, b->place) || is_later(b->place, a->place))
    return is_later(b->place, a->place);
  return a->step < b->step;
}

/* A newer one of its kind that is in the store already: it may have been complete before this one was
 * known to be. */
static bool has_newer_stored(const run *r, const run_unit *u) {
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->phase == UNIT_DURABLE && run_supersedes(r->units[i], u)) return true;
  return false;
}

/* What the store has lost is saved again: nothing else could mend it. */
static bool may_be_late(const run *r, const run_unit *u) {
  return !run_follows(r) && !run_lost_find(u->group, u->path) && !FAULT("older-after-newer");
}

/* Of files above the checkpoints each kind has a line of its own. */
static bool is_before_newest(const run_unit *u) {
  return !u->above && is_later(u->group->newest_place, u->place);
}

bool run_is_late(const run *r, const run_unit *u) {
  return may_be_late(r, u) && (is_before_newest(u) || has_newer_stored(r, u));
}

void run_order_committed(run *r, run_group *g, run_place place) {
  if (is_later(place, g->newest_place)) g->newest_place = place;
  /* What is stored was asked when each of these was queued, and each commit drops what it comes
   * before (run_unit_durable): to ask it again here compares all with all at each commit. */
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (u->group == g && run_unit_queued(u) && is_before_newest(u) && may_be_late(r, u))
      run_drop_late(r, u);
  }
}

/* Units that stood there at the start become known one by one, and each has its turn by age: an older
 * one that is not yet quiet is waited for, but not for ever. */
bool run_order_awaits(const run *r, const run_unit *u, int64_t now) {
  enum { MOST_S = 2 };
  if (!run_order_at_start(r, u) || r->preempted || run_follows(r)) return false;
  if (now > r->started_at + r->rules->quiet_ns + (int64_t)MOST_S * 1000000000) return false;
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *k = r->units[i];
    if (k->group == u->group && k->phase == UNIT_SETTLING && run_order_at_start(r, k) &&
        k->made_ns < u->made_ns)
      return true;
  }
  return false;
}
