/* run_manifests: the manifests of a run's commits, each read once. */
#include <stdlib.h>

#include "base/vec.h"
#include "job/restore/restore.h"
#include "run/run_state.h"

struct run_known {
  const run_group *group;
  uint64_t commit;
  manifest *manifest; /* allocated by itself: the table grows while pointers are out */
};

int run_manifest(run *r, run_group *g, const runlog_commit *c, const manifest **out, err *e) {
  for (size_t i = 0; i < r->known_count; i++)
    if (r->known[i].group == g && r->known[i].commit == c->n) {
      *out = r->known[i].manifest;
      return 0;
    }
  manifest *m = VEC_ROOM(r->known, r->known_count, r->known_room) ? calloc(1, sizeof *m) : NULL;
  if (!m) return err_set(e, ERR_NOMEM, "read the manifest of %s: out of memory", c->dir);
  int rc = restore_manifest(r->store, g->group.prefix, c, m, e);
  if (rc < 0) {
    free(m);
    return rc;
  }
  r->known[r->known_count++] = (run_known){.group = g, .commit = c->n, .manifest = m};
  *out = m;
  return 0;
}

void run_manifests_drop(run *r) {
  for (size_t i = 0; i < r->known_count; i++) {
    manifest_free(r->known[i].manifest);
    free(r->known[i].manifest);
  }
  free(r->known);
  r->known = NULL;
  r->known_count = r->known_room = 0;
}
