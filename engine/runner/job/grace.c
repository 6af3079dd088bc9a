#include "grace.h"

#include <math.h>
#include <stdio.h>

#include "runner/cli/report.h"

/* The launcher's time begins with its SIGTERM, which it may send as soon as Slurm begins to end the job. */
static void heed_launcher(grace *g, const ckpt_time_left *left, bool ends) {
  double begins = ends ? 0 : left->ends_s;
  if (left->launcher_s < 0 || begins < 0 || g->s <= begins + left->launcher_s) return;
  g->s = begins + left->launcher_s;
  snprintf(g->killer, sizeof g->killer, "%s", left->launcher);
}

/* With a longer grace than that of who ends us we would be killed before our last word. Where Slurm is to start the
 * job again, it has to be told before it begins to end it. */
void grace_find(grace *g, ckpt *engine, const options *o, bool ends) {
  ckpt_time_left left = {.size = sizeof left, .ends_s = -1, .kill_s = -1, .launcher_s = -1};
  *g->killer = 0;
  if (o->graced) return;
  g->s = o->grace_s; /* what was said at a warning, minutes ago, is over */
  if (ckpt_time_left_detect(engine, &left) < 0)
    report_debug("the end of the job is not known: %s", ckpt_error(engine));
  if (left.kill_s >= 0) g->s = floor(left.kill_s * 10) / 10;
  if (o->requeue && left.ends_s > 0) g->s = floor(left.ends_s * 10) / 10;
  heed_launcher(g, &left, ends);
}

double grace_patience(const grace *g) {
  return g->s < 20 ? g->s * 0.9 : g->s - 2;
}
