/* run_here: what the journal says of units, held against where they are: the target at hand has them
 * or has not, they were further up once, and on a server's file system they are flushed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/move/unit_flush.h"
#include "prims/fs.h"
#include "prims/match_series.h"
#include "run/run_state.h"
#include "run/start/start_rule.h"

const runlog_commit *run_no_longer_kept(const runlog_state *state, const char *name) {
  const runlog_commit *c = runlog_newest_ever(state, name);
  for (size_t i = state->commit_count; c && i-- > 0 && state->commits[i].n > c->n;)
    if (state->commits[i].life == RUNLOG_LIVE && match_same_series(state->commits[i].unit, name))
      return c;
  return NULL;
}

/* True if a commit, even if dropped or deleted, needs no new save, since something newer took its
 * place. */
static bool still_counts(const runlog_state *state, const runlog_commit *c) {
  if (c->n < state->since) return false; /* the run that had it was removed */
  return c->life == RUNLOG_LIVE || runlog_newest(state, c->unit) ||
         run_no_longer_kept(state, c->unit);
}

static int is_here(void *ctx, const journal_unit *u, err *e) {
  const run *r = ctx;
  char prefix[FS_PATH_MAX];
  fs_parent(u->path, prefix);
  if (strcmp(prefix, ".") == 0) *prefix = 0;
  const run_group *g = run_group_find(r, prefix);
  const runlog_commit *c = NULL;
  if (r->anyway) { /* no group below the top is known yet */
    const runlog_ref *log = run_anyway_log(r, prefix);
    return log && strcmp(log->log, u->commit.log) == 0;
  }
  if (!g || !g->group.log) return 0;
  int rc = runlog_ref_find(g->group.log, &u->commit, &c, e);
  if (rc < 0) return rc;
  if (c && r->ranks.world < 2 && run_is_lost(g, c->n)) return 0;
  return c && strcmp(c->unit, fs_base(u->path)) == 0 && still_counts(runlog_view(g->group.log), c);
}

static bool stands(const run *r, const char *path) {
  char full[FS_PATH_MAX];
  struct stat st;
  if (fs_join(full, r->places.dir, path, NULL) < 0) return false;
  return r->env->io->lstat(r->env->io, AT_FDCWD, full, &st) >= 0;
}

/* True if this content was a checkpoint further up, and is not there any more. Hard links of one that
 * still stands are a copy. */
static bool was_further_up(const run *r, const detect_unit *facts) {
  char up[FS_PATH_MAX], path[FS_PATH_MAX];
  snprintf(up, sizeof up, "%s", facts->group);
  for (bool top = !*up; !top;) {
    fs_parent(up, path);
    snprintf(up, sizeof up, "%s", strcmp(path, ".") ? path : "");
    top = !*up;
    if (fs_join(path, up, facts->name, NULL) < 0) return false;
    journal_unit known = journal_find(r->journal, path);
    if (known.state != JOURNAL_UNKNOWN && digest_equal(&known.fingerprint, &facts->fingerprint))
      return !stands(r, path);
  }
  return false;
}

bool run_is_aside(const run *r, const detect_unit *facts) {
  journal_unit known = journal_find(r->journal, facts->path);
  if (facts->fingerprint.len == 0 || facts->state == DETECT_GONE) return false;
  if (known.state == JOURNAL_ASIDE && digest_equal(&known.fingerprint, &facts->fingerprint))
    return true;
  return known.state == JOURNAL_UNKNOWN && was_further_up(r, facts);
}

int run_note_aside(run *r, const char *path, const digest *fingerprint, err *e) {
  if (fingerprint->len == 0 || journal_find(r->journal, path).state == JOURNAL_ASIDE) return 0;
  log_say(r->env->log, LOG_INFO, "%s is no checkpoint: one was deleted by moving it there", path);
  return journal_note(r->journal, path, JOURNAL_ASIDE, fingerprint, NULL, 1, e);
}

