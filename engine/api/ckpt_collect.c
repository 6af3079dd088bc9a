/* The public API, its part about what nobody needs any more at a target. */
#include <stdio.h>

#include "ckpt_state.h"
#include "job/keep/collect_target.h"

struct collection {
  ckpt_collected_fn *fn;
  void *ctx;
};

static int tell(void *ctx, const char *log, const collected *what) {
  const struct collection *n = ctx;
  ckpt_collected public = {.size = sizeof public,
                           .log = log,
                           .what = what->what,
                           .name = what->name,
                           .reason = what->reason,
                           .bytes = what->bytes,
                           .status = what->status};
  return n->fn ? n->fn(n->ctx, &public) : 0;
}

int ckpt_collect(ckpt *c, const ckpt_collect_options *options, ckpt_collected_fn *fn, void *ctx) {
  ckpt_collect_options taken;
  struct collection n = {fn, ctx};
  int rc = ckpt_enter(c);
  if (rc < 0) return rc;
  rc = ckpt_take(&taken, sizeof taken, options, "ckpt_collect_options", &c->error);
  if (rc == 0 && (!taken.uri || !*taken.uri))
    rc = err_set(&c->error, ERR_INVAL, "a collection needs a target");
  collect_target t = {.io = c->env.io,
                      .sink = &c->log,
                      .where = taken.uri,
                      .dry = taken.flags & CKPT_DRY_RUN,
                      .told = tell,
                      .ctx = &n};
  if (rc == 0) rc = ckpt_grace_ns(taken.grace_delete_s, &t.grace_ns, &c->error);
  if (rc < 0) return rc;
  if (taken.remove) return collect_target_key(&t, taken.remove, &c->error);
  return taken.flags & CKPT_COLLECT_RUN ? collect_target_runs(&t, &c->error)
                                        : collect_target_logs(&t, &c->error);
}
