#include "job_vigil.h"

#include "base/seconds.h"

#define SECOND INT64_C(1000000000)

static const struct {
  int64_t first, longest;
} paces[] = {[VIGIL_ALONE] = {SECOND / 5, 5 * SECOND},
             [VIGIL_NEWS] = {SECOND, 60 * SECOND},
             [VIGIL_KEY] = {5 * SECOND, 60 * SECOND}};

int64_t vigil_now(const job_work *w) {
  return w->env->io->now(w->env->io, IO_MONO);
}

bool vigil_hurries(const job_work *w) {
  return w->env->hurry && atomic_load(w->env->hurry);
}

vigil vigil_begin(job_work *w, const char *what, int64_t longest, vigil_pace pace) {
  job_at(w->job, what);
  int64_t now = vigil_now(w);
  return (vigil){.w = w,
                 .pace = pace,
                 .begun = now,
                 .until = seconds_later(now, longest),
                 .pause = paces[pace].first};
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

/* How long this pause is, as things stand: the nearer the deadline, the shorter. */
static int64_t pause_now(const vigil *v, int64_t begun) {
  const int64_t least = v->pace == VIGIL_ALONE ? 0 : ranks_pause_least(v->w->env->ranks->world);
  int64_t pause = v->pause, left = v->until - begun;
  if (v->pace != VIGIL_ALONE && vigil_hurries(v->w)) pause = least;
  if (pause > left / 4) pause = left / 4;
  if (pause < least) pause = least;
  return pause < left ? pause : left;
}

/* Sleeps so long, of which so much is over. */
static int64_t doze(const vigil *v, int64_t all, int64_t slept) {
  const int64_t step = SECOND / 4, left = all - slept < step ? all - slept : step;
  if (left > 0) v->w->env->io->sleep(v->w->env->io, left);
  return left;
}

int vigil_enter(const vigil *v, err *e) {
  const int64_t all = ranks_pause_first(v->w->env->ranks->rank);
  int rc = canceled(v->w, e);
  for (int64_t slept = 0; rc == 0 && slept < all; rc = canceled(v->w, e))
    slept += doze(v, all, slept);
  return rc;
}

/* A cancel, and that time is short, is heard within a quarter of a second. */
int vigil_nap(vigil *v, err *e) {
  const int64_t begun = vigil_now(v->w);
  int64_t slept = 0, all;
  int rc = canceled(v->w, e);
  for (; rc == 0 && (all = pause_now(v, begun)) > slept; rc = canceled(v->w, e))
    slept += doze(v, all, slept);
  v->pause += v->pause / 2;
  if (v->pause > paces[v->pace].longest) v->pause = paces[v->pace].longest;
  return rc;
}
