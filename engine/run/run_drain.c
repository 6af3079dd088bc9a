/* run_drain: what is complete now is to be durable in so many seconds, and the job goes on. The policies are
 * asked in the words of a preemption, what a pace holds back has its turn, and each second is tried; but the
 * order is that without a drain: a newer one that came first would make an older one too late for ever, which
 * the job that goes on would have saved. plan/drain.h says when it is over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "plan/drain.h"
#include "run/run_state.h"

/* A checkpoint as it was when it was asked for. */
typedef struct entry {
  char *path, *series;
  digest content;
  bool rests; /* nobody writes into it, and its content is known when its rest is over */
  uint64_t bytes, left;
  char reason[400];
} entry;

struct run_demand {
  run_demand *next;
  uint64_t id;
  int64_t until; /* IO_MONO */
  bool over;
  drain_answer answer; /* once it is over */
  drain_unit *facts;   /* of the entries */
  standing_unit *room; /* for as many */
  entry *entries;
  size_t count;
};

enum {
  DRAINS_LIVE = 16, /* each of them is looked at in each step */
  DRAINS_KEPT = 16  /* those that are over can be asked about for a while */
};

/* ---- what it is about ---- */

static bool is_whole(const run_unit *u) {
  return u->phase == UNIT_RUNNING || u->phase == UNIT_DURABLE || run_unit_queued(u);
}

/* True if a newer one of its kind makes it needless to tell of this one. The newest are the last, as a
 * rule. */
static bool is_outdone(const run *r, const run_unit *u) {
  for (size_t i = r->unit_count; i-- > 0;) {
    const run_unit *k = r->units[i];
    if (k != u && (is_whole(k) || k->phase == u->phase) && run_supersedes(r, k, u)) return true;
  }
  return false;
}

/* True if only time is missing: a rename of a moment ago is one that is complete for whoever made it. */
static bool rests(const run *r, const run_unit *u) {
  detect_unit now;
  return u->phase == UNIT_SETTLING && r->detect && detect_find(r->detect, u->path, &now) &&
         now.state == DETECT_OPEN && now.cause && strcmp(now.cause, "not-quiet") == 0;
}

/* As the run itself sees it; DRAIN_GONE: it is not told of. */
static drain_is first_of(const run *r, const run_unit *u) {
  switch (run_unit_standing(r, u)) {
  case STANDING_IS_COMING: return DRAIN_WAITS;
  case STANDING_IS_STORED: return DRAIN_STORED;
  case STANDING_IS_FAILED: return u->phase == UNIT_DROPPED && u->late ? DRAIN_LEFT : DRAIN_FAILED;
  case STANDING_IS_UNWANTED: return DRAIN_UNWANTED;
  case STANDING_IS_UNPROVEN: return DRAIN_UNPROVEN;
  case STANDING_IS_OPEN:
    if (run_unit_unasked(r, u) || rests(r, u)) return DRAIN_WAITS;
    return u->want.action == POLICY_WAIT && u->counted ? DRAIN_UNWANTED : DRAIN_OPEN;
  case STANDING_IS_ASIDE: break;
  }
  return DRAIN_GONE;
}

/* What was passed over was never tried, so it has no error. */
static int status_of(const run_unit *u) {
  return u->phase == UNIT_FAILED ? u->status : ERR_TIMEOUT;
}

static bool add(run_demand *d, const run_unit *u, drain_is is, bool resting) {
  char *path = strdup(u->path), *series = strdup(u->series);
  if (!path || !series) {
    free(path);
    free(series);
    return false;
  }
  d->entries[d->count] = (entry){.path = path,
                                 .series = series,
                                 .content = u->fingerprint,
                                 .rests = resting,
                                 .bytes = u->bytes};
  d->facts[d->count++] = (drain_unit){
      .is = is,
      .status = status_of(u),
      .as = {.group = u->group, .series = series, .made_ns = u->made_ns, .step = u->step}};
  return true;
}

static int take(run *r, run_demand *d, err *e) {
  d->facts = calloc(r->unit_count + 1, sizeof *d->facts);
  d->entries = calloc(r->unit_count + 1, sizeof *d->entries);
  d->room = calloc(r->unit_count + 1, sizeof *d->room);
  bool whole = d->facts && d->entries && d->room;
  for (size_t i = 0; whole && i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    const drain_is is = first_of(r, u);
    if (is == DRAIN_WAITS) u->drained = true;
    if (is == DRAIN_GONE || (is != DRAIN_WAITS && (u->above || is_outdone(r, u)))) continue;
    whole = add(d, u, is, rests(r, u));
  }
  return whole ? 0 : err_set(e, ERR_NOMEM, "drain: out of memory");
}

