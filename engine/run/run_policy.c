/* run_policy: asks the policies of a run about its units. The built-in rule comes first: a unit
 * that it does not call complete is never asked about, and where a policy cannot be asked it is the
 * answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "run/run_state.h"
#include "prims/fs.h"

enum { NAMES_MAX = 256 };

/* ---- facts ---- */

/* The names at the top of a directory, for a policy to look at. */
static int take_name(void *ctx, const fs_entry *entry, err *e) {
  names *n = ctx;
  (void)e;
  if (n->count < NAMES_MAX) names_add(n, entry->name); /* out of memory: a policy sees fewer */
  return 0;
}

static void names_take(const run *r, const run_unit *u, names *n) {
  char path[FS_PATH_MAX];
  if (u->kind != MATCH_DIR || fs_join(path, r->places.dir, u->path, NULL) < 0) return;
  fs_list(r->env->io, path, take_name, n, NULL); /* a directory that is gone has no names */
}

static double seconds_of(int64_t ns) {
  return ns > 0 ? (double)ns / 1e9 : 0; /* the clock was set back */
}

double run_policy_left(const run *r) {
  if (!r->deadline_ns) return -1;
  return seconds_of(r->deadline_ns - r->env->io->now(r->env->io, IO_WALL));
}

/* What the job and its saves have taken so far. Files above the checkpoints are no part of that, nor is
 * what a record does not have. */
static void time_facts(const run *r, const run_group *g, policy_facts *f) {
  const int64_t now = r->env->io->now(r->env->io, IO_MONO);
  f->job.seconds = r->started_at ? seconds_of(now - r->started_at) : 0;
  f->job.left = run_policy_left(r);
  f->saves.seconds = -1;
  f->saves.spent = seconds_of(g->spent_ns);
  if (g->save && !g->save->unit->above) f->saves.spent += seconds_of(now - g->save->tried_at);
}

static void group_facts(const run *r, const run_group *g, const char *event, policy_facts *f) {
  const io *io = r->env->io;
  *f = (policy_facts){.event = event,
                      .group = g->group.prefix,
                      .result = r->result,
                      .results = r->results,
                      .suspect = run_starts_resumed_suspect(r),
                      .running = g->save != NULL,
                      .grace_s = r->grace_s};
  f->since.results = g->results;
  f->since.checkpoints = g->checkpoints;
  f->since.bytes = g->bytes;
  f->since.seconds = g->saved_ns ? (double)(io->now(io, IO_WALL) - g->saved_ns) / 1e9 : -1;
  if (g->saved_ns && f->since.seconds < 0) f->since.seconds = 0; /* the clock was set back */
  for (size_t i = 0; i < r->unit_count; i++)
    f->waiting += r->units[i]->group == g && run_unit_queued(r->units[i]);
  f->commits = g->commits;
  time_facts(r, g, f);
}

/* Notes whether a hook of what has happened has changed the table that it was handed. */
static void note_memory(const run *r, run_group *g, const char *before) {
  if (g->memory == before) return;
  g->memory_changed = true;
  g->hooked = r->questions;
}

/* What policies before keep stays, too, while they rule. */
static bool join_replaced(run *r, run_group *g, policy_hook hook, const policy_item *items,
                          size_t count, policy_kept *kept) {
  policy_kept *others = calloc(count + 1, sizeof *others);
  bool chosen = others && ruling_select(&r->replaced, hook, g->group.prefix, items, count, others);
  for (size_t i = 0; !others && i < count; i++) kept[i].keep = true;
  if (others && hook == POLICY_KEEP) run_reload_told(r, g, items, count, kept, others);
  if (others) ruling_join(kept, others, count);
  free(others);
  return chosen;
}

bool run_policy_select(run *r, run_group *g, policy_hook hook, const policy_item *items,
                       size_t count, policy_kept *kept) {
  char *before = g->memory;
  bool chosen = policy_select(r->policy, hook, g->group.prefix, items, count, &g->memory, kept);
  note_memory(r, g, before);
  return r->replaced.count ? join_replaced(r, g, hook, items, count, kept) && chosen : chosen;
}

/* ---- decisions ---- */

