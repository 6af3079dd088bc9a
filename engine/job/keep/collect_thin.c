/* Collecting the files that the log says to be gone of commits that stay: who said so may have died, or a
 * pin held them then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect_impl.h"
#include "commit/thin_files.h"
#include "commit/verified.h"
#include "plan/thinning.h"
#include "prims/fs.h"

/* What keeps files now. The pins are listed after the entries were read: a reader that puts one later sees
 * that the files may go. */
typedef struct guards {
  pins held;
  uint64_t *pinned;
  retention_guard guard;
  store_keys done;
} guards;

static int note_done(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  return is_prefix ? 0 : store_keys_add(ctx, key, is_prefix, object);
}

static int take_guards(const collecting *g, guards *out, err *e) {
  store *s = g->c->store;
  const char *prefix = runlog_prefix(g->c->log);
  char key[STORE_KEY_MAX];
  *out = (guards){.guard.resumed = RUNLOG_NONE};
  int rc = verified_read(s, prefix, &out->guard.verified, e);
  if (rc == 0) rc = pins_list(s, prefix, &out->held, e);
  if (rc == 0 && out->held.broken)
    rc = err_set(e, ERR_FORMAT, "%s cannot be read as a pin, so it may be for any checkpoint",
                 out->held.broken_key);
  if (rc < 0) return rc;
  out->pinned = pins_held(&out->held, g->now, &out->guard.pinned_count);
  if (!out->pinned) return err_set(e, ERR_NOMEM, "read the pins: out of memory");
  out->guard.pinned = out->pinned;
  rc = runlog_join(prefix, ".ckpt/thinned", key, e);
  return rc == 0 ? s->ops->list(s, key, true, note_done, &out->done, e) : rc;
}

static void free_guards(guards *a) {
  pins_free(&a->held);
  free(a->pinned);
  store_keys_free(&a->done);
}

static bool is_done(const collecting *g, const guards *a, const runlog_commit *c) {
  char id[RUNLOG_NONCE_MAX];
  if (runlog_attempt_id(g->c->log, c->attempt, id, NULL) < 0) return false;
  for (size_t i = 0; i < a->done.count; i++)
    if (strcmp(fs_base(a->done.at[i].key), id) == 0) return true;
  return false;
}

static void take(collecting *g, uint64_t n) {
  const collect *c = g->c;
  const runlog_commit *commit = runlog_find_commit(runlog_view(c->log), n);
  char name[STORE_KEY_MAX];
  removal_found f;
  err why = {0};
  snprintf(name, sizeof name, "%s", commit->dir);
  int rc = thin_files_remove(c->store, c->log, n, c->dry, c->sink, &f, &why);
  if (rc == 0 && f.objects == 0) return;
  collect_tell(
      g, &(collected){.what = "litter",
                      .name = name,
                      .reason = rc < 0 ? why.text
                                       : "files of a checkpoint that stays: newer ones are there",
                      .bytes = f.bytes,
                      .status = rc});
}

/* The numbers of the commits of which files are to go. */
static size_t choose(const collecting *g, const guards *a, uint64_t *out) {
  const runlog_state *state = runlog_view(g->c->log);
  size_t count = 0;
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (c->life != RUNLOG_LIVE || !c->thin.globs.count || is_done(g, a, c)) continue;
    if (!thinning_guarded(state, c, &a->guard, c->thin.newest)) out[count++] = c->n;
  }
  return count;
}

static bool any_thin(const runlog_state *state) {
  for (size_t i = 0; i < state->commit_count; i++)
    if (state->commits[i].life == RUNLOG_LIVE && state->commits[i].thin.globs.count) return true;
  return false;
}

void collect_thin(collecting *g) {
  guards a;
  err why = {0};
  if (!any_thin(runlog_view(g->c->log))) return;
  int rc = take_guards(g, &a, &why);
  uint64_t *going = calloc(runlog_view(g->c->log)->commit_count + 1, sizeof *going);
  if (rc == 0 && !going) rc = err_set(&why, ERR_NOMEM, "collect: out of memory");
  const size_t count = rc == 0 ? choose(g, &a, going) : 0;
  if (rc < 0) collect_failed(g, "litter", rc, why.text);
  for (size_t i = 0; i < count && !g->stopped; i++) take(g, going[i]);
  free_guards(&a);
  free(going);
}
