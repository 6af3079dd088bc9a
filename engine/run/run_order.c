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

void run_order_now(run *r) {
  take_later(&r->moment_ns, r->env->io->now(r->env->io, IO_WALL));
}

void run_order_begin(run *r) {
  r->started_ns = r->env->io->now(r->env->io, IO_WALL);
  r->started_at = r->env->io->now(r->env->io, IO_MONO);
  r->moment_ns = r->started_ns;
  for (size_t i = 0; i < r->group_count; i++) {
    int64_t made = newest_of(r, r->groups[i]);
    r->groups[i]->newest_place = (queue_place){made, made};
    r->groups[i]->whole_ns = made;
  }
}

/* What stood there at the start has its files' times alone. What is completed before our eyes has its
 * place when it is: a copy keeps the times of what it is a copy of, and a file may get its last byte
 * long before its marker. Clocks that are set back change no order. */
void run_order_note(run *r, run_unit *u) {
  const int64_t newest_ns = u->group->newest_place.at_ns;
  if (u->place.at_ns && digest_equal(&u->place_of, &u->fingerprint)) return;
  u->place_of = u->fingerprint;
  u->place = (queue_place){u->made_ns, u->made_ns};
  if (run_order_at_start(r, u)) return;
  u->place.at_ns = newest_ns >= r->moment_ns ? newest_ns + 1 : r->moment_ns;
}

/* Its last file was written then; a clock that is ahead, a file server's say, does not count. */
int64_t run_order_whole(queue_place place) {
  return place.made_ns < place.at_ns ? place.made_ns : place.at_ns;
}

bool run_order_at_start(const run *r, const run_unit *u) {
  return u->changed_ns <= r->started_ns;
}

/* ---- what the rules of the queue see ---- */

static queue_stage stage_of(const run_unit *u) {
  if (run_unit_queued(u)) return QUEUE_WAITS;
  if (u->phase == UNIT_RUNNING) return QUEUE_RUNS;
  return u->phase == UNIT_DURABLE ? QUEUE_STORED : QUEUE_AWAY;
}

/* A save that is over just now is nobody's, and its unit has no new standing yet. */
queue_unit run_line_unit(const run *r, const run_unit *u) {
  uint64_t moved = u->save ? atomic_load(&u->save->job.moved) : 0;
  return (queue_unit){.series = u->series,
                      .step = u->step,
                      .made_ns = u->made_ns,
                      .place = u->place,
                      .stage = stage_of(u),
                      .sure = run_unit_sure(u),
                      .judged = u->phase == UNIT_SKIPPED || u->phase == UNIT_FAILED,
                      .kept = u->kept,
                      .early = run_order_at_start(r, u),
                      .above = u->above,
                      .next_try = u->next_try,
                      .bytes = moved < u->bytes ? u->bytes - moved : 0};
}

double run_line_takes(const run *r) {
  double sum = 0;
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *u = r->units[i];
    if (u->phase != UNIT_RUNNING && !run_unit_queued(u)) continue;
    double takes = deadline_takes(&r->pace, run_line_unit(r, u).bytes);
    if (takes < 0) return -1;
    sum += takes;
  }
  return sum;
}

queue run_line(const run *r, const run_group *g) {
  queue q = {.units = r->line,
             .keep_all = r->keep_all,
             .preempted = r->preempted,
             .over = r->writer_gone,
             .ranks = r->ranks.world > 1,
             .follows = run_follows(r),
             .rest = r->rest,
             .pace = r->pace,
             .takes_s = r->preempted ? run_line_takes(r) : -1};
  if (r->preempted) q.left_ns = r->end_at - r->env->io->now(r->env->io, IO_MONO);
  for (size_t i = 0; g && i < r->unit_count; i++) {
    if (r->units[i]->group != g) continue;
    r->line[q.count] = run_line_unit(r, r->units[i]);
    r->line[q.count++].of = r->units[i];
  }
  return q;
}

bool run_order_before(const run *r, const run_unit *a, const run_unit *b) {
  const queue_unit x = run_line_unit(r, a), y = run_line_unit(r, b);
  return queue_before(&x, &y);
}

/* ---- what comes too late ---- */

/* What the store has lost is saved again: nothing else could mend it. */
static bool may_be_late(const run *r, const run_unit *u) {
  return !run_follows(r) && !run_lost_find(u->group, u->path) && !FAULT("older-after-newer");
}

bool run_is_late(const run *r, const run_unit *u) {
  if (!may_be_late(r, u)) return false;
  const queue q = run_line(r, u->group);
  const queue_unit one = run_line_unit(r, u);
  return queue_is_late(&q, &one, u->group->newest_place);
}

void run_order_committed(run *r, run_group *g, queue_place place) {
  if (queue_is_later(place, g->newest_place)) g->newest_place = place;
  /* What is stored was asked when each of these was queued, and each commit drops what it comes
   * before (run_unit_durable): to ask it again here compares all with all at each commit. */
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (u->group != g || !run_unit_queued(u)) continue;
    const queue_unit one = run_line_unit(r, u);
    if (queue_is_before(&one, g->newest_place) && may_be_late(r, u)) run_drop_late(r, u);
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