static void core_skips(decision *want, const char *reason) {
  want->action = POLICY_SKIP;
  snprintf(want->policy, sizeof want->policy, "builtin");
  snprintf(want->reason, sizeof want->reason, "%s", reason);
}

static void core_waits(decision *want, const char *reason) {
  core_skips(want, reason);
  want->action = POLICY_WAIT;
}

/* True if a policy has to be asked: gathering the facts for it costs some reading of files. */
static bool is_asked(const policy *p) {
  return policy_has(p, POLICY_READY) || policy_has(p, POLICY_SYNC) || policy_has(p, POLICY_QUEUE);
}

void run_event(run *r, bool is_end) {
  r->event++;
  if (is_end) r->end_event = r->event;
}

/* A save that was put back, or a unit that is looked at again, is no event; the end of the job is one
 * for each unit, whenever it is come to. */
static uint64_t event_of(const run *r, const run_unit *u, bool is_news) {
  if (is_news) return r->event;
  if (r->writer_gone || r->preempted) return r->end_event;
  return u->once.answered ? u->once.event : r->event;
}

/* Notes when time alone may change the answer. */
static void ask_later(const run *r, run_unit *u) {
  enum { GRAIN_NS = 1000000 };
  const io *io = r->env->io;
  bool held = u->want.action == POLICY_SKIP || u->want.action == POLICY_WAIT;
  int64_t ns;
  u->ask_at = 0;
  if (!held || u->want.again_s <= 0 || seconds_to_ns(u->want.again_s, "again", &ns, NULL) < 0)
    return;
  /* The rule counts by the clock on the wall, which may be a little behind. */
  u->ask_at = seconds_later(seconds_later(io->now(io, IO_MONO), ns), GRAIN_NS);
}

static const char *event_without_news(const run *r, const run_unit *u) {
  if (r->writer_gone) return "end";
  return r->preempted || run_drain_wants(r, u) ? "preempt" : "complete";
}

/* A unit that is older than the newest commit, and was here before this run, was asked about by the one before. */
static bool was_asked_before(const run *r, const run_unit *u) {
  return run_order_at_start(r, u) && u->made_ns < u->group->newest_place.made_ns;
}

static void ask_first(run *r, run_unit *u) {
  u->asked = ++r->questions;
  if (was_asked_before(r, u)) policy_once_preset(&u->once, u->group->memory);
}

/* Of the memory that it was handed first; NULL: empty. */
static const char *memory_before(const run_unit *u) {
  for (int i = 0; i < POLICY_DECIDING; i++)
    if (u->once.asked[i].yes) return u->once.asked[i].memory;
  return u->group->memory;
}

const char *run_memory_at_end(const run *r, const run_group *g) {
  const run_unit *first = NULL;
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *u = r->units[i];
    if (u->group != g || !u->once.answered || u->made_ns < g->newest_place.made_ns) continue;
    if (!first || u->asked < first->asked) first = u;
  }
  /* What a hook has noted since is not to be lost; better to count twice. */
  if (first && g->hooked >= first->asked) first = NULL;
  const char *memory = first ? memory_before(first) : g->memory;
  return memory ? memory : "{}";
}

/* All that a policy sees of a unit; `n` is what `f` borrows, to be freed. */
static void unit_facts(run *r, run_unit *u, const char *event, const detect_unit *unit,
                       unit_sort sort, names *n, policy_facts *f) {
  names_take(r, u, n);
  group_facts(r, u->group, event, f);
  f->unit = unit;
  f->saves.seconds = deadline_takes(&r->pace, unit->bytes);
  f->kind = run_sort_name(sort);
  f->names = (const char *const *)n->at;
  f->name_count = n->count;
  f->metrics = run_unit_numbers(r, u, unit);
}

/* `event` NULL: it is looked at without news. */
static void ask(run *r, run_unit *u, const char *event, const detect_unit *unit, unit_sort sort) {
  names n = {0};
  policy_facts f;
  char *before = u->group->memory;
  const uint64_t number = event_of(r, u, event != NULL);
  if (policy_once_stands(&u->once, &u->fingerprint, number, &u->want)) return;
  if (!u->once.answered) ask_first(r, u);
  const bool drains = !event && !r->preempted && run_drain_wants(r, u);
  if (!event) event = event_without_news(r, u);
  unit_facts(r, u, event, unit, sort, &n, &f);
  if (drains) f.grace_s = run_drain_left(r);
  f.asked = u->once.asked;
  policy_decide(r->policy, &f, &u->group->memory, &u->want);
  policy_once_note(&u->once, &u->fingerprint, number, &u->want);
  ask_later(r, u);
  if (u->group->memory != before) u->group->memory_changed = true;
  names_free(&n);
}

