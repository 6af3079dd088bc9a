/* prepare_restore: restores the checkpoints that a trainer needs: by the rule, or one that was asked
 * for by name. One whose data is not as it was saved, although the store answers, is passed over for
 * another. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "catalog/catalog.h"
#include "job/restore/restore.h"
#include "run/begin/prepare.h"
#include "run/begin/survey.h"
#include "prims/match_series.h"

/* ---- a commit whose data is damaged ---- */

/* True if the data is damaged. A store that does not answer, or does not let us in, says nothing
 * about the data. */
bool prepare_is_damage(int rc) {
  return rc == ERR_CORRUPT || rc == ERR_FORMAT;
}

bool prepare_is_damaged(const struct prepare *p, const run_group *g, const runlog_commit *c) {
  for (size_t i = 0; i < p->damaged_count; i++)
    if (p->damaged[i].group == g && p->damaged[i].commit == c->n) return true;
  return false;
}

const runlog_commit *prepare_other(const struct prepare *p, const run_group *g,
                                   const runlog_commit *than) {
  const runlog_state *state = runlog_view(g->group.log);
  for (size_t i = state->commit_count; i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c != than && c->life == RUNLOG_LIVE && !c->bad && !prepare_is_damaged(p, g, c) &&
        match_same_series(c->unit, than->unit))
      return c;
  }
  return NULL;
}

const char *prepare_age(const runlog_commit *c, const runlog_commit *than) {
  return c->n < than->n ? "an OLDER one" : "a newer one";
}

/* Marks the commit. A user who may not write still restores: then it is passed over each time. */
static void mark(run_group *g, uint64_t commit, const char *reason, const log_sink *log) {
  err why = {0};
  char text[RUNLOG_REASON_MAX];
  snprintf(text, sizeof text, "%.*s", RUNLOG_REASON_MAX - 1, reason);
  if (runlog_mark(g->group.log, commit, true, text, &why) < 0)
    log_say(log, LOG_WARN, "it could not be marked bad: %s", why.text);
  run_group_note_newest(g);
}

bool prepare_leave_out(struct prepare *p, const run_group *g, const runlog_commit *c) {
  if (!VEC_ROOM(p->damaged, p->damaged_count, p->damaged_room)) return false;
  p->damaged[p->damaged_count++] = (struct damaged){g, c->n};
  return true;
}

bool prepare_pass_over(struct prepare *p, run_group *g, const runlog_commit *c, const err *why) {
  const log_sink *log = p->run->env->log;
  const runlog_commit *next = prepare_other(p, g, c);
  if (!next || !VEC_ROOM(p->damaged, p->damaged_count, p->damaged_room)) return false;
  p->damaged[p->damaged_count++] = (struct damaged){g, c->n};
  log_say(log, LOG_ERROR,
          "%s CANNOT BE RESTORED: %s. It is marked bad (`mark` good takes that back), and %s, "
          "%s, is taken",
          c->unit, why->text, next->unit, prepare_age(next, c));
  mark(g, c->n, why->text, log);
  run_lost_pass_over(g, c->n);
  return true;
}

/* ---- one checkpoint ---- */

static int note_restored(struct prepare *p, const char *path, const char *uri, err *e) {
  struct restored now = {strdup(path), strdup(uri)};
  if (!now.path || !now.uri || !VEC_ROOM(p->restored, p->restored_count, p->restored_room)) {
    free(now.path);
    free(now.uri);
    return err_set(e, ERR_NOMEM, "prepare: out of memory");
  }
  p->restored[p->restored_count++] = now;
  p->out->restored++;
  p->moved = true;
  log_say(p->run->env->log, LOG_INFO, "restored %s from %s", path, uri);
  return 0;
}

static bool has_units_below(const survey *s, const char *path) {
  size_t len = strlen(path);
  for (size_t i = 0; i < s->count; i++)
    if (strncmp(s->units[i].path, path, len) == 0 && s->units[i].path[len] == '/') return true;
  return false;
}

/* Clears the names of a commit. Something that is no checkpoint may stand under one: an empty "5/",
 * which Orbax and others take for the newest. */
static int clear_name(struct prepare *p, const survey *s, const char *prefix, const manifest *m,
                      err *e) {
  run *r = p->run;
  char path[FS_PATH_MAX], absolute[FS_PATH_MAX];
  struct stat st;
  size_t count = m->kind == MATCH_DIR ? 1 : m->count;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < count; i++) {
    rc = fs_join(path, prefix, m->kind == MATCH_DIR ? m->unit : m->entries[i].name, e);
    if (rc == 0) rc = fs_join(absolute, r->places.dir, path, e);
    if (rc < 0 || p->io->lstat(p->io, AT_FDCWD, absolute, &st) < 0) continue;
    if (has_units_below(s, path)) continue; /* the restore says that the name is taken */
    rc = prepare_quarantine(p, path, MATCH_FILE, RECOVER_WHOLE,
                            "it is no checkpoint, and stands where one belongs", e);
  }
  return rc;
}

