/* ckpt_reload: the part of the public API by which a run takes other policies. */
#include <math.h>

#include "ckpt_state.h"
#include "decision/policy.h"

int ckpt_run_reload(ckpt_run *h, const ckpt_reload_options *options, uint64_t *job) {
  ckpt_reload_options taken;
  if (job) *job = 0;
  int rc = ckpt_enter_run(h);
  if (rc == 0) rc = ckpt_need(h->engine, job, "job");
  if (rc < 0 || !job) return rc;
  ckpt *c = h->engine;
  rc = ckpt_take(&taken, sizeof taken, options, "ckpt_reload_options", &c->error);
  if (rc < 0) return rc;
  const run_reload_options o = {.policies = taken.policies,
                                .settings = taken.settings,
                                .dry = (taken.flags & CKPT_DRY_RUN) != 0};
  rc = run_reload_ask(h->run, &o, job, &c->error); /* from here on *job says whether it has begun */
  return rc < 0 ? rc : ckpt_step(c, h);
}

struct listener {
  ckpt_reload_change_fn *fn;
  void *ctx;
};

static int on_change(void *ctx, const run_changed *what) {
  const struct listener *l = ctx;
  ckpt_reload_change change = {.size = sizeof change,
                               .group = what->group,
                               .name = what->name,
                               .commit = what->commit,
                               .step = what->step,
                               .before = what->before->keep,
                               .after = what->after->keep,
                               .before_policy = what->before->policy,
                               .before_reason = what->before->reason,
                               .after_policy = what->after->policy,
                               .after_reason = what->after->reason};
  return l->fn(l->ctx, &change);
}

int ckpt_run_reloaded(ckpt_run *h, uint64_t job, ckpt_reloaded *out, ckpt_reload_change_fn *fn,
                      void *ctx) {
  run_reload_result s;
  struct listener l = {fn, ctx};
  int rc = ckpt_enter_run(h);
  if (rc == 0) rc = ckpt_need(h->engine, out, "out");
  if (rc < 0) return rc;
  rc = run_reloaded(h->run, job, &s, fn ? on_change : NULL, &l, &h->engine->error);
  if (rc == ERR_NOENT) return rc;
  ckpt_reloaded result = {.over = s.over,
                          .dry = s.dry,
                          .status = s.status,
                          .text = s.text ? s.text : "",
                          .policies = s.policies,
                          .replaced = s.replaced ? s.replaced : "",
                          .stays = s.stays,
                          .newest_only = s.newest_only,
                          .changes = s.changes,
                          .uncompared = s.uncompared,
                          .max_delete = s.max_drop,
                          .left_s =
                              s.left_ns == INT64_MAX ? (double)INFINITY : (double)s.left_ns / 1e9};
  ckpt_give(out, out->size, &result, sizeof result);
  return rc;
}
