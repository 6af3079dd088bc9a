/* prune_thin_files: removing the files that the log says to be gone of commits that stay. Who said so may have
 * died, or a pin held them then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/thin_files.h"
#include "plan/thinning.h"
#include "prims/fs.h"
#include "prune_impl.h"
#include "prune_thin_newest.h"

/* The pins are listed after the entries were read: a reader that puts one later sees that the files may go. */
typedef struct removing {
  prune_pass pass;
  prune_thin_removed *told;
  void *ctx;
  store_keys done;
  thin_kinds kinds; /* for the globs of the last one that was asked for; they are the log's own */
  uint64_t *going;
  size_t count;
} removing;

static int note_done(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  return is_prefix ? 0 : store_keys_add(ctx, key, is_prefix, object);
}

static int take_done(removing *a, err *e) {
  const prune *p = a->pass.p;
  char key[STORE_KEY_MAX];
  int rc = runlog_join(runlog_prefix(p->log), ".ckpt/thinned", key, e);
  return rc == 0 ? p->store->ops->list(p->store, key, true, note_done, &a->done, e) : rc;
}

static void free_removing(removing *a) {
  prune_pass_free(&a->pass);
  store_keys_free(&a->done);
  thin_kinds_free(&a->kinds);
  free(a->going);
}

static bool is_done(const removing *a, const runlog_commit *c) {
  char id[RUNLOG_NONCE_MAX];
  if (runlog_attempt_id(a->pass.p->log, c->attempt, id, NULL) < 0) return false;
  for (size_t i = 0; i < a->done.count; i++)
    if (strcmp(fs_base(a->done.at[i].key), id) == 0) return true;
  return false;
}

/* Most commits lost the same files: what the newest have is read once for those. */
static void ask_for(removing *a, const runlog_commit *c) {
  const thin_kinds *k = &a->kinds;
  const names *globs = &c->thin.globs;
  if (k->p && k->wish.newest == c->thin.newest &&
      names_same(names_list(k->wish.globs), names_list(globs)))
    return;
  thin_kinds_free(&a->kinds);
  a->kinds = (thin_kinds){.p = a->pass.p,
                          .state = runlog_view(a->pass.p->log),
                          .guard = &a->pass.guard,
                          .wish = {.globs = globs, .newest = c->thin.newest}};
}

/* Returns 1 if the newest have what would go: of those that had it when the entry was made, some may be bad or
 * gone by now. One whose own table proves nothing is left to who removes, and says so. */
static int have_newer(removing *a, const runlog_commit *c, err *e) {
  const thin_newest *k = NULL;
  manifest m = {0};
  ask_for(a, c);
  int rc = thin_newest_of(&a->kinds, c, &k, e);
  if (rc < 0 || c->n >= k->below) return rc;
  rc = thin_read_table(a->pass.p, c, &m, e);
  if (rc > 0)
    rc = thin_newest_have(k, c, thin_has(&m, a->kinds.wish.globs));
  else if (rc == 0)
    rc = 1;
  manifest_free(&m);
  return rc;
}

/* Takes the numbers of the commits of which files are to go. */
static int choose(removing *a, bool *left, err *e) {
  const runlog_state *state = runlog_view(a->pass.p->log);
  a->going = calloc(state->commit_count + 1, sizeof *a->going);
  if (!a->going) return err_set(e, ERR_NOMEM, "take files of older checkpoints: out of memory");
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    err why = {0};
    if (c->life != RUNLOG_LIVE || !c->thin.globs.count || is_done(a, c)) continue;
    int rc = thinning_guarded(state, c, &a->pass.guard, c->thin.newest, NULL)
                 ? 0
                 : have_newer(a, c, &why);
    if (rc > 0) a->going[a->count++] = c->n;
    if (rc <= 0) *left = true;
    if (rc < 0 && a->told && a->told(a->ctx, c->dir, &(removal_found){0}, rc, why.text) != 0) break;
  }
  return 0;
}

static bool any_thin(const runlog_state *state) {
  for (size_t i = 0; i < state->commit_count; i++)
    if (state->commits[i].life == RUNLOG_LIVE && state->commits[i].thin.globs.count) return true;
  return false;
}

/* Returns what was told says. */
static int take(const removing *a, uint64_t n, bool *left) {
  const prune *p = a->pass.p;
  const runlog_commit *c = runlog_find_commit(runlog_view(p->log), n);
  char name[STORE_KEY_MAX];
  removal_found f;
  err why = {0};
  snprintf(name, sizeof name, "%s", c->dir);
  int rc = thin_files_remove(p->store, p->log, n, p->dry, p->sink, &f, &why);
  if (rc < 0) *left = true;
  if (rc == 0 && f.objects == 0) return 0;
  return a->told ? a->told(a->ctx, name, &f, rc, why.text) : 0;
}

int prune_thin_files(const prune *p, int64_t now, prune_thin_removed *told, void *ctx, bool *left,
                     err *e) {
  removing a = {.pass = {.p = p}, .told = told, .ctx = ctx};
  *left = false;
  if (p->limits.no_delete || !any_thin(runlog_view(p->log))) return 0;
  int rc = prune_pass_pins(&a.pass, now, e);
  if (rc == 0) rc = take_done(&a, e);
  if (rc == 0) rc = choose(&a, left, e);
  for (size_t i = 0; rc == 0 && i < a.count; i++) {
    if (prune_stopped(p)) {
      *left = true;
      break;
    }
    if (take(&a, a.going[i], left) != 0) break;
  }
  free_removing(&a);
  if (rc < 0) *left = true;
  return rc;
}
