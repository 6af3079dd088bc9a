/* The public API, its part about what a target holds: list, restore, verify. */
#include "base/err.h"
#include "ckpt_state.h"
#include "core/catalog.h"

_Static_assert((int)CKPT_LIVE == (int)RUNLOG_LIVE &&
                   (int)CKPT_LIFE_DROPPED == (int)RUNLOG_DROPPED &&
                   (int)CKPT_LIFE_DELETED == (int)RUNLOG_DELETED,
               "ckpt.h and runlog.h disagree");

struct items {
  ckpt_item_fn *fn;
  ckpt_verified_fn *verified;
  void *ctx;
};

ckpt_item ckpt_item_of(const catalog_item *item, char root[HASH_HEX_MAX]) {
  const runlog_commit *c = item->commit;
  digest_hex(&c->root, root);
  return (ckpt_item){.size = sizeof(ckpt_item),
                     .group = item->group,
                     .name = c->unit,
                     .dir = c->dir,
                     .step = c->step,
                     .time_ns = c->time_ns,
                     .files = c->files,
                     .bytes = c->bytes,
                     .number = c->n,
                     .root = root,
                     .uri = item->uri,
                     .policy = c->policy ? c->policy : "",
                     .reason = c->reason ? c->reason : "",
                     .metrics = c->metrics ? c->metrics : "",
                     .life = (uint32_t)c->life,
                     .drop_policy = c->drop_policy ? c->drop_policy : "",
                     .drop_reason = c->drop_reason ? c->drop_reason : "",
                     .drop_ns = c->drop_ns,
                     .bad = c->bad,
                     .bad_reason = c->bad_reason ? c->bad_reason : ""};
}

static int on_item(void *ctx, store *s, const catalog_item *item, err *e) {
  (void)s;
  (void)e;
  struct items *i = ctx;
  char root[HASH_HEX_MAX];
  ckpt_item public = ckpt_item_of(item, root);
  return i->fn ? i->fn(i->ctx, &public) : 0;
}

int ckpt_list(ckpt *c, const char *uri, ckpt_item_fn *fn, void *ctx) {
  struct items i = {.fn = fn, .ctx = ctx};
  return catalog_each(c->env.io, &c->log, uri, on_item, &i, &c->error);
}

int ckpt_restore(ckpt *c, const ckpt_restore_options *options, ckpt_item_fn *fn, void *ctx) {
  ckpt_restore_options taken;
  struct items i = {.fn = fn, .ctx = ctx};
  int rc = ckpt_take(&taken, sizeof taken, options, "ckpt_restore_options", &c->error);
  if (rc == 0 && (!taken.uri || !taken.dir))
    rc = err_set(&c->error, ERR_INVAL, "a restore needs a target and a directory");
  if (rc == 0) rc = ckpt_need_pool(c);
  if (rc < 0) return rc;
  catalog_wish wish = {.where = taken.uri,
                       .name = taken.name,
                       .dir = taken.flags & CKPT_DRY_RUN ? NULL : taken.dir,
                       .alone = taken.flags & CKPT_RESTORE_ALONE};
  return catalog_restore(c->env.io, &c->log, c->pool, c->env.progress, &wish, on_item, &i,
                         &c->error);
}

static int on_verified(void *ctx, const catalog_item *item, int status, const char *reason,
                       unsigned findings) {
  struct items *i = ctx;
  char root[HASH_HEX_MAX];
  ckpt_item public = ckpt_item_of(item, root);
  ckpt_verified verified = {.size = sizeof verified,
                            .item = &public,
                            .status = status,
                            .reason = reason,
                            .findings = findings};
  return i->verified ? i->verified(i->ctx, &verified) : 0;
}

int ckpt_verify(ckpt *c, const char *uri, const char *name, ckpt_verified_fn *fn, void *ctx) {
  struct items i = {.verified = fn, .ctx = ctx};
  int rc = ckpt_need_pool(c);
  if (rc < 0) return rc;
  int bad = catalog_verify(c->env.io, &c->log, c->pool, c->env.progress, uri, name, on_verified, &i,
                           &c->error);
  if (bad <= 0) return bad;
  return err_set(&c->error, ERR_CORRUPT, "%d checkpoint%s of %s: the data is not what was saved",
                 bad, bad == 1 ? "" : "s", uri);
}
