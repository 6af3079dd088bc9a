/* ckpt_evict: the part of the public API for one that is about to end a job. */
#include "base/err.h"
#include "ckpt_state.h"
#include "plan/drain.h"
#include "run/run.h"

static double since_1970(int64_t ns) {
  return ns > 0 ? (double)ns / 1e9 : -1;
}

int ckpt_run_evict(ckpt_run *h, ckpt_evict *out) {
  run_evict cost;
  int rc = ckpt_enter_run(h);
  if (rc == 0) rc = ckpt_need(h->engine, out, "out");
  if (rc < 0) return rc;
  run_get_evict(h->run, &cost);
  ckpt_evict result = {.time = since_1970(cost.now_ns),
                       .last_durable_time = since_1970(cost.durable_ns),
                       .complete_time = since_1970(cost.complete_ns),
                       .name = cost.unit,
                       .step = cost.step,
                       .bytes_pending = cost.bytes,
                       .seconds_to_durable = cost.durable_in_s,
                       .lost_since = since_1970(cost.lost_since_ns),
                       .lost_if_killed_now = cost.lost_s};
  ckpt_give(out, out->size, &result, sizeof result);
  return 0;
}

struct telling {
  ckpt_drained_fn *fn;
  void *ctx;
};

static void on_drained(void *ctx, const run_drained_unit *u) {
  const struct telling *t = ctx;
  ckpt_drained unit = {.size = sizeof unit,
                       .unit = u->unit,
                       .reason = u->reason,
                       .step = u->step,
                       .bytes = u->bytes,
                       .bytes_left = u->left,
                       .is = (uint32_t)u->is,
                       .counts = u->counts,
                       .late = u->late};
  if (t->fn) t->fn(t->ctx, &unit);
}

int ckpt_run_drained(ckpt_run *h, uint64_t job, ckpt_drain *out, ckpt_drained_fn *fn, void *ctx) {
  struct telling t = {fn, ctx};
  run_drain_state state = {0};
  int rc = ckpt_enter_run(h);
  if (rc == 0) rc = ckpt_need(h->engine, out, "out");
  if (rc < 0) return rc;
  rc = run_drained(h->run, job, &state, on_drained, &t);
  if (rc < 0)
    return err_set(&h->engine->error, rc, "drain %llu is not known, or was over long ago",
                   (unsigned long long)job);
  ckpt_drain result = {.over = state.over,
                       .status = state.status,
                       .left_s = state.left_s,
                       .standing = (uint32_t)state.word,
                       .reason = state.reason};
  ckpt_give(out, out->size, &result, sizeof result);
  return 0;
}

_Static_assert(CKPT_DRAINED == (int)RUN_DRAINED && CKPT_DRAIN_WAITS == (int)DRAIN_WAITS &&
                   CKPT_DRAIN_STORED == (int)DRAIN_STORED &&
                   CKPT_DRAIN_UNWANTED == (int)DRAIN_UNWANTED &&
                   CKPT_DRAIN_OPEN == (int)DRAIN_OPEN && CKPT_DRAIN_LEFT == (int)DRAIN_LEFT &&
                   CKPT_DRAIN_FAILED == (int)DRAIN_FAILED && CKPT_DRAIN_GONE == (int)DRAIN_GONE &&
                   CKPT_DRAIN_UNPROVEN == (int)DRAIN_UNPROVEN,
               "the header's numbers are those of drain.h");
