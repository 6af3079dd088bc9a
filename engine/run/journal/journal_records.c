#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "journal_impl.h"

/* ---- units ---- */

size_t journal_place(const journal *j, const char *path, bool *there) {
  return vec_place(path, j->units, j->count, sizeof *j->units, vec_by_text, there);
}

/* True if what stands there by the new record is what was flushed. A restore flushes what it brings. */
static bool stays_flushed(const journal_unit *was, journal_state state, const digest *fingerprint) {
  if (!fingerprint || state <= JOURNAL_OPEN) return state == JOURNAL_COMMITTED;
  if (!was->flushed) return false;
  bool restored = was->state == JOURNAL_COMMITTED && was->fingerprint.len == 0;
  return restored ? state == JOURNAL_COMMITTED : digest_equal(&was->fingerprint, fingerprint);
}

int journal_put_unit(journal *j, const char *path, journal_state state, const digest *fingerprint,
                     const runlog_ref *commit) {
  bool there;
  size_t at = journal_place(j, path, &there);
  if (!there) {
    char *copy = VEC_ROOM(j->units, j->count, j->room) ? strdup(path) : NULL;
    if (!copy) return ERR_NOMEM;
    memmove(&j->units[at + 1], &j->units[at], (j->count - at) * sizeof *j->units);
    j->units[at] = (journal_unit){.path = copy};
    j->count++;
  }
  j->units[at].flushed = stays_flushed(&j->units[at], state, fingerprint);
  j->units[at].state = state;
  j->units[at].fingerprint = fingerprint ? *fingerprint : (digest){0};
  j->units[at].commit = commit ? *commit : JOURNAL_NO_COMMIT;
  return 0;
}

int journal_put_result(journal *j, const char *path, const char *result, bool named) {
  bool there;
  size_t at = journal_place(j, path, &there);
  int rc = there ? 0 : journal_put_unit(j, path, JOURNAL_OPEN, NULL, NULL);
  char *copy = rc == 0 && result ? strdup(result) : NULL;
  if (rc < 0 || (result && !copy)) return ERR_NOMEM;
  free(j->units[at].result);
  j->units[at].result = copy;
  j->units[at].named = copy && named;
  return 0;
}

void journal_put_watched(journal *j, const char *path, bool watched) {
  bool there;
  size_t at = journal_place(j, path, &there);
  if (there) j->units[at].watched = watched && j->units[at].state == JOURNAL_OPEN;
}

/* What a line says counts, and not what stood before it: one of before 1.1 says nothing. */
void journal_put_flushed(journal *j, const char *path, bool flushed) {
  bool there;
  size_t at = journal_place(j, path, &there);
  if (there) j->units[at].flushed = flushed && j->units[at].state > JOURNAL_OPEN;
}

/* Of an older version, or of one that saves alone, a line says nothing. */
void journal_put_parts(journal *j, const char *path, int64_t parts) {
  bool there;
  size_t at = journal_place(j, path, &there);
  if (there) j->units[at].parts = parts > 1 && parts <= UINT32_MAX ? (uint32_t)parts : 0;
}

void journal_drop_unit(journal *j, const char *path) {
  bool there;
  size_t at = journal_place(j, path, &there);
  if (!there) return;
  free(j->units[at].path);
  free(j->units[at].result);
  memmove(&j->units[at], &j->units[at + 1], (j->count - at - 1) * sizeof *j->units);
  j->count--;
}

journal_unit journal_find(const journal *j, const char *path) {
  bool there = false;
  if (!j) return (journal_unit){.commit = JOURNAL_NO_COMMIT};
  size_t at = journal_place(j, path, &there);
  return there ? j->units[at] : (journal_unit){.commit = JOURNAL_NO_COMMIT};
}

/* ---- logs ---- */

journal_log *journal_get_log(const journal *j, const char *target, const char *group) {
  for (size_t i = 0; i < j->log_count; i++)
    if (strcmp(j->logs[i].target, target) == 0 && strcmp(j->logs[i].group, group) == 0)
      return &j->logs[i];
  return NULL;
}

bool journal_log_committed(const journal_log *l) {
  return l->newest.n != RUNLOG_NONE;
}

const journal_log *journal_find_log(const journal *j, const char *target, const char *group) {
  const journal_log *l = journal_get_log(j, target, group);
  return l && journal_log_committed(l) ? l : NULL;
}

const journal_log *journal_log_at(const journal *j, const char *target, size_t i) {
  for (size_t k = 0; k < j->log_count; k++)
    if (journal_log_committed(&j->logs[k]) && strcmp(j->logs[k].target, target) == 0 && i-- == 0)
      return &j->logs[k];
  return NULL;
}

const journal_log *journal_known_log(const journal *j, const char *log) {
  for (size_t i = j->log_count; i-- > 0;)
    if (!log || strcmp(j->logs[i].newest.log, log) == 0) return &j->logs[i];
  return NULL;
}

bool journal_has_committed(const journal *j, const char *target) {
  for (size_t i = 0; i < j->log_count; i++)
    if (journal_log_committed(&j->logs[i])) return journal_log_at(j, target, 0) != NULL;
  for (size_t i = 0; i < j->count; i++)
    if (j->units[i].commit.n != RUNLOG_NONE) return true;
  return false;
}

int journal_put_log(journal *j, const char *target, const char *group, const runlog_ref *newest) {
  journal_log *l = journal_get_log(j, target, group);
  if (l) {
    l->newest = *newest;
    return 0;
  }
  journal_log made = {strdup(target), strdup(group), *newest};
  if (!made.target || !made.group || !VEC_ROOM(j->logs, j->log_count, j->log_room)) {
    free(made.target);
    free(made.group);
    return ERR_NOMEM;
  }
  j->logs[j->log_count++] = made;
  return 0;
}

void journal_doubt(journal *j, bool flushed_too) {
  for (size_t i = 0; i < j->count; i++) {
    journal_unit *u = &j->units[i];
    u->watched = false;
    if (u->state <= JOURNAL_OPEN || u->state == JOURNAL_ASIDE || (u->flushed && !flushed_too))
      continue;
    u->state = JOURNAL_OPEN;
    u->flushed = false;
  }
}

size_t journal_count(const journal *j) {
  return j ? j->count : 0;
}

journal_unit journal_at(const journal *j, size_t i) {
  return j->units[i];
}
journal_child journal_last_child(const journal *j) {
  return j->child;
}

int journal_keep_here(journal *j, journal_here *here, void *ctx, err *e) {
  for (size_t i = 0; j && i < j->count; i++) {
    journal_unit *u = &j->units[i];
    if (u->state != JOURNAL_COMMITTED) continue;
    int rc = here(ctx, u, e);
    if (rc < 0) return rc;
    if (rc == 0) u->state = u->fingerprint.len ? JOURNAL_COMPLETE : JOURNAL_OPEN;
  }
  return 0;
}
