/* runlog_fold_commits: folds the entries about checkpoints: they come, are marked, are dropped, and
 * go. */
#include <stdlib.h>

#include "runlog_fold.h"

int runlog_fold_commit(runlog_state *s, const json_t *entry, const runlog_head *h, const char **why,
                       err *e) {
  runlog_commit commit = {.n = h->n, .time_ns = h->time_ns};
  runlog_attempt *attempt = NULL;
  int rc = runlog_get_facts(entry, h->what, &commit, e);
  if (rc == 0) rc = runlog_open_attempt(s, entry, h, &attempt, why, e);
  if (rc < 0 || *why || !attempt) goto out;
  if (!runlog_of_newest_term(s, h))
    *why = "its writer is not of the newest term";
  else if (attempt->owner != h->term)
    *why = "only the attempt's owner may commit it";
  if (*why) goto out;
  runlog_commit *next = runlog_next_commit(s);
  if (!next) {
    rc = err_set(e, ERR_NOMEM, "%s: out of memory", h->what);
    goto out;
  }
  commit.attempt = attempt->n;
  commit.unit = attempt->unit;
  commit.dir = attempt->dir;
  runlog_keep_nonce(h->nonce, commit.nonce);
  attempt->fate = RUNLOG_COMMITTED;
  *next = commit;
  s->commit_count++;
  return 0;
out:
  runlog_free_texts(&commit);
  return rc;
}

int runlog_known_commit(const runlog_state *s, const json_t *entry, const runlog_head *h,
                        runlog_commit **out, const char **why, err *e) {
  uint64_t n;
  int rc = runlog_get_number(entry, "commit", h->what, &n, e);
  if (rc < 0) return rc;
  *out = runlog_commit_at(s, n);
  *why = *out ? runlog_judge_writer(s, h) : "there is no such commit";
  return 0;
}

int runlog_fold_drop(runlog_state *s, const json_t *entry, const runlog_head *h, const char **why,
                     err *e) {
  runlog_commit *c;
  char *policy = NULL, *reason = NULL;
  int rc = runlog_known_commit(s, entry, h, &c, why, e);
  if (rc == 0 && !*why && c->life != RUNLOG_LIVE) *why = "the commit is dropped already";
  if (rc < 0 || *why) return rc;
  rc = runlog_get_text(entry, "policy", h->what, &policy, e);
  if (rc == 0) rc = runlog_get_text(entry, "reason", h->what, &reason, e);
  if (rc < 0) {
    free(policy);
    return rc;
  }
  c->life = RUNLOG_DROPPED;
  c->drop = h->n;
  c->drop_ns = h->time_ns;
  c->drop_policy = policy;
  c->drop_reason = reason;
  return 0;
}

/* The data goes only after a drop, so that readers had the time to see it. */
int runlog_fold_delete(runlog_state *s, const json_t *entry, const runlog_head *h, const char **why,
                       err *e) {
  runlog_commit *c;
  int rc = runlog_known_commit(s, entry, h, &c, why, e);
  if (rc == 0 && !*why && c->life != RUNLOG_DROPPED)
    *why = c->life == RUNLOG_LIVE ? "the commit was not dropped" : "the commit is deleted already";
  if (rc == 0 && !*why) c->life = RUNLOG_DELETED;
  return rc;
}

/* A mark that says what is so already changes nothing, and may bring numbers that were reported after
 * the commit. 1.0 passes over it. */
static int take_numbers(runlog_commit *c, const json_t *entry, const runlog_head *h,
                        const char **why, err *e) {
  char *metrics;
  int rc = runlog_get_metrics(entry, h->what, &metrics, e);
  if (rc < 0) return rc;
  if (!metrics) {
    *why = "the commit is marked so already";
    return 0;
  }
  free(c->metrics);
  c->metrics = metrics;
  return 0;
}

int runlog_fold_bad(runlog_state *s, const json_t *entry, const runlog_head *h, const char **why,
                    err *e) {
  runlog_commit *c;
  bool good = false;
  char *reason = NULL, *lines = NULL;
  int rc = runlog_known_commit(s, entry, h, &c, why, e);
  if (rc == 0) rc = js_opt_bool(entry, "good", h->what, false, &good, e);
  if (rc == 0 && !*why && c->life != RUNLOG_LIVE) *why = "the commit is dropped already";
  if (rc < 0 || *why) return rc;
  if (c->bad != good) return take_numbers(c, entry, h, why, e);
  if (!good) rc = runlog_get_text(entry, "reason", h->what, &reason, e);
  if (rc == 0 && !good) rc = runlog_get_lines(entry, "lines", h->what, &lines, e);
  if (rc < 0) {
    free(reason);
    return rc;
  }
  free(c->bad_reason);
  free(c->bad_lines);
  c->bad_lines = lines;
  c->bad = !good;
  c->bad_reason = reason;
  return 0;
}
