#include "agree.h"

static agree_word word_of(const launch_answer *a, const agree_unit *unit) {
  if (!a) return AGREE_UNKNOWN;
  if (a->ended) return AGREE_YES;
  if (a->number < unit->number) return AGREE_ASKED;
  const launch_unit *seen = launch_find(&a->units, unit->path);
  if (!seen) return AGREE_ASKED; /* a later question was about others */
  if (seen->open) return AGREE_OPEN;
  return seen->stamp == unit->stamp ? AGREE_YES : AGREE_DIFFERS;
}

agree_finding agree_about(const agree_facts *f, const agree_unit *unit) {
  agree_finding found = {.word = AGREE_YES};
  for (uint32_t i = 0; i < f->count; i++) {
    agree_word word = i == f->self ? AGREE_YES : word_of(f->answers[i], unit);
    found.missing += word != AGREE_YES;
    if (word <= found.word) continue;
    found.word = word;
    found.index = i;
  }
  return found;
}

agree_ends agree_ends_of(const agree_facts *f) {
  agree_ends ends = {0};
  for (uint32_t i = 0; i < f->count; i++) {
    const launch_answer *a = f->answers[i];
    if (i == f->self) continue;
    ends.unknown += !a;
    ends.living += a && !a->ended;
    ends.ended += a && a->ended;
    ends.unclean += a && a->ended && !a->clean;
  }
  return ends;
}
