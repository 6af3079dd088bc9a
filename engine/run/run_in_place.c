/* run_in_place: names without a step, as `last.pt`, which a job writes again and again. Each is saved at
 * most once in a while: a store that has one of every ten seconds is full in a day, and what is of use
 * of them is the newest.
 *
 * The names of a directory wait together: a round begins with the first that is saved, and in a round
 * each is saved once. So the newest of them does not overtake another one, which could not follow it. */
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "base/vec.h"
#include "run/run_state.h"

static run_name *find(const run *r, const char *path) {
  for (size_t i = 0; i < r->name_count; i++)
    if (strcmp(r->names[i].path, path) == 0) return &r->names[i];
  return NULL;
}

/* Ranks must all choose alike, and each has a clock of its own. */
static bool is_paced(const run *r, const run_unit *u) {
  return u->reused && !u->above && r->in_place_every_ns > 0 && r->ranks.world <= 1;
}

static int64_t end_of_round(const run *r, const run_group *g) {
  return seconds_later(g->in_place_at, r->in_place_every_ns);
}

int64_t run_in_place_due(const run *r, const run_unit *u) {
  if (!is_paced(r, u) || r->writer_gone || r->preempted || u->group->in_place_at == 0) return 0;
  const run_name *n = find(r, u->path);
  return n && n->at_ns >= u->group->in_place_at ? end_of_round(r, u->group) : 0;
}

void run_in_place_begun(run *r, const run_unit *u) {
  int64_t now = r->env->io->now(r->env->io, IO_MONO);
  run_group *g = u->group;
  if (is_paced(r, u) && (g->in_place_at == 0 || now >= end_of_round(r, g))) g->in_place_at = now;
}

static run_name *add(run *r, const char *path) {
  char *copy = VEC_ROOM(r->names, r->name_count, r->name_room) ? strdup(path) : NULL;
  if (!copy) return NULL;
  r->names[r->name_count] = (run_name){.path = copy};
  return &r->names[r->name_count++];
}

void run_in_place_committed(run *r, const run_unit *u) {
  if (!is_paced(r, u)) return;
  run_name *n = find(r, u->path);
  if (!n) n = add(r, u->path);
  if (n)
    n->at_ns = r->env->io->now(r->env->io, IO_MONO);
  else
    log_say(r->env->log, LOG_WARN, "%s may be saved more often than is asked for: out of memory",
            u->path);
}

void run_in_place_free(run *r) {
  for (size_t i = 0; i < r->name_count; i++) free(r->names[i].path);
  free(r->names);
}
