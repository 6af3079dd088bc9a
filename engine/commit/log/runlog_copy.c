/* runlog_copy: a second handle on a log that was read, for who needs one of his own. */
#include <stdlib.h>
#include <string.h>

#include "runlog_fold.h"

/* NULL stays NULL; *good becomes false when out of memory. */
static char *text_of(const char *text, bool *good) {
  char *copy = text ? strdup(text) : NULL;
  if (text && !copy) *good = false;
  return copy;
}

static bool copy_attempts(const runlog_state *from, runlog_state *to) {
  bool good = true;
  for (size_t i = 0; i < from->attempt_count; i++) {
    runlog_attempt a = from->attempts[i];
    a.unit = text_of(a.unit, &good);
    a.dir = text_of(a.dir, &good);
    if (good && runlog_add_attempt(to, &a) == 0) continue;
    free(a.unit);
    free(a.dir);
    return false;
  }
  return true;
}

static bool copy_commits(const runlog_state *from, runlog_state *to) {
  bool good = true;
  for (size_t i = 0; good && i < from->commit_count; i++) {
    runlog_commit *next = runlog_next_commit(to);
    const runlog_attempt *attempt = runlog_attempt_at(to, from->commits[i].attempt);
    if (!next || !attempt) return false;
    *next = from->commits[i];
    next->unit = attempt->unit;
    next->dir = attempt->dir;
    next->metrics = text_of(next->metrics, &good);
    next->policy = text_of(next->policy, &good);
    next->reason = text_of(next->reason, &good);
    next->needs = text_of(next->needs, &good);
    next->bad_reason = text_of(next->bad_reason, &good);
    next->bad_lines = text_of(next->bad_lines, &good);
    next->drop_policy = text_of(next->drop_policy, &good);
    next->drop_reason = text_of(next->drop_reason, &good);
    good = runlog_copy_thin(&from->commits[i].thin, &next->thin) && good;
    to->commit_count++;
  }
  return good;
}

static bool copy_state(const runlog_state *from, runlog_state *to) {
  bool good = true;
  *to = *from;
  to->joined = NULL;
  to->attempts = NULL;
  to->commits = NULL;
  to->plain = NULL;
  to->joined_count = to->attempt_count = to->attempt_room = 0;
  to->commit_count = to->commit_room = to->plain_count = to->plain_room = 0;
  to->end_reason = text_of(from->end_reason, &good);
  for (size_t i = 0; good && i < from->joined_count; i++)
    good = runlog_add_joined(to, from->joined[i]);
  return good && copy_attempts(from, to) && copy_commits(from, to);
}

static bool copy_epochs(const runlog_epochs *from, runlog_epochs *to) {
  to->old = NULL;
  to->old_count = 0;
  if (from->old_count == 0) return true;
  to->old = malloc(from->old_count * sizeof *to->old);
  if (!to->old) return false;
  memcpy(to->old, from->old, from->old_count * sizeof *to->old);
  to->old_count = from->old_count;
  return true;
}

int runlog_copy(const runlog *log, runlog **out, err *e) {
  bool good = true;
  *out = NULL;
  runlog *copy = malloc(sizeof *copy);
  if (!copy) return err_set(e, ERR_NOMEM, "a log: out of memory");
  *copy = *log;
  copy->term = RUNLOG_NONE;
  copy->damage = text_of(log->damage, &good);
  good = copy_state(&log->st, &copy->st) && good;
  good = copy_epochs(&log->at, &copy->at) && good;
  if (good) {
    *out = copy;
    return 0;
  }
  runlog_close(copy);
  return err_set(e, ERR_NOMEM, "a log: out of memory");
}
