#include "replay.h"

#include <stdlib.h>
#include <string.h>

#include "lab/world.h"

struct lab_replay {
  lab world;
  lab_options options;
  lab_replay_sum sum;
  lab_sum unused; /* what a simulation counts */
};

/* What becomes of a commit; `after` is a place in the list of commits. */
typedef struct fate {
  bool dropped;
  retention_verdict verdict;
  size_t after;
  char *policy, *reason;
} fate;

/* One log that is played. */
typedef struct play {
  lab_replay *r;
  lab_trial trial;
  const runlog_commit *commits; /* of the log, */
  size_t count;                 /* without those of runs that were removed before */
  fate *was, *would;
  size_t now; /* the commit that came last */
} play;

static bool play_new(play *p, lab_replay *r, const runlog_state *log, const char *prefix) {
  size_t first = 0;
  while (first < log->commit_count && log->commits[first].n < log->since) first++;
  *p = (play){.r = r, .commits = log->commits + first, .count = log->commit_count - first};
  p->trial = (lab_trial){.name = prefix, .keep_at = INT64_MAX, .resumed = RUNLOG_NONE};
  p->was = calloc(p->count + 1, sizeof *p->was);
  p->would = calloc(p->count + 1, sizeof *p->would);
  return p->was && p->would;
}

static void play_free(play *p) {
  for (size_t i = 0; p->would && i < p->count; i++) {
    free(p->would[i].policy);
    free(p->would[i].reason);
  }
  free(p->was);
  free(p->would);
  lab_trial_free(&p->trial);
}

/* The last commit before entry n, which stands behind the first one. */
static size_t last_before(const play *p, uint64_t n) {
  size_t low = 0, high = p->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (p->commits[middle].n < n)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? low - 1 : 0;
}

/* What went with its whole run, or was lost, was let go by nobody. */
static void find_what_was(play *p) {
  for (size_t i = 0; i < p->count; i++) {
    const runlog_commit *c = &p->commits[i];
    p->was[i].dropped = c->life != RUNLOG_LIVE && c->drop != 0;
    if (p->was[i].dropped) p->was[i].after = last_before(p, c->drop);
  }
}

/* Writes down whose word on a commit holds. */
static void take_word(play *p, fate *f, const retention_item *item, const policy_kept *said) {
  const bool drops = item->verdict == RETENTION_DROP;
  const bool by_policy = drops || (item->verdict == RETENTION_KEEP && *said->reason);
  *f = (fate){.dropped = drops,
              .verdict = item->verdict,
              .after = p->now,
              .policy = strdup(by_policy ? said->policy : "builtin"),
              .reason = strdup(by_policy ? said->reason : item->reason)};
  if (!f->policy || !f->reason) p->r->world.broken = true;
}

/* Of what stays, only the last word is told. */
static void on_judged(void *ctx, const retention_item *item, const policy_kept *said) {
  play *p = ctx;
  fate *f = &p->would[last_before(p, item->commit->n + 1)];
  if (item->verdict == RETENTION_DROP || p->now + 1 == p->count) take_word(p, f, item, said);
}

static int play_commits(play *p, err *e) {
  lab *l = &p->r->world;
  for (size_t i = 0; i < p->count; i++) {
    p->now = i;
    if (p->commits[i].time_ns > l->now) l->now = p->commits[i].time_ns;
    lab_commit_again(l, &p->trial, &p->commits[i]);
    if (!l->broken) lab_keep(l, &p->trial);
    names_free(&l->news.deleted);
    if (l->broken) return err_set(e, ERR_NOMEM, "replay: out of memory");
  }
  return 0;
}

/* ---- what comes of it ---- */

static lab_difference differs(const fate *was, const fate *would) {
  if (was->dropped != would->dropped) return was->dropped ? LAB_WOULD_KEEP : LAB_WOULD_DROP;
  if (!was->dropped || was->after == would->after) return 0;
  return would->after < was->after ? LAB_EARLIER : LAB_LATER;
}

/* How many bytes are kept, at the end and at most, by these fates. */
static void add_up(const play *p, const fate *fates, uint64_t *kept, uint64_t *bytes,
                   uint64_t *most) {
  uint64_t *gone = calloc(p->count + 1, sizeof *gone); /* behind each commit */
  uint64_t now = 0, top = 0;
  if (!gone) {
    p->r->world.broken = true;
    return;
  }
  for (size_t i = 0; i < p->count; i++)
    if (fates[i].dropped) lab_add(&gone[fates[i].after], p->commits[i].bytes);
  for (size_t i = 0; i < p->count; i++) {
    *kept += !fates[i].dropped;
    lab_add(&now, p->commits[i].bytes);
    if (now > top) top = now;
    now -= gone[i] < now ? gone[i] : now;
  }
  free(gone);
  lab_add(bytes, now);
  lab_add(most, top);
}

