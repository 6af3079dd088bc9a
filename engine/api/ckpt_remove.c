/* ckpt_remove: the part of the public API about checkpoints that a target does not keep: the plan
 * of retention, and removal by hand. */
#include "base/seconds.h"
#include "ckpt_state.h"
#include "job/keep/judge.h"
#include "job/keep/remove_by_hand.h"

_Static_assert((int)CKPT_KEEP == (int)RETENTION_KEEP && (int)CKPT_DELETE == (int)RETENTION_DELETE,
               "ckpt.h and retention.h disagree");

int ckpt_grace_ns(double seconds, int64_t *ns, err *e) {
  return seconds_or_none(seconds, 24 * 3600 * SECOND_NS, "grace_delete", ns, e);
}

int ckpt_share(double share, double *out, err *e) {
  if (!(share >= 0 && share <= 1))
    return err_set(e, ERR_INVAL,
                   "max_delete: %g is no share; say 0.25 for a quarter (nothing at all: no_delete)",
                   share);
  *out = share > 0 ? share : 0.25;
  return 0;
}

int ckpt_remove(ckpt *c, const ckpt_remove_options *options, ckpt_item_fn *fn, void *ctx) {
  ckpt_remove_options taken;
  ckpt_items items = {.fn = fn, .ctx = ctx};
  remove_wish wish = {0};
  asked a;
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_take(&taken, sizeof taken, options, "ckpt_remove_options", &c->error);
  if (rc == 0) rc = ckpt_grace_ns(taken.grace_delete_s, &wish.grace_ns, &c->error);
  if (rc == 0) rc = ckpt_ask(c, taken.uri, taken.name, &a);
  if (rc != 0) return rc;
  wish.everything = taken.flags & CKPT_REMOVE_ALL;
  wish.dry = taken.flags & CKPT_DRY_RUN;
  return remove_by_hand(&a, &wish, fn ? ckpt_on_item : NULL, &items, &c->error);
}

struct verdicts {
  ckpt_verdict_fn *fn;
  void *ctx;
};

static int on_judged(void *ctx, const judged *what) {
  const struct verdicts *v = ctx;
  char root[HASH_HEX_MAX];
  ckpt_item item = ckpt_item_of(what->item, root);
  ckpt_verdict verdict = {.size = sizeof verdict,
                          .item = &item,
                          .verdict = (uint32_t)what->verdict,
                          .policy = what->policy,
                          .reason = what->reason,
                          .wait_s = seconds_of_ns(what->wait_ns)};
  const prune_thin_planned *loses = what->loses;
  if (loses) {
    verdict.lost_globs = names_list(&loses->globs);
    verdict.lost_files = loses->files;
    verdict.lost_bytes = loses->bytes;
    verdict.lost_wait_s = loses->later ? -1 : seconds_of_ns(loses->wait_ns);
  }
  return v->fn ? v->fn(v->ctx, &verdict) : 0;
}

int ckpt_plan(ckpt *c, const ckpt_plan_options *options, ckpt_verdict_fn *fn, void *ctx) {
  ckpt_plan_options taken;
  struct verdicts verdicts = {fn, ctx};
  int rc = ckpt_enter(c);
  if (rc < 0) return rc;
  const io *io = c->env.io;
  judge how = {.io = io, .log = &c->log};
  rc = ckpt_take(&taken, sizeof taken, options, "ckpt_plan_options", &c->error);
  if (rc == 0 && (!taken.uri || !*taken.uri))
    rc = err_set(&c->error, ERR_INVAL, "a plan needs a target");
  how.limits =
      (retention_limits){.no_delete = taken.flags & CKPT_NO_DELETE, .now_ns = io->now(io, IO_WALL)};
  if (rc == 0) rc = ckpt_share(taken.max_delete, &how.limits.max_drop, &c->error);
  if (rc == 0) rc = ckpt_grace_ns(taken.grace_delete_s, &how.limits.grace_ns, &c->error);
  if (rc == 0 && taken.policies) rc = ckpt_need_policies(c);
  if (rc < 0) return rc;
  policy_options o = {.io = io,
                      .log = &c->log,
                      .link = c->policies,
                      .id = "plan",
                      .names = taken.policies,
                      .settings = taken.settings,
                      .dir = taken.policy_dir,
                      .quiet_ns = -1};
  rc = policy_open(&o, &how.policy, &c->error);
  if (rc == 0) rc = judge_target(&how, taken.uri, on_judged, &verdicts, &c->error);
  policy_close(how.policy);
  return rc;
}
