#include "simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "base/vec.h"
#include "lab/trace.h"
#include "lab/world.h"

static const int64_t beginning_ns = LAB_BEGINNING_S * SECOND_NS;

void lab_tell(const lab *l, const lab_trial *t, lab_turn what, const char *name, uint64_t id,
              double lost_s) {
  if (!l->o->moment) return;
  l->o->moment(l->o->moment_ctx, &(lab_moment){.what = what,
                                               .t = (double)(l->now - beginning_ns) / 1e9,
                                               .of = (uint64_t)(t - l->trials),
                                               .trial = t->name,
                                               .name = name,
                                               .checkpoint = id,
                                               .lost_s = lost_s});
}

/* ---- trials ---- */

static lab_trial *trial_of(lab *l, const char *name) {
  return vec_find(name, l->trials, l->trial_count, sizeof *l->trials, vec_by_text);
}

static int make_trials(lab *l, const lab_history *h, err *e) {
  names all = {0};
  bool whole = true, recorded = false; /* a run that is recorded names each checkpoint */
  for (size_t i = 0; i < h->count; i++)
    recorded = recorded || strcmp(h->events[i].trial, LAB_EACH) == 0;
  for (size_t i = 0; whole && i < h->count; i++)
    if (!h->events[i].of_each &&
        (i == 0 || strcmp(h->events[i].trial, h->events[i - 1].trial) != 0))
      whole = names_add(&all, h->events[i].trial);
  names_sort_unique(&all);
  l->trials = calloc(all.count + 1, sizeof *l->trials);
  for (size_t i = 0; whole && l->trials && i < h->count; i++) {
    const lab_event *event = &h->events[i];
    if (event->of_each) continue;
    size_t at = vec_place(event->trial, all.at, all.count, sizeof *all.at, vec_by_text, NULL);
    lab_trial *t = &l->trials[at];
    t->name = event->trial; /* any of them: they are equal, and live as long */
    t->names = t->names || event->name || recorded;
    if (event->what == LAB_TRANSFER) whole = lab_tries_note(t, event);
  }
  l->trial_count = l->trials ? all.count : 0;
  for (size_t i = 0; i < l->trial_count; i++) {
    lab_trial *t = &l->trials[i];
    t->transfer_s = t->limit_s = -1;
    t->keep_at = INT64_MAX;
    t->resumed = RUNLOG_NONE;
  }
  names_free(&all);
  return whole && l->trials ? 0 : err_set(e, ERR_NOMEM, "simulate: out of memory");
}

/* ---- what is told ---- */

typedef struct telling {
  lab *l;
  lab_told_fn *fn;
  void *ctx;
  bool any; /* an event stands that was not told yet: */
  lab_told told;
  int status;
} telling;

static void news_free(lab_news *n) {
  names_free(&n->saved);
  names_free(&n->failed);
  names_free(&n->remedies);
  names_free(&n->let_go);
  names_free(&n->deleted);
  names_free(&n->restored);
  *n = (lab_news){0};
}

/* Where nobody was asked. */
static const char *why_not(const lab_event *event) {
  if (!event) return "what was not in the store is lost, and it goes on from there";
  switch (event->what) {
  case LAB_START: return "it begins";
  case LAB_CHECKPOINT: return "it is in memory: there is nothing to save";
  case LAB_ERROR: return "it failed: what waits is sent all the same";
  case LAB_TRANSFER: return "how a save of it went is told";
  case LAB_CRASH: return "what was not in the store is lost";
  case LAB_RESULT:
  case LAB_COMPLETE:
  case LAB_PREEMPT:
  case LAB_END:
  case LAB_WHATS: break;
  }
  return "no checkpoint is held back";
}

static void stand(telling *g, int64_t i, const lab_event *event) {
  g->any = true;
  g->told = (lab_told){.i = i,
                       .t = (double)(g->l->now - beginning_ns) / 1e9,
                       .event = lab_word(event ? event->what : LAB_CRASH),
                       .trial = event ? event->trial : "",
                       .reason = why_not(event)};
}