static void decide(run *r, run_unit *u, const char *event, const detect_unit *unit) {
  policy_action sound = u->want.action;
  unit_sort sort = run_unit_sort(r, u->path, u->kind);
  if (run_follows(r) && sort != SORT_NULL)
    return; /* rank 0 asks the policies; units that it does not save are let go here too */
  if (r->aborted)
    core_skips(&u->want, "after an error the policy wanted nothing saved any more");
  else if (sort == SORT_NULL)
    core_skips(&u->want, TRAIL_SAYS_NULL);
  else if (sort == SORT_TEMP && !u->asked_for)
    core_skips(&u->want, TRAIL_SAYS_TEMP);
  else if (r->preempted && r->rest == POLICY_REST_NONE)
    core_skips(&u->want, "the policy wants nothing saved when time is short");
  else if (is_asked(r->policy) && run_anyway_forgets(r, u->group))
    core_waits(&u->want, "what the policies remember is not known while the store does not answer");
  else if (is_asked(r->policy))
    ask(r, u, event, unit, sort);
  else
    policy_decide(r->policy, &(policy_facts){.event = event, .unit = unit}, NULL, &u->want);
  /* A policy cannot waive the structural check. */
  if (u->want.action == POLICY_SAVE) u->want.action = sound;
}

/* A file above the checkpoints is no checkpoint: no policy is asked about it, and none counts it. */
static void decide_above(const run *r, decision *want) {
  if (r->aborted)
    core_skips(want, "after an error the policy wanted nothing saved any more");
  else if (r->preempted && r->rest == POLICY_REST_NONE)
    core_skips(want, "the policy wants nothing saved when time is short");
}

static bool same_decision(const decision *a, const decision *b) {
  return a->action == b->action && strcmp(a->policy, b->policy) == 0 &&
         strcmp(a->reason, b->reason) == 0;
}

/* One that is wanted after all does not count any more. */
static void count_refused(run *r, run_unit *u, bool refused) {
  if (u->refused == refused) return;
  u->refused = refused;
  r->skipped += refused ? 1 : -1;
}

/* It counts once, and is told once; a reason that has another figure by now, as `why` shows it, is no
 * news when nothing but time has passed. */
static void skip(run *r, run_unit *u, const decision *before, trail_what what, bool by_time) {
  bool already = u->phase == UNIT_SKIPPED;
  bool told = already && same_decision(before, &u->want);
  run_unit_is(r, u, UNIT_SKIPPED);
  run_note_refused(r, u);
  if (told) return;
  count_refused(r, u, true);
  run_note(r, u, what, u->want.reason);
  if (already && by_time) return;
  run_tell(r, u, RUN_SKIPPED, NULL, 0, u->want.reason);
}

void run_consider(run *r, run_unit *u, const char *event) {
  detect_unit unit;
  decision before = u->want;
  const bool by_time = event && strcmp(event, "time") == 0;
  if (!detect_find(r->detect, u->path, &unit)) return;
  u->want = policy_builtin(&unit);
  if (u->want.action == POLICY_WAIT) return;
  if (!u->counted && !u->above) {
    u->counted = true;
    u->group->checkpoints++;
    u->group->bytes += u->bytes;
    run_record_complete(r, u, &unit);
  }
  if (u->above)
    decide_above(r, &u->want);
  else
    decide(r, u, event, &unit);
  switch (u->want.action) {
  case POLICY_SKIP: skip(r, u, &before, TRAIL_SKIPPED, by_time); break;
  case POLICY_WAIT:
    if (r->writer_gone || r->preempted) { /* nothing will change it any more */
      skip(r, u, &before, TRAIL_OPEN, by_time);
      break;
    }
    run_unit_to(r, u, UNIT_SETTLING, TRAIL_OPEN, 0, u->want.reason);
    break;
  case POLICY_SAVE:
  case POLICY_SAVE_IF_SOUND:
    count_refused(r, u, false);
    if (!event && run_drain_wants(r, u)) u->hastened = true;
    run_enqueue(r, u);
    break;
  }
}

