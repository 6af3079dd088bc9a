/* run_companions: puts back the companions of the commits that the job goes on from: pointer files,
 * results, logs. If the run goes back to a commit, files of a later time there go to quarantine; if
 * the commit was here all along, only missing files come back. */
#include <stdio.h>
#include <string.h>

#include "catalog/catalog.h"
#include "job/restore/companions_restore.h"
#include "commit/companions_stored.h"
#include "job/restore/restore.h"
#include "run/run_prepare.h"

struct clearing {
  struct prepare *prepare;
  const char *prefix, *unit;
};

static int clear(void *ctx, const char *name, err *e) {
  const struct clearing *c = ctx;
  char path[FS_PATH_MAX], why[600];
  snprintf(why, sizeof why, "what was saved with %.300s takes its place", c->unit);
  int rc = fs_join(path, c->prefix, name, e);
  if (rc == 0) rc = prepare_quarantine(c->prepare, path, MATCH_FILE, why, e);
  if (rc == 0) c->prepare->out->quarantined--; /* that counts units */
  return rc;
}

/* Passes over damaged companions: they are no reason not to start, since the checkpoint itself is
 * whole. */
static int unless_damaged(const struct prepare *p, const char *unit, int rc, const err *why,
                          err *e) {
  if (rc >= 0) return 0;
  if (!prepare_is_damage(rc)) {
    if (e) *e = *why;
    return rc;
  }
  log_say(p->run->env->log, LOG_ERROR, "what was saved beside %s is NOT put back: %s", unit,
          why->text);
  return 0;
}

static restore how_of(const struct prepare *p, store *from) {
  return (restore){
      .io = p->io, .store = from, .pool = p->run->env->pool, .staging = p->staging.path};
}

static int put_back(struct prepare *p, run_group *g, const runlog_commit *c, bool back, err *e) {
  run *r = p->run;
  char dir[FS_PATH_MAX], key[STORE_KEY_MAX];
  manifest m = {0};
  const manifest *own;
  err why = {0};
  restore how = how_of(p, r->store);
  struct clearing room = {p, g->group.prefix, c->unit};
  companions_target to = {
      .dir = dir, .log = r->env->log, .only_missing = !back, .clear = clear, .ctx = &room};
  int rc = fs_join(dir, r->places.dir, g->group.prefix, &why);
  if (rc == 0) rc = run_manifest(r, g, c, &own, &why);
  if (rc == 0)
    rc = companions_manifest(r->store, g->group.prefix, c->attempt, &c->companions,
                             &(companions_units){own, runlog_view(g->group.log)}, &m, key, &why);
  if (rc == 0) rc = prepare_need_staging(p, &why);
  if (rc == 0) rc = companions_restore(&how, &m, key, &to, &why);
  if (rc > 0)
    log_say(r->env->log, LOG_INFO, "restored %d file%s that %s saved with %s", rc,
            rc == 1 ? "" : "s", rc == 1 ? "was" : "were", c->unit);
  manifest_free(&m);
  return unless_damaged(p, c->unit, rc, &why, e);
}

int prepare_restore_picked(struct prepare *p, const struct catalog_pick *pick, err *e) {
  run *r = p->run;
  char key[STORE_KEY_MAX];
  manifest m = {0};
  err why = {0};
  restore how = how_of(p, pick->store);
  struct clearing room = {p, "", pick->manifest.unit};
  companions_target to = {.dir = r->places.dir, .log = r->env->log, .clear = clear, .ctx = &room};
  if (pick->companions.files == 0) return 0;
  int rc = companions_manifest(pick->store, "", pick->attempt, &pick->companions,
                               &(companions_units){.unit = &pick->manifest}, &m, key, &why);
  if (rc == 0) rc = prepare_need_staging(p, &why);
  if (rc == 0) rc = companions_restore(&how, &m, key, &to, &why);
  manifest_free(&m);
  return unless_damaged(p, pick->manifest.unit, rc, &why, e);
}

/* ---- of which commit ---- */

static bool was_restored(const struct prepare *p, const char *path) {
  for (size_t i = 0; i < p->restored_count; i++)
    if (strcmp(p->restored[i].path, path) == 0) return true;
  return false;
}

/* Finds the unit of a group that the job goes on from, if it is a commit; *back: the run goes back
 * to it. */
static const survey_unit *goes_on_from(const struct prepare *p, const run_group *g, const survey *s,
                                       bool *back) {
  const survey_unit *best = NULL;
  for (size_t i = 0; i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    if (strcmp(u->group, g->group.prefix) != 0 || u->standing != RECOVER_COMMITTED) continue;
    if (!best || u->commit > best->commit) best = u;
  }
  for (size_t i = 0; best && i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    if (u->standing == RECOVER_WHOLE && strcmp(u->group, best->group) == 0 &&
        strcmp(u->series, best->series) == 0 && u->step > best->step)
      return NULL; /* it goes on from this one, and the files here are of that time */
  }
  *back = best && (p->back || was_restored(p, best->path));
  return best;
}

static int restore_group(struct prepare *p, run_group *g, const survey *s, err *e) {
  const runlog_state *state = runlog_view(g->group.log);
  bool back = false;
  const runlog_commit *c = NULL;
  if (p->named_commit != RUNLOG_NONE) {
    if (p->named_group != g) return 0;
    c = runlog_find_commit(state, p->named_commit);
    back = was_restored(p, p->named) || (c && runlog_newest(state, NULL) != c);
  } else {
    const survey_unit *u = goes_on_from(p, g, s, &back);
    c = u ? runlog_find_commit(state, u->commit) : NULL;
  }
  return c && c->companions.files ? put_back(p, g, c, back, e) : 0;
}

/* The times of directories come first: files that are put beside them do not change those. */
static int group_order(struct prepare *p, const run_group *g, err *e) {
  char dir[FS_PATH_MAX];
  bool any = false;
  size_t len = strlen(g->group.prefix);
  for (size_t i = 0; i < p->restored_count; i++)
    any |= strncmp(p->restored[i].path, g->group.prefix, len) == 0;
  if (!any) return 0;
  int rc = fs_join(dir, p->run->places.dir, g->group.prefix, e);
  return rc < 0 ? rc : restore_order(p->io, dir, runlog_view(g->group.log), e);
}

int prepare_restore_companions(struct prepare *p, const survey *s, err *e) {
  run *r = p->run;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (g->foreign || !g->group.log) continue;
    rc = group_order(p, g, e);
    if (rc == 0) rc = restore_group(p, g, s, e);
  }
  return prepare_close_staging(p, rc, e);
}
