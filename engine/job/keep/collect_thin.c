/* Collecting the files that the log says to be gone of commits that stay. */
#include "collect_impl.h"
#include "job/keep/prune_thin.h"

static int on_removed(void *ctx, const char *dir, const removal_found *found, int status,
                      const char *why) {
  collecting *g = ctx;
  collect_tell(g, &(collected){.what = "files",
                               .name = dir,
                               .reason = status < 0 ? why
                                                    : "newer ones have such files, and it stays "
                                                      "without them",
                               .bytes = found->bytes,
                               .status = status});
  return g->stopped;
}

void collect_thin(collecting *g) {
  const collect *c = g->c;
  const prune p = {.store = c->store,
                   .log = c->log,
                   .sink = c->sink,
                   .limits = {.max_drop = 1},
                   .resumed = RUNLOG_NONE,
                   .dry = c->dry};
  bool left;
  err why = {0};
  int rc = prune_thin_files(&p, g->now, on_removed, g, &left, &why);
  if (rc < 0) collect_failed(g, "files", rc, why.text);
}
