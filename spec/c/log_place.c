#include "log_place.h"

#include "with_cmocka.h"

#include <stdlib.h>

#include "log_check.h"

int log_place_set_up(void **state) {
  log_place *p = calloc(1, sizeof *p);
  p->w = world_new(*state ? "file" : "mem", world_io());
  p->s = p->w->env.store;
  p->log = world_log(p->w, "", "one");
  *state = p;
  return 0;
}

int log_place_tear_down(void **state) {
  log_place *p = *state;
  log_place_check(p->s);
  world_free(p->w);
  free(p);
  return 0;
}

void log_place_check(store *s) {
  size_t entries;
  const char *why = log_check(s, "", &entries);
  if (why) fail_msg("%s", why);
}
