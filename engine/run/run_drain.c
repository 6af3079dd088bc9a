/* run_drain: what is complete now is to be durable in so many seconds, and the job goes on. It is saved as
 * at a preemption (the policies are asked in the same words, the newest is first where not all fits), but
 * nothing is let go for it, and when it is over all is as it was. plan/drain.h says when that is. */
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
  uint64_t bytes, left;
  char reason[400];
} entry;

struct run_demand {
  run_demand *next;
  uint64_t id;
  int64_t until; /* IO_MONO */
  int end;       /* why it ended before all was durable; 0: it goes on, or all is */
  bool over;
  drain_unit *facts; /* of the entries */
  entry *entries;
  size_t count;
};

enum { DRAINS_KEPT = 16 }; /* those that are over can be asked about for a while */

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

static drain_is first_of(const run *r, const run_unit *u) {
  switch (u->phase) {
  case UNIT_WAITING:
  case UNIT_RUNNING:
  case UNIT_RETRYING: return DRAIN_WAITS;
  case UNIT_DURABLE: return DRAIN_STORED;
  case UNIT_FAILED: return DRAIN_FAILED;
  case UNIT_SKIPPED: return DRAIN_UNWANTED;
  case UNIT_SETTLING:
    if (run_unit_unasked(r, u)) return DRAIN_WAITS;
    return u->want.action == POLICY_WAIT && u->counted ? DRAIN_UNWANTED : DRAIN_OPEN;
  case UNIT_UNPROVEN: return DRAIN_OPEN;
  case UNIT_RETIRED:
  case UNIT_DROPPED: break; /* nothing waits for it */
  }
  return DRAIN_GONE;
}

static bool add(run_demand *d, const run_unit *u, drain_is is) {
  char *path = strdup(u->path), *series = strdup(u->series);
  if (!path || !series) {
    free(path);
    free(series);
    return false;
  }
  d->entries[d->count] =
      (entry){.path = path, .series = series, .content = u->fingerprint, .bytes = u->bytes};
  d->facts[d->count++] = (drain_unit){.is = is,
                                      .status = u->status,
                                      .group = u->group,
                                      .series = series,
                                      .made_ns = u->made_ns,
                                      .step = u->step};
  return true;
}

