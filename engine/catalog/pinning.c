#include "pinning.h"

#include <string.h>

#include "base/fault.h"
#include "commit/pins.h"

struct pinning {
  asked_one one;
  int64_t life_ns;
  char *id;
};

/* A pin is put before the log is read again: a deleter drops first, then lists the pins, so one of
 * the two sees the other. */
static int pin_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct pinning *p = ctx;
  const runlog_commit *c;
  int rc = asked_get_one(&p->one, log, &c, e);
  if (rc < 0) return rc;
  pin_request request = {.dir = c->dir, .by = "user", .commit = c->n, .life_ns = p->life_ns};
  rc = pins_put(at->store, runlog_prefix(log), &request, p->id, false, e);
  if (rc < 0 || FAULT("pin-not-reread")) return rc;
  rc = runlog_refresh(log, e);
  if (rc == 0) rc = asked_get_one(&p->one, log, &c, e);
  if (rc < 0) pins_remove(at->store, runlog_prefix(log), p->id, NULL);
  return rc;
}

int pinning_put(const asked *a, int64_t life_ns, char id[33], err *e) {
  struct pinning p = {.life_ns = life_ns, .id = id};
  int rc = asked_with_one(a, &p.one, pin_in, &p, e);
  if (rc < 0) id[0] = 0;
  return rc;
}

struct unpinning {
  const asked *asked;
  int removed;
};

static bool is_meant(const struct unpinning *u, const runlog *log, const pin *p) {
  const runlog_commit *c = runlog_find_commit(runlog_view(log), p->commit);
  return strcmp(p->id, u->asked->name) == 0 ||
         (c && catalog_is_asked(u->asked->name, runlog_prefix(log), c));
}

/* An object that cannot be read as a pin can still be removed by its name. */
static int unpin_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct unpinning *u = ctx;
  const char *prefix = runlog_prefix(log);
  pins all;
  int rc = pins_list(at->store, prefix, &all, e);
  for (size_t i = 0; rc == 0 && i < all.count; i++) {
    if (!is_meant(u, log, &all.at[i])) continue;
    rc = pins_remove(at->store, prefix, all.at[i].id, e);
    if (rc == 0) u->removed++;
    if (rc == ERR_NOENT) rc = 0;
  }
  const char *slash = strrchr(all.broken_key, '/');
  if (rc == 0 && slash && strcmp(slash + 1, u->asked->name) == 0) {
    rc = pins_remove(at->store, prefix, slash + 1, e);
    u->removed += rc == 0;
  }
  pins_free(&all);
  return rc;
}

int pinning_remove(const asked *a, err *e) {
  struct unpinning u = {.asked = a};
  if (!a->name) return err_set(e, ERR_INVAL, "which pin? (an id, or a checkpoint's name)");
  int rc = asked_each_log(a, unpin_in, &u, e);
  if (rc < 0) return rc;
  if (u.removed) return u.removed;
  return err_set(e, ERR_NOENT, "%s has no pin %s, and none on a checkpoint of that name", a->where,
                 a->name);
}
