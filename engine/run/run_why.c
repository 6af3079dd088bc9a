/* run_why: what a run writes down for `why`, and its answers with the present words of a unit. Nothing that is
 * written stops a run: what cannot be written is a warning. */
#include "prims/fs.h"
#include "run/run_state.h"
#include "why/inquiry.h"
#include "why/last_rules.h"

/* ---- what is written down ---- */

/* Finds the unit's newest commit, as its group's log has it. */
static runlog_ref newest_commit(const run_unit *u) {
  runlog_ref ref = {.n = RUNLOG_NONE};
  runlog *log = u->group ? u->group->group.log : NULL;
  const runlog_commit *c = log ? runlog_newest(runlog_view(log), fs_base(u->path)) : NULL;
  if (c) runlog_ref_of(log, c->n, &ref, NULL); /* on failure the number alone is known */
  return ref;
}

static bool in_store(const run *r, const run_unit *u, runlog_ref *commit) {
  journal_unit known = journal_find(r->journal, u->path);
  if (known.state != JOURNAL_COMMITTED || !digest_equal(&known.fingerprint, &u->fingerprint))
    return false;
  *commit = known.commit;
  return true;
}

/* True if the log says that files of it were taken since newer ones are there. */
static bool is_thin(const run_unit *u, uint64_t commit) {
  const runlog *log = u->group ? u->group->group.log : NULL;
  const runlog_commit *c = log ? runlog_find_commit(runlog_view(log), commit) : NULL;
  return c && c->thin.globs.count > 0;
}

/* Notes a record. `saved` tells the content of a commit from others; `left`: what it was saved without,
 * or NULL. */
static void note(run *r, const run_unit *u, trail_what what, const digest *saved, const char *left,
                 const char *reason) {
  detect_unit now;
  char content[HASH_HEX_MAX];
  runlog_ref commit = {.n = RUNLOG_NONE};
  trail_record record = {.what = what,
                         .unit = u->path,
                         .policy = u->want.policy,
                         .reason = reason ? reason : u->reason,
                         .left = left,
                         .status = u->status,
                         .tries = u->tries};
  /* A save that our own end cuts off is not called changed. */
  if (r->closing && what == TRAIL_RETIRED) return;
  bool of_detector = what == TRAIL_OPEN || what == TRAIL_UNPROVEN;
  if (of_detector && r->detect && detect_find(r->detect, u->path, &now)) {
    record.cause = now.cause;
    if (!reason) record.reason = now.reason;
  }
  if (what == TRAIL_UNPROVEN && u->retired > 0) record.cause = "changed";
  if (what != TRAIL_FAILED && what != TRAIL_RETRYING) record.status = 0;
  if (what == TRAIL_COMPLETE && in_store(r, u, &commit)) {
    record.what = TRAIL_COMMITTED;
    record.reason = is_thin(u, commit.n)
                        ? "it is in the store, without what only the newest keep there"
                        : "it is in the store as it is here";
  } else if (what == TRAIL_COMMITTED) {
    commit = newest_commit(u);
  }
  if (commit.n != RUNLOG_NONE) {
    record.commit = commit.n;
    record.log = commit.log;
    record.entry = commit.entry;
    digest_hex(saved, content);
    record.content = content;
  }
  trail_note(r->trail, &record);
}

void run_note(run *r, const run_unit *u, trail_what what, const char *reason) {
  note(r, u, what, &u->fingerprint, NULL, reason);
}

void run_note_saved(run *r, const run_save *s, const char *reason) {
  buf left;
  buf_init(&left, (size_t)POLICY_LEFT_MAX * POLICY_REASON_MAX);
  for (size_t i = 0; i < s->job.left.count; i++)
    buf_fmt(&left, "%s%s", i ? "\n" : "", s->job.left.at[i]);
  note(r, s->unit, TRAIL_COMMITTED, &s->fingerprint, left.len ? left.data : NULL, reason);
  buf_free(&left);
}

last_rules run_last_rules(const run *r) {
  return (last_rules){.rules = (rules *)r->rules,
                      .dir = (char *)r->places.dir,
                      .target = (char *)r->places.target_way,
                      .policies = (char *)policy_names(r->policy),
                      .null_marker = (char *)policy_null_marker(r->policy),
                      .temp_marker = (char *)policy_temp_marker(r->policy),
                      .grace_ns = r->limits.grace_ns,
                      .no_delete = r->limits.no_delete};
}

void run_note_rules(run *r) {
  err e = {0};
  last_rules now = run_last_rules(r);
  if (last_rules_write(r->env->io, r->places.state, &now, &e) < 0)
    log_say(r->env->log, LOG_WARN, "`why` will know less: %s", e.text);
}

void run_note_start(run *r) {
  trail_note(r->trail, &(trail_record){.what = TRAIL_START,
                                       .policy = policy_names(r->policy),
                                       .reason = r->places.target_text});
  run_note_rules(r);
}