/* Frameworks empty their bins: what is gone from there needs no record. */
static int forget_aside(run *r, err *e) {
  int rc = 0;
  for (size_t i = journal_count(r->journal); rc == 0 && i-- > 0;) {
    journal_unit u = journal_at(r->journal, i);
    if (u.state == JOURNAL_ASIDE && !stands(r, u.path)) {
      char path[FS_PATH_MAX];
      snprintf(path, sizeof path, "%s", u.path);
      rc = journal_forget(r->journal, path, e);
    }
  }
  return rc;
}

int run_judge_journal(run *r, err *e) {
  int rc = forget_aside(r, e);
  return rc < 0 ? rc : journal_keep_here(r->journal, is_here, r, e);
}

/* ---- of ranks: what is here, and in no commit ---- */

/* One that was being written has no fingerprint, and its part is no more than that. */
uint32_t run_others_parts(const run *r, const journal_unit *known, const digest *fingerprint) {
  const bool now = known->fingerprint.len == 0 || digest_equal(&known->fingerprint, fingerprint);
  return known->parts > 1 && known->parts != r->ranks.world && now ? known->parts : 0;
}

bool run_is_others_part(const run *r, const detect_unit *facts) {
  const journal_unit known = journal_find(r->journal, facts->path);
  return known.state != JOURNAL_COMMITTED && known.fingerprint.len &&
         run_others_parts(r, &known, &facts->fingerprint);
}

/* Where the strangers were saved, as far as the journal knows: their own log's target, else that which
 * the directory was used with last. */
static const journal_log *where_from(const run *r, const survey *s) {
  for (size_t i = s->count; i-- > 0;) {
    const journal_unit u = journal_find(r->journal, s->units[i].path);
    const journal_log *log = NULL;
    if (s->units[i].standing == RECOVER_ALONE && *u.commit.log)
      log = journal_known_log(r->journal, u.commit.log);
    if (log) return log;
  }
  return journal_known_log(r->journal, NULL);
}

static int refuse(const run *r, const survey *s, size_t count, bool parts, err *e) {
  const char *target = r->places.target_text;
  const journal_log *from = where_from(r, s);
  char known[500] = "nothing is known of where they were saved";
  if (from && strcmp(from->target, target) == 0)
    snprintf(known, sizeof known,
             "they were saved there, and it has another log by now: it was emptied, or is another "
             "place");
  else if (from)
    snprintf(known, sizeof known, "they are of a job that saved to %.400s, and go on there",
             from->target);
  if (parts)
    return err_set(
        e, ERR_OTHER_RUN,
        "%s has %zu checkpoint%s of which one rank's part is here, and %s has none of this run: "
        "%s. "
        "Nothing was moved, and a part is saved by no other number of ranks. Correct `to`; or "
        "start "
        "as many ranks as before; or begin anew there with `fresh`, which moves %s to %s",
        r->places.dir, count, count == 1 ? "" : "s", target, known, count == 1 ? "it" : "them",
        r->places.quarantine);
  return err_set(
      e, ERR_OTHER_RUN,
      "%s has %zu checkpoint%s that %s whole, and %s has none of this run: %s. Nothing "
      "was moved. Correct `to`; or save the newest there with `restore` never, once; or begin "
      "anew there with `fresh`, which moves %s to %s",
      r->places.dir, count, count == 1 ? "" : "s", count == 1 ? "is" : "are", target, known,
      count == 1 ? "it" : "them", r->places.quarantine);
}

/* Who went back to this target by mistake has to hear it before the job has gone on from it. */
static void say_they_go(const run *r, const survey *s, size_t count) {
  const journal_log *from = where_from(r, s);
  if (!from || strcmp(from->target, r->places.target_text) == 0) return;
  log_say(
      r->env->log, LOG_WARN,
      "%zu checkpoint%s that %s whole go%s to quarantine: %s has others of this run, and the job "
      "goes on from those. The newest was saved to %s: with `to` %s it goes on from there",
      count, count == 1 ? "" : "s", count == 1 ? "is" : "are", count == 1 ? "es" : "",
      r->places.target_text, from->target, from->target);
}

