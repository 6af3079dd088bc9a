/* ckpt_mark: the part of the public API about checkpoints that do not load. */
#include <string.h>

#include "ckpt_state.h"
#include "catalog/mark.h"

int ckpt_mark(ckpt *c, const ckpt_mark_options *options, ckpt_item_fn *fn, void *ctx) {
  ckpt_mark_options taken;
  ckpt_items items = {.fn = fn, .ctx = ctx};
  asked a;
  int rc = ckpt_enter(c);
  if (rc < 0) return rc;
  err *e = &c->error;
  rc = ckpt_take(&taken, sizeof taken, options, "ckpt_mark_options", e);
  if (rc == 0 && taken.reason && strlen(taken.reason) >= RUNLOG_REASON_MAX)
    rc = err_set(e, ERR_INVAL, "the reason is longer than %d bytes", RUNLOG_REASON_MAX - 1);
  if (rc == 0) rc = ckpt_ask(c, taken.uri, taken.name, &a);
  if (rc < 0) return rc;
  mark_wish wish = {.reason = taken.reason,
                    .good = taken.good,
                    .dry = taken.flags & CKPT_DRY_RUN,
                    .only = taken.number};
  return mark_checkpoint(&a, &wish, fn ? ckpt_on_item : NULL, &items, e);
}
