#include "lab/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "prims/match_series.h"

void line_unit_free(lab_unit *u) {
  if (!u) return;
  policy_asked_clear(u->asked);
  free(u->name);
  free(u->series);
  free(u->metrics);
  free(u);
}

void line_note(lab *l, names *list, const lab_unit *u) {
  if (!names_add(list, u->name)) l->broken = true;
}

bool line_waits(const lab_unit *u) {
  return u->phase == LAB_WAITS;
}

/* ---- what the rules of the queue see ---- */

static queue_stage stage_of(const lab_unit *u) {
  if (u->phase == LAB_WAITS) return QUEUE_WAITS;
  if (u->phase == LAB_RUNS) return QUEUE_RUNS;
  return u->phase == LAB_STORED ? QUEUE_STORED : QUEUE_AWAY;
}

/* Each is whole: it is told when it is. */
queue_unit line_unit(lab_unit *u) {
  const queue_stage stage = stage_of(u);
  return (queue_unit){.of = u,
                      .series = u->series,
                      .step = u->step,
                      .made_ns = u->made_ns,
                      .place = u->place,
                      .stage = stage,
                      .sure = stage != QUEUE_AWAY,
                      .judged = u->phase == LAB_HELD || u->phase == LAB_FAILED,
                      .kept = u->kept,
                      .next_try = u->next_try,
                      .bytes = u->bytes};
}

/* How long all takes that is sent or waits, by the pace of the saves before. */
static double takes_all(const lab *l, const lab_trial *t) {
  double sum = t->save ? (double)(t->sent_at - l->now) / 1e9 : 0;
  for (size_t i = 0; i < t->count; i++) {
    if (!line_waits(t->units[i])) continue;
    double takes = deadline_takes(&t->pace, t->units[i]->bytes);
    if (takes < 0) return -1;
    sum += takes;
  }
  return sum;
}

queue line_of(const lab *l, const lab_trial *t) {
  queue q = {.units = t->line,
             .count = t->count,
             .preempted = t->preempted,
             .over = t->over,
             .rest = t->rest,
             .pace = t->pace,
             .takes_s = t->preempted ? takes_all(l, t) : -1,
             .left_ns = t->end_at - l->now};
  for (size_t i = 0; i < t->count; i++) t->line[i] = line_unit(t->units[i]);
  return q;
}

/* ---- units ---- */

static void go(lab *l, lab_unit *u) {
  if (line_waits(u)) {
    l->sum->let_go++;
    line_note(l, &l->news.let_go, u);
  }
  u->phase = LAB_GONE;
}

/* A save that runs goes on with what it has: it reads a copy. A trial's own directory that waits does so
 * until it is wanted again: it is written all the time. */
static void replace(lab *l, const lab_trial *t, const char *name) {
  for (size_t i = 0; i < t->count; i++) {
    lab_unit *u = t->units[i];
    const bool stays =
        u->phase == LAB_RUNS || u->phase == LAB_STORED || (u->in_place && line_waits(u));
    if (!stays && strcmp(u->name, name) == 0) go(l, u);
  }
}

void line_replace_waiting(lab *l, const lab_trial *t, const lab_unit *by) {
  for (size_t i = 0; by->in_place && i < t->count; i++) {
    lab_unit *u = t->units[i];
    if (u != by && line_waits(u) && strcmp(u->name, by->name) == 0) go(l, u);
  }
}

/* What nobody looks at any more goes: of what is stored, all but the last of each kind; what is held back
 * and would come too late by now. */
static void sweep(lab_trial *t) {
  size_t left = 0;
  for (size_t i = 0; i < t->count; i++) {
    lab_unit *u = t->units[i];
    const queue_unit one = line_unit(u);
    bool gone =
        u->phase == LAB_GONE || (u->phase == LAB_HELD && queue_is_before(&one, t->newest_place));
    for (size_t k = i + 1; !gone && u->phase == LAB_STORED && k < t->count; k++) {
      const queue_unit other = line_unit(t->units[k]);
      gone = other.stage == QUEUE_STORED && queue_supersedes(&other, &one);
    }
    if (gone)
      line_unit_free(u);
    else
      t->units[left++] = u;
  }
  t->count = left;
}

lab_unit *lab_unit_new(lab *l, lab_trial *t, const lab_event *event) {
  char series[512];
  const char *name = event->name ? event->name : *t->name ? t->name : "trial";
  sweep(t);
  replace(l, t, name);
  match_series(name, series, sizeof series);
  lab_unit *u = calloc(1, sizeof *u);
  bool room = u && vec_grow((void *)&t->units, t->count, &t->room, sizeof(void *)) &&
              VEC_ROOM(t->line, t->count, t->line_room);
  if (!room) {
    free(u);
    l->broken = true;
    return NULL;
  }
  /* An empty object says that there are none. */
  const bool has_metrics = event->metrics && strcmp(event->metrics, "{}") != 0;
  if (event->sized) t->bytes = event->bytes;
  *u = (lab_unit){.id = ++l->made,
                  .name = strdup(name),
                  .series = strdup(series),
                  .step = event->name ? event->step : MATCH_NO_STEP,
                  .made_ns = l->now,
                  .bytes = event->sized ? event->bytes : t->bytes,
                  .kind = event->kind,
                  .metrics = has_metrics ? strdup(event->metrics) : NULL,
                  .in_place = !event->name,
                  .phase = LAB_HELD};
  if (!event->metrics && t->result) u->metrics = policy_numbers(t->result, NULL);
  /* As a run does: the place of one that is complete at the very moment of the newest commit is
   * behind that. */
  const int64_t newest = t->newest_place.at_ns;
  u->place = (queue_place){newest >= l->now ? newest + 1 : l->now, l->now};
  t->units[t->count++] = u;
  if (!u->name || !u->series || (has_metrics && !u->metrics)) l->broken = true;
  if (l->broken) return NULL;
  lab_tell(l, t, LAB_MADE, u->name, u->id, 0);
  return u;
}

