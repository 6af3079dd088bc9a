/* run_emptying: while the job runs, removes from quarantine what a commit has, too (emptying.h): nothing else
 * is ever removed. */
#include <fcntl.h>
#include <stdlib.h>

#include "base/seconds.h"
#include "run/quarantine/emptying.h"
#include "run/run_state.h"

struct run_emptying {
  run *run;
  names groups;
  atomic_int cancel;
  emptying pass;
  int status;
  err error;
};

static void emptying_free(run_emptying *w) {
  names_free(&w->groups);
  free(w);
}

static void empty_on_worker(void *arg) {
  run_emptying *w = arg;
  w->status = emptying_run(&w->pass, &w->error);
}

static void empty_done(void *ctx) {
  run_emptying *w = ctx;
  run *r = w->run;
  const emptying *pass = &w->pass;
  const char *target = r->places.target_text;
  r->tasks--;
  r->emptying = NULL;
  if (pass->removed > 0)
    log_say(r->env->log, LOG_WARN,
            "quarantine: %u cop%s of %llu bytes removed, which %s has as %s; %u stay%s",
            pass->removed, pass->removed == 1 ? "y" : "ies", (unsigned long long)pass->bytes,
            target, pass->of, pass->stay, pass->stay == 1 ? "s" : "");
  else if (pass->stay > 0)
    log_say(r->env->log, LOG_DEBUG, "quarantine: %u stay%s", pass->stay,
            pass->stay == 1 ? "s" : "");
  if (w->status < 0 && w->status != ERR_CANCELED)
    log_say(r->env->log, LOG_INFO,
            "quarantine: of some it could not be told whether %s has them: %s", target,
            w->error.text);
  emptying_free(w);
}

static bool list_groups(const run *r, names *out) {
  for (size_t i = 0; i < r->group_count; i++)
    if (!names_add(out, r->groups[i]->group.prefix)) return false;
  return true;
}

static bool is_there(const run *r) {
  struct stat st;
  return r->env->io->lstat(r->env->io, AT_FDCWD, r->places.quarantine, &st) == 0;
}

/* One pass an hour: what becomes a day old while the job runs need not wait for the next start. */
int64_t run_empty_step(run *r, int64_t now) {
  enum { PAUSE_S = 3600 };
  if (r->emptying || r->closing || r->fenced || r->preempted || run_anyway_unmet(r))
    return INT64_MAX;
  if (now < r->empty_at) return r->empty_at;
  r->empty_at = now + PAUSE_S * SECOND_NS;
  run_emptying *w = is_there(r) ? calloc(1, sizeof *w) : NULL;
  if (!w) return r->empty_at;
  w->run = r;
  w->pass = (emptying){.io = r->env->io,
                       .root = r->places.quarantine,
                       .store = r->store,
                       .groups = &w->groups,
                       .cancel = &w->cancel};
  if (list_groups(r, &w->groups) && run_submit(r, empty_on_worker, empty_done, w))
    r->emptying = w;
  else
    emptying_free(w);
  return r->empty_at;
}

bool run_empty_stop(run *r) {
  if (r->emptying) atomic_store(&r->emptying->cancel, 1);
  return r->emptying != NULL;
}