/* How many ranks have a part of it, if what is restored is ours; 1: it is the whole. */
static uint32_t parts_of(run *r, run_group *g, const runlog_commit *c, const manifest *brought) {
  const manifest *part = NULL;
  bool ours = run_restores_parts(r) && run_part(r, g, c, &part, NULL) == 0 && part == brought;
  return ours ? r->ranks.world : 1;
}

static int restore_commit(struct prepare *p, const survey *s, run_group *g, const runlog_commit *c,
                          err *e) {
  run *r = p->run;
  const manifest *m;
  char dir[FS_PATH_MAX], path[FS_PATH_MAX], key[STORE_KEY_MAX];
  char uri[sizeof r->places.target_text + STORE_KEY_MAX];
  restore how = {.io = p->io,
                 .store = r->store,
                 .pool = r->env->pool,
                 .staging = p->staging.path,
                 .progress = r->env->progress};
  int rc = run_manifest_here(r, g, c, &m, e);
  if (rc == 0) rc = fs_join(dir, r->places.dir, g->group.prefix, e);
  if (rc == 0) rc = fs_mkdirs(p->io, dir, 0777, e);
  if (rc == 0) rc = runlog_key_dir(g->group.log, c->dir, key, e);
  if (rc == 0) rc = fs_join(path, g->group.prefix, c->unit, e);
  if (rc == 0) rc = clear_name(p, s, g->group.prefix, m, e);
  if (rc == 0) rc = prepare_need_staging(p, e);
  if (rc == 0) rc = prepare_may_change(p, g->group.prefix, e);
  if (rc == 0) rc = prepare_bring(p, &how, m, key, dir, e);
  if (rc < 0) return rc;
  snprintf(uri, sizeof uri, "%s/%s", r->places.target_text, key);
  runlog_ref ref;
  rc = note_restored(p, path, uri, e);
  if (rc == 0) rc = runlog_ref_of(g->group.log, c->n, &ref, e);
  if (g->resumed == RUNLOG_NONE || c->n > g->resumed) g->resumed = c->n;
  /* Its bytes were checked on the way: they need not be read again for that. */
  return rc < 0 ? rc
                : journal_note(r->journal, path, JOURNAL_COMMITTED, NULL, &ref,
                               parts_of(r, g, c, m), e);
}

/* Adds advice about a commit that cannot be restored: its data does not mend itself. */
static int advise(int rc, const char *unit, err *e) {
  if (e && (rc == ERR_CORRUPT || rc == ERR_FORMAT))
    err_set(e, rc,
            "%s (to go on from another checkpoint than %s: `named` NAME; `list` "
            "shows them)",
            e->text, unit);
  return rc;
}

/* Restores a commit, and puts the old copy back if that fails. */
int prepare_restore_commit(struct prepare *p, const survey *s, run_group *g, const runlog_commit *c,
                           err *e) {
  enum { TRIES = 2 }; /* the damage may have come about on the way */
  char path[FS_PATH_MAX];
  err why = {0};
  int rc = ERR_CORRUPT;
  for (int i = 0; rc == ERR_CORRUPT && i < TRIES; i++) {
    why = (err){0};
    rc = restore_commit(p, s, g, c, &why);
  }
  if (rc == 0) return 0;
  if (fs_join(path, g->group.prefix, c->unit, NULL) == 0) prepare_put_back(p, path, c->kind, &why);
  if (e) *e = why;
  return rc;
}

/* ---- by the rule: the newest of each kind ---- */

static size_t units_of(const struct prepare *p, const survey *s, const char *group,
                       recover_unit *out, size_t *index) {
  size_t count = 0;
  for (size_t i = 0; i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    if (strcmp(u->group, group) != 0 || u->above != p->above) continue;
    index[count] = i;
    out[count++] =
        (recover_unit){u->name, u->series, u->step, u->standing, u->made_ns, u->seen, u->above};
  }
  return count;
}

