#include "drain.h"

#include "base/err.h"

static bool is_wanted(const drain_unit *u) {
  return !u->aside && u->is != DRAIN_UNWANTED && u->is != DRAIN_OPEN && u->is != DRAIN_UNPROVEN;
}

/* What is gone from the directory nobody can save any more: the next best of its kind counts. */
bool drain_counts(const drain_unit *units, size_t count, size_t at) {
  const drain_unit *u = &units[at];
  if (!is_wanted(u)) return false;
  for (size_t i = 0; i < count; i++) {
    const drain_unit *k = &units[i];
    if (i == at || !is_wanted(k) || !standing_is_alike(&k->as, &u->as)) continue;
    bool gone = k->is == DRAIN_GONE, other = u->is == DRAIN_GONE;
    if (gone != other ? other : standing_is_newer(&k->as, &u->as)) return false;
  }
  return true;
}

static standing_is fact_of(const drain_facts *f, size_t at) {
  const drain_unit *u = &f->units[at];
  if (u->aside) return STANDING_IS_ASIDE;
  switch (u->is) {
  case DRAIN_WAITS: return STANDING_IS_COMING;
  case DRAIN_STORED: return STANDING_IS_STORED;
  case DRAIN_UNWANTED: return STANDING_IS_UNWANTED;
  case DRAIN_LEFT:
  case DRAIN_FAILED: return STANDING_IS_FAILED;
  case DRAIN_GONE:
    return drain_counts(f->units, f->count, at) ? STANDING_IS_FAILED : STANDING_IS_ASIDE;
  case DRAIN_UNPROVEN: return STANDING_IS_UNPROVEN;
  case DRAIN_OPEN: break; /* it is not waited for */
  }
  return STANDING_IS_ASIDE;
}

static int status_of(const drain_facts *f, const standing_answer *s) {
  if (s->word != STANDING_NOT_DURABLE) return 0;
  if (s->late == STANDING_NONE && f->run.fenced) return ERR_FENCED;
  if (s->late == STANDING_NONE) return f->unseen ? f->unseen : ERR_TIMEOUT;
  const drain_unit *u = &f->units[s->late];
  const int status = u->is == DRAIN_FAILED  ? u->status
                     : u->is == DRAIN_GONE  ? ERR_RETIRED
                     : u->is == DRAIN_WAITS ? f->end
                                            : 0;
  return status ? status : ERR_TIMEOUT;
}

drain_answer drain_judge(const drain_facts *f) {
  drain_answer a = {.over = f->end != 0 || !f->unmet, .late = STANDING_NONE};
  for (size_t i = 0; i < f->count; i++)
    if (f->units[i].is == DRAIN_WAITS && f->end == 0) a.over = false;
  if (!a.over) return a;
  standing_facts all = f->run;
  all.units = f->room;
  all.count = f->count;
  for (size_t i = 0; i < f->count; i++) {
    f->room[i] = f->units[i].as;
    f->room[i].is = fact_of(f, i);
  }
  const standing_answer s = standing_decide(&all);
  a.word = s.word;
  a.late = s.late;
  a.status = status_of(f, &s);
  return a;
}
