/* runlog_state: answers questions about the state of the log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runlog_fold.h"

void runlog_free_texts(runlog_commit *c) {
  free(c->metrics);
  free(c->policy);
  free(c->reason);
  free(c->needs);
  free(c->bad_reason);
  free(c->bad_lines);
  free(c->drop_policy);
  free(c->drop_reason);
  runlog_free_thin(&c->thin);
}

void runlog_state_free(runlog_state *s) {
  for (size_t i = 0; i < s->attempt_count; i++) {
    free(s->attempts[i].unit);
    free(s->attempts[i].dir);
  }
  for (size_t i = 0; i < s->commit_count; i++) runlog_free_texts(&s->commits[i]);
  free(s->attempts);
  free(s->commits);
  free(s->plain);
  free(s->end_reason);
  free(s->joined);
  *s = (runlog_state){.term.n = RUNLOG_NONE, .snapshot = RUNLOG_NONE};
}

bool runlog_add_joined(runlog_state *s, const char *id) {
  void *grown = realloc(s->joined, (s->joined_count + 1) * sizeof *s->joined);
  if (!grown) return false;
  s->joined = grown;
  snprintf(s->joined[s->joined_count++], RUNLOG_ID_MAX, "%s", id);
  return true;
}

bool runlog_admits(const runlog_state *s, const char *run_id) {
  if (strcmp(s->run_id, run_id) == 0) return true;
  for (size_t i = 0; i < s->joined_count; i++)
    if (strcmp(s->joined[i], run_id) == 0) return true;
  return false;
}

runlog_commit *runlog_next_commit(runlog_state *s) {
  return VEC_ROOM(s->commits, s->commit_count, s->commit_room) ? &s->commits[s->commit_count]
                                                               : NULL;
}

int runlog_unit_check(const char *unit, err *e) {
  const char *why = unit[0] == 0                     ? "is empty"
                    : strlen(unit) > RUNLOG_UNIT_MAX ? "is longer than 255 bytes"
                    : strchr(unit, '/')              ? "has a slash"
                    : !strcmp(unit, ".")             ? "is a relative directory"
                    : !strcmp(unit, "..")            ? "is a relative directory"
                    : !strcmp(unit, ".ckpt")         ? "is kept for the log itself"
                                                     : NULL;
  if (!why) return 0;
  buf shown;
  buf_init(&shown, 3 * strlen(unit));
  js_name_escape(unit, &shown);
  err_set(e, ERR_INVAL, "\"%.300s\" cannot be a unit's name: it %s",
          buf_failed(&shown) ? "?" : shown.data, why);
  buf_free(&shown);
  return ERR_INVAL;
}

/* True for a name such as "x.~6". */
static bool looks_like_generation(const char *unit) {
  size_t at = strlen(unit), end = at;
  while (at > 0 && unit[at - 1] >= '0' && unit[at - 1] <= '9') at--;
  return at < end && at >= 2 && unit[at - 1] == '~' && unit[at - 2] == '.';
}

/* Finds the place of `unit` in the table of plain names, or the empty place where it would be. */
static size_t plain_slot(const runlog_state *s, const char *unit) {
  uint64_t sum = 14695981039346656037u; /* FNV-1a */
  for (const char *at = unit; *at; at++) sum = (sum ^ (unsigned char)*at) * 1099511628211u;
  size_t slot = (size_t)(sum & (s->plain_room - 1));
  while (s->plain[slot] && strcmp(s->attempts[s->plain[slot] - 1].unit, unit) != 0)
    slot = (slot + 1) & (s->plain_room - 1);
  return slot;
}

bool runlog_plain_free(const runlog_state *s, const char *unit) {
  if (looks_like_generation(unit)) return false;
  return s->plain_room == 0 || s->plain[plain_slot(s, unit)] == 0;
}

/* Keeps the table at most half full. */
static int plain_grow(runlog_state *s) {
  if (2 * (s->plain_count + 1) <= s->plain_room) return 0;
  size_t *old = s->plain, old_room = s->plain_room;
  size_t *grown = calloc(old_room ? 2 * old_room : 16, sizeof *grown);
  if (!grown) return ERR_NOMEM;
  s->plain = grown;
  s->plain_room = old_room ? 2 * old_room : 16;
  for (size_t i = 0; i < old_room; i++)
    if (old[i]) grown[plain_slot(s, s->attempts[old[i] - 1].unit)] = old[i];
  free(old);
  return 0;
}

int runlog_add_attempt(runlog_state *s, const runlog_attempt *fresh) {
  if (!VEC_ROOM(s->attempts, s->attempt_count, s->attempt_room) || plain_grow(s) < 0)
    return ERR_NOMEM;
  if (strcmp(fresh->unit, fresh->dir) == 0) {
    s->plain[plain_slot(s, fresh->unit)] = s->attempt_count + 1;
    s->plain_count++;
  }
  s->attempts[s->attempt_count++] = *fresh;
  return 0;
}

runlog_attempt *runlog_attempt_at(const runlog_state *s, uint64_t n) {
  return vec_find(&n, s->attempts, s->attempt_count, sizeof *s->attempts, vec_by_number);
}

const runlog_attempt *runlog_find_attempt(const runlog_state *s, uint64_t n) {
  return runlog_attempt_at(s, n);
}

const runlog_attempt *runlog_find_nonce(const runlog_state *s, const char *nonce) {
  for (size_t i = s->attempt_count; *nonce && i-- > 0;)
    if (strcmp(s->attempts[i].nonce, nonce) == 0) return &s->attempts[i];
  return NULL;
}

const runlog_commit *runlog_commit_of(const runlog_state *s, uint64_t attempt) {
  for (size_t i = s->commit_count; i-- > 0;)
    if (s->commits[i].attempt == attempt) return &s->commits[i];
  return NULL;
}

runlog_commit *runlog_commit_at(const runlog_state *s, uint64_t n) {
  return vec_find(&n, s->commits, s->commit_count, sizeof *s->commits, vec_by_number);
}

const runlog_commit *runlog_find_commit(const runlog_state *s, uint64_t n) {
  return runlog_commit_at(s, n);
}

bool runlog_any_thin(const runlog_state *s) {
  for (size_t i = 0; i < s->commit_count; i++)
    if (s->commits[i].thin.globs.count) return true;
  return false;
}

static const runlog_commit *newest(const runlog_state *s, const char *unit, bool ever) {
  for (size_t i = s->commit_count; i-- > 0;) {
    const runlog_commit *c = &s->commits[i];
    bool chosen = ever ? c->n > s->since : c->life == RUNLOG_LIVE && !c->bad;
    if (chosen && (unit ? strcmp(c->unit, unit) == 0 : ever || !c->above)) return c;
  }
  return NULL;
}

const runlog_commit *runlog_newest(const runlog_state *s, const char *unit) {
  return newest(s, unit, false);
}

const runlog_commit *runlog_newest_ever(const runlog_state *s, const char *unit) {
  return newest(s, unit, true);
}

const runlog_commit *runlog_find_dir(const runlog_state *s, const char *dir) {
  for (size_t i = s->commit_count; i-- > 0;)
    if (strcmp(s->commits[i].dir, dir) == 0) return &s->commits[i];
  return NULL;
}
