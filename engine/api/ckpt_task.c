/* ckpt_task: the part of the public API for a task whose directory another one watches. */
#include <stdio.h>
#include <stdlib.h>

#include "base/seconds.h"
#include "ckpt_state.h"
#include "launch/member.h"

struct ckpt_task {
  ckpt *engine;
  member *member;
};

static int join(ckpt *c, const ckpt_task_options *o, member **out) {
  places p;
  char home[FS_PATH_MAX];
  int rc = places_find(c->env.io, o->dir, o->state, &p, &c->error);
  if (rc < 0) return rc;
  if (snprintf(home, sizeof home, "%s.ckpt", o->dir) >= (int)sizeof home)
    return err_set(&c->error, ERR_LIMIT, "%s: the path is too long", o->dir);
  member_options m = {.io = c->env.io,
                      .dir = o->dir,
                      .home = home,
                      .state = p.state,
                      .launch = o->launch,
                      .task = o->number,
                      .index = o->task};
  return member_join(&m, out, &c->error);
}

int ckpt_task_join(ckpt *c, ckpt_task **out, const ckpt_task_options *options) {
  ckpt_task_options o = {0};
  if (out) *out = NULL;
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, out, "out");
  if (rc == 0) rc = ckpt_take(&o, sizeof o, options, "ckpt_task_options", &c->error);
  if (rc == 0) rc = ckpt_need(c, o.dir, "dir");
  if (rc == 0) rc = ckpt_need(c, o.launch, "launch");
  if (rc < 0 || !out) return rc;
  ckpt_task *t = calloc(1, sizeof *t);
  if (!t) return err_set(&c->error, ERR_NOMEM, "join a launch: out of memory");
  t->engine = c;
  rc = join(c, &o, &t->member);
  if (rc < 0)
    free(t);
  else
    *out = t;
  return rc;
}

int ckpt_task_step(ckpt_task *t, ckpt_task_seen *out) {
  int64_t quiet_ns = 0;
  bool over = false;
  if (!t) return ERR_INVAL;
  int rc = ckpt_enter(t->engine);
  if (rc == 0) rc = ckpt_need(t->engine, out, "out");
  if (rc < 0) return rc;
  rc = member_step(t->member, &quiet_ns, &over, &t->engine->error);
  ckpt_task_seen seen = {.next_s = (double)member_pause_ns(t->member) / 1e9,
                         .quiet_s = (double)quiet_ns / 1e9,
                         .over = over};
  ckpt_give(out, out->size, &seen, sizeof seen);
  return rc;
}

int ckpt_task_end(ckpt_task *t, int clean) {
  if (!t) return 0;
  int rc = ckpt_enter(t->engine);
  if (rc == 0) rc = member_end(t->member, clean, &t->engine->error);
  member_close(t->member);
  free(t);
  return rc;
}