bool run_drain_wants(const run *r, const run_unit *u) {
  return r->draining && u->drained;
}

/* ---- how it stands ---- */

static void say(entry *x, uint64_t left, const char *reason) {
  x->left = left;
  snprintf(x->reason, sizeof x->reason, "%s", reason ? reason : "");
}

static bool sends(const run_unit *u, const digest *content) {
  return u->save && digest_equal(&u->save->fingerprint, content);
}

/* The one that was complete when it was asked for, and not what stands in its place by now. */
static bool is_itself(const run_unit *u, const entry *x) {
  return u && digest_equal(&u->fingerprint, &x->content);
}

static drain_is now_of(const run *r, const run_unit *u, entry *x) {
  if (!u) return DRAIN_GONE;
  if (x->rests && rests(r, u)) return DRAIN_WAITS;
  if (x->rests && u->phase != UNIT_SETTLING) {
    x->rests = false;
    x->content = u->fingerprint;
    x->bytes = u->bytes;
  }
  if (sends(u, &x->content)) return DRAIN_WAITS;
  if (!is_itself(u, x)) return DRAIN_GONE;
  const drain_is is = first_of(r, u);
  if (u->phase == UNIT_DURABLE) return DRAIN_STORED; /* above the checkpoints, too */
  if (u->phase == UNIT_DROPPED && u->late) return DRAIN_LEFT;
  if (u->passed_over && u->phase == UNIT_DROPPED) return DRAIN_WAITS; /* rank 0 saves a newer one */
  if (u->phase == UNIT_SETTLING && is == DRAIN_OPEN) return DRAIN_GONE; /* it is written again */
  /* One that was let go for a newer one waits for that, one that is put back is so for a moment. */
  return is == DRAIN_GONE ? DRAIN_WAITS : is;
}

/* True if it may be in the target sooner or later. */
static bool comes(const run *r, const run_unit *u) {
  return u->phase == UNIT_RUNNING || run_unit_queued(u) ||
         (u->phase == UNIT_SETTLING && first_of(r, u) != DRAIN_UNWANTED);
}

static queue_unit kind_of(const entry *x, const drain_unit *f) {
  return (queue_unit){.series = x->series, .step = f->as.step, .made_ns = f->as.made_ns};
}

/* What was written over, or removed for a newer one of its kind, is waited for in that: a job goes on
 * meanwhile. NULL: there is none. */
static run_unit *in_place_of(run *r, const entry *x, const drain_unit *f, run_unit *same_path) {
  const queue_unit older = kind_of(x, f);
  if (same_path && comes(r, same_path)) return same_path;
  for (size_t i = r->unit_count; i-- > 0;) {
    run_unit *k = r->units[i];
    const queue_unit newer = {.series = k->series, .step = k->step, .made_ns = k->made_ns};
    if (k->group == f->as.group && comes(r, k) && queue_supersedes(&newer, &older)) return k;
  }
  return NULL;
}

static const char *why(const run *r, const run_unit *u, drain_is is, char *text, size_t room) {
  switch (is) {
  case DRAIN_GONE:
    return u ? "it was written again before it was saved" : "it was removed before it was saved";
  case DRAIN_UNWANTED: snprintf(text, room, "%s: %s", u->want.policy, u->want.reason); return text;
  case DRAIN_LEFT: return u->want.reason;
  case DRAIN_OPEN:
  case DRAIN_WAITS:
  case DRAIN_UNPROVEN:
  case DRAIN_FAILED: {
    if (run_unit_unasked(r, u)) return u->want.reason;
    const char *waits = run_unit_waits_for(r, u, text, room);
    return waits ? waits : u->reason;
  }
  case DRAIN_STORED: break;
  }
  return "";
}