static size_t commits_of(const struct prepare *p, const survey *s, run_group *g,
                         const runlog_state *state, recover_commit *out, char (*series)[512]) {
  size_t count = 0;
  for (size_t i = 0; i < state->commit_count; i++) {
    const runlog_commit *c = &state->commits[i];
    if (c->life != RUNLOG_LIVE || c->bad || c->above != p->above ||
        (g && prepare_is_damaged(p, g, c)))
      continue;
    /* It is looked for first: to find the newest of each name in 10,000 takes long. */
    if (g && prepare_is_linked(p, s, g->group.prefix, c->unit) &&
        runlog_newest(state, c->unit) == c)
      continue;
    match_series(c->unit, series[count], sizeof series[count]);
    out[count] =
        (recover_commit){c->unit, series[count], g ? run_step_of(p->run, g, c) : c->step, i, 0};
    count++;
  }
  return count;
}

static int by_series(const void *a, const void *b) {
  const recover_commit *x = *(recover_commit *const *)a, *y = *(recover_commit *const *)b;
  int order = strcmp(x->series, y->series);
  return order ? order : (x > y) - (x < y);
}

/* Of the newest of each kind it is told when they were written: no other counts. */
static int tell_times(struct prepare *p, run_group *g, const runlog_state *state,
                      recover_commit *commits, size_t count, err *e) {
  recover_commit **sorted = calloc(count + 1, sizeof(void *));
  if (!sorted) return err_set(e, ERR_NOMEM, "prepare %s: out of memory", p->run->places.dir);
  for (size_t i = 0; i < count; i++) sorted[i] = &commits[i];
  qsort(sorted, count, sizeof(void *), by_series);
  for (size_t i = 0; i < count; i++)
    if (i + 1 == count || strcmp(sorted[i]->series, sorted[i + 1]->series) != 0)
      sorted[i]->made_ns = run_order_of_commit(p->run, g, &state->commits[sorted[i]->index]);
  free(sorted);
  return 0;
}

/* One round over a group: its actions, and the commit that it failed with. It ends with the plan
 * that it points to. */
struct round {
  run_group *group; /* NULL: a directory with units of which the target has nothing yet */
  const survey *survey;
  const size_t *index; /* of the planned units in the survey */
  const recover_plan *plan;
  const runlog_commit **failed;
};

/* Reads the manifests of all that is to be restored: nothing is moved before they are known to be
 * right. */
static int check_restores(struct prepare *p, struct round *r, err *e) {
  int rc = 0;
  for (size_t i = 0; r->group && rc == 0 && i < r->plan->count; i++) {
    const recover_action *a = &r->plan->actions[i];
    if (a->what != RECOVER_RESTORE) continue;
    const manifest *ignored;
    const runlog_commit *c = &runlog_view(r->group->group.log)->commits[a->index];
    rc = run_manifest(p->run, r->group, c, &ignored, e);
    if (rc < 0) *r->failed = c;
  }
  return rc;
}

/* True if a commit is restored to the unit's name, which has to be free then. */
static bool makes_room(const struct round *r, const survey_unit *u) {
  for (size_t i = 0; r->group && i < r->plan->count; i++) {
    const recover_action *a = &r->plan->actions[i];
    if (a->what == RECOVER_RESTORE &&
        strcmp(runlog_view(r->group->group.log)->commits[a->index].unit, u->name) == 0)
      return true;
  }
  return false;
}

/* What need not make room goes last: a start that dies meanwhile must not leave a pointer to what is
 * gone. */
static int run_actions(struct prepare *p, struct round *r, err *e) {
  int rc = check_restores(p, r, e);
  for (size_t i = 0; rc == 0 && i < r->plan->count; i++) {
    const recover_action *a = &r->plan->actions[i];
    if (a->what == RECOVER_QUARANTINE) {
      const survey_unit *u = &r->survey->units[r->index[a->index]];
      char why[600];
      snprintf(why, sizeof why, "%s (%s)", a->reason, u->reason);
      rc = makes_room(r, u) ? prepare_quarantine(p, u->path, u->kind, u->standing, why, e)
                            : prepare_let_go(p, u->path, u->kind, u->standing, why, e);
      p->back |= u->standing == RECOVER_BAD;
    } else if (r->group) { /* without a group there are no commits */
      const runlog_commit *c = &runlog_view(r->group->group.log)->commits[a->index];
      rc = prepare_restore_commit(p, r->survey, r->group, c, e);
      if (rc < 0) *r->failed = c;
    }
  }
  return rc;
}

