/* ckpt_policy: the part of the public API about policies that govern no run. */
#include "ckpt_state.h"
#include "decision/policy.h"
#include "decision/policy_check.h"

struct shipped {
  ckpt_policy_fn *fn;
  void *ctx;
};

static int on_shipped(void *ctx, const policy_shipped_one *one) {
  const struct shipped *s = ctx;
  const ckpt_policy told = {.size = sizeof told,
                            .name = one->name,
                            .path = one->path,
                            .about = one->about,
                            .text = one->text};
  return s->fn ? s->fn(s->ctx, &told) : 0;
}

int ckpt_policies(ckpt *c, const char *policy_dir, ckpt_policy_fn *fn, void *ctx) {
  struct shipped s = {fn, ctx};
  int rc = ckpt_enter(c);
  return rc < 0 ? rc : policy_shipped(c->env.io, policy_dir, on_shipped, &s, &c->error);
}

struct findings {
  ckpt_remark_fn *fn;
  void *ctx;
};

static int on_finding(void *ctx, const policy_finding *f) {
  static const uint32_t words[] = {
      [POLICY_FAULT] = CKPT_FAULT, [POLICY_DOUBT] = CKPT_WARNING, [POLICY_HINT] = CKPT_NOTE};
  const struct findings *s = ctx;
  const ckpt_remark told = {.size = sizeof told,
                            .word = words[f->level],
                            .line = f->line,
                            .column = f->column,
                            .topic = f->topic,
                            .text = f->text};
  return s->fn ? s->fn(s->ctx, &told) : 0;
}

int ckpt_policy_check(ckpt *c, const ckpt_check_options *options, ckpt_remark_fn *fn, void *ctx) {
  ckpt_check_options taken;
  struct findings s = {fn, ctx};
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_take(&taken, sizeof taken, options, "ckpt_check_options", &c->error);
  if (rc == 0 && (!taken.policy || !*taken.policy))
    rc = err_set(&c->error, ERR_INVAL, "a check needs a policy");
  if (rc == 0) rc = ckpt_need_policies(c);
  if (rc < 0) return rc;
  const policy_check_options o = {.io = c->env.io,
                                  .log = &c->log,
                                  .link = c->policies,
                                  .policy = taken.policy,
                                  .settings = taken.settings,
                                  .dir = taken.policy_dir,
                                  .tree = taken.dir};
  return policy_check(&o, on_finding, &s, &c->error);
}
