/* run_lost: finds commits whose data is gone from the store, although the log has them: somebody
 * emptied the target around it, or removed a directory.
 *
 * The look is cheap: the manifest, which is read anyway, and a listing of the commit's directory,
 * for the names and sizes of its files. Bytes are for `verify`. It looks at the newest commit of
 * each kind, and at the others of its log only where that one is damaged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "run/run_state.h"
#include "prims/fs.h"
#include "prims/match_series.h"

/* ---- one commit ---- */

typedef struct count {
  const manifest *m;
  size_t skip; /* length of the directory and a slash, in a key */
  bool *seen;  /* by entry: it is there with its size */
} count;

static int count_one(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  count *c = ctx;
  const manifest_entry *entry =
      strlen(key) > c->skip && !is_prefix ? manifest_find(c->m, key + c->skip) : NULL;
  if (entry && (entry->outside || entry->size == object->size))
    c->seen[entry - c->m->entries] = true;
  return 0;
}

/* Returns 1 if the object is gone, or of another size. Asked by its name, it may be there after
 * all: a listing can be late, and some servers leave out names that they cannot tell. On a disk
 * something may be there that no store makes, like a link: that is ERR_INVAL. */
static int is_gone(const run *r, const char *dir, const manifest_entry *entry, char *why,
                   size_t room, err *e) {
  char key[STORE_KEY_MAX];
  store_object object;
  err text = {0};
  int rc = runlog_join(dir, entry->name, key, e);
  if (rc == 0) rc = r->store->ops->head(r->store, key, &object, &text);
  if (rc == ERR_NOENT || rc == ERR_CORRUPT)
    snprintf(why, room, "its file \"%.200s\" is gone from the store", entry->name);
  else if (rc == ERR_INVAL)
    snprintf(why, room, "%.250s", text.text);
  else if (rc == 0 && !entry->outside && object.size != entry->size)
    snprintf(why, room, "its file \"%.200s\" has another size in the store", entry->name);
  else
    return rc < 0 ? err_set(e, rc, "%s", text.text) : 0;
  return 1;
}

static int look_at_files(const run *r, const run_group *g, const runlog_commit *c,
                         const manifest *m, char *why, size_t room, err *e) {
  char dir[STORE_KEY_MAX];
  count n = {.m = m, .seen = calloc(m->count ? m->count : 1, sizeof(bool))};
  if (!n.seen) return err_set(e, ERR_NOMEM, "look at %s: out of memory", c->dir);
  int rc = runlog_key_dir(g->group.log, c->dir, dir, e);
  n.skip = strlen(dir) + 1;
  if (rc == 0) rc = r->store->ops->list(r->store, dir, false, count_one, &n, e);
  for (size_t i = 0; rc == 0 && i < m->count; i++)
    if (!n.seen[i] && m->entries[i].type == MANIFEST_FILE)
      rc = is_gone(r, dir, &m->entries[i], why, room, e);
  free(n.seen);
  return rc;
}

/* Returns 1 if the commit is damaged. */
static int look_at(run *r, run_group *g, const runlog_commit *c, char *why, size_t room, err *e) {
  const manifest *m = NULL;
  err text = {0};
  int rc = run_manifest(r, g, c, &m, &text);
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT) {
    snprintf(why, room, "%s",
             rc == ERR_CORRUPT ? "its manifest is gone from the store, or another "
                                 "one"
                               : "its manifest in the store cannot be read");
    return 1;
  }
  if (rc < 0) return err_set(e, rc, "%s", text.text);
  return look_at_files(r, g, c, m, why, room, e);
}

/* ---- those of a run ---- */

static bool is_good(const runlog_commit *c) {
  return c->life == RUNLOG_LIVE && !c->bad;
}

bool run_newest_of_series(const runlog_state *state, const runlog_commit *c) {
  if (!is_good(c)) return false;
  for (const runlog_commit *k = c + 1; k < state->commits + state->commit_count; k++)
    if (is_good(k) && match_same_series(k->unit, c->unit)) return false;
  return true;
}