static int recover_once(struct prepare *p, run_group *g, const char *prefix, const survey *s,
                        const runlog_commit **failed, err *e) {
  static const runlog_state nothing = {0};
  const runlog_state *state = g && g->group.log ? runlog_view(g->group.log) : &nothing;
  recover_plan plan = {0};
  recover_unit *units = calloc(s->count + 1, sizeof *units);
  size_t *index = calloc(s->count + 1, sizeof *index);
  recover_commit *commits = calloc(state->commit_count + 1, sizeof *commits);
  char(*series)[512] = calloc(state->commit_count + 1, sizeof *series);
  int rc = units && index && commits && series
               ? 0
               : err_set(e, ERR_NOMEM, "prepare %s: out of memory", p->run->places.dir);
  size_t count = rc == 0 ? commits_of(p, s, g, state, commits, series) : 0;
  if (rc == 0) rc = tell_times(p, g, state, commits, count, e);
  if (rc == 0)
    rc = recover_plan_group(units, units_of(p, s, prefix, units, index), commits, count, &plan, e);
  struct round r = {.group = g, .survey = s, .index = index, .plan = &plan, .failed = failed};
  if (rc == 0) rc = run_actions(p, &r, e);
  free(plan.actions);
  free(units);
  free(index);
  free(commits);
  free(series);
  return rc;
}

/* Recovers a group. A damaged commit is passed over for the one before it, as long as there is one;
 * each round looks anew at the files there. */
int prepare_recover_group(struct prepare *p, run_group *g, const char *prefix, const survey *s,
                          err *e) {
  survey again = {0};
  const runlog_commit *failed = NULL;
  err why = {0};
  int rc;
  while ((rc = recover_once(p, g, prefix, s, &failed, &why)) < 0) {
    /* Without a group there is no commit to fail. */
    if (!g || !failed || !prepare_is_damage(rc) || !prepare_pass_over(p, g, failed, &why)) break;
    run_survey_free(&again);
    why = (err){0};
    rc = run_survey(p->run, &again, &why);
    if (rc < 0) break;
    s = &again;
    failed = NULL;
  }
  run_survey_free(&again);
  if (rc < 0 && failed) advise(rc, failed->unit, &why);
  if (rc < 0 && e) *e = why;
  return rc;
}

/* Recovers directories with units of which the target has nothing yet. */
static int recover_unknown(struct prepare *p, const survey *s, err *e) {
  const run *r = p->run;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < s->count; i++) {
    const char *prefix = s->units[i].group;
    bool known = i > 0 && strcmp(prefix, s->units[i - 1].group) == 0;
    for (size_t k = 0; !known && k < r->group_count; k++)
      known = strcmp(r->groups[k]->group.prefix, prefix) == 0;
    if (!known) rc = prepare_recover_group(p, NULL, prefix, s, e);
  }
  return rc;
}

/* Checkpoints first: what is above them names them. */
int prepare_restore_all(struct prepare *p, const survey *s, err *e) {
  run *r = p->run;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < r->group_count; i++)
    if (!r->groups[i]->foreign)
      rc = prepare_recover_group(p, r->groups[i], r->groups[i]->group.prefix, s, e);
  if (rc == 0) rc = recover_unknown(p, s, e);
  p->above = true;
  if (rc == 0) rc = prepare_restore_above(p, s, e);
  if (rc == 0) rc = recover_unknown(p, s, e);
  p->above = false;
  return rc;
}

/* ---- by a policy: what a framework needs to find beside the newest ---- */

static bool stands_here(const survey *s, const char *group, const runlog_commit *c) {
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->units[i].group, group) == 0 && strcmp(s->units[i].name, c->unit) == 0)
      return true;
  return false;
}

/* Restores more by the policy's word. Only absent units are brought back: a unit that stands under
 * the name has been judged already. Of several generations of a name the newest has it. Without an
 * answer of a policy there is nothing to do: the newest of each kind was restored before. */
static int restore_more(struct prepare *p, run_group *g, const survey *s, err *e) {
  const runlog_state *state = runlog_view(g->group.log);
  size_t room = state->commit_count + 1;
  policy_item *items = calloc(room, sizeof *items);
  policy_kept *kept = calloc(room, sizeof *kept);
  int rc = items && kept ? 0 : err_set(e, ERR_NOMEM, "prepare: out of memory");
  size_t count = rc == 0 ? retention_items(state, items) : 0;
  if (rc == 0) run_starts_note(p->run, g, items, count);
  bool chosen = rc == 0 && run_policy_select(p->run, g, POLICY_RESTORE, items, count, kept);
  for (size_t i = 0; chosen && rc == 0 && i < count; i++) {
    state = runlog_view(g->group.log);
    const runlog_commit *c = runlog_find_commit(state, items[i].number);
    err why = {0};
    if (!kept[i].keep || runlog_newest(state, c->unit) != c || prepare_is_damaged(p, g, c) ||
        stands_here(s, g->group.prefix, c))
      continue;
    rc = prepare_restore_commit(p, s, g, c, &why);
    /* This commit is only wanted beside the newest, which is there. */
    if (prepare_is_damage(rc) && prepare_pass_over(p, g, c, &why)) rc = 0;
    advise(rc, c->unit, &why);
    if (rc < 0 && e) *e = why;
  }
  free(items);
  free(kept);
  return rc;
}

