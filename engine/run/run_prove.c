/* run_prove: asks the target at the end of a run whether it still has what is called durable. One
 * request for the newest commit of each kind: somebody may have emptied the target meanwhile. */
#include "commit/manifest_read.h"
#include "run/run_state.h"

/* A target that does not answer is not waited for: then nothing is known against it. */
typedef struct vigil {
  run *run;
  atomic_bool over;
  bool ended;
} vigil;

static void watch_on_worker(void *arg) {
  enum { STEPS = 40, NAP_NS = 25000000 };
  vigil *v = arg;
  run *r = v->run;
  for (int i = 0; i < STEPS && !atomic_load(&v->over); i++) r->env->io->sleep(r->env->io, NAP_NS);
  if (!atomic_load(&v->over)) atomic_store(&r->stop, 1);
}

static void watch_done(void *ctx) {
  vigil *v = ctx;
  v->run->tasks--;
  v->ended = true;
}

/* Returns 1 if the commit's manifest is gone. */
static int is_gone(const run *r, const run_group *g, const runlog_commit *c) {
  char dir[STORE_KEY_MAX], key[STORE_KEY_MAX];
  store_object object;
  err why = {0};
  int rc = runlog_key_dir(g->group.log, c->dir, dir, &why);
  if (rc == 0) rc = manifest_key(dir, key, &why);
  if (rc == 0) rc = r->store->ops->head(r->store, key, &object, &why);
  return rc == ERR_NOENT || rc == ERR_NOSTORE;
}

static int look_at(run *r, run_group *g, err *e) {
  const runlog_state *state = runlog_view(g->group.log);
  int rc = 0;
  for (size_t i = 0; rc == 0 && !atomic_load(&r->stop) && i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (run_newest_of_series(state, c) && !run_is_lost(g, c->n) && is_gone(r, g, c))
      rc = run_lost_note(r, g, c, "its manifest is gone from the store", e);
  }
  return rc;
}

int run_prove(run *r, err *e) {
  run_status now;
  int rc = 0;
  vigil v = {.run = r};
  run_get_status(r, &now);
  if (now.standing != STANDING_DURABLE || run_follows(r) || atomic_load(&r->stop)) return 0;
  if (!run_submit(r, watch_on_worker, watch_done, &v)) return 0;
  for (size_t i = 0; rc == 0 && i < r->group_count; i++) {
    run_group *g = r->groups[i];
    /* While a worker has its log, it is not ours to read. */
    if (g->group.log && !g->foreign && !g->save && !run_keep_busy(g)) rc = look_at(r, g, e);
  }
  atomic_store(&v.over, true);
  while (!v.ended) pool_settle(r->env->pool, true);
  atomic_store(&r->stop, 0);
  return rc;
}
