#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "base/vec.h"
#include "lab/world.h"
#include "plan/retry.h"
#include "prims/match_series.h"
#include "why/trail.h"

static void unit_free(lab_unit *u) {
  if (!u) return;
  policy_asked_clear(u->asked);
  free(u->name);
  free(u->series);
  free(u->metrics);
  free(u);
}

void lab_trial_free(lab_trial *t) {
  for (size_t i = 0; i < t->count; i++) unit_free(t->units[i]);
  free(t->units);
  free(t->line);
  free(t->result);
  free(t->memory);
  free(t->memory_stored);
  lab_tries_free(t);
  lab_log_free(t);
}

static void note(lab *l, names *list, const lab_unit *u) {
  if (!names_add(list, u->name)) l->broken = true;
}

static bool is_waiting(const lab_unit *u) {
  return u->phase == LAB_WAITS;
}

/* ---- what the rules of the queue see ---- */

static queue_stage stage_of(const lab_unit *u) {
  if (u->phase == LAB_WAITS) return QUEUE_WAITS;
  if (u->phase == LAB_RUNS) return QUEUE_RUNS;
  return u->phase == LAB_STORED ? QUEUE_STORED : QUEUE_AWAY;
}

/* Each is whole: it is told when it is. */
static queue_unit line_unit(lab_unit *u) {
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
    if (!is_waiting(t->units[i])) continue;
    double takes = deadline_takes(&t->pace, t->units[i]->bytes);
    if (takes < 0) return -1;
    sum += takes;
  }
  return sum;
}

static queue line_of(const lab *l, const lab_trial *t) {
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
  if (is_waiting(u)) {
    l->sum->let_go++;
    note(l, &l->news.let_go, u);
  }
  u->phase = LAB_GONE;
}

/* A save that runs goes on with what it has: it reads a copy. A trial's own directory that waits does so
 * until it is wanted again: it is written all the time. */
static void replace(lab *l, const lab_trial *t, const char *name) {
  for (size_t i = 0; i < t->count; i++) {
    lab_unit *u = t->units[i];
    const bool stays =
        u->phase == LAB_RUNS || u->phase == LAB_STORED || (u->in_place && is_waiting(u));
    if (!stays && strcmp(u->name, name) == 0) go(l, u);
  }
}

