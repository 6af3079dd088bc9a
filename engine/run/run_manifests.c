/* run_manifests: the manifests of a run's commits, each read once: what a rank is to have of one, and
 * what its checkpoints look like. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "event/detect.h"
#include "job/restore/restore.h"
#include "run/run_state.h"

struct run_known {
  const run_group *group;
  uint64_t commit;
  manifest *manifest; /* allocated by itself: the table grows while pointers are out */
  manifest *part;     /* our rank's part of it (manifest_part); NULL: not asked for yet */
};

static int find(run *r, run_group *g, const runlog_commit *c, struct run_known **out, err *e) {
  for (size_t i = 0; i < r->known_count; i++)
    if (r->known[i].group == g && r->known[i].commit == c->n) {
      *out = &r->known[i];
      return 0;
    }
  manifest *m = VEC_ROOM(r->known, r->known_count, r->known_room) ? calloc(1, sizeof *m) : NULL;
  if (!m) return err_set(e, ERR_NOMEM, "read the manifest of %s: out of memory", c->dir);
  int rc = restore_manifest(r->store, g->group.prefix, c, m, e);
  if (rc < 0) {
    free(m);
    return rc;
  }
  *out = &r->known[r->known_count++];
  **out = (run_known){.group = g, .commit = c->n, .manifest = m};
  return 0;
}

int run_manifest(run *r, run_group *g, const runlog_commit *c, const manifest **out, err *e) {
  struct run_known *known;
  int rc = find(r, g, c, &known, e);
  if (rc == 0) *out = known->manifest;
  return rc;
}

/* ---- what a rank had ---- */

static int make_part(const run *r, struct run_known *known, err *e) {
  manifest *part = calloc(1, sizeof *part);
  if (!part) return err_set(e, ERR_NOMEM, "no memory for a part of %s", known->manifest->unit);
  int rc = manifest_part(known->manifest, r->ranks.rank, part, e);
  if (rc < 0)
    free(part);
  else
    known->part = part;
  return rc;
}

int run_part(run *r, run_group *g, const runlog_commit *c, const manifest **out, err *e) {
  struct run_known *known;
  int rc = find(r, g, c, &known, e);
  if (rc < 0) return rc;
  *out = NULL;
  if (!manifest_tells_parts(known->manifest, r->ranks.world)) return 0;
  if (!known->part) rc = make_part(r, known, e);
  *out = known->part;
  return rc;
}

/* It names no checkpoint, so that it is said once where many are restored. */
static void say_whole(run *r, const manifest *m) {
  char text[300];
  if (m->world > 1)
    snprintf(text, sizeof text,
             "what was saved by %" PRIu32 " ranks, and these are %" PRIu32
             ", is restored whole: which of its files a rank needs now nobody but the job knows "
             "(`restore_parts`)",
             m->world, r->ranks.world);
  else
    snprintf(text, sizeof text,
             "what does not tell which rank had which of its files is restored whole: ranks of an "
             "older version saved it, or one writer alone did (`restore_parts`)");
  run_say_once(r, text);
}

int run_manifest_here(run *r, run_group *g, const runlog_commit *c, const manifest **out, err *e) {
  const manifest *part = NULL;
  int rc = run_manifest(r, g, c, out, e);
  if (rc < 0 || !run_restores_parts(r)) return rc;
  rc = run_part(r, g, c, &part, e);
  if (rc == 0 && !part) say_whole(r, *out);
  if (part) *out = part;
  return rc;
}

int run_part_of(run *r, const manifest *whole, manifest *out, err *e) {
  if (!run_restores_parts(r)) return 0;
  if (manifest_tells_parts(whole, r->ranks.world)) {
    int rc = manifest_part(whole, r->ranks.rank, out, e);
    return rc < 0 ? rc : 1;
  }
  say_whole(r, whole);
  return 0;
}

bool run_restores_parts(const run *r) {
  return r->own_parts && r->ranks.world > 1;
}

/* ---- what checkpoints look like ---- */

static int learn(run *r, detect *d, run_group *g, const runlog_commit *c, err *e) {
  const manifest *m = NULL, *part = NULL;
  err why = {0};
  int rc = run_manifest(r, g, c, &m, &why);
  if (rc == 0) rc = run_part(r, g, c, &part, &why);
  if (part) m = part; /* of the others' files none is expected here */
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT) {
    if (!run_is_lost(g, c->n)) log_say(r->env->log, LOG_WARN, "%s", why.text);
    return 0; /* nothing can be learnt from that one */
  }
  if (rc < 0 && e) *e = why;
  if (rc < 0 || !m) return rc;
  const char **names = calloc(m->count ? m->count : 1, sizeof *names);
  if (!names) return err_set(e, ERR_NOMEM, "read the manifest of %s: out of memory", c->dir);
  size_t count = 0;
  for (size_t i = 0; i < m->count; i++)
    if (m->entries[i].type != MANIFEST_DIR) names[count++] = m->entries[i].name;
  rc = detect_learn(d, g->group.prefix, m->unit, names, count, e);
  free(names);
  return rc;
}

int run_manifests_learn(run *r, detect *d, err *e) {
  int rc = 0;
  for (size_t i = 0; rc >= 0 && i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (!g->group.log || g->foreign) continue;
    const runlog_state *state = runlog_view(g->group.log);
    for (size_t k = 0; rc >= 0 && k < state->commit_count; k++)
      if (run_newest_of_series(state, &state->commits[k]))
        rc = learn(r, d, g, &state->commits[k], e);
  }
  return rc < 0 ? rc : 0;
}

/* ---- their end ---- */

void run_manifests_drop(run *r) {
  for (size_t i = 0; i < r->known_count; i++) {
    if (r->known[i].part) free(r->known[i].part->entries);
    free(r->known[i].part);
    manifest_free(r->known[i].manifest);
    free(r->known[i].manifest);
  }
  free(r->known);
  r->known = NULL;
  r->known_count = r->known_room = 0;
}
