#include "standing.h"
#include "base/fault.h"

#include <string.h>

const char *standing_name(standing_word word) {
  static const char *const names[] = {[STANDING_DURABLE] = "durable",
                                      [STANDING_NOTHING_TO_SAVE] = "nothing_to_save",
                                      [STANDING_NOT_WANTED] = "not_wanted",
                                      [STANDING_NOT_PROVEN] = "not_proven",
                                      [STANDING_NOT_DURABLE] = "not_durable"};
  return (size_t)word < sizeof names / sizeof *names ? names[word] : NULL;
}

/* True for one that a restart could need: whole, and wanted. */
static bool is_wanted(const standing_unit *u) {
  return u->is == STANDING_IS_STORED || u->is == STANDING_IS_COMING || u->is == STANDING_IS_FAILED;
}

bool standing_is_alike(const standing_unit *a, const standing_unit *b) {
  return a->group == b->group && strcmp(a->series, b->series) == 0;
}

bool standing_is_newer(const standing_unit *a, const standing_unit *b) {
  return a->made_ns != b->made_ns ? a->made_ns > b->made_ns : a->step > b->step;
}

static const standing_unit *newest_like(const standing_facts *f, const standing_unit *u) {
  const standing_unit *newest = NULL;
  for (size_t i = 0; i < f->count; i++) {
    const standing_unit *other = &f->units[i];
    if (newest && !standing_is_newer(other, newest)) continue;
    if (is_wanted(other) && standing_is_alike(other, u)) newest = other;
  }
  return newest;
}

/* Looks at a unit that no newer wanted one of its kind makes up for. */
static void look_at(const standing_facts *f, ptrdiff_t i, standing_answer *s) {
  const standing_unit *u = &f->units[i];
  switch (u->is) {
  case STANDING_IS_COMING:
  case STANDING_IS_FAILED:
    if (s->late == STANDING_NONE || standing_is_newer(u, &f->units[s->late])) s->late = i;
    break;
  case STANDING_IS_UNPROVEN:
    if (s->unproven == STANDING_NONE || standing_is_newer(u, &f->units[s->unproven]))
      s->unproven = i;
    break;
  case STANDING_IS_UNWANTED:
    if (s->unwanted == STANDING_NONE || standing_is_newer(u, &f->units[s->unwanted]))
      s->unwanted = i;
    break;
  case STANDING_IS_STORED:
  case STANDING_IS_OPEN:
  case STANDING_IS_ASIDE: break;
  }
}

standing_answer standing_decide(const standing_facts *f) {
  standing_answer s = {.late = STANDING_NONE, .unproven = STANDING_NONE, .unwanted = STANDING_NONE};
  bool stored = f->stored, seen = f->seen, open = false;
  const standing_unit *alike = NULL, *newest = NULL; /* found once for those that stand together */
  for (size_t i = 0; i < f->count; i++) {
    const standing_unit *u = &f->units[i];
    stored |= u->is == STANDING_IS_STORED;
    seen |= u->is == STANDING_IS_STORED || u->is == STANDING_IS_UNWANTED;
    open |= u->is == STANDING_IS_OPEN;
    if (u->is == STANDING_IS_STORED || u->is == STANDING_IS_OPEN || u->is == STANDING_IS_ASIDE)
      continue;
    if (!alike || !standing_is_alike(alike, u)) newest = newest_like(f, u);
    alike = u;
    bool newer = newest && standing_is_newer(newest, u);
    bool made_up = newer || (newest && !is_wanted(u) && !standing_is_newer(u, newest));
    if (!made_up) look_at(f, (ptrdiff_t)i, &s);
  }
  if (FAULT("durable-not-proven") && s.late != STANDING_NONE)
    s.word = STANDING_DURABLE;
  else if (s.late != STANDING_NONE || open || f->lost || f->fenced)
    s.word = STANDING_NOT_DURABLE;
  else if (s.unproven != STANDING_NONE)
    s.word = STANDING_NOT_PROVEN;
  else if (seen && stored)
    s.word = STANDING_DURABLE;
  else
    s.word = s.unwanted != STANDING_NONE ? STANDING_NOT_WANTED : STANDING_NOTHING_TO_SAVE;
  return s;
}
