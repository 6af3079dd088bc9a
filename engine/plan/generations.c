#include "generations.h"

#include <string.h>

#include "plan/above.h"
#include "plan/retention.h"
#include "prims/match_series.h"

static const int64_t day_ns = INT64_C(24) * 3600 * 1000000000;

static bool is_good(const runlog_commit *c) {
  return c->life == RUNLOG_LIVE && !c->bad;
}

static bool is_old_above(const runlog_state *state, const runlog_commit *c) {
  size_t newer = 0;
  for (size_t i = state->commit_count; i-- > 0 && state->commits[i].n > c->n;) {
    const runlog_commit *k = &state->commits[i];
    newer += k->above && is_good(k) && match_same_series(k->unit, c->unit);
  }
  return newer >= ABOVE_KEPT;
}

/* Times before 1970 are of a day, too. */
static int64_t day_of(const runlog_commit *c) {
  return c->time_ns / day_ns - (c->time_ns % day_ns < 0);
}

/* The term of the writer that committed it. */
static uint64_t writer_of(const runlog_state *state, const runlog_commit *c) {
  const runlog_attempt *a = runlog_find_attempt(state, c->attempt);
  return a ? a->owner : RUNLOG_NONE;
}

static bool is_suspect(const generations_doubt *doubt, const runlog_commit *c) {
  return doubt && (doubt->commits[0] == c->n || doubt->commits[1] == c->n);
}

/* True if enough good commits of its name came later, and one of them on the day of this one and one
 * by its own writer: what a job ended with is not for the next one to replace. */
static bool is_passed(const runlog_state *state, const runlog_commit *c,
                      const generations_doubt *doubt) {
  const runlog_commit *end = state->commits + state->commit_count;
  const uint64_t writer = writer_of(state, c);
  size_t newer = 0;
  bool same_day = false, same_writer = false;
  for (const runlog_commit *k = c + 1; k < end; k++) {
    if (!is_good(k) || k->above || strcmp(k->unit, c->unit) != 0) continue;
    if (is_suspect(doubt, k) && newer == 0) return false;
    if (is_suspect(doubt, k)) continue;
    newer++;
    same_day = same_day || day_of(k) == day_of(c);
    same_writer = same_writer || writer_of(state, k) == writer;
    if (newer >= GENERATIONS_KEPT && same_day && same_writer) return true;
  }
  return false;
}

static bool is_other_number(const runlog_commit *k, const runlog_commit *c) {
  return strcmp(k->unit, c->unit) != 0 && match_same_series(k->unit, c->unit);
}

/* The names next to it tell: where they are counted, one of those is another one. */
bool generations_is_fixed(const runlog_state *state, const runlog_commit *c) {
  const runlog_commit *end = state->commits + state->commit_count;
  for (const runlog_commit *k = c + 1; k < end; k++)
    if (is_other_number(k, c)) return false;
  for (const runlog_commit *k = c; k-- > state->commits;)
    if (is_other_number(k, c)) return false;
  return true;
}

/* Who has a step has a number in its name: most have one that counts, and need not be looked for. */
bool generations_has_name(const runlog_state *state, const runlog_commit *c) {
  return is_good(c) && !c->above && (c->step == MATCH_NO_STEP || generations_is_fixed(state, c));
}

const char *generations_passed(const runlog_state *state, const runlog_commit *c, bool reused,
                               const generations_doubt *doubt) {
  if (c->life == RUNLOG_LIVE && c->above)
    return is_old_above(state, c) ? "newer generations of it are kept" : NULL;
  return reused && generations_has_name(state, c) && is_passed(state, c, doubt) ? RETENTION_PASSED
                                                                                : NULL;
}
