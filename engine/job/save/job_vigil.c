#include "job_vigil.h"

#include "base/seconds.h"

#define SECOND INT64_C(1000000000)
#define PAUSE_FIRST (SECOND / 5)
#define PAUSE_LAST (5 * SECOND)

int64_t vigil_now(const job_work *w) {
  return w->env->io->now(w->env->io, IO_MONO);
}

vigil vigil_begin(job_work *w, const char *what, int64_t longest) {
  job_at(w->job, what);
  int64_t now = vigil_now(w);
  return (vigil){.w = w, .begun = now, .until = seconds_later(now, longest), .pause = PAUSE_FIRST};
}

bool vigil_is_over(const vigil *v) {
  return vigil_now(v->w) >= v->until;
}

long long vigil_seconds(int64_t ns) {
  return (long long)(seconds_later(ns, SECOND - 1) / SECOND);
}

static int canceled(const job_work *w, err *e) {
  if (!atomic_load(&w->job->cancel)) return 0;
  return err_set(e, ERR_CANCELED, "%s: cancelled", w->job->plan.unit);
}

/* A cancel is heard within a quarter of a second. */
int vigil_nap(vigil *v, err *e) {
  const io *io = v->w->env->io;
  int64_t left = v->until - vigil_now(v->w);
  if (left > v->pause) left = v->pause;
  int rc = canceled(v->w, e);
  for (; rc == 0 && left > 0; left -= SECOND / 4) {
    io->sleep(io, left < SECOND / 4 ? left : SECOND / 4);
    rc = canceled(v->w, e);
  }
  if (v->pause < PAUSE_LAST) v->pause += v->pause / 2;
  return rc;
}
