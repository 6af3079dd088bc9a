/* prepare_companions: puts back the companions of the commits that the job goes on from: pointer files,
 * results, logs. If the run goes back to a commit, files of a later time there go to quarantine; if
 * the commit was here all along, only missing files come back. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "catalog/catalog.h"
#include "job/restore/companions_restore.h"
#include "commit/companions_stored.h"
#include "job/restore/restore.h"
#include "run/begin/prepare_pointers.h"

/* ---- what was saved ---- */

struct clearing {
  struct prepare *prepare;
  const survey *survey; /* NULL: what is here is not known */
  const char *prefix, *unit;
  bool failed; /* out of memory */
};

static int clear(void *ctx, const char *name, err *e) {
  const struct clearing *c = ctx;
  char path[FS_PATH_MAX], full[FS_PATH_MAX], why[600];
  struct stat st;
  snprintf(why, sizeof why, "what was saved with %.300s takes its place", c->unit);
  int rc = fs_join(path, c->prefix, name, e);
  if (rc == 0) rc = fs_join(full, c->prepare->run->places.dir, path, e);
  if (rc < 0) return rc;
  const io *io = c->prepare->io;
  bool whole = io->lstat(io, AT_FDCWD, full, &st) == 0 && S_ISDIR(st.st_mode);
  if (!whole) return prepare_set_aside(c->prepare, path, why, e);
  rc = prepare_quarantine(c->prepare, path, MATCH_FILE, RECOVER_WHOLE, why, e);
  if (rc == 0) c->prepare->out->quarantined--; /* that counts units */
  return rc;
}

static bool lies(void *ctx, const char *name, const char *path) {
  const struct clearing *c = ctx;
  struct prepare *p = c->prepare;
  const pointer_row *row = pointers_row(name);
  if (prepare_pointer_is_empty(p, name, path)) return true;
  if (!c->survey || !prepare_pointer_lies(p, c->survey, c->prefix, name, path)) return false;
  size_t len = strlen(p->staging.path);
  if (row && row->form == POINTER_LIST && len && strncmp(path, p->staging.path, len) == 0)
    snprintf(p->unfit, sizeof p->unfit, "%s", name);
  return true;
}