static void look_at(run *r, run_demand *d, size_t i) {
  entry *x = &d->entries[i];
  drain_unit *f = &d->facts[i];
  run_unit *u = run_unit_find(r, x->path), *instead = NULL;
  char text[400];
  if (f->is == DRAIN_WAITS) {
    f->is = now_of(r, u, x);
    if (f->is == DRAIN_STORED) x->reason[0] = 0;
    if (f->is == DRAIN_FAILED) f->status = status_of(u);
    f->aside = u && run_unit_standing(r, u) == STANDING_IS_ASIDE && f->is != DRAIN_WAITS;
  }
  if (f->is == DRAIN_GONE && (instead = in_place_of(r, x, f, u))) {
    f->is = DRAIN_WAITS;
    instead->drained = true;
  }
  if (instead && instead != u) {
    snprintf(text, sizeof text, "it is gone, and %.300s, which is newer, is waited for",
             instead->path);
    say(x, run_unit_left(instead), text);
    return;
  }
  if (f->is == DRAIN_STORED)
    x->left = 0; /* its reason is perhaps the newer one's name */
  else if (f->is == DRAIN_WAITS ? u != NULL : is_itself(u, x) || f->is == DRAIN_GONE)
    say(x, u && f->is == DRAIN_WAITS ? run_unit_left(u) : x->bytes,
        why(r, u, f->is, text, sizeof text));
}

void run_drain_stored(run *r, const run_unit *u, const digest *content, int64_t made_ns) {
  const queue_unit newer = {.series = u->series, .step = u->step, .made_ns = made_ns};
  for (run_demand *d = r->drains; d; d = d->next)
    for (size_t i = 0; !d->over && i < d->count; i++) {
      drain_unit *f = &d->facts[i];
      entry *x = &d->entries[i];
      const queue_unit older = kind_of(x, f);
      bool itself = strcmp(x->path, u->path) == 0 && digest_equal(&x->content, content);
      if (f->as.group != u->group || f->is == DRAIN_STORED || f->is == DRAIN_UNWANTED ||
          f->is == DRAIN_OPEN || (!itself && !queue_supersedes(&newer, &older)))
        continue;
      f->is = DRAIN_STORED;
      f->aside = u->above;
      x->reason[0] = 0;
      if (!itself) snprintf(x->reason, sizeof x->reason, "%.300s is, which is newer", u->path);
    }
}

/* ---- its beginning and its end ---- */

static void drain_free(run_demand *d) {
  for (size_t i = 0; i < d->count; i++) {
    free(d->entries[i].path);
    free(d->entries[i].series);
  }
  free(d->entries);
  free(d->facts);
  free(d->room);
  free(d);
}

void run_drains_free(run *r) {
  while (r->drains) {
    run_demand *next = r->drains->next;
    drain_free(r->drains);
    r->drains = next;
  }
}

/* Those that are over go, the oldest first. */
static void make_room(run *r) {
  size_t kept = 0;
  for (run_demand **at = &r->drains; *at;) {
    run_demand *d = *at;
    if (!d->over || ++kept < DRAINS_KEPT) {
      at = &d->next;
      continue;
    }
    *at = d->next;
    drain_free(d);
  }
}

/* What the policies want saved now alone, since time seemed to be up, they are asked about again. */
static void put_back(run *r) {
  if (r->draining || r->preempted || r->writer_gone || r->closing || r->fenced) return;
  run_event(r, false);
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    const bool hastened = u->hastened && u->phase == UNIT_WAITING;
    u->hastened = false;
    if (hastened) run_consider(r, u, "time");
  }
}

static drain_answer judge(run *r, run_demand *d, int64_t now) {
  for (size_t i = 0; i < d->count; i++) look_at(r, d, i);
  const drain_facts f = {.units = d->facts,
                         .count = d->count,
                         .room = d->room,
                         .run = run_standing_facts(r),
                         .unseen = run_standing_unseen(r),
                         .unmet = run_anyway_unmet(r),
                         .end = r->fenced         ? ERR_FENCED
                                : d->until <= now ? ERR_TIMEOUT
                                                  : 0};
  return drain_judge(&f);
}

/* Why it is not durable, if it is none of the checkpoints. */
static const char *why_unseen(int status) {
  return status == ERR_FENCED    ? "a newer run saves to the target"
         : status == ERR_TIMEOUT ? "the target has not answered since the run began"
                                 : "what the target had is gone, or is not what was saved";
}

static const char *reason_of(const run_demand *d) {
  const drain_answer *a = &d->answer;
  if (a->late != STANDING_NONE) return d->entries[a->late].reason;
  if (a->word == STANDING_NOT_PROVEN) return "nothing proves that the newest checkpoint is whole";
  return a->status ? why_unseen(a->status) : NULL;
}

