#include "collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collect_impl.h"
#include "commit/lease.h"
#include "job/keep/prune.h"
#include "commit/settle.h"
#include "commit/staging.h"

/* ---- what all steps use ---- */

int collect_begin(collecting *g, const collect *c, err *e) {
  *g = (collecting){.c = c};
  int rc = runlog_refresh(c->log, e);
  if (rc == 0 && c->dry)
    g->now = c->store->io->now(c->store->io, IO_WALL);
  else if (rc == 0)
    rc = lease_store_now(c->store, runlog_prefix(c->log), &g->now, e);
  if (rc == 0) rc = pins_list(c->store, runlog_prefix(c->log), &g->pins, e);
  g->pins_known = rc == 0 && g->pins.broken == 0;
  return rc;
}

void collect_free(collecting *g) {
  pins_free(&g->pins);
}

int collect_result(const collecting *g, err *e) {
  if (g->stopped) return g->stopped;
  if (g->failures <= 1) return g->status == 0 ? 0 : err_set(e, g->status, "%s", g->first.text);
  return err_set(e, g->status, "%zu things could not be collected; the first: %s", g->failures,
                 g->first.text);
}

void collect_tell(collecting *g, const collected *what) {
  if (what->status < 0 && g->failures++ == 0)
    g->status = err_set(&g->first, what->status, "%s: %s", what->name, what->reason);
  if (!g->stopped && g->c->told) g->stopped = g->c->told(g->c->ctx, g->c->log, what);
}

void collect_failed(collecting *g, const char *what, int status, const char *why) {
  collect_tell(g, &(collected){.what = what,
                               .name = runlog_prefix(g->c->log),
                               .reason = *why ? why : err_text(status),
                               .status = status});
}

static int add_size(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  (void)key, (void)is_prefix;
  *(uint64_t *)ctx += object->size;
  return 0;
}

uint64_t collect_measure(const collecting *g, const char *key) {
  store *s = g->c->store;
  uint64_t bytes = 0;
  return s->ops->list(s, key, false, add_size, &bytes, NULL) == 0 ? bytes : 0;
}

bool collect_is_pinned(const collecting *g, uint64_t commit) {
  for (size_t i = 0; i < g->pins.count; i++)
    if (g->pins.at[i].commit == commit && !pin_expired(&g->pins.at[i], g->now)) return true;
  return !g->pins_known;
}

bool collect_is_gone(const collecting *g, const runlog_attempt *a) {
  if (a->fate != RUNLOG_COMMITTED) return a->fate == RUNLOG_SWEPT;
  const runlog_commit *c = runlog_commit_of(runlog_view(g->c->log), a->n);
  return c && c->life == RUNLOG_DELETED && !collect_is_pinned(g, c->n);
}

/* ---- saves that nobody goes on with ---- */

static int64_t since(int64_t now, int64_t then) {
  int64_t age;
  if (__builtin_sub_overflow(now, then, &age)) return now > then ? INT64_MAX : 0;
  return age > 0 ? age : 0;
}

/* A missing lease proves little by itself: the writer may have opened its term just now, or could
 * not write a lease, or another writer's release was late. */
int collect_look_for_writer(const collecting *g, quiet *q, err *e) {
  const runlog *log = g->c->log;
  const runlog_state *state = runlog_view(log);
  int64_t term = INT64_MIN, last = INT64_MIN;
  lease_seen lease = {0};
  int rc = state->term.n == RUNLOG_NONE ? 0 : runlog_entry_time(log, state->term.n, &term, e);
  if (rc == 0 && state->next > 0) rc = runlog_entry_time(log, state->next - 1, &last, e);
  if (rc == 0) rc = lease_look(g->c->store, runlog_prefix(log), state->term.n, &lease, e);
  if (rc < 0) return rc;
  q->term_ns = since(g->now, term);
  q->log_ns = since(g->now, last);
  q->leased = lease.present;
  q->released = lease.released;
  q->lease_ns = lease.present ? since(g->now, lease.renewed_ns) : INT64_MAX;
  q->gone = (lease.released || q->lease_ns >= WRITER_LIFE_NS) && q->log_ns >= WRITER_LIFE_NS;
  return 0;
}

