#include "companions_stored.h"

#include <string.h>

#include "prims/fs.h"

bool companions_is_ours(const char *name) {
  const char *base = fs_base(name);
  return strncmp(name, ".ckpt", 5) == 0 || strcmp(base, MANIFEST_NAME) == 0;
}

static bool is_at_or_below(const char *name, const char *top) {
  size_t len = strlen(top);
  return strncmp(name, top, len) == 0 && (name[len] == 0 || name[len] == '/');
}

/* A directory has one name, the files of a group have one each. */
static bool is_in_own(const manifest *unit, const char *name) {
  if (is_at_or_below(name, unit->unit)) return true;
  for (size_t i = 0; unit->kind == MATCH_GROUP && i < unit->count; i++)
    if (is_at_or_below(name, unit->entries[i].name)) return true;
  return false;
}

static const char *live_unit_of(const runlog_state *state, const char *name) {
  for (size_t i = 0; state && i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (c->life == RUNLOG_LIVE && is_at_or_below(name, c->unit)) return c->unit;
  }
  return NULL;
}

static int check_name(const companions_units *units, const char *name, err *e) {
  if (is_in_own(units->unit, name))
    return err_set(e, ERR_CORRUPT,
                   "\"%.300s\" is said to stand beside %.200s, but lies in it: no save makes that, "
                   "so somebody changed the store",
                   name, units->unit->unit);
  const char *other = live_unit_of(units->state, name);
  if (other)
    return err_set(e, ERR_CORRUPT,
                   "\"%.300s\" is said to stand beside %.200s, but lies in %.200s, a checkpoint by "
                   "itself, and nothing is added to one",
                   name, units->unit->unit, other);
  if (companions_is_ours(name))
    return err_set(e, ERR_CORRUPT,
                   "\"%.300s\" is said to stand beside %.200s, but is a name of ours: no save "
                   "makes that, so somebody changed the store",
                   name, units->unit->unit);
  return 0;
}

int companions_check(const manifest *m, const companions_units *units, err *e) {
  if (m->count > COMPANIONS_MAX || manifest_bytes(m) > COMPANIONS_BYTES_MAX)
    return err_set(
        e, ERR_CORRUPT,
        "more is said to stand beside %s than a save takes (%d files, %d MiB), so somebody "
        "changed the store",
        units->unit->unit, COMPANIONS_MAX, COMPANIONS_BYTES_MAX >> 20);
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < m->count; i++) rc = check_name(units, m->entries[i].name, e);
  return rc;
}