/* What ranks had before is nobody's matter who has gone on alone since. */
static bool is_overtaken(const survey *s, const survey_unit *part) {
  for (size_t i = 0; i < s->count; i++) {
    const survey_unit *u = &s->units[i];
    const bool whole = recover_is_whole(u->standing);
    if (whole && strcmp(u->group, part->group) == 0 && strcmp(u->series, part->series) == 0 &&
        u->step > part->step)
      return true;
  }
  return false;
}

int run_check_strangers(run *r, const survey *s, run_restore how, bool *used, err *e) {
  start_strangers f = {.fresh = r->fresh, .restores = how == RUN_AUTO || how == RUN_REQUIRED};
  bool parts = false;
  *used = false;
  for (size_t i = 0; i < s->count; i++) {
    if (s->units[i].standing != RECOVER_ALONE) continue;
    if (r->ranks.world < 2 && (r->anyway || is_overtaken(s, &s->units[i]))) continue;
    f.count++;
    parts |= s->units[i].parts > 1;
  }
  if (r->ranks.world < 2 && f.count == 0) return 0;
  for (size_t i = 0; i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (g->foreign || !g->group.log) continue;
    run_group_name_log(r, g);
    f.committed |= runlog_view(g->group.log)->commit_count > 0;
    f.used |= *g->log_name && journal_known_log(r->journal, g->log_name);
  }
  if (!start_may_move(&f)) return refuse(r, s, f.count, parts, e);
  if (f.restores && f.count > 0 && f.committed) say_they_go(r, s, f.count);
  *used = r->ranks.world > 1 && (f.restores || f.count == 0);
  return 0;
}

int run_note_used(run *r, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < r->group_count; i++) {
    const run_group *g = r->groups[i];
    runlog_ref log = {.n = RUNLOG_NONE};
    if (g->foreign || !*g->log_name) continue;
    memcpy(log.log, g->log_name, sizeof log.log);
    rc = journal_note_log(r->journal, r->places.target_text, g->group.prefix, &log, e);
  }
  return rc;
}

/* ---- flushed, once it is complete ---- */

/* One unit; they go one after the other, as saves need the workers, too. */
struct flushing {
  run *run;
  char *path;
  match_kind kind;
  digest fingerprint;
  int status;
  err error;
};

static void flushing_free(struct flushing *w) {
  free(w->path);
  free(w);
}

static void flush_on_worker(void *arg) {
  struct flushing *w = arg;
  const run *r = w->run;
  w->status = unit_flush(r->env->io, r->places.dir, w->path, w->kind, r->rules, &w->error);
}

/* A unit that was not flushed is only doubted after a reboot, as all are elsewhere. */
static void flush_done(void *ctx) {
  struct flushing *w = ctx;
  run *r = w->run;
  r->tasks--;
  r->flushing = false;
  if (w->status == 0)
    w->status = journal_note_flushed(r->journal, w->path, &w->fingerprint, &w->error);
  if (w->status < 0)
    log_say(r->env->log, LOG_DEBUG, "%s is not taken for flushed: %s", w->path, w->error.text);
  flushing_free(w);
}

void run_flush_want(run *r, run_unit *u) {
  if (!r->served || journal_find(r->journal, u->path).flushed) return;
  u->unflushed = r->flush_due = true;
}

static void flush_unit(run *r, run_unit *u) {
  struct flushing *w = calloc(1, sizeof *w);
  u->unflushed = false;
  if (!w) return;
  *w = (struct flushing){.run = r,
                         .path = strdup(u->path),
                         .kind = u->kind,
                         .fingerprint = journal_find(r->journal, u->path).fingerprint};
  if (w->path && run_submit(r, flush_on_worker, flush_done, w))
    r->flushing = true;
  else
    flushing_free(w);
}

void run_flush_step(run *r) {
  if (!r->flush_due || r->flushing || r->closing) return;
  for (size_t i = 0; i < r->unit_count; i++)
    if (r->units[i]->unflushed) {
      flush_unit(r, r->units[i]);
      return;
    }
  r->flush_due = false;
}
