#include <stdlib.h>

#include "base/vec.h"
#include "lab/world.h"

bool lab_tries_note(lab_trial *t, const lab_event *event) {
  bool there;
  size_t at =
      vec_place(event->name, t->tries, t->tries_count, sizeof *t->tries, vec_by_text, &there);
  if (!there) {
    if (!VEC_ROOM(t->tries, t->tries_count, t->tries_room)) return false;
    for (size_t i = t->tries_count++; i > at; i--) t->tries[i] = t->tries[i - 1];
    t->tries[at] = (lab_tries){.name = event->name};
  }
  lab_tries *of = &t->tries[at];
  if (!vec_grow((void *)&of->events, of->count, &of->room, sizeof(void *))) return false;
  of->events[of->count++] = event;
  if (event->outcome != LAB_FAIL) {
    t->told_s += event->transfer_s;
    t->told_bytes += (double)event->bytes;
  }
  return true;
}

const lab_event *lab_tries_next(lab_trial *t, const char *name) {
  lab_tries *of = vec_find(name, t->tries, t->tries_count, sizeof *t->tries, vec_by_text);
  return of && of->next < of->count ? of->events[of->next++] : NULL;
}

double lab_tries_pace(const lab_trial *t, uint64_t bytes) {
  return t->told_bytes > 0 ? t->told_s * ((double)bytes / t->told_bytes) : -1;
}

void lab_tries_free(lab_trial *t) {
  for (size_t i = 0; i < t->tries_count; i++) free((void *)t->tries[i].events);
  free(t->tries);
}
