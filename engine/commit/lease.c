#include "lease.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "prims/proc.h"

enum { LEASE_BYTES_MAX = 64 << 10, FORMAT = 1, READER = 1 };

/* The text of a lease. */
typedef struct holder {
  bool present;
  bool known; /* the text could be read; else only the time counts */
  bool released;
  bool epochs;
  uint64_t term;
  int64_t pid;
  char *host, *launch, *job;
} holder;

static void holder_free(holder *h) {
  free(h->host);
  free(h->launch);
  free(h->job);
  *h = (holder){0};
}

static int key_of(const char *prefix, const char *name, char out[STORE_KEY_MAX], err *e) {
  int len = snprintf(out, STORE_KEY_MAX, "%s%s.ckpt/%s", prefix, prefix[0] ? "/" : "", name);
  if (len < 0 || len >= STORE_KEY_MAX)
    return err_set(e, ERR_LIMIT, "the key of the lease below \"%.200s...\" is too long", prefix);
  return 0;
}

static int parse(const buf *text, holder *h) {
  json_t *object = NULL;
  int64_t term = 0;
  int rc = js_read(text, "lease", READER, &object, NULL);
  if (rc == 0) rc = js_get_int(object, "term", "lease", &term, NULL);
  if (rc == 0) rc = js_get_int(object, "pid", "lease", &h->pid, NULL);
  if (rc == 0) rc = js_get_name(object, "host", "lease", &h->host, NULL);
  if (rc == 0) rc = js_get_name(object, "launch", "lease", &h->launch, NULL);
  if (rc == 0) rc = js_get_name(object, "job", "lease", &h->job, NULL);
  if (rc == 0) rc = js_opt_bool(object, "released", "lease", false, &h->released, NULL);
  h->epochs = json_is_true(json_object_get(object, "epochs"));
  h->term = (uint64_t)term;
  h->known = rc == 0 && term >= 0;
  json_decref(object);
  return rc == ERR_NOMEM ? rc : 0;
}

/* Reads the lease. An absent or broken one is no error: a hint that cannot be read must not stop
 * anybody from working, but a writer that renews it is there all the same. */
static int read_lease(store *s, const char *key, holder *h, err *e) {
  buf text;
  err why = {0};
  buf_init(&text, LEASE_BYTES_MAX);
  int rc = s->ops->get(s, key, &text, &why);
  h->present = rc == 0 || rc == ERR_LIMIT;
  if (rc == 0)
    rc = parse(&text, h);
  else if (rc == ERR_NOENT || rc == ERR_LIMIT)
    rc = 0;
  if (rc < 0) err_set(e, rc, "read the lease: %s", why.text[0] ? why.text : err_text(rc));
  buf_free(&text);
  return rc;
}

int lease_store_now(store *s, const char *prefix, int64_t *out, err *e) {
  char nonce[33], name[64], key[STORE_KEY_MAX];
  store_object probe;
  err why = {0};
  int rc = io_nonce(s->io, nonce);
  if (rc < 0) return err_sys(e, rc, "read the clock of the store: random numbers");
  snprintf(name, sizeof name, "lease-probe.%s", nonce);
  rc = key_of(prefix, name, key, e);
  if (rc == 0) rc = s->ops->put(s, key, nonce, strlen(nonce), STORE_IF_ABSENT, e);
  if (rc < 0) return rc;
  rc = s->ops->head(s, key, &probe, e);
  if (rc == 0) *out = probe.mtime_ns;
  if (s->ops->remove(s, key, &why) < 0)
    log_say(&s->log, LOG_WARN, "%s stays behind: %s", key, why.text);
  return rc;
}

/* True if the lease is released and is this term's. A released lease of an older term says nothing:
 * the newest term's may just have been replaced by it. */
static bool is_released(const holder *h, uint64_t term) {
  return h->known && h->released && h->term == term;
}

