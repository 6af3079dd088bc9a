/* run_lease: renews the leases of a run's groups on workers, beside the saves. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/seconds.h"
#include "commit/lease.h"
#include "run/run_state.h"
#include "run/start/slurm.h"
#include "run/wait/ticker.h"

struct renewal {
  run *run;
  group *group;
  uint64_t term;
  int status;
  err error;
};

static void renew_on_worker(void *arg) {
  struct renewal *w = arg;
  w->status = group_renew(w->group, w->term, &w->error);
  if (w->status < 0 && w->status != ERR_FENCED)
    log_say(w->run->env->log, LOG_WARN, "the lease could not be renewed: %s", w->error.text);
}

/* A writer that was paused may have nothing to save: it must stop all the same. */
static void renew_done(void *ctx) {
  struct renewal *w = ctx;
  w->run->tasks--;
  if (w->status == ERR_FENCED) run_fenced(w->run, w->group->prefix, w->error.text);
  free(w);
}

/* The first save of a group may last longer than a lease. Ranks but the first have none: the term
 * is not theirs. */
static uint64_t term_of(const run *r, const run_group *g) {
  if (r->ranks.rank > 0) return RUNLOG_NONE;
  return g->term == RUNLOG_NONE && g->save ? atomic_load(&g->save->term) : g->term;
}

static void renew(run *r, run_group *g) {
  struct renewal *w = malloc(sizeof *w);
  if (!w) return; /* the next renewal is soon enough */
  *w = (struct renewal){.run = r, .group = &g->group, .term = term_of(r, g)};
  if (!run_submit(r, renew_on_worker, renew_done, w)) free(w);
}

int64_t run_renew_leases(run *r, int64_t now) {
  if (now < r->lease_at) return r->lease_at;
  if (r->fenced) return r->lease_at = INT64_MAX; /* the lease is the newer writer's now */
  r->lease_at = now + (int64_t)LEASE_RENEW_S * 1000000000;
  for (size_t i = 0; i < r->group_count; i++)
    if (term_of(r, r->groups[i]) != RUNLOG_NONE) renew(r, r->groups[i]);
  return r->lease_at;
}

/* ---- those of others ---- */

static void say_waits(run *r) {
  err why = {0};
  if (identity_write(r->env->io, r->places.state, r->group_env.writer.boot, &r->identity, &why) < 0)
    log_say(r->env->log, LOG_DEBUG, "others are not told that a lease is waited for: %s", why.text);
}

/* Writes into the identity that we wait: otherwise a process that waits for us would think us
 * dead. */
static void on_wait(void *ctx, int64_t seconds, bool other) {
  run *r = ctx;
  snprintf(r->identity.waits, sizeof r->identity.waits, "the lease of %s: up to %" PRId64 " s",
           other ? "another writer, which may be alive"
                 : "the last writer, with this machine's id and before another start",
           seconds);
  say_waits(r);
  run_ranks_wait(r);
}

static bool is_over(void *ctx, const char *job) {
  const run *r = ctx;
  return slurm_is_over(r->outer, r->group_env.writer.job, job);
}

/* The lease of the whole target alone is waited for: a group of another host's trial is left to
 * it. */
void run_leases_may_wait(run *r, bool may) {
  int64_t now = r->outer->now(r->outer, IO_MONO);
  if (r->wait_lease_ns && !r->lease_wait_until)
    r->lease_wait_until = seconds_later(now, r->wait_lease_ns);
  r->lease_wait.until_ns = may ? r->lease_wait_until : 0;
}

int64_t run_leases_left(const run *r) {
  if (!r->lease_wait_until) return 0;
  int64_t left = r->lease_wait_until - r->outer->now(r->outer, IO_MONO);
  return left > 0 ? (left + SECOND_NS - 1) / SECOND_NS : 0;
}

void run_leases_say(run *r, int64_t left) {
  if (left > 0) {
    on_wait(r, left, true);
    return;
  }
  r->identity.waits[0] = 0;
  say_waits(r);
  run_ranks_wait(r); /* they go on waiting for what comes next */
}

int run_leases_await(run *r, err *e) {
  r->lease_wait = (lease_wait){.begins = on_wait, .over = is_over, .ctx = r};
  r->group_env.wait = &r->lease_wait;
  int rc = run_groups_open(r, e);
  r->group_env.wait = NULL;
  if (!*r->identity.waits) return rc;
  r->identity.waits[0] = 0;
  say_waits(r);
  return rc;
}

/* ---- while the owner's thread is busy ---- */

struct run_lease_keeper {
  ticker *ticker;
  const run *r;
  struct held {
    group *group;
    uint64_t term;
  } * held;
  size_t count;
};

static void renew_on_tick(void *ctx, uint64_t n) {
  const run_lease_keeper *k = ctx;
  err e = {0};
  (void)n;
  for (size_t i = 0; i < k->count; i++)
    if (group_renew(k->held[i].group, k->held[i].term, &e) < 0)
      log_say(k->r->env->log, LOG_WARN, "the lease could not be renewed: %s", e.text);
}

run_lease_keeper *run_leases_keep(const run *r) {
  run_lease_keeper *k = calloc(1, sizeof *k);
  struct held *held = calloc(r->group_count + 1, sizeof *held);
  if (!k || !held) goto out;
  *k = (run_lease_keeper){.r = r, .held = held};
  for (size_t i = 0; i < r->group_count; i++)
    if (term_of(r, r->groups[i]) != RUNLOG_NONE)
      held[k->count++] = (struct held){&r->groups[i]->group, r->groups[i]->term};
  if (ticker_begin((int64_t)LEASE_RENEW_S * 1000000000, renew_on_tick, k, &k->ticker, NULL) == 0)
    return k;
out:
  free(held);
  free(k);
  return NULL;
}

void run_leases_kept(run_lease_keeper *k) {
  if (!k) return;
  ticker_end(k->ticker);
  free(k->held);
  free(k);
}