/* Tells the event that stands, now that the next one comes. */
static bool tell(telling *g) {
  lab_news *n = &g->l->news;
  lab_told *told = &g->told;
  if (g->any && g->status == 0) {
    told->asked = n->asked;
    told->sync = n->sync;
    told->unit = n->unit;
    told->policy = n->policy;
    if (n->asked) told->reason = n->reason;
    told->saved = names_list(&n->saved);
    told->failed = names_list(&n->failed);
    told->remedies = names_list(&n->remedies);
    told->let_go = names_list(&n->let_go);
    told->deleted = names_list(&n->deleted);
    told->restored = names_list(&n->restored);
    told->lost_s = n->lost_s;
    g->l->sum->lost_s += n->lost_s;
    g->status = g->fn ? g->fn(g->ctx, told) : 0;
  }
  g->any = false;
  news_free(n);
  return g->status == 0;
}

/* ---- time ---- */

/* Does all that is due up to that moment; `draining`: what is under way ends, and no more begins. */
static int advance(lab *l, int64_t until, bool draining, err *e) {
  for (;;) {
    lab_trial *next = NULL;
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < l->trial_count; i++) {
      int64_t at = lab_due(l, &l->trials[i], draining);
      if (at < due) due = at, next = &l->trials[i];
    }
    if (!next || due > until) return 0;
    if (due > l->now) l->now = due;
    lab_step(l, next);
    if (l->broken) return err_set(e, ERR_NOMEM, "simulate: out of memory");
    if (l->alarms > LAB_ALARMS_MAX)
      return err_set(e, ERR_LIMIT,
                     "between two events a policy was asked %d times because it had named the "
                     "time: let it name a later one",
                     LAB_ALARMS_MAX);
  }
}

/* ---- events ---- */

/* A trial that names no checkpoint counts as one itself. */
static void ask_again(lab *l, lab_trial *t, const lab_event *event, const char *why) {
  lab_unit *u = t->names ? NULL : lab_unit_new(l, t, event);
  if (u)
    lab_consider(l, t, u, why);
  else
    lab_reconsider(l, t, why);
}

static void stop_trial(const lab *l, lab_trial *t) {
  if (t->over) return;
  t->over = true;
  if (!t->preempted) t->idle_ns = l->now;
}

static void end_trial(lab *l, lab_trial *t, const lab_event *event) {
  if (!t->begun || t->over) return;
  stop_trial(l, t);
  ask_again(l, t, event, "end");
}

/* How far the training is: what is told beside another event counts as no result. */
static void note_numbers(lab *l, lab_trial *t, const char *numbers) {
  char *copy = strdup(numbers);
  if (!copy) l->broken = true;
  free(t->result);
  t->result = copy;
}

static void take_result(lab *l, lab_trial *t, const lab_event *event) {
  note_numbers(l, t, event->result);
  t->results++;
  t->since_results++;
  lab_result_named(l, t, event->result);
  ask_again(l, t, event, "result");
}

/* Those beside a checkpoint are of a result just before it; those of `end`, which is all trials', are
 * nobody's. */
static void take_numbers(lab *l, lab_trial *t, const lab_event *event) {
  if (!event->result || event->what == LAB_END) return;
  if (event->what == LAB_RESULT || event->what == LAB_CHECKPOINT)
    take_result(l, t, event);
  else
    note_numbers(l, t, event->result);
}

static void take_checkpoint(lab *l, lab_trial *t, const lab_event *event) {
  if (strcmp(event->kind, "memory") == 0) return;
  lab_unit *u = lab_unit_new(l, t, event);
  if (!u) return;
  t->since_checkpoints++;
  lab_add(&t->since_bytes, u->bytes);
  lab_consider(l, t, u, t->over ? "end" : t->preempted ? "preempt" : "complete");
}

/* What ends a trial begins none anew that is over, and neither does a checkpoint that is complete only
 * then; what is no trial's own begins none. */