int lease_look(store *s, const char *prefix, uint64_t term, lease_seen *out, err *e) {
  char key[STORE_KEY_MAX];
  holder h = {0};
  store_object lease;
  err why = {0};
  *out = (lease_seen){.term = RUNLOG_NONE};
  int rc = key_of(prefix, "lease", key, e);
  if (rc == 0) rc = read_lease(s, key, &h, e);
  if (rc == 0 && h.present) {
    rc = s->ops->head(s, key, &lease, &why);
    if (rc < 0 && rc != ERR_NOENT) err_set(e, rc, "look at the lease: %s", why.text);
    if (rc == 0)
      *out = (lease_seen){.present = true,
                          .released = is_released(&h, term),
                          .renewed_ns = lease.mtime_ns,
                          .term = h.known ? h.term : RUNLOG_NONE,
                          .says_over = h.known && h.released,
                          .epochs = h.known && h.epochs};
  }
  holder_free(&h);
  return rc == ERR_NOENT ? 0 : rc;
}

static void name_holder(const holder *h, char *out, size_t room) {
  buf who;
  buf_init(&who, ERR_TEXT_MAX / 2);
  if (h->known) {
    buf_str(&who, "host ");
    js_name_escape(h->host, &who);
    buf_fmt(&who, ", pid %" PRId64 ", launch ", h->pid);
    js_name_escape(h->launch, &who);
    if (h->job[0]) buf_str(&who, ", job ");
    js_name_escape(h->job, &who);
    buf_fmt(&who, ", term %" PRIu64, h->term);
  } else {
    buf_str(&who, "an unknown holder (its lease cannot be read)");
  }
  snprintf(out, room, "%s", buf_failed(&who) ? "an unknown holder" : who.data);
  buf_free(&who);
}

/* Another one may have renewed the lease since the newest term. */
static bool is_gone(const runlog_term *term, const holder *h, const runlog_writer *who) {
  return h->known && h->term == term->n && h->pid == term->writer.pid &&
         lease_writer_gone(&term->writer, who);
}

static int held(const runlog_term *term, const holder *h, const runlog_writer *me, int64_t age_s,
                err *e) {
  char who[ERR_TEXT_MAX / 2 + 1];
  name_holder(h, who, sizeof who);
  if (is_gone(term, h, me))
    return err_set(
        e, ERR_HELD,
        "the last writer's process is gone, and its lease stands: %s; renewed %" PRId64
        " s ago, it ends in %" PRId64
        " s. With its directory, and its state %.200s, a start goes on at once; elsewhere "
        "`take_over` does, and `wait_lease` waits",
        who, age_s, LEASE_LIFE_S - age_s, term->writer.state);
  return err_set(e, ERR_HELD,
                 "another writer is alive: %s; its lease was renewed %" PRId64
                 " s ago. Try again in %" PRId64
                 " s, wait for its end with `wait_lease`, or push it aside with `take_over`",
                 who, age_s, LEASE_LIFE_S - age_s);
}

static bool same(const char *a, const char *b) {
  return a[0] && strcmp(a, b) == 0;
}

bool lease_is_ours(const runlog_writer *old, const runlog_writer *who) {
  return same(who->job, old->job) || same(who->launch, old->launch) ||
         (same(who->place, old->place) && same(who->boot, old->boot) &&
          strcmp(who->machine, old->machine) == 0);
}

bool lease_writer_gone(const runlog_writer *old, const runlog_writer *who) {
  return same(who->boot, old->boot) && same(who->pids, old->pids) && same(who->host, old->host) &&
         strcmp(who->machine, old->machine) == 0 && old->pid > 0 && old->pid <= INT32_MAX &&
         proc_gone((pid_t)old->pid, old->start);
}

/* True if that writer's machine was booted since: it is gone then, unless another machine has the
 * same id, since images are copied with it. */
static bool is_rebooted(const runlog_writer *old, const runlog_writer *who) {
  return same(who->machine, old->machine) && *who->boot && *old->boot &&
         !same(who->boot, old->boot);
}

/* Says how many seconds the lease still lives, by the store's clock (0: nobody holds it), and who
 * renewed it last. */
typedef struct standing {
  int64_t left_s, renewed_ns;
  holder by;
} standing;

