#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/run_state.h"
#include "core/structure.h"
#include "core/transfer.h"
#include "core/tree.h"
#include "prims/fs.h"
#include "prims/proc.h"

/* ---- what the commits look like ---- */

static bool newest_of_series(const runlog_state *state, size_t i) {
  char mine[512], other[512];
  detect_series(state->commits[i].unit, mine, sizeof mine);
  for (size_t k = i + 1; k < state->commit_count; k++) {
    detect_series(state->commits[k].unit, other, sizeof other);
    if (strcmp(mine, other) == 0) return false;
  }
  return true;
}

static int learn(run *r, detect *d, run_group *g, const runlog_commit *c, err *e) {
  const manifest *m;
  err why = {0};
  int rc = run_manifest(r, g, c, &m, &why);
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT) {
    log_say(r->env->log, LOG_WARN, "%s", why.text);
    return 0; /* nothing to be learnt from that one */
  }
  if (rc < 0) {
    if (e) *e = why;
    return rc;
  }
  const char **names = calloc(m->count ? m->count : 1, sizeof *names);
  if (!names) return err_set(e, ERR_NOMEM, "read the manifest of %s: out of memory", c->dir);
  size_t count = 0;
  for (size_t i = 0; i < m->count; i++)
    if (m->entries[i].type != MANIFEST_DIR) names[count++] = m->entries[i].name;
  rc = detect_learn(d, g->group.prefix, m->unit, names, count, e);
  free(names);
  return rc;
}

int run_survey_learn(run *r, detect *d, err *e) {
  int rc = 0;
  for (size_t i = 0; rc >= 0 && i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (!g->group.log || g->foreign) continue;
    const runlog_state *state = runlog_view(g->group.log);
    for (size_t k = 0; rc >= 0 && k < state->commit_count; k++)
      if (newest_of_series(state, k)) rc = learn(r, d, g, &state->commits[k], e);
  }
  return rc < 0 ? rc : 0;
}

/* ---- one unit ---- */

static run_group *group_of(run *r, const char *prefix) {
  for (size_t i = 0; i < r->group_count; i++)
    if (strcmp(r->groups[i]->group.prefix, prefix) == 0) return r->groups[i];
  return NULL;
}

/* Is the local copy this commit? Names, sizes and times first; the bytes too, where a crash may
 * have lost some: after a reboot, or when it was being written as we died. All but the bytes being
 * right, it is damaged. */
static int compare(run *r, survey_unit *u, const manifest *m, bool read_it, err *e) {
  tree local;
  err why = {0};
  transfer t = {.io = r->env->io, .store = r->store, .pool = r->env->pool};
  int rc = tree_scan(r->env->io, r->places.dir, u->path, u->kind, r->rules, &local, e);
  if (rc < 0) return rc;
  int same = tree_matches(&local, m);
  rc = same && read_it ? transfer_check_local(&t, &local, m, &why) : 0;
  tree_free(&local);
  if (rc == ERR_CORRUPT) {
    u->standing = RECOVER_TORN;
    snprintf(u->reason, sizeof u->reason, "%.255s", why.text);
    return 1;
  }
  if (rc < 0 && e) *e = why;
  if (rc == 0 && same) u->standing = RECOVER_COMMITTED;
  return rc < 0 ? rc : same;
}

/* 1 if what the newest commit of its name is says how it stands. */
static int check_commit(run *r, survey_unit *u, const journal_unit *known, err *e) {
  run_group *g = group_of(r, u->group);
  if (!g || !g->group.log || g->foreign) return 0;
  const runlog_commit *c = runlog_newest(runlog_view(g->group.log), u->name);
  if (!c) return 0;
  u->commit = c->n;
  bool rebooted = journal_rebooted(r->journal);
  if (known->state == JOURNAL_COMMITTED && known->commit == c->n && !rebooted &&
      digest_equal(&known->fingerprint, &u->fingerprint)) {
    u->standing = RECOVER_COMMITTED;
    return 1;
  }
  const manifest *m;
  err why = {0};
  int rc = run_manifest(r, g, c, &m, &why);
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT) return 0;
  if (rc < 0) {
    if (e) *e = why;
    return rc;
  }
  return compare(r, u, m, rebooted || known->state == JOURNAL_OPEN, e);
}

/* The journal saw it whole, and no reboot can have lost its pages since. */
static bool seen_whole(const run *r, const survey_unit *u, const journal_unit *known) {
  return known->state >= JOURNAL_COMPLETE && !journal_rebooted(r->journal) &&
         digest_equal(&known->fingerprint, &u->fingerprint);
}

