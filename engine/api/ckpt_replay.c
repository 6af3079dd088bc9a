/* ckpt_replay: the part of the public API that plays a target's log against other policies. */
#include "catalog/catalog.h"
#include "ckpt_state.h"
#include "lab/replay.h"

_Static_assert((int)CKPT_WOULD_KEEP == (int)LAB_WOULD_KEEP &&
                   (int)CKPT_WOULD_DROP == (int)LAB_WOULD_DROP &&
                   (int)CKPT_EARLIER == (int)LAB_EARLIER && (int)CKPT_LATER == (int)LAB_LATER,
               "ckpt.h and replay.h disagree");

/* One that plays logs, and what it tells of the one that it is at. */
typedef struct replaying {
  lab_replay *replay;
  uint64_t past;       /* the entry behind which a past question is asked */
  ckpt_fate_fn *fated; /* NULL: nobody is told */
  ckpt_past_fn *asked;
  void *ctx;
  const catalog_place *at;
  const runlog *log;
  err *e;
} replaying;

static void stand_at(replaying *r, const catalog_place *at, const runlog *log, err *e) {
  r->at = at;
  r->log = log;
  r->e = e;
}

/* Room for the texts of an item. */
typedef struct told_item {
  catalog_told told;
  char root[HASH_HEX_MAX];
  ckpt_item item;
} told_item;

static int describe(const replaying *r, const runlog_commit *c, told_item *out) {
  int rc = catalog_describe(r->at, r->log, c, &out->told, r->e);
  if (rc == 0) out->item = ckpt_item_of(&out->told.item, out->root);
  return rc;
}

static int on_fate(void *ctx, const lab_fate *f) {
  const replaying *r = ctx;
  told_item t;
  if (!r->fated) return 0;
  int rc = describe(r, f->commit, &t);
  if (rc < 0) return rc;
  const ckpt_fate fate = {.size = sizeof fate,
                          .item = &t.item,
                          .what = (uint32_t)f->what,
                          .drop_ns = f->after ? f->after->time_ns : 0,
                          .after = f->after ? f->after->n : 0,
                          .policy = f->policy,
                          .reason = f->reason};
  return r->fated(r->ctx, &fate);
}

static int on_log(void *ctx, const catalog_place *at, runlog *log, err *e) {
  replaying *r = ctx;
  stand_at(r, at, log, e);
  return lab_replay_log(r->replay, runlog_view(log), runlog_prefix(log), on_fate, r, e);
}

static void give_sum(const lab_replay_sum *sum, ckpt_replay *out) {
  ckpt_replay given = {.logs = sum->logs,
                       .commits = sum->commits,
                       .would_keep = sum->would_keep,
                       .would_drop = sum->would_drop,
                       .moved = sum->moved,
                       .was_kept = sum->was_kept,
                       .kept = sum->kept,
                       .was_bytes = sum->was_bytes,
                       .bytes = sum->bytes,
                       .was_most = sum->was_most,
                       .most = sum->most,
                       .fallbacks = sum->fallbacks};
  ckpt_give(out, out->size, &given, sizeof given);
}

/* Opens it with the policies of these options, of which `taken` is a copy. */
static int open_replay(ckpt *c, const ckpt_plan_options *options, ckpt_plan_options *taken,
                       lab_replay **out) {
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_take(taken, sizeof *taken, options, "ckpt_plan_options", &c->error);
  if (rc == 0 && (!taken->uri || !*taken->uri))
    rc = err_set(&c->error, ERR_INVAL, "a replay needs a target");
  if (rc != 0) return rc;
  lab_replay_options o = {
      .io = c->env.io, .log = &c->log, .limits = {.no_delete = taken->flags & CKPT_NO_DELETE}};
  rc = ckpt_share(taken->max_delete, &o.limits.max_drop, &c->error);
  if (rc == 0) rc = ckpt_grace_ns(taken->grace_delete_s, &o.limits.grace_ns, &c->error);
  if (rc == 0 && taken->policies) rc = ckpt_need_policies(c);
  if (rc < 0) return rc;
  o.policy = (policy_options){.link = c->policies,
                              .id = "replay",
                              .names = taken->policies,
                              .settings = taken->settings,
                              .dir = taken->policy_dir,
                              .quiet_ns = -1};
  return lab_replay_open(&o, out, &c->error);
}

int ckpt_replay_log(ckpt *c, const ckpt_plan_options *options, ckpt_fate_fn *fn, void *ctx,
                    ckpt_replay *out) {
  ckpt_plan_options taken;
  replaying r = {.fated = fn, .ctx = ctx};
  int rc = open_replay(c, options, &taken, &r.replay);
  if (rc == 0) rc = catalog_logs(c->env.io, &c->log, taken.uri, on_log, &r, &c->error);
  if (rc == 0 && out) {
    const lab_replay_sum sum = lab_replay_end(r.replay);
    give_sum(&sum, out);
  }
  lab_replay_close(r.replay);
  return rc;
}

/* ---- one past moment ---- */

_Static_assert((int)CKPT_STOOD == (int)LAB_STOOD && (int)CKPT_TO_COME == (int)LAB_TO_COME &&
                   (int)CKPT_WENT == (int)LAB_WENT,
               "ckpt.h and replay.h disagree");

static int on_past(void *ctx, const lab_past *p) {
  const replaying *r = ctx;
  told_item t;
  int rc = describe(r, p->commit, &t);
  if (rc < 0) return rc;
  const ckpt_past past = {.size = sizeof past,
                          .item = &t.item,
                          .stance = (uint32_t)p->stance,
                          .after = p->after ? p->after->n : 0,
                          .after_ns = p->after ? p->after->time_ns : 0,
                          .stood = p->stood,
                          .verdict = (uint32_t)p->verdict,
                          .policy = p->policy,
                          .reason = p->reason};
  return r->asked(r->ctx, &past);
}

static int ask_log(void *ctx, const catalog_place *at, runlog *log, err *e) {
  replaying *r = ctx;
  stand_at(r, at, log, e);
  return lab_replay_at(r->replay, runlog_view(log), runlog_prefix(log), r->past, on_past, r, e);
}

int ckpt_replay_at(ckpt *c, const ckpt_plan_options *options, uint64_t at, ckpt_past_fn *fn,
                   void *ctx) {
  ckpt_plan_options taken;
  replaying r = {.past = at, .asked = fn, .ctx = ctx};
  int rc = open_replay(c, options, &taken, &r.replay);
  if (rc == 0 && !fn) rc = err_set(&c->error, ERR_INVAL, "somebody has to be told");
  if (rc == 0) rc = catalog_logs(c->env.io, &c->log, taken.uri, ask_log, &r, &c->error);
  lab_replay_close(r.replay);
  return rc;
}
