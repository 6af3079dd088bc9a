/* Makes a directory ready for a trainer: recover.h says what has to be done, this does it, and
 * tells what to resume from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prims/match_series.h"
#include "run/begin/held.h"
#include "run/begin/prepare.h"
#include "run/begin/survey.h"
#include "run/wait/waiting.h"

/* ---- the end: what is there now ---- */

/* Tells when the content was made. A restored file's own times say when it was restored, so for a
 * commit the manifest tells; if that cannot be read, the files' times are taken. */
static int64_t made_at(run *r, const survey_unit *u) {
  const manifest *m;
  int64_t newest = 0;
  for (size_t i = 0; u->standing == RECOVER_COMMITTED && i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (strcmp(g->group.prefix, u->group) != 0 || !g->group.log) continue;
    const runlog_commit *c = runlog_newest(runlog_view(g->group.log), u->name);
    if (!c || run_manifest(r, g, c, &m, NULL) < 0) continue;
    int64_t made = manifest_made_ns(m);
    if (made > newest) newest = made;
  }
  return newest ? newest : u->made_ns;
}

/* True if `u`, which was not committed, is newer than the commit `c`. */
static bool is_beyond(run *r, const survey_unit *u, const survey_unit *c) {
  recover_unit unit = {u->name, u->series, u->step, u->standing, u->made_ns, u->seen, u->above};
  recover_commit commit = {c->name, c->series, c->step, 0, made_at(r, c)};
  return recover_is_newer(&unit, &commit);
}

/* Compares two units. Of two commits the later one is where the run came to last: after a way back
 * to step 100 it has the lower step. */
bool prepare_newer(run *r, const survey_unit *a, const survey_unit *b) {
  if (!b) return true;
  bool group = strcmp(a->group, b->group) == 0;
  if (group && a->standing == RECOVER_COMMITTED && b->standing == RECOVER_COMMITTED)
    return a->commit > b->commit;
  bool alike = group && strcmp(a->series, b->series) == 0;
  if (alike && a->standing == RECOVER_WHOLE && b->standing == RECOVER_COMMITTED)
    return is_beyond(r, a, b);
  bool steps = alike && a->step != MATCH_NO_STEP && b->step != MATCH_NO_STEP;
  if (steps && a->step != b->step) return a->step > b->step;
  return made_at(r, a) > made_at(r, b);
}

/* The newest unit so far of each sort. Commits are compared with commits first: a mixed order would
 * have circles. */
struct newest {
  const survey_unit *committed, *whole;
};

static void offer(run *r, struct newest *n, const survey_unit *u) {
  const survey_unit **best = u->standing == RECOVER_COMMITTED ? &n->committed : &n->whole;
  if (prepare_newer(r, u, *best)) *best = u;
}

static const survey_unit *pick(run *r, const struct newest *n) {
  if (!n->committed || !n->whole) return n->committed ? n->committed : n->whole;
  return prepare_newer(r, n->whole, n->committed) ? n->whole : n->committed;
}

/* Notes whole units in the journal, so that the watch need not be shown them again. With `never`
 * somebody may be writing (`watch`), and only a unit that a manifest vouches for is surely
 * whole. */
static int remember(run *r, const survey_unit *u, run_restore how, err *e) {
  journal_unit known = journal_find(r->journal, u->path);
  if (how == RUN_NEVER && u->standing == RECOVER_WHOLE && !u->by_manifest) return 0;
  journal_state state = u->standing == RECOVER_WHOLE ? JOURNAL_COMPLETE : JOURNAL_COMMITTED;
  const uint32_t parts = u->parts > 1 ? u->parts : 0;
  if (known.state == state && known.parts == parts &&
      digest_equal(&known.fingerprint, &u->fingerprint))
    return 0;
  const run_group *g = run_group_find(r, u->group);
  runlog_ref ref;
  bool committed = state == JOURNAL_COMMITTED && g && g->group.log;
  int rc = committed ? runlog_ref_of(g->group.log, u->commit, &ref, e) : 0;
  if (rc < 0) return rc;
  bool same =
      committed && known.commit.n == u->commit; /* it was put back, and is that one all the same */
  if (!same) run_result_recall(r, u->path, u->step, &u->fingerprint);
  return journal_note(r->journal, u->path, state, &u->fingerprint, committed ? &ref : NULL, parts,
                      e);
}

