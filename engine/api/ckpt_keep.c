/* ckpt_keep: the part of the public API about single checkpoints of a target: all that is known of
 * one, and pins. */
#include <stdlib.h>

#include "base/seconds.h"
#include "ckpt_state.h"
#include "catalog/pinning.h"
#include "catalog/show.h"

int ckpt_ask(ckpt *c, const char *uri, const char *name, asked *out) {
  return asked_parse(c->env.io, &c->log, uri, name, out, &c->error);
}

int ckpt_pin(ckpt *c, const char *uri, const char *name, double seconds, char id[33]) {
  asked a;
  int64_t life;
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, id, "id");
  if (rc < 0) return rc;
  id[0] = 0;
  rc = seconds_to_ns(seconds, "how long the pin holds (0: for ever)", &life, &c->error);
  if (rc == 0) rc = ckpt_ask(c, uri, name, &a);
  return rc < 0 ? rc : pinning_put(&a, life == SECONDS_FOREVER ? 0 : life, id, &c->error);
}

int ckpt_unpin(ckpt *c, const char *uri, const char *name_or_id) {
  asked a;
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_ask(c, uri, name_or_id, &a);
  return rc < 0 ? rc : pinning_remove(&a, &c->error);
}

int ckpt_show(ckpt *c, const char *uri, const char *name, const char **json) {
  asked a;
  int entered = ckpt_enter(c);
  if (entered == 0) entered = ckpt_need(c, json, "json");
  if (entered < 0) return entered;
  free(c->text);
  c->text = NULL;
  *json = NULL;
  int rc = ckpt_ask(c, uri, name, &a);
  if (rc == 0) rc = show_checkpoint(&a, &c->text, &c->error);
  *json = c->text;
  return rc;
}