/* True if nobody goes on with it: everybody who may has had the grace period to do so. */
static bool is_left(const collecting *g, const quiet *q, const runlog_attempt *a) {
  if (a->fate != RUNLOG_OPEN) return false;
  if (a->owner == runlog_view(g->c->log)->term.n) return q->gone && q->log_ns >= g->c->grace_ns;
  return q->term_ns >= g->c->grace_ns;
}

static uint64_t measure_attempt(const collecting *g, const runlog_attempt *a) {
  const runlog *log = g->c->log;
  char key[STORE_KEY_MAX];
  staging st;
  uint64_t bytes = 0;
  if (staging_find(g->c->store, log, a->nonce, &st, NULL) == 1)
    bytes += collect_measure(g, st.key) + collect_measure(g, st.companions);
  if (runlog_key_dir(log, a->dir, key, NULL) == 0) bytes += collect_measure(g, key);
  if (store_can(g->c->store, STORE_CAP_PUBLISH) && runlog_key_staging(log, a->n, key, NULL) == 0)
    bytes += collect_measure(g, key);
  if (runlog_key_parts(log, a->n, RUNLOG_NONE, key, NULL) == 0) bytes += collect_measure(g, key);
  if (runlog_key_companions(runlog_prefix(log), a->n, RUNLOG_NONE, key, NULL) == 0)
    bytes += collect_measure(g, key);
  return bytes;
}

/* Opens a term without telling anybody: it has a launch of its own, and no job, so that it is never
 * taken for the run. */
static int open_term(const collecting *g, err *e) {
  runlog_writer who = {.pid = getpid()};
  char nonce[33];
  int rc = io_nonce(g->c->store->io, nonce);
  if (rc < 0) return err_sys(e, rc, "open a term for the collection: random numbers");
  snprintf(who.launch, sizeof who.launch, "gc:%s", nonce);
  if (gethostname(who.host, sizeof who.host - 1) < 0) who.host[0] = 0;
  return runlog_begin_quiet(g->c->log, &who, e);
}

/* Ends an attempt in the log, then removes its files. */
static int end_attempt(const collecting *g, uint64_t n, bool sealed, err *e) {
  const collect *c = g->c;
  if (c->dry) return 0;
  int rc = sealed ? settle_finish(c->store, c->log, n, c->sink, e) : runlog_sweep(c->log, n, e);
  return rc == 0 && !sealed ? settle_clear(c->store, c->log, n, c->sink, e) : rc;
}

/* The attempts that are ended. They are chosen before anything is appended: after a term of ours
 * every one of them is of an older term. */
typedef struct chosen {
  uint64_t *n;
  bool *sealed;
  size_t count;
  bool need_term;
  settle_ahead ahead; /* the whole ones that are, or would be, commits */
} chosen;

/* Tells what becomes of one that is whole: 1: a commit; 0: nothing, for *newer if there is one. */
static int foresee(const collecting *g, chosen *left, uint64_t n, char *newer, size_t room,
                   err *e) {
  const char *unit = NULL;
  int rc = settle_foresee(g->c->store, g->c->log, n, &left->ahead, &unit, e);
  snprintf(newer, room, "%s%s", unit ? "it is not saved: newer is committed: " : "",
           unit ? unit : "");
  return rc;
}

static void collect_attempt(collecting *g, chosen *left, size_t at) {
  const uint64_t n = left->n[at];
  const bool sealed = left->sealed[at];
  const runlog_attempt *a = runlog_find_attempt(runlog_view(g->c->log), n);
  err why = {0};
  char name[STORE_KEY_MAX], newer[STORE_KEY_MAX + 64] = "";
  snprintf(name, sizeof name, "%s", a->dir);
  int rc = sealed ? foresee(g, left, n, newer, sizeof newer, &why) : 0;
  bool whole = rc == 1;
  collected what = {.what = "attempt", .name = name, .bytes = whole ? 0 : measure_attempt(g, a)};
  if (rc >= 0) rc = end_attempt(g, n, sealed, &why);
  if (rc == ERR_CONFLICT || rc == ERR_HELD) return; /* somebody goes on with it */
  a = runlog_find_attempt(runlog_view(g->c->log), n);
  if (sealed && !g->c->dry) whole = a->fate == RUNLOG_COMMITTED;
  if (whole) what.what = "commit";
  what.status = rc;
  what.reason = rc < 0   ? why.text
                : whole  ? "its writer is gone, and all of it is here"
                : *newer ? newer
                         : "it was never finished, and nobody goes on with it";
  collect_tell(g, &what);
}

