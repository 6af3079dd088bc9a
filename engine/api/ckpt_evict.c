/* ckpt_evict: the part of the public API for one that is about to end a job. */
#include "base/err.h"
#include "ckpt_state.h"
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