/* Complete, or to be saved if it is sound, and held back by a policy alone. */
static bool held_back(const run *r, const run_unit *u) {
  detect_unit unit;
  if (u->phase == UNIT_SKIPPED) return true;
  return u->phase == UNIT_SETTLING && u->want.action == POLICY_WAIT && u->counted &&
         detect_find(r->detect, u->path, &unit) && policy_builtin(&unit).action != POLICY_WAIT;
}

bool run_unit_unasked(const run *r, const run_unit *u) {
  return u->phase == UNIT_SETTLING && u->want.action == POLICY_WAIT && u->counted &&
         run_anyway_forgets(r, u->group);
}

static bool is_outdone(const run *r, const run_unit *u) {
  const queue q = run_line(r, u->group);
  const queue_unit one = run_line_unit(r, u);
  return queue_is_outdone(&q, &one);
}

/* One that a policy never called ready, and that a newer one has outdone, is not asked about any more: at
 * the end nothing is to wait for it. */
static void never_ready(run *r, run_unit *u) {
  const decision before = u->want;
  if (u->phase == UNIT_SETTLING && (r->writer_gone || r->preempted))
    skip(r, u, &before, TRAIL_OPEN, false);
}

void run_reconsider(run *r, const char *event) {
  bool all = r->preempted && r->rest == POLICY_REST_ALL;
  if (r->closing || r->fenced || !r->detect) return;
  const run_group *of = NULL; /* whose line stands in `q` */
  queue q = {0};
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (!held_back(r, u)) continue;
    if (!all && !u->asked_for) {
      if (of != u->group) q = run_line(r, u->group);
      of = u->group;
      const queue_unit one = run_line_unit(r, u);
      if (queue_is_outdone(&q, &one)) {
        never_ready(r, u);
        continue;
      }
    }
    run_consider(r, u, event);
    of = NULL; /* that may have changed the line */
  }
}

/* The run wakes up for the time at which a rule may say otherwise, though nothing happens. */
int run_ask_in_time(run *r, err *e) {
  const int64_t now = r->env->io->now(r->env->io, IO_MONO);
  (void)e;
  r->ask_due = INT64_MAX;
  if (r->closing || r->fenced || r->writer_gone || !r->detect) return 0;
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    if (!u->ask_at || !held_back(r, u)) continue;
    if (u->ask_at <= now) {
      u->ask_at = 0;
      run_event(r, false);
      if (!is_outdone(r, u)) run_consider(r, u, "time");
    }
    if (u->ask_at && u->ask_at < r->ask_due) r->ask_due = u->ask_at;
  }
  return 0;
}

/* ---- what one is saved without ---- */

_Static_assert((int)POLICY_LEFT_MAX == (int)MANIFEST_LEFT_GLOBS,
               "policy.h and manifest.h disagree");

static void say_without(const run *r, const run_unit *u, const policy_left *left) {
  buf globs;
  buf_init(&globs, (size_t)POLICY_LEFT_MAX * POLICY_REASON_MAX);
  for (size_t i = 0; i < left->globs.count; i++)
    buf_fmt(&globs, "%s%s", i ? ", " : "", left->globs.at[i]);
  log_say(r->env->log, LOG_INFO, "%s is saved without %.500s, by `exclude` of %s%s%s", u->path,
          globs.data ? globs.data : "?", left->policy, *left->reason ? ": " : "", left->reason);
  buf_free(&globs);
}

/* The other ranks do not know the answer; and where one rank had such a file here at a start, and another
 * had not, they would go on from different states. */
static bool is_of_ranks(run *r) {
  if (r->ranks.world < 2) return false;
  if (!run_follows(r))
    run_say_once(r,
                 "checkpoints that ranks save together are saved whole: the function of `exclude` "
                 "is not asked about them (its globs hold)");
  return true;
}