/* While the job runs it is known by this, and nobody takes it for a whole one. */
static int remember_part(run *r, const survey_unit *u, err *e) {
  const journal_unit known = journal_find(r->journal, u->path);
  if (known.state > JOURNAL_OPEN && digest_equal(&known.fingerprint, &u->fingerprint)) return 0;
  return journal_note(r->journal, u->path, JOURNAL_COMPLETE, &u->fingerprint,
                      known.commit.n == RUNLOG_NONE ? NULL : &known.commit, u->parts, e);
}

/* What was not saved does not come back: a trainer may begin its optimizer anew, or fail. */
static void say_left_out(const run *r, const run_group *g, uint64_t n) {
  const runlog_commit *c = runlog_find_commit(runlog_view(g->group.log), n);
  if (!c || !c->left_out) return;
  const bool one = c->left_out == 1;
  const unsigned long long count = c->left_out;
  if (c->thin.globs.count)
    log_say(r->env->log, LOG_WARN,
            "%s lacks %llu file%s that %s left out of it when it was saved, or taken since newer "
            "ones are there: the job goes on without %s",
            c->dir, count, one ? "" : "s", one ? "was" : "were", one ? "it" : "them");
  else
    log_say(
        r->env->log, LOG_WARN,
        "%s was saved without %llu file%s that `excludes` or a policy leave%s out: %s not there",
        c->dir, count, one ? "" : "s", one ? "s" : "", one ? "it is" : "they are");
}

static int set_resume(struct prepare *p, const survey_unit *u, err *e) {
  run *r = p->run;
  char path[FS_PATH_MAX];
  run_group *resumed = NULL;
  int rc = fs_join(path, r->places.dir, u->path, e);
  if (rc < 0) return rc;
  for (size_t i = 0; i < r->group_count; i++)
    if (u->standing != RECOVER_WHOLE && u->commit != RUNLOG_NONE && r->groups[i]->group.log &&
        strcmp(r->groups[i]->group.prefix, u->group) == 0)
      resumed = r->groups[i];
  if (resumed) {
    resumed->resumed = u->commit;
    run_starts_begun(r, resumed, u->commit);
  }
  r->resume = strdup(path);
  if (!r->resume) return err_set(e, ERR_NOMEM, "prepare: out of memory");
  for (size_t i = 0; i < p->restored_count; i++)
    if (strcmp(p->restored[i].path, u->path) == 0) {
      r->restored_from = p->restored[i].uri;
      if (resumed) say_left_out(r, resumed, u->commit);
      p->restored[i].uri = NULL;
    }
  return 0;
}

/* What is complete last is the newest, whatever its step (docs/commands.md); Orbax and others take the
 * highest step that they find. */
static void say_higher(const struct prepare *p, const survey *s, const survey_unit *best) {
  const survey_unit *high = best;
  for (size_t i = 0; i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    bool whole = recover_is_whole(u->standing);
    if (whole && u->step > high->step && strcmp(u->group, best->group) == 0 &&
        strcmp(u->series, best->series) == 0)
      high = u;
  }
  if (high == best || best->step == MATCH_NO_STEP) return;
  log_say(p->run->env->log, LOG_WARN,
          "%s is here, too, with a higher step than %s, which %s and is resumed from: a framework "
          "that looks for the highest step by itself loads that one. Move it away, if it does",
          high->path, best->path, *p->named ? "was asked for" : "was complete after it");
}

/* Warns of a fresh start where there are checkpoints, all of which somebody marked bad: it must not
 * be a surprise. */
