/* run_starts: what the job does with the checkpoint that it went on from, and what earlier starts from it say:
 * a trainer that dies on a checkpoint that it loads would die on it for ever. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_state.h"
#include "run/start/starts.h"

/* Returns the newest commit of a log, in whatever state it is. */
static uint64_t newest_of(const runlog_state *state) {
  return state->commit_count ? state->commits[state->commit_count - 1].n : RUNLOG_NONE;
}

const runlog_commit *run_starts_accused(const run_group *g, const starts *s, err *e) {
  const runlog_commit *c = NULL;
  if (!g->group.log || g->foreign) return NULL;
  if (runlog_ref_find(g->group.log, &s->commit, &c, e) < 0) return NULL;
  const runlog_state *state = runlog_view(g->group.log);
  return c && c->life == RUNLOG_LIVE && !c->bad && newest_of(state) == s->newest ? c : NULL;
}

/* ---- the start that is under way ---- */

void run_starts_watch(run *r) {
  fs_kind kind = {0};
  err why = {0};
  /* A rank of another host may read its part there, and nobody here sees that. */
  if (!r->resumed_group || !r->resume || r->ranks.world > 1 || r->bad_after == UINT_MAX) return;
  if (fs_kind_of(r->places.dir, &kind, &why) < 0 || kind.remote_writers) return;
  r->opened = opened_begin(r->env->io, r->resume);
}

void run_starts_free(run *r) {
  opened_free(r->opened);
  starts_free(&r->past);
  r->opened = NULL;
}

/* A run that diverges reports NaN: what was restored may be where it began. */
void run_starts_result(run *r, const json_t *v) {
  const char *name;
  json_t *one;
  if (!r->resumed_group || *r->nan) return;
  json_object_foreach((json_t *)v, name, one) {
    const char *text = json_string_value(one);
    if (!text || strcmp(text, "NaN") != 0) continue;
    snprintf(r->nan, sizeof r->nan, "%.60s", name);
    return;
  }
}

/* The record of this start. */
static starts start_now(const run *r) {
  starts now = {.commit = r->resumed_commit, .newest = r->resumed_newest};
  snprintf(now.group, sizeof now.group, "%s", r->resumed_group->group.prefix);
  return now;
}

static bool is_resumed(const run *r, const run_group *g, uint64_t commit) {
  return r->resumed_group == g && r->resumed_commit.n == commit;
}

enum { SUSPECT_MAX = STARTS_REASON_MAX + 100 };

/* NULL: nothing was reported that says so. */
static const char *was_nan(const run *r) {
  static _Thread_local char text[SUSPECT_MAX];
  if (!*r->nan) return NULL;
  snprintf(text, sizeof text, "%s was NaN after it was restored", r->nan);
  return text;
}

/* What earlier starts say of the checkpoint that they went on from. */
static const char *past_says(const starts *past) {
  static _Thread_local char text[SUSPECT_MAX];
  if (!*past->suspect && past->failed == 0) return NULL;
  if (*past->suspect)
    snprintf(text, sizeof text, "%s", past->suspect);
  else
    snprintf(text, sizeof text, "%u start%s from it failed", past->failed,
             past->failed == 1 ? "" : "s");
  return text;
}

const char *run_starts_suspect(const run *r, const run_group *g, uint64_t commit) {
  const runlog_commit *c = NULL;
  if (is_resumed(r, g, commit) && *r->nan) return was_nan(r);
  if (strcmp(r->past.group, g->group.prefix) != 0 || r->past.commit.n != commit || !g->group.log ||
      runlog_ref_find(g->group.log, &r->past.commit, &c, NULL) < 0 || !c)
    return NULL;
  return past_says(&r->past);
}

void run_starts_note(const run *r, const run_group *g, policy_item *items, size_t count) {
  for (size_t i = 0; i < count; i++) items[i].suspect = run_starts_suspect(r, g, items[i].number);
}

generations_doubt run_starts_doubt(const run *r, const run_group *g) {
  const uint64_t from[] = {r->resumed_group == g ? r->resumed_commit.n : RUNLOG_NONE,
                           r->past.commit.n};
  generations_doubt out;
  for (size_t i = 0; i < 2; i++)
    out.commits[i] =
        from[i] != RUNLOG_NONE && run_starts_suspect(r, g, from[i]) ? from[i] : RUNLOG_NONE;
  return out;
}

