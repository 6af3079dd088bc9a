#include <string.h>

#include "base/seconds.h"
#include "prune_thin_newest.h"

static bool take_globs(const thin_kinds *k, const thin_going *what, prune_thin_planned *out) {
  const names *globs = what->note.globs.count ? &what->note.globs : k->wish.globs;
  return names_add_all(&out->globs, names_list(globs));
}

static int plan_one(thin_kinds *k, const runlog_commit *c, const retention_limits *limits,
                    prune_thin_planned *out, err *e) {
  thin_going what = {0};
  const runlog_commit *after = NULL;
  int rc = thin_look(k, c, &what, e);
  if (rc == 1) {
    rc = thin_since(k, c, &after, e);
    if (rc == 0) rc = after != NULL;
  }
  if (rc == 1 && !take_globs(k, &what, out))
    rc = err_set(e, ERR_NOMEM, "plan what is taken of %s: out of memory", c->dir);
  if (rc == 1) {
    out->files = c->files - what.stays.files;
    out->bytes = c->bytes - what.stays.bytes;
    out->wait_ns = thinning_since(after, limits).wait_ns;
  }
  manifest_thin_free(&what.note);
  return rc;
}

int prune_thin_plan(const prune *p, const prune_thin_wish *wish, const retention_guard *guard,
                    const runlog_state *state, size_t dropped, prune_thin_planned *out, err *e) {
  prune_thin_whole whole = {0};
  thin_kinds kinds = {.p = p, .state = state, .guard = guard, .wish = *wish, .whole = &whole};
  const size_t most = thinning_most(state, &p->limits, dropped);
  size_t done = 0;
  int rc = 0;
  memset(out, 0, state->commit_count * sizeof *out);
  for (size_t i = 0; rc >= 0 && wish->globs->count && i < state->commit_count; i++) {
    const thinning t = thin_may(&kinds, &state->commits[i], &p->limits);
    if (t.verdict == THINNING_STAYS || t.wait_ns == SECONDS_FOREVER) continue;
    rc = plan_one(&kinds, &state->commits[i], &p->limits, &out[i], e);
    if (rc == 1 && out[i].wait_ns == 0) out[i].later = done++ >= most;
  }
  thin_kinds_free(&kinds);
  prune_thin_forget(&whole);
  return rc < 0 ? rc : 0;
}
