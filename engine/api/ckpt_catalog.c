/* ckpt_catalog: the part of the public API about the checkpoints of a target: list, restore,
 * verify. */
#include <string.h>

#include "base/err.h"
#include "ckpt_state.h"
#include "catalog/catalog.h"
#include "job/tree/tree.h"
#include "prims/fs.h"

_Static_assert((int)CKPT_LIVE == (int)RUNLOG_LIVE &&
                   (int)CKPT_LIFE_DROPPED == (int)RUNLOG_DROPPED &&
                   (int)CKPT_LIFE_DELETED == (int)RUNLOG_DELETED,
               "ckpt.h and runlog.h disagree");

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
                     .bad_reason = c->bad_reason ? c->bad_reason : "",
                     .left_out = c->left_out,
                     .above = c->above,
                     .bad_lines = c->bad_lines ? c->bad_lines : "",
                     .needs = c->needs ? c->needs : "",
                     .chosen_files = item->chosen_files,
                     .chosen_bytes = item->chosen_bytes,
                     .thin = item->thin};
}

int ckpt_on_item(void *ctx, store *s, const catalog_item *item, err *e) {
  (void)s;
  (void)e;
  ckpt_items *i = ctx;
  char root[HASH_HEX_MAX];
  ckpt_item public = ckpt_item_of(item, root);
  return i->fn ? i->fn(i->ctx, &public) : 0;
}

int ckpt_list(ckpt *c, const char *uri, ckpt_item_fn *fn, void *ctx) {
  ckpt_items i = {.fn = fn, .ctx = ctx};
  int rc = ckpt_enter(c);
  if (rc < 0) return rc;
  return catalog_each(c->env.io, &c->log, uri, ckpt_on_item, &i, &c->error);
}

/* Its name is the last one of the place. */
static const char *name_of_place(const char *place) {
  const char *slash = strrchr(place, '/');
  return slash && slash[1] ? slash + 1 : "";
}

/* Restores what another tool wrote, of which there is nothing to hold it against. */
static int restore_foreign(ckpt *c, const char *place, const char *dir, const ckpt_items *i) {
  atomic_int never = 0;
  _Atomic uint64_t done = 0, total = 0;
  const char *const nothing[] = {NULL};
  tree_job p = {.io = c->env.io,
                .log = &c->log,
                .pool = c->pool,
                .excludes = nothing,
                .cancel = &never,
                .done = &done,
                .total = &total};
  tree_moved moved;
  char to[FS_PATH_MAX];
  const char *name = name_of_place(place);
  if (!*name)
    return err_set(&c->error, ERR_INVAL, "%s: name a place in it, which has a name of its own",
                   place);
  int rc = dir ? fs_join(to, dir, name, &c->error) : 0;
  if (rc == 0 && dir) rc = fs_mkdirs(c->env.io, dir, 0777, &c->error);
  if (rc == 0) rc = tree_fetch_foreign(&p, place, dir ? to : NULL, &moved, &c->error);
  if (rc < 0) return rc;
  const ckpt_item item = {.size = sizeof item,
                          .group = "",
                          .name = name,
                          .dir = name,
                          .step = -1,
                          .files = moved.files,
                          .bytes = moved.bytes,
                          .root = "",
                          .uri = place,
                          .policy = "",
                          .reason = "",
                          .metrics = "",
                          .drop_policy = "",
                          .drop_reason = "",
                          .bad_reason = "",
                          .foreign = 1};
  return i->fn ? i->fn(i->ctx, &item) : 0;
}

static int check_only(const char *const *only, err *e) {
  int rc = 0;
  for (; rc == 0 && only && *only; only++) rc = match_exclude_check(*only, e);
  return rc;
}

int ckpt_restore(ckpt *c, const ckpt_restore_options *options, ckpt_item_fn *fn, void *ctx) {
  ckpt_restore_options taken;
  ckpt_items i = {.fn = fn, .ctx = ctx};
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_take(&taken, sizeof taken, options, "ckpt_restore_options", &c->error);
  if (rc == 0 && (!taken.uri || !taken.dir))
    rc = err_set(&c->error, ERR_INVAL, "a restore needs a target and a directory");
  if (rc == 0) rc = check_only(taken.only, &c->error);
  if (rc == 0) rc = ckpt_need_pool(c);
  if (rc != 0) return rc;
  char foreign[URI_MAX] = "";
  catalog_wish wish = {.where = taken.uri,
                       .foreign = foreign,
                       .name = taken.name,
                       .dir = taken.flags & CKPT_DRY_RUN ? NULL : taken.dir,
                       .alone = taken.flags & CKPT_RESTORE_ALONE,
                       .record = taken.flags & CKPT_RESTORE_RECORD,
                       .only = taken.only && *taken.only ? taken.only : NULL};
  rc = catalog_restore(c->env.io, &c->log, c->pool, c->env.progress, &wish, ckpt_on_item, &i,
                       &c->error);
  if (rc != ERR_NOENT || !*foreign) return rc;
  if (wish.only)
    return err_set(
        &c->error, ERR_UNSUPPORTED,
        "%s is another tool's, and comes whole or not at all: it has no list of its files",
        foreign);
  return restore_foreign(c, foreign, wish.dir, &i);
}

struct verifying {
  ckpt_verified_fn *fn;
  void *ctx;
};

static int on_verified(void *ctx, const catalog_item *item, int status, const char *reason,
                       unsigned findings, const char *links, uint64_t link_count) {
  struct verifying *i = ctx;
  char root[HASH_HEX_MAX];
  ckpt_item public = ckpt_item_of(item, root);
  ckpt_verified verified = {.size = sizeof verified,
                            .item = &public,
                            .status = status,
                            .reason = reason,
                            .findings = findings,
                            .links = links ? links : "[]",
                            .link_count = link_count};
  return i->fn ? i->fn(i->ctx, &verified) : 0;
}

int ckpt_check_logs(ckpt *c, const char *uri) {
  int rc = ckpt_enter(c);
  return rc < 0 ? rc : catalog_check_logs(c->env.io, &c->log, uri, &c->error);
}

int ckpt_verify(ckpt *c, const char *uri, const char *name, ckpt_verified_fn *fn, void *ctx) {
  struct verifying i = {fn, ctx};
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need_pool(c);
  if (rc < 0) return rc;
  int bad = catalog_verify(c->env.io, &c->log, c->pool, c->env.progress, uri, name, on_verified, &i,
                           &c->error);
  if (bad <= 0) return bad;
  return err_set(&c->error, ERR_CORRUPT, "%d checkpoint%s of %s: the data is not what was saved",
                 bad, bad == 1 ? "" : "s", uri);
}
