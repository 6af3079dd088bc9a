/* The public API, its part about logs that have lost entries. */
#include "ckpt_state.h"
#include "job/repair/repair.h"

struct repairs {
  ckpt_repaired_fn *fn;
  void *ctx;
};

static int tell(void *ctx, const char *log, const repaired *what) {
  const struct repairs *n = ctx;
  ckpt_repaired public = {.size = sizeof public,
                          .log = log,
                          .what = what->what,
                          .name = what->name,
                          .reason = what->reason,
                          .lost = what->lost,
                          .torn = what->torn,
                          .epoch = what->epoch};
  return n->fn ? n->fn(n->ctx, &public) : 0;
}

int ckpt_repair(ckpt *c, const ckpt_repair_options *options, ckpt_repaired_fn *fn, void *ctx) {
  ckpt_repair_options taken;
  struct repairs n = {fn, ctx};
  int rc = ckpt_enter(c);
  if (rc < 0) return rc;
  rc = ckpt_take(&taken, sizeof taken, options, "ckpt_repair_options", &c->error);
  if (rc == 0 && (!taken.uri || !*taken.uri))
    rc = err_set(&c->error, ERR_INVAL, "a repair needs a target");
  repair_wish wish = {.io = c->env.io,
                      .sink = &c->log,
                      .where = taken.uri,
                      .dry = taken.flags & CKPT_DRY_RUN,
                      .take_over = taken.flags & CKPT_REPAIR_TAKE_OVER,
                      .told = tell,
                      .ctx = &n};
  return rc < 0 ? rc : repair_target(&wish, &c->error);
}