/* ---- the queue ---- */

void line_drop(lab *l, lab_unit *u, const char *reason, bool unwanted) {
  u->phase = LAB_DROPPED;
  u->unwanted = unwanted;
  snprintf(u->want.reason, sizeof u->want.reason, "%s", reason);
  l->sum->let_go++;
  line_note(l, &l->news.let_go, u);
}

void line_drop_older(lab *l, lab_trial *t, lab_unit *newer, bool all) {
  const queue_unit first = line_unit(newer);
  queue q = line_of(l, t);
  for (size_t i = 0; i < q.count; i++) {
    if (!queue_goes(&q, &first, &q.units[i], all)) continue;
    line_drop(l, q.units[i].of, queue_why_it_goes(&q), false);
    if (t->preempted) q.takes_s = takes_all(l, t);
  }
}

void line_judge(lab *l, lab_trial *t) {
  if (!policy_has(l->policy, POLICY_KEEP)) return;
  const queue q = line_of(l, t);
  size_t room = t->log.commit_count + q.count + 1, count = 0;
  policy_item *items = calloc(room, sizeof *items);
  policy_kept *said = calloc(room, sizeof *said);
  const queue_unit **line = calloc(q.count + 1, sizeof(queue_unit *));
  char *memory = t->memory ? strdup(t->memory) : NULL;
  size_t first = items ? lab_items(t, items) : 0;
  for (size_t i = 0; line && i < q.count; i++) {
    const queue_unit *u = &q.units[i];
    if (u->stage != QUEUE_WAITS && u->stage != QUEUE_RUNS) continue;
    size_t at = count++;
    for (; at > 0 && queue_before(u, line[at - 1]); at--) line[at] = line[at - 1];
    line[at] = u;
  }
  for (size_t i = 0; items && line && i < first; i++) items[i].newest = false;
  for (size_t i = 0; items && line && i < count; i++) {
    const lab_unit *u = line[i]->of;
    items[first + i] = (policy_item){.number = t->next_commit + 1 + i,
                                     .name = u->name,
                                     .dir = u->name,
                                     .step = u->step,
                                     .time_ns = u->made_ns,
                                     .bytes = u->bytes,
                                     .metrics = u->metrics,
                                     .newest = i + 1 == count};
  }
  bool chosen = items && said && line && count > 1 &&
                policy_select(l->policy, POLICY_KEEP, t->name, items, first + count, &memory, said);
  for (size_t i = 0; line && i < count; i++)
    ((lab_unit *)line[i]->of)->kept = chosen && said[first + i].keep;
  if (!items || !said || !line) l->broken = true;
  free(items);
  free(said);
  free(line);
  free(memory);
}

void line_enter(lab *l, lab_trial *t, lab_unit *u) {
  u->phase = LAB_WAITS;
  u->kept = u->unwanted = false;
  u->tries = 0;
  u->next_try = l->now;
  queue q = line_of(l, t);
  queue_unit one = line_unit(u);
  if (queue_is_late(&q, &one, t->newest_place)) {
    line_drop(l, u, "not saved: a newer one is committed", true);
    return;
  }
  if (u->want.queue == POLICY_NEWEST) line_judge(l, t);
  q = line_of(l, t);
  one = line_unit(u);
  const queue_word word = queue_enter(&q, &one, u->want.queue);
  switch (word) {
  case QUEUE_ENTERS: break;
  case QUEUE_PUSHES: line_drop_older(l, t, u, false); break;
  case QUEUE_REFUSED:
  case QUEUE_PASSED: line_drop(l, u, queue_why_not(word), word == QUEUE_REFUSED); break;
  }
}

static bool may_come_back(const lab_unit *u) {
  return u->phase == LAB_DROPPED && !u->unwanted;
}

/* The next one of the line is newer than it, as a rule: that is where one is found soon. */
static bool comes_back(const queue *q, size_t at) {
  const queue_unit *one = &q->units[at];
  for (size_t i = 1; i < q->count; i++) {
    const queue_unit *k = &q->units[(at + i) % q->count];
    if (may_come_back(k->of) && queue_supersedes(k, one)) return false;
  }
  return !queue_too_late(q, one);
}

void line_take_back(lab *l, lab_trial *t) {
  bool moved = true; /* what the line is like is looked at again */
  queue q = {0};
  for (size_t i = 0; i < t->count; i++) {
    lab_unit *u = t->units[i];
    if (!may_come_back(u)) continue;
    if (moved) q = line_of(l, t);
    moved = comes_back(&q, i);
    if (moved) line_enter(l, t, u);
  }
}

void line_make_final(lab_trial *t, lab_unit *newer) {
  const queue_unit first = line_unit(newer);
  for (size_t i = 0; i < t->count; i++) {
    lab_unit *u = t->units[i];
    const queue_unit one = line_unit(u);
    if (u->phase == LAB_DROPPED && queue_supersedes(&first, &one)) u->phase = LAB_GONE;
  }
}