void run_policy_exclude(run *r, run_unit *u) {
  detect_unit unit;
  policy_facts f;
  policy_left left;
  names n = {0};
  char *before = u->group->memory;
  const unit_sort sort = run_unit_sort(r, u->path, u->kind);
  if (!policy_has(r->policy, POLICY_EXCLUDE) || u->above || is_of_ranks(r)) return;
  if (u->left_asked && digest_equal(&u->left_of, &u->fingerprint)) return;
  if (!detect_find(r->detect, u->path, &unit)) return; /* it is gone: its save will find out */
  unit_facts(r, u, event_without_news(r, u), &unit, sort, &n, &f);
  policy_exclude(r->policy, &f, &u->group->memory, &left);
  note_memory(r, u->group, before);
  names_free(&n);
  names_free(&u->left);
  u->left = left.globs;
  u->left_of = u->fingerprint;
  u->left_asked = true;
  if (u->left.count) say_without(r, u, &left);
}

void run_policy_begun(run *r, run_group *g) {
  g->results = g->checkpoints = g->bytes = 0;
  g->saved_ns = r->env->io->now(r->env->io, IO_WALL);
}

policy_rest run_policy_rest(run *r) {
  policy_facts facts;
  run_group *g = r->group_count ? r->groups[0] : NULL;
  if (!g || !policy_has(r->policy, POLICY_ON_PREEMPT)) return POLICY_REST_FIT;
  char *before = g->memory;
  group_facts(r, g, "preempt", &facts);
  policy_rest rest = policy_preempt(r->policy, &facts, &g->memory);
  note_memory(r, g, before);
  return rest;
}

/* Gathers the facts of a unit whose save is over; it may be gone from the directory. */
static void after_facts(run *r, const run_unit *u, const char *event, int status, const char *text,
                        detect_unit *unit, policy_facts *f) {
  group_facts(r, u->group, event, f);
  *unit = (detect_unit){.path = u->path,
                        .group = u->group->group.prefix,
                        .name = fs_base(u->path),
                        .kind = u->kind,
                        .step = u->step,
                        .reason = u->reason,
                        .bytes = u->bytes,
                        .changed_ns = u->changed_ns};
  f->unit = unit;
  f->kind = "perm";
  f->status = status;
  f->text = text;
  f->tries = u->tries;
}

policy_remedy run_policy_error(run *r, run_unit *u, int status, const char *text, double *seconds) {
  policy_facts facts;
  detect_unit unit;
  if (!policy_has(r->policy, POLICY_ON_ERROR)) return POLICY_BY_CLASS;
  char *before = u->group->memory;
  after_facts(r, u, "error", status, text, &unit, &facts);
  policy_remedy remedy = policy_on_error(r->policy, &facts, &u->group->memory, seconds);
  note_memory(r, u->group, before);
  return remedy;
}

void run_policy_tell(run *r, run_unit *u, policy_hook hook, int status, const char *text) {
  policy_facts facts;
  detect_unit unit;
  if (!policy_has(r->policy, hook) && r->replaced.count == 0) return;
  char *before = u->group->memory;
  after_facts(r, u, hook == POLICY_ON_COMMITTED ? "committed" : "failed", status, text, &unit,
              &facts);
  policy_tell(r->policy, hook, &facts, &u->group->memory);
  note_memory(r, u->group, before);
  ruling_tell(&r->replaced, hook, &facts);
}

/* ---- what the policies remember ---- */

bool run_remembers(const run *r) {
  return strcmp(policy_names(r->policy), "builtin") != 0;
}

int run_memory_load(run *r, run_group *g, err *e) {
  if (!run_remembers(r) || g->memory) return 0;
  return memory_read(r->store, r->env->log, g->group.prefix, &g->memory, &g->remembers, e);
}

void run_memory_recall(run *r, run_group *g, char *memory, memory_state state) {
  bool asked = g->memory != NULL; /* at the end they are asked without it */
  bool taken = g->remembers == MEMORY_UNREAD && (!asked || (!memory && state == MEMORY_KNOWN));
  if (taken && !asked)
    g->memory = memory;
  else
    free(memory);
  if (!taken) return;
  g->remembers = state;
  if (r->closing || r->fenced || !r->detect) return;
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->group == g && !r->units[i]->once.answered && held_back(r, r->units[i]))
      run_consider(r, r->units[i], NULL);
}