static void say_only_bad(const run *r) {
  const runlog_commit *last = NULL;
  size_t count = 0;
  for (size_t i = 0; i < r->group_count; i++) {
    const run_group *g = r->groups[i];
    const runlog_state *state = g->group.log ? runlog_view(g->group.log) : NULL;
    for (size_t k = 0; state && k < state->commit_count; k++) {
      if (state->commits[k].life != RUNLOG_LIVE || !state->commits[k].bad) continue;
      last = &state->commits[k];
      count++;
    }
  }
  if (last)
    log_say(
        r->env->log, LOG_WARN,
        "nothing is resumed from: %s has %zu checkpoint%s, and no good one: %s %s marked bad%s%s "
        "(`mark` good takes that back)",
        r->places.target_text, count, count == 1 ? "" : "s", last->dir,
        count == 1 ? "is" : "and all others are", last->bad_reason ? ": " : "",
        last->bad_reason ? last->bad_reason : "");
}

/* Chooses the checkpoint to resume from. With `never` the trainer is not pointed at anything,
 * whatever is there. */
static int conclude(struct prepare *p, const survey *s, run_restore how, err *e) {
  const survey_unit *best = NULL;
  struct newest dirs = {0}, files = {0};
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    bool asked = *p->named && strcmp(u->path, p->named) == 0;
    if (u->standing <= RECOVER_SUPERSEDED)
      rc = remember(p->run, u, how, e);
    else if (u->standing == RECOVER_ALONE && u->parts > 1)
      rc = remember_part(p->run, u, e);
    if (u->standing != RECOVER_COMMITTED && u->standing != RECOVER_WHOLE && !asked) {
      log_say(p->run->env->log, u->standing == RECOVER_PART ? LOG_DEBUG : LOG_WARN,
              "%s is not taken for a checkpoint: %s", u->path, u->reason);
      continue;
    }
    if (u->above && !asked)
      continue; /* it belongs to a resume, and nothing goes on from it alone */
    unit_sort sort = asked ? SORT_PERM : run_unit_sort(p->run, u->path, u->kind);
    if (sort != SORT_PERM) { /* it is empty, or is for its maker alone */
      log_say(p->run->env->log, LOG_INFO, "%s is marked as %s: it is not resumed from", u->path,
              run_sort_name(sort));
      continue;
    }
    p->out->found++;
    if (asked)
      best = u;
    else
      offer(p->run, u->kind == MATCH_DIR ? &dirs : &files, u);
  }
  /* A "model.safetensors" beside "checkpoint-N/" is a result, not a place to go on from. */
  if (!*p->named) best = pick(p->run, &dirs);
  if (!*p->named && !best) best = pick(p->run, &files);
  if (rc == 0 && best && how != RUN_NEVER) rc = set_resume(p, best, e);
  if (rc == 0 && best && how != RUN_NEVER) say_higher(p, s, best);
  if (rc == 0 && !best && how != RUN_NEVER) say_only_bad(p->run);
  if (rc == 0 && !best && (how == RUN_REQUIRED || how == RUN_NAMED))
    rc = err_set(e, ERR_NOENT, "nothing to restore: neither %s nor %s has a checkpoint",
                 p->run->places.target_text, p->run->places.dir);
  return rc;
}

static const runlog_commit *newest_like(const run_group *g, const survey_unit *u) {
  const runlog_state *state = g && g->group.log ? runlog_view(g->group.log) : NULL;
  for (size_t i = state ? state->commit_count : 0; i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c->life == RUNLOG_LIVE && !c->bad && match_same_series(c->unit, u->name)) return c;
  }
  return NULL;
}

/* Beside one that was asked for by name all else stays; but what ranks have of another job would be saved after
 * the newest one. */
static int leave_behind(struct prepare *p, const survey *s, err *e) {
  run *r = p->run;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    run_group *g = run_group_find(r, u->group);
    const runlog_commit *c = u->standing == RECOVER_ALONE ? newest_like(g, u) : NULL;
    if (!c || strcmp(u->path, p->named) == 0) continue;
    recover_unit unit = {u->name, u->series, u->step, u->standing, u->made_ns, u->seen, u->above};
    recover_commit commit = {c->unit, u->series, run_step_of(r, g, c), 0,
                             run_order_of_commit(r, g, c)};
    char why[400];
    snprintf(why, sizeof why, "it is of no commit here, and newer than the last one (%s)",
             u->reason);
    if (recover_displaces(&unit, &commit))
      rc = prepare_let_go(p, u->path, u->kind, u->standing, why, e);
  }
  return rc;
}