static int tell(play *p, lab_fate_fn *fn, void *ctx) {
  lab_replay_sum *sum = &p->r->sum;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < p->count; i++) {
    const fate *would = &p->would[i];
    const lab_fate told = {.commit = &p->commits[i],
                           .what = differs(&p->was[i], would),
                           .after = would->dropped ? &p->commits[would->after] : NULL,
                           .policy = would->policy ? would->policy : "",
                           .reason = would->reason ? would->reason : ""};
    sum->would_keep += told.what == LAB_WOULD_KEEP;
    sum->would_drop += told.what == LAB_WOULD_DROP;
    sum->moved += told.what == LAB_EARLIER || told.what == LAB_LATER;
    if (told.what && fn) rc = fn(ctx, &told);
  }
  return rc;
}

int lab_replay_log(lab_replay *r, const runlog_state *log, const char *prefix, lab_fate_fn *fn,
                   void *ctx, err *e) {
  play p;
  lab_replay_sum *sum = &r->sum;
  int rc = play_new(&p, r, log, prefix) ? 0 : err_set(e, ERR_NOMEM, "replay: out of memory");
  r->world.now = 0;
  r->world.judged = on_judged;
  r->world.judged_ctx = &p;
  if (rc == 0) find_what_was(&p);
  if (rc == 0) rc = play_commits(&p, e);
  if (rc == 0) {
    sum->logs += p.count > 0;
    sum->commits += p.count;
    add_up(&p, p.was, &sum->was_kept, &sum->was_bytes, &sum->was_most);
    add_up(&p, p.would, &sum->kept, &sum->bytes, &sum->most);
    if (r->world.broken) rc = err_set(e, ERR_NOMEM, "replay: out of memory");
  }
  if (rc == 0) rc = tell(&p, fn, ctx);
  play_free(&p);
  return rc;
}

/* ---- one past moment ---- */

static void on_asked(void *ctx, const retention_item *item, const policy_kept *said) {
  play *p = ctx;
  take_word(p, &p->would[last_before(p, item->commit->n + 1)], item, said);
}

static lab_stance stance_of(const runlog_commit *c, uint64_t at) {
  if (c->n > at) return LAB_TO_COME;
  return c->life != RUNLOG_LIVE && c->drop != 0 && c->drop <= at ? LAB_WENT : LAB_STOOD;
}

/* Asks about those that stood; returns how many. */
static size_t ask_at(play *p, uint64_t at) {
  lab *l = &p->r->world;
  size_t stood = 0;
  for (size_t i = 0; i < p->count && p->commits[i].n <= at; i++) {
    if (p->commits[i].time_ns > l->now) l->now = p->commits[i].time_ns;
    if (stance_of(&p->commits[i], at) != LAB_STOOD) continue;
    lab_commit_again(l, &p->trial, &p->commits[i]);
    stood++;
  }
  if (stood > 0 && !l->broken) lab_keep(l, &p->trial);
  names_free(&l->news.deleted);
  return stood;
}

static int tell_past(const play *p, uint64_t at, size_t stood, lab_past_fn *fn, void *ctx) {
  const bool any = p->count > 0 && p->commits[0].n <= at;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < p->count; i++) {
    const fate *f = &p->would[i];
    rc = fn(ctx, &(lab_past){.commit = &p->commits[i],
                             .after = any ? &p->commits[last_before(p, at + 1)] : NULL,
                             .stance = stance_of(&p->commits[i], at),
                             .stood = stood,
                             .verdict = f->verdict,
                             .policy = f->policy ? f->policy : "",
                             .reason = f->reason ? f->reason : ""});
  }
  return rc;
}

int lab_replay_at(lab_replay *r, const runlog_state *log, const char *prefix, uint64_t at,
                  lab_past_fn *fn, void *ctx, err *e) {
  play p;
  int rc = play_new(&p, r, log, prefix) ? 0 : err_set(e, ERR_NOMEM, "replay: out of memory");
  r->world.now = 0;
  r->world.judged = on_asked;
  r->world.judged_ctx = &p;
  if (at == UINT64_MAX) at--; /* no entry has that number */
  const size_t stood = rc == 0 ? ask_at(&p, at) : 0;
  if (rc == 0 && r->world.broken) rc = err_set(e, ERR_NOMEM, "replay: out of memory");
  if (rc == 0) rc = tell_past(&p, at, stood, fn, ctx);
  play_free(&p);
  return rc;
}

int lab_replay_open(const lab_replay_options *o, lab_replay **out, err *e) {
  *out = NULL;
  lab_replay *r = calloc(1, sizeof *r);
  if (!r) return err_set(e, ERR_NOMEM, "replay: out of memory");
  r->options = (lab_options){.io = o->io, .log = o->log, .policy = o->policy, .limits = o->limits};
  r->options.limits.grace_ns =
      0; /* nobody asks for what waits for its end, and there may be many */
  int rc = lab_open(&r->world, &r->options, &r->unused, e);
  if (rc == 0)
    *out = r;
  else
    lab_replay_close(r);
  return rc;
}

lab_replay_sum lab_replay_end(const lab_replay *r) {
  lab_replay_sum sum = r->sum;
  sum.fallbacks = policy_fallbacks(r->world.policy);
  return sum;
}

void lab_replay_close(lab_replay *r) {
  if (!r) return;
  policy_close(r->world.policy);
  free(r);
}