/* The log is not asked: a worker may have it. */
const char *run_starts_resumed_suspect(const run *r) {
  if (!r->resumed_group) return NULL;
  if (*r->nan) return was_nan(r);
  return strcmp(r->past.group, r->resumed_group->group.prefix) == 0 &&
                 r->past.commit.n == r->resumed_commit.n &&
                 strcmp(r->past.commit.log, r->resumed_commit.log) == 0
             ? past_says(&r->past)
             : NULL;
}

/* A job that failed before it opened the checkpoint says nothing about it: a pointer may have named
 * another one, a module was missing, a port was taken. */
static bool says_nothing(run *r, const run_end *end) {
  char line[160];
  if (opened_say(r->opened) != OPENED_NEVER) return false;
  starts_last_line(end->lines, line, sizeof line);
  log_say(r->env->log, LOG_WARN,
          "the job failed, and never opened a file of %s: that is not counted against it%s%s",
          r->resume, *line ? "; it said: " : "", line);
  return true;
}

/* Takes a failed start in. */
static int count(run *r, const run_end *end, starts *known, err *e) {
  starts now = start_now(r);
  bool progress = runlog_view(r->resumed_group->group.log)->commit_count > 0 &&
                  newest_of(runlog_view(r->resumed_group->group.log)) != r->resumed_newest;
  if (end->lines && *end->lines) {
    now.lines = strndup(end->lines, STARTS_LINES_MAX);
    if (!now.lines) return err_set(e, ERR_NOMEM, "count a failed start: out of memory");
  }
  if (*r->nan)
    snprintf(now.suspect, sizeof now.suspect, "%s was NaN after it was restored", r->nan);
  else if (!progress)
    snprintf(now.suspect, sizeof now.suspect,
             "the job failed after it was restored, and nothing was saved since");
  starts_count(known, &now);
  if (!progress && known->failed < r->bad_after)
    log_say(r->env->log, LOG_WARN,
            "the job failed after it went on from %s, %u of %u times: it is suspect, and is marked "
            "bad then",
            r->resume, known->failed, r->bad_after);
  return 0;
}

/* Takes a NaN in. It is no failure; and those before it stay counted, unless the job ended well. */
static void note_nan(const run *r, bool clean, starts *known) {
  const starts now = start_now(r);
  if (clean || starts_read(r->env->io, r->places.state, known, NULL) < 0 ||
      !starts_same(known, &now)) {
    starts_free(known);
    *known = now;
  }
  snprintf(known->suspect, sizeof known->suspect, "%s was NaN after it was restored", r->nan);
}

int run_start_over(run *r, const run_end *end, err *e) {
  starts known = {0};
  int rc = 0;
  if (!r->resumed_group || r->bad_after == UINT_MAX) return 0;
  /* An end that came from outside tells nothing, neither good nor bad; but a NaN does. */
  bool outside = !end->clean && (end->outside || r->preempted || r->fenced);
  if (outside && !*r->nan) return 0;
  if (!end->clean && !*r->nan && says_nothing(r, end)) {
    r->resumed_group = NULL;
    return 0;
  }
  if (!end->clean && !outside) {
    starts_read(r->env->io, r->places.state, &known, NULL); /* on failure the count begins anew */
    rc = count(r, end, &known, e);
  } else if (*r->nan) {
    note_nan(r, end->clean, &known);
  }
  r->resumed_group = NULL;
  if (rc == 0) rc = starts_write(r->env->io, r->places.state, &known, e);
  starts_free(&r->past);
  r->past = known; /* for what is asked after the end */
  return rc;
}

void run_starts_begun(run *r, run_group *g, uint64_t commit) {
  err why = {0};
  r->resumed_group = g;
  if (runlog_ref_of(g->group.log, commit, &r->resumed_commit, &why) < 0)
    log_say(r->env->log, LOG_WARN, "if this start fails, it is not counted: %s", why.text);
  r->resumed_newest = newest_of(runlog_view(g->group.log));
}
