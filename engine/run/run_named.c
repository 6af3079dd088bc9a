/* run_named: what a framework's own file says of a checkpoint that nothing else proves whole.
 *
 * Some frameworks write the file that names their checkpoints when all of what it names is there:
 * TensorFlow's `checkpoint`, the snapshots of Ray. They go on from what it names. A start that believed
 * less would resume from an older one than its framework does, and would never save the one that the
 * job goes on from: it was written before anybody watched, and rests for ever. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "job/move/pointer_files.h"
#include "prims/fs.h"
#include "run/run_state.h"

/* A file that is older than what it names tells of another one, which had the name before. */
static bool tells_of(const struct stat *st, const detect_unit *unit) {
  return io_time_ns(st->st_mtim) >= unit->made_ns;
}

static bool is_last(const fs_entry *entry, bool leads) {
  const pointer_row *row = S_ISREG(entry->st->st_mode) ? pointers_row(entry->name) : NULL;
  return row && row->last && pointers_lead(row) == leads;
}

/* ---- beside it ---- */

struct beside {
  pointer_place place;
  const char *dir;
  const detect_unit *unit;
  bool found;
};

static int ask_beside(void *ctx, const fs_entry *entry, err *e) {
  struct beside *b = ctx;
  char path[FS_PATH_MAX];
  pointer_file f;
  if (S_ISDIR(entry->st->st_mode)) return FS_SKIP;
  if (!is_last(entry, true) || fs_join(path, b->dir, entry->name, NULL) < 0) return 0;
  int rc = pointer_file_read(&b->place, entry->name, path, &f, e);
  for (size_t i = 0; rc == 0 && tells_of(&f.st, b->unit) && i < f.says.count; i++)
    b->found |= pointers_mean(f.row, f.says.at[i], b->unit->name, b->unit->step);
  pointer_file_drop(&f);
  return rc;
}

/* ---- above its group ---- */

/* The newest one is what its framework goes on by. */
static int ask_above(void *ctx, const fs_entry *entry, err *e) {
  run *r = ctx;
  char path[FS_PATH_MAX];
  const int64_t made_ns = io_time_ns(entry->st->st_mtim);
  if (S_ISDIR(entry->st->st_mode)) return FS_SKIP;
  if (!is_last(entry, false) || made_ns <= r->named.made_ns ||
      fs_join(path, r->named.dir, entry->name, NULL) < 0)
    return 0;
  r->named.made_ns = made_ns;
  return run_above_read(r, path, &r->named.says, e);
}

/* It is read once for the trials of one experiment, which are asked about one after the other. */
static int read_above(run *r, const char *dir, err *e) {
  enum { FRESH_NS = 1000000000 };
  const int64_t now = r->env->io->now(r->env->io, IO_MONO);
  if (strcmp(r->named.dir, dir) == 0 && now - r->named.read_at < FRESH_NS) return 0;
  snprintf(r->named.dir, sizeof r->named.dir, "%s", dir);
  names_free(&r->named.says);
  r->named.made_ns = 0;
  r->named.read_at = now;
  return fs_list(r->env->io, dir, ask_above, r, e);
}

static bool says_above(const run *r, const detect_unit *unit) {
  char name[FS_PATH_MAX];
  return r->named.made_ns >= unit->made_ns &&
         fs_join(name, fs_base(unit->group), unit->name, NULL) == 0 &&
         names_has(&r->named.says, name);
}

/* ---- both ---- */

static int ask(run *r, const detect_unit *unit, err *e) {
  char dir[FS_PATH_MAX], parent[FS_PATH_MAX];
  struct beside b = {
      .place = {.io = r->env->io, .rules = r->rules, .root = r->places.dir, .group = unit->group},
      .dir = dir,
      .unit = unit};
  int rc = fs_join(dir, r->places.dir, unit->group, e);
  if (rc == 0) rc = fs_list(r->env->io, dir, ask_beside, &b, e);
  if (rc < 0 || b.found || !*unit->group) return rc < 0 ? rc : b.found;
  fs_parent(dir, parent);
  rc = read_above(r, parent, e);
  return rc < 0 ? rc : says_above(r, unit);
}

int run_named(run *r, const detect_unit *unit, err *e) {
  err why = {0};
  if (unit->state != DETECT_UNPROVEN || unit->lacking || unit->above) return 0;
  int rc = ask(r, unit, &why);
  if (rc >= 0) return rc;
  if (rc == ERR_NOMEM) return err_set(e, rc, "%s", why.text);
  log_say(r->env->log, LOG_DEBUG, "what names %s is not known: %s", unit->path, why.text);
  return 0;
}
