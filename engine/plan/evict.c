#include "evict.h"

/* A checkpoint of an earlier run is older than the work of this one, which began when it was loaded. One
 * that watches beside a job may have come later than the job. */
static int64_t saved_until(const evict_facts *f) {
  if (f->complete_ns == 0) return f->started_ns;
  return f->beside || f->complete_ns > f->started_ns ? f->complete_ns : f->started_ns;
}

/* When nobody works any more, what a kill can throw away is what is not in the target. */
static int64_t worked_until(const evict_facts *f) {
  if (!f->over) return f->now_ns;
  if (f->safe) return 0;
  return f->last_ns > 0 ? f->last_ns : f->now_ns;
}

static double durable_in(const evict_facts *f) {
  if (f->pending == 0) return 0;
  return f->fenced || f->takes_s < 0 ? -1 : f->takes_s + f->rests_s;
}

evict_cost evict_judge(const evict_facts *f) {
  const int64_t since = saved_until(f), until = worked_until(f);
  evict_cost cost = {.durable_in_s = durable_in(f)};
  if (since == 0 || until <= since) return cost; /* a clock that was set back takes nothing away */
  cost.lost_since_ns = since;
  cost.lost_s = (double)(until - since) / 1e9;
  return cost;
}