static int act(struct prepare *p, const survey *s, run_restore how, const char *named, err *e) {
  if (how == RUN_NEVER) return 0;
  if (how != RUN_NAMED) return prepare_restore_all(p, s, e);
  int rc = prepare_restore_named(p, s, named, e);
  return rc < 0 ? rc : leave_behind(p, s, e);
}

static void free_prepare(struct prepare *p) {
  for (size_t i = 0; i < p->restored_count; i++) {
    free(p->restored[i].path);
    free(p->restored[i].uri);
  }
  free(p->restored);
  for (size_t i = 0; i < p->move_count; i++) {
    free(p->moves[i].from);
    free(p->moves[i].to);
  }
  free(p->moves);
  names_free(&p->came_back);
  for (size_t i = 0; i < p->going_count; i++) {
    free(p->going[i].path);
    free(p->going[i].reason);
  }
  free(p->going);
  free(p->damaged);
}

/* Restores more, which needs the staging once more, and another survey afterwards. */
static int more(struct prepare *p, run_restore how, survey *s, err *e) {
  uint32_t before = p->out->restored + p->out->quarantined;
  int rc = how == RUN_AUTO ? prepare_restore_more(p, s, e) : 0;
  if (rc == 0) rc = prepare_restore_lists(p, s, e);
  rc = prepare_close_staging(p, rc, e);
  if (rc < 0 || p->out->restored + p->out->quarantined == before) return rc;
  run_survey_free(s);
  return run_survey(p->run, s, e);
}

int run_prepare(run *r, run_restore how, const char *named, run_prepared *out, err *e) {
  *out = (run_prepared){0};
  if (r->started) return err_set(e, ERR_INVAL, "the run is started already");
  if (r->prepared) return err_set(e, ERR_INVAL, "the run is prepared already");
  if (r->beside && how != RUN_NEVER)
    return err_set(e, ERR_INVAL, "a run that watches beside others restores nothing");
  struct prepare p = {.run = r, .out = out, .named_commit = RUNLOG_NONE};
  survey s = {0};
  bool used = false;
  waiting *slow = waiting_begin(r->env->log, r->stall_ns, "the directory is made ready");
  int rc = run_held_settle(r, how == RUN_NEVER || how == RUN_NAMED, e);
  run_lease_keeper *leases = run_leases_keep(r);
  if (rc == 0) rc = prepare_hold(&p, e);
  if (rc == 0) rc = run_look_for_lost(r, e);
  if (rc == 0) rc = run_judge_journal(r, e);
  if (rc == 0 && (how == RUN_AUTO || how == RUN_REQUIRED)) prepare_judge_starts(&p);
  if (rc == 0) rc = run_survey(r, &s, e);
  if (rc == 0 && r->anyway) rc = run_anyway_may(r, &s, how, e);
  if (rc == 0) rc = run_check_strangers(r, &s, how, &used, e);
  if (rc == 0) rc = act(&p, &s, how, named, e);
  rc = prepare_close_staging(&p, rc, e);
  if (rc == 0 && p.moved) {
    run_survey_free(&s);
    rc = run_survey(r, &s, e);
  }
  if (rc == 0 && how != RUN_NEVER) rc = more(&p, how, &s, e);
  if (rc == 0 && how != RUN_NEVER) rc = prepare_restore_companions(&p, &s, e);
  if (rc == 0) rc = prepare_quarantine_all(&p, &s, e);
  if (rc == 0) rc = conclude(&p, &s, how, e);
  if (rc == 0 && used) rc = run_note_used(r, e);
  if (rc == 0) rc = run_ranks_ready(r, e);
  if (rc < 0) run_patience_explain(r, e);
  if (rc < 0) run_ranks_failed(r, e);
  run_leases_kept(leases);
  run_survey_free(&s);
  free_prepare(&p);
  fs_held_free(p.held);
  waiting_end(slow);
  r->prepared = rc == 0;
  r->vacant = r->prepared && how != RUN_NEVER;
  out->resume = r->resume;
  out->restored_from = r->restored_from;
  return rc;
}