static bool begins(const lab_trial *t, lab_what what) {
  bool anew = what == LAB_START || what == LAB_RESULT;
  return what != LAB_CRASH && what != LAB_END && (anew || !t->over);
}

/* A start of its own that does not say it knows no limit; one that stands beside the start of all trials
 * has the one of that. */
static void take_limit(const lab *l, lab_trial *t, const lab_event *event, bool anew) {
  if (event->limit_s >= 0)
    t->limit_s = event->limit_s + (double)(l->now - t->job_ns) / 1e9;
  else if (anew && !l->since_ns)
    t->limit_s = -1;
}

static void take_of(lab *l, lab_trial *t, const lab_event *event) {
  if (event->transfer_s >= 0) t->transfer_s = event->transfer_s;
  if (event->outcome != LAB_AS_BEFORE) t->fault = event->outcome == LAB_FAIL ? event->fault : 0;
  const bool anew = !t->begun || t->over;
  if (begins(t, event->what)) lab_begin(l, t);
  take_numbers(l, t, event);
  switch (event->what) {
  case LAB_START: take_limit(l, t, event, anew); break;
  case LAB_RESULT:
  case LAB_CHECKPOINT:
    if (event->makes) take_checkpoint(l, t, event);
    break;
  case LAB_COMPLETE: end_trial(l, t, event); break;
  case LAB_ERROR: stop_trial(l, t); break;
  case LAB_PREEMPT:
    if (!t->names && !t->over) lab_unit_new(l, t, event);
    lab_preempt(l, t, event->grace_s);
    break;
  case LAB_CRASH: lab_lose(l, t); break;
  case LAB_END: end_trial(l, t, event); break;
  case LAB_TRANSFER:
  case LAB_WHATS: break;
  }
}

/* What comes from all trials' job: a trial that begins later knows it, too. */
static void take_of_each(lab *l, const lab_event *event) {
  const bool anew = event->what == LAB_START;
  if (anew) l->since_ns = l->now, l->limit_s = event->limit_s;
  if (anew || event->what == LAB_CRASH) l->results = 0, l->result = NULL;
  if (event->what == LAB_RESULT) l->results++, l->result = event->result;
  for (size_t i = 0; i < l->trial_count && !anew; i++)
    if (l->trials[i].begun) take_of(l, &l->trials[i], event);
}

static void take(lab *l, const lab_event *event) {
  const bool of_each = event->of_each;
  if (event->what == LAB_CRASH) l->sum->crashes++;
  if (event->what == LAB_TRANSFER) return; /* it was looked up when that save began */
  if (of_each) take_of_each(l, event);
  for (size_t i = 0; !of_each && event->what == LAB_END && i < l->trial_count; i++)
    take_of(l, &l->trials[i], event);
  if (!of_each && event->what != LAB_END) take_of(l, trial_of(l, event->trial), event);
}

/* ---- invented failures ---- */