/* The one that waits goes for a newer one of itself, which is wanted. */
static void replace_waiting(lab *l, const lab_trial *t, const lab_unit *by) {
  for (size_t i = 0; by->in_place && i < t->count; i++) {
    lab_unit *u = t->units[i];
    if (u != by && is_waiting(u) && strcmp(u->name, by->name) == 0) go(l, u);
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
      unit_free(u);
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

/* ---- facts ---- */

static double seconds_of(int64_t ns) {
  return ns > 0 ? (double)ns / 1e9 : 0;
}

static void time_facts(const lab *l, const lab_trial *t, policy_facts *f) {
  f->job.seconds = seconds_of(l->now - t->job_ns);
  f->job.left = t->limit_s;
  if (t->limit_s >= 0) f->job.left = t->limit_s > f->job.seconds ? t->limit_s - f->job.seconds : 0;
  f->saves.seconds = -1;
  f->saves.spent = t->spent_s + (t->save ? seconds_of(l->now - t->begun_at) : 0);
}

static policy_facts facts_of(const lab *l, const lab_trial *t, const char *event) {
  policy_facts f = {.event = event,
                    .group = t->name,
                    .result = t->result,
                    .results = t->results,
                    .running = t->save != NULL,
                    .commits = lab_live(t),
                    .grace_s = t->preempted ? (double)(t->end_at - l->now) / 1e9 : 0};
  f.since.results = t->since_results;
  f.since.checkpoints = t->since_checkpoints;
  f.since.bytes = t->since_bytes;
  f.since.seconds = t->saved_ns ? (double)(l->now - t->saved_ns) / 1e9 : -1;
  for (size_t i = 0; i < t->count; i++) f.waiting += is_waiting(t->units[i]);
  time_facts(l, t, &f);
  return f;
}

static detect_unit seen(const lab_trial *t, const lab_unit *u) {
  return (detect_unit){.path = u->name,
                       .group = t->name,
                       .name = u->name,
                       .kind = MATCH_DIR,
                       .step = u->step,
                       .state = DETECT_COMPLETE,
                       .reason = "it is told to be complete",
                       .in_place = u->in_place,
                       .files = 1,
                       .bytes = u->bytes,
                       .changed_ns = u->made_ns,
                       .made_ns = u->made_ns};
}

/* ---- the queue ---- */

static void drop(lab *l, lab_unit *u, const char *reason, bool unwanted) {
  u->phase = LAB_DROPPED;
  u->unwanted = unwanted;
  snprintf(u->want.reason, sizeof u->want.reason, "%s", reason);
  l->sum->let_go++;
  note(l, &l->news.let_go, u);
}

static void drop_older(lab *l, lab_trial *t, lab_unit *newer, bool all) {
  const queue_unit first = line_unit(newer);
  queue q = line_of(l, t);
  for (size_t i = 0; i < q.count; i++) {
    if (!queue_goes(&q, &first, &q.units[i], all)) continue;
    drop(l, q.units[i].of, queue_why_it_goes(&q), false);
    if (t->preempted) q.takes_s = takes_all(l, t);
  }
}

/* Puts those that are sent or wait behind the commits, in their order, and asks `keep` what it would
 * say then; what it remembers is not changed. */
static void judge(lab *l, lab_trial *t) {
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

static void enqueue(lab *l, lab_trial *t, lab_unit *u) {
  u->phase = LAB_WAITS;
  u->kept = u->unwanted = false;
  u->tries = 0;
  u->next_try = l->now;
  queue q = line_of(l, t);
  queue_unit one = line_unit(u);
  if (queue_is_late(&q, &one, t->newest_place)) {
    drop(l, u, "not saved: a newer one is committed", true);
    return;
  }
  if (u->want.queue == POLICY_NEWEST) judge(l, t);
  q = line_of(l, t);
  one = line_unit(u);
  const queue_word word = queue_enter(&q, &one, u->want.queue);
  switch (word) {
  case QUEUE_ENTERS: break;
  case QUEUE_PUSHES: drop_older(l, t, u, false); break;
  case QUEUE_REFUSED:
  case QUEUE_PASSED: drop(l, u, queue_why_not(word), word == QUEUE_REFUSED); break;
  }
}

static bool comes_back(const lab *l, const lab_trial *t, lab_unit *u) {
  const queue q = line_of(l, t);
  const queue_unit one = line_unit(u);
  if (u->phase != LAB_DROPPED || u->unwanted || queue_too_late(&q, &one)) return false;
  for (size_t i = 0; i < q.count; i++) {
    const lab_unit *k = q.units[i].of;
    if (k->phase == LAB_DROPPED && !k->unwanted && queue_supersedes(&q.units[i], &one))
      return false;
  }
  return true;
}

/* Those that were let go for one that did not make it. */
static void take_back(lab *l, lab_trial *t) {
  for (size_t i = 0; i < t->count; i++) {
    if (comes_back(l, t, t->units[i])) enqueue(l, t, t->units[i]);
  }
}

/* ---- decisions ---- */

static void core_skips(decision *want, const char *reason) {
  *want = (decision){.action = POLICY_SKIP};
  snprintf(want->policy, sizeof want->policy, "builtin");
  snprintf(want->reason, sizeof want->reason, "%s", reason);
}

static void ask(lab *l, lab_trial *t, lab_unit *u, const char *event) {
  enum { GRAIN_NS = 1000000 };
  int64_t ns;
  policy_facts f = facts_of(l, t, event);
  const detect_unit unit = seen(t, u);
  f.unit = &unit;
  f.saves.seconds = deadline_takes(&t->pace, u->bytes);
  f.kind = u->kind;
  f.metrics = u->metrics;
  f.asked = u->asked;
  l->sum->questions++;
  policy_decide(l->policy, &f, &t->memory, &u->want);
  /* A trial's directory is asked about when something happens, as tuners ask their callbacks. */
  bool held = !u->in_place && (u->want.action == POLICY_SKIP || u->want.action == POLICY_WAIT);
  u->ask_at = 0;
  if (held && u->want.again_s > 0 && seconds_to_ns(u->want.again_s, "again", &ns, NULL) == 0)
    u->ask_at = seconds_later(seconds_later(l->now, ns), GRAIN_NS);
}

/* Of several, the last that is to be saved is told, else the last. */
static void tell(lab *l, const lab_unit *u) {
  lab_news *n = &l->news;
  if (!l->answers || (n->sync && u->phase != LAB_WAITS)) return;
  n->asked = true;
  n->sync = u->phase == LAB_WAITS;
  snprintf(n->unit, sizeof n->unit, "%s", u->name);
  snprintf(n->policy, sizeof n->policy, "%s", u->want.policy);
  snprintf(n->reason, sizeof n->reason, "%s", u->want.reason);
}

void lab_consider(lab *l, lab_trial *t, lab_unit *u, const char *event) {
  if (strcmp(u->kind, "null") == 0)
    core_skips(&u->want, TRAIL_SAYS_NULL);
  else if (strcmp(u->kind, "temp") == 0)
    core_skips(&u->want, TRAIL_SAYS_TEMP);
  else if (t->preempted && t->rest == POLICY_REST_NONE)
    core_skips(&u->want, "the policy wants nothing saved when time is short");
  else
    ask(l, t, u, event);
  u->phase = LAB_HELD;
  if (u->want.action == POLICY_SAVE || u->want.action == POLICY_SAVE_IF_SOUND) {
    lab_tell(l, t, LAB_WANTED, u->name, u->id, 0);
    replace_waiting(l, t, u);
    enqueue(l, t, u);
  }
  tell(l, u);
}

void lab_reconsider(lab *l, lab_trial *t, const char *event) {
  bool all = t->preempted && t->rest == POLICY_REST_ALL;
  queue q = line_of(l, t);
  for (size_t i = 0; i < t->count; i++) {
    lab_unit *u = t->units[i];
    if (u->phase != LAB_HELD) continue;
    const queue_unit one = line_unit(u);
    if (!all && queue_is_outdone(&q, &one)) continue;
    lab_consider(l, t, u, event);
    q = line_of(l, t);
  }
}

void lab_preempt(lab *l, lab_trial *t, double grace_s) {
  int64_t ns = 0;
  seconds_to_ns(grace_s, "grace", &ns, NULL);
  t->preempted = true;
  if (!t->over) t->idle_ns = l->now;
  t->end_at = seconds_later(l->now, ns);
  t->rest = POLICY_REST_FIT;
  if (policy_has(l->policy, POLICY_ON_PREEMPT)) {
    const policy_facts f = facts_of(l, t, "preempt");
    t->rest = policy_preempt(l->policy, &f, &t->memory);
  }
  lab_reconsider(l, t, "preempt");
  const queue q = line_of(l, t);
  const bool some =
      t->rest == POLICY_REST_NEWEST || (t->rest == POLICY_REST_FIT && !queue_fits(&q));
  if (some) judge(l, t);
  for (size_t i = 0; i < t->count; i++) {
    lab_unit *u = t->units[i];
    if (is_waiting(u) && t->rest == POLICY_REST_NONE)
      drop(l, u, "the policy wants nothing saved when time is short", true);
    if (is_waiting(u) && some) drop_older(l, t, u, true);
    if (is_waiting(u)) u->next_try = l->now;
  }
}

/* ---- saves ---- */

/* What is told of this very save; else what holds for all, the bandwidth that was asked for, and the
 * pace of those that are told. */
static double takes(const lab *l, const lab_trial *t, const lab_unit *u, const lab_event *told) {
  if (told) return told->transfer_s;
  if (t->transfer_s >= 0) return t->transfer_s;
  if (l->o->bandwidth > 0) return (double)u->bytes / l->o->bandwidth;
  double pace = lab_tries_pace(t, u->bytes);
  return pace > 0 ? pace : 0;
}

static void begin(lab *l, lab_trial *t, lab_unit *u) {
  const lab_event *told = lab_tries_next(t, u->name);
  int64_t ns = 0;
  if (seconds_to_ns(takes(l, t, u, told), "transfer", &ns, NULL) < 0) ns = SECONDS_FOREVER;
  t->ends = !told ? LAB_AS_BEFORE : told->outcome == LAB_FAIL ? LAB_FAIL : LAB_OK;
  t->since_results = t->since_checkpoints = t->since_bytes = 0;
  t->saved_ns = t->begun_at = l->now;
  t->save = u;
  t->sent_at = seconds_later(l->now, ns);
  u->phase = LAB_RUNS;
}

static void hook(lab *l, lab_trial *t, const lab_unit *u, policy_hook hook, const char *event) {
  if (!policy_has(l->policy, hook)) return;
  policy_facts f = facts_of(l, t, event);
  const detect_unit unit = seen(t, u);
  f.unit = &unit;
  f.kind = u->kind;
  f.tries = u->tries;
  if (hook == POLICY_ON_FAILED) f.status = ERR_TIMEOUT, f.text = "the transfer failed";
  policy_tell(l->policy, hook, &f, &t->memory);
}

static void remember(lab *l, lab_trial *t) {
  free(t->memory_stored);
  t->memory_stored = t->memory ? strdup(t->memory) : NULL;
  if (t->memory && !t->memory_stored) l->broken = true;
}

static void make_final(lab_trial *t, lab_unit *newer) {
  const queue_unit first = line_unit(newer);
  for (size_t i = 0; i < t->count; i++) {
    lab_unit *u = t->units[i];
    const queue_unit one = line_unit(u);
    if (u->phase == LAB_DROPPED && queue_supersedes(&first, &one)) u->phase = LAB_GONE;
  }
}

static void committed(lab *l, lab_trial *t, lab_unit *u) {
  deadline_note(&t->pace, u->bytes, l->now - t->begun_at);
  u->phase = LAB_STORED;
  lab_commit(l, t, u);
  lab_tell(l, t, LAB_SAVED, u->name, u->id, 0);
  note(l, &l->news.saved, u);
  remember(l, t);
  hook(l, t, u, POLICY_ON_COMMITTED, "committed");
  if (queue_is_later(u->place, t->newest_place)) t->newest_place = u->place;
  if (u->made_ns > t->since_ns) t->since_ns = u->made_ns;
  for (size_t i = 0; i < t->count; i++) {
    const queue_unit one = line_unit(t->units[i]);
    if (one.stage == QUEUE_WAITS && queue_is_before(&one, t->newest_place))
      drop(l, t->units[i], "not saved: a newer one is committed", true);
  }
  drop_older(l, t, u, true);
  make_final(t, u);
}

static void failed(lab *l, lab_trial *t, lab_unit *u) {
  int64_t pause;
  retry_facts f = {
      .status = ERR_TIMEOUT, .tries = ++u->tries, .most = LAB_TRIES, .short_of_time = t->preempted};
  l->sum->failed++;
  note(l, &l->news.failed, u);
  t->pace = (deadline_pace){0};
  if (policy_has(l->policy, POLICY_ON_ERROR)) {
    policy_facts facts = facts_of(l, t, "error");
    const detect_unit unit = seen(t, u);
    facts.unit = &unit;
    facts.kind = u->kind;
    facts.tries = u->tries;
    facts.status = ERR_TIMEOUT;
    facts.text = "the transfer failed";
    f.remedy = policy_on_error(l->policy, &facts, &t->memory, &f.seconds);
  }
  if (retry_again(&f, &pause)) {
    u->phase = LAB_WAITS;
    u->next_try = seconds_later(l->now, pause);
    return;
  }
  u->phase = LAB_FAILED;
  l->sum->unsaved++;
  hook(l, t, u, POLICY_ON_FAILED, "failed");
}

static void end_save(lab *l, lab_trial *t) {
  lab_unit *u = t->save;
  t->save = NULL;
  t->spent_s += seconds_of(l->now - t->begun_at);
  if (t->ends == LAB_AS_BEFORE ? t->fails : t->ends == LAB_FAIL)
    failed(l, t, u);
  else
    committed(l, t, u);
  take_back(l, t);
}

static lab_unit *next_of(const lab *l, const lab_trial *t) {
  bool any = false;
  for (size_t i = 0; !any && i < t->count; i++) any = is_waiting(t->units[i]);
  if (!any) return NULL;
  const queue q = line_of(l, t);
  ptrdiff_t at = t->save ? QUEUE_NONE : queue_next(&q, l->now);
  return at < 0 ? NULL : q.units[at].of;
}

void lab_begin(lab *l, lab_trial *t) {
  if (t->begun && !t->over) return;
  const runlog_commit *newest = runlog_newest(&t->log, NULL);
  t->begun = true;
  t->over = t->preempted = false;
  t->since_ns = t->job_ns = l->since_ns ? l->since_ns : l->now;
  if (l->since_ns) t->limit_s = l->limit_s;
  t->spent_s = 0;
  t->resumed = newest ? newest->n : RUNLOG_NONE;
  t->results = l->results;
  t->since_results = t->since_checkpoints = t->since_bytes = 0;
  t->saved_ns = 0;
  free(t->result);
  t->result = l->result ? strdup(l->result) : NULL;
  if (l->result && !t->result) l->broken = true;
}

static void lose(lab *l, lab_trial *t) {
  const int64_t worked_ns = t->over || t->preempted ? t->idle_ns : l->now;
  double lost = (double)(worked_ns - t->since_ns) / 1e9;
  if (lost > 0) l->news.lost_s += lost;
  lab_tell(l, t, LAB_LOST, NULL, 0, lost > 0 ? lost : 0);
  for (size_t i = 0; i < t->count; i++) {
    lab_unit *u = t->units[i];
    l->sum->unsaved += u->phase == LAB_WAITS || u->phase == LAB_RUNS;
    u->phase = LAB_GONE;
  }
  t->save = NULL;
  t->begun = t->preempted = t->over = false;
  t->pace = (deadline_pace){0};
  free(t->memory);
  t->memory = t->memory_stored ? strdup(t->memory_stored) : NULL;
  if (t->memory_stored && !t->memory) l->broken = true;
}

void lab_lose(lab *l, lab_trial *t) {
  const bool busy = lab_pending(t) > 0;
  if (t->begun && (!t->over || busy)) lose(l, t);
  t->preempted = false;
}

uint64_t lab_pending(const lab_trial *t) {
  uint64_t pending = 0;
  for (size_t i = 0; i < t->count; i++)
    pending += is_waiting(t->units[i]) || t->units[i]->phase == LAB_RUNS;
  return pending;
}

/* ---- in time ---- */

static void ask_in_time(lab *l, lab_trial *t) {
  for (size_t i = 0; i < t->count; i++) {
    lab_unit *u = t->units[i];
    if (u->phase != LAB_HELD || !u->ask_at || u->ask_at > l->now) continue;
    u->ask_at = 0;
    l->alarms++;
    const queue q = line_of(l, t);
    const queue_unit one = line_unit(u);
    if (!queue_is_outdone(&q, &one)) lab_consider(l, t, u, "time");
  }
}

void lab_step(lab *l, lab_trial *t) {
  if (t->save && t->sent_at <= l->now) end_save(l, t);
  if (t->preempted && t->end_at <= l->now) {
    lab_lose(l, t);
    return;
  }
  ask_in_time(l, t);
  lab_unit *next = next_of(l, t);
  if (next && next->next_try <= l->now) {
    begin(l, t, next);
    if (t->sent_at <= l->now) return; /* its end is due first */
  }
  if (!t->save && !t->preempted && (t->keep_asked || t->keep_at <= l->now)) lab_keep(l, t);
}

int64_t lab_due(const lab *l, const lab_trial *t, bool draining) {
  int64_t due = t->save ? t->sent_at : INT64_MAX;
  const lab_unit *next = next_of(l, t);
  if (next && next->next_try < due) due = next->next_try;
  if (!t->save && !t->preempted) {
    if (t->keep_asked) due = due < l->now ? due : l->now;
    if (t->keep_at < due && !draining) due = t->keep_at;
  }
  if (t->preempted && t->end_at < due) due = t->end_at;
  for (size_t i = 0; !draining && i < t->count; i++) {
    const lab_unit *u = t->units[i];
    if (u->phase == LAB_HELD && u->ask_at && u->ask_at < due) due = u->ask_at;
  }
  return due;
}
