#include "prune_thin_newest.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "prims/match_series.h"

void prune_thin_forget(prune_thin_whole *w) {
  free(w->at);
  *w = (prune_thin_whole){0};
}

void thin_kinds_free(thin_kinds *k) {
  for (size_t i = 0; i < k->count; i++) {
    free(k->at[i].unit);
    free(k->at[i].at);
  }
  free(k->at);
}

bool thin_known_whole(const prune_thin_whole *w, uint64_t n) {
  for (size_t i = 0; w && i < w->count; i++)
    if (w->at[i] == n) return true;
  return false;
}

void thin_note_whole(prune_thin_whole *w, uint64_t n) {
  if (w && VEC_ROOM(w->at, w->count, w->room)) w->at[w->count++] = n;
}

thin_have thin_has(const manifest *m, const names *globs) {
  thin_have out = {0};
  for (size_t i = 0; i < globs->count; i++) {
    const names one = {&globs->at[i], 1, 1};
    const uint64_t bit = UINT64_C(1) << i;
    for (size_t k = 0; k < m->count && !(out.bytes & bit); k++) {
      const manifest_entry *at = &m->entries[k];
      if (at->type != MANIFEST_FILE || !manifest_thin_means(m, at, &one)) continue;
      out.files |= bit;
      if (at->size > 0) out.bytes |= bit;
    }
  }
  return out;
}

bool thin_newest_have(const thin_newest *n, const runlog_commit *c, thin_have its) {
  return c->n < n->below && !(its.files & ~n->has.files) && !(its.bytes & ~n->has.bytes);
}

int thin_read_table(const prune *p, const runlog_commit *c, manifest *out, err *why) {
  char key[STORE_KEY_MAX];
  int rc = runlog_key_dir(p->log, c->dir, key, why);
  if (rc == 0) rc = manifest_read_proven(p->store, key, &c->root, &c->manifest, out, why);
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT || rc == ERR_NOENT) return 0;
  return rc < 0 ? rc : 1;
}

/* Reads the newest of this kind, until enough of them have such files. Empty ones are what a full disk or a
 * save that failed leaves: the older one has the last that can be loaded. */
static int read_newest(const thin_kinds *a, thin_newest *k, err *e) {
  const prune *p = a->p;
  const runlog_state *state = runlog_view(p->log);
  k->has = (thin_have){UINT64_MAX, UINT64_MAX};
  for (size_t i = state->commit_count; i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    manifest m = {0};
    err why = {0};
    if (c->life != RUNLOG_LIVE || c->bad || c->thin.globs.count) continue;
    if (!match_same_series(c->unit, k->unit) || thin_known_whole(a->whole, c->n)) continue;
    int rc = thin_read_table(p, c, &m, &why);
    if (rc < 0) return err_set(e, rc, "%s", why.text);
    if (rc == 0) {
      log_say(p->sink, LOG_WARN, "no files are taken of those before %s, which cannot be read: %s",
              c->dir, why.text);
      return 0;
    }
    const thin_have its = thin_has(&m, a->globs);
    manifest_free(&m);
    if (!its.files) thin_note_whole(a->whole, c->n);
    if (!its.bytes) continue;
    k->has.files &= its.files;
    k->has.bytes &= its.bytes;
    if (!VEC_ROOM(k->at, k->count, k->room))
      return err_set(e, ERR_NOMEM, "take files of older checkpoints: out of memory");
    k->at[k->count++] = c->n;
    if (k->count < a->newest) continue;
    k->below = c->n;
    return 0;
  }
  return 0;
}

int thin_newest_of(thin_kinds *a, const runlog_commit *c, const thin_newest **out, err *e) {
  for (size_t i = 0; i < a->count; i++)
    if (match_same_series(a->at[i].unit, c->unit)) {
      *out = &a->at[i];
      return 0;
    }
  char *unit = VEC_ROOM(a->at, a->count, a->room) ? strdup(c->unit) : NULL;
  if (!unit) return err_set(e, ERR_NOMEM, "take files of older checkpoints: out of memory");
  thin_newest *k = &a->at[a->count++];
  *k = (thin_newest){.unit = unit};
  *out = k;
  return read_newest(a, k, e);
}