/* A list that was saved, and could not be put back, is missed where none stands. */
static int check_list(struct prepare *p, const char *dir, err *e) {
  char path[FS_PATH_MAX];
  if (!*p->unfit || fs_join(path, dir, p->unfit, NULL) < 0 || prepare_stands(p, path)) return 0;
  return prepare_refuse_list(p->unfit, pointers_row(p->unfit), "", e);
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

/* Returns how many came back; 0, if they are damaged. */
static int bring(struct prepare *p, run_group *g, const runlog_commit *c,
                 const companions_target *how_much, err *e) {
  run *r = p->run;
  char dir[FS_PATH_MAX], key[STORE_KEY_MAX];
  manifest m = {0};
  const manifest *own;
  err why = {0};
  restore how = how_of(p, r->store);
  companions_target to = *how_much;
  to.dir = dir;
  to.log = r->env->log;
  int rc = fs_join(dir, r->places.dir, g->group.prefix, &why);
  if (rc == 0) rc = run_manifest(r, g, c, &own, &why);
  if (rc == 0)
    rc = companions_manifest(r->store, g->group.prefix, c->attempt, &c->companions,
                             &(companions_units){own, runlog_view(g->group.log)}, &m, key, &why);
  if (rc == 0) rc = prepare_need_staging(p, &why);
  *p->unfit = 0;
  if (rc == 0) rc = companions_restore(&how, &m, key, &to, &why);
  int missed = rc < 0 ? 0 : check_list(p, dir, &why);
  if (missed < 0) rc = missed;
  if (rc > 0)
    log_say(r->env->log, LOG_INFO, "restored %d file%s that %s saved with %s", rc,
            rc == 1 ? "" : "s", rc == 1 ? "was" : "were", c->unit);
  manifest_free(&m);
  return rc < 0 ? unless_damaged(p, c->unit, rc, &why, e) : rc;
}

static int put_back(struct prepare *p, const survey *s, run_group *g, const runlog_commit *c,
                    bool back, err *e) {
  struct clearing room = {p, s, g->group.prefix, c->unit, false};
  companions_target to = {.only_missing = !back, .clear = clear, .lies = lies, .ctx = &room};
  int rc = c->companions.files ? bring(p, g, c, &to, e) : 0;
  return rc < 0 ? rc : 0;
}

static bool is_missed(void *ctx, const char *name, bool link) {
  struct clearing *c = ctx;
  struct prepare *p = c->prepare;
  char path[FS_PATH_MAX], full[FS_PATH_MAX];
  if (!prepare_leads_to_one(name, link) || fs_join(path, c->prefix, name, NULL) < 0 ||
      fs_join(full, p->run->places.dir, path, NULL) < 0 ||
      (prepare_stands(p, full) && !prepare_pointer_is_empty(p, name, full)))
    return false;
  c->failed |= !names_add(&p->came_back, path);
  return !c->failed;
}

/* A job that is killed between a checkpoint and its pointer leaves one that is saved without: a
 * framework that looks for its pointer alone would begin anew. The one of the checkpoint before comes
 * back, and is made to name what is here (prepare_pointers.c). `than` is NULL: of any commit. */
static int put_back_pointers(struct prepare *p, run_group *g, const runlog_commit *than, err *e) {
  enum { LOOKS = 3 };
  const runlog_state *state = runlog_view(g->group.log);
  struct clearing room = {p, NULL, g->group.prefix, than ? than->unit : "an older one", false};
  companions_target to = {
      .only_missing = true, .clear = clear, .lies = lies, .wants = is_missed, .ctx = &room};
  int rc = 0, looks = 0;
  for (size_t i = state->commit_count; rc == 0 && looks < LOOKS && i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if ((than && c->n >= than->n) || c->life != RUNLOG_LIVE) continue;
    if (than && !c->companions.files) continue;
    looks++;
    if (c->companions.files) rc = bring(p, g, c, &to, e);
  }
  if (room.failed) return err_set(e, ERR_NOMEM, "put pointers back: out of memory");
  return rc < 0 ? rc : 0;
}

/* Lightning removes its link, and makes it anew: killed between, it has checkpoints and no way to them. */
static int put_back_missing(struct prepare *p, const survey *s, run_group *g, err *e) {
  if (!prepare_any_whole(s, g->group.prefix)) return 0;
  int rc = prepare_has_pointer(p, g->group.prefix, e);
  return rc == 0 ? put_back_pointers(p, g, NULL, e) : rc < 0 ? rc : 0;
}

int prepare_restore_picked(struct prepare *p, const struct catalog_pick *pick, err *e) {
  run *r = p->run;
  char key[STORE_KEY_MAX];
  manifest m = {0};
  err why = {0};
  restore how = how_of(p, pick->store);
  struct clearing room = {p, NULL, "", pick->manifest.unit, false};
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

bool prepare_was_restored(const struct prepare *p, const char *path) {
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
  *back = best && (p->back || prepare_was_restored(p, best->path));
  return best;
}

static int restore_group(struct prepare *p, run_group *g, const survey *s, err *e) {
  const runlog_state *state = runlog_view(g->group.log);
  bool back = false;
  const runlog_commit *c = NULL;
  if (p->named_commit != RUNLOG_NONE) {
    if (p->named_group != g) return 0;
    c = runlog_find_commit(state, p->named_commit);
    back = prepare_was_restored(p, p->named) || (c && runlog_newest(state, NULL) != c);
  } else {
    const survey_unit *u = goes_on_from(p, g, s, &back);
    c = u ? runlog_find_commit(state, u->commit) : NULL;
  }
  int rc = c ? put_back(p, s, g, c, back, e) : 0;
  if (rc == 0 && c && back) return put_back_pointers(p, g, c, e);
  return rc == 0 && !*p->named ? put_back_missing(p, s, g, e) : rc;
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
  if (rc == 0) rc = prepare_mend_pointers(p, s, e);
  return prepare_close_staging(p, rc, e);
}
