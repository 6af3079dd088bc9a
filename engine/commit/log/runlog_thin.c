/* runlog_thin: an older commit loses the files that globs mean, since newer ones are there. It stays
 * a whole checkpoint, of what is left. 1.0 would take what is gone for damage, so the entry, and a
 * snapshot behind it, keep it from reading on. */
#include <stdlib.h>
#include <string.h>

#include "runlog_fold.h"

/* ---- members ---- */

void runlog_free_thin(runlog_thinned *thin) {
  names_free(&thin->globs);
  free(thin->policy);
  free(thin->reason);
  *thin = (runlog_thinned){0};
}

int runlog_get_thin(const json_t *object, const char *what, runlog_thinned *out, err *e) {
  *out = (runlog_thinned){0};
  int rc = manifest_globs_get(object, "globs", what, &out->globs, e);
  if (rc == 0) rc = runlog_get_number(object, "newest", what, &out->newest, e);
  if (rc == 0) rc = runlog_get_text(object, "policy", what, &out->policy, e);
  return rc < 0 ? rc : runlog_get_text(object, "reason", what, &out->reason, e);
}

void runlog_set_thin(json_t *object, const runlog_thinned *thin, int *bad) {
  js_set(object, "globs", manifest_globs_new(&thin->globs), bad);
  runlog_set_number(object, "newest", thin->newest, bad);
  runlog_set_text(object, "policy", thin->policy, bad);
  runlog_set_text(object, "reason", thin->reason, bad);
}

bool runlog_copy_thin(const runlog_thinned *from, runlog_thinned *to) {
  *to = (runlog_thinned){.newest = from->newest};
  if (from->globs.count && !names_add_all(&to->globs, names_list(&from->globs))) return false;
  to->policy = from->policy ? strdup(from->policy) : NULL;
  to->reason = from->reason ? strdup(from->reason) : NULL;
  return !from->policy == !to->policy && !from->reason == !to->reason;
}

/* ---- folding ---- */

static const char *judge(const runlog_state *s, const runlog_head *h, const runlog_commit *c,
                         uint64_t files, uint64_t bytes) {
  if (!runlog_of_newest_term(s, h)) return "its writer is not of the newest term";
  if (c->life != RUNLOG_LIVE) return "the commit is dropped already";
  if (c->bad) return "the commit is marked bad";
  if (c->thin.globs.count) return "files of the commit are gone already";
  if (files == 0 || files >= c->files || bytes > c->bytes) return "it takes nothing, or all";
  return NULL;
}

int runlog_fold_thin(runlog_state *s, const json_t *entry, const runlog_head *h, const char **why,
                     err *e) {
  runlog_commit *c = NULL;
  runlog_thinned thin = {0};
  uint64_t files = 0, bytes = 0;
  int rc = runlog_known_commit(s, entry, h, &c, why, e);
  if (rc == 0) rc = runlog_get_number(entry, "files", h->what, &files, e);
  if (rc == 0) rc = runlog_get_number(entry, "bytes", h->what, &bytes, e);
  if (rc == 0) rc = runlog_get_thin(entry, h->what, &thin, e);
  if (rc == 0 && !*why && c) *why = judge(s, h, c, files, bytes);
  if (rc < 0 || *why || !c) {
    runlog_free_thin(&thin);
    return rc;
  }
  /* Both fit 63 bits, as what is printed has to. */
  const uint64_t gone = c->files - files, room = (uint64_t)INT64_MAX - c->left_out;
  c->left_out += gone < room ? gone : room;
  const uint64_t here = (uint64_t)INT64_MAX - c->left_here;
  c->left_here += gone < here ? gone : here;
  c->files = files;
  c->bytes = bytes;
  c->thin = thin;
  return 0;
}

/* ---- appending ---- */

static bool same_globs(const names *a, const names *b) {
  return names_same(names_list(a), names_list(b));
}

static int plan_thin(const runlog *log, const runlog_request *r, json_t **out, err *e) {
  const runlog_commit *c = runlog_find_commit(&log->st, r->number);
  int bad = 0;
  if (!c) return err_set(e, ERR_INVAL, "the log has no commit %llu", (unsigned long long)r->number);
  if (c->thin.globs.count && same_globs(&c->thin.globs, &r->thin->globs)) return 0;
  if (c->life != RUNLOG_LIVE || c->bad || c->thin.globs.count)
    return err_set(e, ERR_CONFLICT, "%s: it is dropped, bad, or other files of it are gone",
                   c->dir);
  if (r->rest->files == 0 || r->rest->files >= c->files || r->rest->bytes > c->bytes)
    return err_set(e, ERR_INVAL, "%s: nothing of it would go, or all", c->dir);
  if (r->may && !r->may(r->ctx, &log->st, c))
    return err_set(e, ERR_CONFLICT, "%s: what the log says by now forbids it", c->dir);
  json_t *entry = runlog_new_entry("thin", log->term, &bad);
  runlog_set_number(entry, "reader", RUNLOG_READER, &bad);
  runlog_set_number(entry, "commit", r->number, &bad);
  runlog_set_number(entry, "files", r->rest->files, &bad);
  runlog_set_number(entry, "bytes", r->rest->bytes, &bad);
  runlog_set_thin(entry, r->thin, &bad);
  return runlog_hand_over(entry, bad, out, e);
}

int runlog_thin(runlog *log, uint64_t commit, const runlog_thinned *how, const manifest_rest *rest,
                runlog_may_fn *may, void *ctx, err *e) {
  runlog_request r = {.number = commit, .thin = how, .rest = rest, .may = may, .ctx = ctx};
  int rc = runlog_need_term(log, e);
  return rc < 0 ? rc : runlog_carry_out(log, plan_thin, &r, e);
}