static int look_at(store *s, const char *prefix, uint64_t term, standing *out, err *e) {
  char key[STORE_KEY_MAX];
  store_object lease = {0};
  int64_t now = 0;
  err why = {0};
  holder_free(&out->by);
  *out = (standing){0};
  int rc = key_of(prefix, "lease", key, e);
  if (rc == 0) rc = read_lease(s, key, &out->by, e);
  if (rc < 0 || !out->by.present || is_released(&out->by, term)) return rc;
  rc = s->ops->head(s, key, &lease, &why);
  if (rc == ERR_NOENT) return 0; /* removed just now */
  if (rc < 0) return err_set(e, rc, "read the lease: %s", why.text);
  rc = lease_store_now(s, prefix, &now, e);
  if (rc < 0) return rc;
  int64_t age_s = now <= lease.mtime_ns ? 0 : (now - lease.mtime_ns) / 1000000000;
  out->renewed_ns = lease.mtime_ns;
  if (age_s < LEASE_LIFE_S) out->left_s = LEASE_LIFE_S - age_s;
  return 0;
}

static int nap(store *s, int64_t seconds, err *e) {
  for (; seconds > 0; seconds--) {
    if (s->cancel && atomic_load(s->cancel))
      return err_set(e, ERR_CANCELED, "canceled while the lease was waited for");
    s->io->sleep(s->io, 1000000000);
  }
  return 0;
}

/* A machine's id is no proof: images are copied with it, and containers bring that of theirs. */
static void say_end_awaited(const store *s, const standing *now, bool same_host) {
  char who[ERR_TEXT_MAX / 2 + 1];
  name_holder(&now->by, who, sizeof who);
  log_say(&s->log, LOG_WARN,
          "the last writer ran %s: %s; its lease still stands: waiting for up to %" PRId64
          " s (`take_over` goes on at once)%s",
          same_host ? "on this machine before it was started anew, or on another one with its name "
                      "and /etc/machine-id"
                    : "on another host with the /etc/machine-id of this one, or on this one under "
                      "another name",
          who, now->left_s,
          same_host ? "" : ". Copies of an image or a machine need an id each (docs/limits.md)");
}

/* Waits until the lease is over, or is seen renewed: then its writer is alive on another machine,
 * and there is nothing to wait for. It is looked at now and then. */
static int await_end(store *s, const char *prefix, uint64_t term, standing *now, bool same_host,
                     const lease_wait *wait, err *e) {
  enum { LOOK_S = 30 };
  const int64_t renewed_ns = now->renewed_ns;
  say_end_awaited(s, now, same_host);
  if (wait && wait->begins) wait->begins(wait->ctx, now->left_s, false);
  int rc = 0;
  while (rc == 0 && now->left_s > 0 && now->renewed_ns == renewed_ns) {
    rc = nap(s, now->left_s < LOOK_S ? now->left_s : LOOK_S, e);
    if (rc == 0) rc = look_at(s, prefix, term, now, e);
  }
  return rc;
}

static bool says_over(const standing *now, const lease_wait *wait, store *s) {
  const char *job = now->by.known ? now->by.job : "";
  if (!*job || !wait->over || !wait->over(wait->ctx, job)) return false;
  log_say(&s->log, LOG_WARN, "the scheduler says that %.100s, whose lease still stands, is over",
          job);
  return true;
}

/* Waits until the lease is released or runs out, whoever renews it meanwhile, until the scheduler
 * says that its job is over, or the time is. It is looked at soon at first, since most writers that
 * one waits for are about to end. */
