#include "companions_stored.h"

#include <stdlib.h>
#include <string.h>

#include "commit/manifest_read.h"

int companions_look_at(store *s, const char *key, uint64_t term, runlog_companions *out, err *e) {
  manifest m = {0};
  err why = {0};
  *out = (runlog_companions){0};
  int rc = manifest_read(s, key, &m, &why);
  if (rc == ERR_NOENT || rc == ERR_CORRUPT || rc == ERR_FORMAT || rc == ERR_LIMIT) return 0;
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  *out = (runlog_companions){
      .term = term, .files = m.count, .bytes = manifest_bytes(&m), .root = m.root};
  manifest_free(&m);
  return 0;
}

/* The largest number below `below` that a listing shows. */
struct newest {
  uint64_t below, found; /* RUNLOG_NONE: none */
};

static int take_newer(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  struct newest *n = ctx;
  const char *slash = strrchr(key, '/');
  char *end;
  (void)object;
  if (!is_prefix || !slash || slash[1] < '0' || slash[1] > '9') return 0;
  unsigned long long term = strtoull(slash + 1, &end, 10);
  if (*end || term >= n->below) return 0;
  if (n->found == RUNLOG_NONE || term > n->found) n->found = term;
  return 0;
}

int companions_newest(store *s, const char *prefix, uint64_t attempt, runlog_companions *out,
                      err *e) {
  char key[STORE_KEY_MAX], dir[STORE_KEY_MAX];
  struct newest n = {.below = RUNLOG_NONE};
  *out = (runlog_companions){0};
  int rc = runlog_key_companions(prefix, attempt, RUNLOG_NONE, key, e);
  while (rc == 0 && !out->files) {
    n.found = RUNLOG_NONE;
    rc = s->ops->list(s, key, true, take_newer, &n, e);
    if (rc < 0 || n.found == RUNLOG_NONE) break;
    if (runlog_key_companions(prefix, attempt, n.found, dir, NULL) == 0)
      rc = companions_look_at(s, dir, n.found, out, e);
    n.below = n.found;
  }
  return rc;
}

int companions_manifest(store *s, const char *prefix, uint64_t attempt,
                        const runlog_companions *with, const companions_units *units, manifest *out,
                        char key[STORE_KEY_MAX], err *e) {
  int rc = runlog_key_companions(prefix, attempt, with->term, key, e);
  if (rc == 0) rc = manifest_read_committed(s, key, &with->root, out, e);
  if (rc == ERR_NOENT)
    return err_set(e, ERR_CORRUPT, "%s was committed, but its manifest is missing", key);
  if (rc < 0) return rc;
  rc = companions_check(out, units, e);
  if (rc < 0) manifest_free(out);
  return rc;
}