static void note_settling(run *r) {
  for (size_t i = 0; r->detect && i < r->unit_count; i++) {
    detect_unit now;
    const run_unit *u = r->units[i];
    if (u->phase != UNIT_SETTLING || !detect_find(r->detect, u->path, &now)) continue;
    /* A complete unit waits for its policy, which has told why. */
    if (now.state == DETECT_OPEN) run_note(r, u, TRAIL_OPEN, NULL);
  }
}

void run_note_open(run *r) {
  int64_t now = r->env->io->now(r->env->io, IO_MONO);
  if (now - r->noted_at < 1000000000) return;
  r->noted_at = now;
  run_hasty_look(r);
  if (r->trail) note_settling(r);
}

void run_note_end(run *r) {
  if (r->started) note_settling(r);
}

/* ---- answers ---- */

static bool before(const run_unit *a, const run_unit *b) {
  return a->complete_at != b->complete_at ? a->complete_at < b->complete_at
                                          : a->made_ns < b->made_ns;
}

/* Names the unit that it waits for: the one whose save runs in its group, else the first in the
 * queue. */
static const char *behind(const run *r, const run_unit *u) {
  if (u->group->save) return u->group->save->unit->path;
  const run_unit *first = NULL;
  for (size_t i = 0; i < r->unit_count; i++) {
    const run_unit *other = r->units[i];
    if (other != u && other->group == u->group && run_unit_queued(other) && before(other, u) &&
        (!first || before(other, first)))
      first = other;
  }
  return first ? first->path : NULL;
}

static bool phase_of(unit_phase phase, trail_what *out) {
  switch (phase) {
  case UNIT_SETTLING: *out = TRAIL_OPEN; return true;
  case UNIT_WAITING: *out = TRAIL_WAITING; return true;
  case UNIT_RUNNING: *out = TRAIL_BEGUN; return true;
  case UNIT_RETRYING: *out = TRAIL_RETRYING; return true;
  case UNIT_DURABLE: *out = TRAIL_COMMITTED; return true;
  case UNIT_FAILED: *out = TRAIL_FAILED; return true;
  case UNIT_UNPROVEN: *out = TRAIL_UNPROVEN; return true;
  case UNIT_DROPPED: *out = TRAIL_LET_GO; return true;
  case UNIT_SKIPPED: *out = TRAIL_SKIPPED; return true;
  case UNIT_RETIRED: break; /* over: its records say how */
  }
  return false;
}

static double seconds_until(const run *r, int64_t at) {
  return (double)(at - r->env->io->now(r->env->io, IO_MONO)) / 1e9;
}

/* Takes the reason of the detector, for a unit that is open, or that is left alone. */
static void take_detected(run *r, const run_unit *u, explain_live *out) {
  detect_unit now;
  if (!r->detect || !detect_find(r->detect, u->path, &now)) return;
  bool by_policy = now.state == DETECT_COMPLETE && u->phase == UNIT_SETTLING;
  out->cause = by_policy ? NULL : now.cause;
  out->reason = by_policy ? u->want.reason : now.reason;
  if (!by_policy && u->phase == UNIT_SETTLING) out->policy = NULL;
}

static bool live_unit(void *ctx, const char *path, explain_live *out) {
  run *r = ctx;
  const run_unit *u = run_unit_find(r, path);
  *out = (explain_live){0};
  if (!u || !phase_of(u->phase, &out->phase)) return false;
  /* It was never called ready, and by now it never will be. */
  if (u->phase == UNIT_SKIPPED && u->want.action == POLICY_WAIT) out->phase = TRAIL_OPEN;
  out->policy = u->want.policy;
  out->reason = *u->want.reason ? u->want.reason : u->reason;
  out->status = u->status;
  out->tries = u->tries;
  out->most_tries = r->tries;
  if (run_unit_queued(u)) {
    out->behind = behind(r, u);
    out->next_s = seconds_until(r, u->next_try);
  }
  if (u->phase == UNIT_SETTLING || u->phase == UNIT_UNPROVEN) take_detected(r, u, out);
  if (u->phase == UNIT_UNPROVEN && u->retired > 0) out->cause = "changed";
  if (u->save) {
    out->moved = atomic_load(&u->save->job.moved);
    out->total = atomic_load(&u->save->job.total);
  }
  return true;
}

int run_why(run *r, const char *name, explain *out, err *e) {
  last_rules last = run_last_rules(r);
  *out = (explain){0};
  why_scene scene = {.io = r->env->io,
                     .log = r->env->log,
                     .dir = r->places.dir,
                     .state = r->places.state,
                     .last = &last,
                     .live = live_unit,
                     .ctx = r};
  return why_tell(&scene, name, out, e);
}
