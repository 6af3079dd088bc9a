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
    free(k->at[i].had);
  }
  free(k->at);
}

static bool is_in(const uint64_t *at, size_t count, uint64_t n) {
  for (size_t i = 0; i < count; i++)
    if (at[i] == n) return true;
  return false;
}

static bool is_known_whole(const prune_thin_whole *w, uint64_t n) {
  return w && is_in(w->at, w->count, n);
}

/* Out of memory it is read again the next time. */
static void note_whole(prune_thin_whole *w, uint64_t n) {
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

static bool counts(const thin_kinds *a, const thin_newest *k, const runlog_commit *c) {
  return thinning_counts(k->unit, c) && !c->thin.globs.count && !is_known_whole(a->whole, c->n);
}

/* Returns 1 if it has such files itself; ERR_CORRUPT: it cannot be read, which was said. Empty files are what a full
 * disk or a save that failed leaves: the older one has the last that can be loaded. */
static int take_in(const thin_kinds *a, thin_newest *k, const runlog_commit *c, err *e) {
  manifest m = {0};
  err why = {0};
  int rc = thin_read_table(a->p, c, &m, &why);
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  if (rc == 0) {
    log_say(a->p->sink, LOG_WARN, "no files are taken of those before %s, which cannot be read: %s",
            c->dir, why.text);
    return ERR_CORRUPT;
  }
  const thin_have its = thin_has(&m, a->wish.globs);
  manifest_free(&m);
  if (!its.files) note_whole(a->whole, c->n);
  if (!its.bytes) return 0;
  k->has.files &= its.files;
  k->has.bytes &= its.bytes;
  if (!VEC_ROOM(k->at, k->count, k->room))
    return err_set(e, ERR_NOMEM, "take files of older checkpoints: out of memory");
  k->at[k->count++] = c->n;
  return 1;
}

/* One alone has to be proven, and the one that is has to have such files: a newer one that nobody has read may be
 * all that is left of them else. */
static int read_proven(const thin_kinds *a, thin_newest *k, err *e) {
  const uint64_t proofs[] = {a->guard->resumed, a->guard->verified}, newest = k->below;
  uint64_t proven = 0;
  for (size_t i = 0; i < 2; i++) {
    const runlog_commit *c =
        proofs[i] == RUNLOG_NONE ? NULL : runlog_find_commit(a->state, proofs[i]);
    if (!c || c->n <= proven || !counts(a, k, c)) continue;
    int rc = c->n == newest ? 1 : take_in(a, k, c, e);
    if (rc < 0 && rc != ERR_CORRUPT) return rc;
    if (rc == 1) proven = c->n;
  }
  k->below = proven < newest ? proven : newest;
  return 0;
}

/* Reads the newest of this kind, until enough of them have such files. */
static int read_newest(const thin_kinds *a, thin_newest *k, err *e) {
  const runlog_state *state = a->state;
  k->has = (thin_have){UINT64_MAX, UINT64_MAX};
  for (size_t i = state->commit_count; i-- > 0 && !k->below;) {
    const runlog_commit *c = &state->commits[i];
    int rc = counts(a, k, c) ? take_in(a, k, c, e) : 0;
    if (rc < 0) return rc == ERR_CORRUPT ? 0 : rc;
    if (rc == 1 && k->count >= a->wish.newest) k->below = c->n;
  }
  return k->below && a->wish.newest <= 1 ? read_proven(a, k, e) : 0;
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

/* Returns 1 if it has such files, or had. What cannot be read proves nothing. */
static int has_or_had(const thin_kinds *a, thin_newest *k, const runlog_commit *c, err *e) {
  manifest m = {0};
  err why = {0};
  if (is_in(k->at, k->count, c->n) || is_in(k->had, k->had_count, c->n)) return 1;
  if (is_known_whole(a->whole, c->n)) return 0;
  int rc = thin_read_table(a->p, c, &m, &why); /* it names what was taken, too */
  if (rc <= 0) return rc < 0 ? err_set(e, rc, "%s", why.text) : 0;
  const bool yes = thin_has(&m, a->wish.globs).bytes != 0;
  manifest_free(&m);
  if (!yes) return 0;
  if (!VEC_ROOM(k->had, k->had_count, k->had_room))
    return err_set(e, ERR_NOMEM, "take files of older checkpoints: out of memory");
  k->had[k->had_count++] = c->n;
  return 1;
}

int thin_since(thin_kinds *a, const runlog_commit *c, const runlog_commit **out, err *e) {
  const thin_newest *known = NULL;
  uint64_t newer = 0;
  *out = NULL;
  int rc = thin_newest_of(a, c, &known, e);
  if (rc < 0) return rc;
  thin_newest *k = &a->at[known - a->at];
  for (size_t i = (size_t)(c - a->state->commits) + 1; rc >= 0 && i < a->state->commit_count; i++) {
    const runlog_commit *other = &a->state->commits[i];
    if (!thinning_counts(c->unit, other)) continue;
    rc = has_or_had(a, k, other, e);
    newer += rc == 1;
    if (newer < a->wish.newest) continue;
    *out = other;
    return 0;
  }
  return rc < 0 ? rc : 0;
}

/* Said once: nobody who wrote newest_only for such checkpoints would see why all of it stays. */
static bool is_directory(const thin_kinds *a, const runlog_commit *c) {
  const unsigned bit = 1U << c->kind;
  if (c->kind == MATCH_DIR) return true;
  if (c->above) return false; /* it is no checkpoint */
  if (!(a->whole->said & bit))
    log_say(a->p->sink, LOG_WARN,
            "newest_only of %s takes nothing of %s, as %s: it is for directories", a->wish.policy,
            c->kind == MATCH_FILE ? "single files" : "groups of files", c->unit);
  a->whole->said |= bit;
  return false;
}

thinning thin_may(const thin_kinds *k, const runlog_commit *c, const retention_limits *limits) {
  if (c->life != RUNLOG_LIVE || is_known_whole(k->whole, c->n) || !is_directory(k, c))
    return (thinning){.why = "it has no such files"};
  return thinning_judge(k->state, c, k->guard, limits, k->wish.newest, NULL);
}

/* A note without an entry: that one was lost. What the note means is gone, or about to go, so the entry has to
 * say the same, whatever is wished by now. Returns 1 if an entry can be made. */
static int take_note(const thin_kinds *a, const runlog_commit *c, const manifest *m,
                     thin_going *out, err *why) {
  char key[STORE_KEY_MAX];
  int rc = runlog_key_dir(a->p->log, c->dir, key, why);
  if (rc == 0) rc = manifest_read_note(a->p->store, key, m, &out->note, why);
  if (rc <= 0) return rc < 0 ? rc : 1;
  const char *none = manifest_thin_judge(m, &out->note.globs, &out->stays);
  if (none && !*none) return err_set(why, ERR_NOMEM, "look into %s: out of memory", c->dir);
  if (none)
    log_say(a->p->sink, LOG_WARN, "nothing is taken of %s: a note there says what is gone, and %s",
            c->dir, none);
  if (none) note_whole(a->whole, c->n);
  return !none;
}

static int judge(const thin_kinds *a, const thin_newest *k, const runlog_commit *c,
                 const manifest *m, thin_going *out, err *why) {
  const char *whole = manifest_thin_judge(m, a->wish.globs, &out->stays);
  if (whole && !*whole) return err_set(why, ERR_NOMEM, "look into %s: out of memory", c->dir);
  if (whole) note_whole(a->whole, c->n);
  if (whole || !thin_newest_have(k, c, thin_has(m, a->wish.globs))) return 0;
  return take_note(a, c, m, out, why);
}

int thin_look(thin_kinds *a, const runlog_commit *c, thin_going *out, err *e) {
  const thin_newest *k = NULL;
  manifest m = {0};
  err why = {0};
  int rc = thin_newest_of(a, c, &k, e);
  if (rc < 0 || c->n >= k->below) return rc;
  out->have = (thinning_have){k->at, k->count};
  rc = thin_read_table(a->p, c, &m, &why);
  if (rc > 0) rc = judge(a, k, c, &m, out, &why);
  manifest_free(&m);
  return rc < 0 ? err_set(e, rc, "%s", why.text) : rc;
}
