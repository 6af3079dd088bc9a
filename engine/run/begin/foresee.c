/* foresee: tells what a run would do, without doing it: by the survey that comes before every
 * run, on a target that is only read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "run/begin/begin.h"
#include "run/begin/open.h"
#include "run/begin/survey.h"

static int look_at_dir(const run *r, err *e) {
  struct stat st;
  int rc = r->env->io->lstat(r->env->io, AT_FDCWD, r->places.dir, &st);
  if (rc < 0) return err_sys(e, rc, "look at %s", r->places.dir);
  return S_ISDIR(st.st_mode) ? 0 : err_sys(e, ENOTDIR, "look at %s", r->places.dir);
}

static int on_log(void *ctx, runlog *log, err *e) {
  run_group *ignored;
  return run_group_get(ctx, runlog_prefix(log), &ignored, e);
}

/* Reads the logs as they are: nobody's lease is asked for, no term begins. */
static int read_groups(run *r, err *e) {
  run_group *root;
  int rc = run_group_get(r, "", &root, e);
  if (rc < 0 || r->store->ops->exists(r->store, NULL) != 0) return rc;
  rc = runlog_groups(r->store, "", on_log, r, e);
  for (size_t i = 0; rc == 0 && i < r->group_count; i++) rc = run_group_look(r, r->groups[i], e);
  return rc;
}

static run_foreseen what_of(recover_standing standing) {
  switch (standing) {
  case RECOVER_COMMITTED: return RUN_IS_THERE;
  case RECOVER_WHOLE: return RUN_WOULD_SAVE;
  case RECOVER_SUPERSEDED:
  case RECOVER_BAD: return RUN_IS_OLDER;
  case RECOVER_PART:
  case RECOVER_ALONE:
  case RECOVER_UNPROVEN:
  case RECOVER_TORN: break;
  }
  return RUN_IS_NOT_PROVEN;
}

/* True if it was complete before the newest commit of its group, as run_is_late() will find. */
static bool comes_late(const run *r, const survey_unit *u, char *why, size_t room) {
  const run_group *g = run_group_find(r, u->group);
  if (u->standing != RECOVER_WHOLE || !g || u->made_ns >= g->newest_place.made_ns) return false;
  if (run_lost_find(g, u->path)) return false;
  const runlog_commit *c = runlog_newest(runlog_view(g->group.log), NULL);
  snprintf(why, room, RUN_LATE "%.200s", c ? c->unit : "?");
  return true;
}

static int tell(run *r, run_foresee_fn *fn, void *ctx, err *e) {
  survey s = {0};
  int rc = run_survey(r, &s, e);
  if (rc == 0) run_order_begin(r);
  for (size_t i = 0; rc == 0 && i < s.count; i++) {
    const survey_unit *u = &s.units[i];
    char why[256];
    rc = comes_late(r, u, why, sizeof why)
             ? fn(ctx, u->path, u->step, RUN_IS_OLDER, why)
             : fn(ctx, u->path, u->step, what_of(u->standing), u->reason);
  }
  run_survey_free(&s);
  return rc;
}

int run_foresee(const run_env *env, const run_options *o, run_foresee_fn *fn, void *ctx, err *e) {
  run *r = run_new(env, o);
  if (!r) return err_set(e, ERR_NOMEM, "look ahead: out of memory");
  int rc = run_open_policy(r, o, e);
  if (rc == 0) rc = places_look(env->io, &o->places, &r->places, e);
  if (rc == 0) rc = look_at_dir(r, e);
  if (rc == 0) rc = store_open(&r->places.target, r->env->io, env->log, &r->store, e);
  r->group_env = (group_env){.store = r->store,
                             .log = env->log,
                             .run_id = r->places.run_id,
                             .former = r->places.former,
                             .continue_run = o->continue_run};
  if (rc == 0) rc = read_groups(r, e);
  if (rc == 0) rc = run_look_for_lost(r, e);
  if (rc == 0) rc = tell(r, fn, ctx, e);
  run_close(r);
  return rc;
}
