#include "pinned.h"
#include "base/fault.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct pinned {
  store base;
  store *inner;
  runlog *log; /* the renewing thread's */
  char *dir, *by;
  uint64_t commit;
  bool thin;            /* who reads it knows that files of it are gone */
  char id[PINS_ID_MAX]; /* "": there is no pin */
  pthread_mutex_t mutex;
  int64_t renew_at, until; /* IO_MONO: when to renew it; how long it holds without that */
  int status;              /* why nothing is read any more */
} pinned;

static int64_t mono(const pinned *p) {
  return p->inner->io->now(p->inner->io, IO_MONO);
}

/* Judges the log as it is now, after the pin was put or renewed. What was let go of it while the pin
 * `held` stays, as long as it is renewed. */
static int check_kept(const pinned *p, bool held, err *e) {
  const runlog_commit *c = runlog_find_commit(runlog_view(p->log), p->commit);
  if (c && c->life == RUNLOG_LIVE && c->thin.globs.count && !p->thin && !held)
    return err_set(
        e, ERR_CONFLICT,
        "files of %s are no longer kept, since newer checkpoints are there: read the log "
        "again",
        p->dir);
  if (FAULT("pin-not-reread") || (c && c->life == RUNLOG_LIVE)) return 0;
  return err_set(e, ERR_CONFLICT, "%s is no longer kept: %s (`list` shows what is)", p->dir,
                 c && c->drop_reason ? c->drop_reason : "it was dropped meanwhile");
}

#define LIFE_NS ((int64_t)PINS_READER_S * 1000000000)

static int put_once(pinned *p, bool renew, err *e) {
  pin_request request = {.dir = p->dir, .by = p->by, .commit = p->commit, .life_ns = LIFE_NS};
  int64_t now = mono(p);
  p->renew_at = now + LIFE_NS / 3;
  int rc = pins_put(p->inner, runlog_prefix(p->log), &request, p->id, renew, e);
  if (rc == 0) p->until = now + LIFE_NS;
  return rc;
}

/* An expired pin is not renewed: a deleter may have seen that, and remove it just now. So a new one
 * is put in its place, also if the renewal was on its way for so long. */
static int put(pinned *p, bool renew, err *e) {
  int64_t until = p->until;
  if (!renew || mono(p) >= until) return put_once(p, false, e);
  int rc = put_once(p, true, e);
  return rc == 0 && mono(p) >= until ? put_once(p, false, e) : rc;
}

static void without_pin(pinned *p, const err *why) {
  p->id[0] = 0;
  log_say(&p->inner->log, LOG_WARN, "%s is read without a pin: %s", p->dir, why->text);
}

/* Reads the log as it is after a renewal. If it cannot be read, a pin that was lost meanwhile holds
 * nothing yet: then nothing is read either. */
static int look_again(pinned *p, bool lost, err *why) {
  int rc = lost ? runlog_refresh_whole(p->log, why) : runlog_refresh(p->log, why);
  if (rc == 0) {
    p->status = check_kept(p, !lost, why);
    return p->status;
  }
  log_say(&p->inner->log, LOG_WARN, "%s: %s", p->dir, why->text);
  p->renew_at = mono(p);
  if (!lost) return 0;
  p->until = p->renew_at;
  return rc;
}

/* A pin that could not be renewed is worth as much as none: every byte is verified anyhow. */
static int keep_alive(pinned *p, err *e) {
  err why = {0};
  pthread_mutex_lock(&p->mutex);
  int rc = p->status;
  int64_t until = p->until;
  if (rc == 0 && p->id[0] && mono(p) >= p->renew_at) {
    if (put(p, true, &why) < 0)
      log_say(&p->inner->log, LOG_WARN, "%s: %s", p->dir, why.text);
    else
      rc = look_again(p, mono(p) >= until, &why);
  }
  pthread_mutex_unlock(&p->mutex);
  if (rc == 0) return 0;
  return err_set(e, rc, "%s", *why.text ? why.text : "the checkpoint is no longer kept");
}