static int note(run *r, run_group *g, const runlog_commit *c, bool newest, const char *why,
                err *e) {
  char path[FS_PATH_MAX];
  int rc = fs_join(path, g->group.prefix, c->unit, e);
  if (rc < 0) return rc;
  char *unit = VEC_ROOM(g->lost, g->lost_count, g->lost_room) ? strdup(path) : NULL;
  if (!unit) return err_set(e, ERR_NOMEM, "look at %s: out of memory", c->dir);
  run_lost *l = &g->lost[g->lost_count++];
  *l = (run_lost){
      .n = c->n, .unit = unit, .step = run_step_of(r, g, c), .bytes = c->bytes, .counts = newest};
  snprintf(l->why, sizeof l->why, "%s", why);
  log_say(r->env->log, LOG_WARN, "%s was committed to %s, but %s", path, r->places.target_text,
          why);
  return 0;
}

int run_lost_note(run *r, run_group *g, const runlog_commit *c, const char *why, err *e) {
  return note(r, g, c, true, why, e);
}

static int look_at_all(run *r, run_group *g, bool newest, err *e) {
  const runlog_state *state = runlog_view(g->group.log);
  int rc = 0;
  for (size_t i = 0; rc >= 0 && i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    char why[sizeof g->lost->why];
    bool is_newest = run_newest_of_series(state, c);
    if (is_newest != newest || runlog_newest(state, c->unit) != c) continue;
    rc = look_at(r, g, c, why, sizeof why, e);
    if (rc == 1) rc = note(r, g, c, newest, why, e);
  }
  return rc < 0 ? rc : 0;
}

int run_look_for_lost(run *r, err *e) {
  int rc = 0;
  if (run_follows(r)) return 0; /* rank 0 tells it */
  for (size_t i = 0; rc == 0 && i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (!g->group.log || g->foreign) continue;
    rc = look_at_all(r, g, true, e);
    if (rc == 0 && g->lost_count > 0) rc = look_at_all(r, g, false, e);
  }
  return rc;
}

const run_lost *run_lost_find(const run_group *g, const char *path) {
  for (size_t i = 0; i < g->lost_count; i++)
    if (strcmp(g->lost[i].unit, path) == 0) return &g->lost[i];
  return NULL;
}

bool run_is_lost(const run_group *g, uint64_t n) {
  for (size_t i = 0; i < g->lost_count; i++)
    if (g->lost[i].n == n) return true;
  return false;
}

/* True if the unit is the lost one, or a newer one of its kind. */
static bool makes_up_for(const run_lost *l, const run_unit *u) {
  if (strcmp(l->unit, u->path) == 0) return true;
  if (!match_same_series(fs_base(l->unit), fs_base(u->path))) return false;
  return l->step == MATCH_NO_STEP || u->step == MATCH_NO_STEP || u->step > l->step;
}

void run_lost_forget(run_group *g, const run_unit *u) {
  size_t kept = 0;
  for (size_t i = 0; i < g->lost_count; i++) {
    if (makes_up_for(&g->lost[i], u))
      free(g->lost[i].unit);
    else
      g->lost[kept++] = g->lost[i];
  }
  g->lost_count = kept;
}

void run_lost_pass_over(run_group *g, uint64_t n) {
  for (size_t i = 0; i < g->lost_count; i++)
    if (g->lost[i].n == n) g->lost[i].counts = false;
}

void run_lost_free(run_group *g) {
  for (size_t i = 0; i < g->lost_count; i++) free(g->lost[i].unit);
  free(g->lost);
  g->lost = NULL;
  g->lost_count = g->lost_room = 0;
}

/* Returns ERR_CORRUPT if the newest commit of a kind is lost; 0: nothing is known against it. */
int run_lost_status(const run *r) {
  for (size_t i = 0; i < r->group_count; i++)
    for (size_t k = 0; k < r->groups[i]->lost_count; k++)
      if (r->groups[i]->lost[k].counts) return ERR_CORRUPT;
  return 0;
}
