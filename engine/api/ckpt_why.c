/* ckpt_why: the part of the public API that answers what became of a checkpoint, or of any path. */
#include <stdlib.h>
#include <string.h>

#include "ckpt_state.h"
#include "why/inquiry.h"

/* Hands out the findings, and keeps cause and text until the next call. */
static int hand_out(ckpt *c, const explain *x, ckpt_finding_fn *fn, void *ctx, const char **cause,
                    const char **text) {
  size_t len = strlen(x->cause) + 1, room = len + strlen(x->text) + 1;
  char *kept = malloc(room);
  if (!kept) return err_set(&c->error, ERR_NOMEM, "why: out of memory");
  memcpy(kept, x->cause, len);
  memcpy(kept + len, x->text, room - len);
  free(c->text);
  c->text = kept;
  int rc = 0;
  for (size_t i = 0; fn && rc == 0 && i < x->count; i++) {
    ckpt_finding finding = {.size = sizeof finding,
                            .topic = x->findings[i].topic,
                            .text = x->findings[i].text,
                            .time_ns = x->findings[i].time_ns};
    rc = fn(ctx, &finding);
  }
  if (cause) *cause = kept;
  if (text) *text = kept + len;
  return rc;
}

int ckpt_why(ckpt *c, const ckpt_why_options *options, ckpt_finding_fn *fn, void *ctx,
             const char **cause, const char **text) {
  ckpt_why_options taken;
  explain x = {0};
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_take(&taken, sizeof taken, options, "ckpt_why_options", &c->error);
  if (rc < 0) return rc;
  why_options o = {.name = taken.name, .dir = taken.dir, .state = taken.state, .to = taken.to};
  rc = why_ask(c->env.io, &c->log, &o, &x, &c->error);
  if (rc == 0) rc = hand_out(c, &x, fn, ctx, cause, text);
  explain_free(&x);
  return rc;
}

int ckpt_run_why(ckpt_run *h, const char *name, ckpt_finding_fn *fn, void *ctx, const char **cause,
                 const char **text) {
  explain x = {0};
  int rc = ckpt_enter_run(h);
  if (rc < 0) return rc;
  ckpt *c = h->engine;
  if (!name) return err_set(&c->error, ERR_INVAL, "why: a name or a path is needed");
  rc = run_why(h->run, name, &x, &c->error);
  if (rc == 0) rc = hand_out(c, &x, fn, ctx, cause, text);
  explain_free(&x);
  return rc;
}

int ckpt_find_dir(ckpt *c, const char *path, char *dir, size_t room) {
  char found[FS_PATH_MAX];
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, path, "path");
  if (rc == 0) rc = ckpt_need(c, dir, "dir");
  if (rc < 0) return rc;
  if (!why_find_dir(c->env.io, path, found))
    return err_set(&c->error, ERR_NOENT, "%s is in no directory that was watched", path);
  if (strlen(found) >= room)
    return err_set(&c->error, ERR_LIMIT, "%s: the path is too long", found);
  memcpy(dir, found, strlen(found) + 1);
  return 0;
}
