#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "lab/line.h"
#include "plan/retry.h"
#include "why/trail.h"

void lab_trial_free(lab_trial *t) {
  for (size_t i = 0; i < t->count; i++) line_unit_free(t->units[i]);
  free(t->units);
  free(t->line);
  free(t->result);
  free(t->memory);
  free(t->memory_stored);
  lab_tries_free(t);
  lab_log_free(t);
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
  for (size_t i = 0; i < t->count; i++) f.waiting += line_waits(t->units[i]);
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
  else if (t->stopped)
    core_skips(&u->want, t->stopped);
  else if (t->preempted && t->rest == POLICY_REST_NONE)
    core_skips(&u->want, "the policy wants nothing saved when time is short");
  else
    ask(l, t, u, event);
  u->phase = LAB_HELD;
  if (u->want.action == POLICY_SAVE || u->want.action == POLICY_SAVE_IF_SOUND) {
    lab_tell(l, t, LAB_WANTED, u->name, u->id, 0);
    line_replace_waiting(l, t, u);
    line_enter(l, t, u);
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
  if (some) line_judge(l, t);
  for (size_t i = 0; i < t->count; i++) {
    lab_unit *u = t->units[i];
    if (line_waits(u) && t->rest == POLICY_REST_NONE)
      line_drop(l, u, "the policy wants nothing saved when time is short", true);
    if (line_waits(u) && some) line_drop_older(l, t, u, true);
    if (line_waits(u)) u->next_try = l->now;
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
  t->ends_by = told ? told->fault : 0;
  t->since_results = t->since_checkpoints = t->since_bytes = 0;
  t->saved_ns = t->begun_at = l->now;
  t->save = u;
  t->sent_at = seconds_later(l->now, ns);
  u->phase = LAB_RUNS;
}

static const char *fault_text(int fault) {
  return fault == ERR_TIMEOUT ? "the transfer failed" : err_text(fault);
}

static void hook(lab *l, lab_trial *t, const lab_unit *u, policy_hook hook, const char *event) {
  if (!policy_has(l->policy, hook)) return;
  policy_facts f = facts_of(l, t, event);
  const detect_unit unit = seen(t, u);
  f.unit = &unit;
  f.kind = u->kind;
  f.tries = u->tries;
  if (hook == POLICY_ON_FAILED) f.status = u->fault, f.text = fault_text(u->fault);
  policy_tell(l->policy, hook, &f, &t->memory);
}

static void remember(lab *l, lab_trial *t) {
  free(t->memory_stored);
  t->memory_stored = t->memory ? strdup(t->memory) : NULL;
  if (t->memory && !t->memory_stored) l->broken = true;
}

static void committed(lab *l, lab_trial *t, lab_unit *u) {
  deadline_note(&t->pace, u->bytes, l->now - t->begun_at);
  u->phase = LAB_STORED;
  lab_commit(l, t, u);
  lab_tell(l, t, LAB_SAVED, u->name, u->id, 0);
  line_note(l, &l->news.saved, u);
  remember(l, t);
  hook(l, t, u, POLICY_ON_COMMITTED, "committed");
  if (queue_is_later(u->place, t->newest_place)) t->newest_place = u->place;
  if (u->made_ns > t->since_ns) t->since_ns = u->made_ns;
  for (size_t i = 0; i < t->count; i++) {
    const queue_unit one = line_unit(t->units[i]);
    if (one.stage == QUEUE_WAITS && queue_is_before(&one, t->newest_place))
      line_drop(l, t->units[i], "not saved: a newer one is committed", true);
  }
  line_drop_older(l, t, u, true);
  line_make_final(t, u);
}

static void give_up(lab *l, lab_unit *u) {
  u->phase = LAB_FAILED;
  l->sum->unsaved++;
}

/* Nothing is saved any more until its job begins anew. What waits is let go, if that is the policy's word. */
static void stop_saving(lab *l, lab_trial *t, const char *why, bool by_policy) {
  t->stopped = why;
  for (size_t i = 0; i < t->count; i++) {
    if (!line_waits(t->units[i])) continue;
    if (by_policy)
      line_drop(l, t->units[i], why, true);
    else
      give_up(l, t->units[i]);
  }
}

static policy_remedy remedy_of(lab *l, lab_trial *t, const lab_unit *u, double *seconds) {
  if (!policy_has(l->policy, POLICY_ON_ERROR)) return POLICY_BY_CLASS;
  policy_facts facts = facts_of(l, t, "error");
  const detect_unit unit = seen(t, u);
  facts.unit = &unit;
  facts.kind = u->kind;
  facts.tries = u->tries;
  facts.status = u->fault;
  facts.text = fault_text(u->fault);
  return policy_on_error(l->policy, &facts, &t->memory, seconds);
}

static void note_remedy(lab *l, const char *word, int64_t pause_ns) {
  char text[64];
  snprintf(text, sizeof text, "%s", word);
  if (pause_ns >= 0) snprintf(text, sizeof text, "%s %.9g", word, (double)pause_ns / 1e9);
  if (!names_add(&l->news.remedies, text)) l->broken = true;
}

static void failed(lab *l, lab_trial *t, lab_unit *u, int fault) {
  int64_t pause;
  const bool fenced = fault == ERR_FENCED; /* the store has another writer: nobody is asked */
  u->fault = fault;
  retry_facts f = {
      .status = fault, .tries = ++u->tries, .most = LAB_TRIES, .short_of_time = t->preempted};
  l->sum->failed++;
  line_note(l, &l->news.failed, u);
  t->pace = (deadline_pace){0};
  if (!fenced) f.remedy = remedy_of(l, t, u, &f.seconds);
  if (!fenced && retry_again(&f, &pause)) {
    u->phase = LAB_WAITS;
    u->next_try = seconds_later(l->now, pause);
    note_remedy(l, "retry", pause);
    return;
  }
  give_up(l, u);
  note_remedy(l, fenced || f.remedy == POLICY_ABORT ? "abort" : "skip", -1);
  if (fenced) stop_saving(l, t, "a newer writer has taken over", false);
  if (f.remedy == POLICY_ABORT)
    stop_saving(l, t, "after an error the policy wanted nothing saved any more", true);
  if (!fenced) hook(l, t, u, POLICY_ON_FAILED, "failed");
}

static void end_save(lab *l, lab_trial *t) {
  lab_unit *u = t->save;
  t->save = NULL;
  t->spent_s += seconds_of(l->now - t->begun_at);
  const int fault = t->ends == LAB_AS_BEFORE ? t->fault : t->ends_by;
  if (fault)
    failed(l, t, u, fault);
  else
    committed(l, t, u);
  if (!t->stopped) line_take_back(l, t);
  for (size_t i = 0; i < t->count; i++) /* what saves take is known better now */
    if (t->units[i]->ask_at) t->units[i]->ask_at = l->now;
}

static lab_unit *next_of(const lab *l, const lab_trial *t) {
  bool any = false;
  for (size_t i = 0; !any && i < t->count; i++) any = line_waits(t->units[i]);
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
  if (t->lost) lab_resume(l, t);
  t->lost = false;
  t->stopped = NULL;
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
  t->lost = true;
}

uint64_t lab_pending(const lab_trial *t) {
  uint64_t pending = 0;
  for (size_t i = 0; i < t->count; i++)
    pending += line_waits(t->units[i]) || t->units[i]->phase == LAB_RUNS;
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

/* When the line is to be looked at again: it passes over who rests for long, until its time has come. */
static int64_t due_in_line(const lab *l, const lab_trial *t) {
  const lab_unit *next = next_of(l, t);
  int64_t due = next ? next->next_try : INT64_MAX;
  for (size_t i = 0; !t->save && i < t->count; i++) {
    const lab_unit *u = t->units[i];
    if (line_waits(u) && u->next_try > l->now && u->next_try < due) due = u->next_try;
  }
  return due;
}

int64_t lab_due(const lab *l, const lab_trial *t, bool draining) {
  int64_t due = t->save ? t->sent_at : INT64_MAX;
  const int64_t in_line = due_in_line(l, t);
  if (in_line < due) due = in_line;
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