int prepare_restore_more(struct prepare *p, const survey *s, err *e) {
  run *r = p->run;
  int rc = 0;
  for (size_t i = 0; rc == 0 && policy_has(r->policy, POLICY_RESTORE) && i < r->group_count; i++)
    if (!r->groups[i]->foreign && r->groups[i]->group.log) rc = restore_more(p, r->groups[i], s, e);
  return rc;
}

/* ---- by name ---- */

/* Makes room under the name that was asked for, unless that very commit stands there. */
static int make_room(struct prepare *p, const survey *s, const char *path, uint64_t commit,
                     bool *there, err *e) {
  *there = false;
  for (size_t i = 0; i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    if (strcmp(u->path, path) != 0) continue;
    *there = (u->standing == RECOVER_COMMITTED || u->standing == RECOVER_SUPERSEDED ||
              u->standing == RECOVER_BAD) &&
             u->commit == commit;
    return *there ? 0
                  : prepare_quarantine(p, path, u->kind, u->standing,
                                       "another checkpoint was asked for by this name", e);
  }
  return 0;
}

static int restore_own(struct prepare *p, const survey *s, const char *named, err *e) {
  run *r = p->run;
  char prefix[FS_PATH_MAX];
  fs_parent(named, prefix);
  for (size_t i = 0; i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (!g->group.log || strcmp(g->group.prefix, strcmp(prefix, ".") ? prefix : "") != 0) continue;
    const runlog_commit *c = catalog_newest(g->group.log, fs_base(named));
    if (!c) continue;
    bool there = false;
    const manifest *ignored;
    p->named_group = g;
    p->named_commit = c->n;
    int rc = fs_join(p->named, g->group.prefix, c->unit, e);
    if (rc == 0) rc = advise(run_manifest(r, g, c, &ignored, e), c->unit, e);
    if (rc == 0) rc = make_room(p, s, p->named, c->n, &there, e);
    return rc < 0 || there ? rc : advise(prepare_restore_commit(p, s, g, c, e), c->unit, e);
  }
  return err_set(e, ERR_NOENT, "%s has no checkpoint %s (`list` shows what there is)",
                 r->places.target_text, named);
}

/* Another run's checkpoint is read, never written: it belongs to this run once it is saved here. */
static int restore_other(struct prepare *p, const survey *s, const char *named, err *e) {
  run *r = p->run;
  catalog_pick pick = {0};
  manifest part = {0};
  err why = {0};
  bool there;
  restore how = {
      .io = p->io, .pool = r->env->pool, .staging = p->staging.path, .progress = r->env->progress};
  int rc = catalog_find(r->env->io, r->env->log, named, &pick, &why);
  if (rc == 0) rc = fs_join(p->named, "", pick.manifest.unit, &why);
  if (rc == 0) rc = make_room(p, s, p->named, RUNLOG_NONE, &there, &why);
  int parted = rc < 0 ? 0 : run_part_of(r, &pick.manifest, &part, &why);
  const manifest *wanted = parted > 0 ? &part : &pick.manifest;
  if (parted < 0) rc = parted;
  if (rc == 0) rc = clear_name(p, s, "", wanted, &why);
  if (rc == 0) rc = catalog_hold(&pick, &why);
  how.store = pick.store;
  if (rc == 0) rc = prepare_need_staging(p, &why);
  if (rc == 0) rc = prepare_may_change(p, "", &why);
  if (rc == 0) rc = prepare_bring(p, &how, wanted, pick.key, r->places.dir, &why);
  if (rc < 0 && *p->named) prepare_put_back(p, p->named, pick.manifest.kind, &why);
  if (rc == 0) rc = note_restored(p, p->named, pick.uri, &why);
  if (rc == 0) rc = prepare_restore_picked(p, &pick, &why);
  free(part.entries);
  catalog_drop(&pick);
  if (rc < 0 && e) *e = why;
  return rc;
}

int prepare_restore_named(struct prepare *p, const survey *s, const char *named, err *e) {
  if (!named || !*named) return err_set(e, ERR_INVAL, "`named` needs a name or a URI");
  bool is_uri = strstr(named, "://") || named[0] == '/';
  return is_uri ? restore_other(p, s, named, e) : restore_own(p, s, named, e);
}