static int take(run *r, run_demand *d, err *e) {
  d->facts = calloc(r->unit_count + 1, sizeof *d->facts);
  d->entries = calloc(r->unit_count + 1, sizeof *d->entries);
  bool whole = d->facts && d->entries;
  for (size_t i = 0; whole && i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    const drain_is is = first_of(r, u);
    if (is == DRAIN_WAITS) u->drained = true;
    if (u->above || is == DRAIN_GONE || (is != DRAIN_WAITS && is_outdone(r, u))) continue;
    whole = add(d, u, is);
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

/* One that was let go for a newer one waits for that. */
static drain_is of_dropped(const run_unit *u) {
  if (u->late) return DRAIN_LEFT;
  return u->unwanted && !u->passed_over ? DRAIN_UNWANTED : DRAIN_WAITS;
}

static drain_is now_of(const run *r, const run_unit *u, const entry *x) {
  if (!u) return DRAIN_GONE;
  if (sends(u, &x->content)) return DRAIN_WAITS;
  if (!digest_equal(&u->fingerprint, &x->content)) return DRAIN_GONE;
  switch (u->phase) {
  case UNIT_RETIRED: return DRAIN_WAITS; /* for a moment */
  case UNIT_DROPPED: return of_dropped(u);
  case UNIT_UNPROVEN: return DRAIN_GONE;
  case UNIT_SETTLING: return first_of(r, u) == DRAIN_OPEN ? DRAIN_GONE : first_of(r, u);
  case UNIT_WAITING:
  case UNIT_RUNNING:
  case UNIT_RETRYING:
  case UNIT_DURABLE:
  case UNIT_FAILED:
  case UNIT_SKIPPED: break;
  }
  return first_of(r, u);
}

/* True if it may be in the target sooner or later. */
static bool comes(const run *r, const run_unit *u) {
  return u->phase == UNIT_RUNNING || run_unit_queued(u) ||
         (u->phase == UNIT_SETTLING && first_of(r, u) != DRAIN_UNWANTED);
}

/* What was written over, or removed for a newer one of its kind, is waited for in that: a job goes on
 * meanwhile. NULL: there is none. */
static run_unit *in_place_of(run *r, const entry *x, const drain_unit *f, run_unit *same_path) {
  const queue_unit older = {.series = x->series, .step = f->step, .made_ns = f->made_ns};
  if (same_path && comes(r, same_path)) return same_path;
  for (size_t i = r->unit_count; i-- > 0;) {
    run_unit *k = r->units[i];
    const queue_unit newer = {.series = k->series, .step = k->step, .made_ns = k->made_ns};
    if (k->group == f->group && comes(r, k) && queue_supersedes(&newer, &older)) return k;
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
  if (f->is == DRAIN_WAITS && (f->is = now_of(r, u, x)) == DRAIN_STORED) x->reason[0] = 0;
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
  if (f->is == DRAIN_FAILED && u) f->status = u->status;
  if (f->is == DRAIN_STORED)
    x->left = 0; /* its reason is perhaps the newer one's name */
  else if (u || f->is == DRAIN_GONE)
    say(x, u && f->is == DRAIN_WAITS ? run_unit_left(u) : x->bytes,
        why(r, u, f->is, text, sizeof text));
}

void run_drain_committed(run *r, const run_save *s) {
  const run_unit *u = s->unit;
  const queue_unit newer = {.series = u->series, .step = u->step, .made_ns = s->place.made_ns};
  for (run_demand *d = r->drains; d; d = d->next)
    for (size_t i = 0; !d->over && i < d->count; i++) {
      drain_unit *f = &d->facts[i];
      entry *x = &d->entries[i];
      const queue_unit older = {.series = x->series, .step = f->step, .made_ns = f->made_ns};
      bool itself = strcmp(x->path, u->path) == 0 && digest_equal(&x->content, &s->fingerprint);
      if (f->group != s->group || f->is == DRAIN_STORED || f->is == DRAIN_UNWANTED ||
          f->is == DRAIN_OPEN || (!itself && !queue_supersedes(&newer, &older)))
        continue;
      f->is = DRAIN_STORED;
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
  d->end = r->fenced ? ERR_FENCED : d->until <= now ? ERR_TIMEOUT : 0;
  return drain_judge(d->facts, d->count, d->end);
}

static void finish(run *r, run_demand *d, drain_answer a) {
  const entry *late = a.late == DRAIN_NONE ? NULL : &d->entries[a.late];
  d->over = true;
  if (--r->draining == 0)
    for (size_t i = 0; i < r->unit_count; i++) r->units[i]->drained = false;
  run_news news = {.kind = RUN_DRAINED,
                   .status = a.status,
                   .job = d->id,
                   .step = late ? d->facts[a.late].step : MATCH_NO_STEP,
                   .bytes = late ? late->left : 0,
                   .unit = late ? late->path : "",
                   .reason = late ? late->reason : NULL};
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
  for (size_t i = 0; i < r->unit_count; i++)
    if (!is_whole(r->units[i])) r->units[i]->hastened = true;
  r->grace_s = for_s;
  run_event(r, false);
  run_reconsider(r, "preempt");
  r->grace_s = grace_s;
  for (size_t i = 0; i < r->unit_count; i++) {
    run_unit *u = r->units[i];
    u->hastened = u->hastened && run_unit_queued(u);
  }
}

int run_drain_begin(run *r, double for_s, uint64_t *id, err *e) {
  int64_t ns;
  if (seconds_to_ns(for_s, "for", &ns, e) < 0) return ERR_INVAL;
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
  drain_answer a = d->over ? drain_judge(d->facts, d->count, d->end) : judge(r, d, now);
  *out = (run_drain_state){.over = d->over, .status = d->over ? a.status : 0};
  if (!d->over) out->left_s = d->until > now ? (double)(d->until - now) / 1e9 : 0;
  for (size_t i = 0; fn && i < d->count; i++) {
    const entry *x = &d->entries[i];
    const run_drained_unit told = {.unit = x->path,
                                   .reason = x->reason,
                                   .step = d->facts[i].step,
                                   .bytes = x->bytes,
                                   .left = x->left,
                                   .is = d->facts[i].is,
                                   .counts = drain_counts(d->facts, d->count, i),
                                   .late = a.late == (ptrdiff_t)i};
    fn(ctx, &told);
  }
  return 0;
}