static int choose(const collecting *g, const quiet *q, chosen *out, err *e) {
  const runlog_state *state = runlog_view(g->c->log);
  int rc = 0;
  out->n = calloc(state->attempt_count + 1, sizeof *out->n);
  out->sealed = calloc(state->attempt_count + 1, sizeof *out->sealed);
  if (!out->n || !out->sealed) return err_set(e, ERR_NOMEM, "collect: out of memory");
  for (size_t i = 0; i < state->attempt_count; i++) {
    const runlog_attempt *a = &state->attempts[i];
    if (!is_left(g, q, a)) continue;
    rc = settle_is_whole(g->c->store, g->c->log, a, e);
    if (rc < 0) return rc;
    if (rc > 0 && !q->gone) continue; /* it is whole: the live writer is to commit it */
    out->sealed[out->count] = rc > 0;
    out->n[out->count++] = a->n;
    out->need_term |= rc > 0 || a->owner == state->term.n;
  }
  return 0;
}

static bool any_open(const runlog_state *state) {
  for (size_t i = 0; i < state->attempt_count; i++)
    if (state->attempts[i].fate == RUNLOG_OPEN) return true;
  return false;
}

static void collect_attempts(collecting *g) {
  chosen left = {0};
  quiet q = {0};
  err why = {0};
  if (!any_open(runlog_view(g->c->log))) return;
  int rc = collect_look_for_writer(g, &q, &why);
  if (rc == 0) rc = choose(g, &q, &left, &why);
  if (rc == 0 && left.need_term && !g->c->dry) rc = open_term(g, &why);
  if (rc < 0) collect_failed(g, "attempt", rc, why.text);
  for (size_t i = 0; rc == 0 && i < left.count && !g->stopped; i++) collect_attempt(g, &left, i);
  settle_ahead_free(&left.ahead);
  free(left.n);
  free(left.sealed);
}

/* ---- pins ---- */

static void collect_pins(collecting *g) {
  const collect *c = g->c;
  const char *prefix = runlog_prefix(c->log);
  for (size_t i = 0; i < g->pins.count && !g->stopped; i++) {
    const pin *p = &g->pins.at[i];
    err why = {0};
    if (!pin_expired(p, g->now)) continue;
    int rc = c->dry ? 0 : pins_remove(c->store, prefix, p->id, &why);
    if (rc == ERR_NOENT) continue;
    collect_tell(g, &(collected){.what = "pin",
                                 .name = p->id,
                                 .reason = rc < 0 ? why.text : "it has expired",
                                 .status = rc});
  }
}

/* ---- what was dropped ---- */

static void on_deleted(void *ctx, const runlog_commit *c, retention_verdict verdict) {
  (void)verdict;
  collect_tell(ctx, &(collected){.what = "checkpoint",
                                 .name = c->dir,
                                 .reason = c->drop_reason ? c->drop_reason : "it was dropped",
                                 .bytes = c->bytes + c->companions.bytes});
}

static void collect_dropped(collecting *g) {
  const collect *c = g->c;
  prune_rest rest;
  err why = {0};
  prune p = {.store = c->store,
             .log = c->log,
             .sink = c->sink,
             .limits = {.max_drop = 1, .grace_ns = c->grace_ns},
             .resumed = RUNLOG_NONE,
             .dry = c->dry,
             .told = on_deleted,
             .ctx = g};
  int rc = prune_delete(&p, SIZE_MAX, &rest, &why);
  if (rc < 0) collect_failed(g, "checkpoint", rc, why.text);
}

int collect_log(const collect *c, err *e) {
  collecting g;
  int rc = collect_begin(&g, c, e);
  if (rc == 0) {
    collect_attempts(&g);
    if (!g.stopped) collect_pins(&g);
    if (!g.stopped) collect_dropped(&g);
    if (!g.stopped) collect_thin(&g);
    if (!g.stopped) collect_litter(&g);
    if (!g.stopped) collect_unfinished(&g);
    rc = collect_result(&g, e);
  }
  collect_free(&g);
  return rc;
}
