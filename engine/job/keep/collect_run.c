/* collect_run: removes a run whole. Its log stays, so that no number and no name comes back. */
#include <stdio.h>

#include "collect_impl.h"

static int check_pins(const collecting *g, err *e) {
  const runlog_state *state = runlog_view(g->c->log);
  if (!g->pins_known)
    return err_set(e, ERR_HELD,
                   "%s cannot be read as a pin, so it may be for any checkpoint (to "
                   "remove it: `unpin`)",
                   g->pins.broken_key);
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (c->life != RUNLOG_DELETED && collect_is_pinned(g, c->n))
      return err_set(e, ERR_HELD, "%s%s%s is pinned (`unpin`)", runlog_prefix(g->c->log),
                     *runlog_prefix(g->c->log) ? "/" : "", c->dir);
  }
  return 0;
}

/* Checks that no writer is alive. A writer without a lease may have lost it, and be at work all the
 * same: then its entries tell. */
static int check_writer(const collecting *g, err *e) {
  const runlog_term *term = &runlog_view(g->c->log)->term;
  quiet q = {0};
  int rc = term->n == RUNLOG_NONE ? 0 : collect_look_for_writer(g, &q, e);
  int64_t silent = q.leased ? q.lease_ns : q.log_ns;
  if (rc < 0 || term->n == RUNLOG_NONE || q.released || silent >= WRITER_LIFE_NS) return rc;
  return err_set(e, ERR_HELD,
                 "the run %s (host %.100s, pid %lld): its %s %lld s ago; end it first, or, if it "
                 "has died, try again in %lld s",
                 q.leased ? "is alive" : "may be alive", term->writer.host,
                 (long long)term->writer.pid,
                 q.leased ? "lease was renewed" : "lease is gone, and its log was written to",
                 (long long)(silent / 1000000000),
                 (long long)((WRITER_LIFE_NS - silent + 999999999) / 1000000000));
}

static int check(const collecting *g, err *e) {
  int rc = check_writer(g, e);
  return rc < 0 ? rc : check_pins(g, e);
}

int collect_check_run(const collect *c, err *e) {
  collecting g;
  collect without_writes = *c;
  without_writes.dry = true;
  int rc = collect_begin(&g, &without_writes, e);
  if (rc == 0 && !runlog_view(c->log)->ended) rc = check(&g, e);
  collect_free(&g);
  return rc;
}

/* Asked on the log as `end` follows it: if anybody has opened a term, or put anything in since, a
 * writer is alive. */
static bool may_end(void *ctx, const runlog_state *state, const runlog_commit *c) {
  (void)c;
  return state->next == *(const uint64_t *)ctx;
}

static uint64_t measure_live(const runlog_state *state) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < state->commit_count; i++)
    if (state->commits[i].life != RUNLOG_DELETED)
      bytes += state->commits[i].bytes + state->commits[i].companions.bytes;
  return bytes;
}

/* Removes the hints. Once a new run has begun here they are its own: the log is asked before each
 * removal. */
static void remove_hints(collecting *g) {
  static const char *const hints[] = {".ckpt/lease", ".ckpt/memory", ".ckpt/verified",
                                      ".ckpt/race"};
  store *s = g->c->store;
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
    char key[STORE_KEY_MAX];
    err why = {0};
    int rc = runlog_refresh(g->c->log, &why);
    if (rc == 0 && !runlog_view(g->c->log)->ended) return;
    if (rc == 0) rc = runlog_join(runlog_prefix(g->c->log), hints[i], key, &why);
    if (rc == 0) rc = s->ops->remove(s, key, &why);
    if (rc < 0) collect_failed(g, "run", rc, why.text);
  }
}

static int end_run(collecting *g, err *e) {
  const collect *c = g->c;
  uint64_t next = runlog_view(c->log)->next;
  uint64_t bytes = measure_live(runlog_view(c->log));
  if (runlog_view(c->log)->ended) return 0;
  int rc = check(g, e);
  if (rc == 0 && !c->dry) rc = runlog_end(c->log, "removed by hand", may_end, &next, e);
  if (rc < 0) return rc;
  collect_tell(g, &(collected){.what = "run",
                               .name = runlog_view(c->log)->run_id,
                               .reason = "removed by hand; its log stays",
                               .bytes = c->dry ? bytes : 0}); /* otherwise they are told one by
                                                               * one */
  return 0;
}

int collect_run(const collect *c, err *e) {
  collecting g;
  int rc = collect_begin(&g, c, e);
  if (rc == 0) rc = end_run(&g, e);
  collect_free(&g);
  if (rc < 0 || c->dry) return rc;
  /* The pins are read once more: a reader that put one before it could see the end reads on. */
  rc = collect_begin(&g, c, e);
  if (rc == 0) {
    remove_hints(&g);
    collect_litter(&g);
    if (!g.stopped) collect_unfinished(&g);
    rc = collect_result(&g, e);
  }
  collect_free(&g);
  return rc;
}
