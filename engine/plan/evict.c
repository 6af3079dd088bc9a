#include "evict.h"

/* A checkpoint of an earlier run is older than the work of this one, which began when it was loaded. One
 * that watches beside a job may have come later than the job. */
static int64_t saved_until(const evict_facts *f) {
  if (f->complete_ns == 0) return f->started_ns;
  return f->beside || f->complete_ns > f->started_ns ? f->complete_ns : f->started_ns;
}

/* When nobody works any more, what a kill can throw away is what is not sent yet. */
static int64_t worked_until(const evict_facts *f) {
  if (!f->over) return f->now_ns;
  return f->pending > 0 ? f->last_ns : 0;
}

evict_cost evict_judge(const evict_facts *f) {
  const int64_t since = saved_until(f), until = worked_until(f);
  evict_cost cost = {.durable_in_s = f->pending > 0 ? f->takes_s : 0};
  if (since == 0 || until <= since) return cost; /* a clock that was set back takes nothing away */
  cost.lost_since_ns = since;
  cost.lost_s = (double)(until - since) / 1e9;
  return cost;
}