static void finish(run *r, run_demand *d, drain_answer a) {
  const entry *late = a.late == STANDING_NONE ? NULL : &d->entries[a.late];
  d->over = true;
  d->answer = a;
  if (--r->draining == 0)
    for (size_t i = 0; i < r->unit_count; i++) r->units[i]->drained = false;
  run_news news = {.kind = RUN_DRAINED,
                   .status = a.status,
                   .job = d->id,
                   .step = late ? d->facts[a.late].as.step : MATCH_NO_STEP,
                   .bytes = late ? late->left : 0,
                   .unit = late ? late->path : "",
                   .reason = reason_of(d)};
  r->env->tell(r->env->ctx, r, &news);
  put_back(r);
}

int64_t run_drain_step(run *r, int64_t now) {
  int64_t due = INT64_MAX;
  for (run_demand *d = r->drains; r->draining && d; d = d->next) {
    if (d->over) continue;
    drain_answer a = judge(r, d, now);
    if (a.over)
      finish(r, d, a);
    else if (d->until < due)
      due = d->until;
  }
  return due;
}

double run_drain_left(const run *r) {
  const int64_t left = run_drain_until(r) - r->env->io->now(r->env->io, IO_MONO);
  return left > 0 ? (double)left / 1e9 : 0;
}

int64_t run_drain_until(const run *r) {
  int64_t until = INT64_MAX;
  for (const run_demand *d = r->drains; d; d = d->next)
    if (!d->over && d->until < until) until = d->until;
  return until;
}

/* Asks as at a preemption about what is held back. */
static void hasten(run *r, double for_s) {
  const double grace_s = r->grace_s;
  if (r->preempted || r->writer_gone) return; /* they were asked */
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    u->hastened |= !is_whole(u);
    u->ask_before = u->ask_at;
  }
  r->grace_s = for_s;
  run_event(r, false);
  run_reconsider(r, "preempt");
  r->grace_s = grace_s;
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    const bool held = u->phase == UNIT_SKIPPED || u->phase == UNIT_SETTLING;
    u->hastened &= run_unit_queued(u);
    /* A no to this question takes nothing back of when the policy wanted to be asked. */
    if (held && u->ask_before && (!u->ask_at || u->ask_before < u->ask_at))
      u->ask_at = u->ask_before;
  }
}

int run_drain_begin(run *r, double for_s, uint64_t *id, err *e) {
  int64_t ns;
  if (seconds_to_ns(for_s, "for", &ns, e) < 0) return ERR_INVAL;
  if (r->draining >= DRAINS_LIVE)
    return err_set(e, ERR_LIMIT, "drain: %d are under way: wait for one of them", DRAINS_LIVE);
  run_demand *d = calloc(1, sizeof *d);
  if (!d) return err_set(e, ERR_NOMEM, "drain: out of memory");
  hasten(r, for_s);
  d->until = seconds_later(r->env->io->now(r->env->io, IO_MONO), ns);
  int rc = take(r, d, e);
  if (rc < 0) {
    drain_free(d);
    put_back(r);
    return rc;
  }
  make_room(r);
  *id = d->id = r->env->next_job(r->env->ctx);
  d->next = r->drains;
  r->drains = d;
  r->draining++;
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->phase == UNIT_RETRYING) r->units[i]->next_try = 0;
  return 0;
}

/* ---- who asks how it stands ---- */

int run_drained(run *r, uint64_t id, run_drain_state *out, run_drained_fn *fn, void *ctx) {
  const int64_t now = r->env->io->now(r->env->io, IO_MONO);
  run_demand *d = r->drains;
  while (d && d->id != id) d = d->next;
  if (!d) return ERR_NOENT;
  /* Whether it is over the next step says, which tells it, too. */
  *out = (run_drain_state){.over = d->over, .word = d->answer.word, .status = d->answer.status};
  if (d->over)
    out->reason = reason_of(d);
  else
    judge(r, d, now);
  if (!d->over) out->left_s = d->until > now ? (double)(d->until - now) / 1e9 : 0;
  for (size_t i = 0; fn && i < d->count; i++) {
    const entry *x = &d->entries[i];
    const run_drained_unit told = {.unit = x->path,
                                   .reason = x->reason,
                                   .step = d->facts[i].as.step,
                                   .bytes = x->bytes,
                                   .left = x->left,
                                   .is = d->facts[i].is,
                                   .counts = d->over && drain_counts(d->facts, d->count, i),
                                   .late = d->over && d->answer.late == (ptrdiff_t)i};
    fn(ctx, &told);
  }
  return 0;
}