static int await_other(store *s, const char *prefix, const runlog_term *term,
                       const runlog_writer *me, standing *now, const lease_wait *wait, err *e) {
  enum { LOOK_S = 30 };
  const int64_t second = 1000000000;
  char who[ERR_TEXT_MAX / 2 + 1];
  int64_t pause = 1;
  int64_t left = (wait->until_ns - s->io->now(s->io, IO_MONO) + second - 1) / second;
  int rc = 0;
  if (left <= 0 || says_over(now, wait, s)) {
    if (left > 0) now->left_s = 0;
    return 0;
  }
  name_holder(&now->by, who, sizeof who);
  log_say(&s->log, LOG_WARN,
          "%s: %s; its lease was renewed %" PRId64
          " s ago. Its end is waited for, for up to %" PRId64 " s (`take_over` goes on at once)",
          is_gone(term, &now->by, me) ? "the last writer's process is gone, and its lease stands"
                                      : "another writer is alive",
          who, LEASE_LIFE_S - now->left_s, left);
  if (wait->begins) wait->begins(wait->ctx, left, true);
  while (rc == 0 && now->left_s > 0 && left > 0) {
    rc = nap(s, pause < left ? pause : left, e);
    if (rc == 0) rc = look_at(s, prefix, term->n, now, e);
    if (rc == 0 && now->left_s > 0 && says_over(now, wait, s)) now->left_s = 0;
    pause = 2 * pause < LOOK_S ? 2 * pause : LOOK_S;
    left = (wait->until_ns - s->io->now(s->io, IO_MONO) + second - 1) / second;
  }
  return rc;
}

int lease_check(store *s, const char *prefix, const runlog_term *term, const runlog_writer *who,
                bool take_over, const lease_wait *wait, err *e) {
  standing now = {0};
  if (term->n == RUNLOG_NONE || take_over || lease_is_ours(&term->writer, who)) return 0;
  int rc = look_at(s, prefix, term->n, &now, e);
  if (rc == 0 && now.left_s > 0 && is_rebooted(&term->writer, who))
    rc = await_end(s, prefix, term->n, &now, same(who->host, term->writer.host), wait, e);
  if (rc == 0 && now.left_s > 0 && wait && wait->until_ns)
    rc = await_other(s, prefix, term, who, &now, wait, e);
  if (rc == 0 && now.left_s > 0) rc = held(term, &now.by, who, LEASE_LIFE_S - now.left_s, e);
  holder_free(&now.by);
  return rc;
}

static int write_lease(store *s, const char *key, uint64_t n, const runlog_writer *who,
                       bool released, err *e) {
  json_t *object = json_object();
  int bad = 0;
  buf text;
  buf_init(&text, LEASE_BYTES_MAX);
  js_set(object, "format", json_integer(FORMAT), &bad);
  js_set(object, "reader", json_integer(READER), &bad);
  js_set(object, "term", json_integer((json_int_t)n), &bad);
  js_set(object, "host", js_name_new(who->host), &bad);
  js_set(object, "pid", json_integer(who->pid), &bad);
  js_set(object, "launch", js_name_new(who->launch), &bad);
  js_set(object, "job", js_name_new(who->job), &bad);
  js_set(object, "epochs", json_true(), &bad);
  if (released) js_set(object, "released", json_true(), &bad);
  int rc = bad ? err_set(e, ERR_NOMEM, "write the lease: out of memory") : 0;
  if (rc == 0) rc = js_print(object, &text, e);
  if (rc == 0) rc = s->ops->put(s, key, text.data, text.len, STORE_REPLACE, e);
  buf_free(&text);
  json_decref(object);
  return rc;
}

int lease_renew(store *s, const char *prefix, uint64_t n, const runlog_writer *who, err *e) {
  char key[STORE_KEY_MAX];
  int rc = key_of(prefix, "lease", key, e);
  return rc < 0 ? rc : write_lease(s, key, n, who, false, e);
}

/* A release does not remove the lease: a newer term may write its own between the look and the
 * removal, and would be taken for gone. If the release overwrites that one, a fresh lease of an
 * older term stands there, and keeps others out until the newer term renews its own. */
int lease_release(store *s, const char *prefix, uint64_t n, const runlog_writer *who, err *e) {
  char key[STORE_KEY_MAX];
  holder h = {0};
  int rc = key_of(prefix, "lease", key, e);
  if (rc == 0) rc = read_lease(s, key, &h, e);
  if (rc == 0 && h.known && h.term == n && !h.released) rc = write_lease(s, key, n, who, true, e);
  holder_free(&h);
  return rc;
}
