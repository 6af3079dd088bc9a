#include "grace.h"

#include <math.h>

#include "runner/cli/report.h"

/* With a longer grace than that of who ends us we would be killed before our last word. Where Slurm is to start the
 * job again, it has to be told before it begins to end it. */
void grace_find(grace *g, ckpt *engine, const options *o) {
  ckpt_time_left left = {.size = sizeof left, .ends_s = -1, .kill_s = -1};
  if (o->graced) return;
  g->s = o->grace_s; /* what was said at a warning, minutes ago, is over */
  if (ckpt_time_left_detect(engine, &left) < 0)
    report_debug("the end of the job is not known: %s", ckpt_error(engine));
  if (left.kill_s >= 0) g->s = floor(left.kill_s * 10) / 10;
  if (o->requeue && left.ends_s > 0) g->s = floor(left.ends_s * 10) / 10;
}

double grace_patience(const grace *g) {
  return g->s < 20 ? g->s * 0.9 : g->s - 2;
}
