/* Collecting the files that the log says to be gone of commits that stay, and the marks that say it was done. */
#include <string.h>

#include "collect_impl.h"
#include "job/keep/prune_thin.h"
#include "prims/fs.h"

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

/* ---- marks ---- */

static int note_mark(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  return is_prefix ? 0 : store_keys_add(ctx, key, false, object);
}

/* Puts the attempts, sorted, of which the mark is still asked for. */
static int take_asked(runlog *log, names *out, err *e) {
  const runlog_state *state = runlog_view(log);
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    char id[RUNLOG_NONCE_MAX];
    if (c->life == RUNLOG_DELETED || !c->thin.globs.count) continue;
    rc = runlog_attempt_id(log, c->attempt, id, e);
    if (rc == 0 && !names_add(out, id)) rc = err_set(e, ERR_NOMEM, "look at marks: out of memory");
  }
  names_sort(out);
  return rc;
}

/* As runlog_attempt_id() spells it: what is called otherwise none of us has put. */
static bool is_attempt(const char *id) {
  const size_t len = strlen(id);
  return strspn(id, "0123456789") == len || (len == 32 && strspn(id, "0123456789abcdef") == len);
}

static void remove_mark(collecting *g, const store_found *mark) {
  const collect *c = g->c;
  err why = {0};
  int rc = c->dry ? 0 : c->store->ops->remove(c->store, mark->key, &why);
  const size_t len = strlen(runlog_prefix(c->log));
  collect_tell(
      g, &(collected){
             .what = "litter",
             .name = mark->key + (len ? len + 1 : 0),
             .reason =
                 rc < 0 ? why.text
                        : "of a checkpoint that is not there, or of which the log takes no files",
             .bytes = mark->object.size,
             .status = rc});
}

/* A young one may be of what was committed since the log was read. One too many costs a look at that
 * checkpoint, no more. */
void collect_thin_marks(collecting *g, const char *key) {
  const collect *c = g->c;
  const int64_t day = (int64_t)COLLECT_DAY_S * 1000000000;
  store_keys marks = {0};
  names asked = {0};
  err why = {0};
  int rc = c->store->ops->list(c->store, key, true, note_mark, &marks, &why);
  if (rc == 0) rc = take_asked(c->log, &asked, &why);
  if (rc < 0) collect_failed(g, "litter", rc, why.text);
  for (size_t i = 0; rc == 0 && i < marks.count && !g->stopped; i++) {
    const char *id = fs_base(marks.at[i].key);
    if (!is_attempt(id) || names_has(&asked, id)) continue;
    if (marks.at[i].object.mtime_ns <= g->now - day) remove_mark(g, &marks.at[i]);
  }
  names_free(&asked);
  store_keys_free(&marks);
}
