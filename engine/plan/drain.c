#include "drain.h"

#include <string.h>

#include "base/err.h"

static bool is_wanted(const drain_unit *u) {
  return u->is != DRAIN_UNWANTED && u->is != DRAIN_OPEN;
}

static bool is_newer(const drain_unit *a, const drain_unit *b) {
  return a->made_ns != b->made_ns ? a->made_ns > b->made_ns : a->step > b->step;
}

static bool is_of_kind(const drain_unit *a, const drain_unit *b) {
  return a->group == b->group && strcmp(a->series, b->series) == 0;
}

/* What is gone from the directory nobody can save any more: the next best of its kind counts. */
bool drain_counts(const drain_unit *units, size_t count, size_t at) {
  const drain_unit *u = &units[at];
  if (!is_wanted(u)) return false;
  for (size_t i = 0; i < count; i++) {
    const drain_unit *k = &units[i];
    if (i == at || !is_wanted(k) || !is_of_kind(k, u)) continue;
    bool gone = k->is == DRAIN_GONE, other = u->is == DRAIN_GONE;
    if (gone != other ? other : is_newer(k, u)) return false;
  }
  return true;
}

static int status_of(const drain_unit *u, int end) {
  switch (u->is) {
  case DRAIN_FAILED: return u->status;
  case DRAIN_GONE: return ERR_RETIRED;
  case DRAIN_WAITS: return end;
  case DRAIN_LEFT:
  case DRAIN_STORED:
  case DRAIN_UNWANTED:
  case DRAIN_OPEN: break;
  }
  return ERR_TIMEOUT;
}

drain_answer drain_judge(const drain_unit *units, size_t count, int end) {
  drain_answer a = {.over = true, .late = DRAIN_NONE};
  for (size_t i = 0; i < count; i++)
    if (units[i].is == DRAIN_WAITS && end == 0) a.over = false;
  for (size_t i = 0; i < count; i++) {
    if (units[i].is == DRAIN_STORED || !drain_counts(units, count, i)) continue;
    if (a.late == DRAIN_NONE || is_newer(&units[i], &units[a.late])) a.late = (ptrdiff_t)i;
  }
  if (a.over && a.late != DRAIN_NONE) a.status = status_of(&units[a.late], end);
  return a;
}
