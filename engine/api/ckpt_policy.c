/* ckpt_policy: the part of the public API about policies that govern no run. */
#include "ckpt_state.h"
#include "decision/policy.h"
#include "decision/policy_check.h"
#include "decision/policy_diff.h"
#include "lab/simulate.h"

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
                            .text = one->text,
                            .why = one->why};
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

_Static_assert((int)CKPT_DIFFERENT == (int)POLICY_DIFFERENT &&
                   (int)CKPT_EQUAL == (int)POLICY_EQUAL &&
                   (int)CKPT_NONE_FOUND == (int)POLICY_NONE_FOUND,
               "ckpt.h and policy_diff.h disagree");

struct differences {
  ckpt_difference_fn *fn;
  void *ctx;
};

static int on_difference(void *ctx, const policy_difference *d) {
  const struct differences *s = ctx;
  const ckpt_difference told = {.size = sizeof told,
                                .key = d->key,
                                .name = d->name,
                                .facts = d->facts,
                                .a = d->a,
                                .b = d->b,
                                .why_a = d->why_a,
                                .why_b = d->why_b,
                                .verdict = (uint32_t)d->verdict,
                                .why = d->why,
                                .checkpoints = d->checkpoints,
                                .lists = d->lists,
                                .searched = d->searched,
                                .held = d->held};
  return s->fn ? s->fn(s->ctx, &told) : 0;
}

int ckpt_policy_diff(ckpt *c, const ckpt_diff_options *options, ckpt_difference_fn *fn, void *ctx) {
  ckpt_diff_options taken;
  struct differences s = {fn, ctx};
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_take(&taken, sizeof taken, options, "ckpt_diff_options", &c->error);
  if (rc == 0 && (!taken.a || !*taken.a || !taken.b || !*taken.b))
    rc = err_set(&c->error, ERR_INVAL, "a comparison needs two policies");
  if (rc == 0) rc = ckpt_need_policies(c);
  if (rc < 0) return rc;
  const policy_diff_options o = {.io = c->env.io,
                                 .link = c->policies,
                                 .a = taken.a,
                                 .b = taken.b,
                                 .settings = taken.settings,
                                 .dir = taken.policy_dir};
  return policy_diff(&o, on_difference, &s, &c->error);
}

_Static_assert((int)CKPT_MADE == (int)LAB_MADE && (int)CKPT_WANTED == (int)LAB_WANTED &&
                   (int)CKPT_SAVED == (int)LAB_SAVED && (int)CKPT_LET_GO == (int)LAB_LET_GO &&
                   (int)CKPT_LOST == (int)LAB_LOST,
               "ckpt.h and simulate.h disagree");

struct simulating {
  ckpt_simulated_fn *fn;
  void *ctx;
  ckpt_moment_fn *moment;
  void *moment_ctx;
};

static void on_moment(void *ctx, const lab_moment *m) {
  const struct simulating *s = ctx;
  const ckpt_moment told = {.size = sizeof told,
                            .what = (uint32_t)m->what,
                            .t = m->t,
                            .of = m->of,
                            .trial = m->trial,
                            .name = m->name,
                            .checkpoint = m->checkpoint,
                            .lost_s = m->lost_s};
  s->moment(s->moment_ctx, &told);
}

static int on_told(void *ctx, const lab_told *w) {
  const struct simulating *s = ctx;
  const ckpt_simulated told = {.size = sizeof told,
                               .index = w->i,
                               .t = w->t,
                               .event = w->event,
                               .trial = w->trial,
                               .asked = w->asked,
                               .sync = w->sync,
                               .unit = w->unit,
                               .policy = w->policy,
                               .reason = w->reason,
                               .saved = w->saved,
                               .failed = w->failed,
                               .let_go = w->let_go,
                               .deleted = w->deleted,
                               .remedies = w->remedies,
                               .restored = w->restored,
                               .lost_s = w->lost_s};
  return s->fn ? s->fn(s->ctx, &told) : 0;
}

static void give_sum(const lab_sum *sum, ckpt_simulation *out) {
  ckpt_simulation given = {.events = sum->events,
                           .questions = sum->questions,
                           .saved = sum->saved,
                           .failed = sum->failed,
                           .let_go = sum->let_go,
                           .unsaved = sum->unsaved,
                           .deleted = sum->deleted,
                           .kept = sum->kept,
                           .bytes_sent = sum->bytes_sent,
                           .bytes_kept = sum->bytes_kept,
                           .bytes_most = sum->bytes_most,
                           .crashes = sum->crashes,
                           .lost_s = sum->lost_s,
                           .seconds = sum->seconds,
                           .fallbacks = sum->fallbacks};
  ckpt_give(out, out->size, &given, sizeof given);
}

static bool is_number(double value) {
  return value >= 0 && value <= 1e18; /* NaN is none */
}

int ckpt_simulate(ckpt *c, const ckpt_simulate_options *options, ckpt_simulated_fn *fn, void *ctx,
                  ckpt_simulation *out) {
  ckpt_simulate_options taken;
  struct simulating s = {.fn = fn, .ctx = ctx};
  lab_sum sum;
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_take(&taken, sizeof taken, options, "ckpt_simulate_options", &c->error);
  if (rc == 0 && (!taken.events || !*taken.events))
    rc = err_set(&c->error, ERR_INVAL, "a simulation needs a file of events");
  if (rc == 0 && (!is_number(taken.bandwidth) || !is_number(taken.mtbf_s)))
    rc = err_set(&c->error, ERR_INVAL, "a bandwidth and an mtbf are 0 or more");
  if (rc != 0) return rc;
  lab_options o = {.io = c->env.io,
                   .log = &c->log,
                   .events = taken.events,
                   .limits = {.no_delete = taken.flags & CKPT_NO_DELETE},
                   .bandwidth = taken.bandwidth,
                   .mtbf_s = taken.mtbf_s,
                   .seed = taken.seed};
  rc = ckpt_share(taken.max_delete, &o.limits.max_drop, &c->error);
  if (rc == 0) rc = ckpt_grace_ns(taken.grace_delete_s, &o.limits.grace_ns, &c->error);
  if (rc == 0 && taken.policies) rc = ckpt_need_policies(c);
  if (rc < 0) return rc;
  o.policy = (policy_options){.link = c->policies,
                              .id = "simulation",
                              .names = taken.policies,
                              .settings = taken.settings,
                              .dir = taken.policy_dir,
                              .quiet_ns = -1};
  s.moment = taken.moment;
  s.moment_ctx = taken.moment_ctx;
  if (taken.moment) o.moment = on_moment, o.moment_ctx = &s;
  rc = lab_simulate(&o, on_told, &s, &sum, &c->error);
  if (rc == 0 && out) give_sum(&sum, out);
  return rc;
}