/* What can be said of a unit that is no commit of ours. */
static int check_alone(run *r, survey_unit *u, const detect_unit *facts, const journal_unit *known,
                       err *e) {
  structure found;
  char path[FS_PATH_MAX];
  if (seen_whole(r, u, known)) {
    u->standing = RECOVER_WHOLE;
    return 0;
  }
  int rc = structure_of_unit(r->env->io, r->places.dir, u->path, u->kind, r->rules, &found,
                             u->reason, sizeof u->reason, e);
  if (rc == 0) rc = fs_join(path, r->places.dir, u->path, e);
  if (rc < 0) return rc;
  bool torn = facts->state == DETECT_BROKEN || found == STRUCTURE_TORN;
  if (torn)
    u->standing = proc_has_writer(path) ? RECOVER_UNPROVEN : RECOVER_TORN;
  else if (facts->state == DETECT_COMPLETE)
    u->standing = RECOVER_WHOLE;
  else if (found == STRUCTURE_SOUND && !facts->lacking)
    u->standing = RECOVER_WHOLE;
  else
    u->standing = RECOVER_UNPROVEN;
  if (found != STRUCTURE_TORN) snprintf(u->reason, sizeof u->reason, "%s", facts->reason);
  return 0;
}

static int examine(run *r, survey_unit *u, const detect_unit *facts, err *e) {
  err why = {0};
  journal_unit known = journal_find(r->journal, u->path);
  int rc = check_commit(r, u, &known, &why);
  if (rc == 0) rc = check_alone(r, u, facts, &known, &why);
  if (rc == ERR_RETIRED || rc == ERR_NOENT) { /* beside a job that runs (`watch`) */
    u->standing = RECOVER_UNPROVEN;
    snprintf(u->reason, sizeof u->reason, "%.255s", why.text);
    rc = 0;
  }
  if (rc < 0 && e) *e = why;
  return rc < 0 ? rc : 0;
}

/* ---- all of them ---- */

struct collect {
  run *run;
  survey *survey;
  size_t room;
  err *e;
};

static int fill(survey_unit *u, const detect_unit *facts) {
  char series[512];
  detect_series(facts->name, series, sizeof series);
  *u = (survey_unit){.path = strdup(facts->path),
                     .series = strdup(series),
                     .group = strdup(facts->group),
                     .kind = facts->kind,
                     .step = facts->step,
                     .changed_ns = facts->changed_ns,
                     .fingerprint = facts->fingerprint,
                     .commit = RUNLOG_NONE};
  u->name = u->path ? fs_base(u->path) : NULL;
  return u->path && u->series && u->group ? 0 : ERR_NOMEM;
}

static int on_unit(void *ctx, const detect_unit *facts) {
  struct collect *c = ctx;
  survey *s = c->survey;
  if (facts->state == DETECT_GONE) return 0;
  if (s->count == c->room) {
    size_t room = c->room ? 2 * c->room : 16;
    survey_unit *units = realloc(s->units, room * sizeof *units);
    if (!units) return err_set(c->e, ERR_NOMEM, "survey: out of memory");
    s->units = units;
    c->room = room;
  }
  survey_unit *u = &s->units[s->count++];
  if (fill(u, facts) < 0) return err_set(c->e, ERR_NOMEM, "survey: out of memory");
  return examine(c->run, u, facts, c->e);
}

/* Nobody writes here now, so no time has to pass before what is there may be judged: the survey's
 * clocks are an hour ahead. */
struct later {
  io io;
  const io *real;
};

static int64_t later_now(const io *self, io_clock clock) {
  const io *real = ((const struct later *)self)->real; /* the io is its first member */
  return real->now(real, clock) + (int64_t)3600 * 1000000000;
}

int run_survey(run *r, survey *out, err *e) {
  *out = (survey){0};
  detect *d = NULL;
  struct later later = {*r->env->io, r->env->io};
  later.io.now = later_now;
  struct collect c = {.run = r, .survey = out, .e = e};
  detect_options o = {.io = &later.io,
                      .log = r->env->log,
                      .root = r->places.dir,
                      .rules = r->rules,
                      .mode = DETECT_FED};
  int rc = detect_open(&o, &d, e);
  if (rc == 0) rc = run_survey_learn(r, d, e);
  if (rc == 0) {
    detect_writer_gone(d, true);
    rc = detect_run(d, e);
  }
  if (rc == 0) rc = detect_each(d, on_unit, &c);
  detect_close(d);
  if (rc < 0) run_survey_free(out);
  return rc < 0 ? rc : 0;
}

void run_survey_free(survey *s) {
  for (size_t i = 0; i < s->count; i++) {
    free(s->units[i].path);
    free(s->units[i].series);
    free(s->units[i].group);
  }
  free(s->units);
  *s = (survey){0};
}