static int pinned_exists(store *base, err *e) {
  store *in = ((pinned *)base)->inner;
  return in->ops->exists(in, e);
}

static int pinned_get(store *base, const char *key, buf *out, err *e) {
  store *in = ((pinned *)base)->inner;
  int rc = keep_alive((pinned *)base, e);
  return rc < 0 ? rc : in->ops->get(in, key, out, e);
}

static ssize_t pinned_read(store *base, const char *key, uint64_t at, void *to, size_t len,
                           err *e) {
  store *in = ((pinned *)base)->inner;
  int rc = keep_alive((pinned *)base, e);
  return rc < 0 ? rc : in->ops->read(in, key, at, to, len, e);
}

static int pinned_head(store *base, const char *key, store_object *out, err *e) {
  store *in = ((pinned *)base)->inner;
  return in->ops->head(in, key, out, e);
}

static int pinned_list(store *base, const char *prefix, bool delimited, store_list_fn *fn,
                       void *ctx, err *e) {
  store *in = ((pinned *)base)->inner;
  return in->ops->list(in, prefix, delimited, fn, ctx, e);
}

static int pinned_spell(store *base, const char *prefix, store_spelling how, err *e) {
  return store_spell(((pinned *)base)->inner, prefix, how, e);
}

/* A pin that stays behind expires. */
static void pinned_close(store *base) {
  pinned *p = (pinned *)base;
  err why = {0};
  if (p->log && p->id[0] && pins_remove(p->inner, runlog_prefix(p->log), p->id, &why) < 0)
    log_say(&p->inner->log, LOG_DEBUG, "a pin stays until it expires: %s", why.text);
  runlog_close(p->log);
  pthread_mutex_destroy(&p->mutex);
  free(p->dir);
  free(p->by);
  free(p);
}

static const store_ops pinned_ops = {
    .version = 1,
    .scheme = "pinned",
    .close = pinned_close,
    .exists = pinned_exists,
    .get = pinned_get,
    .read = pinned_read,
    .head = pinned_head,
    .list = pinned_list,
    .spell = pinned_spell,
};

static int open_with(store *inner, runlog *log, const char *dir, uint64_t n, bool thin,
                     const char *by, store **out, err *e) {
  err why = {0};
  *out = NULL;
  pinned *p = calloc(1, sizeof *p);
  if (!p) {
    runlog_close(log);
    return err_set(e, ERR_NOMEM, "pin %s: out of memory", dir);
  }
  p->base = (store){.ops = &pinned_ops, .io = inner->io, .log = inner->log};
  p->inner = inner;
  p->log = log;
  p->commit = n;
  p->thin = thin;
  p->dir = strdup(dir);
  p->by = strdup(by);
  pthread_mutex_init(&p->mutex, NULL);
  int rc = p->dir && p->by ? 0 : err_set(e, ERR_NOMEM, "pin %s: out of memory", dir);
  if (rc == 0 && put(p, false, &why) < 0) without_pin(p, &why);
  if (rc == 0) rc = runlog_refresh_whole(p->log, e);
  if (rc == 0) rc = check_kept(p, false, e);
  if (rc < 0)
    pinned_close(&p->base);
  else
    *out = &p->base;
  return rc;
}

int pinned_open(store *inner, const char *prefix, const char *dir, uint64_t n, bool thin,
                const char *by, store **out, err *e) {
  runlog *log = NULL;
  *out = NULL;
  int rc = runlog_open(inner, prefix, &log, e);
  return rc < 0 ? rc : open_with(inner, log, dir, n, thin, by, out, e);
}

int pinned_open_read(store *inner, const runlog *log, const runlog_commit *c, const char *by,
                     store **out, err *e) {
  runlog *own = NULL;
  *out = NULL;
  int rc = runlog_copy(log, &own, e);
  return rc < 0 ? rc : open_with(inner, own, c->dir, c->n, c->thin.globs.count > 0, by, out, e);
}