/* splitmix64: the same failures on each machine. */
static uint64_t draw(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/* The natural logarithm of a number above 0, to 1: without the machine's own, of which each has
 * another last digit. */
static double ln(double x) {
  const double ln2 = 0.6931471805599453;
  int halved = 0;
  while (x < 0.5) {
    x *= 2;
    halved++;
  }
  double z = (x - 1) / (x + 1), power = z, sum = 0;
  for (int k = 1; k < 40; k += 2, power *= z * z) sum += power / k;
  return 2 * sum - halved * ln2;
}

static int64_t next_failure(const lab_options *o, uint64_t *state, int64_t after_ns) {
  int64_t ns;
  if (o->mtbf_s <= 0) return INT64_MAX;
  double u = ((double)(draw(state) >> 11) + 1) / 9007199254740992.0; /* above 0, to 1 */
  if (seconds_to_ns(-ln(u) * o->mtbf_s, "mtbf", &ns, NULL) < 0) return INT64_MAX;
  return seconds_later(after_ns, ns > 0 ? ns : 1);
}

static void fail_all(lab *l) {
  l->sum->crashes++;
  if (l->since_ns) l->since_ns = l->now;
  l->results = 0;
  l->result = NULL;
  for (size_t i = 0; i < l->trial_count; i++) {
    lab_trial *t = &l->trials[i];
    bool goes_on = t->begun && !t->over && !t->preempted;
    lab_lose(l, t);
    if (goes_on) lab_begin(l, t);
  }
}

/* ---- the whole ---- */

static int play(lab *l, telling *g, const lab_history *h, err *e) {
  uint64_t state = l->o->seed;
  int64_t failure = h->count ? next_failure(l->o, &state, l->now + h->events[0].at_ns) : INT64_MAX;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < h->count; i++) {
    const int64_t at = beginning_ns + h->events[i].at_ns;
    while (rc == 0 && failure < at) {
      rc = advance(l, failure, false, e);
      if (rc < 0 || !tell(g)) return rc;
      l->now = failure;
      if (l->sum->crashes >= LAB_EVENTS_MAX)
        return err_set(e, ERR_LIMIT, "these are more than %d failures: say a longer mtbf",
                       LAB_EVENTS_MAX);
      stand(g, -1, NULL);
      fail_all(l);
      failure = next_failure(l->o, &state, failure);
    }
    if (rc == 0) rc = advance(l, at, false, e);
    if (rc < 0 || !tell(g)) return rc;
    l->now = at;
    stand(g, (int64_t)i, &h->events[i]);
    l->alarms = 0;
    l->answers = true;
    take(l, &h->events[i]);
    l->answers = false;
    l->sum->events++;
    if (l->broken) rc = err_set(e, ERR_NOMEM, "simulate: out of memory");
  }
  if (rc == 0) rc = advance(l, INT64_MAX, true, e);
  if (rc == 0) tell(g);
  return rc;
}

static void add_up(lab *l, const lab_history *h) {
  lab_sum *sum = l->sum;
  for (size_t i = 0; i < l->trial_count; i++) sum->kept += lab_live(&l->trials[i]);
  for (size_t i = 0; i < l->trial_count; i++) sum->unsaved += lab_pending(&l->trials[i]);
  sum->bytes_kept = l->bytes_kept;
  sum->fallbacks = policy_fallbacks(l->policy);
  if (h->count) sum->seconds = (double)(l->now - beginning_ns - h->events[0].at_ns) / 1e9;
}

static void lab_free(lab *l) {
  for (size_t i = 0; i < l->trial_count; i++) lab_trial_free(&l->trials[i]);
  free(l->trials);
  news_free(&l->news);
  policy_close(l->policy);
}

/* Of a trace. */
static int find_checkpoints(const lab *l, lab_history *h, err *e) {
  const trace_rules by = {policy_rules(l->policy), policy_null_marker(l->policy),
                          policy_temp_marker(l->policy)};
  return lab_trace_play(h, l->o->events, &by, l->o->log, e);
}

int lab_simulate(const lab_options *o, lab_told_fn *fn, void *ctx, lab_sum *sum, err *e) {
  lab_history h = {0};
  lab l = {0};
  telling g = {.l = &l, .fn = fn, .ctx = ctx};
  *sum = (lab_sum){0};
  int rc = lab_history_read(o->io, o->events, &h, e);
  if (rc == 0 && h.torn)
    log_say(o->log, LOG_WARN, "%s:%zu: the last line was cut while it was written, and is left out",
            o->events, h.torn);
  if (rc == 0) rc = lab_open(&l, o, sum, e);
  if (rc == 0) rc = find_checkpoints(&l, &h, e);
  l.now = beginning_ns;
  if (rc == 0) rc = make_trials(&l, &h, e);
  if (rc == 0) rc = play(&l, &g, &h, e);
  if (rc == 0) add_up(&l, &h);
  lab_free(&l);
  lab_history_free(&h);
  return rc == 0 ? g.status : rc;
}
